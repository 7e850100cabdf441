"""TF-IDF of texts: counts of words and pairs of words, rare ones weighed more, as rows of unit length.

Spärck Jones 1972 (https://doi.org/10.1108/eb026526); computed by scikit-learn, with its defaults.

Dims: R rows, W different words and pairs.
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sixjars.data.text.statistics import are_unspaced
from sixjars.evaluation.baselines.problem import Matrix, Problem

LOOKED_AT: Final = 1_000
"""Texts that tell whether words or characters are counted."""
FEW_WORDS: Final = 1.5
"""Words of a text on average, below which its characters say more: names, words to transliterate."""


def counts_characters(problem: Problem) -> bool:
    """Whether texts are single words, or in a script without spaces."""
    rows = problem.learned_from[:LOOKED_AT]
    texts = [text for name in problem.texts for text in problem.train.table.texts(name, rows)]
    return are_unspaced(texts) or sum(len(text.split()) for text in texts) < FEW_WORDS * len(texts)


def counted(texts: Sequence[str], *, characters: bool) -> tuple[Any, Matrix]:
    """What turns texts into rows of TF-IDF, and the rows of these; of characters where they have no words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    if not characters:
        words = TfidfVectorizer(ngram_range=(1, 2))
        try:
            return words, words.fit_transform(texts)
        except ValueError:  # no word of two letters or more in any of them
            pass
    letters = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    return letters, letters.fit_transform(texts)


def pair_features(first_RW: Matrix, second_RW: Matrix) -> Matrix:
    """Of two texts: what only one of them has, what both have, and their cosine."""
    from scipy.sparse import csr_matrix, hstack

    both_RW = first_RW.multiply(second_RW)
    return hstack([abs(first_RW - second_RW), both_RW, csr_matrix(both_RW.sum(1))]).tocsr()


@contextmanager
def quiet() -> Iterator[None]:
    """Without the advice of a library: a baseline that has not converged is still what it scores."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
