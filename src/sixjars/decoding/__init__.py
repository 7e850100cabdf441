"""Search: from one step function to hypotheses, greedily, by sampling or by a beam. It imports no model.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions,
      T all tokens, t tokens output so far.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from typing import Self, final

import torch
from torch import Tensor

from sixjars.decoding.beam import BEAM
from sixjars.decoding.memory import check_memory
from sixjars.decoding.problem import (
    Column,
    Part,
    Problem,
    SearchKind,
    Tell,
    Walk,
    check_rows,
    hypotheses_of,
    placed,
    walked,
)
from sixjars.decoding.sampling import draw, likely, row_seeds
from sixjars.decoding.scores import NEVER, Ranking, best_tokens
from sixjars.flow.contracts import Generator
from sixjars.flow.searching import Hypothesis, SpecialTokens, Step
from sixjars.flow.values import Padded, Prepared, Rows
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.memory import MANY


def beam_rows(settings: SearchSettings) -> int:
    """How many rows of each source search needs, side by side.

    >>> beam_rows(SearchSettings(kind="beam", width=4, nbest=2))
    4
    """
    return {"greedy": 1, "sample": settings.nbest, "beam": settings.width}[settings.kind]


def in_words(settings: SearchSettings) -> str:
    """A search in words.

    >>> in_words(SearchSettings()), in_words(SearchSettings(kind="beam", width=4))
    ('greedy search', 'beam search of width 4')
    """
    kinds = {
        "greedy": "greedy search",
        "sample": "sampling",
        "beam": f"beam search of width {settings.width}",
    }
    return kinds[settings.kind]


@final
@dataclass(frozen=True)
class Searcher:
    """The search that settings describe, as a decoder is given it; `seeds` has one for each source of a batch."""

    settings: SearchSettings
    seeds: Sequence[int] = ()
    attention: bool = True
    """Whether hypotheses keep their weights: plain numbers of all of them take longer than to search."""
    sources: int | None = None
    """How many sources of a batch to search: those behind them only pad it, and have no hypothesis."""
    tell: Tell | None = None
    """Called with what each step made, as it is made; then there are no CUDA graphs."""

    def find(
        self,
        generator: Generator,
        state: Rows,
        prepared: Prepared,
        *,
        longest: int | None = None,
        prefix: Padded | None = None,
    ) -> list[list[Hypothesis]]:
        """For each source at least one hypothesis, the best first; see `search`.

        What is prepared for a source is not copied for each of its rows, unless the generator needs that.
        """
        settings = self.settings
        rows = beam_rows(settings)
        if state.rows * rows >= MANY:
            steps, beams = longest or settings.max_length, settings.kind == "beam"
            check_memory(
                generator,
                state,
                prepared,
                keeps_weights=self.attention,
                rows=rows,
                steps=steps,
                beam=beams,
            )
        problem = Problem(
            step=generator.step,
            state=state.repeat(rows),
            prepared=prepared if generator.grouped else prepared.repeat(rows),
            longest=longest or settings.max_length,
            rows=rows,
            settings=settings,
            special=generator.special,
            ranking=ranking_of(settings, prepared.mask, rows),
            seeds=_seeds(settings, state.rows, self.seeds or None),
            prefix=None if prefix is None else prefix.repeat(rows),
            real=self.sources,
            owns_scores=generator.grouped,
            keeps_weights=self.attention,
        )
        if self.tell is not None:
            return _found(problem, partial(walked, tell=self.tell))
        if problem.state.device.type != "cuda":
            return _found(problem, walked)
        from sixjars.decoding.capture import can_capture, walked_captured

        return _found(
            problem,
            partial(walked_captured, generator) if can_capture(generator, problem) else walked,
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
    rows = beam_rows(settings)
    check_rows(state.rows, settings.kind, rows, prefix=prefix, mask=mask)
    problem = Problem(
        step=lambda token, state, _: step(token, state),
        state=state,
        prepared=None,
        longest=longest or settings.max_length,
        rows=rows,
        settings=settings,
        special=special,
        ranking=ranking_of(settings, mask, 1),
        seeds=_seeds(settings, state.rows // rows, seeds),
        prefix=prefix,
    )
    return _found(problem, walked)


def ranking_of(settings: SearchSettings, mask: Tensor | None, rows: int) -> Ranking:
    """The ranking of search with so many rows for each row of the mask (B, S), which only a coverage penalty reads."""
    mask_RS = (
        mask.repeat_interleave(rows, dim=0)
        if mask is not None and settings.coverage_penalty
        else None
    )
    return Ranking(settings.length_penalty, settings.coverage_penalty, mask_RS)


def _seeds(settings: SearchSettings, sources: int, seeds: Sequence[int] | None) -> Tensor | None:
    """Of sampling, one for each row; where none are given, a source's is its place."""
    if settings.kind != "sample":
        return None
    return row_seeds(settings.seed, range(sources) if seeds is None else seeds, beam_rows(settings))


