"""BLEU, chrF, TER, ROUGE and edit distances against their libraries and by hand."""

from collections.abc import Sequence
from fractions import Fraction
from unittest import TestCase

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sixjars.evaluation.metrics import Outcome, Score, metric_named, score

from .scoring import outcome, outcomes_of, sentences, value

SACRE = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
ROUGE = ("rouge1", "rouge2", "rougeL")

short = st.text(alphabet="ab é", max_size=6)


# BLEU, chrF, TER


@pytest.mark.parametrize("name", SACRE)
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=5),
    width=st.integers(1, 2),
)
def test_sacrebleu_with_equally_many_references(
    name: str, rows: list[tuple[str, str, str]], width: int
) -> None:
    outcomes = [Outcome(row[1 : 1 + width], (row[0],)) for row in rows]
    theirs, [texts, *references] = SACRE[name](), [[*column] for column in zip(*rows, strict=True)]
    expected = theirs.corpus_score(texts, references[:width]).score
    (ours,) = score(outcomes, [name])
    signature, better = str(theirs.get_signature()), metric_named(name).better
    assert ours == Score(name, expected, signature, better, len(rows))


def test_sacrebleu_with_differing_numbers_of_references() -> None:
    """A missing reference must differ from an empty one, and be no other than a repeated one."""
    uneven = [
        outcome(("the cat sat on the mat", "a cat on a mat"), "a cat sat on a mat"),
        outcome("go home now son", "go now"),
    ]
    texts = [outcome.candidates[0] for outcome in uneven]
    repeated = [[mat, "go home now son"] for mat in ("the cat sat on the mat", "a cat on a mat")]
    for name, kind in SACRE.items():
        (ours,) = score(uneven, [name])
        assert ours.value == pytest.approx(kind().corpus_score(texts, repeated).score)
        assert "nrefs:var|" in ours.signature
    with_empty = BLEU().corpus_score(texts, [repeated[0], ["a cat on a mat", ""]]).score
    assert value("bleu", uneven) != pytest.approx(with_empty)


