r"""Language models of counted n-grams: interpolated Kneser-Ney, and unigrams, its order 1.

.. math:: P_n(w|h) = \frac{\max(a(hw) - D_n, 0)}{a(h\cdot)}
          + \frac{D_n N(h\cdot)}{a(h\cdot)} P_{n-1}(w|h')

a(hw) is how often hw was seen at the highest order, or where hw begins its text; below, how many
different words stand before it (Kneser & Ney 1995, https://doi.org/10.1109/ICASSP.1995.479394).
N(h·) is how many different words follow h, h' is h without its first word, D_n = n1 / (n1 + 2 n2)
of the n-grams with a = 1 and 2, and P_0 is even over the vocabulary (Chen & Goodman 1999, section
2.7, https://doi.org/10.1006/csla.1999.0128; one discount for each order). Where h was never seen,
P_n is P_{n-1}.

Dims: T tokens of all texts on end, each text with a sign before it and `<stop>` behind it;
G different n-grams.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.evaluation.baselines.budget import Check, Learner, TimeBudget
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem
from sixjars_runtime.special_tokens import STOP

ORDER: Final = 5
AT_ONCE: Final = 2_000
"""Texts between two checks of the time."""
NUMBERS: Final = 4
"""Numbers of a token for the budget: the arrays of all tokens take 200 bytes of each."""
NEVER: Final = -1
"""Stands for an n-gram that is not there: never seen, or longer than what stands before it."""
Numbers = NDArray[np.int64]


@final
@dataclass(frozen=True)
class _Order:
    keys_G: Numbers
    """The n-grams, sorted: the number of the beginning, and the last word."""
    counts_G: Numbers
    """a(hw)."""
    totals: Numbers
    """a(h·), by the number of h."""
    follow: Numbers
    """N(h·), by the number of h."""
    discount: float


@final
class NgramModel:
    """The probability of each token of a text, given those before it.

    >>> model = NgramModel([[4, 5], [4, 6]], words=8)
    >>> [round(float(p), 3) for p in model.probabilities([[4, 5]])]
    [0.72, 0.273, 0.573]
    """

    def __init__(
        self,
        texts: Iterable[Sequence[int] | Numbers],
        *,
        words: int,
        order: int = ORDER,
        check: Check = lambda: None,
    ) -> None:
        """Count texts without `<stop>`; of `words` in the vocabulary, two never occur in one."""
        self.begin = words
        """The number of the sign before a text."""
        self.wide = words + 1
        self.possible = words - 2  # no text has <pad> or <go> in it
        tokens_T, places_T = self._joined(texts)
        codes, seen = list[Numbers](), list[tuple[Numbers, Numbers, Numbers]]()
        before_T = np.zeros_like(tokens_T)  # of order 1, what stands before is nothing: number 0
        for number in range(1, order + 1):
            check()
            real_T = (places_T > 0) & (before_T != NEVER)
            keys_T = before_T * self.wide + tokens_T
            keys_G, first_G, inverse, times_G = np.unique(
                keys_T[real_T], return_index=True, return_inverse=True, return_counts=True
            )
            code_T = np.full_like(tokens_T, NEVER)
            code_T[real_T] = inverse
            codes.append(code_T)
            seen.append((keys_G, np.flatnonzero(real_T)[first_G], times_G))
            before_T = self._next(code_T, places_T, order=number)
        self.orders = [self._order(keys_G, counts_G) for keys_G, _, counts_G in seen[-1:]]
        for number in range(order - 1, 0, -1):
            keys_G, ends_G, times_G = seen[number - 1]
            longer = seen[number][1]  # where each different n-gram of the next order ends
            different_G = np.bincount(codes[number - 1][longer], minlength=len(keys_G))
            begins_G = places_T[ends_G] == number - 1
            self.orders.insert(0, self._order(keys_G, np.where(begins_G, times_G, different_G)))

    def _joined(self, texts: Iterable[Sequence[int] | Numbers]) -> tuple[Numbers, Numbers]:
        """All tokens on end, and the place of each in its text; the sign before it has place 0."""
        pieces = [np.array([self.begin, *text, STOP], dtype=np.int64) for text in texts]
        places = [np.arange(len(piece)) for piece in pieces]
        return np.concatenate(pieces), np.concatenate(places)

    def _next(self, codes_T: Numbers, places_T: Numbers, *, order: int) -> Numbers:
        """The number of the context before each token: the n-gram of this order that ends there."""
        before_T = np.full_like(codes_T, NEVER)
        before_T[1:] = codes_T[:-1]
        # what stands before a first word is the sign, whose number comes after those of the words
        if order == 1:
            before_T[1:][places_T[:-1] == 0] = self.begin
        before_T[places_T == 0] = NEVER
        return before_T

    def _order(self, keys_G: Numbers, counts_G: Numbers) -> _Order:
        contexts_G = keys_G // self.wide
        once, twice = int((counts_G == 1).sum()), int((counts_G == 2).sum())
        # Where nothing was seen once, as in very little data, half of a count is as good a guess as
        # another.
        discount = once / (once + 2 * twice) if once else 0.5
        totals = np.bincount(contexts_G, weights=counts_G).astype(np.int64)
        return _Order(keys_G, counts_G, totals, np.bincount(contexts_G), discount)

    def probabilities(self, texts: Iterable[Sequence[int] | Numbers]) -> NDArray[np.float64]:
        """The probability of every token, with `<stop>` of each text, one text after the other."""
        tokens_T, places_T = self._joined(texts)
        chance_T = np.full(len(tokens_T), 1.0 / self.possible)
        before_T = np.zeros_like(tokens_T)
        for number, order in enumerate(self.orders, start=1):
            known_T = (places_T > 0) & (before_T != NEVER) & (before_T < len(order.totals))
            known_T[known_T] = order.totals[before_T[known_T]] > 0
            context, total = before_T[known_T], order.totals[before_T[known_T]]
            keys = context * self.wide + tokens_T[known_T]
            at = np.minimum(np.searchsorted(order.keys_G, keys), len(order.keys_G) - 1)
            seen = order.keys_G[at] == keys
            counts = np.where(seen, order.counts_G[at], 0)
            kept = np.maximum(counts - order.discount, 0.0) / total
            backoff = order.discount * order.follow[context] / total
            chance_T[known_T] = kept + backoff * chance_T[known_T]
            code_T = np.full_like(tokens_T, NEVER)
            code_T[known_T] = np.where(seen, at, NEVER)
            before_T = self._next(code_T, places_T, order=number)
        return chance_T[places_T > 0]


def kneser_ney(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The probability of each example under five words at a time."""
    return _scored(problem, budget, ORDER)


