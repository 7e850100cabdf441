"""Attention on the key of a document, with numbers done by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.errors import DataError, ShapeError
from sixjars.evaluation.metrics import Outcome, RationaleWeight, metric_named, rationale_weight, score

WEIGHTS = [0.05, 0.05, 0.1, 0.2, 0.3, 0.05, 0.15, 0.1]
OF = [0, 0, 1, 1, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("sentence", "word", "expected"),
    [
        (1, 2, (0.65, 0.3 / 0.65, 0.55 / 0.65)),  # 0.2 + 0.3 + 0.05 around it
        (1, 0, (0.65, 0.1 / 0.65, 0.3 / 0.65)),  # the word before it is of another sentence
        (1, 3, (0.65, 0.05 / 0.65, 0.35 / 0.65)),  # and so is the one after it
        (2, 1, (0.25, 0.1 / 0.25, 1.0)),
        (0, 0, (0.1, 0.5, 1.0)),
    ],
)
def test_by_hand(sentence: int, word: int, expected: tuple[float, ...]) -> None:
    found = rationale_weight(WEIGHTS, OF, sentence, word)
    assert (found.sentence, found.word, found.near) == pytest.approx(expected)


def test_a_sentence_without_weight_has_no_shares() -> None:
    assert rationale_weight([0.0, 0.0, 1.0], [0, 0, 1], 0, 1) == RationaleWeight(0.0, 0.0, 0.0)


def test_a_sentence_of_one_word_is_the_word() -> None:
    assert rationale_weight([0.25, 0.75], [0, 1], 1, 0) == RationaleWeight(0.75, 1.0, 1.0)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5),
    at=st.tuples(st.integers(0, 4), st.integers(0, 4)),
)
def test_even_weights_give_shares_of_counts(sizes: list[int], at: tuple[int, int]) -> None:
    sentence, word = at[0] % len(sizes), at[1] % sizes[at[0] % len(sizes)]
    of = [part for part, size in enumerate(sizes) for _ in range(size)]
    found = rationale_weight([1 / len(of)] * len(of), of, sentence, word)
    beside = sum(abs(other - word) <= 1 for other in range(sizes[sentence]))
    assert found.sentence == pytest.approx(sizes[sentence] / len(of))
    assert found.word == pytest.approx(1 / sizes[sentence])
    assert found.near == pytest.approx(beside / sizes[sentence])


def test_weights_must_fit_the_positions() -> None:
    with pytest.raises(ShapeError) as caught:
        rationale_weight([0.5, 0.5], [0, 0, 1], 0, 0)
    assert str(caught.value) == "a document has 2 weights, but 3 positions have a sentence."


@pytest.mark.parametrize(("sentence", "word", "count"), [(0, 2, 2), (0, -1, 2), (3, 0, 0)])
def test_the_key_must_be_in_the_document(sentence: int, word: int, count: int) -> None:
    with pytest.raises(ShapeError) as caught:
        rationale_weight([0.5, 0.25, 0.25], [0, 0, 1], sentence, word)
    assert str(caught.value) == f"the key is word {word} of sentence {sentence}, but that sentence has {count} words."


@pytest.mark.parametrize(("name", "expected"), [("key_sentence", 0.5), ("key_word", 0.3), ("key_word_near", 0.7)])
def test_means_are_of_those_that_have_a_key(name: str, expected: float) -> None:
    outcomes = [
        Outcome(("x",), key=RationaleWeight(0.9, 0.5, 1.0)),
        Outcome(("x",), ("x",)),
        Outcome(("x",), key=RationaleWeight(0.1, 0.1, 0.4)),
    ]
    (found,) = score(outcomes, [name])
    assert found.value == pytest.approx(expected)
    assert found.better == "higher"
    assert found.signature.startswith(f"{name}|")
    assert "|with keys:2|" in found.signature


@pytest.mark.parametrize("name", ["key_sentence", "key_word", "key_word_near"])
def test_one_key_is_needed(name: str) -> None:
    assert metric_named(name).needs == {"key"}
    with pytest.raises(DataError) as caught:
        score([Outcome(("x",), ("x",)), Outcome(("x",))], [name])
    assert str(caught.value) == (
        f"{name} needs the weight on the place that decides a document, but none of 2 examples has a key. "
        "Give it for one at least."
    )
