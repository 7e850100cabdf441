"""Search: from one step function to hypotheses, greedily, by sampling or by a beam. It imports no model.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, K tokens that may be drawn,
      S source positions, T all tokens, t tokens output so far, G n-grams among them, n their length.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.evaluation.search.beam import beam
from sixjars.evaluation.search.problem import NEVER, Problem, Ranking, hypotheses_of, rule_of
from sixjars.flow.contracts import PreparedStep, SpecialTokens, Step
from sixjars.flow.values import Hypothesis, Padded, Prepared, Rows, StepOutput
from sixjars.recipe.sections import SearchSettings


def beam_rows(settings: SearchSettings) -> int:
    """How many rows of each source search needs, side by side.

    >>> beam_rows(SearchSettings(kind="beam", width=4, nbest=2))
    4
    """
    return {"greedy": 1, "sample": settings.nbest, "beam": settings.width}[settings.kind]


@final
@dataclass(frozen=True)
class Searcher:
    """The search that settings describe, as a decoder is given it; `seeds` has one for each source of a batch."""

    settings: SearchSettings
    seeds: Sequence[int] = ()
    attention: bool = True
    """Whether hypotheses keep their weights: plain numbers of all of them take longer than to search."""

    def find(
        self,
        step: PreparedStep,
        state: Rows,
        prepared: Prepared,
        special: SpecialTokens,
        *,
        longest: int | None = None,
        prefix: Padded | None = None,
    ) -> list[list[Hypothesis]]:
        """For each source at least one hypothesis, the best first; see `search`."""
        rows = beam_rows(self.settings)
        state, prepared = state.repeat(rows), prepared.repeat(rows)
        begun = None if prefix is None else prefix.repeat(rows)
        keeps = self.attention or self.settings.coverage_penalty != 0.0

        def stepped(token: Tensor, state: Rows) -> tuple[StepOutput, Rows]:
            output, after = step(token, state, prepared)
            return (output if keeps else StepOutput(output.log_probabilities)), after

        return search(
            stepped,
            state,
            self.settings,
            special,
            prefix=begun,
            mask=prepared.mask,
            longest=longest,
            seeds=self.seeds or None,
        )


def search(  # noqa: PLR0913 - what search knows of a model, and what a caller may add
    step: Step,
    state: Rows,
    settings: SearchSettings,
    special: SpecialTokens,
    *,
    prefix: Padded | None = None,
    mask: Tensor | None = None,
    longest: int | None = None,
    seeds: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """What the model outputs: for each source at least one hypothesis, the best first.

    `state` has R rows: `beam_rows(settings)` for each source, side by side. So has what `step` knows of the sources,
    which never moves; only the state is reordered, and only among the rows of one source. `prefix`, R rows, is what
    each hypothesis must begin with, whatever the settings say. `mask`, (R, S), is True where a source position is
    real; where it is absent, all are. Only the coverage penalty needs it. `longest` replaces `max_length` where the
    source decides. `seeds`, one for each source, are those of sampling: what is drawn for a source depends on its own
    seed and on nothing else in the batch.

    >>> from sixjars.flow.values import State, StepOutput
    >>> def count(token: Tensor, state: State) -> tuple[StepOutput, State]:
    ...     return StepOutput(torch.eye(6)[token + 1].log()), state
    >>> search(count, State(torch.zeros(1, 1, 1)), SearchSettings(), SpecialTokens(go=0, stop=5))[0][0].tokens
    (1, 2, 3, 4)
    """
    rows = state.rows
    _check_rows(rows, settings, prefix=prefix, mask=mask)
    if rows == 0:
        return []
    with torch.inference_mode():
        problem = Problem(
            step=step,
            state=state,
            longest=longest or settings.max_length,
            seeds=_seeds(settings, rows, seeds).to(state.device),
            settings=settings,
            special=special,
            rule=rule_of(settings, special, prefix=prefix, device=state.device),
            ranking=Ranking(settings.length_penalty, settings.coverage_penalty, mask),
        )
        return KINDS[settings.kind](problem)


def _seeds(settings: SearchSettings, rows: int, seeds: Sequence[int] | None) -> Tensor:
    """One for each row, (R,): each source has its own, and each of its rows another.

    Hashed at every level: numbers that were added or combined by XOR alone would make seed 1 of source 0 the same as
    seed 0 of source 1, or give a row the draws of its neighbour, a step later.
    """
    count = beam_rows(settings)
    own_B = torch.tensor(range(rows // count) if seeds is None else seeds, dtype=torch.int64)
    source_B = hashed(hashed(torch.tensor(settings.seed)) ^ own_B)
    return hashed(source_B.repeat_interleave(count) ^ (torch.arange(rows) % count))


def hashed(numbers: Tensor) -> Tensor:
    """Well mixed 64-bit numbers of any others: splitmix64 (Steele, Lea & Flood 2014, doi 10.1145/2660193.2660195).

    A random number that is a hash of seed, step and token needs no generator, so it depends neither on what else is
    drawn in a batch, nor on the device.
    """
    mixed = numbers + _wrapped(0x9E3779B97F4A7C15)
    mixed = (mixed ^ _shifted(mixed, 30)) * _wrapped(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ _shifted(mixed, 27)) * _wrapped(0x94D049BB133111EB)
    return mixed ^ _shifted(mixed, 31)


def _wrapped(number: int) -> int:
    """An unsigned 64-bit number as torch has it."""
    return number - (1 << 64) if number >> 63 else number


def _shifted(numbers: Tensor, by: int) -> Tensor:
    """To the right, zeros coming in from the left: torch's own shift brings copies of the sign."""
    return (numbers >> by) & ((1 << (64 - by)) - 1)


