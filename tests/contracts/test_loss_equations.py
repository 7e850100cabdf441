"""The lines that `explain` prints of the loss, against the loss of training."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import sixjars
from sixjars.flow.contracts import Decoder
from sixjars.flow.values import Batch, Padded
from sixjars.loss import Objective, SealedBatch, class_weights
from sixjars.model.bridges.attention import Attention
from sixjars.model.build import Network
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.runs.data.splits import splits_of
from sixjars.runs.explanation.explain import explanation_of
from sixjars.runs.folder.run_folder import RunFolder
from sixjars.runs.recipes import Blueprint, read_recipe

from .examples import TARGETS, texts, words

pytestmark = pytest.mark.usefixtures("in_64_bits")
NUMBER = r"([\d.]+)"
TOKENS = "L = -Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens"
ONE = "L = -log P(y = ℓ | x), divided by the number of true labels"
SEVERAL = "L = -Σ_{y ∈ ℓ} log P(y | x) - Σ_{y ∉ ℓ} log(1 - P(y | x)), divided by the number of true labels"


def printed_loss(
    lines: list[str], chances: Any, weights: Any, truth: list[int], true_weights: Any
) -> float:
    """The sum that the lines describe, of one row: chances (T, V), weights (T, S); not divided."""
    first, *more = lines
    if first == SEVERAL:
        of_each = [np.log(p if label in truth else 1 - p) for label, p in enumerate(chances[0])]
        total = -sum(of_each)
    else:
        assert first in (TOKENS, ONE)
        total = -sum(np.log(chances[t, label]) for t, label in enumerate(truth))
    for line in more:
        if smoothed := re.fullmatch(
            rf"label smoothing: the truth is {NUMBER} at ℓ(_t)?, {NUMBER} over all \w+", line
        ):
            right, spread = float(smoothed[1]), float(smoothed[3])
            total *= right
            total -= sum(spread * np.log(chances[t]).mean() for t in range(len(truth)))
        elif guided := re.fullmatch(
            rf"- {NUMBER} Σ_t Σ_j α\*_jt log α_jt: guided attention, where .*", line
        ):
            total -= float(guided[1]) * (true_weights * np.log(weights)).sum()
        elif covered := re.fullmatch(
            rf"\+ {NUMBER} Σ_t Σ_j min\(α_jt, Σ_{{τ<t}} α_jτ\): coverage", line
        ):
            for t in range(len(truth)):
                total += float(covered[1]) * np.minimum(weights[t], weights[:t].sum(0)).sum()
        else:
            raise AssertionError(line)
    return float(total)


COPIED = [[5, 12, 5, 13], [6, 0, 0, 0], [4, 13, 14, 0]]
"""What stands at each position of the source: 12 and more are words outside the vocabulary."""


def made(kind: str) -> Decoder:
    """A decoder with attention over a memory of four features."""
    bridge = Attention(source_size=4, state_size=4)
    if kind == "pointer":
        return PointerDecoder(bridge=bridge, source_size=4, size=4, visits="some")
    if kind.startswith("label"):
        return LabelDecoder(bridge=bridge, classes=6, size=4, multi_label=kind == "labels")
    return SequenceDecoder(bridge=bridge, embedding=words(), size=4, copying=kind == "copies")


def loss_of(kind: str, targets: list[list[int]], overrides: list[str]) -> None:
    network = Network(TextEncoder(embedding=words(), size=4), made(kind)).eval()
    recipe = read_recipe("translation/sample_guided", overrides)
    lines = list(explanation_of(recipe, network, title="", data=[]).sections[5].lines)
    assert len(lines) == 1 + len([one for one in overrides if not one.endswith("=0")])
    source, target = replace(texts(), copy_ids=torch.tensor(COPIED)), Padded.of(targets)
    true_weights = torch.zeros(3, target.mask.shape[1], 4)
    true_weights[:, 0, 0] = 1.0
    batch = Batch(
        {"source": source}, target, torch.arange(3), true_weights if recipe.loss.guide else None
    )
    found = Objective(network, recipe.loss)(SealedBatch(batch))[0]
    output = network(batch.inputs, target)
    chances = output.logits.sigmoid() if kind == "labels" else output.logits.softmax(-1)
    wanted = 0.0
    for row in range(3):
        length, real = len(targets[row]), int(source.mask[row].sum())
        wanted += printed_loss(
            lines,
            chances[row].detach().numpy(),
            output.weights[row, :length, :real].detach().numpy(),
            targets[row],
            true_weights[row, :length, :real].numpy(),
        )
    # Of guided attention the loss has log(α + 1e-9), which is not log α to the last digit.
    assert float(found.detach()) == pytest.approx(wanted, rel=1e-7 if recipe.loss.guide else 1e-12)


@pytest.mark.parametrize(
    "overrides",
    [
        ["loss.guide=0"],
        ["loss.guide=0.5"],
        ["loss.guide=0", "loss.smoothing=0.1"],
        ["loss.guide=0.25", "loss.smoothing=0.2", "loss.coverage=0.5"],
    ],
)
def test_of_tokens(overrides: list[str]) -> None:
    loss_of("sequence", list(TARGETS), overrides)


@pytest.mark.parametrize(
    ("kind", "targets"),
    [
        ("copies", [[8, 13, 5, 2], [4, 2], [14, 2]]),
        ("pointer", [[6, 4, 2], [4, 2], [4, 6, 2]]),
        ("label", [[1], [5], [0]]),
        ("labels", [[1, 3], [5], [0, 2, 4]]),
    ],
)
def test_of_other_decoders(kind: str, targets: list[list[int]]) -> None:
    loss_of(kind, targets, ["loss.guide=0"])


@pytest.mark.parametrize("weights", ["balanced", {"a": 4, "c": 0.5}])
def test_of_weighted_labels(weights: Any) -> None:
    """Each label's cross entropy times the weight that the line gives it."""
    counts, truth = {"a": 6, "b": 3, "c": 1}, [[1], [2], [0]]
    recipe = read_recipe("document_classification/sample_initial")
    loss = recipe.loss.model_copy(update={"class_weights": weights})
    decoder = LabelDecoder(bridge=Attention(source_size=4, state_size=4), classes=3, size=4)
    network = Network(TextEncoder(embedding=words(), size=4), decoder).eval()
    made = recipe.model_copy(update={"loss": loss})
    first, line = explanation_of(made, network, title="", data=[]).sections[5].lines
    assert first == ONE
    if weights == "balanced":
        assert (
            line
            == "class weights: each times N / (C n_ℓ), with N examples, C labels and n_ℓ examples of label ℓ"
        )
        expected = {label: 10 / (3 * count) for label, count in counts.items()}
    else:
        listed = re.fullmatch(r"class weights: each times (.*), 1 for others", line)
        assert listed is not None
        expected = dict.fromkeys(counts, 1.0)
        expected |= {
            label: float(number) for number, label in re.findall(r"([\d.]+) for (\w+)", listed[1])
        }
    batch = Batch({"source": texts()}, Padded.of(truth), torch.arange(3))
    objective = Objective(network, loss, weights=class_weights(loss, counts))
    total, plain = objective(SealedBatch(batch)).tolist()
    chances = network(batch.inputs, batch.target).logits.softmax(-1).detach().numpy()
    costs = [-np.log(chances[row, 0, label]) for row, [label] in enumerate(truth)]
    by_number = list(expected.values())
    assert total == pytest.approx(
        sum(by_number[label] * cost for [label], cost in zip(truth, costs, strict=True))
    )
    assert plain == pytest.approx(sum(costs))


