"""How a command ends: quickly, and without a word from the libraries that it used."""

import gc
import sys

import pytest

from sixjars.cli import COUNTS_LEAKS, leave_garbage


def test_garbage_is_collected_where_a_module_would_print_what_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Triton 3.9 ended each training with thirty lines about objects that were never collected."""
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    monkeypatch.delitem(sys.modules, COUNTS_LEAKS, raising=False)
    leave_garbage()
    monkeypatch.setitem(sys.modules, COUNTS_LEAKS, sys)
    leave_garbage()
    assert frozen == [True]
