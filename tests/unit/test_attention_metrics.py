"""Attention on aligned words, objects and rationales against brute force and by hand."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sixjars.data.alignment.symmetry import symmetrized
from sixjars.errors import DataError, ShapeError
from sixjars.evaluation.by_length import scores_by_length
from sixjars.evaluation.metrics import (
    Outcome,
    RationaleWeight,
    focus_of,
    metric_named,
    rationale_weight,
    score,
)
from sixjars.evaluation.metrics.attention import linked
from sixjars.evaluation.metrics.table import value_alone

from .scoring import value

# Alignment


def test_links_of_words_by_hand() -> None:
    """Two words of one token, one of two; the second source word has most from the last output."""
    # the last row is that of `<stop>`
    weights = [[0.7, 0.2, 0.1], [0.6, 0.1, 0.3], [0.1, 0.2, 0.7], [0.0, 1.0, 0.0]]
    # (0, 1) is beside (0, 0), and 1 was free
    assert linked(weights, [0, 1, 1], [0, 1, 2]) == {(0, 0), (1, 2), (0, 1)}
    # the others have less than a third, or are not beside it
    assert linked(weights, [0, 1, 2], [0, 0, 0]) == {(0, 0)}
    assert linked([[0.1, 0.8, 0.1]], range(3), [0]) == {(1, 0)}
    assert linked([[1.0], [1.0]], [0], range(2)) == {(0, 0), (0, 1)}
    # the others were cut off
    assert linked([[0.9, 0.1], [0.1, 0.9]], range(6), range(2)) == {(0, 0), (1, 1)}
    expected = {(0, 0), (3, 1)}
    assert linked([[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]], range(4), range(2)) == expected
    # the first of equal ones
    assert linked([[0.5, 0.5], [0.5, 0.5]], range(2), range(2)) == {(0, 0), (0, 1), (1, 0)}
    assert linked([[0.0, 0.0]], range(2), [0]) == frozenset()
    assert linked(weights, [], [0]) == linked(weights, [0], []) == frozenset()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_links_are_those_of_both_directions(data: st.DataObject) -> None:
    """Against plain sums: a word's tokens stand together, as they do in a text."""
    source, target = (
        sorted(data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=7))) for _ in range(2)
    )
    shares = st.lists(st.floats(1e-6, 1), min_size=len(source), max_size=len(source))
    weights = data.draw(st.lists(shares, min_size=len(target), max_size=len(target)))

    def weight(one: int, two: int) -> float:
        of_word = [row for row, word in zip(weights, target, strict=True) if word == two]
        return sum(
            x for row in of_word for x, word in zip(row, source, strict=True) if word == one
        ) / len(of_word)

    ones, twos = sorted({*source}), sorted({*target})
    each = {(one, two): weight(one, two) for one in ones for two in twos}
    assume(len({round(value, 9) for value in each.values()}) == len(each))  # no two are alike
    best = {max(((one, two) for one in ones), key=each.__getitem__) for two in twos}
    other = {max(((one, two) for two in twos), key=each.__getitem__) for one in ones}
    other = {pair for pair in other if each[pair] > (1 - 1e-6) / len(ones)}
    found = linked(weights, source, target)
    assert best & other <= found <= best | other
    assert found == symmetrized(frozenset(best), frozenset(other), "grow-diag")


def test_alignment_error_rate_by_hand() -> None:
    """A has 4 + 1 links, S 3 + 1; A∩S is 2 + 0, A∩P 3 + 0: 1 - 5/9. `possible` has no sure ones."""
    links, sure = frozenset({(0, 0), (1, 1), (2, 3), (3, 2)}), frozenset({(0, 0), (1, 1), (2, 2)})
    first = Outcome(("x",), links=links, sure=sure, possible=frozenset({(2, 3)}))
    second = Outcome(("x",), links=frozenset({(0, 1)}), sure=frozenset({(1, 0)}))
    assert value("alignment_error_rate", [first, second]) == pytest.approx(1 - 5 / 9)


