"""Shared by all tests of the command line: a way to call `sixjars` in this process."""

import io
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sixjars.cli import main


@dataclass(frozen=True)
class Said:
    """What a command left."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """What is no progress: no epoch, no fact of the block before training, no note on few examples."""
        usual = r"epoch |[a-z]+ {2,}|note: the validation set has "
        return [line for line in self.err.splitlines() if not re.match(usual, line)]

    @property
    def sentence(self) -> str:
        """The one sentence of a command that failed."""
        assert self.code not in (0, None), self
        assert self.out == "", self
        lines = self.complaints
        assert len(lines) == 1, self
        assert lines[0].startswith("sixjars: "), self
        assert lines[0].endswith((".", "?", "--help")), self
        return lines[0].removeprefix("sixjars: ")


Call = Callable[..., Said]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """`sixjars ARGUMENTS` in this process."""

    def run(*arguments: object, stdin: bytes | None = b"") -> Said:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["sixjars", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", None if stdin is None else io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, out, err)

    return run
