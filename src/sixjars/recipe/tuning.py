"""Settings of training that differ from one part of the network to another."""

from typing import Annotated

from pydantic import BeforeValidator

from sixjars.flow.limits import AboveZero
from sixjars.recipe.schema import Settings

Names = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given)]


class TuningSettings(Settings):
    """What is trained, and how fast."""

    freeze: Names = ()
    """Parts that training leaves as they are, by name: `encoder`, `bridge`, `decoder.embedding`, or any beginning of a
    name that `explain` prints."""
    rates: dict[str, AboveZero] = {}
    """Factors of the learning rate by part, `{encoder: 0.1}`; the longest name that fits counts, other parts have 1."""
