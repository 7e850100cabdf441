"""Every sample recipe, exported: the answers of the runtime are those of torch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sixjars
import sixjars_runtime
from sixjars.errors import DataError
from sixjars.recipe.files import packaged
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.prediction.predictor import Predictor
from sixjars.serving.export.agreement import examples_of

SAMPLES = [name for name in packaged() if "/sample" in name]
FEW = [
    *("data.sample.size=64", "data.sample.valid=8", "data.sample.test=16", "expect={}"),
    *("learning.steps=40", "evaluation.search.max_length=8"),
]
"""Enough training, and outputs so short, that no two are equally good to the last of 32 bits: a
beam may keep either of those. A sum of a hundred log probabilities is itself rounded by 1e-4."""
OTHER = {
    name: ["learning.seed=1"]
    for name in ("language_model/sample_rnn", "translation/sample_every_step")
}
"""With seed 0, a beam of these meets two outputs of the same log P, to the last bit."""
NEAR = 1e-4
"""How far log P, scores and weights may lie from those of torch."""
SAME = ("text", "tokens", "source", "finished", "segments", "error")


def ways(predictor: Predictor) -> list[dict[str, Any]]:
    """How the answers of a run may be asked for."""
    if predictor.ability.multi_label:
        return [{}]
    if not predictor.ability.searches:
        return [{}, {"nbest": 2}]
    replaced = (
        {"unknown": "replace", "coverage_penalty": 0.2}
        if predictor.has_attention
        else {"unknown": "allow"}
    )
    return [
        {},
        {"search": "beam", "width": 3, "nbest": 3, **replaced},
        {"search": "sample", "nbest": 2},
    ]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", SAMPLES)
def test_an_exported_run_answers_as_torch_does(recipe: str, tmp_path: Path) -> None:
    run = sixjars.train(recipe, [*FEW, *OTHER.get(recipe, [])], out=tmp_path / "run")
    made = sixjars.export(run.folder, tmp_path / "exported", check=True)
    assert made.agreement is not None
    assert made.agreement.same == made.agreement.examples
    assert made.agreement.difference < NEAR
    ours, theirs = sixjars.load(run.folder, device="cpu"), sixjars_runtime.load(made.folder)
    with examples_of(open_run(run.folder), ours, None) as inputs:
        for how in ways(ours):
            pairs = zip(ours.nbest(inputs, **how), theirs.nbest(inputs, **how), strict=True)
            for one, other in (
                (one, other)
                for few, others in pairs
                for one, other in zip(few, others, strict=True)
            ):
                assert [getattr(one, name) for name in SAME] == [
                    getattr(other, name) for name in SAME
                ]
                assert one.log_probability == pytest.approx(other.log_probability, abs=NEAR)
                assert one.score == pytest.approx(other.score, abs=NEAR)
                assert not one.weights or np.allclose(one.attention, other.weights, atol=NEAR)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["greedy", "beam"])
@pytest.mark.parametrize("recipe", SAMPLES)
def test_a_whole_search_answers_as_torch_does(recipe: str, kind: str, tmp_path: Path) -> None:
    run = sixjars.train(recipe, [*FEW, *OTHER.get(recipe, [])], out=tmp_path / "run")
    if not sixjars.load(run.folder, device="cpu").ability.searches:
        with pytest.raises(DataError, match="chooses a label, so there is no search to write"):
            sixjars.export(run.folder, tmp_path / "exported", whole=kind)
        return
    made = sixjars.export(run.folder, tmp_path / "exported", whole=kind, check=True)
    assert made.agreement is not None
    assert made.agreement.same == made.agreement.examples
    assert made.agreement.difference < NEAR
    model = sixjars_runtime.load(made.folder)
    told = "inside its graph; to choose another, export without"
    with pytest.raises(sixjars_runtime.SixJarsError, match=told):
        model.predict("x", search="sample")


@pytest.mark.slow
def test_a_whole_search_has_all_rules_and_8_bits(tmp_path: Path) -> None:
    run = sixjars.train(
        "transliteration/sample_attention",
        ["data.sample.size=3000", "expect={}"],
        out=tmp_path / "run",
    )
    rules: dict[str, Any] = {
        "min_length": 3,
        "no_repeat_ngram": 2,
        "coverage_penalty": 0.2,
        "unknown": "replace",
        "width": 3,
    }
    made = sixjars.export(run.folder, tmp_path / "rules", whole="beam", check=True, **rules)
    assert made.agreement is not None
    assert made.agreement.same == made.agreement.examples
    small = sixjars.export(run.folder, tmp_path / "small", whole="greedy", precision="int8")
    sizes = [(one.folder / "whole.onnx").stat().st_size for one in (made, small)]
    assert sizes[1] < 0.8 * sizes[0]


@pytest.mark.slow
def test_a_step_of_8_bits_keeps_the_answers(tmp_path: Path) -> None:
    run = sixjars.train(
        "transliteration/sample_attention",
        ["data.sample.size=3000", "expect={}"],
        out=tmp_path / "run",
    )
    made = sixjars.export(run.folder, tmp_path / "exported", precision="int8")
    assert made.agreement is not None
    assert made.agreement.same >= 0.98 * made.agreement.examples
