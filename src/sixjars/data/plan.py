"""The plan of an epoch: which rows make each batch, and which batches each update; without a loop over rows."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[np.int64]
"""Numbers of examples."""


@final
@dataclass(frozen=True)
class Plan(Sequence[list[Tensor]]):
    """The rows of each update of an epoch, made when they are asked for: all at once would take much memory."""

    order: Rows
    borders: Rows
    """Where in the order batches begin, and where the last ends."""
    chosen: Rows
    """The batches, as they follow each other."""
    accumulate: int
    """Batches of an update."""

    def __len__(self) -> int:
        return -(-len(self.chosen) // self.accumulate)

    def __getitem__(self, at: Any) -> Any:
        """One update, or consecutive ones."""
        found, each = range(len(self))[at], self.accumulate
        if isinstance(found, range):
            return replace(self, chosen=self.chosen[found.start * each : found.stop * each])
        batches = self.chosen[found * each :][:each]
        return [torch.from_numpy(self.order[self.borders[one] : self.borders[one + 1]]) for one in batches]


def by_length(inputs: Rows, targets: Rows, noise: NDArray[np.float64] | None = None) -> Rows:
    """Rows by the length of their input, then of their target, then by `noise`.

    >>> by_length(np.array([2, 1, 1, 1]), np.array([1, 2, 1, 1]), np.array([0.0, 0.0, 0.5, 0.4]))
    array([3, 2, 1, 0])
    """
    both = inputs * (int(targets.max(initial=0)) + 1) + targets
    if both.max(initial=0) < 1 << 16:
        both = both.astype(np.uint16)  # which numpy sorts in one pass
    if noise is None:
        return np.argsort(both, kind="stable")
    order = np.argsort(noise, kind="stable")
    return order[np.argsort(both[order], kind="stable")]


def token_borders(inputs: Rows, targets: Rows, limit: int) -> Rows:
    """Where batches of consecutive rows begin and the last ends, each as large as the limit allows with its padding.

    Rows come by the length of their input, so none before was longer. A row alone may be over the limit.

    >>> token_borders(np.array([1, 1, 2, 9]), np.array([1, 1, 1, 1]), 6)
    array([0, 2, 3, 4])
    """
    borders, window = [0], limit
    while borders[-1] < len(inputs):
        begin = borders[-1]
        widths = inputs[begin : begin + window] + np.maximum.accumulate(targets[begin : begin + window])
        over = np.flatnonzero(np.arange(2, len(widths) + 1) * widths[1:] > limit)
        if len(over) or begin + window >= len(inputs):
            borders.append(begin + 1 + int(over[0]) if len(over) else len(inputs))
            window = 2 * (borders[-1] - begin) + 1  # the next one is hardly larger
        else:
            window *= 2
    return np.array(borders)
