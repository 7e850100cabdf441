"""The batch that is searched, and the loop over its steps, for every kind of search.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions,
      t tokens output so far.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar, final

import torch
from torch import Tensor

from sixjars.decoding.scores import NEVER, HypothesisScoring, Rule, rule_of
from sixjars.flow.backend import Backend, ChoiceRules
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Padded, Prepared, Rows, StepOutput, Tensors
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.errors import ShapeError
from sixjars_runtime.special_tokens import SpecialTokens

ModelStep = Callable[[Tensor, Any, Any], tuple[StepOutput, Any]]
"""A token for each row (R,), a state and the prepared sources -> scores and the state after it."""


@final
@dataclass(frozen=True)
class SearchProblem:
    """One batch to search."""

    step: ModelStep
    state: Rows
    prepared: Prepared | None
    """The prepared sources, one row for each or for each row; None where `step` has its own."""
    longest: int
    """The most tokens of an output, `<stop>` included."""
    rows: int
    """N, the number of rows of each source."""
    settings: SearchSettings
    special: SpecialTokens
    ranking: HypothesisScoring
    real: int | None = None
    """The number of sources that are searched, all by default; those behind them are empty."""
    owns_scores: bool = False
    """Whether the scores that a step returns may be overwritten."""
    keeps_weights: bool = True
    """Whether hypotheses have attention weights, where the model has any."""
    seeds: Tensor | None = None
    """The seeds of sampling, (R,)."""
    prefix: Padded | None = None
    """The beginning that each row must have."""
    backend: Backend | None = None
    """Chooses the next tokens, where it has a way of its own."""

    def on_device(self) -> "SearchProblem":
        """The same problem with all tensors on the device of the state."""
        device = self.state.device
        return replace(
            self,
            seeds=None if self.seeds is None else self.seeds.to(device),
            prefix=None if self.prefix is None else self.prefix.to(device),
        )

    @cached_property
    def rule(self) -> Rule:
        """The rule of which tokens may not be output next."""
        return rule_of(
            self.settings,
            self.special,
            prefix=self.prefix,
            device=self.state.device,
            overwrite=self.owns_scores,
        )

    @cached_property
    def choice_rules(self) -> ChoiceRules:
        """The rules of greedy search, for a backend that has them itself."""
        never = torch.tensor(self.special.never(self.settings.unknown), device=self.state.device)
        settings = self.settings
        return ChoiceRules(never, self.special.stop, settings.min_length, self.longest)

    @property
    def reads_output(self) -> bool:
        """Whether a rule reads the output, and not only its length."""
        return self.settings.no_repeat_ngram > 0

    def first(self) -> Tensor:
        """`<go>` in every row, (R,)."""
        go = self.special.go
        return torch.full((self.state.rows,), go, dtype=torch.long, device=self.state.device)

    def step_on(
        self, token: Tensor, state: Rows, output: Tensor | None, steps: int | Tensor
    ) -> tuple[Tensor, Tensor | None, Rows]:
        """One step: log probabilities of the next token (R, V), weights (R, S), the state.

        `output` is that of `steps` steps, (R, t), where a rule reads it.
        """
        scored, state = self.stepped(token, state)
        return self.allowed(scored.log_probabilities, output, steps), scored.weights, state

    def stepped(self, token: Tensor, state: Rows) -> tuple[StepOutput, Rows]:
        """One step without rules: the output, with weights where they are kept, and the state."""
        scored, state = self.step(token, state, self.prepared)
        keeps = self.keeps_weights or self.ranking.coverage_penalty
        return (scored if keeps else StepOutput(scored.scores, are_logits=scored.are_logits)), state

    def allowed(self, scores: Tensor, output: Tensor | None, steps: int | Tensor) -> Tensor:
        """Scores (R, V) with -inf where a rule forbids a token."""
        if output is None:
            output = scores.new_empty(scores.shape[0], 0, dtype=torch.long)
        return self.rule(scores, output, steps)

    def is_real(self) -> Tensor:
        """Whether a row is of a source that is searched, (R,)."""
        rows_R = torch.arange(self.state.rows, device=self.state.device)
        return rows_R < (self.state.rows if self.real is None else self.real * self.rows)

    def rows_of(self, sources: Tensor) -> Tensor:
        """The rows of some sources, (B,) -> (R,)."""
        each_N = torch.arange(self.rows, device=sources.device)
        return (sources.unsqueeze(1) * self.rows + each_N).flatten()

    def pick(self, sources: Tensor) -> "SearchProblem":
        """The problem of some of its sources."""
        assert self.prepared is not None
        rows, mask = self.rows_of(sources), self.ranking.mask
        by_source = self.prepared.rows * self.rows == self.state.rows
        mask = None if mask is None else mask.index_select(0, rows)
        return replace(
            self,
            prepared=self.prepared.pick(sources if by_source else rows),
            state=self.state.pick(rows),
            seeds=None if self.seeds is None else self.seeds.index_select(0, rows),
            prefix=None if self.prefix is None else self.prefix.pick(rows),
            ranking=replace(self.ranking, mask=mask),
        )


def check_rows(
    rows: int, kind: str, count: int, *, prefix: Padded | None, mask: Tensor | None
) -> None:
    """Refuse rows that are not `count` for each source, or whose number differs from a tensor's."""
    if rows % count:
        raise ShapeError(
            f"search of kind {kind} needs {count} rows for each source, side by side, but got "
            f"{rows} rows in all. Repeat the state, and what the step knows, by "
            "beam_rows(settings)."
        )
    tensors = {"prefix": None if prefix is None else prefix.values, "mask": mask}
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape[0] != rows:
            raise ShapeError(
                f"the {name} has {tensor.shape[0]} rows, but the state has {rows}. "
                f"Repeat the {name} by beam_rows(settings) too."
            )


