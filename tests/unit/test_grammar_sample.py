"""The grammar of the language model's corpus: entropy and probabilities against brute force."""

import math
from statistics import fmean, stdev

import pytest

from sixjars.samples import generate
from sixjars.samples.language_model import Rules, grammar
from tests.grammars import Known, log_probability, true_perplexity


def enumerated(rules: Rules, start: str) -> dict[str, float]:
    """Every sentence of a grammar without recursion, by rewriting the leftmost symbol."""
    found: dict[str, float] = {}
    open_: list[tuple[float, tuple[str, ...], tuple[str, ...]]] = [(1.0, (), (start,))]
    while open_:
        share, done, rest = open_.pop()
        if not rest:
            found[" ".join(done)] = found.get(" ".join(done), 0.0) + share
        elif rest[0] not in rules:
            open_.append((share, (*done, rest[0]), rest[1:]))
        else:
            open_ += [(share * p, done, (*parts, *rest[1:])) for p, parts in rules[rest[0]]]
    return found


def truncated(depth: int, words: int) -> Rules:
    """The true grammar with at most so many relative clauses inside one another, and words of each
    kind.

    `X@2` is symbol X with two levels left; a level is spent by `that` and by `and`.
    """
    rules: dict[str, tuple[tuple[float, tuple[str, ...]], ...]] = {}
    for symbol, every in grammar().items():
        lexical = all(part not in grammar() for _, parts in every for part in parts)
        for level in range(depth + 1):
            kept = [choice for choice in every if level or not {"that", "and"} & set(choice[1])]
            kept = kept[:words] if lexical else kept
            whole = sum(p for p, _ in kept)
            rules[f"{symbol}@{level}"] = tuple(
                (p / whole, _lowered(parts, level)) for p, parts in kept
            )
    return rules


def _lowered(parts: tuple[str, ...], level: int) -> tuple[str, ...]:
    below = level - bool({"that", "and"} & set(parts))
    return tuple(f"{part}@{below}" if part in grammar() else part for part in parts)


@pytest.mark.parametrize(
    ("depth", "words", "start"), [(1, 1, "CLAUSE"), (0, 3, "CLAUSE"), (1, 2, "NP_many")]
)
def test_entropy_length_and_probabilities_equal_brute_force(
    depth: int, words: int, start: str
) -> None:
    rules, start = truncated(depth, words), f"{start}@{depth}"
    found, known = enumerated(rules, start), Known(rules, start)
    assert len(found) > 20
    assert sum(found.values()) == pytest.approx(1.0)
    assert known.entropy() == pytest.approx(-sum(p * math.log(p) for p in found.values()))
    assert known.mean_tokens() == pytest.approx(
        sum(p * (len(s.split()) + 1) for s, p in found.items())
    )
    for sentence, share in list(found.items())[:500]:
        assert known.log_probability(sentence) == pytest.approx(math.log(share))


def test_the_whole_grammar_is_the_limit_of_the_truncated_ones() -> None:
    whole = Known(grammar()).entropy()
    gaps = [
        abs(Known(truncated(depth, 99), f"S@{depth}").entropy() - whole) for depth in (0, 2, 4, 16)
    ]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1
    assert gaps[-1] < 1e-6


@pytest.mark.slow
def test_true_perplexity_is_the_mean_of_a_large_sample() -> None:
    texts = [
        row["text"] for row in generate("language_model", size=15_000, valid=0, test=0)["train"]
    ]
    surprises = [-log_probability(text) for text in texts]
    lengths = [len(text.split()) + 1 for text in texts]
    rate = math.log(true_perplexity())
    gaps = [surprise - rate * length for surprise, length in zip(surprises, lengths, strict=True)]
    assert abs(fmean(gaps)) < 4 * stdev(gaps) / math.sqrt(len(gaps))
    assert math.exp(sum(surprises) / sum(lengths)) == pytest.approx(true_perplexity(), rel=0.01)


def test_agreement_at_a_distance() -> None:
    assert log_probability("the dogs that the boy sees run") > -30
    assert log_probability("the dogs that the boy sees runs") == -math.inf
    assert log_probability("the dogs that the boy") == -math.inf
    assert log_probability("") == -math.inf
