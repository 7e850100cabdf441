"""The outputs of the most similar training rows: cosine of TF-IDF, or of frozen features.

Dims: R rows to give outputs for, T training rows, W words or features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import Budget, Check, as_many_as_fit
from sixjars.evaluation.baselines.problem import Matrix, Predicted, Problem
from sixjars.evaluation.baselines.words import counted, counts_characters, quiet

AT_ONCE: Final = 200
"""Rows that are compared with all training rows in one product; between two, the clock is looked at."""


SPARE: Final = 10
"""Rows that are looked at for each different output that is wanted."""


@final
@dataclass(frozen=True)
class Memory:
    """Training rows, and their outputs."""

    words: Any
    rows_TW: Matrix
    targets: list[str]

    def nearest(self, rows_RW: Matrix, most: int) -> list[tuple[str, ...]]:
        """The outputs of the most similar rows, each once, the most similar first; of equal ones the first."""
        likeness_RT = rows_RW @ self.rows_TW.T
        found: list[tuple[str, ...]] = []
        for row_T in likeness_RT.toarray() if hasattr(likeness_RT, "toarray") else likeness_RT:
            if most == 1:
                found.append((self.targets[int(row_T.argmax())],))
                continue
            nearby = np.arange(len(row_T))
            if len(row_T) > SPARE * most:  # some have the same output
                nearby = np.sort(np.argpartition(-row_T, SPARE * most)[: SPARE * most])
            order = nearby[np.argsort(-row_T[nearby], kind="stable")]
            several = dict.fromkeys(self.targets[at] for at in order)
            found.append(tuple(several)[:most])
        return found


def nearest(problem: Problem, budget: Budget) -> Predicted:
    """An output for each example, from as many training rows as there is time to compare with."""

    def fit(rows: Sequence[int], check: Check) -> Memory:
        check()
        return memory_of(problem, rows)

    def predict(memory: Memory, check: Check) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for begin in range(0, len(problem.rows), AT_ONCE):
            check()
            some = problem.rows[begin : begin + AT_ONCE]
            found += memory.nearest(rows_of(problem, memory.words, problem.scored, some), problem.most)
        return found

    with quiet():
        candidates, rows = as_many_as_fit(fit, predict, problem.learned_from, budget, seed=problem.seed)
    return Predicted(candidates, rows=rows)


def memory_of(problem: Problem, rows: Sequence[int]) -> Memory:
    """Some training rows, ready to be compared with."""
    if not problem.texts:
        return Memory(None, problem.features(problem.train, rows), problem.targets(rows))
    texts = _texts(problem, problem.train, rows)
    words, rows_TW = counted(texts, characters=counts_characters(problem))
    return Memory(words, rows_TW, problem.targets(rows))


def rows_of(problem: Problem, words: Any, dataset: Dataset, rows: Sequence[int]) -> Matrix:
    """Rows of length 1: TF-IDF of the texts, or the frozen features where no input is a text."""
    return problem.features(dataset, rows) if words is None else words.transform(_texts(problem, dataset, rows))


def _texts(problem: Problem, dataset: Dataset, rows: Sequence[int]) -> list[str]:
    """All texts of a row as one."""
    columns = [dataset.table.texts(name, rows) for name in problem.texts]
    return [" ".join(texts) for texts in zip(*columns, strict=True)]
