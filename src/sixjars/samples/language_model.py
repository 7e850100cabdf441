"""Sentences from a probabilistic grammar whose true perplexity is known.

The verb agrees with its own subject, and relative clauses push the two apart: *the dogs that the
boy sees run*. A model without memory cannot know the verb's number; one that has learnt everything
reaches the true perplexity and no model can go below it. The grammar has no ambiguity: a sentence
has one derivation.
"""

from collections.abc import Mapping
from functools import cache, partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("language_model")
Rule = tuple[float, tuple[str, ...]]
"""A probability, and the symbols that replace one."""
Rules = Mapping[str, tuple[Rule, ...]]
"""The rules of each symbol."""


@cache
def grammar() -> Rules:
    """The grammar of this sample: context-free, and without left recursion."""
    rules = _rules("rules")
    for number in ("one", "many"):
        rules |= _rules("agreeing_rules", number) | _words(f"words_{number}")
    return rules | _words("words")


def _rules(table: str, number: str = "") -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for symbol, lines in WORDS.table(table).items():
        parts = (line.replace("#", number).split() for line in lines)
        replaced = tuple((float(p), tuple(symbols)) for p, *symbols in parts)
        rules[symbol.replace("#", number)] = replaced
    return rules


def _words(table: str) -> dict[str, tuple[Rule, ...]]:
    rules: dict[str, tuple[Rule, ...]] = {}
    for symbol, words in WORDS.table(table).items():
        whole = sum(1 / rank for rank in range(1, len(words) + 1))
        rules[symbol] = tuple((1 / rank / whole, (word,)) for rank, word in enumerate(words, 1))
    return rules


@partial(Corpus, "language_model", [], "text")
def sentence(rng: Random, _longest: int) -> Row:
    """Sentences of a grammar with agreement at a distance, whose true perplexity is known."""
    return {"text": " ".join(_drawn("S", rng))}


def _drawn(symbol: str, rng: Random) -> list[str]:
    if symbol not in grammar():
        return [symbol]
    choices = grammar()[symbol]
    parts = rng.choices([parts for _, parts in choices], [p for p, _ in choices])[0]
    return [word for part in parts for word in _drawn(part, rng)]
