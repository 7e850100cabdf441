"""Which library multiplies: by the maker of the processor, so that numbers are the same again."""

import runpy
import sys
from pathlib import Path

import pytest
import torch

from sixjars.kernels import processor


@pytest.mark.parametrize(("maker", "intel"), [("GenuineIntel", True), ("AuthenticAMD", False)])
def test_the_maker_is_read_from_the_system(
    maker: str, intel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: f"processor : 0\nvendor_id : {maker}\n")
    assert processor._is_intel() is intel


@pytest.mark.parametrize(
    ("told", "intel"), [("AMD64 Family 25, AuthenticAMD", False), ("Intel64, GenuineIntel", True)]
)
def test_elsewhere_it_is_part_of_the_name(
    told: str, intel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> str:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", absent)
    monkeypatch.setattr(processor, "processor", lambda: told)
    assert processor._is_intel() is intel


@pytest.mark.parametrize(
    ("maker", "fewest"),
    [("GenuineIntel", (1 << 18, sys.maxsize)), ("AuthenticAMD", (1 << 15,) * 2)],
)
def test_where_mkl_is_fast_only_matrices_of_many_steps_are_reordered(
    maker: str, fewest: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: maker)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    anew = runpy.run_path(processor.__file__)
    assert (anew["FEWEST_STEPS"], anew["FEWEST_ONCE"]) == fewest
