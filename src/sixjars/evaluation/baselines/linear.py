"""A linear model: logistic regression on TF-IDF of words and pairs, and on frozen features.

One model for each label against all others, C = 10, by liblinear (Fan et al. 2008,
https://www.jmlr.org/papers/v9/fan08a.html). One model of all labels at once, which is what
scikit-learn does by itself (lbfgs), is no better, and takes 3 to 30 times as long: 0.862 in 16 s on
755 held-out rows of AG news, in place of 0.865 in 0.5 s. On 302 mails it was right six times more
often (0.947, in place of 0.927) and on 3,020 others, by the model of the same training rows, 22
times less often (0.903, in place of 0.910): one table of a few hundred rows does not tell.

Dims: R rows, L labels, W words and features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import Check, Learner, TimeBudget, TooMuch
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem, Matrix
from sixjars.evaluation.baselines.words import checked, counted, pair_features
from sixjars_runtime.text.segments import SEPARATOR

STRENGTH: Final = 10.0
"""C: how little weights are held down. 10 suits TF-IDF, whose rows have length 1."""
AT_ONCE: Final = 2_000
"""Rows that are predicted at once: their scores for a thousand labels take 16 MB."""
MOST_WEIGHTS: Final = 50_000_000
"""Words times labels, 8 bytes each."""


@final
@dataclass(frozen=True)
class LinearModel:
    """Which words there are, and the weight of each for each label."""

    problem: BaselineProblem
    words: Any
    """The vectorizer of texts; nothing where no input is a text."""
    labels: list[str]
    weights_WL: NDArray[np.float64]
    biases_L: NDArray[np.float64]

    def scores(self, dataset: Dataset, rows: Sequence[int], check: Check) -> NDArray[np.float64]:
        """How strongly each row has each label, (R, L); above 0 is yes."""
        texts = [dataset.table.texts(name, rows) for name in self.problem.texts]
        parts = [self.words.transform(checked(column, check)) for column in texts]
        rows_RW = beside_each_other(parts, self.problem.features(dataset, rows, check))
        return np.asarray(rows_RW @ self.weights_WL) + self.biases_L


def linear(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """Predict labels, the likeliest first; where there may be several, those above one half."""

    def predict(model: LinearModel, rows: Sequence[int], check: Check) -> list[tuple[str, ...]]:
        candidates: list[tuple[str, ...]] = []
        for begin in range(0, len(rows), AT_ONCE):
            scores_RL = model.scores(problem.scored, rows[begin : begin + AT_ONCE], check)
            candidates += outputs(model.labels, scores_RL, problem)
        return candidates

    learner = Learner(partial(fitted, problem), predict, problem.size)
    candidates, rows = problem.learned(learner, budget)
    return BaselineOutputs(candidates, rows=rows)


def outputs(
    labels: Sequence[str], scores_RL: NDArray[np.float64], problem: BaselineProblem
) -> list[tuple[str, ...]]:
    """The outputs of each row of scores, as the metrics compare them."""
    if problem.fields.output.multi_label:
        chosen = ([labels[at] for at in np.flatnonzero(row_L > 0).tolist()] for row_L in scores_RL)
        return [(SEPARATOR.join(sorted(names)),) for names in chosen]
    order_RL = np.argsort(-scores_RL, axis=1, kind="stable")[:, : problem.most]
    return [tuple(labels[at] for at in row) for row in order_RL]


def fitted(problem: BaselineProblem, rows: Sequence[int], check: Check) -> LinearModel:
    """A model of some training rows."""
    words = None
    parts = []
    if problem.texts:
        texts = [text for name in problem.texts for text in problem.train.table.texts(name, rows)]
        words, texts_RW = counted(texts, check, characters=problem.counts_characters)
        parts = [texts_RW[len(rows) * at :][: len(rows)] for at in range(len(problem.texts))]
    rows_RW = beside_each_other(parts, problem.features(problem.train, rows, check))
    multi_label = problem.fields.output.multi_label
    texts = problem.targets(rows)
    targets = [set(text.split(SEPARATOR)) if multi_label else {text} for text in texts]
    labels = sorted(set().union(*targets) - {""})
    if len(labels) * rows_RW.shape[1] > MOST_WEIGHTS:
        raise TooMuch
    weights_WL = np.zeros((rows_RW.shape[1], len(labels)))
    biases_L = np.zeros(len(labels))
    for at, label in enumerate(labels):
        check()
        if len(labels) == 2 and not multi_label and at == 1:  # the other one of two
            weights_WL[:, 1], biases_L[1] = -weights_WL[:, 0], -biases_L[0]
            break
        has_R = np.array([label in target for target in targets])
        weights_WL[:, at], biases_L[at] = _one_against_others(rows_RW, has_R)
    return LinearModel(problem, words, labels, weights_WL, biases_L)


def _one_against_others(
    rows_RW: Matrix, has_R: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    from sklearn.linear_model import LogisticRegression

    if has_R.all():
        return np.zeros(rows_RW.shape[1]), 1.0
    # the dual problem has a weight for each row, the primal one for each word
    dual = rows_RW.shape[1] > rows_RW.shape[0]
    model = LogisticRegression(C=STRENGTH, solver="liblinear", dual=dual, random_state=0)
    model.fit(rows_RW, has_R)
    return model.coef_[0], float(model.intercept_[0])


def beside_each_other(parts: Sequence[Matrix], features: NDArray[np.float32] | None) -> Matrix:
    """Join the features of rows: two texts are compared, others are concatenated."""
    from scipy.sparse import csr_matrix, hstack

    parts = [pair_features(*parts)] if len(parts) == 2 else [*parts]
    if features is not None:
        parts.append(csr_matrix(features.astype(np.float64)))
    return parts[0] if len(parts) == 1 else hstack(parts).tocsr()


def name_of(problem: BaselineProblem) -> str:
    """The name of a linear model with the numbers that it reads."""
    counts = "character counts" if problem.texts and problem.counts_characters else "word counts"
    if not problem.texts:
        return "a linear model on the frozen features"
    counts += " of both texts" if len(problem.texts) == 2 else ""
    return f"a linear model on {counts}{' and the frozen features' if problem.has_features else ''}"
