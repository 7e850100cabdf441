"""Search: greedy, by sampling or with a beam, over one step function; it imports no model.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions,
      T all tokens, t tokens output so far.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, final

import torch
from torch import Tensor

from sixjars.decoding.beam import BEAM
from sixjars.decoding.memory import check_memory
from sixjars.decoding.problem import (
    SearchKind,
    SearchPart,
    SearchProblem,
    SearchStep,
    Tell,
    Walk,
    check_rows,
    hypotheses_of,
    placed,
    walked,
)
from sixjars.decoding.sampling import draw, likely, row_seeds
from sixjars.decoding.scores import NEVER, HypothesisScoring, best_tokens
from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Generator
from sixjars.flow.searching import Hypothesis, Step
from sixjars.flow.values import Padded, Prepared, Rows, StepOutput
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.memory import MANY
from sixjars_runtime.special_tokens import SpecialTokens


def beam_rows(settings: SearchSettings) -> int:
    """The number of rows that search needs for each source, side by side.

    >>> beam_rows(SearchSettings(kind="beam", width=4, nbest=2))
    4
    """
    return {"greedy": 1, "sample": settings.nbest, "beam": settings.width}[settings.kind]


def in_words(settings: SearchSettings) -> str:
    """The name of a search for a person.

    >>> in_words(SearchSettings()), in_words(SearchSettings(kind="beam", width=4))
    ('greedy search', 'beam search of width 4')
    """
    if settings.kind == "beam":
        return f"beam search of width {settings.width}"
    return {"greedy": "greedy search", "sample": "sampling"}[settings.kind]


@final
@dataclass(frozen=True)
class Searcher:
    """The search of these settings for a decoder; `seeds` has one for each source of a batch."""

    settings: SearchSettings
    seeds: Sequence[int] = ()
    attention: bool = True
    """Whether hypotheses keep their weights; to convert them takes longer than to search."""
    sources: int | None = None
    """The number of sources to search; those behind them are padding, without hypotheses."""
    tell: Tell | None = None
    """Called with the output of each step at once; search then uses no CUDA graphs."""
    backend: Backend | None = None
    """Chooses the next tokens, where it has a way of its own."""

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

        The prepared sources are not copied for each row, unless the generator needs that.
        """
        settings = self.settings
        rows = beam_rows(settings)
        longest = longest or settings.max_length
        if state.rows * rows >= MANY:
            size: dict[str, Any] = {"rows": rows, "steps": longest, "beam": settings.kind == "beam"}
            check_memory(generator, state, prepared, keeps_weights=self.attention, **size)
        problem = SearchProblem(
            step=generator.step,
            state=state.repeat(rows),
            prepared=prepared if generator.grouped else prepared.repeat(rows),
            longest=longest,
            rows=rows,
            settings=settings,
            special=generator.special,
            ranking=ranking_of(settings, prepared.mask, rows),
            seeds=_seeds(settings, state.rows, self.seeds or None),
            prefix=None if prefix is None else prefix.repeat(rows),
            real=self.sources,
            owns_scores=generator.grouped,
            keeps_weights=self.attention,
            backend=self.backend,
        )
        walk: Walk = walked
        if self.tell is not None:
            walk = partial(walked, tell=self.tell)
        elif problem.state.device.type == "cuda":
            from sixjars.decoding.capture import can_capture, walked_captured

            if can_capture(generator, problem):
                walk = partial(walked_captured, generator)
        return _found(problem, walk)


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
    """The hypotheses of each source, at least one, the best first.

    `state` has R rows: `beam_rows(settings)` for each source, side by side. So has everything that
    `step` knows of the sources; only the state is reordered, and only among the rows of one source.
    `prefix`, R rows, is the beginning of each hypothesis, whatever the settings say. `mask`,
    (R, S), is True where a source position is real; only the coverage penalty needs it. `longest`
    replaces `max_length` where the source decides. `seeds` of sampling, one for each source, make
    its draws independent of the rest of the batch.

    >>> from sixjars.flow.values import State, StepOutput
    >>> def count(token: Tensor, state: State) -> tuple[StepOutput, State]:
    ...     return StepOutput(torch.eye(6)[token + 1].log()), state
    >>> state, special = State(torch.zeros(1, 1, 1)), SpecialTokens(go=0, stop=5)
    >>> search(count, state, SearchSettings(), special)[0][0].tokens
    (1, 2, 3, 4)
    """
    rows = beam_rows(settings)
    check_rows(state.rows, settings.kind, rows, prefix=prefix, mask=mask)
    problem = SearchProblem(
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


def ranking_of(settings: SearchSettings, mask: Tensor | None, rows: int) -> HypothesisScoring:
    """The ranking, with `rows` rows for each row of the mask (B, S), if a penalty reads it."""
    if mask is not None:
        mask = mask.repeat_interleave(rows, dim=0) if settings.coverage_penalty else None
    return HypothesisScoring(settings.length_penalty, settings.coverage_penalty, mask)


def _seeds(settings: SearchSettings, sources: int, seeds: Sequence[int] | None) -> Tensor | None:
    """The seeds of sampling, one for each row; by default from the place of the source."""
    if settings.kind != "sample":
        return None
    return row_seeds(settings.seed, range(sources) if seeds is None else seeds, beam_rows(settings))


def _found(problem: SearchProblem, walk: Walk) -> list[list[Hypothesis]]:
    if problem.state.rows == 0:
        return []
    kind = KINDS[problem.settings.kind]
    problem = problem.on_device()
    with torch.inference_mode():
        parts = walk(problem, kind.begun(problem), kind.advanced)
        return kind.found(problem, parts)[: problem.real]


def _likeliest(
    problem: SearchProblem, model_RV: Tensor, output: Tensor | None, steps: int | Tensor
) -> tuple[Tensor, Tensor]:
    r"""Greedy search: at every step the most probable token.

    .. math:: \hat y_t = \arg\max_v P(v | \hat y_1 .. \hat y_{t-1}, x)
    """
    gained_R1, token_R1 = best_tokens(problem.allowed(model_RV, output, steps), 1)
    return token_R1.squeeze(1), gained_R1.squeeze(1)


def _drawn(
    problem: SearchProblem, model_RV: Tensor, output: Tensor | None, steps: int | Tensor
) -> tuple[Tensor, Tensor]:
    allowed_RV = problem.allowed(model_RV, output, steps)
    assert problem.seeds is not None
    settings = problem.settings
    scores_RV, tokens_RV = allowed_RV / settings.temperature, None
    if settings.top_k or settings.top_p < 1.0:
        scores_RV, tokens_RV = likely(scores_RV, top_k=settings.top_k, top_p=settings.top_p)
    token_R = draw(scores_RV, problem.seeds, steps, tokens_RV)
    return token_R, allowed_RV.gather(1, token_R.unsqueeze(1)).squeeze(1)


@final
@dataclass(frozen=True)
class RowsRunning(Rows):
    """The rows of greedy search and sampling between two steps."""

    token: Tensor
    state: Rows
    open: Tensor
    """Whether a row continues, (R,)."""
    total: Tensor
    """The log probability of all its tokens, (R,)."""
    output: Tensor | None
    """All tokens so far, (R, t), where a rule reads them."""
    each: int
    """Rows of a source."""

    @classmethod
    def begun(cls, problem: SearchProblem) -> Self:
        """`<go>` in every row."""
        token_R = problem.first()
        output_Rt = token_R.new_empty(token_R.shape[0], 0) if problem.reads_output else None
        total_R = torch.zeros(token_R.shape[0], device=token_R.device)
        return cls(token_R, problem.state, problem.is_real(), total_R, output_Rt, problem.rows)

    def going(self) -> Tensor:
        """Whether a source has an open row, (B,)."""
        return self.open.view(-1, self.each).any(1)

    def kept(self, sources: Tensor, rows: Tensor) -> "RowsRunning":
        """The given rows."""
        return self.pick(rows)


Choose = Callable[[SearchProblem, Tensor, Tensor | None, int | Tensor], tuple[Tensor, Tensor]]
"""Chooses a token for each row that no rule forbids; returns it and its log probability, (R,) each.

It receives the model's log probabilities (R, V), the output so far (R, t) where a rule reads it,
and the number of the step."""


def _advanced(
    choose: Choose, problem: SearchProblem, running: RowsRunning, steps: int | Tensor
) -> tuple[RowsRunning, SearchStep]:
    """One step of every row.

    A row ends with `<stop>`, at the limit, or where no token may follow; only the first is
    finished. Rows that have ended are computed with the others, but add to nothing.
    """
    scored, state = problem.stepped(running.token, running.state)
    return _chosen(choose, problem, running, steps, scored, state)


def _chosen(
    choose: Choose,
    problem: SearchProblem,
    running: RowsRunning,
    steps: int | Tensor,
    scored: StepOutput,
    state: Rows,
) -> tuple[RowsRunning, SearchStep]:
    """The rows after a step of the model, by the tokens that are chosen."""
    token_R, gained_R = choose(problem, scored.log_probabilities, running.output, steps)
    goes_R = running.open & (gained_R > NEVER)
    if isinstance(steps, Tensor):  # a graph has several steps, and may go beyond the last
        goes_R &= steps < problem.longest
    # Step by step: one sum of all would be rounded by their number, which other rows decide.
    total_R = running.total + torch.where(goes_R, gained_R, 0.0)
    open_R = goes_R & (token_R != problem.special.stop)
    output_Rt = running.output
    if output_Rt is not None:
        output_Rt = torch.cat([output_Rt, token_R.unsqueeze(1)], dim=1)
    after = RowsRunning(token_R, state, open_R, total_R, output_Rt, running.each)
    return after, SearchStep(token_R, weights=scored.weights, gained=gained_R)


def _advanced_greedily(
    problem: SearchProblem, running: RowsRunning, steps: int | Tensor
) -> tuple[RowsRunning, SearchStep]:
    """As `_advanced`; in a CUDA graph, which has no other rules (`can_capture`), by the backend."""
    if problem.backend is None or not isinstance(steps, Tensor) or not steps.is_cuda:
        return _advanced(_likeliest, problem, running, steps)
    scored, state = problem.stepped(running.token, running.state)
    choice = problem.backend.choose(
        scored, problem.choice_rules, running.open, running.total, steps
    )
    if choice is None:
        return _chosen(_likeliest, problem, running, steps, scored, state)
    token_R, gained_R, open_R, total_R = choice
    after = RowsRunning(token_R, state, open_R, total_R, None, running.each)
    return after, SearchStep(token_R, weights=scored.weights, gained=gained_R)


def _gathered(problem: SearchProblem, parts: Sequence[SearchPart]) -> list[list[Hypothesis]]:
    """The hypotheses of all rows, in order, from the parts of the search."""
    problem = replace(problem, ranking=problem.ranking.to("cpu"))
    parts = [replace(part, places=part.places.cpu()) for part in parts]
    columns = [part.made().to("cpu") for part in parts]  # before many small operations
    total_R = parts[0].running.total.cpu()
    for part in parts[1:]:
        total_R = total_R.index_copy(0, part.places, part.running.total.cpu())
    weights_RTS = None
    if columns[0].weights is not None:
        weights_RTS = placed(parts, [column.weights for column in columns])
    tokens_RT = placed(parts, [column.token for column in columns])
    gained_RT = placed(parts, [column.gained for column in columns])
    ends = row_ends(problem, tokens_RT, gained_RT, total_R, weights_RTS)
    return hypotheses_of(*ends, weights_RTS, problem.rows)


def row_ends(
    problem: SearchProblem,
    tokens_RT: Tensor,
    gained_RT: Tensor,
    total_R: Tensor,
    weights_RTS: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Of each row: tokens, score, log probability, number of tokens, whether it is finished."""
    ranking, attended_RS = problem.ranking, None
    possible_RT = gained_RT > NEVER
    stops_RT = tokens_RT == problem.special.stop
    ends_RT = (stops_RT | ~possible_RT).long()
    own_RT = possible_RT & (ends_RT.cumsum(1) == ends_RT)  # a token or `<stop>`, no end before
    finished_R = (own_RT & stops_RT).any(1)
    count_R = (own_RT & ~stops_RT).sum(1)
    if weights_RTS is not None and ranking.coverage_penalty:
        attended_RS = (weights_RTS * own_RT.unsqueeze(2)).cumsum(1)[:, -1]
    penalty_R = ranking.penalty(ranking.covered(None, attended_RS))
    score_R = ranking.scores(total_R, count_R + finished_R, penalty_R)
    return tokens_RT, score_R, total_R, count_R, finished_R


def _ranked(problem: SearchProblem, parts: Sequence[SearchPart]) -> list[list[Hypothesis]]:
    """The `nbest` draws of each source, the most probable first; two may be the same."""
    draws = _gathered(problem, parts)
    return [sorted(each, key=lambda draw: draw.log_probability, reverse=True) for each in draws]


KINDS: Mapping[str, SearchKind] = {
    "greedy": SearchKind(RowsRunning.begun, _advanced_greedily, _gathered),
    "sample": SearchKind(RowsRunning.begun, partial(_advanced, _drawn), _ranked),
    "beam": BEAM,
}
