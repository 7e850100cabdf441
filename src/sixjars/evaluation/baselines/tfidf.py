"""Predictors on TF-IDF of texts and on frozen features: a linear model, the most similar rows.

TF-IDF: counts of words and pairs, rare ones weighed more, as rows of unit length. Spärck Jones 1972
(https://doi.org/10.1108/eb026526); computed by scikit-learn, with its defaults.

The linear model: logistic regression, one model for each label against all others, C = 10, by
liblinear (Fan et al. 2008, https://www.jmlr.org/papers/v9/fan08a.html). One model of all labels at
once, which is what scikit-learn does by itself (lbfgs), is no better, and takes 3 to 30 times as
long: 0.862 in 16 s on 755 held-out rows of AG news, in place of 0.865 in 0.5 s. On 302 mails it was
right six times more often (0.947, in place of 0.927) and on 3,020 others, by the model of the same
training rows, 22 times less often (0.903, in place of 0.910): one table of a few hundred rows does
not tell.

Dims: R rows, T training rows, L labels, W words and features.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import Check, Learner, TimeBudget, TooMuch
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem
from sixjars_runtime.text.segments import SEPARATOR

Matrix = Any
"""A sparse matrix of SciPy, which is imported only where scikit-learn is needed."""
STRENGTH: Final = 10.0
"""C: how little weights are held down. 10 suits TF-IDF, whose rows have length 1."""
AT_ONCE: Final = 2_000
"""Rows that are predicted at once: their scores for a thousand labels take 16 MB."""
MOST_WEIGHTS: Final = 50_000_000
"""Words times labels, 8 bytes each."""
PAIRS_AT_ONCE: Final = 10_000_000
"""Pairs of a row and a training row that are compared in one product: 20 bytes each."""
SPARE: Final = 10
"""Rows that are looked at for each different output that is wanted."""


def counted(texts: Sequence[str], check: Check, *, characters: bool) -> tuple[Any, Matrix]:
    """Fit TF-IDF, of characters where texts have no words; return the vectorizer and the rows."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not characters:
        words = TfidfVectorizer(ngram_range=(1, 2))
        try:
            return words, words.fit_transform(checked(texts, check))
        except ValueError:  # no word of two letters or more in any of them
            pass
    letters = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    return letters, letters.fit_transform(checked(texts, check))


def checked(texts: Iterable[str], check: Check) -> Iterator[str]:
    """The same texts, with a look at the clock before each: one may be a whole book."""
    for text in texts:
        check()
        yield text


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

    def predict(self, rows: Sequence[int], check: Check) -> list[tuple[str, ...]]:
        """Labels, the likeliest first; where there may be several, those above one half."""
        problem, labels = self.problem, self.labels
        texts = [problem.scored.table.texts(name, rows) for name in problem.texts]
        parts = [self.words.transform(checked(column, check)) for column in texts]
        rows_RW = beside_each_other(parts, problem.features(problem.scored, rows, check))
        scores_RL = np.asarray(rows_RW @ self.weights_WL) + self.biases_L
        if problem.fields.output.multi_label:
            chosen = ([labels[at] for at in np.flatnonzero(row_L > 0)] for row_L in scores_RL)
            return [(SEPARATOR.join(sorted(names)),) for names in chosen]
        order_RL = np.argsort(-scores_RL, axis=1, kind="stable")[:, : problem.most]
        return [tuple(labels[at] for at in row) for row in order_RL]


def linear(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """A linear model of each label against all others."""
    fit = partial(fitted, problem)
    learner = Learner(fit, LinearModel.predict, problem.size, lambda _: AT_ONCE)
    candidates, rows = problem.learned(learner, budget)
    return BaselineOutputs(candidates, rows=rows)


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
    """Join the features of rows.

    Two texts are compared: words of one alone, words of both, and their cosine.
    """
    from scipy.sparse import csr_matrix, hstack

    parts = [*parts]
    if len(parts) == 2:
        both_RW = parts[0].multiply(parts[1])
        compared = [abs(parts[0] - parts[1]), both_RW, csr_matrix(both_RW.sum(1))]
        parts = [hstack(compared).tocsr()]
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


@final
@dataclass(frozen=True)
class NeighbourRows:
    """Training rows, and their outputs."""

    problem: BaselineProblem
    words: Any
    """The vectorizer of texts; nothing where no input is a text."""
    rows_WT: Matrix
    """Its columns are training rows."""
    targets: list[str]

    def predict(self, rows: Sequence[int], check: Check) -> list[tuple[str, ...]]:
        """The different outputs of the most similar rows, the most similar first."""
        problem = self.problem
        rows_RW: Matrix  # of length 1
        if self.words is None:
            rows_RW = problem.features(problem.scored, rows, check)
        else:
            texts = _joined_texts(problem, problem.scored, rows)
            rows_RW = self.words.transform(checked(texts, check))
        likeness_RT = rows_RW @ self.rows_WT
        dense_RT = likeness_RT.toarray() if hasattr(likeness_RT, "toarray") else likeness_RT
        return [self._outputs(row_T, problem.most) for row_T in dense_RT]

    def _outputs(self, row_T: NDArray[np.float64], most: int) -> tuple[str, ...]:
        if most == 1:
            return (self.targets[int(row_T.argmax())],)
        nearby = np.arange(len(row_T))
        if len(row_T) > SPARE * most:  # some have the same output
            nearby = np.sort(np.argpartition(-row_T, SPARE * most)[: SPARE * most])
        order = nearby[np.argsort(-row_T[nearby], kind="stable")]
        return tuple(dict.fromkeys(self.targets[at] for at in order))[:most]


def nearest(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """An output for each example, from as many training rows as there is time to compare with."""

    def fit(rows: Sequence[int], check: Check) -> NeighbourRows:
        words, targets = None, problem.targets(rows)
        if not problem.texts:
            features_TW: Matrix = problem.features(problem.train, rows, check)
            return NeighbourRows(problem, words, features_TW.T, targets)
        texts = _joined_texts(problem, problem.train, rows)
        words, rows_TW = counted(texts, check, characters=problem.counts_characters)
        # turned once, and not in each product
        return NeighbourRows(problem, words, rows_TW.T.tocsr(), targets)

    def at_once(memory: NeighbourRows) -> int:
        return max(1, PAIRS_AT_ONCE // len(memory.targets))

    learner = Learner(fit, NeighbourRows.predict, problem.size, at_once, compares=True)
    candidates, rows = problem.learned(learner, budget)
    return BaselineOutputs(candidates, rows=rows)


def _joined_texts(problem: BaselineProblem, dataset: Dataset, rows: Sequence[int]) -> list[str]:
    columns = [dataset.table.texts(name, rows) for name in problem.texts]
    return [" ".join(texts) for texts in zip(*columns, strict=True)]
