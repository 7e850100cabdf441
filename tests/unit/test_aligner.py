"""The aligner against a plain loop over all words, and symmetrization against worked examples."""

import itertools
import math
import random
from collections import defaultdict

import numpy as np
import pyarrow
import pytest

from sixjars.data.alignment import pairs
from sixjars.data.alignment.aligner import aligned
from sixjars.data.alignment.model import NULL, SPREAD, DiagonalModel, best_steepness
from sixjars.data.alignment.pairs import PairedText, WordIds
from sixjars.data.alignment.symmetry import SYMMETRIZATIONS, grow_diag, symmetrized
from sixjars.data.annotations import Links
from sixjars.recipe.data import DIAGONAL

FIRST = ["the house is small", "the book", "a book is a book", "house", "", "the house", "x y"]
SECOND = [
    "das haus ist klein",
    "das buch",
    "ein buch ist ein buch hier",
    "haus",
    "nichts",
    "das haus",
    "",
]
Table = dict[tuple[str, str], float]


def paired(first: list[str], second: list[str]) -> PairedText:
    return PairedText.of(WordIds.of(pyarrow.array(first)), WordIds.of(pyarrow.array(second)))


def slope_of(x: float) -> float:
    """ψ, from the logarithm of the gamma function."""
    return (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5


class Loop:
    """The same model, one direction, word by word."""

    def __init__(self, given: list[str], explained: list[str]) -> None:
        self.sentences = [
            (a.split(), b.split()) for a, b in zip(given, explained, strict=True) if a and b
        ]
        self.words = {word for _, words in self.sentences for word in words}
        self.theta: Table = defaultdict(lambda: 1.0)
        self.steepness = DIAGONAL

    def prior(self, size: int, t: int, length: int, steepness: float) -> list[float]:
        weights = [
            math.exp(-steepness * abs((s + 1) / size - (t + 1) / length)) for s in range(size)
        ]
        return [(1 - NULL) * weight / sum(weights) for weight in weights]

    def joint(self, given: list[str], words: list[str], t: int) -> list[float]:
        """Of each given word and then of none."""
        prior = self.prior(len(given), t, len(words), self.steepness)
        found = [p * self.theta[word, words[t]] for p, word in zip(prior, given, strict=True)]
        return [*found, NULL * self.theta["", words[t]]]

    def expect(self) -> Table:
        counts: Table = defaultdict(float)
        for given, words in self.sentences:
            for t, word in enumerate(words):
                joint = self.joint(given, words, t)
                for other, value in zip([*given, ""], joint, strict=True):
                    counts[other, word] += value / sum(joint)
        return counts

    def likely(self, steepness: float) -> float:
        """What λ maximizes: the expected log probability of the positions of the links."""
        total = 0.0
        for given, words in self.sentences:
            for t in range(len(words)):
                joint = self.joint(given, words, t)
                prior = self.prior(len(given), t, len(words), steepness)
                total += sum(
                    j / sum(joint) * math.log(p) for j, p in zip(joint, prior, strict=False)
                )
        return total

    def maximize(self, counts: Table, steepness: float) -> None:
        totals: dict[str, float] = defaultdict(float)
        for (given, _), count in counts.items():
            totals[given] += count
        floor = SPREAD * len(self.words)
        self.theta = {
            key: math.exp(slope_of(count + SPREAD) - slope_of(totals[key[0]] + floor))
            for key, count in counts.items()
        }
        self.steepness = steepness


def spelled(texts: list[str]) -> list[str]:
    """Different words in the order in which they are numbered."""
    return list(dict.fromkeys(word for text in texts for word in text.split() or [""]))


@pytest.mark.parametrize("reverse", [False, True])
def test_each_iteration_is_that_of_a_plain_loop(reverse: bool) -> None:
    # so that both know the same words
    used = [(a, b) for a, b in zip(FIRST, SECOND, strict=True) if a and b]
    first, second = [a for a, _ in used], [b for _, b in used]
    model = DiagonalModel(paired(first, second), reverse=reverse)
    given, explained = (second, first) if reverse else (first, second)
    loop, given_names, names = Loop(given, explained), spelled(given), spelled(explained)
    for _ in range(3):
        found, wanted = model.expect(), loop.expect()
        counts = {
            (given_names[a], names[b]): value
            for a, b, value in zip(model.given, model.explained, found.pairs.tolist(), strict=True)
        }
        counts |= {("", names[at]): value for at, value in enumerate(found.null.tolist())}
        assert counts == pytest.approx(dict(wanted), abs=1e-9)
        model.maximize(found)
        assert (
            loop.likely(model.steepness)
            >= max(map(loop.likely, np.linspace(0.1, 14, 140).tolist())) - 1e-9
        )
        loop.maximize(wanted, model.steepness)
        table = {
            (given_names[a], names[b]): value
            for a, b, value in zip(model.given, model.explained, model.theta.tolist(), strict=True)
        }
        assert table == pytest.approx({key: loop.theta[key] for key in table}, rel=1e-4)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    first = [" ".join(draw.choices("abcdefgh", k=draw.randint(0, 6))) for _ in range(60)]
    second = [" ".join(draw.choices("ABCDEFGHIJ", k=draw.randint(0, 6))) for _ in range(60)]
    whole = aligned(pyarrow.array(first), pyarrow.array(second))
    monkeypatch.setattr(pairs, "CHUNK", 50)
    assert len(paired(first, second).chunks) > 5
    parts = aligned(pyarrow.array(first), pyarrow.array(second))
    assert [parts.links(line) for line in range(60)] == [whole.links(line) for line in range(60)]


def test_the_best_link_is_that_of_a_plain_loop() -> None:
    text = paired(FIRST, SECOND)
    model, loop = DiagonalModel(text), Loop(FIRST, SECOND)
    loop.words |= {"nichts"}
    for _ in range(3):
        counts = loop.expect()
        model.iterate()
        loop.maximize(counts, model.steepness)
    for lines_K, best_KT in model.best():
        for line, best in zip(lines_K.tolist(), best_KT.tolist(), strict=True):
            given, words = FIRST[line].split(), SECOND[line].split()
            for t, found in enumerate(best):
                joint = loop.joint(given, words, t)
                assert joint[found] == pytest.approx(max(joint))


def test_lines_without_words_have_no_links_and_keep_their_place() -> None:
    found = aligned(pyarrow.array(FIRST), pyarrow.array(SECOND))
    assert len(found) == len(FIRST)
    expected = [True, True, True, True, False, True, False]
    assert [bool(found.links(line)) for line in range(7)] == expected
    assert len(aligned(pyarrow.array(["", ""]), pyarrow.array(["", "a"]))) == 2


def test_lines_that_are_too_long_have_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "CHUNK", 20)
    told: list[str] = []
    monkeypatch.setattr(pairs, "tell", told.append)
    found = aligned(
        pyarrow.array(["a b c d e", "a b", "a b"]), pyarrow.array(["x x x x y", "x y", "x y"])
    )
    assert [bool(found.links(line)) for line in range(3)] == [False, True, True]
    assert told == [
        "1 pair of lines with more than 20 pairs of words: too long, left without links."
    ]


