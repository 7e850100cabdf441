"""From the rows of search back to hypotheses that a person can read.

Dims: B sources, N hypotheses of each, R rows open in search, T steps made, S source positions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, final

import torch
from torch import Tensor

from sixjars.flow import Hypothesis, Rows


@final
@dataclass(frozen=True)
class Ended(Rows):
    """Where hypotheses ended, N of each source; a score of -inf is an empty place. All fields are (B, N)."""

    score: Tensor
    log_probability: Tensor
    row: Tensor
    """The row it was in when the last of its tokens was written (and `<stop>` was about to follow)."""
    count: Tensor
    """How many tokens it has, `<stop>` not counted."""
    finished: Tensor
    """Whether `<stop>` came after them."""

    @classmethod
    def nowhere(cls, sources: int, places: int, like: Tensor) -> Self:
        """Empty places only."""
        never_BN = like.new_full((sources, places), -torch.inf)
        zero_BN = torch.zeros_like(never_BN, dtype=torch.long)
        return cls(never_BN, never_BN, zero_BN, zero_BN, torch.zeros_like(zero_BN, dtype=torch.bool))

    def beside(self, other: Self) -> Self:
        """Both, those of the other to the right."""
        return type(self)(
            torch.cat([self.score, other.score], dim=1),
            torch.cat([self.log_probability, other.log_probability], dim=1),
            torch.cat([self.row, other.row], dim=1),
            torch.cat([self.count, other.count], dim=1),
            torch.cat([self.finished, other.finished], dim=1),
        )

    def ordered(self, places: Tensor) -> Self:
        """Those in the given places, (B, N)."""
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def best(self, most: int) -> Self:
        """The best of each source, best first."""
        return self.ordered(self.score.topk(most, dim=1).indices)

    def first(self, most: int) -> Self:
        """The leftmost that are not empty places."""
        return self.ordered((self.score == -torch.inf).int().argsort(dim=1, stable=True)[:, :most])


@final
@dataclass
class Past:
    """What each step wrote, and from which row it went on; read backwards once, at the end."""

    tokens: list[Tensor] = field(default_factory=list)
    """What each row wrote, (R,) for each step."""
    parents: list[Tensor] = field(default_factory=list)
    """Which row of the step before it goes on from, (R,) for each step."""
    weights: list[Tensor] = field(default_factory=list)
    """Attention as it was before rows moved, (R, S) for each step; empty where there is none."""

    def add(self, token: Tensor, parent: Tensor, weights: Tensor | None) -> None:
        """One step."""
        self.tokens.append(token)
        self.parents.append(parent)
        if weights is not None:
            self.weights.append(weights)

    def hypotheses(self, ended: Ended) -> list[list[Hypothesis]]:
        """Each source's hypotheses in the order of their places, the empty places left out."""
        tokens, weights = self._followed(ended.row.flatten(), ended.count.flatten())
        rows = zip(
            ended.score.flatten().tolist(),
            ended.log_probability.flatten().tolist(),
            ended.count.flatten().tolist(),
            ended.finished.flatten().tolist(),
            tokens.tolist(),
            strict=True,
        )
        found = [
            Hypothesis(
                tokens=tuple(written[:count]),
                score=score,
                log_probability=log_probability,
                weights=() if weights is None else _plain(weights[place, : count + finished]),
                finished=finished,
            )
            for place, (score, log_probability, count, finished, written) in enumerate(rows)
        ]
        return [_real(found[start : start + ended.score.shape[1]]) for start in _starts(ended)]

    def _followed(self, row: Tensor, count: Tensor) -> tuple[Tensor, Tensor | None]:
        """Tokens (B * N, T) and weights (B * N, T, S) on the way to each given row.

        Position t of the weights is what the hypothesis saw when it chose its token t, or `<stop>`.
        """
        tokens, weights = [], []
        for step in reversed(range(len(self.tokens))):
            tokens.append(self.tokens[step].index_select(0, row))
            row = torch.where(step < count, self.parents[step].index_select(0, row), row)
            if self.weights:
                weights.append(self.weights[step].index_select(0, row))
        return torch.stack(tokens[::-1], dim=1), torch.stack(weights[::-1], dim=1).cpu() if weights else None


def _starts(ended: Ended) -> range:
    return range(0, ended.score.numel(), ended.score.shape[1])


def _real(places: Sequence[Hypothesis]) -> list[Hypothesis]:
    return [hypothesis for hypothesis in places if hypothesis.score > -torch.inf]


def _plain(weights: Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, weights.tolist()))
