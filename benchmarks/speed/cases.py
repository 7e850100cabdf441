"""What is measured: a size of the model, a batch, a precision, and one of three things to do with them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, Protocol, final

import numpy as np
from numpy.typing import NDArray

Measurement = Literal["training", "greedy", "beam 5"]
Device = Literal["cpu", "cuda"]
MEASUREMENTS: tuple[Measurement, ...] = ("training", "greedy", "beam 5")
BRIDGES = ("additive", "general", "dot", "every_step", "initial")
PRECISIONS = {"cpu": ("float32", "int8"), "cuda": ("tf32", "bf16")}
"""What is measured when nothing else is asked for; nobody trains in int8."""
LENGTHS, BATCHES = (10, 30, 100), (1, 32, 256)
FIRST_WORD = 4
"""Smaller ids are special tokens, of every contestant."""


@final
@dataclass(frozen=True)
class Size:
    """Hidden size of each direction of the encoder, of the decoder and of the attention; and the vocabularies."""

    hidden: int
    vocabulary: int

    @property
    def embedding(self) -> int:
        """Half the hidden size."""
        return self.hidden // 2


SIZES = {
    "cpu": {"small": Size(256, 4000), "base": Size(512, 8000), "large": Size(1024, 32000)},
    "cuda": {"small": Size(256, 4000), "base": Size(512, 10000), "large": Size(1024, 32000)},
}
CHOSEN = {"cpu": [("small", 64, 25), ("base", 64, 25)], "cuda": [("base", 256, 30)]}
"""Size, batch and length of what is measured when nothing else is asked for."""


@final
@dataclass(frozen=True)
class Case:
    """One measurement."""

    measurement: Measurement
    device: Device
    precision: str
    size: str
    batch: int
    length: int
    """Tokens of each source and each target, the end of the sentence among them."""
    tokens: int
    """What decoding outputs for each sentence: so many, no fewer."""
    bridge: str = "additive"
    batches: int = 1
    """How many batches a turn has: a file is predicted as so many. Times are those of one."""

    @property
    def sizes(self) -> Size:
        """Of the model."""
        return SIZES[self.device][self.size]

    @property
    def beam(self) -> int:
        """Rows of each sentence in search."""
        return 5 if self.measurement == "beam 5" else 1

    @property
    def outputs(self) -> int:
        """Target tokens of one turn."""
        return self.batch * (self.length if self.measurement == "training" else self.tokens)

    def ids(self) -> NDArray[np.int64]:
        """Random words without the end of the sentence, (batch, length - 1): the same for every contestant."""
        shape = (self.batch, self.length - 1)
        return np.random.default_rng(0).integers(FIRST_WORD, self.sizes.vocabulary, shape)


class Contestant(Protocol):
    """What is measured in a process of its own."""

    def prepare(self, case: Case) -> Callable[[], object] | None:
        """Do one turn of a case whenever it is called; None where the contestant has no such thing."""


def cases(
    device: Device,
    shapes: list[tuple[str, int, int]],
    precisions: list[str],
    bridges: list[str],
    **search: int,
) -> Iterator[Case]:
    """Every measurement of every shape; bridges other than additive attention only in training, int8 only in search.

    `search` has the tokens that decoding outputs, and how many batches are decoded in a turn.
    """
    for (size, batch, length), measurement, bridge in product(shapes, MEASUREMENTS, bridges):
        for precision in precisions:
            case = Case(
                measurement, device, precision, size, batch, length, search["tokens"], bridge
            )
            if measurement == "training" and precision != "int8":
                yield case
            elif measurement != "training" and bridge == "additive":
                yield replace(case, batches=search["batches"])
