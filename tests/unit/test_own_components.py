"""Components of one's own, as in a notebook: bare names, no equations, mistakes in shapes."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import sixjars
from sixjars import Encoded, Encoder, Outcome, Padded, WordEmbedding
from sixjars.errors import DataError, RecipeError, ShapeError

RECIPE: dict[str, Any] = {
    "task": "transliteration",
    "data": {
        "sample": {"size": 40, "valid": 10, "test": 10},
        "source": {"tokens": "characters"},
        "target": {"tokens": "characters"},
    },
    "learning": {"steps": 2},
    "evaluation": {"search": {"max_length": 5}, "metrics": ["exact_match"]},
}


class MeanEncoder(Encoder):
    def __init__(self, *, embedding: WordEmbedding, size: int = 8, wrong: str = "nothing") -> None:
        super().__init__()
        self.embedding = embedding
        self.layer = nn.Linear(embedding.size, size)
        self.wrong = wrong
        if wrong != "output_size":
            self.output_size = size
        self.summary_size = size

    def forward(self, source: Padded) -> Encoded:
        memory = self.layer(self.embedding(source.values)) * source.mask.unsqueeze(-1)
        if self.wrong == "type":
            return memory  # type: ignore[no-any-return]
        if self.wrong == "memory":
            return Encoded(torch.cat([memory, memory], 2), source.mask, memory.sum(1))
        return Encoded(memory, source.mask, memory if self.wrong == "summary" else memory.sum(1))


def recipe(**encoder: Any) -> dict[str, Any]:
    return {**RECIPE, "model": {"encoder": {"kind": "MeanEncoder", **encoder}}}


def test_a_class_is_named_by_its_bare_name_and_needs_no_equations(tmp_path: Path) -> None:
    run = sixjars.train(recipe(), out=tmp_path / "run", components=[MeanEncoder])
    assert sixjars.load(run.folder, components=[MeanEncoder]).predict(["ghar"])[0].error is None
    assert sixjars.explain(run.folder, components=[MeanEncoder]).count > 0


def test_an_unknown_kind_lists_what_was_handed_over(tmp_path: Path) -> None:
    wanted = {**RECIPE, "model": {"encoder": {"kind": "NB"}}}
    told = r"model\.encoder: kind 'NB' is unknown\. .* Handed over: MeanEncoder\."
    with pytest.raises(RecipeError, match=told):
        sixjars.train(wanted, out=tmp_path / "run", components=[MeanEncoder])
    wanted = {**RECIPE, "model": {"encoder": {"kind": "lab.NB"}}}
    with pytest.raises(RecipeError, match=r"say --allow lab .* Handed over: MeanEncoder\.$"):
        sixjars.train(wanted, out=tmp_path / "run", components=[MeanEncoder])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            "output_size",
            "encoder MeanEncoder does not say its output_size: set self.output_size in its "
            "__init__, a ",
        ),
        ("type", "encoder MeanEncoder must return an Encoded, but returns Tensor."),
        (
            "memory",
            "encoder MeanEncoder returns a memory of (1, 2, 16), but it should be (B, S, 8) by "
            "its output_size.",
        ),
        (
            "summary",
            "encoder MeanEncoder returns a summary of (1, 2, 8), but it should be (B, 8) by its "
            "summary_size.",
        ),
    ],
)
def test_wrong_shapes_are_a_sentence(wrong: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ShapeError) as caught:
        sixjars.train(recipe(wrong=wrong), out=tmp_path / "run", components=[MeanEncoder])
    assert str(caught.value).startswith(message)
    assert not (tmp_path / "run").exists()


def same_length(outcomes: list[Outcome]) -> float:
    return sum(len(one.candidates[0]) == len(one.references[0]) for one in outcomes) / len(outcomes)


def test_a_metric_is_a_function(tmp_path: Path) -> None:
    wanted = {**RECIPE, "evaluation": {"search": {"max_length": 5}, "metrics": ["same_length"]}}
    wanted["learning"] = {"steps": 2, "metric": "same_length"}
    run = sixjars.train(wanted, out=tmp_path / "run", components=[same_length])
    assert [(one.name, one.better) for one in run.scores] == [("same_length", "higher")]
    found = sixjars.evaluate(run.folder, metrics=["same_length"], components=[same_length])
    assert found.scores[0].value == run.scores[0].value
    told = r"metric 'same_lengths' is unknown\. .* Handed over: same_length\."
    with pytest.raises(RecipeError, match=told):
        sixjars.evaluate(run.folder, metrics=["same_lengths"], components=[same_length])


def test_a_metric_that_is_no_number() -> None:
    def words(outcomes: Any) -> Any:
        return "many"

    told = r"^metric words must return a number, but returned 'many'\.$"
    with pytest.raises(DataError, match=told):
        sixjars.score([Outcome(("a",), ("a",))], [words])
