"""The outputs of the most similar training rows: cosine of TF-IDF, or of frozen features.

Dims: R rows to give outputs for, T training rows, W words or features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import Check, Learner, TimeBudget
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem, Matrix
from sixjars.evaluation.baselines.words import checked, counted

AT_ONCE: Final = 10_000_000
"""Pairs of a row and a training row that are compared in one product: 20 bytes each."""
SPARE: Final = 10
"""Rows that are looked at for each different output that is wanted."""


@final
@dataclass(frozen=True)
class NeighbourRows:
    """Training rows, and their outputs."""

    words: Any
    """The vectorizer of texts; nothing where no input is a text."""
    rows_WT: Matrix
    """Its columns are training rows."""
    targets: list[str]

    def nearest(self, rows_RW: Matrix, most: int) -> list[tuple[str, ...]]:
        """The different outputs of the most similar rows, the most similar first."""
        likeness_RT = rows_RW @ self.rows_WT
        rows = likeness_RT.toarray() if hasattr(likeness_RT, "toarray") else likeness_RT
        return [self._outputs(row_T, most) for row_T in rows]

    def _outputs(self, row_T: NDArray[np.float64], most: int) -> tuple[str, ...]:
        """The outputs for one row, by its similarity to each training row."""
        if most == 1:
            return (self.targets[int(row_T.argmax())],)
        nearby = np.arange(len(row_T))
        if len(row_T) > SPARE * most:  # some have the same output
            nearby = np.sort(np.argpartition(-row_T, SPARE * most)[: SPARE * most])
        order = nearby[np.argsort(-row_T[nearby], kind="stable")]
        return tuple(dict.fromkeys(self.targets[at] for at in order))[:most]


def nearest(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """An output for each example, from as many training rows as there is time to compare with."""

    def predict(memory: NeighbourRows, rows: Sequence[int], check: Check) -> list[tuple[str, ...]]:
        candidates: list[tuple[str, ...]] = []
        together = max(1, AT_ONCE // len(memory.targets))
        for begin in range(0, len(rows), together):
            check()
            rows_RW = rows_of(problem, memory.words, rows[begin : begin + together], check)
            candidates += memory.nearest(rows_RW, problem.most)
        return candidates

    learner = Learner(partial(memory_of, problem), predict, problem.size, compares=True)
    candidates, rows = problem.learned(learner, budget)
    return BaselineOutputs(candidates, rows=rows)


def memory_of(problem: BaselineProblem, rows: Sequence[int], check: Check) -> NeighbourRows:
    """Some training rows, ready to be compared with."""
    if not problem.texts:
        features_TW: Matrix = problem.features(problem.train, rows, check)
        return NeighbourRows(None, features_TW.T, problem.targets(rows))
    texts = _texts(problem, problem.train, rows)
    words, rows_TW = counted(texts, check, characters=problem.counts_characters)
    return NeighbourRows(
        words, rows_TW.T.tocsr(), problem.targets(rows)
    )  # once, and not in each product


def rows_of(problem: BaselineProblem, words: Any, rows: Sequence[int], check: Check) -> Matrix:
    """Rows of length 1: TF-IDF of the texts, or the frozen features where no input is a text."""
    if words is None:
        return problem.features(problem.scored, rows, check)
    return words.transform(checked(_texts(problem, problem.scored, rows), check))


def _texts(problem: BaselineProblem, dataset: Dataset, rows: Sequence[int]) -> list[str]:
    columns = [dataset.table.texts(name, rows) for name in problem.texts]
    return [" ".join(texts) for texts in zip(*columns, strict=True)]