def unigram(problem: BaselineProblem, budget: TimeBudget) -> BaselineOutputs:
    """The probability of each example, word by word."""
    return _scored(problem, budget, 1)


def _scored(problem: BaselineProblem, budget: TimeBudget, order: int) -> BaselineOutputs:
    words = int(problem.fields.output.facts()["vocabulary"])

    def fit(rows: Sequence[int], check: Check) -> NgramModel:
        return NgramModel(_ids(problem, problem.train, rows), words=words, order=order, check=check)

    def predict(model: NgramModel, rows: Sequence[int], check: Check) -> list[tuple[float, int]]:
        texts = _ids(problem, problem.scored, rows)
        sizes = [len(text) + 1 for text in texts]
        logs = np.split(np.log(model.probabilities(texts)), np.cumsum(sizes)[:-1])
        return list(zip([float(part.sum()) for part in logs], sizes, strict=True))

    _, offsets = problem.train.table.ids(problem.fields.output.name)
    size = NUMBERS * (offsets[-1] - offsets[0]) / max(len(problem.train), 1)
    learner = Learner(fit, predict, float(size), lambda _: AT_ONCE)
    likelihoods, count = problem.learned(learner, budget)
    return BaselineOutputs(likelihoods=likelihoods, rows=count)


def _ids(problem: BaselineProblem, dataset: Dataset, rows: Sequence[int]) -> list[Numbers]:
    """The tokens of the outputs, without `<stop>`."""
    ids, offsets = dataset.table.ids(problem.fields.output.name)
    return [np.asarray(ids[offsets[row] : offsets[row + 1]], dtype=np.int64) for row in rows]