@pytest.mark.parametrize(
    ("labels", "multi_label"), [(["a", "b", "a"], False), ([["a"], ["b", "c"], ["a"]], True)]
)
def test_it_is_divided_by_the_number_of_true_labels(
    labels: list[Any], multi_label: bool, tmp_path: Path
) -> None:
    """Of one update at a rate of nearly 0: the weights are those that the loss was of."""
    torch.set_default_dtype(torch.float32)  # training is always in 32 bits
    rows = [{"text": "one two", "label": label} for label in labels]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    data = {
        "train": "rows.jsonl",
        "valid": "rows.jsonl",
        "folder": str(tmp_path),
        "source": {"segments": "none"},
    }
    recipe = {
        "task": "document_classification",
        "data": {**data, "label": {"multi_label": multi_label}},
        "model": {
            "encoder": {"kind": "text", "size": 4},
            "bridge": {"kind": "initial"},
            "decoder": {"size": 4},
        },
        "learning": {"steps": 1, "rate": 1e-30},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "run", device="cpu")
    [line] = sixjars.explain(tmp_path / "run").sections[5].lines
    assert line == (SEVERAL if multi_label else ONE)
    blueprint = Blueprint.of(read_recipe(str(tmp_path / "recipe.yaml")))
    splits = splits_of(blueprint)
    batch = splits.train.batches().collate(torch.arange(3))
    output = (
        RunFolder(tmp_path / "run", blueprint.recipe)
        .network(blueprint, splits.fields)
        .eval()(batch.inputs, batch.target)
    )
    chances = (
        (output.logits.sigmoid() if multi_label else output.logits.softmax(-1)).detach().numpy()
    )
    truths = [batch.target.values[row][batch.target.mask[row]].tolist() for row in range(3)]
    total = sum(printed_loss([line], chances[row], None, truths[row], None) for row in range(3))
    logged = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[0])["train_loss"]
    # sums of a few numbers of 7 digits
    assert logged == pytest.approx(total / sum(map(len, labels)), rel=1e-5)