def test_words_are_found_from_the_texts_alone() -> None:
    """Every word has one translation, and the order is reversed: the diagonal is of no help."""
    draw = random.Random(1)
    rows = [draw.sample("abcdefghijklmnop", draw.randint(3, 6)) for _ in range(200)]
    second = [" ".join(letter * 2 for letter in reversed(row)) for row in rows]
    found = aligned(pyarrow.array([" ".join(row).upper() for row in rows]), pyarrow.array(second))
    right = sum(
        found.links(at) == {(s, len(row) - 1 - s) for s in range(len(row))}
        for at, row in enumerate(rows)
    )
    assert right > 190


def errors(count: int, *, diagonal: float) -> float:
    """The alignment error rate on short sentences whose translation is turned round."""
    draw, weights = random.Random(0), [1 / (word + 1) for word in range(300)]
    rows = [draw.choices(range(300), weights, k=draw.randint(4, 14)) for _ in range(count)]
    first, second = (
        [" ".join(f"w{word}" for word in row[::step]) for row in rows] for step in (1, -1)
    )
    found = aligned(pyarrow.array(first), pyarrow.array(second), diagonal=diagonal)
    links = [found.links(line) for line in range(count)]
    true = [frozenset((at, len(row) - 1 - at) for at in range(len(row))) for row in rows]
    right = sum(len(one & other) for one, other in zip(links, true, strict=True))
    return 1 - 2 * right / (sum(map(len, links)) + sum(map(len, true)))