link_sets = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(link_sets, link_sets), min_size=1, max_size=4))
def test_without_possible_links_the_error_is_one_less_f_score(
    rows: list[tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]],
) -> None:
    """With P = S it is 1 - F1 of the links; with every link allowed and none sure it is 0."""
    found = sum(len(links) for links, _ in rows)
    true = sum(len(sure) for _, sure in rows)
    right = sum(len(links & sure) for links, sure in rows)
    f_score = 2 * right / (found + true) if found + true else 1.0
    outcomes = [Outcome(("x",), links=links, sure=sure) for links, sure in rows]
    assert value("alignment_error_rate", outcomes) == pytest.approx(1 - f_score)
    lenient = [Outcome(("x",), links=links, sure=frozenset(), possible=links) for links, _ in rows]
    assert value("alignment_error_rate", lenient) == 0.0


def test_no_links_at_all_is_no_error() -> None:
    empty = Outcome(("x",), links=frozenset(), sure=frozenset())
    assert value("alignment_error_rate", [empty]) == 0.0


# Objects

FINE = 60
"""Pixels along each side; all grids and boxes below have their edges between them."""


def rasterised(
    weights: list[float], grid: tuple[int, int], box: tuple[int, int, int, int]
) -> float:
    """Each pixel has its cell's weight, spread evenly; add up those in the box, and its share."""
    rows, columns = grid
    left, top, right, bottom = box
    inside = pixels = 0.0
    for y in range(top, bottom):
        for x in range(left, right):
            cell = (y * rows // FINE) * columns + x * columns // FINE
            inside += weights[cell] * rows * columns / FINE**2
            pixels += 1 / FINE**2
    return inside / pixels


sides = st.lists(st.integers(0, FINE), min_size=2, max_size=2, unique=True).map(sorted)
places = st.tuples(st.integers(0, 1), sides, sides)


@settings(deadline=None, max_examples=50)
@given(
    grid=st.tuples(st.sampled_from([1, 2, 3, 5]), st.sampled_from([1, 2, 4, 6])),
    drawn=st.lists(st.floats(0, 1), min_size=60, max_size=60),
    boxes=st.lists(places, min_size=1, max_size=3),
)
def test_focus_equals_counting_pixels(
    grid: tuple[int, int], drawn: list[float], boxes: list[tuple[int, list[int], list[int]]]
) -> None:
    cells = grid[0] * grid[1]
    weights = [drawn[:cells], drawn[cells : 2 * cells]]
    expected = [rasterised(weights[word], grid, (x[0], y[0], x[1], y[1])) for word, x, y in boxes]
    shares = [(word, x[0] / FINE, y[0] / FINE, x[1] / FINE, y[1] / FINE) for word, x, y in boxes]
    assert focus_of(weights, grid, shares) == pytest.approx(sum(expected) / len(expected))


@settings(deadline=None)
@given(x=sides, y=sides)
def test_even_attention_is_chance(x: list[int], y: list[int]) -> None:
    box = (0, x[0] / FINE, y[0] / FINE, x[1] / FINE, y[1] / FINE)
    assert focus_of([[1 / 49] * 49], (7, 7), [box]) == pytest.approx(1.0)


def test_focus_by_hand() -> None:
    """All weight on the upper right of four cells: its box has 4, the right half 4, the left 0."""
    weights = [[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert focus_of(weights, (2, 2), [(1, 0.5, 0.0, 1.0, 0.5)]) == pytest.approx(4.0)
    assert focus_of(weights, (2, 2), [(1, 0.75, 0.0, 1.0, 0.5)]) == pytest.approx(4.0)
    assert focus_of(weights, (2, 2), [(1, 0.0, 0.0, 0.5, 1.0)]) == 0.0
    two = [(word, 0.5, 0.0, 1.0, 0.5) for word in (1, 0)]
    assert focus_of(weights, (2, 2), two) == pytest.approx(2.0)
    assert focus_of(weights, (2, 2), []) is None


def test_what_sticks_out_of_the_image_is_cut_off() -> None:
    assert focus_of([[0.0, 1.0]], (1, 2), [(0, 0.5, -1.0, 3.0, 2.0)]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    "sides", [(0.5, 0.0, 0.5, 1.0), (0.0, 0.6, 1.0, 0.4), (1.0, 0.0, 1.5, 1.0)]
)
def test_a_box_must_cover_something(sides: tuple[float, float, float, float]) -> None:
    with pytest.raises(DataError) as caught:
        focus_of([[0.5, 0.5]], (1, 2), [(0, *sides)])
    told = f"the box {sides} of word 0 covers nothing of the image. Give shares from 0 to 1."
    assert str(caught.value) == told


def test_a_box_belongs_to_a_word() -> None:
    for word in (1, -1):
        with pytest.raises(ShapeError) as caught:
            focus_of([[0.5, 0.5]], (1, 2), [(word, 0.0, 0.0, 1.0, 1.0)])
        told = f"a box belongs to word {word}, but there are weights for 1 words."
        assert str(caught.value) == told


def test_object_focus_is_the_mean_of_those_that_have_one() -> None:
    outcomes = [Outcome(("x",), focus=focus) for focus in (3.0, None, 0.5, 0.0)]
    assert value("object_focus", outcomes) == pytest.approx(3.5 / 3)
    assert "|with boxes:3|" in score(outcomes, ["object_focus"])[0].signature


# Rationales

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
def test_rationale_by_hand(sentence: int, word: int, expected: tuple[float, ...]) -> None:
    found = rationale_weight(WEIGHTS, OF, sentence, word)
    assert found is not None
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
    of = [number for number, size in enumerate(sizes) for _ in range(size)]
    found = rationale_weight([1 / len(of)] * len(of), of, sentence, word)
    beside = sum(abs(other - word) <= 1 for other in range(sizes[sentence]))
    assert found is not None
    assert found.sentence == pytest.approx(sizes[sentence] / len(of))
    assert found.word == pytest.approx(1 / sizes[sentence])
    assert found.near == pytest.approx(beside / sizes[sentence])


@pytest.mark.parametrize(("sentence", "word"), [(0, 2), (1, 1), (3, 0)])
def test_a_rationale_that_is_cut_off_has_no_weight(sentence: int, word: int) -> None:
    assert rationale_weight([0.5, 0.25, 0.25], [0, 0, 1], sentence, word) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [("rationale_sentence", 0.5), ("rationale_word", 0.3), ("rationale_word_near", 0.7)],
)
def test_means_are_of_those_that_have_a_rationale(name: str, expected: float) -> None:
    weights = RationaleWeight(0.9, 0.5, 1.0), None, RationaleWeight(0.1, 0.1, 0.4)
    outcomes = [Outcome(("x",), ("x",), rationale=weight) for weight in weights]
    (found,) = score(outcomes, [name])
    assert found.value == pytest.approx(expected)
    assert found.better == "higher"
    assert found.signature.startswith(f"{name}|")
    assert "|with rationales:2|" in found.signature


@pytest.mark.parametrize(
    ("name", "need", "what"),
    [("object_focus", "focus", "words whose objects have true boxes")]
    + [(f"rationale_{level}", "rationale", "the attention weight on true rationales")
       for level in ("sentence", "word", "word_near")],
)  # fmt: skip
def test_one_example_is_needed(name: str, need: str, what: str) -> None:
    assert metric_named(name).needs == {need}
    with pytest.raises(DataError) as caught:
        score([Outcome(("x",), ("x",)), Outcome(("x",))], [name])
    none = f"{name} needs {what}, but none of 2 examples has a {need}."
    assert str(caught.value) == f"{none} Give it for one at least."


def test_outcomes_without_true_links_are_left_out() -> None:
    right = Outcome(("x",), links=frozenset({(0, 0)}), sure=frozenset({(0, 0)}))
    unknown = Outcome(("x",), links=frozenset({(0, 0), (1, 1)}))
    metric = metric_named("alignment_error_rate")
    [found] = score([right, unknown], [metric])
    assert found.value == 0.0
    assert "|corpus|attention|grow-diag|with links:1|" in found.signature
    assert (value_alone(metric, right), value_alone(metric, unknown)) == (0.0, None)
    buckets = scores_by_length([right, unknown], [1, 9], metric=metric, edges=[(1, 5), (6, 10)])
    assert [bucket.value for bucket in buckets] == [0.0, None]
