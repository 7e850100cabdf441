"""What is known of the language model's corpus: the probability of a sentence, and the true
perplexity.

The grammar has no ambiguity: a sentence has one derivation. So the entropy of a sentence is that of
its derivation, H = Σ_A n(A) H(A), where n(A) is how often symbol A is expected to be rewritten and
H(A) the entropy of its choice; n solves n(A) = [A is S] + Σ_B n(B) Σ_(B→r) P(r) · count of A in r
(Grenander 1967; Booth & Thompson 1973, IEEE Transactions on Computers C-22).
"""

import math
from dataclasses import dataclass

from sixjars.samples.language_model import Rules, grammar


@dataclass(frozen=True)
class Known:
    """What is known of the sentences of a grammar."""

    rules: Rules
    start: str = "S"

    def log_probability(self, sentence: str) -> float:
        """Ln P(sentence), its end included; -inf for what the grammar cannot generate."""
        words = sentence.split()
        share = self._inside(self.start, 0, words, {}).get(len(words), 0.0)
        return math.log(share) if share else -math.inf

    def entropy(self) -> float:
        """H(sentence), in nats."""
        uses = self._uses()
        return sum(
            uses[symbol] * -sum(p * math.log(p) for p, _ in choices)
            for symbol, choices in self.rules.items()
        )

    def mean_tokens(self) -> float:
        """The expected number of words of a sentence, and one for `<stop>`."""
        uses = self._uses()
        return 1.0 + sum(
            uses[symbol] * p * sum(part not in self.rules for part in parts)
            for symbol, choices in self.rules.items()
            for p, parts in choices
        )

    def _inside(
        self,
        symbol: str,
        start: int,
        words: list[str],
        known: dict[tuple[str, int], dict[int, float]],
    ) -> dict[int, float]:
        """For each end of `symbol`, begun at `start`: the probability of the words."""
        if symbol not in self.rules:
            return {start + 1: 1.0} if words[start : start + 1] == [symbol] else {}
        if (symbol, start) not in known:
            ends: dict[int, float] = {}
            for p, parts in self.rules[symbol]:
                reached = {start: p}
                for part in parts:
                    reached = self._onward(part, reached, words, known)
                for end, share in reached.items():
                    ends[end] = ends.get(end, 0.0) + share
            known[symbol, start] = ends
        return known[symbol, start]

    def _onward(
        self,
        part: str,
        reached: dict[int, float],
        words: list[str],
        known: dict[tuple[str, int], dict[int, float]],
    ) -> dict[int, float]:
        onward: dict[int, float] = {}
        for at, share in reached.items():
            for end, inner in self._inside(part, at, words, known).items():
                onward[end] = onward.get(end, 0.0) + share * inner
        return onward

    def _uses(self) -> dict[str, float]:
        """How often each symbol is expected to be rewritten, one generation after another."""
        generation = {symbol: float(symbol == self.start) for symbol in self.rules}
        total = dict(generation)
        while max(generation.values()) > 1e-18:
            born = dict.fromkeys(self.rules, 0.0)
            for symbol, uses in generation.items():
                for p, parts in self.rules[symbol]:
                    for part in parts:
                        if part in self.rules:
                            born[part] += uses * p
            generation = born
            total = {symbol: total[symbol] + uses for symbol, uses in generation.items()}
        return total


def log_probability(sentence: str) -> float:
    """Ln P(sentence) under the true grammar, the decision to stop included.

    >>> log_probability("the dogs that the boy sees run") > log_probability("the dogs that the boy sees runs")
    True
    """
    return Known(grammar()).log_probability(sentence)


def true_perplexity() -> float:
    """exp(H(sentence) / E[tokens, `<stop>` counted]): what no language model can go below.

    >>> 1 < true_perplexity() < 20
    True
    """
    return math.exp(Known(grammar()).entropy() / Known(grammar()).mean_tokens())
