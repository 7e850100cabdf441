"""New, copied and different words against searching in the text itself, and sums done by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.evaluation.metrics import Outcome, metric_named, score

from .scoring import outcome, outputs, value

NOVEL = {"novel_bigrams": 2, "novel_trigrams": 3}

texts = st.lists(st.sampled_from(["a", "b", "A", "ab", "घर"]), max_size=8)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=4)


def stands_in(words: list[str], text: list[str]) -> bool:
    """Whether these words follow one another somewhere, by looking for letters."""
    return f" {' '.join(words)} ".lower() in f" {' '.join(text)} ".lower()


def outcomes_of(rows: list[tuple[list[str], list[str]]]) -> list[Outcome]:
    texts = [((" ".join(said), "a second one"), "\n".join(read)) for said, read in rows]
    return [Outcome(("x",), said, given=read) for said, read in texts]


@pytest.mark.parametrize(("name", "n"), NOVEL.items())
@settings(deadline=None)
@given(rows=pairs)
def test_novel_ngrams_equal_a_search_in_the_text(
    name: str, n: int, rows: list[tuple[list[str], list[str]]]
) -> None:
    runs = [(said[at : at + n], read) for said, read in rows for at in range(len(said) - n + 1)]
    new = sum(not stands_in(words, read) for words, read in runs)
    assert value(name, outcomes_of(rows)) == pytest.approx(new / max(1, len(runs)))


@settings(deadline=None)
@given(rows=pairs)
def test_copied_words_equal_a_search_in_the_text(rows: list[tuple[list[str], list[str]]]) -> None:
    found = [stands_in([word], read) for said, read in rows for word in said]
    share = found.count(True) / max(1, len(found))
    assert value("copied_words", outcomes_of(rows)) == pytest.approx(share)


def test_by_hand_over_the_whole_corpus() -> None:
    """The first has the-dog (there), dog-ran (new), ran-home (there); the second one more, new."""
    outcomes = [
        Outcome(("x",), ("The dog ran home",), given="the dog\nsaw a man who ran home"),
        Outcome(("x",), ("no .",), given="yes ."),
        Outcome(("x",), ("",), given="whatever"),
    ]
    assert value("novel_bigrams", outcomes) == pytest.approx(2 / 4)
    assert value("novel_trigrams", outcomes) == pytest.approx(2 / 2)
    assert value("copied_words", outcomes) == pytest.approx(5 / 6)


def test_a_copied_sentence_has_nothing_new_and_a_repeated_one_has() -> None:
    copied = [Outcome(("x",), ("one two three",), given="zero one two three four")]
    assert [value(name, copied) for name in (*NOVEL, "copied_words")] == [0.0, 0.0, 1.0]
    repeated = [Outcome(("x",), ("one two one two one",), given="one two")]
    assert value("novel_bigrams", repeated) == 2 / 4
    assert value("novel_trigrams", repeated) == 1.0


@pytest.mark.parametrize("name", [*NOVEL, "copied_words"])
def test_the_signature_has_how_words_are_split(name: str) -> None:
    (found,) = score([Outcome(("x",), ("y",), given="")], [name])
    assert found.signature.startswith(f"{name}|corpus|every occurrence|tok:spaces|case:lower|")


# Differences between outputs


def test_distinct_by_hand() -> None:
    """Words: i do not know i do i = 4 of 7. Pairs: 3 of 4, none across texts."""
    outcomes = [outcome("x", "i do not know", "other words here"), *outputs("i do", "i", "")]
    assert value("distinct1", outcomes) == pytest.approx(4 / 7)
    assert value("distinct2", outcomes) == pytest.approx(3 / 4)


def test_capitals_are_different_words() -> None:
    assert value("distinct1", [outcome("x", "Go go")]) == 1.0
    assert value("distinct1", [outcome("x", "go go")]) == 0.5


def test_repeating_it_halves_distinct() -> None:
    outcomes = [outcome("x", "a b c")]
    for name in ("distinct1", "distinct2"):
        assert value(name, outcomes) == 1.0
        assert value(name, outcomes * 2) == 0.5


def test_variety_by_hand() -> None:
    outcomes = outputs("a dog", "A dog.", "a man runs", "", "a dog", "")
    assert value("distinct_captions", outcomes) == 3 / 6
    assert value("vocabulary_used", outcomes) == 4.0


def test_seen_in_training_is_a_share() -> None:
    known = True, False, False, True, True
    outcomes = [Outcome(("x",), ("y",), familiar=familiar) for familiar in known]
    assert value("seen_in_training", outcomes) == 3 / 5
    assert metric_named("seen_in_training").better == "lower"