def _check_rows(rows: int, settings: SearchSettings, *, prefix: Padded | None, mask: Tensor | None) -> None:
    count = beam_rows(settings)
    if rows % count:
        raise ShapeError(
            f"search of kind {settings.kind} needs {count} rows for each source, side by side, but got {rows} rows in "
            "all. Repeat the state, and what the step knows, by beam_rows(settings)."
        )
    given = {"prefix": None if prefix is None else prefix.values, "mask": mask}
    for name, tensor in given.items():
        if tensor is not None and tensor.shape[0] != rows:
            raise ShapeError(
                f"the {name} has {tensor.shape[0]} rows, but the state has {rows}. "
                f"Repeat the {name} by beam_rows(settings) too."
            )


def greedy(problem: Problem) -> list[list[Hypothesis]]:
    r"""One hypothesis for each source: at every step the most probable token.

    .. math:: \hat y_t = \arg\max_v P(v | \hat y_1 .. \hat y_{t-1}, x)
    """
    return _row_by_row(problem, lambda allowed_RV, _: allowed_RV.argmax(dim=1), rows=1)


def sample(problem: Problem) -> list[list[Hypothesis]]:
    """As many draws for each source as `nbest` says, the most probable first; two may be the same."""
    settings = problem.settings

    def choose(allowed_RV: Tensor, step: int) -> Tensor:
        scores_RV = allowed_RV / settings.temperature
        if settings.top_k or settings.top_p < 1.0:
            scores_RV = likely(scores_RV, top_k=settings.top_k, top_p=settings.top_p)
        return draw(scores_RV, problem.seeds, step)

    found = _row_by_row(problem, choose, rows=settings.nbest)
    return [sorted(drawn, key=lambda each: each.log_probability, reverse=True) for drawn in found]


def likely(scores: Tensor, *, top_k: int, top_p: float) -> Tensor:
    """The same scores, (R, V), with -inf for the tokens that may not be drawn.

    The `top_k` best may (0: all). Of these, with their probabilities made to sum to 1, the fewest whose sum is at
    least `top_p` (Holtzman et al. 2020, https://arxiv.org/abs/1904.09751).

    >>> likely(torch.tensor([[0.2, 0.5, 0.3]]).log(), top_k=0, top_p=0.6).exp()
    tensor([[0.0000, 0.5000, 0.3000]])
    """
    scores_RK, tokens_RK = scores.topk(min(top_k or scores.shape[1], scores.shape[1]), dim=1)
    if top_p < 1.0:
        shares_RK = scores_RK.softmax(dim=1)
        before_RK = shares_RK.cumsum(dim=1) - shares_RK
        scores_RK = scores_RK.masked_fill(before_RK >= top_p, NEVER)
    return torch.full_like(scores, NEVER).scatter(1, tokens_RK, scores_RK)


def draw(scores: Tensor, seeds: Tensor, step: int) -> Tensor:
    r"""A token for each row, (R,), drawn with the probabilities softmax(scores) by the seed of that row.

    .. math:: \arg\max_v (s_v - \log E_v), \quad E_v = -\log U_v \sim \mathrm{Exponential}(1)

    is such a draw (the Gumbel-max trick: Maddison, Tarlow & Minka 2014, https://arxiv.org/abs/1411.0030).
    It needs no sum, so a row in which everything is forbidden does no harm.
    """
    tokens_V = torch.arange(scores.shape[1], device=scores.device)
    bits_RV = hashed(hashed(seeds + step).unsqueeze(1) ^ tokens_V)
    uniform_RV = (_shifted(bits_RV, 12).double() + 0.5) * 2.0**-52  # exact, and neither 0 nor 1
    return (scores.double() - (-uniform_RV.log()).log()).argmax(dim=1)


def _row_by_row(problem: Problem, choose: Callable[[Tensor, int], Tensor], *, rows: int) -> list[list[Hypothesis]]:
    """One hypothesis for each row, `rows` for each source, in their order.

    `choose` picks one token for each row, (R,), from log probabilities (R, V) and the number of the step. A row ends
    with `<stop>`, at the limit, or where no token may follow; only the first is finished.
    """
    stop, ranking, state = problem.special.stop, problem.ranking, problem.state
    token_R, output_Rt = problem.first()
    open_R = torch.ones_like(token_R, dtype=torch.bool)
    finished_R, count_R, total_R = ~open_R, torch.zeros_like(token_R), torch.zeros((), device=token_R.device)
    covered_RS, weights = None, []
    for step in range(problem.longest):
        # Rows that have ended are computed with the others, since a batch keeps its shape, but add to nothing.
        allowed_RV, weights_RS, state = problem.step_on(token_R, state, output_Rt)
        token_R = choose(allowed_RV, step)
        gained_R = allowed_RV.gather(1, token_R.unsqueeze(1)).squeeze(1)
        open_R = open_R & (gained_R > NEVER)
        covered_RS = ranking.covered(covered_RS, weights_RS, open_R)
        total_R = total_R + torch.where(open_R, gained_R, 0.0)
        finished_R = finished_R | (open_R & (token_R == stop))
        open_R = open_R & ~finished_R
        count_R = count_R + open_R
        output_Rt = torch.cat([output_Rt, token_R.unsqueeze(1)], dim=1)
        weights += [] if weights_RS is None else [weights_RS]
        if not bool(open_R.any()):
            break
    score_R = ranking.scores(total_R, count_R + finished_R, ranking.penalty(covered_RS))
    weights_RTS = torch.stack(weights, dim=1) if weights else None
    return hypotheses_of(output_Rt, score_R, total_R, count_R, finished_R, weights_RTS, rows)


KINDS: Mapping[str, Callable[[Problem], list[list[Hypothesis]]]] = {"greedy": greedy, "sample": sample, "beam": beam}