@pytest.mark.parametrize("name", SACRE)
def test_many_references_are_not_remembered(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [outcome(("go home", "go"), "go home now"), outcome("a b c d", "a b c e")]
    remembered = value(name, outcomes)
    monkeypatch.setattr("sixjars.evaluation.metrics.overlap.REMEMBERED", 0)
    assert value(name, outcomes) == remembered


def test_bleu_by_hand() -> None:
    """Of 6 words 5 match, of 5 pairs 3, of 4 triples 1, of 3 fours 0 (smoothed: 1/2 of 1/3)."""
    example = outcome("the cat sat on the mat", "the cat is on the mat")
    product = Fraction(5, 6) * Fraction(3, 5) * Fraction(1, 4) * Fraction(1, 6)
    assert value("bleu", [example]) == pytest.approx(100 * float(product) ** 0.25)


def test_bleu_logs_nothing_about_tokenised_text() -> None:
    with TestCase().assertNoLogs("sacrebleu"):
        score([outcome("I go home .", "I go home .")] * 150, ["bleu"])


# ROUGE

latin = st.lists(
    st.sampled_from(["go", "going", "Home", "homes", "now,", "4", "né", "घर"]), max_size=6
).map(" ".join)


class Spaces:
    def tokenize(self, text: str) -> list[str]:
        return text.lower().split(" ")


def mean_of_best(theirs: RougeScorer, name: str, outcomes: Sequence[Outcome]) -> float:
    each = [[theirs.score(r, o.candidates[0])[name] for r in o.references] for o in outcomes]
    best: list[float] = [max(found.fmeasure for found in some) for some in each]
    return sum(best) / len(best)


@pytest.mark.parametrize("name", ROUGE)
@settings(deadline=None, max_examples=40)
@given(outcomes=outcomes_of(latin))
def test_rouge_is_the_published_one(name: str, outcomes: list[Outcome]) -> None:
    theirs = RougeScorer([name], use_stemmer=True)
    assert value(name, outcomes) == pytest.approx(mean_of_best(theirs, name, outcomes))


@pytest.mark.parametrize("name", ROUGE)
@settings(deadline=None, max_examples=40)
@given(outcomes=outcomes_of(sentences.filter(bool)))
def test_rouge_of_words_split_at_spaces(name: str, outcomes: list[Outcome]) -> None:
    theirs = RougeScorer([name], tokenizer=Spaces(), use_stemmer=False)
    expected = mean_of_best(theirs, name, outcomes)
    assert value(f"{name}_spaces", outcomes) == pytest.approx(expected)


def rouges(outcomes: list[Outcome], ending: str = "") -> list[float]:
    return [value(f"{name}{ending}", outcomes) for name in ROUGE]


def test_rouge_by_hand() -> None:
    """Three words against four. By stems all are shared, and one pair; else the first and last."""
    outcomes = [outcome("The dogs barked loudly", "the dog loudly")]
    assert rouges(outcomes) == pytest.approx([6 / 7, 2 / 5, 6 / 7])
    assert rouges(outcomes, "_spaces") == pytest.approx([4 / 7, 0.0, 4 / 7])


def test_rouge_by_hand_in_hindi() -> None:
    """Four of five words, two of four pairs, four in order; the published one leaves no word."""
    outcomes = [outcome("मैं घर जा रहा हूँ", "मैं घर जा रही हूँ")]
    assert rouges(outcomes, "_spaces") == pytest.approx([4 / 5, 2 / 4, 4 / 5])
    assert rouges(outcomes) == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("ending", ["", "_spaces"])
def test_rouge_takes_the_best_reference_and_the_mean(ending: str) -> None:
    best = outcome(("never mind", "go HOME", "go"), "Go home")
    assert value(f"rougeL{ending}", [best]) == 1.0
    both = [best, outcome("go now", "go away")]
    assert value(f"rougeL{ending}", both) == pytest.approx((1 + 1 / 2) / 2)


# Edit distances


def brute_force(left: Sequence[str], right: Sequence[str]) -> int:
    """The whole table of Wagner & Fischer 1974."""
    table = [[row + column for column in range(len(right) + 1)] for row in range(len(left) + 1)]
    for row, a in enumerate(left, start=1):
        for column, b in enumerate(right, start=1):
            left_out, put_in = table[row - 1][column] + 1, table[row][column - 1] + 1
            table[row][column] = min(left_out, put_in, table[row - 1][column - 1] + (a != b))
    return table[-1][-1]


def brute_force_rate(pairs: list[tuple[Sequence[str], list[Sequence[str]]]]) -> float:
    edits = length = 0
    for output, references in pairs:
        each = [(brute_force(output, reference), len(reference)) for reference in references]
        fewest = min(each)[0]
        edits += fewest
        length += max(size for count, size in each if count == fewest)
    return edits / length if length else float(edits > 0)


@settings(deadline=None)
@given(outcomes=outcomes_of(st.one_of(short, st.text(max_size=5))))
def test_character_error_rate_equals_brute_force(outcomes: list[Outcome]) -> None:
    expected = brute_force_rate([(o.candidates[0], list(o.references)) for o in outcomes])
    assert value("character_error_rate", outcomes) == pytest.approx(expected)


@settings(deadline=None)
@given(outcomes=outcomes_of(sentences))
def test_word_error_rate_equals_brute_force(outcomes: list[Outcome]) -> None:
    words = [(o.candidates[0].split(), [r.split() for r in o.references]) for o in outcomes]
    expected = brute_force_rate(words)  # type: ignore[arg-type]
    assert value("word_error_rate", outcomes) == pytest.approx(expected)


def test_error_rates_by_hand() -> None:
    """The corpus rate weighs by length: (1 + 0) / (4 + 1) words, not the mean of 1/4 and 0."""
    outcomes = [outcome("I am going home", "I am going Home"), outcome("no", "no")]
    assert value("word_error_rate", outcomes) == pytest.approx(1 / 5)
    assert value("character_error_rate", outcomes) == pytest.approx(1 / 17)
    assert value("character_error_rate", [outcome("a", "abcd")]) == pytest.approx(3.0)


def test_a_devanagari_vowel_sign_is_a_character() -> None:
    assert value("character_error_rate", [outcome("की", "कि")]) == pytest.approx(1 / 2)