def _found(problem: Problem, walk: Walk) -> list[list[Hypothesis]]:
    if problem.state.rows == 0:
        return []
    kind, problem = KINDS[problem.settings.kind], problem.on_device()
    with torch.inference_mode():
        return kind.found(problem, walk(problem, kind.begun(problem), kind.advanced))[
            : problem.real
        ]


def _likeliest(
    problem: Problem, model_RV: Tensor, output: Tensor | None, made: int | Tensor
) -> tuple[Tensor, Tensor]:
    r"""Greedy search: at every step the most probable token.

    .. math:: \hat y_t = \arg\max_v P(v | \hat y_1 .. \hat y_{t-1}, x)
    """
    gained_R1, token_R1 = best_tokens(problem.allowed(model_RV, output, made), 1)
    return token_R1.squeeze(1), gained_R1.squeeze(1)


def _drawn(
    problem: Problem, model_RV: Tensor, output: Tensor | None, made: int | Tensor
) -> tuple[Tensor, Tensor]:
    allowed_RV = problem.allowed(model_RV, output, made)
    settings, scores_RV, tokens_RV = (
        problem.settings,
        allowed_RV / problem.settings.temperature,
        None,
    )
    assert problem.seeds is not None
    if settings.top_k or settings.top_p < 1.0:
        scores_RV, tokens_RV = likely(scores_RV, top_k=settings.top_k, top_p=settings.top_p)
    token_R = draw(scores_RV, problem.seeds, made, tokens_RV)
    return token_R, allowed_RV.gather(1, token_R.unsqueeze(1)).squeeze(1)


@final
@dataclass(frozen=True)
class RowsRunning(Rows):
    """What greedy search and sampling know between two steps."""

    token: Tensor
    state: Rows
    open: Tensor
    """Whether a row goes on, (R,)."""
    total: Tensor
    """The log probability of all its tokens, (R,)."""
    output: Tensor | None
    """All tokens so far, (R, t), where a rule reads them."""
    each: int
    """Rows of a source."""

    @classmethod
    def begun(cls, problem: Problem) -> Self:
        """`<go>` in every row."""
        token_R = problem.first()
        output_Rt = token_R.new_empty(token_R.shape[0], 0) if problem.reads_output else None
        total_R = torch.zeros(token_R.shape[0], device=token_R.device)
        return cls(token_R, problem.state, problem.is_real(), total_R, output_Rt, problem.rows)

    def going(self) -> Tensor:
        """Sources with an open row."""
        return self.open.view(-1, self.each).any(1)

    def kept(self, sources: Tensor, rows: Tensor) -> "RowsRunning":
        """Those rows."""
        return self.pick(rows)


Choose = Callable[[Problem, Tensor, Tensor | None, int | Tensor], tuple[Tensor, Tensor]]
"""A token for each row that no rule forbids and its log probability, (R,) each; from the model's log probabilities
(R, V), what was output (R, t) where a rule reads it, and the number of the step."""