Kind = TypeVar("Kind", bound=Tensors)


def filled(value: Kind, tensors: Iterable[Tensor]) -> Kind:
    """The same value with other tensors, in their order."""
    new = iter(tensors)
    return value.mapped(lambda _: next(new))


@final
@dataclass(frozen=True)
class SearchStep(Rows):
    """The output of one step."""

    token: Tensor
    """The token of each row, (R,)."""
    parent: Tensor | None = None
    """The row of the step before that each row continues, (R,), where rows move."""
    weights: Tensor | None = None
    """The attention weights before the rows moved, (R, S)."""
    gained: Tensor | None = None
    """The log probability of the token, (R,), where rows do not move."""


Tell = Callable[[SearchStep, Tensor], Tensor | None]
"""Called with each step at once, and with the place of each of its rows among all, (R,).

It may return which of these rows are no longer needed, (R,); their hypotheses then mean nothing."""


class Running(Protocol):
    """The open rows, and the state of a kind of search between two steps."""

    def going(self) -> Tensor:
        """Whether a source is not done, (B,)."""
        ...

    def kept(self, sources: Tensor, rows: Tensor) -> Self:
        """The state of some sources, (B,), and of their rows, (R,)."""
        ...


Advance = Callable[[SearchProblem, Any, int | Tensor], tuple[Any, SearchStep]]
"""One step: the running state after so many steps -> the state after one more, and its output."""


@final
@dataclass(frozen=True)
class SearchPart:
    """Consecutive steps that were made with the same sources."""

    places: Tensor
    """The place of each of its rows among all, (R,); of a graph, which has all, on the CPU."""
    columns: list[SearchStep]
    """The output of each step, tensors (R, …); or of several, (k, R, …), where `together`."""
    running: Any
    """The state at its end."""
    """What was running at the end of it."""
    together: bool = False

    def made(self) -> SearchStep:
        """The output of all its steps, tensors (T, R, …)."""
        if self.together and len(self.columns) == 1:
            return self.columns[0]
        join = torch.cat if self.together else torch.stack
        tensors = zip(*(column.tensors() for column in self.columns), strict=True)
        return filled(self.columns[0], map(join, tensors))

    def own(self, places: Tensor) -> Tensor:
        """The places of the given rows within it; the first where a row is not in it."""
        return torch.searchsorted(self.places, places).clamp(max=len(self.places) - 1)


