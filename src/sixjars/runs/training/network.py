"""The network of a recipe with initial weights, before it is trained."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from sixjars.data.dataset import NOTHING as NO_INPUT
from sixjars.data.dataset import Dataset, Fields
from sixjars.flow.values import Batch
from sixjars.learning.parameters import freeze_named
from sixjars.model.build import Network, build, freeze_unused, nested
from sixjars.runs.data.blueprint import Blueprint
from sixjars.runs.data.pretrained_vectors import token_vectors
from sixjars.runs.data.splits import Splits

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


def fresh_network(blueprint: Blueprint, splits: Splits) -> Network:
    """A network with initial weights; those that no output depends on are frozen."""
    torch.manual_seed(blueprint.recipe.learning.seed)
    facts = splits.fields.facts()
    add_vectors(blueprint, splits.fields, facts)
    network = build(blueprint.plan, facts)
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
