"""Frozen parts, and parts with learning rates of their own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import sixjars
from sixjars.errors import RecipeError
from sixjars.learning.checkpoints import load_tensors
from sixjars.learning.parameters import belongs_to, freeze_named, parameter_groups

Recipe = Callable[..., str]


def network() -> torch.nn.Module:
    """Names as a network has them."""
    part = torch.nn.Module()
    part.encoder = torch.nn.ModuleDict(
        {"embedding": torch.nn.Embedding(3, 2), "rnn": torch.nn.Linear(2, 2)}
    )
    part.decoder = torch.nn.ModuleDict(
        {"bridge": torch.nn.Linear(2, 2), "output": torch.nn.Linear(2, 3)}
    )
    return part


def test_a_part_is_a_whole_word_of_a_name() -> None:
    assert belongs_to("encoder.rnn.weight", "encoder")
    assert belongs_to("encoder.rnn.weight", "encoder.rnn.weight")
    assert not belongs_to("encoder.rnn.weight", "encoder.rn")
    assert belongs_to("decoder.bridge.weight", "bridge")
    assert belongs_to("decoder.bridge.score.weight", "bridge.score")
    assert belongs_to("decoder.bridge.weight", "decoder")
    assert not belongs_to("decoder.output.weight", "bridge")


def test_only_what_is_named_is_frozen() -> None:
    found = network()
    freeze_named(found, ["encoder.embedding", "bridge"])
    assert [name for name, weight in found.named_parameters() if not weight.requires_grad] == [
        "encoder.embedding.weight",
        "decoder.bridge.weight",
        "decoder.bridge.bias",
    ]
    assert [len(group["params"]) for group in parameter_groups(found, {})] == [4]


def test_the_longest_name_decides_the_rate() -> None:
    found = network()
    groups = parameter_groups(found, {"encoder": 0.1, "encoder.rnn": 0.5})
    names = {id(weight): name for name, weight in found.named_parameters()}
    assert {
        group["factor"]: [names[id(weight)] for weight in group["params"]] for group in groups
    } == {
        0.1: ["encoder.embedding.weight"],
        0.5: ["encoder.rnn.weight", "encoder.rnn.bias"],
        1.0: [
            "decoder.bridge.weight",
            "decoder.bridge.bias",
            "decoder.output.weight",
            "decoder.output.bias",
        ],
    }


def test_names_that_are_refused() -> None:
    known = "Known: bridge, decoder, decoder.output, encoder, encoder.embedding, encoder.rnn."
    with pytest.raises(RecipeError) as caught:
        freeze_named(network(), ["encodr"])
    assert str(caught.value) == (
        f"this recipe: learning.freeze: part 'encodr' is unknown. Did you mean 'encoder'? {known}"
    )
    with pytest.raises(RecipeError) as caught:
        parameter_groups(network(), {"attention": 2.0})
    assert str(caught.value) == f"this recipe: learning.rates: part 'attention' is unknown. {known}"
    with pytest.raises(RecipeError) as caught:
        freeze_named(network(), ["encoder", "decoder"])
    assert str(caught.value) == (
        "this recipe: learning.freeze: encoder, decoder leaves nothing to train; name fewer parts."
    )
    frozen = network()
    freeze_named(frozen, ["encoder"])
    with pytest.raises(RecipeError) as caught:
        parameter_groups(frozen, {"encoder": 0.1})
    assert str(caught.value) == (
        "this recipe: learning.rates: encoder is frozen, so it has no rate; remove one of the two."
    )


def changes(before: Path, after: Path) -> dict[str, float]:
    """How far each tensor of one run is from that of another."""
    old, new = load_tensors(before)[0], load_tensors(after)[0]
    return {name: float((new[name] - old[name]).abs().max()) for name in old}


def test_frozen_weights_do_not_change_by_a_byte(recipe: Recipe, run: Path, tmp_path: Path) -> None:
    name = recipe(learning={"epochs": 2, "rate": 0.1, "weight_decay": 0.1, "optimizer": "adamw"})
    parts = "learning.freeze=[encoder, decoder.embedding]"
    sixjars.train(name, [parts], out=tmp_path / "new", from_run=run)
    moved = changes(run / "model.safetensors", tmp_path / "new" / "model.safetensors")
    still = {name for name, change in moved.items() if change == 0.0}
    assert still == {name for name in moved if name.startswith(("encoder.", "decoder.embedding."))}
    held = load_tensors(tmp_path / "new" / "checkpoints" / "last.safetensors")[0]
    trained = len(moved) - len(still)
    assert len([name for name in held if name.startswith("optimizer.")]) == 3 * trained


def test_a_rate_of_a_part_is_a_factor_of_its_update(
    recipe: Recipe, run: Path, tmp_path: Path
) -> None:
    name = recipe(learning={"epochs": 1, "steps": 1, "rate": 0.1, "optimizer": "sgd", "clip": None})
    sixjars.train(name, out=tmp_path / "one", from_run=run)
    sixjars.train(name, ["learning.rates={encoder: 0.5}"], out=tmp_path / "half", from_run=run)
    whole, half = (
        changes(run / "model.safetensors", tmp_path / n / "model.safetensors")
        for n in ("one", "half")
    )
    for name, change in whole.items():
        assert half[name] == pytest.approx(
            change * (0.5 if name.startswith("encoder.") else 1.0), rel=1e-2, abs=1e-6
        )


def test_resuming_with_rates_of_parts(recipe: Recipe, tmp_path: Path, tired: Any) -> None:
    name = recipe(
        learning={"rates": {"encoder": 0.1, "bridge": 2.0}, "freeze": "decoder.embedding"}
    )
    sixjars.train(name, out=tmp_path / "whole")
    with pytest.raises(sixjars.errors.Interrupted):
        sixjars.train(name, out=tmp_path / "stopped", reporter=tired(3))
    sixjars.train(name, out=tmp_path / "stopped", resume=True)
    both = [
        (tmp_path / folder / "model.safetensors").read_bytes() for folder in ("whole", "stopped")
    ]
    assert both[0] == both[1]


def test_explain_counts_what_is_frozen(call: Any, recipe: Recipe) -> None:
    name = recipe()
    plain, frozen = sixjars.explain(name), sixjars.explain(name, ["learning.freeze=encoder"])
    assert plain.frozen == 0
    assert frozen.frozen + frozen.count == plain.count
    assert frozen.to_json()["frozen_parameters"] == frozen.frozen > 0
    said = call("explain", name, "learning.freeze=encoder", "learning.rates={bridge: 0.5}").out
    assert said.endswith(f"{frozen.count:,} trainable parameters, {frozen.frozen:,} frozen.\n")
    assert "frozen: encoder\n" in said
    assert "rates: 0.5 of it for bridge\n" in said
