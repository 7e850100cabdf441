"""Beam search: at every step the K best beginnings of each source, all sources at once.

Dims: B sources, K width of the beam, R = B * K rows, V vocabulary, C = 2K candidates, N hypotheses asked for,
      S source positions, T steps made, t tokens output so far, X = K * V ways to go on.

The rows of one source lie side by side and only move among themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self, final

import torch
from torch import Tensor

from sixjars.evaluation.search.problem import Problem
from sixjars.flow.values import Hypothesis, Rows


@final
@dataclass(frozen=True)
class Ended(Rows):
    """Where hypotheses ended, N of each source; a score of -inf is an empty place. All fields are (B, N)."""

    score: Tensor
    log_probability: Tensor
    row: Tensor
    """The row it was in when the last of its tokens was output (and `<stop>` was about to follow)."""
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
    """What each step output, and from which row it went on; read backwards once, at the end."""

    tokens: list[Tensor] = field(default_factory=list)
    """What each row output, (R,) for each step."""
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
                tokens=tuple(output[:count]),
                score=score,
                log_probability=log_probability,
                weights=() if weights is None else _plain(weights[place, : count + finished]),
                finished=finished,
            )
            for place, (score, log_probability, count, finished, output) in enumerate(rows)
        ]
        return [_real(found[start : start + ended.score.shape[1]]) for start in _starts(ended)]

    def _followed(self, row: Tensor, count: Tensor) -> tuple[Tensor, Tensor | None]:
        """Tokens (B * N, T) and weights (B * N, T, S) on the way to each given row.

        Position t of the weights is what the hypothesis attended to when it chose its token t, or `<stop>`.
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


@final
@dataclass(frozen=True)
class Beginnings(Rows):
    """What the beam holds, or may hold next. All fields are (B, C) or (B, K); -inf is an empty place."""

    log_probability: Tensor
    score: Tensor
    """What it would be worth if it ended here."""
    token: Tensor
    """The last one."""
    row: Tensor
    """The row that the last token followed."""

    def only(self, wanted: Tensor) -> Self:
        """The wanted ones; the places of the others are empty."""
        never = self.log_probability.new_full((), -torch.inf)
        log_probability = torch.where(wanted, self.log_probability, never)
        return type(self)(log_probability, torch.where(wanted, self.score, never), self.token, self.row)

    def first(self, most: int) -> Self:
        """The leftmost."""
        return self.mapped(lambda tensor: tensor[:, :most])

    def likeliest(self, most: int) -> Self:
        """Those with the highest log probability, the best first."""
        places = self.log_probability.topk(most, dim=1).indices
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def ended(self, count: int, *, finished: bool) -> Ended:
        """The same as hypotheses of `count` tokens, those with `<stop>` in the row it followed."""
        counts = torch.full_like(self.row, count)
        return Ended(self.score, self.log_probability, self.row, counts, torch.full_like(counts, finished).bool())


def beam(problem: Problem) -> list[list[Hypothesis]]:
    """The `nbest` best hypotheses of each source, best first.

    Beginnings of one length are compared by log P, ended ones by their score. Twice the width are looked at,
    so that `width` go on even if as many output `<stop>`; a `<stop>` counts only among the best `width`.
    A beginning is dropped when nothing it could become would be among the `nbest`. Search ends with the last.
    So a beam that is wide enough to hold every beginning finds the best hypotheses there are.
    """
    ranking, max_length, stop = problem.ranking, problem.longest, problem.special.stop
    width, nbest, state = problem.settings.width, problem.settings.nbest, problem.state
    token_R, output_Rt = problem.first()
    columns, past, covered_RS = [_first_column(problem)], Past(), None
    alive_BK = columns[0].log_probability
    pool = Ended.nowhere(len(alive_BK), nbest, like=alive_BK)
    for length in range(1, max_length + 1):
        allowed_RV, weights_RS, state = problem.step_on(token_R, state, output_Rt)
        covered_RS = ranking.covered(covered_RS, weights_RS)
        log_BC, token_BC, row_BC = _grown(alive_BK, allowed_RV)
        score_BC = ranking.score(log_BC, length, ranking.penalty(covered_RS, row_BC))
        grown, stops_BC = Beginnings(log_BC, score_BC, token_BC, row_BC), token_BC == stop

        stopped = grown.only(stops_BC).first(width).ended(length - 1, finished=True)
        pool = pool.beside(stopped).best(nbest)
        going = grown.only(~stops_BC).likeliest(width)
        hopeless_BK = ranking.bound(going.log_probability, max_length) <= pool.score[:, -1:]
        alive_BK = going.log_probability.masked_fill(hopeless_BK, -torch.inf)

        columns.append(going)
        token_R, row_R = going.token.flatten(), going.row.flatten()
        past.add(token_R, row_R, weights_RS)
        if length == max_length or not bool((alive_BK > -torch.inf).any()):
            break
        state = state.pick(row_R)
        output_Rt = torch.cat([output_Rt.index_select(0, row_R), token_R.unsqueeze(1)], dim=1)
        covered_RS = None if covered_RS is None else covered_RS.index_select(0, row_R)
    return past.hypotheses(pool.beside(_unfinished(columns, pool, max_length)).first(nbest))


def _first_column(problem: Problem) -> Beginnings:
    """One empty beginning for each source, with log P = 0."""
    width = problem.settings.width
    row_BK = torch.arange(problem.rows, device=problem.device).view(-1, width)
    log_BK = torch.where(row_BK % width == 0, 0.0, -torch.inf)
    return Beginnings(log_BK, log_BK, row_BK, row_BK)


def _grown(alive_BK: Tensor, allowed_RV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best 2K beginnings that are one token longer: log P, token and row, (B, C) each, the best first."""
    sources, width = alive_BK.shape
    size = allowed_RV.shape[1]
    total_BX = (alive_BK.unsqueeze(2) + allowed_RV.view(sources, width, size)).flatten(1)
    log_BC, place_BC = total_BX.topk(min(2 * width, width * size), dim=1)
    first_B1 = torch.arange(0, sources * width, width, device=alive_BK.device).unsqueeze(1)
    return log_BC, place_BC % size, first_B1 + place_BC // size


def _unfinished(columns: list[Beginnings], pool: Ended, max_length: int) -> Ended:
    """What was never ended by `<stop>`, (B, K), the best first: beginnings that are as long as allowed.

    A source without any hypothesis, because every way led to a place where nothing may follow, gets its last
    living beginnings instead, so that it does not go away with nothing.
    """
    log_TBK = torch.stack([column.log_probability for column in columns])
    lives_TB = (log_TBK > -torch.inf).any(dim=2)
    count_B = len(columns) - 1 - lives_TB.flip(0).int().argmax(dim=0)
    wanted_B = (count_B == max_length) | (pool.score[:, 0] == -torch.inf)
    source_B = torch.arange(len(count_B), device=count_B.device)
    score_BK = torch.stack([column.score for column in columns])[count_B, source_B]
    score_BK = score_BK.masked_fill(~wanted_B.unsqueeze(1), -torch.inf)
    row_BK, counts_BK = columns[0].row, count_B.unsqueeze(1).expand_as(score_BK)
    ended = Ended(score_BK, log_TBK[count_B, source_B], row_BK, counts_BK, torch.zeros_like(row_BK).bool())
    return ended.best(score_BK.shape[1])
