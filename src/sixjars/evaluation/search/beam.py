"""Beam search: at every step the K best beginnings of each source, all sources at once.

Dims: B sources, K width of the beam, R = B * K rows, V vocabulary, C = 2K candidates, N hypotheses asked for,
      S source positions, T steps made, t tokens output so far, X = K * V ways to go on.

The rows of one source lie side by side and only move among themselves: what a model prepared for each source never
moves, and a state is reordered by one `pick`. Nothing is copied from the device before the end, except whether any
beginning is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self, final

import torch
from torch import Tensor

from sixjars.evaluation.search.problem import NEVER, Problem, hypotheses_of
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
        never_BN = like.new_full((sources, places), NEVER)
        zero_BN = torch.zeros_like(never_BN, dtype=torch.long)
        return cls(never_BN, never_BN, zero_BN, zero_BN, torch.zeros_like(zero_BN, dtype=torch.bool))

    def beside(self, other: Self) -> Self:
        """Both, those of the other to the right."""
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return type(self)(*(torch.cat(pair, dim=1) for pair in pairs))

    def ordered(self, places: Tensor) -> Self:
        """Those in the given places, (B, N)."""
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def best(self, most: int) -> Self:
        """The best of each source, best first."""
        return self.ordered(self.score.topk(most, dim=1).indices)

    def first(self, most: int) -> Self:
        """The leftmost that are not empty places."""
        return self.ordered((self.score == NEVER).int().argsort(dim=1, stable=True)[:, :most])


Made = tuple[Tensor, Tensor, Tensor | None]
"""One step: what each row output, (R,); which row of the step before it goes on from, (R,); its attention, (R, S)."""


def _traced(steps: Sequence[Made], ended: Ended) -> list[list[Hypothesis]]:
    """Each source's hypotheses in the order of their places, followed backwards from the rows they ended in.

    This is done once, at the end. So a step costs the same however long the hypotheses are, and attention over a long
    source is never reordered. Position t of the weights belongs to the choice of token t, or of `<stop>`.
    """
    flat = ended.mapped(Tensor.flatten)
    row, tokens, weights = flat.row, [], []
    for step in reversed(range(len(steps))):
        token_R, parent_R, weights_RS = steps[step]
        tokens.append(token_R.index_select(0, row))
        # A hypothesis of `count` tokens was in its row before step `count`: only earlier steps moved it there.
        row = torch.where(step < flat.count, parent_R.index_select(0, row), row)
        if weights_RS is not None:  # as it was before the rows moved
            weights.append(weights_RS.index_select(0, row))
    output, attention = torch.stack(tokens[::-1], dim=1), torch.stack(weights[::-1], dim=1) if weights else None
    places = ended.score.shape[1]
    return hypotheses_of(output, flat.score, flat.log_probability, flat.count, flat.finished, attention, places)


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
        never = self.log_probability.new_full((), NEVER)
        log_probability = torch.where(wanted, self.log_probability, never)
        return type(self)(log_probability, torch.where(wanted, self.score, never), self.token, self.row)

    def likeliest(self, most: int) -> Self:
        """Those with the highest log probability, the best first."""
        places = self.log_probability.topk(most, dim=1).indices
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def stopped(self, most: int, count: int) -> Ended:
        """The leftmost as hypotheses of `count` tokens and `<stop>`, in the row that it followed."""
        left = self.mapped(lambda tensor: tensor[:, :most])
        counts = torch.full_like(left.row, count)
        return Ended(left.score, left.log_probability, left.row, counts, torch.ones_like(counts, dtype=torch.bool))


def beam(problem: Problem) -> list[list[Hypothesis]]:
    """The `nbest` best hypotheses of each source, best first.

    Beginnings of one length are compared by log P, ended ones by their score. Twice the width are compared,
    so that `width` go on even if as many output `<stop>`; a `<stop>` counts only among the best `width`.
    A beginning is dropped when nothing it could become would be among the `nbest`. Search ends with the last.
    So a beam that is wide enough to hold every beginning finds the best hypotheses there are.
    """
    ranking, max_length, stop = problem.ranking, problem.longest, problem.special.stop
    width, nbest, state = problem.settings.width, problem.settings.nbest, problem.state
    token_R, output_Rt = problem.first()
    columns, covered_RS = [_first_column(problem)], None
    steps: list[Made] = []
    alive_BK = columns[0].log_probability
    pool = Ended.nowhere(len(alive_BK), nbest, like=alive_BK)
    for length in range(1, max_length + 1):
        allowed_RV, weights_RS, state = problem.step_on(token_R, state, output_Rt)
        covered_RS = ranking.covered(covered_RS, weights_RS)
        log_BC, token_BC, row_BC = _grown(alive_BK, allowed_RV)
        score_BC = ranking.score(log_BC, length, ranking.penalty(covered_RS, row_BC))
        grown, stops_BC = Beginnings(log_BC, score_BC, token_BC, row_BC), token_BC == stop

        pool = pool.beside(grown.only(stops_BC).stopped(width, length - 1)).best(nbest)
        going = grown.only(~stops_BC).likeliest(width)
        # Ties are dropped too: what ended first stays, and a beam of sure tokens ends at its first <stop>.
        hopeless_BK = ranking.bound(going.log_probability, max_length) <= pool.score[:, -1:]
        alive_BK = going.log_probability.masked_fill(hopeless_BK, NEVER)

        columns.append(going)
        token_R, row_R = going.token.flatten(), going.row.flatten()
        steps.append((token_R, row_R, weights_RS))
        if length == max_length or not bool((alive_BK > NEVER).any()):
            break
        state = state.pick(row_R)
        output_Rt = torch.cat([output_Rt.index_select(0, row_R), token_R.unsqueeze(1)], dim=1)
        covered_RS = None if covered_RS is None else covered_RS.index_select(0, row_R)
    return _traced(steps, pool.beside(_unfinished(columns, pool, max_length)).first(nbest))


def _first_column(problem: Problem) -> Beginnings:
    """One empty beginning for each source, with log P = 0; K equal ones would all grow the same way."""
    width = problem.settings.width
    row_BK = torch.arange(problem.state.rows, device=problem.state.device).view(-1, width)
    log_BK = torch.where(row_BK % width == 0, 0.0, NEVER)
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
    living beginnings instead, so that it is not left with nothing.
    """
    log_TBK = torch.stack([column.log_probability for column in columns])
    lives_TB = (log_TBK > NEVER).any(dim=2)
    count_B = len(columns) - 1 - lives_TB.flip(0).int().argmax(dim=0)  # the last step at which a source lives
    wanted_B = (count_B == max_length) | (pool.score[:, 0] == NEVER)
    source_B = torch.arange(len(count_B), device=count_B.device)
    score_BK = torch.stack([column.score for column in columns])[count_B, source_B]
    score_BK = score_BK.masked_fill(~wanted_B.unsqueeze(1), NEVER)
    row_BK, counts_BK = columns[0].row, count_B.unsqueeze(1).expand_as(score_BK)
    ended = Ended(score_BK, log_TBK[count_B, source_B], row_BK, counts_BK, torch.zeros_like(row_BK).bool())
    return ended.best(score_BK.shape[1])
