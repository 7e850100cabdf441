"""What data hands to a network.

Dims: B batch, S source positions, T target positions, F frames, N numbers of a frame or point (of a rectangle, its
      rows), L the longest of a rectangle, P parts of a row.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.flow.rows import Rows, Tensors


@final
@dataclass(frozen=True)
class Parts(Tensors):
    """How the positions of texts fall into parts: the sentences of documents, the turns of conversations.

    The parts of all rows of a batch are packed into a few rectangles, parts of like length together, so that a network
    reads short and long ones at once and little padding. There is always at least one rectangle.
    """

    packs: tuple[Tensor, ...]
    """Each (N, L): where every position of N parts stands in the batch laid flat, row · S + position; -1 where a part
    is shorter than L."""
    home: Tensor
    """Which of the packed parts, counted through all rectangles, is the p-th of each row, (B, P); -1 where none is."""
    back: Tensor
    """Where each position stands among all rectangles laid flat, one after the other, (B, S); 0 where padded."""
    of: Tensor
    """Which part of its row each position belongs to, (B, S); 0 where padded."""


@final
@dataclass(frozen=True)
class Padded(Rows):
    """Sequences of different lengths in one rectangle.

    >>> Padded.of([[5, 6, 7], [8]]).values
    tensor([[5, 6, 7],
            [8, 0, 0]])
    """

    values: Tensor
    """Token ids (B, S), or the numbers of each frame of a picture or film (B, F, N)."""
    mask: Tensor
    """True where a position is real, (B, S). Real positions come first."""
    parts: Parts | None = None
    """The parts of texts that have some. They are packed across rows, so rows of such a value cannot be picked."""
    said: Tensor | None = None
    """What a decoder that copies would write for each position, (B, S): a token of its vocabulary; or, for a word that
    is not in it, the size of the vocabulary plus the first position of that word."""

    @classmethod
    def of(cls, sequences: list[list[int]]) -> "Padded":
        """From plain lists of ids."""
        longest = max((len(sequence) for sequence in sequences), default=0)
        values = torch.tensor([[*sequence, *[0] * (longest - len(sequence))] for sequence in sequences])
        lengths = torch.tensor([len(sequence) for sequence in sequences])
        return cls(values.reshape(len(sequences), longest).long(), torch.arange(longest) < lengths[:, None])


@final
@dataclass(frozen=True)
class Batch(Rows):
    """What data hands to a network: one padded value for each input, and the target."""

    inputs: Mapping[str, Padded]
    """By the name of the encoder's parameter: `source`, `image`, `video`, `question`, `points`."""
    target: Padded
    """Token ids that end in `<stop>`, (B, T); or labels, (B, 1) or more, masked out where they are not in the list."""
    numbers: Tensor
    """Which example of the table each row is, (B,)."""
    alignment: Tensor | None = None
    """True attention where it is known, (B, T, S); rows of zeros where it is not."""

    def tensors(self) -> dict[str, Tensor]:
        """The same in one flat dictionary, for libraries that map over plain containers only."""
        flat = {f"inputs.{name}.{key}": value for name, padded in self.inputs.items() for key, value in _flat(padded)}
        flat |= {f"target.{key}": value for key, value in _flat(self.target)}
        return flat | {"numbers": self.numbers} | ({} if self.alignment is None else {"alignment": self.alignment})

    @classmethod
    def from_tensors(cls, flat: Mapping[str, Tensor]) -> "Batch":
        """Back from `tensors`."""
        names = [key.split(".")[1] for key in flat if key.startswith("inputs.") and key.endswith(".values")]
        inputs = {name: _padded(flat, f"inputs.{name}.") for name in names}
        return cls(inputs, _padded(flat, "target."), flat["numbers"], flat.get("alignment"))


def _flat(padded: Padded) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a padded value by name."""
    yield from (("values", padded.values), ("mask", padded.mask))
    if padded.said is not None:
        yield "said", padded.said
    if padded.parts is not None:
        parts = padded.parts
        yield from (("home", parts.home), ("back", parts.back), ("of", parts.of))
        yield from ((f"pack.{number}", pack) for number, pack in enumerate(parts.packs))


def _padded(flat: Mapping[str, Tensor], before: str) -> Padded:
    """Back from `_flat`; the names begin with `before`."""
    parts = None
    if f"{before}home" in flat:
        count = sum(key.startswith(f"{before}pack.") for key in flat)
        packs = tuple(flat[f"{before}pack.{number}"] for number in range(count))
        parts = Parts(packs, flat[f"{before}home"], flat[f"{before}back"], flat[f"{before}of"])
    return Padded(flat[f"{before}values"], flat[f"{before}mask"], parts, flat.get(f"{before}said"))
