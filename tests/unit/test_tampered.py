"""A run or an export that somebody damaged or changed: it is used, or refused in a sentence; it
never hangs or fills the memory.

The changes are drawn by seeds (see `tampered`). A few hundred come with every change, thousands in
the slow tests.
"""

import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from PIL import Image

import sixjars
import sixjars_runtime
from tests.conftest import once
from tests.unit.tampered import RUNTIME, TOOLKIT, Outcome, User, copied, tamper

FEW = ["data.sample.size=48", "data.sample.test=20", "data.sample.valid=20", "learning.steps=2"]
KINDS = {
    "sequence": ("transliteration/sample_attention", "evaluation.search.max_length=8"),
    "label": ("document_classification/sample_flat_attention", "learning.batch_examples=16"),
    "hierarchy": ("document_classification/sample_attention", "learning.batch_examples=16"),
    "pointer": ("pointing/sample_sorting", "learning.batch_examples=16"),
    "image": ("image_classification/sample_attention", "learning.batch_examples=16"),
}
"""One system of each kind: its recipe, and how it becomes small."""
INPUTS = {
    "sequence": ["ghar", "namaste x"],
    "label": ["a text of words", "x"],
    "hierarchy": ["One is here.\nTwo is there.", "x"],
    "pointer": ["0.5 0.2 0.9", "0.1"],
}
TWICE = 2
"""A process may take so many times the memory that it takes for the model as it was."""


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small image."""
    path = tmp_path_factory.mktemp("image") / "x.png"
    noise = np.random.default_rng(0).integers(0, 255, (40, 40, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    return str(path)


def run_of(kind: str, factory: pytest.TempPathFactory) -> Path:
    """A run of this kind, trained once."""
    recipe, *more = KINDS[kind]
    settings = [*FEW, *more]
    return once(factory, f"tampered_{kind}", lambda out: sixjars.train(recipe, settings, out=out))


def export_of(kind: str, factory: pytest.TempPathFactory) -> Path:
    """It exported."""
    run = run_of(kind, factory)
    return once(factory, f"tampered_{kind}_export", lambda out: sixjars.export(run, out))


@pytest.fixture
def runtime() -> Iterator[User]:
    """A process without torch."""
    user = User(sys.executable, RUNTIME)
    yield user
    user.stop()


@pytest.fixture
def toolkit(warm_python: str) -> Iterator[User]:
    """A process with the toolkit."""
    user = User(warm_python, TOOLKIT)
    yield user
    user.stop()


def faults(
    user: User,
    folder: Path,
    inputs: Any,
    target: Path,
    seeds: range,
    uses: tuple[str, ...] = ("predict",),
) -> Iterator[str]:
    """What went wrong with copies that were tampered with."""
    usual = [
        user.use(folder=copied(folder, target), inputs=inputs, use=use)
        for use in dict.fromkeys(uses)
    ]
    assert {outcome.outcome for outcome in usual} == {"used"}, usual
    for seed in seeds:
        draw = random.Random(seed)
        change, use = tamper(copied(folder, target), draw), draw.choice(uses)
        outcome = user.use(folder=target, inputs=inputs, use=use)
        if wrong := _wrong(outcome, TWICE * usual[-1].most, str(target)):
            yield f"seed {seed}, {change}: {use} {wrong}"


def _wrong(outcome: Outcome, most: float, folder: str) -> str:
    """What is wrong with an outcome, if something is; a sentence names a file or folder."""
    if outcome.outcome not in ("used", "refused"):
        return f"{outcome.outcome} after {outcome.seconds:.1f} s: {outcome.text}"
    if outcome.outcome == "refused" and (
        folder not in outcome.text or outcome.text.count(folder) > 3
    ):
        return f"says no sentence: {outcome.text}"
    return f"took {outcome.most:,.0f} MB" if outcome.most > most else ""


def test_tampered_exports(exported: Path, runtime: User, tmp_path: Path) -> None:
    assert not list(faults(runtime, exported, INPUTS["sequence"], tmp_path / "copy", range(150)))


def test_tampered_runs(run: Path, toolkit: User, tmp_path: Path) -> None:
    assert not list(faults(toolkit, run, INPUTS["sequence"], tmp_path / "copy", range(60)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_tampered_exports(
    kind: str, runtime: User, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, image: str
) -> None:
    inputs = INPUTS.get(kind, [image])
    assert not list(
        faults(runtime, export_of(kind, tmp_path_factory), inputs, tmp_path / "copy", range(200))
    )


@pytest.mark.parametrize("kind", ["sequence", "label"])
def test_graphs_whose_weights_are_no_numbers(
    kind: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The first label would have been the most probable one."""
    folder = copied(export_of(kind, tmp_path_factory), tmp_path / "copy")
    for path in folder.glob("*.onnx"):
        graph = onnx.load(path)
        for weight in graph.graph.initializer:
            if weight.data_type == onnx.TensorProto.FLOAT:
                numbers = np.full(tuple(weight.dims), np.nan, np.float32)
                weight.CopyFrom(onnx.numpy_helper.from_array(numbers, weight.name))
        onnx.save(graph, path)
    with pytest.raises(sixjars_runtime.SixJarsError) as caught:
        sixjars_runtime.load(folder).predict(INPUTS[kind])
    told = f"{folder}: its graphs give no numbers (NaN), so nothing was found; export it again."
    assert str(caught.value) == told


USES = ("predict", "predict", "evaluate", "report", "resume")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS)
def test_many_tampered_runs(
    kind: str, toolkit: User, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, image: str
) -> None:
    inputs = INPUTS.get(kind, [image])
    assert not list(
        faults(toolkit, run_of(kind, tmp_path_factory), inputs, tmp_path / "copy", range(200), USES)
    )
