"""Right answers, ranks, perplexity, classes and labels against brute force and by hand."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.errors import DataError
from sixjars.evaluation.metrics import ClassRow, Confusion, Outcome, confusion, per_class
from sixjars.evaluation.metrics.classes import labels_of

from .scoring import outcome, value

LABELS = ("run", "jump", "sit", "swim", "")
outcomes_of_labels = st.lists(
    st.builds(
        Outcome,
        references=st.lists(st.sampled_from(LABELS), min_size=1, max_size=2).map(tuple),
        candidates=st.lists(st.sampled_from(LABELS), min_size=1, max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=12,
)


def predicted(*pairs: tuple[str, str]) -> list[Outcome]:
    """True label, then the predicted one."""
    return [Outcome((right,), (said,)) for right, said in pairs]


def true_label(outcome: Outcome) -> str:
    said, rights = outcome.candidates[0], outcome.references
    return said if said in rights else rights[0]


def harmonic(precision: float, recall: float) -> float:
    return 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)


# Right answers


def test_accuracy_and_rank_by_hand() -> None:
    outcomes = [outcome(right, "a", "b", "c") for right in ("a", "b", ("x", "c"))]
    outcomes.append(outcome("d", "a"))
    shares = [value(f"accuracy@{k}", outcomes) for k in (1, 2, 3, 4, 100)]
    assert shares == [0.25, 0.5, 0.75, 0.75, 0.75]
    assert value("exact_match", outcomes) == 0.25
    outcomes[1] = outcome("b", "a", "b", "b")
    assert value("mean_reciprocal_rank", outcomes) == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)


def test_answers_are_compared_as_they_are() -> None:
    pairs: list[tuple[str | tuple[str, ...], str]]
    pairs = [("Delhi", "delhi"), ("a", "a "), ("", ""), ("two", "2"), (("two", "2"), "2")]
    outcomes = [outcome(right, said) for right, said in pairs]
    assert value("exact_match", outcomes) == pytest.approx(2 / 5)


@settings(deadline=None)
@given(outcomes=outcomes_of_labels)
def test_accuracy_grows_with_k_and_bounds_the_reciprocal_rank(outcomes: list[Outcome]) -> None:
    shares = [value(f"accuracy@{k}", outcomes) for k in (1, 2, 3)]
    assert shares == sorted(shares)
    assert shares[0] == value("exact_match", outcomes)
    # Each extra hit at place k is worth 1/k.
    expected = shares[0] + (shares[1] - shares[0]) / 2 + (shares[2] - shares[1]) / 3
    assert value("mean_reciprocal_rank", outcomes) == pytest.approx(expected)


# Likelihood


@settings(deadline=None)
@given(size=st.integers(1, 50_000), lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_uniform_model_has_perplexity_of_its_vocabulary(size: int, lengths: list[int]) -> None:
    outcomes = [Outcome(("x",), log_probability=n * math.log(1 / size), tokens=n) for n in lengths]
    assert value("perplexity", outcomes) == pytest.approx(size)


def test_perplexity_by_hand() -> None:
    """Three tokens of probability 1/2, 1/4 and 1/8: the cube root of 64."""
    outcomes = [
        Outcome(("x",), log_probability=math.log(1 / 2) + math.log(1 / 4), tokens=2),
        Outcome(("y",), log_probability=math.log(1 / 8), tokens=1),
    ]
    assert value("perplexity", outcomes) == pytest.approx(4.0)


@pytest.mark.parametrize("log_probability", [-math.inf, -1e6])
def test_hopeless_model_has_infinite_perplexity(log_probability: float) -> None:
    hopeless = Outcome(("x",), log_probability=log_probability, tokens=1)
    assert value("perplexity", [hopeless]) == math.inf


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
    outcomes = predicted(("run", "run"), ("run", "run"), ("run", "jump"), ("jump", "jump"))
    assert value("macro_f1", outcomes) == pytest.approx((4 / 5 + 2 / 3) / 2)
    assert per_class(outcomes)[1] == ClassRow("jump", count=1, precision=0.5, recall=1.0, f1=2 / 3)


def test_a_rare_class_counts_as_much_as_a_common_one() -> None:
    outcomes = predicted(*[("run", "run")] * 98, ("sit", "run"), ("sit", "run"))
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
    twelve = confusion(predicted(*((f"c{number:02}", "c00") for number in range(12))))
    assert twelve.labels == tuple(f"c{number:02}" for number in range(12))
    more = confusion(predicted(*((f"c{number:02}", f"c{number:02}") for number in range(15))))
    assert more.labels == (*twelve.labels, "other")
    assert more.counts[-1][-1] == 3


def test_a_class_called_other_is_not_the_rest() -> None:
    found = confusion(predicted(("other", "other"), ("other", "run"), ("run", "sit")), most=1)
    assert found == Confusion(("other", "all other"), ((1, 1), (0, 1)))
    hidden = confusion(predicted(("run", "run"), ("run", "other"), ("other", "sit")), most=1)
    assert hidden == Confusion(("run", "other"), ((1, 1), (0, 1)))


def test_no_examples_have_no_classes() -> None:
    assert per_class([]) == []
    assert confusion([]) == Confusion((), ())


def test_classes_need_candidates() -> None:
    with pytest.raises(DataError) as caught:
        per_class([*predicted(("run", "run")), Outcome(("run",))])
    assert str(caught.value) == (
        "Classes are counted from the model's outputs, but example 2 of 2 has no candidates. "
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
    """A column of truths and one of answers for every label, to count precision and recall over."""
    outcomes = [Outcome((", ".join(right),), (", ".join(said),)) for right, said in rows]
    cells: dict[str, list[tuple[bool, bool]]] = {}
    for label in ("a", "b", "crude", "grain", "wheat"):
        texts = [[", ".join(some).split(", ") for some in row] for row in rows]
        column = [(label in right, label in said) for right, said in texts]
        if any(map(any, column)):
            cells[label] = column
    scores = {label: f1_of(column) for label, column in cells.items()}
    found = {row.label: row.f1 for row in per_class(outcomes, multi_label=True)}
    assert found == pytest.approx(scores)
    macro = sum(scores.values()) / max(1, len(scores))
    micro = f1_of([cell for column in cells.values() for cell in column])
    assert value("labels_macro_f1", outcomes) == pytest.approx(macro)
    assert value("labels_micro_f1", outcomes) == pytest.approx(micro)
    exact = [all(column[at][0] == column[at][1] for column in cells.values())
             for at in range(len(rows))]  # fmt: skip
    assert value("labels_exact", outcomes) == pytest.approx(sum(exact) / len(exact))


def f1_of(cells: list[tuple[bool, bool]]) -> float:
    both, true, said = (
        sum(map(kind, cells)) for kind in (all, lambda cell: cell[0], lambda cell: cell[1])
    )
    return harmonic(both / said if said else 0.0, both / true if true else 0.0)


def test_several_labels_by_hand() -> None:
    """Wheat 2 of 2, 2 called; grain 1 of 2, 1 called; crude none, 1 called: 6 of 8 in all."""
    outcomes = predicted(("grain, wheat", "wheat, grain"), ("wheat", "wheat, crude"), ("grain", ""))
    assert value("labels_micro_f1", outcomes) == pytest.approx(2 * 3 / (4 + 4))
    assert value("labels_macro_f1", outcomes) == pytest.approx((1 + 2 / 3 + 0) / 3)
    assert value("labels_exact", outcomes) == pytest.approx(1 / 3)
    assert per_class(outcomes, multi_label=True) == [
        ClassRow("grain", count=2, precision=1.0, recall=0.5, f1=2 / 3),
        ClassRow("wheat", count=2, precision=1.0, recall=1.0, f1=1.0),
        ClassRow("crude", count=0, precision=0.0, recall=0.0, f1=0.0),
    ]


def test_the_reference_that_was_predicted_is_the_true_set() -> None:
    outcomes = [Outcome(("grain", "wheat, grain"), ("grain, wheat",))]
    for name in ("labels_exact", "labels_micro_f1", "labels_macro_f1"):
        assert value(name, outcomes) == 1.0


def test_a_comma_in_the_name_of_a_class_does_not_split_it() -> None:
    outcomes = predicted(("yes, please", "yes, please"), ("no, thanks", "yes, thanks"))
    expected = {"yes, please", "no, thanks", "yes, thanks"}
    assert {row.label for row in per_class(outcomes)} == expected
    assert value("micro_f1", outcomes) == 0.5
    assert value("macro_f1", outcomes) == pytest.approx(1 / 3)
    assert value("labels_micro_f1", outcomes) == pytest.approx(2 * 3 / (4 + 4))


def test_labels_of_a_text() -> None:
    assert labels_of("grain, wheat, grain") == {"grain", "wheat"}
    assert labels_of("") == frozenset()
    assert labels_of("1,000 ships") == {"1,000 ships"}
