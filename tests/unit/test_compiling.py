"""Kernels are compiled once for each processor, whole or not at all; else torch computes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import sixjars
from sixjars.data.storage.pruning import MAKING_HERE, contents, prune
from sixjars.errors import DataError
from sixjars.kernels import compiling
from sixjars.kernels.backends import (
    CompiledBackend,
    TorchBackend,
    prediction_backend,
    training_backend,
)
from sixjars.kernels.compiled import KernelLibrary
from sixjars.kernels.compiling import hindrance, load_kernels
from sixjars.model.reference import REFERENCE
from tests.conftest import Call

needs_compiler = pytest.mark.skipif(
    bool(hindrance()), reason=f"no compiled kernels here: {hindrance()}"
)
FEW = ["data.sample.size=16", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
LOAD = (
    "from sixjars.kernels.compiling import load_kernels; "
    "kernels = load_kernels(build=True); print(kernels if isinstance(kernels, str) else 'loaded')"
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.delenv("SIXJARS_COMPILE", raising=False)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "kernels"


def why_none(*, build: bool) -> str:
    """Why there are no kernels; '' where they are loaded."""
    kernels = load_kernels(build=build)
    assert isinstance(kernels, str | KernelLibrary)
    return kernels if isinstance(kernels, str) else ""


def compiler(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program named cc, the only one there is."""
    path = folder / "bin" / "cc"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o700)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}/bin")
    monkeypatch.setattr(compiling, "COMPILERS", ("cc",))


@needs_compiler
def test_they_are_compiled_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert why_none(build=False) == "they are not compiled yet"
    assert not place.exists()
    assert why_none(build=True) == ""
    [made] = place.iterdir()
    assert made.stat().st_mode & 0o077 == 0
    monkeypatch.setattr(compiling, "_run", lambda *_, **__: pytest.fail("it is compiled again"))
    assert why_none(build=False) == ""
    assert (contents(place.parent).files, contents(place.parent).size) == (1, made.stat().st_size)


@needs_compiler
def test_several_processes_may_start_at_once(place: Path) -> None:
    begun = [
        subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate()[0] for process in begun] == ["loaded\n"] * 3
    assert [path.suffix for path in place.iterdir()] == [".so"]


def test_a_compiler_that_was_killed_leaves_nothing_for_long(place: Path) -> None:
    left = place / f"{MAKING_HERE}99999999-x"
    left.mkdir(parents=True)
    prune(place.parent)
    assert not left.exists()


def test_they_can_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    load_kernels(build=True)
    monkeypatch.setenv("SIXJARS_COMPILE", "0")
    assert why_none(build=True) == "SIXJARS_COMPILE is 0"
    assert isinstance(prediction_backend("cpu"), TorchBackend)
    backend = training_backend("cpu", "32", fast=True, graphs=False)
    assert isinstance(backend, TorchBackend)
    assert backend.note == "; no compiled kernels: SIXJARS_COMPILE is 0"


