"""Beam search: at every step the K best beginnings of each source, all sources at once.

Dims: B sources, K width of the beam, R = B * K rows, V vocabulary, C = 2K candidates, N hypotheses
      asked for, S source positions, T steps made, t tokens output so far, X = K * C ways to go on,
      or = B * N hypotheses.

The rows of one source lie side by side and only move among themselves: the prepared sources never
move, and a state is reordered by one `pick`. Nothing is copied from the device before the end,
except now and then whether any beginning is left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self, final

import torch
from torch import Tensor

from sixjars.decoding.problem import (
    SearchKind,
    SearchPart,
    SearchProblem,
    SearchStep,
    hypotheses_of,
)
from sixjars.decoding.scores import NEVER, best_tokens, highest
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Rows, Tensors


@final
@dataclass(frozen=True)
class EndedHypotheses(Rows):
    """N places for ended hypotheses of each source, (B, N); a score of -inf is an empty place."""

    score: Tensor
    log_probability: Tensor
    row: Tensor
    """The row that its last token (before `<stop>`) was output in."""
    count: Tensor
    """How many tokens it has, `<stop>` not counted."""
    finished: Tensor
    """Whether `<stop>` came after them."""

    @classmethod
    def nowhere(cls, sources: int, places: int, like: Tensor) -> Self:
        """Empty places."""
        never_BN = like.new_full((sources, places), NEVER)
        zero_BN = torch.zeros_like(never_BN, dtype=torch.long)
        return cls(never_BN, never_BN, zero_BN, zero_BN, zero_BN.bool())

    def beside(self, other: Self) -> Self:
        """The places of both, those of the other to the right."""
        pairs = [(getattr(self, each.name), getattr(other, each.name)) for each in fields(self)]
        return type(self)(*(torch.cat(pair, dim=1) for pair in pairs))

    def ordered(self, places: Tensor) -> Self:
        """The hypotheses at the given places, (B, N)."""
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def best(self, most: int) -> Self:
        """The best of each source, best first."""
        return self.ordered(highest(self.score, most)[1])

    def put(self, sources: Tensor, other: Self) -> Self:
        """The same with the places of some sources replaced."""
        new = iter(other.tensors())
        return self.mapped(lambda tensor: tensor.index_copy(0, sources, next(new)))

    def unless(self, going: "BeamCandidates", count: int | Tensor) -> Self:
        """These, or the beginnings of `count` tokens of each source that has any."""
        lives_B1 = (going.log_probability > NEVER).any(dim=1, keepdim=True)
        return replace(
            self,
            score=torch.where(lives_B1, going.score, self.score),
            log_probability=torch.where(lives_B1, going.log_probability, self.log_probability),
            count=torch.where(lives_B1, count, self.count),
        )

    def first(self, most: int) -> Self:
        """The leftmost places that are not empty."""
        size = self.score.shape[1]
        place_BN = (self.score == NEVER) * size + torch.arange(size, device=self.score.device)
        return self.ordered(place_BN.argsort(dim=1)[:, :most])


def _traced(parts: Sequence[SearchPart], ended: EndedHypotheses) -> list[list[Hypothesis]]:
    """The hypotheses of each source, followed backwards from the rows they ended in.

    This is done once, at the end, on the CPU: so a step costs the same however long the hypotheses
    are, and attention weights are never reordered. Position t of the weights belongs to the choice
    of token t, or of `<stop>`.
    """
    flat = ended.mapped(Tensor.flatten).to("cpu")
    row_X, rows, tokens = flat.row, [], []
    columns = [part.made() for part in parts]
    steps = list(zip(*_columns(parts, columns), strict=True))
    for step, (token_R, parent_R) in reversed(list(enumerate(steps))):
        tokens.append(token_R[row_X])
        row_X = row_before(step, parent_R, row_X, flat.count)
        rows.append(row_X)
    output_XT = torch.stack(tokens[::-1], dim=1)
    weights_XTS = _attention(parts, columns, torch.stack(rows[::-1]))
    values = flat.score, flat.log_probability, flat.count, flat.finished
    return hypotheses_of(output_XT, *values, weights_XTS, ended.score.shape[1])


def row_before(step: int | Tensor, parent_R: Tensor, row_X: Tensor, count_X: Tensor) -> Tensor:
    """The row of each hypothesis before a step; from step `count` on it no longer moves."""
    return torch.where(step < count_X, parent_R[row_X], row_X)


def _columns(parts: Sequence[SearchPart], columns: Sequence[SearchStep]) -> tuple[Tensor, Tensor]:
    """The token of every row at every step, and the row it came from, (T, R) each, on the CPU."""
    every, tokens, parents = len(parts[0].places), [], []
    for part, column in zip(parts, columns, strict=True):
        assert column.parent is not None
        token_TR, parent_TR = column.token.cpu(), column.parent.cpu()
        if part is not parts[0]:
            places_R = part.places.cpu()
            of_all_TR = torch.zeros(len(token_TR), every, dtype=torch.long)
            parent_TR = of_all_TR.index_copy(1, places_R, places_R[parent_TR])
            token_TR = of_all_TR.index_copy(1, places_R, token_TR)
        tokens.append(token_TR)
        parents.append(parent_TR)
    return torch.cat(tokens), torch.cat(parents)


def _attention(
    parts: Sequence[SearchPart], columns: Sequence[SearchStep], rows_TX: Tensor
) -> Tensor | None:
    """The weights of each hypothesis at every step, (X, T, S), from its rows."""
    if columns[0].weights is None:
        return None
    weights, rows = [], iter(rows_TX.to(columns[0].weights.device))
    for part, column in zip(parts, columns, strict=True):
        for weights_RS in () if column.weights is None else column.weights:
            row_X = next(rows)
            row_X = row_X if part is parts[0] else part.own(row_X)
            weights.append(weights_RS.index_select(0, row_X))
    return torch.stack(weights, dim=1)


@final
@dataclass(frozen=True)
class BeamCandidates(Rows):
    """Candidates for the beam, all fields (B, C) or (B, K); -inf is an empty place."""

    log_probability: Tensor
    score: Tensor
    """The score if it ended here."""
    token: Tensor
    """The last one."""
    row: Tensor
    """The row before the last token."""

    def only(self, chosen: Tensor) -> Self:
        """The chosen ones; the places of the others are empty."""
        never = self.log_probability.new_full((), NEVER)
        return replace(
            self,
            log_probability=torch.where(chosen, self.log_probability, never),
            score=torch.where(chosen, self.score, never),
        )

    def likeliest(self, most: int) -> Self:
        """Those with the highest log probability, the best first."""
        places = highest(self.log_probability, most)[1]
        return self.mapped(lambda tensor: tensor.gather(1, places))

    def stopped(self, most: int, count: int | Tensor) -> EndedHypotheses:
        """The leftmost as hypotheses of `count` tokens and `<stop>`, in the row before it."""
        left = self.mapped(lambda tensor: tensor[:, :most])
        counts = torch.zeros_like(left.row) + count
        finished = torch.ones_like(counts, dtype=torch.bool)
        return EndedHypotheses(left.score, left.log_probability, left.row, counts, finished)


@final
@dataclass(frozen=True)
class BeamRunning(Tensors):
    """The state of beam search between two steps."""

    token: Tensor
    """The last token of each row, (R,)."""
    state: Rows
    alive: Tensor
    """The log probability of each beginning, (B, K); -inf where there is none worth continuing."""
    pool: EndedHypotheses
    """The best that ended with `<stop>`, (B, N)."""
    last: EndedHypotheses
    """The last beginnings of each source, (B, K)."""
    covered: Tensor | None
    """The sum of all attention weights so far, (R, S)."""
    output: Tensor | None
    """All tokens so far, (R, t), where a rule reads them."""

    @classmethod
    def begun(cls, problem: SearchProblem) -> Self:
        """One empty beginning for each source: K equal ones would all grow the same way."""
        token_R = problem.first()
        row_BK = torch.arange(token_R.shape[0], device=token_R.device).view(-1, problem.rows)
        begins_BK = (row_BK % problem.rows == 0) & problem.is_real().view_as(row_BK)
        log_BK = torch.where(begins_BK, 0.0, NEVER)
        nothing_BK = torch.zeros_like(row_BK)
        last = EndedHypotheses(log_BK, log_BK, row_BK, nothing_BK, nothing_BK.bool())
        pool = EndedHypotheses.nowhere(row_BK.shape[0], problem.settings.nbest, like=log_BK)
        output_Rt = token_R.new_empty(token_R.shape[0], 0) if problem.reads_output else None
        return cls(token_R, problem.state, log_BK, pool, last, None, output_Rt)

    def going(self) -> Tensor:
        """Whether a source has a beginning that may become one of the best, (B,)."""
        return (self.alive > NEVER).any(1)

    def kept(self, sources: Tensor, rows: Tensor) -> Self:
        """The state of some sources, and of their rows."""
        return type(self)(
            self.token.index_select(0, rows),
            self.state.pick(rows),
            self.alive.index_select(0, sources),
            self.pool.pick(sources),
            self.last.pick(sources),
            None if self.covered is None else self.covered.index_select(0, rows),
            None if self.output is None else self.output.index_select(0, rows),
        )


def _found(problem: SearchProblem, parts: Sequence[SearchPart]) -> list[list[Hypothesis]]:
    """The `nbest` best hypotheses of each source, the best first."""
    pool, last = parts[0].running.pool, parts[0].running.last
    for part in parts[1:]:
        sources = part.places[:: problem.rows] // problem.rows
        pool = pool.put(sources, part.running.pool)
        last = last.put(sources, part.running.last)
    return _traced(parts, best_ends(problem, pool, last))


def best_ends(
    problem: SearchProblem, pool: EndedHypotheses, last: EndedHypotheses
) -> EndedHypotheses:
    """The ends of the `nbest` best hypotheses of each source, (B, N)."""
    return pool.beside(_unfinished(last, pool, problem.longest)).first(problem.settings.nbest)


def _advanced(
    problem: SearchProblem, running: BeamRunning, steps: int | Tensor
) -> tuple[BeamRunning, SearchStep]:
    """One step of every source."""
    ranking, width, length = problem.ranking, problem.settings.width, steps + 1
    step = problem.step_on(running.token, running.state, running.output, steps)
    allowed_RV, weights_RS, state = step
    covered_RS = ranking.covered(running.covered, weights_RS)
    alive_BK = running.alive
    if isinstance(steps, Tensor):  # a graph has several steps, and may go beyond the last
        alive_BK = torch.where(steps < problem.longest, alive_BK, NEVER)
    log_BC, token_BC, row_BC = _grown(alive_BK, allowed_RV)
    score_BC = ranking.score(log_BC, length, ranking.penalty(covered_RS, row_BC))
    grown = BeamCandidates(log_BC, score_BC, token_BC, row_BC)
    stops_BC = token_BC == problem.special.stop

    ended = grown.only(stops_BC).stopped(width, steps)
    row_of_all = running.last.row.flatten()  # sources may have left since the first step
    ended = replace(ended, row=row_of_all[ended.row])
    pool = running.pool.beside(ended).best(problem.settings.nbest)
    going = grown.only(~stops_BC).likeliest(width)
    last = running.last.unless(going, length)
    # Ties are dropped too: the hypothesis that ended first stays, and a beam can end early.
    hopeless_BK = ranking.bound(going.log_probability, problem.longest) <= pool.score[:, -1:]
    alive_BK = going.log_probability.masked_fill(hopeless_BK, NEVER)

    token_R, row_R = going.token.flatten(), going.row.flatten()
    output_Rt = running.output
    if output_Rt is not None:
        output_Rt = torch.cat([output_Rt.index_select(0, row_R), token_R.unsqueeze(1)], dim=1)
    covered_RS = None if covered_RS is None else covered_RS.index_select(0, row_R)
    after = BeamRunning(token_R, state.pick(row_R), alive_BK, pool, last, covered_RS, output_Rt)
    return after, SearchStep(token_R, row_R, weights_RS)


def _grown(alive_BK: Tensor, allowed_RV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best 2K longer beginnings: log P, last token and former row, (B, C) each, best first."""
    sources, width = alive_BK.shape
    size = allowed_RV.shape[1]
    log_RC, token_RC = best_tokens(allowed_RV, min(2 * width, size))
    total_BX = (alive_BK.unsqueeze(2) + log_RC.reshape(sources, width, -1)).flatten(1)
    log_BC, place_BC = highest(total_BX, min(2 * width, width * size))
    token_BC = token_RC.reshape(sources, -1).gather(1, place_BC)
    first_B1 = torch.arange(0, sources * width, width, device=alive_BK.device).unsqueeze(1)
    return log_BC, token_BC, first_B1 + place_BC // log_RC.shape[1]


def _unfinished(last: EndedHypotheses, pool: EndedHypotheses, max_length: int) -> EndedHypotheses:
    """The unfinished beginnings, (B, K), the best first: those that are as long as allowed.

    A source without any hypothesis, because no token may follow, gets its last living beginnings.
    """
    counts_BK = (last.count == max_length) | (pool.score[:, :1] == NEVER)
    return replace(last, score=last.score.masked_fill(~counts_BK, NEVER)).best(last.score.shape[1])


BEAM = SearchKind(BeamRunning.begun, _advanced, _found)
"""Beginnings of one length are compared by log P, ended ones by their score. Twice the width are
compared, so that `width` continue even if as many output `<stop>`; a `<stop>` counts only among the
best `width`. A beginning is dropped when none of its continuations can be among the `nbest`. So a
beam that is wide enough to hold every beginning finds the best hypotheses there are."""
