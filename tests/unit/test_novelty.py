"""New and copied words against searching in the text itself, and sums done by hand."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.errors import DataError
from sixjars.evaluation.metrics import Outcome, metric_named, score

NOVEL = {"novel_bigrams": 2, "novel_trigrams": 3}

texts = st.lists(st.sampled_from(["a", "b", "A", "ab", "घर"]), max_size=8)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=4)


def value(name: str, outcomes: Sequence[Outcome]) -> float:
    return score(outcomes, [name])[0].value


def stands_in(words: list[str], text: list[str]) -> bool:
    """Whether these words follow one another somewhere, by looking for letters."""
    return f" {' '.join(words)} ".lower() in f" {' '.join(text)} ".lower()


def outcomes_of(rows: list[tuple[list[str], list[str]]]) -> list[Outcome]:
    return [Outcome(("x",), (" ".join(said), "a second one"), given="\n".join(read)) for said, read in rows]


@pytest.mark.parametrize(("name", "n"), NOVEL.items())
@settings(deadline=None)
@given(rows=pairs)
def test_novel_ngrams_equal_a_search_in_the_text(name: str, n: int, rows: list[tuple[list[str], list[str]]]) -> None:
    found = [stands_in(said[at : at + n], read) for said, read in rows for at in range(len(said) - n + 1)]
    assert value(name, outcomes_of(rows)) == pytest.approx(found.count(False) / len(found) if found else 0.0)


@settings(deadline=None)
@given(rows=pairs)
def test_copied_words_equal_a_search_in_the_text(rows: list[tuple[list[str], list[str]]]) -> None:
    found = [stands_in([word], read) for said, read in rows for word in said]
    assert value("copied_words", outcomes_of(rows)) == pytest.approx(found.count(True) / len(found) if found else 0.0)


def test_by_hand_over_the_whole_corpus() -> None:
    """The first has bigrams the-dog (there), dog-ran (new), ran-home (there); the second one more, which is new."""
    outcomes = [
        Outcome(("x",), ("The dog ran home",), given="the dog\nsaw a man who ran home"),
        Outcome(("x",), ("no .",), given="yes ."),
        Outcome(("x",), ("",), given="whatever"),
    ]
    assert value("novel_bigrams", outcomes) == pytest.approx(2 / 4)
    assert value("novel_trigrams", outcomes) == pytest.approx(2 / 2)
    assert value("copied_words", outcomes) == pytest.approx(5 / 6)


def test_who_copies_a_sentence_says_nothing_new_and_repeating_it_does() -> None:
    copied = [Outcome(("x",), ("one two three",), given="zero one two three four")]
    assert [value(name, copied) for name in (*NOVEL, "copied_words")] == [0.0, 0.0, 1.0]
    repeated = [Outcome(("x",), ("one two one two one",), given="one two")]
    assert value("novel_bigrams", repeated) == 2 / 4
    assert value("novel_trigrams", repeated) == 1.0


@pytest.mark.parametrize("name", [*NOVEL, "copied_words"])
def test_what_was_read_must_be_there(name: str) -> None:
    with pytest.raises(DataError) as caught:
        score([Outcome(("x",), ("y",), given=""), Outcome(("x",), ("y",))], [name])
    assert str(caught.value) == (
        f"{name} compares outputs with what the model read, but example 2 of 2 has no given. "
        "Give the text of its first input."
    )


@pytest.mark.parametrize("name", [*NOVEL, "copied_words"])
def test_the_signature_says_how_words_are_told(name: str) -> None:
    assert metric_named(name).signature([]).startswith(f"{name}|corpus|every occurrence|tok:spaces|case:lower|")
