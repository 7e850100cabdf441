"""Compiles the C kernels of `model/fast` for this processor, once, into the cache, and loads them.

Without a C compiler, on Windows, or with SIXJARS_COMPILE=0, torch operations are used instead. Training compiles, and
what will predict for long: a server, a folder of files. Other predictions use what is there already, because the first
answer must not wait.
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
from typing import Final

from sixjars.data.storage.cache import cache_folder, made_whole, touch
from sixjars.model.fast.compiled import Library
from sixjars_runtime.errors import DataError, shown

FOLDER: Final = Path(__file__).parent / "fast"
SOURCES: Final = ("cells.c", "attention.c")
HEADER: Final = "kernels.h"
COMPILERS: Final = ("cc", "gcc", "clang")
FLAGS: Final = (
    *("-std=gnu99", "-O3", "-march=native", "-fopenmp-simd", "-fPIC", "-shared"),
    *("-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast"),
)
"""None of them changes what NaN is, or lets sums depend on anything but the processor."""
LONGEST: Final = 60.0
"""Seconds that a compiler may take; it takes about one."""
_SHOWN: Final = 120


def compiled_for(device: str, precision: str, *, fast: bool = True) -> str:
    """Make the kernels ready on such a device, or put them away; what training prints of it behind the path."""
    if device != "cpu":
        return ""
    why = hindrance(precision) if fast else "learning.fast is false"
    why = why or load_kernels(build=True)
    if why:
        Library.ready = None
    return f"; no compiled kernels: {why}" if why and fast else "; compiled kernels" if fast else ""


def load_kernels(*, build: bool) -> str:
    """Load the kernels, compiled now if they are not there and `build` is true; why there are none, or nothing."""
    if Library.ready is not None and not _turned_off():
        return ""
    Library.ready, why = None, hindrance()
    if why:
        return why
    doing = "compiled"
    try:
        path = _compiled(_place(), build=build)
        if path is None:
            return "they are not compiled yet"
        doing = "loaded"
        _check_own(path)
        Library.ready = Library(path)
        touch(path)
    except subprocess.SubprocessError as error:
        return _reason(error)
    except (
        OSError,
        AttributeError,
        RuntimeError,
    ) as error:  # a RuntimeError is that there is no home folder
        return f"they cannot be {doing} ({error})"
    return ""


def hindrance(precision: str = "32") -> str:
    """Why kernels are not used here in such a precision, as far as is known before; nothing where they are."""
    if precision not in {"auto", "32"}:
        return "they have 32 bits"
    if turned_off := _turned_off():
        return turned_off
    if os.name != "posix":
        return "there are none for this system"
    return "" if _compilers() else f"no C compiler ({', '.join(COMPILERS)}) was found"


def _turned_off() -> str:
    """Why the user does not want kernels, or nothing; a value that is neither yes nor no is refused."""
    given = os.environ.get("SIXJARS_COMPILE", "")
    if given.lower() in {"", "1", "true", "yes", "on"}:
        return ""
    if given.lower() in {"0", "false", "no", "off"}:
        return f"SIXJARS_COMPILE is {given}"
    raise DataError(
        f"SIXJARS_COMPILE must be 1, true, yes or on, or 0, false, no or off, but is {shown(given)}."
    )


def _compilers() -> list[str]:
    """Those that are installed, in the order in which they are tried."""
    return [found for found in map(shutil.which, COMPILERS) if found]


def _compiled(place: Path, *, build: bool) -> Path | None:
    """The library of this name that is whole, compiled now if there is none and `build` is true.

    Its name ends with a sum of what is in it: to load one that was cut off could end this process.
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
    """Where the kernels are, as a beginning of names: of all that they depend on."""
    parts = [(FOLDER / name).read_bytes() for name in (*SOURCES, HEADER)]
    parts += [
        str(part).encode() for part in (_compilers(), FLAGS, platform.machine(), _processor())
    ]
    return cache_folder() / "kernels" / sha256(b"|".join(parts)).hexdigest()[:32]


def _processor() -> str:
    """Its name and its instructions: a home folder may be that of many machines."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        wanted = ("model name", "flags", "Features", "CPU part", "CPU implementer")
        return "|".join(sorted({line for line in lines if line.startswith(wanted)}))
    return platform.processor()


def _compile(place: Path) -> Path:
    """By the first compiler that can; other processes may do the same at the same time."""
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = place.with_name(f"{place.name}-new{os.getpid()}.so")
    with made_whole(new) as made:
        arguments = [*FLAGS, "-o", str(made), *(str(FOLDER / name) for name in SOURCES), "-lm"]
        failed: Exception | None = None
        for compiler in _compilers():
            try:
                _run([compiler, *arguments])
                made.chmod(0o700)
                break
            except (OSError, subprocess.CalledProcessError) as error:
                failed = failed or error
        else:
            assert failed is not None
            raise failed
    return new.replace(place.with_name(f"{place.name}-{_sum(new)}.so"))


def _run(command: list[str]) -> None:
    """A compiler with all that it starts, which ends after `LONGEST` seconds."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        try:
            _, printed = running.communicate(timeout=LONGEST)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
    if running.returncode:
        raise subprocess.CalledProcessError(
            running.returncode, command, stderr=printed.decode(errors="replace")
        )


def _check_own(path: Path) -> None:
    """What is loaded runs, so nobody else may have written it, or put another in its place."""
    for one in (path, *path.resolve().parents):
        found = one.stat()
        near = one in (path, path.resolve().parent)
        if found.st_uid not in {os.geteuid(), 0} or (near and found.st_uid != os.geteuid()):
            raise PermissionError(f"{one} belongs to another user")
        open_to = found.st_mode & (0o022 if near else 0o002)
        if open_to and not (found.st_mode & stat.S_ISVTX and not near):
            raise PermissionError(f"others may write {one}")


def _reason(error: subprocess.SubprocessError) -> str:
    """In one line."""
    if not isinstance(error, subprocess.CalledProcessError):
        return f"the C compiler took longer than {LONGEST:.0f} seconds"
    found = next((line for line in error.stderr.splitlines() if "error" in line), "").strip()
    return f"the C compiler failed{f' ({found[-_SHOWN:]})' if found else ''}"