@pytest.mark.parametrize("value", ["false", "no", "OFF"])
def test_there_are_several_words_for_no(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load_kernels(build=True)
    monkeypatch.setenv("SIXJARS_COMPILE", value)
    assert why_none(build=True) == f"SIXJARS_COMPILE is {value}"


def test_words_for_yes_and_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("", "1", "True", "yes", "on"):
        monkeypatch.setenv("SIXJARS_COMPILE", value)
        assert "SIXJARS_COMPILE" not in hindrance()
    monkeypatch.setenv("SIXJARS_COMPILE", "none")
    with pytest.raises(DataError) as caught:
        hindrance()
    told = "SIXJARS_COMPILE must be 1, true, yes or on, or 0, false, no or off, but is 'none'."
    assert str(caught.value) == told


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr("sixjars.kernels.compiling.shutil.which", lambda _: None)
    assert why_none(build=True) == "no C compiler (cc, gcc, clang) was found"
    assert not place.exists()


def test_on_another_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sixjars.kernels.compiling.os.name", "nt")
    assert hindrance() == "there are none for this system"


def test_only_for_32_bits_on_a_cpu(place: Path) -> None:
    assert training_backend("cuda", "32", fast=True, graphs=True).note == ""
    backend = training_backend("cpu", "bf16", fast=True, graphs=False)
    assert backend.note == "; no compiled kernels: they have 32 bits"
    assert training_backend("cpu", "32", fast=False, graphs=False) is REFERENCE
    assert not place.exists()


def test_a_compiler_that_fails(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler(tmp_path, "echo 'cells.c:1: error: no such option' >&2; exit 1", monkeypatch)
    assert why_none(build=True) == "the C compiler failed (cells.c:1: error: no such option)"
    assert list(place.iterdir()) == []


def test_a_compiler_whose_message_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler(tmp_path, r"printf 'an \377 error\n' >&2; exit 1", monkeypatch)
    assert why_none(build=True) == "the C compiler failed (an \ufffd error)"


def test_a_compiler_that_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(tmp_path, "exit 0", monkeypatch)
    assert why_none(build=True).startswith("they cannot be compiled (")


@needs_compiler
def test_another_compiler_is_tried(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = compiling._compilers()[0]
    compiler(tmp_path, "exit 1", monkeypatch)
    monkeypatch.setattr(compiling, "_compilers", lambda: [str(tmp_path / "bin" / "cc"), good])
    monkeypatch.setenv("PATH", os.defpath)
    assert why_none(build=True) == ""
    assert len(list(place.iterdir())) == 1


def test_without_a_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(compiling, "cache_folder", homeless)
    monkeypatch.setattr(compiling, "_compilers", lambda: ["cc"])
    told = "they cannot be compiled (Could not determine home directory.)"
    assert why_none(build=False) == told


@needs_compiler
def test_a_prediction_uses_what_is_compiled(place: Path) -> None:
    assert isinstance(prediction_backend("cpu"), TorchBackend)
    assert not place.exists()
    compiles = training_backend("cpu", "auto", fast=True, graphs=False)
    assert isinstance(compiles, CompiledBackend)
    assert compiles.note == "; compiled kernels"
    assert isinstance(prediction_backend("cpu"), CompiledBackend)


def test_a_compiler_that_fails_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(tmp_path, "exit 1", monkeypatch)
    assert why_none(build=True) == "the C compiler failed"


def test_a_compiler_that_does_not_end(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler(tmp_path, "exec sleep 60", monkeypatch)
    monkeypatch.setattr(compiling, "LONGEST", 0.2)
    assert why_none(build=True) == "the C compiler took longer than 0 seconds"
    assert list(place.iterdir()) == []


def test_what_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler(tmp_path, 'while [ "$1" != -o ]; do shift; done; echo nothing > "$2"', monkeypatch)
    assert why_none(build=True).startswith("they cannot be loaded (")


@needs_compiler
@pytest.mark.parametrize("left", [0, 8, 20_000])
def test_what_was_cut_off_is_compiled_again(
    left: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To load it could end the process."""
    assert why_none(build=True) == ""
    [made] = place.iterdir()
    whole = made.read_bytes()
    made.unlink()  # which is in use
    made.write_bytes(whole[:left])
    assert why_none(build=False) == "they are not compiled yet"
    assert why_none(build=True) == ""
    assert [path.read_bytes() for path in place.iterdir()] == [whole]


@needs_compiler
@pytest.mark.parametrize("which", ["the file", "the folder"])
def test_what_others_may_write_is_not_loaded(
    which: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert why_none(build=True) == ""
    [made] = place.iterdir()
    (made if which == "the file" else place).chmod(0o777)
    told = f"they cannot be loaded (others may write {made if which == 'the file' else place})"
    assert why_none(build=True) == told


@needs_compiler
def test_what_lies_where_others_may_write_is_not_loaded(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert why_none(build=True) == ""
    (tmp_path / "cache").chmod(0o777)
    told = f"they cannot be loaded (others may write {tmp_path / 'cache'})"
    assert why_none(build=True) == told
    (tmp_path / "cache").chmod(0o1777)  # where nobody can move what is another's
    assert why_none(build=True) == ""


@needs_compiler
def test_what_belongs_to_another_user_is_not_loaded(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert why_none(build=True) == ""
    [made] = place.iterdir()
    monkeypatch.setattr("sixjars.kernels.compiling.os.geteuid", lambda: 12345)
    assert why_none(build=True) == f"they cannot be loaded ({made} belongs to another user)"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(compiling, "_compilers", lambda: ["cc"])
    wanted = (
        f"they cannot be compiled ([Errno 20] Not a directory: '{tmp_path / 'file' / 'kernels'}')"
    )
    assert why_none(build=True) == wanted


@needs_compiler
def test_training_tells_and_computes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    recipe, means, found = "translation/sample_attention", "; steps as graphs on a CUDA device", []
    planned = (
        "kernels that the first training compiles on a CPU",
        "no compiled kernels on a CPU: SIXJARS_COMPILE is 0",
    )
    for told, plan in zip(("compiled kernels", "no compiled kernels"), planned, strict=True):
        why = ": SIXJARS_COMPILE is 0" if told.startswith("no") else ""
        said = call("train", recipe, *FEW, "--out", tmp_path / told, "--device", "cpu")
        assert f"(learning.fast); {told}{why}\n" in said.err
        assert f"{means}, {plan}\n" in call("explain", recipe, *FEW).out
        found.append([*sixjars.load(tmp_path / told, device="cpu").network.parameters()])
        monkeypatch.setenv("SIXJARS_COMPILE", "0")
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)
