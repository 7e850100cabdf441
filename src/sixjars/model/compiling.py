"""Compiles the C kernels of `model/fast` for this processor, once, into the cache, and loads them.

Without a C compiler, on Windows, or with SIXJARS_COMPILE=0, torch operations are used instead. Training compiles, and
what will predict for long: a server, a folder of files. Other predictions use what is there already, because the first
answer must not wait.
"""

import os
import platform
import shutil
import subprocess
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from sixjars.data.storage.cache import cache_folder, made_whole, touch
from sixjars.model.fast.compiled import Library

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


def compiled_for(device: str, precision: str) -> str:
    """Make the kernels ready on such a device; what training tells of it behind the path."""
    if device != "cpu":
        return ""
    why = load_kernels(build=True) if precision in {"auto", "32"} else "they have 32 bits"
    return f"; no compiled kernels: {why}" if why else "; compiled kernels"


def load_kernels(*, build: bool) -> str:
    """Load the kernels, compiled now if they are not there and `build` is true; why there are none, or nothing."""
    if Library.ready is not None and os.environ.get("SIXJARS_COMPILE") != "0":
        return ""
    Library.ready, why = None, hindrance()
    if why:
        return why
    path = _place()
    try:
        if build and not path.exists():
            _compile(path)
        _check_own(path)
        Library.ready = Library(path)
        touch(path)
    except FileNotFoundError:
        return "they are not compiled yet"
    except (OSError, AttributeError, subprocess.SubprocessError) as error:
        return f"{_reason(error)}"
    return ""


def hindrance() -> str:
    """Why kernels cannot be compiled here; nothing where they can."""
    if os.environ.get("SIXJARS_COMPILE") == "0":
        return "SIXJARS_COMPILE is 0"
    if os.name != "posix":
        return "there are none for this system"
    return "" if _compiler() else f"no C compiler ({', '.join(COMPILERS)}) was found"


def _compiler() -> str | None:
    return next(filter(None, map(shutil.which, COMPILERS)), None)


def _place() -> Path:
    """Where the kernels are, under a name of all that they depend on: source, compiler, flags and processor."""
    folder = Path(__file__).parent / "fast"
    parts = [(folder / name).read_bytes() for name in (*SOURCES, HEADER)]
    parts += [str(part).encode() for part in (_compiler(), FLAGS, platform.machine(), _processor())]
    return cache_folder() / "kernels" / f"{sha256(b'|'.join(parts)).hexdigest()}.so"


def _processor() -> str:
    """Its name and its instructions: a home folder may be that of many machines."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        wanted = ("model name", "flags", "Features", "CPU part", "CPU implementer")
        return "|".join(sorted({line for line in lines if line.startswith(wanted)}))
    return platform.processor()


def _compile(path: Path) -> None:
    """Into place as a whole; other processes may do the same at the same time."""
    folder, compiler = Path(__file__).parent / "fast", _compiler()
    assert compiler is not None
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with made_whole(path) as made:
        command = [compiler, *FLAGS, "-o", str(made), *(str(folder / name) for name in SOURCES), "-lm"]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL)
        made.chmod(0o700)


def _check_own(path: Path) -> None:
    """What is loaded runs, so nobody else may have written it."""
    for one in (path, path.parent):
        found = one.stat()
        if found.st_uid != os.geteuid() or found.st_mode & 0o022:
            raise PermissionError(f"others may write {one}")


def _reason(error: Exception) -> str:
    """In one line."""
    if isinstance(error, subprocess.TimeoutExpired):
        return f"the C compiler took longer than {LONGEST:.0f} seconds"
    if isinstance(error, subprocess.CalledProcessError):
        said = next((line for line in error.stderr.splitlines() if "error" in line), "").strip()
        return f"the C compiler failed{f' ({said[-_SHOWN:]})' if said else ''}"
    return f"they cannot be loaded ({error})"
