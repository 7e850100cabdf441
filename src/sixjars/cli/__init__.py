"""The command line: one command, one function. Nothing heavy loads before a command needs it."""

import errno
import os
import sys

import typer

from sixjars.cli import looking, training, using
from sixjars.errors import SixJarsError

app = typer.Typer(
    name="sixjars",
    help="Neural encoder-decoders, told as six jars: train one, use it, measure it, look at what it attends to.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    training.demo,
    looking.tasks,
    training.new,
    training.train,
    using.predict,
    using.evaluate,
    looking.explain,
):
    app.command()(command)
app.command()(looking.compare)


def main() -> None:
    """Run the command line; every fault raised on purpose is one sentence on stderr."""
    try:
        app()
    except SixJarsError as error:
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail("stopped.", 130)
    except BrokenPipeError:  # whoever read our output has gone, as in `sixjars tasks | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except OSError as error:
        if error.errno not in {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM}:
            raise
        _fail(f"{error.filename or 'output'}: {error.strerror}; what was saved before is still there.", 2)


def _fail(sentence: str, code: int) -> None:
    sys.stderr.write(f"sixjars: {sentence}\n")
    sys.exit(code)