def _advanced(
    choose: Choose, problem: Problem, running: RowsRunning, made: int | Tensor
) -> tuple[RowsRunning, Column]:
    """One step of every row.

    A row ends with `<stop>`, at the limit, or where no token may follow; only the first is finished. Rows that have
    ended are computed with the others, since a batch keeps its shape, but add to nothing.
    """
    scored, state = problem.stepped(running.token, running.state)
    token_R, gained_R = choose(problem, scored.log_probabilities, running.output, made)
    goes_R = running.open & (gained_R > NEVER)
    if isinstance(made, Tensor):  # a graph has several steps, and may go beyond the last
        goes_R &= made < problem.longest
    # One after the other: the rounding of a sum of all depends on their number, and that on the other rows.
    total_R = running.total + torch.where(goes_R, gained_R, 0.0)
    open_R = goes_R & (token_R != problem.special.stop)
    output_Rt = (
        None if running.output is None else torch.cat([running.output, token_R.unsqueeze(1)], dim=1)
    )
    after = RowsRunning(token_R, state, open_R, total_R, output_Rt, running.each)
    return after, Column(token_R, weights=scored.weights, gained=gained_R)


def _advanced_greedily(
    problem: Problem, running: RowsRunning, made: int | Tensor
) -> tuple[RowsRunning, Column]:
    """As `_advanced`; in a CUDA graph, which has no other rules (`can_capture`), all after the model is one kernel."""
    if not isinstance(made, Tensor) or not made.is_cuda or find_spec("triton") is None:
        return _advanced(_likeliest, problem, running, made)
    from sixjars.decoding.choice_kernels import chosen

    scored, state = problem.stepped(running.token, running.state)
    token_R, gained_R, open_R, total_R = chosen(problem, scored, running.open, running.total, made)
    after = RowsRunning(token_R, state, open_R, total_R, None, running.each)
    return after, Column(token_R, weights=scored.weights, gained=gained_R)


def _gathered(problem: Problem, parts: Sequence[Part]) -> list[list[Hypothesis]]:
    """The hypotheses of all rows, in their order, from the parts of the search that each was in."""
    problem = replace(problem, ranking=problem.ranking.to("cpu"))
    parts = [replace(part, places=part.places.cpu()) for part in parts]
    made = [part.made().to("cpu") for part in parts]  # first of all: many small operations follow
    total_R = parts[0].running.total.cpu()
    for part in parts[1:]:
        total_R = total_R.index_copy(0, part.places, part.running.total.cpu())
    weights_RTS = None if made[0].weights is None else placed(parts, [one.weights for one in made])
    tokens_RT, gained_RT = (
        placed(parts, [getattr(one, name) for one in made]) for name in ("token", "gained")
    )
    return hypotheses_of(
        *row_ends(problem, tokens_RT, gained_RT, total_R, weights_RTS), weights_RTS, problem.rows
    )


def row_ends(
    problem: Problem,
    tokens_RT: Tensor,
    gained_RT: Tensor,
    total_R: Tensor,
    weights_RTS: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The tokens of each row, its score and log probability, how many of them count, and whether it is finished."""
    ranking, attended_RS = problem.ranking, None
    possible_RT, stops_RT = gained_RT > NEVER, tokens_RT == problem.special.stop
    ends_RT = (stops_RT | ~possible_RT).long()
    own_RT = possible_RT & (
        ends_RT.cumsum(1) == ends_RT
    )  # nothing ended before: a token of its own, or `<stop>`
    finished_R, count_R = (own_RT & stops_RT).any(1), (own_RT & ~stops_RT).sum(1)
    if weights_RTS is not None and ranking.coverage_penalty:
        attended_RS = (weights_RTS * own_RT.unsqueeze(2)).cumsum(1)[:, -1]
    score_R = ranking.scores(
        total_R, count_R + finished_R, ranking.penalty(ranking.covered(None, attended_RS))
    )
    return tokens_RT, score_R, total_R, count_R, finished_R


def _ranked(problem: Problem, parts: Sequence[Part]) -> list[list[Hypothesis]]:
    """As many draws for each source as `nbest` says, the most probable first; two may be the same."""
    found = _gathered(problem, parts)
    return [sorted(drawn, key=lambda each: each.log_probability, reverse=True) for drawn in found]


KINDS: Mapping[str, SearchKind] = {
    "greedy": SearchKind(RowsRunning.begun, _advanced_greedily, _gathered),
    "sample": SearchKind(RowsRunning.begun, partial(_advanced, _drawn), _ranked),
    "beam": BEAM,
}
