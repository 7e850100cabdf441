"""Which library multiplies: decided by the maker of the processor, so that a run gives the same numbers again."""

import sys
from pathlib import Path

import pytest

from sixjars.model import processor


@pytest.mark.parametrize(("maker", "intel"), [("GenuineIntel", True), ("AuthenticAMD", False)])
def test_the_maker_is_read_from_the_system(maker: str, intel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"processor : 0\nvendor_id : {maker}\n")
    assert processor._is_intel() is intel


@pytest.mark.parametrize(("told", "intel"), [("AMD64 Family 25, AuthenticAMD", False), ("Intel64, GenuineIntel", True)])
def test_elsewhere_it_is_part_of_the_name(told: str, intel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    monkeypatch.setattr(processor, "processor", lambda: told)
    assert processor._is_intel() is intel


def test_where_mkl_is_fast_only_matrices_of_many_steps_are_reordered() -> None:
    assert (processor.FEWEST_ONCE == sys.maxsize) is processor.BY_MKL
    assert processor.FEWEST <= processor.FEWEST_STEPS < processor.FEWEST_ONCE or not processor.BY_MKL
