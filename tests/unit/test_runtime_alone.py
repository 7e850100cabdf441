"""The base distribution by itself: what it offers, and the extras that its messages name."""

import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sixjars
import sixjars_runtime
from sixjars.errors import MissingExtra, SixJarsError
from sixjars_runtime.errors import install_command

ROOT = Path(__file__).parents[2]


def project(folder: Path) -> Any:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_errors_are_the_same_classes() -> None:
    assert sixjars.SixJarsError is sixjars_runtime.SixJarsError is SixJarsError


def test_the_public_names() -> None:
    assert dir(sixjars_runtime) == ["Model", "Prediction", "SixJarsError", "load"]
    assert all(getattr(sixjars_runtime, name) is not None for name in dir(sixjars_runtime))
    with pytest.raises(AttributeError, match=r"^module 'sixjars_runtime' has no attribute 'lode'$"):
        _ = sixjars_runtime.lode


def test_a_message_names_the_distribution_that_is_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert install_command("video") == "pip install 'sixjars[video]'"
    real = find_spec
    monkeypatch.setattr(
        "sixjars_runtime.errors.find_spec", lambda name: None if name == "sixjars" else real(name)
    )
    assert str(MissingExtra("av", "video")) == (
        "av is not installed. Run: pip install 'sixjars-runtime[video]'"
    )


def test_both_distributions_have_the_extras_of_the_base() -> None:
    ours, base = (project(folder)["optional-dependencies"] for folder in (ROOT, ROOT / "runtime"))
    assert len(base) == 3
    for extra in base:
        assert f"sixjars-runtime[{extra}]" in ours[extra]


def test_what_the_base_brings_is_named_once() -> None:
    def names(requirements: list[str]) -> set[str]:
        return {requirement.partition(">=")[0] for requirement in requirements}

    ours, base = (project(folder)["dependencies"] for folder in (ROOT, ROOT / "runtime"))
    assert "sixjars-runtime" in names(ours)
    assert names(ours) & names(base) == set()
