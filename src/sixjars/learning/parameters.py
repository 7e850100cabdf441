"""Parts of a network by name: which ones are frozen, and how fast the others learn."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from torch import nn

from sixjars_runtime.errors import RecipeError, unknown

SHORT = {"bridge": "decoder.bridge"}
"""Sections of a recipe that are elsewhere in the network."""
DEEPEST = 2
"""Levels of names that a message lists."""


def belongs_to(name: str, part: str) -> bool:
    """Whether a parameter belongs to a part of the network.

    >>> belongs_to("encoder.rnn.weight", "encoder"), belongs_to("encoder.rnn.weight", "enc")
    (True, False)
    """
    whole = SHORT.get(part.split(".")[0], part.split(".")[0])
    full = ".".join([whole, *part.split(".")[1:]])
    return name == full or name.startswith(f"{full}.")


def freeze_named(network: nn.Module, parts: Sequence[str]) -> None:
    """Freeze the parameters of these parts: no gradient, no place in the optimizer."""
    _check(network, parts, "learning.freeze")
    for name, weight in network.named_parameters():
        if any(belongs_to(name, part) for part in parts):
            weight.requires_grad_(False)  # noqa: FBT003
    if parts and not any(weight.requires_grad for weight in network.parameters()):
        raise RecipeError(
            [f"learning.freeze: {', '.join(parts)} leaves nothing to train; name fewer parts."]
        )


def parameter_groups(network: nn.Module, rates: Mapping[str, float]) -> list[Any]:
    """The parameters that are not frozen, in one group for each factor of the rate."""
    trained = [pair for pair in network.named_parameters() if pair[1].requires_grad]
    _check(network, list(rates), "learning.rates")
    for part in rates:
        if not any(belongs_to(name, part) for name, _ in trained):
            raise RecipeError(
                [f"learning.rates: {part} is frozen, so it has no rate; remove one of the two."]
            )
    groups: dict[float, list[nn.Parameter]] = {}
    for name, weight in trained:
        fits = [part for part in rates if belongs_to(name, part)]
        groups.setdefault(rates[max(fits, key=len)] if fits else 1.0, []).append(weight)
    return [{"params": weights, "factor": factor} for factor, weights in groups.items()]


def _check(network: nn.Module, parts: Sequence[str], where: str) -> None:
    names = [name for name, _ in network.named_parameters()]
    faults = [
        unknown(f"{where}: part", part, list(_known(names)))
        for part in parts
        if not any(belongs_to(name, part) for name in names)
    ]
    if faults:
        raise RecipeError(faults)


def _known(names: Sequence[str]) -> Iterator[str]:
    """The upper levels of all names, and the short ones."""
    depths = range(1, DEEPEST + 1)
    levels = {".".join(name.split(".")[:depth]) for name in names for depth in depths}
    longer = {short: full for short, full in SHORT.items() if full in levels}
    yield from sorted((levels - set(longer.values())) | set(longer))
