"""Compiles the C kernels of this package for this processor, once, into the cache; loads them.

Without a C compiler, on Windows, or with SIXJARS_COMPILE=0, torch operations are used instead.
Training compiles, and so does long prediction: a server, a folder of files. Other predictions use
kernels that are there already, so that the first result does not wait.
"""

import os
import platform
import shutil
import signal
import stat
import subprocess
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from sixjars.data.storage.cache import cache_folder, made_whole, touch
from sixjars.kernels.compiled import KernelLibrary
from sixjars_runtime.errors import DataError, shown

FOLDER: Final = Path(__file__).parent
SOURCES: Final = ("cells.c", "attention.c")
HEADER: Final = "kernels.h"
COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = (
    *("-std=gnu99", "-O3", "-march=native", "-fopenmp-simd", "-fPIC", "-shared"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)
"""None of them changes how NaN is treated, or how sums are ordered on one processor."""
LONGEST: Final = 60.0
"""Seconds that a compiler may take; it takes about one."""
_SHOWN: Final = 120


def load_kernels(*, build: bool) -> KernelLibrary | str:
    """The kernels, compiled first if they are missing and `build`; or why there are none."""
    if why := hindrance():
        return why
    doing = "compiled"
    try:
        path = _compiled(_place(), build=build)
        if path is None:
            return "they are not compiled yet"
        doing = "loaded"
        _check_own(path)
        library = KernelLibrary(path)
        touch(path)
    except subprocess.SubprocessError as error:
        return _reason(error)
    except (OSError, AttributeError, RuntimeError) as error:  # RuntimeError: no home folder
        return f"they cannot be {doing} ({error})"
    return library


def hindrance(precision: str = "32") -> str:
    """Why kernels are not used in such a precision, as far as is known before, or ''."""
    if precision not in {"auto", "32"}:
        return "they have 32 bits"
    if turned_off := _turned_off():
        return turned_off
    if os.name != "posix":
        return "there are none for this system"
    return "" if _compilers() else f"no C compiler ({', '.join(COMPILERS)}) was found"


def _turned_off() -> str:
    """Why the user does not want kernels, or ''; a value that is neither yes nor no is refused."""
    value = os.environ.get("SIXJARS_COMPILE", "")
    if value.lower() in {"", "1", "true", "yes", "on"}:
        return ""
    if value.lower() in {"0", "false", "no", "off"}:
        return f"SIXJARS_COMPILE is {value}"
    raise DataError(
        "SIXJARS_COMPILE must be 1, true, yes or on, or 0, false, no or off, "
        f"but is {shown(value)}."
    )


def _compilers() -> list[str]:
    """The installed ones, in the order in which they are tried."""
    return [path for path in map(shutil.which, COMPILERS) if path]


def _compiled(place: Path, *, build: bool) -> Path | None:
    """The library of this name, compiled first if there is none and `build`.

    Its name ends with its check sum: to load one that was cut off could end this process.
    """
    for path in place.parent.glob(f"{place.name}-*.so"):
        if path.stem.endswith(_sum(path)):
            return path
        if build:
            path.unlink(missing_ok=True)
    return _compile(place) if build else None


def _sum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:32]


def _place() -> Path:
    """The beginning of the library's path, with a hash of everything that it depends on."""
    parts = [(FOLDER / name).read_bytes() for name in (*SOURCES, HEADER)]
    facts = (_compilers(), FLAGS, platform.machine(), _processor())
    parts += [str(fact).encode() for fact in facts]
    return cache_folder() / "kernels" / sha256(b"|".join(parts)).hexdigest()[:32]


def _processor() -> str:
    """The processor's name and instructions: several machines may share a home folder."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        keys = ("model name", "flags", "Features", "CPU part", "CPU implementer")
        return "|".join(sorted({line for line in lines if line.startswith(keys)}))
    return platform.processor()


def _compile(place: Path) -> Path:
    """Compile with the first compiler that can; other processes may do so at the same time."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = place.with_name(f"{place.name}-new{os.getpid()}.so")
    with made_whole(new) as unfinished:
        sources = [str(FOLDER / name) for name in SOURCES]
        arguments = [*FLAGS, "-o", str(unfinished), *sources, "-lm"]
        failed: Exception | None = None
        for compiler in _compilers():
            try:
                _run([compiler, *arguments])
                unfinished.chmod(0o700)
                break
            except (OSError, subprocess.CalledProcessError) as error:
                failed = failed or error
        else:
            assert failed is not None
            raise failed
    return new.replace(place.with_name(f"{place.name}-{_sum(new)}.so"))


def _run(command: list[str]) -> None:
    """Run a compiler; end it with all that it started after `LONGEST` seconds."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.DEVNULL,
        "stderr": subprocess.PIPE,
    }
    with subprocess.Popen(command, start_new_session=True, **pipes) as running:
        try:
            _, printed = running.communicate(timeout=LONGEST)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode:
        message = printed.decode(errors="replace")
        raise subprocess.CalledProcessError(running.returncode, command, stderr=message)


def _check_own(path: Path) -> None:
    """Refuse a library that somebody else may have written or replaced: its code will run here."""
    for place in (path, *path.resolve().parents):
        status = place.stat()
        is_near = place in (path, path.resolve().parent)
        if status.st_uid not in {os.geteuid(), 0} or (is_near and status.st_uid != os.geteuid()):
            raise PermissionError(f"{place} belongs to another user")
        open_to = status.st_mode & (0o022 if is_near else 0o002)
        if open_to and not (status.st_mode & stat.S_ISVTX and not is_near):
            raise PermissionError(f"others may write {place}")


def _reason(error: subprocess.SubprocessError) -> str:
    """The reason of a failure in one line."""
    if not isinstance(error, subprocess.CalledProcessError):
        return f"the C compiler took longer than {LONGEST:.0f} seconds"
    lines = [line.strip() for line in error.stderr.splitlines() if "error" in line]
    detail = f" ({lines[0][-_SHOWN:]})" if lines else ""
    return f"the C compiler failed{detail}"
