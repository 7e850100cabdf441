"""The synthetic pairs of sentences: labels follow from both, and neither tells anything alone."""

from collections import Counter
from itertools import product

import pytest

from sixjars.samples import Row, generate
from sixjars.samples.quantities import WORDS


@pytest.fixture(scope="module")
def splits() -> dict[str, list[Row]]:
    return generate("sentence_pair", size=6000, valid=500, test=1500)


def read(text: str) -> tuple[str, str, str, tuple[str, ...]]:
    """Quantity, kind, activity, and the rest."""
    quantity, kind, are, activity, *rest = text.split()
    assert are == "are"
    return quantity, kind, activity, tuple(rest)


def things(word: str, table: str) -> set[str]:
    """All that a word means: itself, or all of a general word, which has nameless members too."""
    groups = WORDS.table(table)
    return {word, *groups.get(word, ())}


def claimed(kind: str, activity: str) -> set[tuple[str, str]]:
    return set(product(things(kind, "kinds"), things(activity, "activities")))


def relation(premise: str, hypothesis: str) -> str:
    """By sets: `some` claims that one of the cells is filled, `no` that none is."""
    one, kind, activity, around = read(premise)
    other, its_kind, its_activity, same = read(hypothesis)
    assert around == same
    first, second = claimed(kind, activity), claimed(its_kind, its_activity)
    narrower = first <= second if one == "some" else second <= first
    if not narrower:
        return "neutral"
    return "entailment" if one == other else "contradiction"


def test_labels_follow_from_both_sentences(splits: dict[str, list[Row]]) -> None:
    for row in splits["train"]:
        assert row["label"] == relation(row["premise"], row["hypothesis"])


def test_labels_are_equally_frequent(splits: dict[str, list[Row]]) -> None:
    counts = Counter(row["label"] for row in splits["train"])
    assert set(counts) == {"entailment", "neutral", "contradiction"}
    assert max(counts.values()) < 0.37 * 6000


@pytest.mark.parametrize("column", ["premise", "hypothesis"])
@pytest.mark.parametrize("parts", [(0,), (0, 1), (0, 2), (0, 1, 2), (3,)])
def test_one_sentence_alone_is_no_evidence(
    column: str, parts: tuple[int, ...], splits: dict[str, list[Row]]
) -> None:
    """The best guess from one sentence, learned from 6,000 rows, is no better than any."""
    counts: dict[tuple[object, ...], Counter[str]] = {}

    def seen(row: Row) -> tuple[object, ...]:
        found = read(row[column])
        return tuple(found[part] for part in parts)

    for row in splits["train"]:
        counts.setdefault(seen(row), Counter())[row["label"]] += 1
    guesses = [
        counts.get(seen(row), Counter({"neutral": 1})).most_common(1)[0][0]
        for row in splits["test"]
    ]
    right = sum(guess == row["label"] for guess, row in zip(guesses, splits["test"], strict=True))
    assert 0.28 < right / len(guesses) < 0.39


@pytest.mark.parametrize("longest", [4, 6, 9])
def test_sentences_keep_to_longest(longest: int) -> None:
    rows = generate("sentence_pair", size=200, valid=0, test=0, longest=longest)["train"]
    lengths = {len(row[column].split()) for row in rows for column in ("premise", "hypothesis")}
    assert max(lengths) <= longest
    assert max(lengths) >= longest - 1