def test_words_of_another_order_are_found_without_the_diagonal() -> None:
    usual, weak, none = (errors(300, diagonal=one) for one in (DIAGONAL, 0.1, 0.0))
    assert none < weak < usual
    assert none < 0.6 * usual


def test_without_the_diagonal_all_places_are_alike() -> None:
    model = DiagonalModel(paired(FIRST, SECOND), steepness=0.0)
    model.iterate()
    assert model.steepness == 0.0


def test_steepness_stays_within_its_limits() -> None:
    mass = {(3, 3): np.ones(3)}
    assert best_steepness(4.0, 0.0, mass) == 14.0
    assert best_steepness(4.0, -10.0, mass) == 0.1
    assert best_steepness(4.0, 0.0, {(1, 1): np.ones(1)}) == 4.0  # one position tells nothing


FORWARD: Links = frozenset({(0, 0), (1, 1), (1, 2), (3, 3), (5, 6)})
BACKWARD: Links = frozenset({(0, 0), (1, 1), (2, 2), (4, 3), (5, 7), (6, 6)})


def test_growing_by_hand() -> None:
    """Both have 0-0 and 1-1.

    From 1-1, its neighbour 1-2 is in the union, and the second word 2 has no link yet: added. So is
    2-2, as the first word 2 has none. 3-3 is a neighbour of 2-2 and both its words are free: added.
    4-3 is beside 3-3, and the first word 4 is free. 5-6, 5-7 and 6-6 are beside no link.
    """
    assert grow_diag(FORWARD, BACKWARD) == {(0, 0), (1, 1), (1, 2), (2, 2), (3, 3), (4, 3)}


def test_final_by_hand() -> None:
    """Of what is left, 5-6 has two free words: added by both; then 5-7 and 6-6 have one each."""
    grown = grow_diag(FORWARD, BACKWARD)
    assert symmetrized(FORWARD, BACKWARD, "grow-diag-final-and") == grown | {(5, 6)}
    assert symmetrized(FORWARD, BACKWARD, "grow-diag-final") == grown | {(5, 6), (5, 7), (6, 6)}


def test_a_neighbour_whose_words_have_links_is_not_added() -> None:
    forward: Links = frozenset({(0, 0), (1, 1), (0, 1)})
    assert grow_diag(forward, frozenset({(0, 0), (1, 1)})) == {(0, 0), (1, 1)}


def test_symmetrizations_are_ordered() -> None:
    draw = random.Random(2)
    every = list(itertools.product(range(5), range(5)))
    for _ in range(50):
        forward, backward = (frozenset(draw.sample(every, 5)) for _ in "ab")
        found = {how: symmetrized(forward, backward, how) for how in SYMMETRIZATIONS}
        assert found["intersection"] == forward & backward <= found["grow-diag"]
        assert found["grow-diag"] <= found["grow-diag-final-and"] & found["grow-diag-final"]
        assert (
            found["grow-diag-final-and"] | found["grow-diag-final"]
            <= found["union"]
            == forward | backward
        )
        assert (found["forward"], found["backward"]) == (forward, backward)


def test_a_word_that_no_given_word_explains_has_no_link() -> None:
    """`ja` ends every sentence, whatever the other words are."""
    nouns = ["house", "book", "tree", "river", "cloud", "stone"]
    rows = [random.Random(seed).sample(nouns, 3) for seed in range(40)]
    second = [" ".join([*(noun[::-1] for noun in row), "ja"]) for row in rows]
    model = DiagonalModel(paired([" ".join(row) for row in rows], second), steepness=0)
    for _ in range(10):
        model.iterate()
    links = np.concatenate([best for _, best in model.best()])
    assert links.tolist() == [[0, 1, 2, -1]] * 40
