"""Batches of examples of like length, in an order that a seed and an epoch decide.

Dims: B batch, S source positions, T target positions.
"""

from collections.abc import Mapping
from typing import Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.columns import Column
from sixjars.data.copying import Copying
from sixjars.flow import Batch

DEFAULT_EXAMPLES = 64
Links = tuple[tuple[int, int], ...]
"""True pairs (source position, target position) of token positions."""


class Alignments(Protocol):
    """Whoever knows the true links of a row."""

    def __call__(self, row: int, /) -> Links:
        """Between token positions."""
        ...


@final
class Batches:
    """All batches of a part of the data.

    Rows are sorted by length, those of equal lengths by chance; cut into batches; and the batches shuffled. The same
    seed and epoch give the same plan on any machine, so a run goes on in the middle of an epoch by skipping, and every
    epoch has the same number of batches.
    """

    def __init__(
        self,
        inputs: Mapping[str, Column],
        target: Column,
        *,
        batch_tokens: int | None = None,
        batch_examples: int | None = None,
        seed: int = 0,
        alignments: Alignments | None = None,
        copying: Copying | None = None,
    ) -> None:
        self.inputs = dict(inputs)
        self.target = target
        self.batch_tokens = batch_tokens
        self.batch_examples = batch_examples or (None if batch_tokens else DEFAULT_EXAMPLES)
        self.seed = seed
        self.alignments = alignments
        self.copying = copying
        if copying is not None:
            copying.check(self.inputs[copying.source])
        self.target_lengths = target.lengths
        self.input_lengths = sum((column.lengths for column in inputs.values()), np.zeros(len(self), dtype=np.int64))

    def __len__(self) -> int:
        return len(self.target_lengths)

    def plan(self, *, epoch: int, accumulate: int = 1) -> list[list[Tensor]]:
        """The row numbers of every batch of an epoch, in groups that make one update each."""
        noise = np.random.default_rng([self.seed, epoch])
        order = np.lexsort((noise.random(len(self)), self.target_lengths, self.input_lengths))
        batches = self._cut(order[self.target_lengths[order] > 0])  # there is nothing to learn from an unlisted label
        shuffled = [torch.from_numpy(batches[number]) for number in noise.permutation(len(batches))]
        return [shuffled[at : at + accumulate] for at in range(0, len(shuffled), accumulate)]

    def in_order(self, examples: int) -> list[Tensor]:
        """Every row once, longest first, for scoring: like lengths together, no chance involved."""
        order = np.argsort(-(self.input_lengths + self.target_lengths), kind="stable")
        return [torch.from_numpy(order[at : at + examples]) for at in range(0, len(order), examples)]

    def updates_per_epoch(self, accumulate: int) -> int:
        """The same for every epoch: batches are cut by lengths, and chance only orders rows of equal lengths."""
        return len(self.plan(epoch=0, accumulate=accumulate))

    def _cut(self, order: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Consecutive rows, as many as the limit allows with their padding; at least one."""
        if self.batch_tokens is None:
            assert self.batch_examples is not None
            return [order[at : at + self.batch_examples] for at in range(0, len(order), self.batch_examples)]
        batches, begin, source, target = [], 0, 0, 0
        for at, row in enumerate(order):
            wide_source = max(source, int(self.input_lengths[row]))
            wide_target = max(target, int(self.target_lengths[row]))
            if at > begin and (at - begin + 1) * (wide_source + wide_target) > self.batch_tokens:
                batches.append(order[begin:at])
                begin, wide_source, wide_target = (
                    at,
                    int(self.input_lengths[row]),
                    int(self.target_lengths[row]),
                )
            source, target = wide_source, wide_target
        return [*batches, order[begin:]] if len(order) else []

    def target_tokens(self, rows: Tensor) -> int:
        """How much the decoder says for these rows: tokens with `<stop>`, or labels of the list."""
        return int(self.target_lengths[rows.numpy()].sum())

    def share(self, rows: Tensor, *, rank: int, world: int) -> Tensor:
        """The rows of a batch that one of `world` processes works on; none if it has fewer than that."""
        return rows[rank::world]

    def collate(self, rows: Tensor) -> Batch:
        """These rows as padded tensors."""
        numbers = rows.numpy()
        inputs = {name: column.padded(numbers) for name, column in self.inputs.items()}
        target = self.target.padded(numbers)
        if self.copying is not None:
            name = self.copying.source
            inputs[name], target = self.copying.of(numbers, inputs[name], target)
        truth = None
        if self.alignments is not None:
            truth = self._truth(numbers, inputs["source"].mask.shape[1], target.mask.shape[1])
        return Batch(inputs, target, rows, truth)

    def _truth(self, rows: NDArray[np.int64], source: int, target: int) -> Tensor:
        """True attention (B, T, S): each target token's mass spread evenly over its source tokens."""
        assert self.alignments is not None
        truth_BTS = torch.zeros(len(rows), target, source)
        for at, row in enumerate(rows):
            for source_position, target_position in self.alignments(int(row)):
                truth_BTS[at, target_position, source_position] = 1.0
        return truth_BTS / truth_BTS.sum(-1, keepdim=True).clamp(min=1.0)
