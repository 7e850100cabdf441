"""Shared by the tests of untidy files: a way to call `sixjars` in this process."""

import io
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


Call = Callable[..., Said]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """`sixjars ARGUMENTS` in this process."""

    def run(*arguments: object) -> Said:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["sixjars", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, out, err)

    return run
