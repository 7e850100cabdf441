"""One search at a time in a folder: its journal is locked as long as the search lasts, whatever ends it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sixjars.errors import RunError
from sixjars.learning.checkpoints import disk_faults


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock on a file, which is made where there is none; a second search is refused.

    Where the system or its disk has no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(
                f"another search is at work in {path.parent}; wait for its end, or choose another folder with --out."
            ) from None
        except OSError:
            pass
        yield
