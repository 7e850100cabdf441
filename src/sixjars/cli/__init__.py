"""The command line: one command, one function. Nothing heavy loads before a command needs it."""

import atexit
import ctypes
import errno
import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, NoReturn

import typer

from sixjars.cli import describe, inspect, predict, prepare, score, share, train
from sixjars_runtime.errors import TOO_LARGE, Interrupted, SixJarsError, memory_is_short

app = typer.Typer(
    name="sixjars",
    invoke_without_command=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    train.demo,
    describe.tasks,
    train.new,
    prepare.sample,
    prepare.features,
    prepare.cache,
    prepare.align,
    train.train,
    train.tune,
    predict.predict,
    score.evaluate,
    score.score,
    describe.explain,
    describe.compare,
    inspect.inspect,
    score.report,
    share.pack,
    share.export,
    share.push,
    share.serve,
):
    app.command()(command)


@app.callback()
def about(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)
    ] = False,
) -> None:
    """Neural encoder-decoder models: train one from a recipe, use it, score it, draw what it
    attends to.
    """  # noqa: D205 - one sentence of --help
    if version:
        import sixjars

        typer.echo(sixjars.__version__)
        raise typer.Exit


NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
LARGE = {-3: 32 << 20, -1: 512 << 20}
"""glibc's `mallopt`: the least block that is given back at once, and the free memory to keep."""
COUNTS_LEAKS = "triton._C.libtriton"
"""A module (of Triton 3.9, by nanobind) that prints a page about each object left at the end."""


def main() -> None:
    """Run the command line; whatever goes wrong on the user's side is one sentence on stderr."""
    # what is imported stays: to look through it for garbage often takes a tenth of a start
    gc.set_threshold(100_000)
    atexit.register(leave_garbage)
    keep_memory()
    for stream in (sys.stdout, sys.stderr):
        # a character that the terminal cannot show is no reason to stop
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    with _terminated_like_interrupted(), _one_sentence():
        code = app(sys.argv[1:] or ["--help"], prog_name="sixjars", standalone_mode=False)
        if code == Interrupted.exit_code:  # the code by which typer reports Ctrl-C
            raise KeyboardInterrupt
        sys.stdout.flush()
        sys.exit(code or 0)


def leave_garbage() -> None:
    """Skip the search for garbage at the end, unless a module would complain about leaks."""
    if COUNTS_LEAKS not in sys.modules:
        gc.freeze()


def keep_memory() -> None:
    """Let the C library keep freed memory for the next update, and not give it to the system.

    An update on a CPU allocates hundreds of megabytes, and to get each page anew takes up to a
    tenth of its time. This is a matter of the whole process, so only the command does it, not the
    library.
    """
    # settings of the user's environment go first
    is_set = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if sys.platform != "linux" or is_set:
        return
    with suppress(OSError, AttributeError):  # a static Python, another C library
        libc = ctypes.CDLL(None)
        for option, limit in LARGE.items():
            libc.mallopt(option, limit)


@contextmanager
def _one_sentence() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # the reader of the output has gone, as in `sixjars tasks | head -1`
        # else Python complains at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except SixJarsError as error:
        _fail(str(error), error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail("stopped.", Interrupted.exit_code)
    except Exception as error:
        # pydantic wraps whatever comes while it writes
        if isinstance(error.__cause__, KeyboardInterrupt):
            _fail("stopped.", Interrupted.exit_code)
        sentence = _told(error)
        if sentence is None:  # a fault of the toolkit: show where
            raise
        _fail(sentence, 2)


def _told(error: Exception) -> str | None:
    """The sentence for an error of the machine or of the command line; nothing for others."""
    if isinstance(error, OSError):
        end = "; what was saved before is still there." if error.errno in NO_SPACE else "."
        return f"{error.filename or 'output'}: {error.strerror or error}{end}"
    if memory_is_short(error):
        return TOO_LARGE
    if hasattr(error, "format_message"):  # as only typer's have
        context = getattr(error, "ctx", None)
        message = str(error.format_message())
        end = "" if message.endswith((".", "?")) else "."
        return f"{message}{end} See: {context.command_path if context else 'sixjars'} --help"
    return None


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """Let SIGTERM end the work as Ctrl-C does."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _fail(sentence: str, code: int) -> NoReturn:
    sys.stderr.write(f"sixjars: {sentence}\n")
    sys.exit(code)
