"""Scores of hypotheses, the best tokens, and rules for what may not be output next.

Dims: R rows open in search, V vocabulary, S source positions, t tokens output so far, G n-grams
among them (or chunks of the vocabulary, of W tokens each), n their length, C tokens that are
wanted, X those compared for it.

The rules are those of the toolkit's search, in numpy. Log probabilities that a step gave are
overwritten.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import DataError
from sixjars_runtime.exported.search.settings import SearchSettings
from sixjars_runtime.special_tokens import SpecialTokens

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Rule = Callable[[Floats, Ints, int], Floats]
"""`(scores (R, V), output (R, t), t) -> scores (R, V)`: -inf where a token is forbidden."""
NEVER: Final = np.float32(-np.inf)
CHUNK: Final = 32
"""Scores of a row that are compared together."""


@final
@dataclass(frozen=True)
class Ranking:
    """log P / |y|^α + β Σ_j log min(Σ_t α_tj, 1), what hypotheses are compared by."""

    length_penalty: float
    """α."""
    coverage_penalty: float
    """β."""
    mask: Bools | None = None
    """True where a source position is real, (R, S); absent when all are."""

    def pick(self, rows: Ints) -> "Ranking":
        """Return the ranking of some rows."""
        return self if self.mask is None else replace(self, mask=self.mask[rows])

    def covered(self, before: Floats | None, weights: Floats | None) -> Floats | None:
        """Return the sum of the weights of all steps, (R, S), where a penalty asks for it."""
        if self.coverage_penalty == 0.0:
            return None
        if weights is None:
            raise DataError(
                "coverage_penalty needs attention weights, but this model gives none; set it to 0."
            )
        return weights if before is None else before + weights

    def penalty(self, covered: Floats | None) -> Floats | None:
        """Return the second term, (R,), or None where β is 0."""
        if covered is None:
            return None
        terms_RS = np.log(np.clip(covered, np.finfo(np.float32).tiny, 1.0))
        if self.mask is not None:
            terms_RS[~self.mask] = 0.0
        return np.asarray(self.coverage_penalty * terms_RS.sum(1), dtype=np.float32)

    def scores(self, log_probability: Floats, lengths: Any, penalty: Floats | None) -> Floats:
        """Return the scores of hypotheses of these lengths; an empty one scores 0."""
        share = log_probability / np.maximum(np.float32(lengths), 1) ** np.float32(
            self.length_penalty
        )
        scores = share if penalty is None else share + penalty
        return np.asarray(np.where(np.equal(lengths, 0), np.float32(0), scores), dtype=np.float32)

    def bound(self, log_probability: Floats, max_length: int) -> Floats:
        """Return the most that a running hypothesis may still score."""
        return log_probability / np.float32(max_length**self.length_penalty)


def highest(values: Floats, count: int) -> tuple[Floats, Ints]:
    """Return the highest `count` of each row and their places; of equal ones the leftmost."""
    if count == 1:
        places = values.argmax(1)[:, None]
    else:
        places = np.argsort(-values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(values, places, 1), places


def best_tokens(scores: Floats, count: int) -> tuple[Floats, Ints]:
    """Return the highest `count` scores of each row and their tokens, both (R, C).

    A long row is compared in chunks: the best tokens are in the chunks with the highest maxima.
    """
    rows, size = scores.shape
    chunks = size // CHUNK
    if count == 1 or chunks < 2 * count:
        return highest(scores, count)
    whole = CHUNK * chunks
    most_RG = scores[:, :whole].reshape(rows, chunks, CHUNK).max(2)
    chunk_RC = np.sort(
        highest(most_RG, count)[1], axis=1
    )  # in order, so that of equal tokens the first is found
    token_RX = (chunk_RC[:, :, None] * CHUNK + np.arange(CHUNK)).reshape(rows, -1)
    rest_RX = np.broadcast_to(np.arange(whole, size), (rows, size - whole))
    token_RX = np.concatenate([token_RX, rest_RX], axis=1)
    values, places = highest(np.take_along_axis(scores, token_RX, 1), count)
    return values, np.take_along_axis(token_RX, places, 1)


def rule_of(
    settings: SearchSettings, special: SpecialTokens, prefix: tuple[Ints, Bools] | None
) -> Rule:
    """Make one rule of all that the settings and the caller forbid."""
    rules: list[Rule] = []
    never = {*special.banned, special.go} - {special.stop}
    if special.unknown is not None and settings.unknown == "ban":
        never.add(special.unknown)
    if never:
        rules.append(banned(np.array(sorted(never))))
    if settings.no_repeat_ngram:
        rules.append(no_repeated_ngram(settings.no_repeat_ngram))
    if settings.min_length:  # last, because it must know what the others leave
        rules.append(min_length(settings.min_length, stop=special.stop))

    def rule(scores: Floats, output: Ints, steps: int) -> Floats:
        for each in rules:
            scores = each(scores, output, steps)
        return scores

    return rule if prefix is None else forced_prefix(*prefix, otherwise=rule)


def banned(tokens: Ints) -> Rule:
    """Make a rule by which these tokens, `(n,)`, are never output."""

    def rule(scores: Floats, output: Ints, steps: int) -> Floats:
        scores[:, tokens] = NEVER
        return scores

    return rule


def min_length(fewest: int, *, stop: int) -> Rule:
    """Make a rule against `<stop>` before `fewest` tokens, unless nothing else may follow."""

    def rule(scores: Floats, output: Ints, steps: int) -> Floats:
        if steps < fewest:
            stop_R = scores[:, stop].copy()
            scores[:, stop] = NEVER
            scores[:, stop] = np.where(scores.max(1) > NEVER, NEVER, stop_R)
        return scores

    return rule


def no_repeated_ngram(length: int) -> Rule:
    """Make a rule against an n-gram of this length twice in one row."""

    def rule(scores: Floats, output: Ints, steps: int) -> Floats:
        if output.shape[1] < length:
            return scores
        ngrams_RGn = np.lib.stride_tricks.sliding_window_view(output, length, axis=1)
        latest_R1n = output[:, None, output.shape[1] - length + 1 :]
        rows, places = (ngrams_RGn[..., :-1] == latest_R1n).all(-1).nonzero()
        scores[rows, ngrams_RGn[rows, places, -1]] = NEVER
        return scores

    return rule


def forced_prefix(values: Ints, mask: Bools, *, otherwise: Rule) -> Rule:
    """Make a rule that outputs the prefix of each row, `(R, longest)`, before the others hold."""

    def rule(scores: Floats, output: Ints, steps: int) -> Floats:
        if steps >= values.shape[1]:
            return otherwise(scores, output, steps)
        rows = mask[:, steps].nonzero()[0]
        forced = values[rows, steps]
        kept = scores[rows, forced]
        scores = otherwise(scores, output, steps)
        scores[rows] = NEVER
        scores[rows, forced] = kept
        return scores

    return rule
