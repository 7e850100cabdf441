"""The network of a recipe with initial weights, and the memory that training it needs."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import torch
from torch import nn

from sixjars.data.dataset import NOTHING as NO_INPUT
from sixjars.data.dataset import Dataset, Fields
from sixjars.decoding.memory import free_on
from sixjars.flow.backend import Backend
from sixjars.flow.values import Batch
from sixjars.learning.parameters import belongs_to, freeze_named
from sixjars.model.build import Network, Unfilled, build, freeze_unused, nested
from sixjars.model.reference import REFERENCE
from sixjars.recipe.sections import LearningSettings
from sixjars.runs.data.pretrained_vectors import token_vectors
from sixjars.runs.data.splits import Splits
from sixjars.runs.recipes import Blueprint
from sixjars_runtime.errors import LearningError, SixJarsError, memory_is_short
from sixjars_runtime.memory import in_words

COUNTED_AT_ONCE = 256
"""Examples in memory while an encoder counts."""


def add_vectors(blueprint: Blueprint, fields: Fields, facts: dict[str, dict[str, Any]]) -> None:
    """Put pretrained word vectors into the facts of the fields that have some."""
    for inner in nested(blueprint.plan):
        field = fields.all.get(inner.field)
        source = getattr(field.settings, "vectors", None) if field is not None else None
        if source is not None and "vectors" in getattr(inner.kind, "given", ()):
            ids, values = token_vectors(
                blueprint.recipe, field, size=inner.section["size"], where=inner.where
            )
            facts[inner.field]["vectors"] = torch.tensor(ids), torch.from_numpy(values)


def fresh_network(blueprint: Blueprint, splits: Splits, backend: Backend = REFERENCE) -> Network:
    """A network with initial weights; those that no output depends on are frozen."""
    torch.manual_seed(blueprint.recipe.learning.seed)
    facts = splits.fields.facts()
    add_vectors(blueprint, splits.fields, facts)
    network = build(blueprint.plan, facts, backend=backend)
    network.encoder.count(counted_batches(splits.train))
    freeze_unused(network, blank_batch(splits.fields))
    if blueprint.recipe.learning.freeze:
        freeze_named(network, blueprint.recipe.learning.freeze)
    return network


def counted_batches(train: Dataset) -> Iterator[Batch]:
    """The training set in batches, for an encoder that counts something in them."""
    batches = train.batches(batch_examples=COUNTED_AT_ONCE, training=True)
    for (rows,) in batches.plan(epoch=0, accumulate=1):
        yield batches.collate(rows)


def blank_batch(fields: Fields) -> Batch:
    """A batch of one blank example, such as the network could be given."""
    inputs = {name: field.blank() for name, field in fields.inputs.items()}
    target = fields.output.blank()
    if fields.link is not None:
        name = next(iter(inputs))
        inputs[name] = replace(inputs[name], copy_ids=inputs[name].values)
    if not inputs:
        inputs = {NO_INPUT: replace(target, values=target.values[:, :0], mask=target.mask[:, :0])}
    return Batch(inputs, target, torch.zeros(1, dtype=torch.long))


NUMBER: Final = 4
"""Bytes of a weight, of its gradient, and of each number that an optimizer remembers of it."""
MOMENTS: Final[Mapping[str, int]] = {"adam": 2, "adamw": 2, "adadelta": 2, "sgd": 0}
"""How many numbers an optimizer remembers of each weight; SGD with momentum one more."""
NAMED: Final = 3
"""The largest weights that a message lists."""
NEVER_TOO_MUCH: Final = 2**28
"""Bytes that are free on every machine that could load torch, so for less nothing is measured."""


def check_fits(
    blueprint: Blueprint, splits: Splits, device: torch.device, *, shares: int = 1
) -> None:
    """Refuse a recipe whose weights, gradients and optimizer do not fit into the free memory.

    Nothing is allocated. `shares` processes divide the weights. What a batch takes besides is not
    known yet: see `enough_memory`.
    """
    try:
        with torch.device("meta"), Unfilled():
            network = build(blueprint.plan, splits.fields.facts(), fresh=False)
    except SixJarsError:
        raise
    except (RuntimeError, ValueError, TypeError, AttributeError):
        return  # a component that needs real numbers; building it will say more
    learning = blueprint.recipe.learning
    sizes = {name: _bytes(name, weight, learning) for name, weight in network.named_parameters()}
    needed = sum(sizes.values()) // shares
    free = free_on(device) if needed > NEVER_TOO_MUCH else None
    if free is None or needed <= free:
        return
    largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:NAMED]
    shapes = {name: tuple(weight.shape) for name, weight in network.named_parameters()}
    listed = ", ".join(f"{name} {shapes[name]} takes {in_words(sizes[name])}" for name in largest)
    keys = dict.fromkeys(key_of(name, blueprint) for name in largest)
    where = "are free" if device.type == "cpu" else f"are free on {device.type}"
    each = f" in each of {shares} processes" if shares > 1 else ""
    raise LearningError(
        f"training this recipe needs about {in_words(needed)} of memory{each} (weights, gradients "
        f"and the optimizer's numbers), but {in_words(free)} {where}. The largest: {listed}. "
        f"Lower {', '.join(keys)}."
    )


def _bytes(name: str, weight: nn.Parameter, learning: LearningSettings) -> int:
    """Bytes of one weight in training; a frozen one has no gradient and no optimizer state."""
    frozen = not weight.requires_grad or any(belongs_to(name, part) for part in learning.freeze)
    numbers = 1 if frozen else 2 + MOMENTS[learning.optimizer] + (learning.momentum > 0)
    return weight.numel() * NUMBER * numbers


def key_of(name: str, blueprint: Blueprint) -> str:
    """The key of a recipe that a weight's size comes from: `model.encoder.embedding.size`."""
    key = "model." + name.replace("decoder.bridge.", "bridge.", 1)
    sections = {f"model.{role}": section for role, section in blueprint.plan.settings.items()}
    sections |= {inner.where: inner.section for inner in nested(blueprint.plan)}
    where = max((place for place in sections if key.startswith(f"{place}.")), key=len)
    return f"{where}.size" if "size" in sections[where] else where


@contextmanager
def enough_memory() -> Iterator[None]:
    """Make a sentence of what an allocator says of a batch that does not fit."""
    try:
        yield
    except SixJarsError:
        raise
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        raise LearningError(
            "there is not enough memory for this training; lower learning.batch_examples or "
            "learning.batch_tokens, data.*.max_length, or the sizes of model."
        ) from error
