"""Search: from one step function to hypotheses. It knows no model.

Dims: B sources, R rows open in search (B times the copies of each source), S source positions.

    copies = rows_per_source(settings)
    state, carried = decoder.start(encoded)
    state, carried = state.spread(copies), carried.spread(copies)
    found = search(lambda token, state: decoder.step(token, state, carried), state, settings, marks)
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from sixjars.errors import ShapeError
from sixjars.evaluation.search.beam import beam
from sixjars.evaluation.search.greedy import greedy
from sixjars.evaluation.search.problem import Problem
from sixjars.evaluation.search.ranking import Ranking
from sixjars.evaluation.search.rules import (
    Rule,
    banned,
    forced_prefix,
    min_length,
    no_repeated_ngram,
    together,
)
from sixjars.evaluation.search.sampling import sample
from sixjars.flow import Hypothesis, Marks, Padded, Rows, Step
from sixjars.recipe.jars import SearchSettings

__all__ = ["rows_per_source", "search"]

KINDS: Mapping[str, Callable[[Problem], list[list[Hypothesis]]]] = {
    "greedy": greedy,
    "sample": sample,
    "beam": beam,
}


def rows_per_source(settings: SearchSettings) -> int:
    """How many copies of each source search needs, side by side.

    >>> rows_per_source(SearchSettings(kind="beam", width=4, nbest=2))
    4
    """
    return {"greedy": 1, "sample": settings.nbest, "beam": settings.width}[settings.kind]


def search(
    step: Step,
    state: Rows,
    settings: SearchSettings,
    marks: Marks,
    *,
    prefix: Padded | None = None,
    mask: Tensor | None = None,
) -> list[list[Hypothesis]]:
    """What the model says: for each source at least one hypothesis, the best first.

    `state` has R rows: `rows_per_source(settings)` for each source, side by side. So has what `step` knows of
    the sources, which never moves; only the state is reordered, and only among the rows of one source.
    `prefix`, R rows, is what each hypothesis must begin with, whatever the settings say.
    `mask`, (R, S), is True where a source position is real; where it is absent, all are. Only the coverage
    penalty asks for it.

    >>> from sixjars.flow import Scored, State
    >>> def count(token: Tensor, state: State) -> tuple[Scored, State]:
    ...     return Scored(torch.eye(6)[token + 1].log()), state
    >>> search(count, State(torch.zeros(1, 1, 1)), SearchSettings(), Marks(go=0, stop=5))[0][0].tokens
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
            settings=settings,
            marks=marks,
            rule=_rule(settings, marks, prefix=prefix, device=state.device),
            ranking=Ranking(settings.length_penalty, settings.coverage_penalty, mask),
        )
        return KINDS[settings.kind](problem)


def _rule(settings: SearchSettings, marks: Marks, *, prefix: Padded | None, device: torch.device) -> Rule:
    """All that the settings and the caller forbid, as one rule."""
    rules: list[Rule] = []
    if never := sorted({*marks.banned, marks.go} - {marks.stop}):
        rules.append(banned(torch.tensor(never, device=device)))
    if settings.min_length:
        rules.append(min_length(settings.min_length, stop=marks.stop))
    if settings.no_repeat_ngram:
        rules.append(no_repeated_ngram(settings.no_repeat_ngram))
    rule = together(rules)
    return rule if prefix is None else forced_prefix(prefix.to(device), otherwise=rule)


def _check_rows(rows: int, settings: SearchSettings, *, prefix: Padded | None, mask: Tensor | None) -> None:
    copies = rows_per_source(settings)
    if rows % copies:
        raise ShapeError(
            f"search of kind {settings.kind} needs {copies} rows for each source, side by side, "
            f"but got {rows} rows in all. Spread the state, and what the step knows, "
            "by rows_per_source(settings)."
        )
    given = {"prefix": None if prefix is None else prefix.values, "mask": mask}
    for name, tensor in given.items():
        if tensor is not None and tensor.shape[0] != rows:
            raise ShapeError(
                f"the {name} has {tensor.shape[0]} rows, but the state has {rows}. "
                f"Spread the {name} by rows_per_source(settings) too."
            )
