"""Labels and attention on objects against brute force and sums done by hand."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.errors import DataError, ShapeError
from sixjars.evaluation.metrics import (
    ClassRow,
    Confusion,
    Outcome,
    confusion,
    focus_of,
    metric_named,
    per_class,
    score,
)
from sixjars.evaluation.metrics.answers import labels_of

LABELS = ("run", "jump", "sit", "swim", "")
outcomes_of_labels = st.lists(
    st.builds(
        Outcome,
        references=st.lists(st.sampled_from(LABELS), min_size=1, max_size=2).map(tuple),
        candidates=st.lists(st.sampled_from(LABELS), min_size=1, max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


def told(*pairs: tuple[str, str]) -> list[Outcome]:
    """True label, then the predicted one."""
    return [Outcome((right,), (said,)) for right, said in pairs]


def value(name: str, outcomes: Sequence[Outcome]) -> float:
    return score(outcomes, [name])[0].value


def true_label(outcome: Outcome) -> str:
    return next((right for right in outcome.references if right == outcome.candidates[0]), outcome.references[0])


def harmonic(precision: float, recall: float) -> float:
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


# Classes


@settings(deadline=None)
@given(outcomes=outcomes_of_labels)
def test_rows_equal_brute_force(outcomes: list[Outcome]) -> None:
    expected = []
    for label in {true_label(o) for o in outcomes} | {o.candidates[0] for o in outcomes}:
        are = {at for at, o in enumerate(outcomes) if true_label(o) == label}
        called = {at for at, o in enumerate(outcomes) if o.candidates[0] == label}
        precision = len(are & called) / len(called) if called else 0.0
        recall = len(are & called) / len(are) if are else 0.0
        expected.append((-len(are), label, precision, recall, harmonic(precision, recall)))
    rows = per_class(outcomes)
    assert [(-row.count, row.label) for row in rows] == [row[:2] for row in sorted(expected)]
    for row, (_, _, *numbers) in zip(rows, sorted(expected), strict=True):
        assert [row.precision, row.recall, row.f1] == pytest.approx(numbers)
    mean = sum(row[-1] for row in expected) / len(expected)
    assert value("macro_f1", outcomes) == pytest.approx(mean)


@settings(deadline=None)
@given(outcomes=outcomes_of_labels)
def test_micro_f1_of_one_label_each_is_accuracy(outcomes: list[Outcome]) -> None:
    assert value("micro_f1", outcomes) == pytest.approx(value("accuracy@1", outcomes))


def test_macro_f1_by_hand() -> None:
    """Of run 2 of 3 found among 2 called so, of jump 1 of 1 among 2: (4/5 + 2/3) / 2."""
    outcomes = told(("run", "run"), ("run", "run"), ("run", "jump"), ("jump", "jump"))
    assert value("macro_f1", outcomes) == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert per_class(outcomes)[1] == ClassRow("jump", count=1, precision=0.5, recall=1.0, f1=2 / 3)


def test_a_rare_class_counts_as_much_as_a_common_one() -> None:
    outcomes = told(*[("run", "run")] * 98, ("sit", "run"), ("sit", "run"))
    assert value("accuracy@1", outcomes) == 0.98
    assert value("macro_f1", outcomes) == pytest.approx((2 * 98 / 198 + 0) / 2)


@settings(deadline=None)
@given(outcomes=outcomes_of_labels, most=st.integers(0, 6))
def test_confusion_equals_brute_force(outcomes: list[Outcome], most: int) -> None:
    labels = [row.label for row in per_class(outcomes)]
    found = confusion(outcomes, most=most)
    named = labels[:most] + ["other"] * (len(labels) > most)
    assert found.labels == tuple(named)
    for row, right in enumerate(named):
        for column, said in enumerate(named):
            rights = set(labels[most:]) if right == "other" else {right}
            calls = set(labels[most:]) if said == "other" else {said}
            count = sum(true_label(o) in rights and o.candidates[0] in calls for o in outcomes)
            assert found.counts[row][column] == count


def test_confusion_shows_twelve_classes_and_the_rest() -> None:
    twelve = confusion(told(*((f"c{number:02}", "c00") for number in range(12))))
    assert twelve.labels == tuple(f"c{number:02}" for number in range(12))
    more = confusion(told(*((f"c{number:02}", f"c{number:02}") for number in range(15))))
    assert more.labels == (*twelve.labels, "other")
    assert more.counts[-1][-1] == 3


def test_a_class_called_other_is_not_the_rest() -> None:
    found = confusion(told(("other", "other"), ("other", "run"), ("run", "sit")), most=1)
    assert found == Confusion(("other", "all other"), ((1, 1), (0, 1)))
    hidden = confusion(told(("run", "run"), ("run", "other"), ("other", "sit")), most=1)
    assert hidden == Confusion(("run", "other"), ((1, 1), (0, 1)))


def test_no_examples_have_no_classes() -> None:
    assert per_class([]) == []
    assert confusion([]) == Confusion((), ())


def test_classes_need_candidates() -> None:
    with pytest.raises(DataError) as caught:
        per_class([*told(("run", "run")), Outcome(("run",))])
    assert str(caught.value) == (
        "Classes are counted from what the model said, but example 2 of 2 has no candidates. "
        "Give at least one; the empty text is one."
    )


@pytest.mark.parametrize("kind", [ClassRow, Confusion])
def test_values_are_final_and_frozen(kind: type) -> None:
    assert getattr(kind, "__final__", False)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


# Several labels

sets_of_labels = st.lists(st.sampled_from(["grain", "wheat", "crude", "a, b"]), max_size=4)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(sets_of_labels, sets_of_labels), min_size=1, max_size=8))
def test_sets_equal_a_table_of_yes_and_no(rows: list[tuple[list[str], list[str]]]) -> None:
    """A column of truths and one of answers for every label, over which precision and recall are counted."""
    outcomes = [Outcome((", ".join(right),), (", ".join(said),)) for right, said in rows]
    cells: dict[str, list[tuple[bool, bool]]] = {}
    for label in ("a", "b", "crude", "grain", "wheat"):
        column = [(label in ", ".join(right).split(", "), label in ", ".join(said).split(", ")) for right, said in rows]
        if any(map(any, column)):
            cells[label] = column
    scores = {label: f1_of(column) for label, column in cells.items()}
    assert {row.label: row.f1 for row in per_class(outcomes, multi_label=True)} == pytest.approx(scores)
    assert value("labels_macro_f1", outcomes) == pytest.approx(sum(scores.values()) / max(1, len(scores)))
    assert value("labels_micro_f1", outcomes) == pytest.approx(f1_of([c for column in cells.values() for c in column]))
    exact = [all(column[at][0] == column[at][1] for column in cells.values()) for at in range(len(rows))]
    assert value("labels_exact", outcomes) == pytest.approx(sum(exact) / len(exact))


def f1_of(cells: list[tuple[bool, bool]]) -> float:
    both, true, said = (sum(map(kind, cells)) for kind in (all, lambda cell: cell[0], lambda cell: cell[1]))
    return harmonic(both / said if said else 0.0, both / true if true else 0.0)


def test_several_labels_by_hand() -> None:
    """Wheat 2 of 2 and 2 called; grain 1 of 2 and 1 called; crude none and 1 called: 6 of 8 in all."""
    outcomes = told(("grain, wheat", "wheat, grain"), ("wheat", "wheat, crude"), ("grain", ""))
    assert value("labels_micro_f1", outcomes) == pytest.approx(2 * 3 / (4 + 4))
    assert value("labels_macro_f1", outcomes) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert value("labels_exact", outcomes) == pytest.approx(1 / 3)
    assert per_class(outcomes, multi_label=True) == [
        ClassRow("grain", count=2, precision=1.0, recall=0.5, f1=2 / 3),
        ClassRow("wheat", count=2, precision=1.0, recall=1.0, f1=1.0),
        ClassRow("crude", count=0, precision=0.0, recall=0.0, f1=0.0),
    ]


def test_the_reference_that_was_said_is_the_true_set() -> None:
    outcomes = [Outcome(("grain", "wheat, grain"), ("grain, wheat",))]
    assert [value(name, outcomes) for name in ("labels_exact", "labels_micro_f1", "labels_macro_f1")] == [1.0] * 3


def test_a_comma_in_the_name_of_a_class_does_not_split_it() -> None:
    outcomes = told(("yes, please", "yes, please"), ("no, thanks", "yes, thanks"))
    assert {row.label for row in per_class(outcomes)} == {"yes, please", "no, thanks", "yes, thanks"}
    assert value("micro_f1", outcomes) == 0.5
    assert value("macro_f1", outcomes) == pytest.approx(1 / 3)
    assert value("labels_micro_f1", outcomes) == pytest.approx(2 * 3 / (4 + 4))


def test_labels_of_a_text() -> None:
    assert labels_of("grain, wheat, grain") == {"grain", "wheat"}
    assert labels_of("") == frozenset()
    assert labels_of("1,000 ships") == {"1,000 ships"}


# Attention on objects

FINE = 60
"""Pixels along each side; all grids and boxes below have their edges between them."""


def rasterised(weights: list[float], grid: tuple[int, int], box: tuple[int, int, int, int]) -> float:
    """Each pixel has its cell's weight, spread evenly; add up those in the box, and the share of pixels there."""
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
    """All weight on the upper right of four cells: the box of that cell has 4, its right half 4, its left side 0."""
    weights = [[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert focus_of(weights, (2, 2), [(1, 0.5, 0.0, 1.0, 0.5)]) == pytest.approx(4.0)
    assert focus_of(weights, (2, 2), [(1, 0.75, 0.0, 1.0, 0.5)]) == pytest.approx(4.0)
    assert focus_of(weights, (2, 2), [(1, 0.0, 0.0, 0.5, 1.0)]) == 0.0
    assert focus_of(weights, (2, 2), [(1, 0.5, 0.0, 1.0, 0.5), (0, 0.5, 0.0, 1.0, 0.5)]) == pytest.approx(2.0)
    assert focus_of(weights, (2, 2), []) is None


def test_what_sticks_out_of_the_picture_is_cut_off() -> None:
    assert focus_of([[0.0, 1.0]], (1, 2), [(0, 0.5, -1.0, 3.0, 2.0)]) == pytest.approx(2.0)


@pytest.mark.parametrize("sides", [(0.5, 0.0, 0.5, 1.0), (0.0, 0.6, 1.0, 0.4), (1.0, 0.0, 1.5, 1.0)])
def test_a_box_must_cover_something(sides: tuple[float, float, float, float]) -> None:
    with pytest.raises(DataError) as caught:
        focus_of([[0.5, 0.5]], (1, 2), [(0, *sides)])
    assert str(caught.value) == (f"the box {sides} of word 0 covers nothing of the picture. Give shares from 0 to 1.")


def test_weights_must_fit_the_grid_and_the_words() -> None:
    with pytest.raises(ShapeError) as caught:
        focus_of([[0.5, 0.5]], (2, 2), [(0, 0.0, 0.0, 1.0, 1.0)])
    assert str(caught.value) == "a word has 2 weights, but the grid of 2 by 2 has 4 cells."
    for word in (1, -1):
        with pytest.raises(ShapeError) as caught:
            focus_of([[0.5, 0.5]], (1, 2), [(word, 0.0, 0.0, 1.0, 1.0)])
        assert str(caught.value) == f"a box belongs to word {word}, but there are weights for 1 words."


def test_object_focus_is_the_mean_of_those_that_have_one() -> None:
    outcomes = [Outcome(("x",), focus=focus) for focus in (3.0, None, 0.5, 0.0)]
    assert value("object_focus", outcomes) == pytest.approx(3.5 / 3)
    assert "|with boxes:3|" in metric_named("object_focus").signature(outcomes)


def test_object_focus_needs_one() -> None:
    with pytest.raises(DataError) as caught:
        score([Outcome(("x",), ("x",)), Outcome(("x",))], ["object_focus"])
    assert str(caught.value) == (
        "object_focus needs words whose objects have true boxes, but none of 2 examples has a focus. "
        "Give it for one at least."
    )