def placed(parts: Sequence[SearchPart], steps: Sequence[Tensor | None]) -> Tensor:
    """The tensors (T, R, …) of all parts as one (R, T, …) of all rows; 0 where a row had left."""
    whole = []
    for part, tensor in zip(parts, steps, strict=True):
        assert tensor is not None
        values = tensor.transpose(0, 1)
        if part is not parts[0]:
            empty = values.new_zeros(len(parts[0].places), *values.shape[1:])
            values = empty.index_copy(0, part.places, values)
        whole.append(values)
    return torch.cat(whole, dim=1)


Walk = Callable[[SearchProblem, Any, Advance], list[SearchPart]]
"""The loop over all steps."""


@final
@dataclass(frozen=True)
class SearchKind:
    """A kind of search."""

    begun: Callable[[SearchProblem], Any]
    """The state before the first step."""
    advanced: Advance
    found: Callable[[SearchProblem, Sequence[SearchPart]], list[list[Hypothesis]]]
    """The hypotheses of each source from all steps, the best first."""


def walked(
    problem: SearchProblem, running: Running, advance: Advance, tell: Tell | None = None
) -> list[SearchPart]:
    """Make all steps until nothing is left to do; leave out sources that are done.

    Whether a source is done must be copied from the device, which only a CPU has for nothing, and
    to leave it out costs a copy of the state: so it is checked every `often` steps, and done where
    at most a `share` of the sources is left. `tell` is called with each step; a source of which it
    wants no row is done.
    """
    often, share = (1, 0.75) if problem.state.device.type == "cpu" else (8, 0.5)
    parts = [SearchPart(torch.arange(problem.state.rows, device=problem.state.device), [], running)]
    for steps in range(problem.longest):
        running, column = advance(problem, running, steps)
        parts[-1].columns.append(column)
        unwanted_R = None if tell is None else tell(column, parts[-1].places)
        if (steps + 1) % often:
            continue
        going_B = running.going()
        if unwanted_R is not None:
            going_B = going_B & ~unwanted_R.to(going_B.device).view(-1, problem.rows).all(1)
        left = int(going_B.sum())
        if left == 0 or steps + 1 == problem.longest:
            break
        if problem.prepared is not None and left <= share * len(going_B):
            parts[-1] = replace(parts[-1], running=running)
            sources = going_B.nonzero().squeeze(1)
            rows = problem.rows_of(sources)
            problem = problem.pick(sources)
            running = running.kept(sources, rows)
            parts.append(SearchPart(parts[-1].places.index_select(0, rows), [], running))
    parts[-1] = replace(parts[-1], running=running)
    return parts


def hypotheses_of(
    tokens: Tensor,
    score: Tensor,
    log_probability: Tensor,
    count: Tensor,
    finished: Tensor,
    weights: Tensor | None,
    places: int,
) -> list[list[Hypothesis]]:
    """Hypotheses from tensors with one in each row, `places` for each source, without -inf."""
    columns = [tensor.tolist() for tensor in (tokens, score, log_probability, count, finished)]
    attention = [()] * len(tokens) if weights is None else weights.tolist()
    hypotheses: list[list[Hypothesis]] = [[] for _ in range(0, len(tokens), places)]
    rows = zip(*columns, attention, strict=True)
    for number, (output, worth, total, length, ends, steps) in enumerate(rows):
        if worth > NEVER:
            attended = steps and tuple(map(tuple, steps[: length + ends]))
            hypothesis = Hypothesis(tuple(output[:length]), worth, total, attended, ends)
            hypotheses[number // places].append(hypothesis)
    return hypotheses
