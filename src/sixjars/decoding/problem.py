"""What every kind of search has in common: what is searched, and the loop over steps.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions, t tokens output so
      far.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeVar, final

import torch
from torch import Tensor

from sixjars.decoding.scores import NEVER, Ranking, Rule, never_of, rule_of
from sixjars.flow.searching import Hypothesis, SpecialTokens
from sixjars.flow.values import Padded, Prepared, Rows, StepOutput, Tensors
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.errors import ShapeError

ModelStep = Callable[[Tensor, Any, Any], tuple[StepOutput, Any]]
"""A token for each row, (R,), a state and what is prepared to scores and a new state."""


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: ModelStep
    state: Rows
    prepared: Prepared | None
    """What `step` is given of the sources, for each of them or for each row; absent where it knows them by itself."""
    longest: int
    """Most tokens of an output, `<stop>` included."""
    rows: int
    """N, how many rows each source has."""
    settings: SearchSettings
    special: SpecialTokens
    ranking: Ranking
    real: int | None = None
    """How many of the sources are searched; those behind them, if any, are empty. All where it is absent."""
    owns_scores: bool = False
    """Whether the scores that a step returns may be overwritten."""
    keeps_weights: bool = True
    """Whether hypotheses have attention weights, where the model has any."""
    seeds: Tensor | None = None
    """Of sampling, one for each row, (R,)."""
    prefix: Padded | None = None
    """What each row must begin with."""

    def on_device(self) -> "Problem":
        """The same with all of it where the state is."""
        device = self.state.device
        return replace(
            self,
            seeds=None if self.seeds is None else self.seeds.to(device),
            prefix=None if self.prefix is None else self.prefix.to(device),
        )

    @cached_property
    def rule(self) -> Rule:
        """What may not be output next."""
        device, own = self.state.device, self.owns_scores
        return rule_of(
            self.settings, self.special, prefix=self.prefix, device=device, overwrite=own
        )

    @cached_property
    def never(self) -> Tensor:
        """Tokens that are never output, for a kernel that knows such rules by itself."""
        return torch.tensor(never_of(self.settings, self.special), device=self.state.device)

    @property
    def reads_output(self) -> bool:
        """Whether a rule reads what was output, and not only how long it is."""
        return self.settings.no_repeat_ngram > 0

    def first(self) -> Tensor:
        """Before the first step: `<go>` in every row, (R,)."""
        return torch.full(
            (self.state.rows,), self.special.go, dtype=torch.long, device=self.state.device
        )

    def step_on(
        self, token: Tensor, state: Rows, output: Tensor | None, made: int | Tensor
    ) -> tuple[Tensor, Tensor | None, Rows]:
        """One step: the log probability of what may come next (R, V), the weights (R, S), the state.

        `output` is what `made` steps output, (R, t), where a rule reads it.
        """
        scored, state = self.stepped(token, state)
        return self.allowed(scored.log_probabilities, output, made), scored.weights, state

    def stepped(self, token: Tensor, state: Rows) -> tuple[StepOutput, Rows]:
        """One step before any rule: what the model gives, with weights where somebody keeps them, and the state."""
        scored, state = self.step(token, state, self.prepared)
        keeps = self.keeps_weights or self.ranking.coverage_penalty
        return (scored if keeps else StepOutput(scored.scores, are_logits=scored.are_logits)), state

    def allowed(self, scores: Tensor, output: Tensor | None, made: int | Tensor) -> Tensor:
        """Scores (R, V) with -inf where a rule forbids a token."""
        output = (
            scores.new_empty(scores.shape[0], 0, dtype=torch.long) if output is None else output
        )
        return self.rule(scores, output, made)

    def is_real(self) -> Tensor:
        """Which rows are those of sources that are searched, (R,)."""
        rows_R = torch.arange(self.state.rows, device=self.state.device)
        return rows_R < (self.state.rows if self.real is None else self.real * self.rows)

    def rows_of(self, sources: Tensor) -> Tensor:
        """The rows of some sources, (B,) -> (R,)."""
        each_N = torch.arange(self.rows, device=sources.device)
        return (sources.unsqueeze(1) * self.rows + each_N).flatten()

    def pick(self, sources: Tensor) -> "Problem":
        """The same for some of its sources only; of the state the search itself keeps some."""
        assert self.prepared is not None
        rows, mask = self.rows_of(sources), self.ranking.mask
        return replace(
            self,
            prepared=self.prepared.pick(
                sources if self.prepared.rows * self.rows == self.state.rows else rows
            ),
            state=self.state.pick(rows),
            seeds=None if self.seeds is None else self.seeds.index_select(0, rows),
            prefix=None if self.prefix is None else self.prefix.pick(rows),
            ranking=replace(
                self.ranking, mask=None if mask is None else mask.index_select(0, rows)
            ),
        )


def check_rows(
    rows: int, kind: str, count: int, *, prefix: Padded | None, mask: Tensor | None
) -> None:
    """Refuse rows that are not `count` for each source, or not as many as those of what is given with them."""
    if rows % count:
        raise ShapeError(
            f"search of kind {kind} needs {count} rows for each source, side by side, but got {rows} rows in "
            "all. Repeat the state, and what the step knows, by beam_rows(settings)."
        )
    given = {"prefix": None if prefix is None else prefix.values, "mask": mask}
    for name, tensor in given.items():
        if tensor is not None and tensor.shape[0] != rows:
            raise ShapeError(
                f"the {name} has {tensor.shape[0]} rows, but the state has {rows}. "
                f"Repeat the {name} by beam_rows(settings) too."
            )


Kind = TypeVar("Kind", bound=Tensors)


def filled(value: Kind, tensors: Iterable[Tensor]) -> Kind:
    """The same value made of other tensors, in that order."""
    new = iter(tensors)
    return value.mapped(lambda _: next(new))


@final
@dataclass(frozen=True)
class Column(Rows):
    """What one step made."""

    token: Tensor
    """What each row output, (R,)."""
    parent: Tensor | None = None
    """Which row of the step before it goes on from, (R,), where rows move."""
    weights: Tensor | None = None
    """Attention as it was before the rows moved, (R, S)."""
    gained: Tensor | None = None
    """The log probability of the token, (R,), where rows do not move."""


Tell = Callable[[Column, Tensor], Tensor | None]
"""Somebody who wants to know what each step made, as it is made, and which of all rows each of its rows is, (R,); who
may answer which of these nobody wants any longer, (R,), and what is found for them means nothing then."""


class Running(Protocol):
    """The rows that are open, and all that a kind of search knows of them between two steps."""

    def going(self) -> Tensor:
        """Which sources are not done, (B,)."""
        ...

    def kept(self, sources: Tensor, rows: Tensor) -> Self:
        """Some sources only, (B,), and their rows, (R,)."""
        ...


Advance = Callable[[Problem, Any, int | Tensor], tuple[Any, Column]]
"""One step: what is running after so many steps to what is running after it, and what it made."""


@final
@dataclass(frozen=True)
class Part:
    """Some steps in a row that were made with the same sources."""

    places: Tensor
    """Which of all rows each of its rows is, (R,); of a graph, which has all, on the CPU."""
    columns: list[Column]
    """What each step made; or several together, each tensor (k, R, …) and not (R, …), where `together`."""
    running: Any
    """What was running at the end of it."""
    together: bool = False

    def made(self) -> Column:
        """What all its steps made, each tensor (T, R, …)."""
        if self.together and len(self.columns) == 1:
            return self.columns[0]
        joined = torch.cat if self.together else torch.stack
        return filled(
            self.columns[0],
            map(joined, zip(*(column.tensors() for column in self.columns), strict=True)),
        )

    def own(self, places: Tensor) -> Tensor:
        """Which of its rows the given ones of all rows are; the first where it has none."""
        return torch.searchsorted(self.places, places).clamp(max=len(self.places) - 1)


def placed(parts: Sequence[Part], made: Sequence[Tensor | None]) -> Tensor:
    """What the rows of each part made, (T, R, …), as one value (R, T, …) of all rows; 0 where a row was in none."""
    whole = []
    for part, tensor in zip(parts, made, strict=True):
        assert tensor is not None
        values = tensor.transpose(0, 1)
        if part is not parts[0]:
            empty = values.new_zeros(len(parts[0].places), *values.shape[1:])
            values = empty.index_copy(0, part.places, values)
        whole.append(values)
    return torch.cat(whole, dim=1)


Walk = Callable[[Problem, Any, Advance], list[Part]]
"""How all steps are made."""


@final
@dataclass(frozen=True)
class SearchKind:
    """A kind of search."""

    begun: Callable[[Problem], Any]
    """What is running before the first step."""
    advanced: Advance
    found: Callable[[Problem, Sequence[Part]], list[list[Hypothesis]]]
    """For each source the hypotheses that all steps found, the best first."""


def walked(
    problem: Problem, running: Running, advance: Advance, tell: Tell | None = None
) -> list[Part]:
    """All steps until nothing is left to do. Sources that are done leave once that saves more than it costs.

    To know it, something must be copied from the device. On a CPU that costs nothing. `tell` is called with each step,
    and a source of which it wants no row is done.
    """
    often, share = (1, 0.75) if problem.state.device.type == "cpu" else (8, 0.5)
    parts = [Part(torch.arange(problem.state.rows, device=problem.state.device), [], running)]
    for made in range(problem.longest):
        running, column = advance(problem, running, made)
        parts[-1].columns.append(column)
        unwanted_R = None if tell is None else tell(column, parts[-1].places)
        if (made + 1) % often:
            continue
        going_B = running.going()
        if unwanted_R is not None:
            going_B = going_B & ~unwanted_R.to(going_B.device).view(-1, problem.rows).all(1)
        left = int(going_B.sum())
        if left == 0 or made + 1 == problem.longest:
            break
        if problem.prepared is not None and left <= share * len(going_B):
            parts[-1] = replace(parts[-1], running=running)
            sources = going_B.nonzero().squeeze(1)
            rows = problem.rows_of(sources)
            problem, running = problem.pick(sources), running.kept(sources, rows)
            parts.append(Part(parts[-1].places.index_select(0, rows), [], running))
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
    """Plain values of tensors with a hypothesis in each row, `places` for each source; -inf scores are left out."""
    columns = [tensor.tolist() for tensor in (tokens, score, log_probability, count, finished)]
    attention = [()] * len(tokens) if weights is None else weights.tolist()
    found = [
        Hypothesis(
            tuple(output[:length]),
            worth,
            total,
            rows and tuple(map(tuple, rows[: length + ends])),
            ends,
        )
        for output, worth, total, length, ends, rows in zip(*columns, attention, strict=True)
    ]
    return [
        [one for one in found[at : at + places] if one.score > NEVER]
        for at in range(0, len(found), places)
    ]
