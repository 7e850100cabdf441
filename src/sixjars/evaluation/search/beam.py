"""Beam search: at every step the K best beginnings of each source, all sources at once.

Dims: B sources, K width of the beam, R = B * K rows, V vocabulary, C = 2K candidates, N hypotheses asked for,
      S source positions, T + 1 columns of the beam, t tokens written so far, X = K * V ways to go on.

The rows of one source lie side by side and only move among themselves.
"""

from dataclasses import dataclass
from typing import Self, final

import torch
from torch import Tensor

from sixjars.evaluation.search.problem import Problem
from sixjars.evaluation.search.tracing import Ended, Past
from sixjars.flow import Hypothesis, Rows


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
    so that `width` go on even if as many write `<stop>`; a `<stop>` counts only among the best `width`.
    A beginning is dropped when nothing it could become would be among the `nbest`. Search ends with the last.
    So a beam that is wide enough to hold every beginning finds the best hypotheses there are.
    """
    ranking, max_length, stop = problem.ranking, problem.settings.max_length, problem.marks.stop
    width, nbest, state = problem.settings.width, problem.settings.nbest, problem.state
    token_R, written_Rt = problem.first()
    columns, past, covered_RS = [_first_column(problem)], Past(), None
    alive_BK = columns[0].log_probability
    pool = Ended.nowhere(len(alive_BK), nbest, like=alive_BK)
    for length in range(1, max_length + 1):
        allowed_RV, weights_RS, state = problem.look(token_R, state, written_Rt)
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
        written_Rt = torch.cat([written_Rt.index_select(0, row_R), token_R.unsqueeze(1)], dim=1)
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
