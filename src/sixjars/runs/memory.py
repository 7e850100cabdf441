"""Whether a training fits into memory, asked before a network is built, and what to lower where it does not."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import torch
from torch import nn

from sixjars.errors import LearningError, SixJarsError, memory_is_short
from sixjars.flow.memory import free_memory, in_words
from sixjars.learning.parameters import belongs_to
from sixjars.model.build import Unfilled, build, nested
from sixjars.recipe.sections import LearningSettings
from sixjars.runs.data import Blueprint, Splits

NUMBER: Final = 4
"""Bytes of a weight, of its gradient, and of each number that an optimizer remembers of it."""
MOMENTS: Final[Mapping[str, int]] = {"adam": 2, "adamw": 2, "adadelta": 2, "sgd": 0}
"""How many numbers those are; of SGD one more with momentum."""
NAMED: Final = 3
"""The largest weights that a message lists."""
NEVER_TOO_MUCH: Final = 2**28
"""Bytes that are free on every machine that could load torch: for less nobody asks."""


def check_fits(blueprint: Blueprint, splits: Splits, device: torch.device) -> None:
    """Refuse a recipe whose weights, gradients and optimizer do not fit into the free memory; nothing is allocated.

    What a batch takes besides is not known yet: see `enough_memory`.
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
    needed = sum(sizes.values())
    free = _free_on(device) if needed > NEVER_TOO_MUCH else None
    if free is None or needed <= free:
        return
    largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:NAMED]
    shapes = {name: tuple(weight.shape) for name, weight in network.named_parameters()}
    listed = ", ".join(f"{name} {shapes[name]} takes {in_words(sizes[name])}" for name in largest)
    keys = dict.fromkeys(key_of(name, blueprint) for name in largest)
    where = "are free" if device.type == "cpu" else f"are free on {device.type}"
    raise LearningError(
        f"training this recipe needs about {in_words(needed)} of memory (weights, gradients and the optimizer's "
        f"numbers), but {in_words(free)} {where}. The largest: {listed}. Lower {', '.join(keys)}."
    )


def _bytes(name: str, weight: nn.Parameter, learning: LearningSettings) -> int:
    """What one weight takes while it is trained; a frozen one has no gradient and no place in the optimizer."""
    frozen = not weight.requires_grad or any(belongs_to(name, part) for part in learning.freeze)
    numbers = 1 if frozen else 2 + MOMENTS[learning.optimizer] + (learning.momentum > 0)
    return weight.numel() * NUMBER * numbers


def _free_on(device: torch.device) -> int | None:
    return free_memory() if device.type != "cuda" else int(torch.cuda.mem_get_info(device)[0])


def key_of(name: str, blueprint: Blueprint) -> str:
    """The key of a recipe that a weight's size comes from: `model.encoder.embedding.size`."""
    own = "model." + name.replace("decoder.bridge.", "bridge.", 1)
    sections = {f"model.{role}": section for role, section in blueprint.plan.settings.items()}
    sections |= {inner.where: inner.section for inner in nested(blueprint.plan)}
    where = max((place for place in sections if own.startswith(f"{place}.")), key=len)
    return f"{where}.size" if "size" in sections[where] else where


@contextmanager
def enough_memory() -> Iterator[None]:
    """What an allocator says of a batch that does not fit becomes a sentence."""
    try:
        yield
    except SixJarsError:
        raise
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        raise LearningError(
            "there is not enough memory for this training; lower learning.batch_examples or learning.batch_tokens, "
            "data.*.max_length, or the sizes of model."
        ) from error
