"""Sentences from a probabilistic grammar whose true perplexity is known.

The verb agrees with its own subject, and relative clauses push the two apart: *the dogs that the boy
sees run*. A model without memory cannot know the verb's number; one that has learnt everything
reaches the true perplexity and no model can go below it.

The grammar has no ambiguity: a sentence has one derivation. So the entropy of a sentence is that of
its derivation, H = Σ_A n(A) H(A), where n(A) is how often symbol A is expected to be rewritten and H(A)
the entropy of its choice; n solves n(A) = [A is S] + Σ_B n(B) Σ_(B→r) P(r) · count of A in r
(Grenander 1967; Booth & Thompson 1973, IEEE Transactions on Computers C-22).
"""

import math
from collections.abc import Mapping
from random import Random
from typing import final

from sixjars.samples.sample import Row, Sample

Rules = Mapping[str, tuple[tuple[float, tuple[str, ...]], ...]]
"""For each symbol its choices: a probability, and what the symbol becomes."""


@final
class Grammar:
    """A probabilistic context-free grammar without ambiguity and without left recursion."""

    def __init__(self, rules: Rules, start: str = "S") -> None:
        self.rules = rules
        self.start = start

    def draw(self, rng: Random) -> str:
        """One sentence."""
        return " ".join(self._drawn(self.start, rng))

    def log_probability(self, sentence: str) -> float:
        """Ln P(sentence), the decision to stop there included; -inf for what the grammar cannot say."""
        words = sentence.split()
        share = self._inside(self.start, 0, words, {}).get(len(words), 0.0)
        return math.log(share) if share else -math.inf

    def entropy(self) -> float:
        """H(sentence), in nats."""
        uses = self._uses()
        return sum(uses[symbol] * -sum(p * math.log(p) for p, _ in choices) for symbol, choices in self.rules.items())

    def mean_tokens(self) -> float:
        """The expected number of words of a sentence, and one for `<stop>`."""
        uses = self._uses()
        return 1.0 + sum(
            uses[symbol] * p * sum(part not in self.rules for part in parts)
            for symbol, choices in self.rules.items()
            for p, parts in choices
        )

    def _drawn(self, symbol: str, rng: Random) -> list[str]:
        if symbol not in self.rules:
            return [symbol]
        choices = self.rules[symbol]
        parts = rng.choices([parts for _, parts in choices], [p for p, _ in choices])[0]
        return [word for part in parts for word in self._drawn(part, rng)]

    def _inside(
        self, symbol: str, start: int, words: list[str], known: dict[tuple[str, int], dict[int, float]]
    ) -> dict[int, float]:
        """For each place where `symbol`, begun at `start`, can end: the probability of these words."""
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
        """How often each symbol is expected to be rewritten, by adding up one generation after another."""
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


def _lexicon(*words: str) -> tuple[tuple[float, tuple[str, ...]], ...]:
    """Words of falling frequency, the n-th about 1/n as common as the first (Zipf's law)."""
    whole = sum(1 / rank for rank in range(1, len(words) + 1))
    return tuple((1 / rank / whole, (word,)) for rank, word in enumerate(words, 1))


NOUNS = ("dog", "boy", "cat", "teacher", "bird", "girl", "farmer", "horse", "king", "singer")
ALONE = ("run", "sleep", "laugh", "dance", "wait", "sing")
"""Verbs without an object."""
UPON = ("see", "like", "follow", "call", "love", "find", "help")
"""Verbs with an object."""
QUALITIES = ("small", "old", "happy", "young", "quiet", "clever")
MANNERS = ("today", "often", "quickly", "again", "loudly")
ONLY_ONE, ONLY_MANY = ("the", "a", "every"), ("the", "many", "some")


def _agreeing(number: str, s: str) -> dict[str, tuple[tuple[float, tuple[str, ...]], ...]]:
    """Everything that has a number; `s` is the ending of its verbs."""
    one = s == "s"
    return {
        f"NP_{number}": (
            (0.72, (f"DET_{number}", f"N_{number}")),
            (0.28, (f"DET_{number}", f"N_{number}", "that", f"REL_{number}")),
        ),
        f"REL_{number}": (
            (0.25, (f"VI_{number}",)),
            (0.35, (f"VT_{number}", "OBJECT")),
            (0.2, ("NP_one", "VT_one")),
            (0.2, ("NP_many", "VT_many")),
        ),
        f"VP_{number}": (
            (0.3, (f"VI_{number}",)),
            (0.2, (f"VI_{number}", "MANNER")),
            (0.35, (f"VT_{number}", "OBJECT")),
            (0.15, (f"VT_{number}", "OBJECT", "MANNER")),
        ),
        f"N_{number}": ((0.7, (f"NOUN_{number}",)), (0.3, ("QUALITY", f"NOUN_{number}"))),
        f"NOUN_{number}": _lexicon(*(noun if one else noun + "s" for noun in NOUNS)),
        f"DET_{number}": _lexicon(*(ONLY_ONE if one else ONLY_MANY)),
        f"VI_{number}": _lexicon(*(verb + s for verb in ALONE)),
        f"VT_{number}": _lexicon(*(verb + s for verb in UPON)),
    }


GRAMMAR = Grammar(
    {
        "S": ((0.85, ("CLAUSE",)), (0.15, ("CLAUSE", "and", "S"))),
        "CLAUSE": ((0.5, ("NP_one", "VP_one")), (0.5, ("NP_many", "VP_many"))),
        "OBJECT": ((0.5, ("NP_one",)), (0.5, ("NP_many",))),
        **_agreeing("one", "s"),
        **_agreeing("many", ""),
        "QUALITY": _lexicon(*QUALITIES),
        "MANNER": _lexicon(*MANNERS),
    }
)


def log_probability(sentence: str) -> float:
    """Ln P(sentence) under the true grammar, the decision to stop included.

    >>> log_probability("the dogs that the boy sees run") > log_probability("the dogs that the boy sees runs")
    True
    """
    return GRAMMAR.log_probability(sentence)


def true_perplexity() -> float:
    """exp(H(sentence) / E[tokens, `<stop>` counted]): what no language model can go below.

    >>> 1 < true_perplexity() < 20
    True
    """
    return math.exp(GRAMMAR.entropy() / GRAMMAR.mean_tokens())


def draw(rng: Random, _longest: int) -> Row:
    """One sentence; its length is the grammar's own affair."""
    return {"text": GRAMMAR.draw(rng)}


SAMPLE = Sample(
    task="language_model",
    description="Sentences of a grammar with agreement at a distance, whose true perplexity is known.",
    draw=draw,
    source=None,
    target="text",
    shortest=1,
    longest=None,
    categories={
        "nouns": NOUNS,
        "nouns of many": tuple(noun + "s" for noun in NOUNS),
        "verbs of one": tuple(verb + "s" for verb in (*ALONE, *UPON)),
        "verbs of many": (*ALONE, *UPON),
        "qualities": QUALITIES,
        "manners": MANNERS,
        "determiners": (*ONLY_ONE, *ONLY_MANY),
        "joints": ("and", "that"),
    },
)
