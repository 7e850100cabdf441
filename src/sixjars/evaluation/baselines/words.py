"""TF-IDF of texts: counts of words and pairs, rare ones weighed more, as rows of unit length.

Spärck Jones 1972 (https://doi.org/10.1108/eb026526); computed by scikit-learn, with its defaults.

Dims: R rows, W different words and pairs.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sixjars.evaluation.baselines.budget import Check
from sixjars.evaluation.baselines.problem import Matrix


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


def pair_features(first_RW: Matrix, second_RW: Matrix) -> Matrix:
    """The features of two texts: words of one alone, words of both, and their cosine."""
    from scipy.sparse import csr_matrix, hstack

    both_RW = first_RW.multiply(second_RW)
    return hstack([abs(first_RW - second_RW), both_RW, csr_matrix(both_RW.sum(1))]).tocsr()
