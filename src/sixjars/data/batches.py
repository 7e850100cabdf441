"""Columns of fields, and batches of examples of like length, in an order given by seed and epoch.

Dims: B batch, S positions, T target positions, N numbers of a position.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.flat import Flat
from sixjars.data.packing import SegmentColumn
from sixjars.flow.values import Batch, Padded

if TYPE_CHECKING:
    from sixjars.data.alignment.guides import Guides

Rows = NDArray[np.int64]  # numbers of examples


class FieldValues(Protocol):
    """All values of a field, from which padded batches are taken."""

    lengths: NDArray[np.int64]
    """Positions of each row."""

    def padded(self, rows: Rows) -> Padded:
        """These rows as one padded value."""


@final
class IdColumn:
    """Token ids; each row ends in `stop`, if given, unless `limit` cuts it.

    >>> flat = np.array([7, 8, 9], dtype=np.int32), np.array([0, 2, 3])
    >>> column = IdColumn(flat, stop=2, limit=1)
    >>> column.padded(np.array([1, 0])).values
    tensor([[9, 2],
            [7, 0]])
    """

    def __init__(
        self, flat: Flat, *, stop: int | None = None, narrowest: int = 0, limit: int | None = None
    ) -> None:
        self.ids, self.offsets = flat
        self.stop = stop
        self.narrowest = narrowest
        whole = np.diff(self.offsets)
        self._kept = whole if limit is None else np.minimum(whole, limit)
        self._stops = (self._kept == whole) & (stop is not None)
        self.lengths = self._kept if stop is None else self._kept + self._stops

    def padded(self, rows: Rows) -> Padded:
        """Ids (B, S), at least `narrowest` wide."""
        lengths = self.lengths[rows, None]
        kept = self._kept[rows, None]
        positions = np.arange(max(int(lengths.max(initial=0)), self.narrowest))
        inside = positions < kept
        values = np.zeros(inside.shape, dtype=np.int64)
        values[inside] = self.ids[(self.offsets[rows][:, None] + positions)[inside]]
        if self.stop is not None:
            values[(positions == kept) & self._stops[rows, None]] = self.stop
        return Padded(torch.from_numpy(values), torch.from_numpy(positions < lengths))


@final
class ArrayColumn:
    """Arrays (S,) or (S, N), one for each row: points, frames of files.

    >>> arrays = [np.ones((2, 3)), np.ones((1, 3))]
    >>> ArrayColumn(arrays.__getitem__, np.array([2, 1])).padded(np.array([1, 0])).mask
    tensor([[ True, False],
            [ True,  True]])
    """

    def __init__(self, take: Callable[[int], NDArray[Any]], lengths: NDArray[np.int64]) -> None:
        self._take = take
        self.lengths = lengths

    def padded(self, rows: Rows) -> Padded:
        """Values (B, S) or (B, S, N), zeros behind each row; a copy, for arrays may be mapped."""
        records = [self._take(int(row)) for row in rows]
        lengths_B = self.lengths[rows]
        mask_BS = np.arange(int(lengths_B.max(initial=0))) < lengths_B[:, None]
        values = np.zeros((*mask_BS.shape, *records[0].shape[1:]), dtype=records[0].dtype)
        for row, record in enumerate(records):
            values[row, : len(record)] = record
        return Padded(torch.from_numpy(values), torch.from_numpy(mask_BS))


@final
class EmptyColumn:
    """The column of a task without input: rows without positions."""

    def __init__(self, count: int) -> None:
        self.lengths = np.zeros(count, dtype=np.int64)

    def padded(self, rows: Rows) -> Padded:
        """As many rows of no positions."""
        return Padded.of([[] for _ in rows])


DEFAULT_EXAMPLES = 64


class BatchLink(Protocol):
    """What ties inputs and target of a batch together, such as words that are copied."""

    def check(self, inputs: Mapping[str, FieldValues]) -> None:
        """Refuse columns that cannot be joined."""

    def join(
        self, rows: Rows, inputs: Mapping[str, Padded], target: Padded
    ) -> tuple[dict[str, Padded], Padded]:
        """Join the padded inputs and target of some rows."""


@final
@dataclass(frozen=True)
class BatchPlan(Sequence[list[Tensor]]):
    """The batches of each update of an epoch, cut when they are asked for, to save memory."""

    order: Rows
    borders: Rows
    """The places in the order where batches begin and the last ends."""
    chosen: Rows
    """The batches, as they follow each other."""
    accumulate: int
    """Batches of an update."""

    def __len__(self) -> int:
        return -(-len(self.chosen) // self.accumulate)

    def __getitem__(self, at: Any) -> Any:
        """The rows of the batches of one update; or the plan of consecutive updates."""
        updates = range(len(self))[at]
        size = self.accumulate
        if isinstance(updates, range):
            return replace(self, chosen=self.chosen[updates.start * size : updates.stop * size])
        batches = self.chosen[updates * size :][:size]
        ends = zip(self.borders[batches], self.borders[batches + 1], strict=True)
        return [torch.from_numpy(self.order[begin:end]) for begin, end in ends]


def by_length(inputs: Rows, targets: Rows, noise: NDArray[np.float64] | None = None) -> Rows:
    """Sort rows by the length of their input, then of their target, then by `noise`.

    >>> by_length(np.array([2, 1, 1, 1]), np.array([1, 2, 1, 1]), np.array([0.0, 0.0, 0.5, 0.4]))
    array([3, 2, 1, 0])
    """
    key = inputs * (int(targets.max(initial=0)) + 1) + targets
    if key.max(initial=0) < 1 << 16:
        key = key.astype(np.uint16)  # which numpy sorts in one pass
    if noise is None:
        return np.argsort(key, kind="stable")
    order = np.argsort(noise, kind="stable")
    return order[np.argsort(key[order], kind="stable")]


def token_borders(inputs: Rows, targets: Rows, limit: int) -> Rows:
    """Cut consecutive rows into batches, each as large as the limit allows.

    Rows come by the length of their input. A row alone may be over the limit.

    >>> token_borders(np.array([1, 1, 2, 9]), np.array([1, 1, 1, 1]), 6)
    array([0, 2, 3, 4])
    """
    borders = [0]
    window = limit
    while borders[-1] < len(inputs):
        begin = borders[-1]
        longest = np.maximum.accumulate(targets[begin : begin + window])
        widths = inputs[begin : begin + window] + longest
        over = np.flatnonzero(np.arange(2, len(widths) + 1) * widths[1:] > limit)
        if len(over) or begin + window >= len(inputs):
            borders.append(begin + 1 + int(over[0]) if len(over) else len(inputs))
            window = 2 * (borders[-1] - begin) + 1  # the next one is hardly larger
        else:
            window *= 2
    return np.array(borders)


@final
class Batches:
    """All batches of a dataset, and the plan of each epoch.

    Rows are sorted by length, those of equal lengths at random; cut into batches; and the batches
    shuffled. The same seed and epoch give the same plan on any machine, so a run goes on in the
    middle of an epoch by skipping, and every epoch has the same number of batches.
    """

    def __init__(  # noqa: PLR0913 - columns, limits, and what ties them together
        self,
        inputs: Mapping[str, FieldValues],
        target: FieldValues,
        *,
        usable: NDArray[np.bool_] | None = None,
        batch_tokens: int | None = None,
        batch_examples: int | None = None,
        seed: int = 0,
        weights: NDArray[np.float64] | None = None,
        links: "Guides | None" = None,
        joint: BatchLink | None = None,
    ) -> None:
        self.inputs = dict(inputs)
        self.target = target
        self.batch_tokens = batch_tokens
        self.batch_examples = batch_examples or DEFAULT_EXAMPLES
        self.seed = seed
        self.weights = weights
        self.links = links
        self.joint = joint
        if joint is not None:
            joint.check(self.inputs)
        self.target_lengths = target.lengths
        none = np.zeros(len(self), dtype=np.int64)
        self.input_lengths = sum((column.lengths for column in inputs.values()), none)
        self.usable = np.ones(len(self), dtype=bool) if usable is None else usable

    def __len__(self) -> int:
        return len(self.target_lengths)

    def have_few_shapes(self) -> None:
        """Pack segments into few shapes from now on, for CUDA graphs; padding grows."""
        for column in self.inputs.values():
            if isinstance(column, SegmentColumn):
                column.few_shapes = True

    def plan(self, *, epoch: int, accumulate: int = 1) -> BatchPlan:
        """The batches of an epoch, grouped into updates of `accumulate` each."""
        noise = np.random.default_rng([self.seed, epoch])
        # Chance decides among equal lengths alone, so however rows are ordered, the batches have
        # the same widths.
        order = by_length(self.input_lengths, self.target_lengths, noise.random(len(self)))
        order = self._drawn(order[self.usable[order]], noise)
        borders = self._borders if self.weights is None else self._borders_of(order)
        chosen = noise.permutation(len(borders) - 1)
        if self.weights is not None and epoch:
            # Fractions draw other lengths in each epoch, so the count may change.
            chosen = np.resize(chosen, self._batches_at_first)
        return BatchPlan(order, borders, chosen, accumulate)

    @cached_property
    def _batches_at_first(self) -> int:
        return len(self._borders) - 1 if self.weights is None else len(self.plan(epoch=0))

    @cached_property
    def _borders(self) -> Rows:
        """Where batches begin and the last ends; the lengths alone decide."""
        order = by_length(self.input_lengths, self.target_lengths)
        return self._borders_of(order[self.usable[order]])

    def _borders_of(self, order: Rows) -> Rows:
        if self.batch_tokens is None:
            return np.append(np.arange(0, len(order), self.batch_examples), len(order))
        lengths = self.input_lengths[order], self.target_lengths[order]
        return token_borders(*lengths, self.batch_tokens)

    def _drawn(self, order: Rows, noise: "np.random.Generator") -> Rows:
        """The rows of an epoch, each as often as its weight; a fraction draws among them."""
        if self.weights is None:
            return order
        weights = self.weights[order]
        times = np.floor(weights).astype(np.int64)
        for weight in np.unique(weights):
            having = np.flatnonzero(weights == weight)
            times[noise.permutation(having)[: round((weight % 1.0) * len(having))]] += 1
        return np.repeat(order, times)

    def in_order(self, examples: int, rows: Sequence[int] | None = None) -> list[Tensor]:
        """Batches for scoring: every row once (or those given), longest first."""
        order = np.argsort(-(self.input_lengths + self.target_lengths), kind="stable")
        if rows is not None:
            order = order[np.isin(order, np.fromiter(rows, dtype=np.int64))]
        begins = range(0, len(order), examples)
        return [torch.from_numpy(order[begin : begin + examples]) for begin in begins]

    def updates_per_epoch(self, accumulate: int) -> int:
        """How many updates an epoch has, the same for all epochs."""
        return -(-self._batches_at_first // accumulate)

    def target_tokens(self, rows: Tensor) -> int:
        """How many tokens (with `<stop>`) or labels these targets have together."""
        return int(self.target_lengths[rows.numpy()].sum())

    def share(self, rows: Tensor, *, rank: int, world: int) -> Tensor:
        """The part of a batch for one of `world` processes; empty if there are too few rows."""
        return rows[rank::world]

    def collate(self, rows: Tensor) -> Batch:
        """Pad these rows, join them, and add the true alignment."""
        numbers = rows.numpy()
        inputs = {name: column.padded(numbers) for name, column in self.inputs.items()}
        target = self.target.padded(numbers)
        if self.joint is not None:
            inputs, target = self.joint.join(numbers, inputs, target)
        if self.links is None:
            return Batch(inputs, target, rows, None)
        # True attention: each target token's weight, spread over its source tokens.
        truth_BTS = torch.zeros(*target.mask.shape, inputs["source"].mask.shape[1])
        for truth_TS, row in zip(truth_BTS, numbers, strict=True):
            truth_TS[tuple(self.links[row].T[::-1])] = 1.0
        truth_BTS /= truth_BTS.sum(-1, keepdim=True).clamp(min=1.0)
        return Batch(inputs, target, rows, truth_BTS)
