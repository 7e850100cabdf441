"""The HTML of a report, made of plain values: its contents, that all is escaped, and that it stays small."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from markupsafe import escape

from sixjars.drawing.view import Output, View
from sixjars.evaluation.by_length import Bucket
from sixjars.evaluation.metrics import ClassRow, Confusion, Interval, Score
from sixjars.reports.charts import Chart, curves, number, thinned, ticks
from sixjars.reports.examples import chosen_rows
from sixjars.reports.page import LARGEST, SECTIONS, report_page
from sixjars.reports.summary_map import COLORS, neighbours_of, projected
from sixjars.reports.tables import MOST_LABELS
from sixjars.reports.values import (
    ByLength,
    Example,
    Group,
    History,
    Report,
    ShownExample,
    SummaryScatter,
)
from sixjars.runs.explanation.explain import ExplainedSection, ExplainedWeight, Explanation
from tests.unit.test_views_html import WEIGHTS, WILD, Reader

LARGEST_FILE = 5_000_000


def example(at: int, words: int = 4) -> Example:
    text, references = f"input {at} " + "word " * words + WILD, (f"true {at} {WILD}",)
    return Example(text, f"output {at} {WILD}", references, at % 7 / 6, words)


def view(at: int) -> View:
    output = Output("x", ("x", WILD), WEIGHTS, -0.5)
    return View({"source": f"in {at}"}, (output,), source=("a", "b", "c", WILD))


def large_view(steps: int, positions: int, outputs: int = 1) -> View:
    """With so many weights."""
    tokens = tuple(f"out{n}" for n in range(steps))
    source = tuple(f"in{n}" for n in range(positions))
    output = Output("x", tokens, ((1.0 / positions,) * positions,) * steps, -0.5)
    return View({"source": "input"}, (output,) * outputs, source=source)


def explanation() -> Explanation:
    weight = ExplainedWeight(f"decoder.{WILD}", "W", (3, 4), 12, trainable=True)
    names = "task", "data", *(f"model: {part}" for part in ("encoder", "bridge", "decoder"))
    sections = [
        ExplainedSection(name, (f"{name} {WILD}",), (weight,))
        for name in (*names, "loss", "learning", "evaluation")
    ]
    return Explanation(f"translation {WILD}", tuple(sections))


def summary_map(count: int, *, labels: int = 0, lower: bool = False) -> SummaryScatter:
    vectors = np.random.default_rng(0).normal(size=(count, 16))
    found = projected(vectors)
    assert found is not None
    examples = [example(at, words=2 + at % 9) for at in range(count)]
    classes = [f"class {at % labels} {WILD}" for at in range(count)] if labels else []
    return SummaryScatter(*found, neighbours_of(vectors), examples, lower, classes)


GROUPS: tuple[Group, ...] = ("best", "median", "worst")


def html_of(*arguments: int, **changes: Any) -> str:
    return report_page(report_of(*arguments, **changes))


def report_of(count: int = 30, **changes: Any) -> Report:
    records = [
        {"epoch": float(n), "step": 10.0 * n, "train_loss": 3 / n, "loss": 2 / n, "bleu": 4.0 * n}
        for n in range(1, 9)
    ]
    buckets = [Bucket(2, 5, 25, 0.5, Interval(0.4, 0.6)), Bucket(6, 9, 5, 0.25)]
    buckets.append(Bucket(10, 13, 0, None))
    values: dict[str, Any] = {
        "title": f"Report of {WILD}",
        "where": f"the test set of {WILD}",
        "count": count,
        "skipped": 2,
        "explanation": explanation(),
        "scores": [
            (Score("exact_match", 0.5, f"exact|{WILD}", "higher", count), Interval(0.4, 0.6)),
            (Score("distinct1", 0.1, "distinct", "higher", count), None),
        ],
        "ranked_by": "exact_match",
        "shown": [ShownExample(each, example(at), view(at)) for each in GROUPS for at in range(3)],
        "has_attention": True,
        "cost": {"steps": "80"},
        "versions": {"seed": "0", "torch": WILD},
        "recipe": f"task: {WILD}",
        "command": "sixjars report runs/again",
        "history": History(records, "bleu", 80.0, "loss"),
        "by_length": ByLength("exact_match", "words of the source", buckets),
        "summary_map": summary_map(count),
        "unknown": 0.015,
        "unknown_words": [(WILD, 3)],
    }
    return Report(**(values | changes))


def test_text_is_escaped_and_nothing_is_loaded() -> None:
    classes = [ClassRow(WILD, 3, 0.5, 0.5, 0.5), ClassRow("b", 1, 0.5, 0.5, 0.5)]
    confusion = Confusion((WILD, "b"), ((2, 1), (0, 1)))
    html = html_of(classes=classes, confusion=confusion, summary_map=summary_map(30, labels=3))
    read = Reader(html)
    tags = [tag for tag, _ in read.tags]
    assert tags.count("script") == 1
    assert not {"link", "iframe", "object", "embed", "base", "form"} & {*tags}
    loaded = [own[key] for _, own in read.tags for key in ("src", "srcset") if key in own]
    assert all(str(one).startswith("data:") for one in loaded)
    assert all(str(own["href"]).startswith("#") for tag, own in read.tags if tag == "a")
    own = r"<style>.*?</style>|<script>.*?</script>"
    assert "https://" not in re.sub(own, "", html, flags=re.S)
    assert html.count("<script>alert") == 0
    assert read.text.count("alert('x')") > 20


def test_all_sections_are_there_with_headings_and_captions() -> None:
    read = Reader(html_of())
    tags = [tag for tag, _ in read.tags]
    assert tags.count("h1") == 1
    assert tags.count("h2") == len(SECTIONS) == tags.count("section")
    ids = [own["id"] for _, own in read.tags if "id" in own]
    assert len(ids) == len(set(ids))
    assert [own["href"] for tag, own in read.tags if tag == "a"] == [f"#{key}" for key in SECTIONS]
    assert set(SECTIONS) <= set(ids)
    # heat maps are in figures
    assert tags.count("caption") == tags.count("table") - tags.count("figcaption")
    for told in ("exact_match", "0.400 to 0.600", "none", "step 80", "1.5 %", "96 trained"):
        assert told in read.text, told
    assert "sixjars train recipe.yaml" in read.text


def test_scores_and_intervals() -> None:
    html = html_of()
    assert "<b>exact_match 0.500</b> (95 % interval 0.400 to 0.600) on 30 examples" in html
    assert "(2 bad rows skipped)" in html
    assert html.count('class="bar') - html.count('class="bar few"') == 1
    assert html.count('class="bar few"') == 1
    assert html.count('class="whisker"') == 1
    assert "5 (few)" in html


def test_a_score_may_be_infinite() -> None:
    buckets = [Bucket(2, 5, 25, 8.5), Bucket(6, 9, 25, math.inf)]
    scores = [(Score("perplexity", math.inf, "", "lower", 50), None)]
    html = html_of(scores=scores, by_length=ByLength("perplexity", "words", buckets))
    assert "<b>perplexity inf</b>" in html
    assert html.count('class="bar') == 1
    assert 'y="nan"' not in html


def test_what_is_missing_is_said() -> None:
    missing = dict.fromkeys(("history", "by_length", "summary_map", "unknown"))
    html = html_of(**missing, unknown_words=(), has_attention=False)
    for told in (
        "This run has no log of validations.",
        "All inputs have the same length",
        "All examples have the same summary vector",
        "This model has no attention, so there are no weights to show.",
        "The inputs have no words.",
    ):
        assert told in html
    single = History([{"epoch": 1.0, "step": 5.0, "loss": 1.0}], None, 5.0, "loss")
    assert "There was one validation, which makes no curve." in html_of(history=single)


def test_a_thousand_examples_stay_small() -> None:
    """With views as large as an example may be, and long texts."""
    large = large_view(120, 24)
    shown = [ShownExample(group, example(at, 500), large) for group in GROUPS for at in range(3)]
    html = html_of(1000, shown=shown)
    assert html.count('class="dot"') == 1000
    assert html.count('class="view"') == 9
    assert len(html.encode()) < LARGEST_FILE
    assert "9 of 1,000 examples" in html


def test_a_view_that_is_too_large_is_left_out() -> None:
    html = html_of(shown=[ShownExample("worst", example(0), large_view(200, 400))])
    assert "200 × 400 attention weights are too many for this file" in html
    assert 'class="view"' not in html
    html = html_of(shown=[ShownExample("worst", example(0), large_view(120, 24, outputs=3))])
    assert "The other outputs of the beam are left out" in html
    assert html.count('<div role="tabpanel"') == 1
    assert LARGEST * 9 < LARGEST_FILE / 1.5


@pytest.mark.parametrize(("positions", "name"), [(24, "heatmap"), (25, "document")])
def test_a_long_text_is_shaded_where_a_heat_map_would_be_wider_than_the_page(
    positions: int, name: str
) -> None:
    html = html_of(shown=[ShownExample("best", example(0), large_view(5, positions))])
    assert f'data-view="{name}"' in html


def test_images_are_shown_where_there_is_no_view() -> None:
    pixels = np.full((40, 60, 3), 200, dtype=np.uint8)
    html = html_of(shown=[ShownExample("best", example(0), None, (pixels,))])
    assert html.count('<img class="given" src="data:image/jpeg') == 1


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [("a", 1), ("aaaa", 1), ("abab", 2), ("aaaabcccdd", 4), ("abcdefghij" * 3, 9)],
)
def test_an_input_is_shown_once(inputs: str, shown: int) -> None:
    scores = [(float(at * 7 % len(inputs)),) for at in range(len(inputs))]
    found = [inputs[at] for some in chosen_rows(scores, inputs).values() for at in some]
    assert len(found) == len(set(found)) == shown


def test_how_many_examples_have_an_input() -> None:
    shown = [ShownExample("best", example(0), None, times=1_200)]
    shown.append(ShownExample("worst", replace(example(1), score=None), None))
    shown.append(ShownExample("best", Example("", None, ("the dog runs",), -1.2, 0), None, times=9))
    html = html_of(shown=shown)
    assert "exact_match: -1.20; 9 examples have this text</p>" in html
    assert html.count("<dt>output</dt>") == 2
    assert '<p class="score">exact_match: 0; 1,200 examples have this input</p>' in html
    assert html.count('class="score"') == 2


def test_what_a_reader_of_scores_should_know_is_beside_them() -> None:
    html = html_of(notes=["The validation set chose the weights.", f"No {WILD} was skipped."])
    told = re.findall(r'<h2 id="scores-h">Scores</h2><p>(.*?)</p><div', html)
    assert told == ["The validation set chose the weights. No " + escape(WILD) + " was skipped."]
    assert "The checksums tell whether your data is the same" in html


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 9, 100])
def test_no_example_is_in_two_groups(count: int) -> None:
    scores = [(float(at * 7 % count),) for at in range(count)]
    found = chosen_rows(scores, range(count))
    every = [at for some in found.values() for at in some]
    assert len(every) == len(set(every)) == min(count, 9)
    worth = [scores[at] for at in [*found["best"], *found["median"], *found["worst"][::-1]]]
    assert worth == sorted(worth, reverse=True)


def test_points_that_lie_close_have_similar_vectors() -> None:
    vectors = np.array([[5.0, 0.0, 1.0], [5.1, 0.0, 1.0], [-5.0, 2.0, 1.0], [-5.2, 2.0, 1.1]])
    found = projected(vectors)
    assert found is not None
    spots, shares = found
    assert np.linalg.norm(spots[0] - spots[1]) < 0.5 < 5 < np.linalg.norm(spots[0] - spots[2])
    assert shares[0] > 0.9
    assert sum(shares) <= 1 + 1e-9
    assert [near[0][0] for near in neighbours_of(vectors)] == [1, 0, 3, 2]
    assert projected(np.ones((5, 3))) is None
    assert projected(np.ones((1, 3))) is None
    for overflown in (np.nan, np.inf):
        assert projected(np.array([[0.0, 1.0], [overflown, 2.0]])) is None
    assert neighbours_of(np.zeros((1, 3))) == [[]]


def test_points_that_lie_on_each_other_are_told_of() -> None:
    """As where several inputs have the same summary vector."""
    vectors = np.random.default_rng(0).normal(size=(5, 4))[[0, 1, 2, 3, 4, 0, 0, 1]]
    found = projected(vectors)
    assert found is not None
    examples = [example(at) for at in range(8)]
    same = SummaryScatter(*found, neighbours_of(vectors), examples, lower=False)
    told = "The points have 5 places: some lie on each other."
    assert told in html_of(summary_map=same)
    assert "lie on each other" not in html_of()


def test_classes_have_colours_and_a_legend() -> None:
    html = html_of(summary_map=summary_map(40, labels=COLORS + 2))
    assert 'data-by="class"' in html
    legend = re.findall(r'<ul class="legend class">(.*?)</ul>', html)[0]
    assert legend.count("<li>") == COLORS + 1
    assert "others" in legend
    dots = re.findall(r"--k:var\(--k(\d)\)", html.replace(legend, ""))
    assert len(dots) == 40
    assert set(dots) == {str(at) for at in range(COLORS + 1)}


def test_the_best_score_is_the_same_colour_where_lower_is_better() -> None:
    found = {}
    for lower in (False, True):
        html = html_of(summary_map=summary_map(14, lower=lower))
        shares = [float(share) for share in re.findall(r"--s:([\d.]+)", html)]
        best = [at % 7 == (0 if lower else 6) for at in range(14)]
        assert [share == max(shares) for share in shares] == best
        legend = r'<p class="legend score">(\S+) <span class="ramp"></span> (\S+)'
        found[lower] = re.findall(legend, html)
    assert found == {False: [("0", "1")], True: [("1", "0")]}


def test_a_matrix_of_many_classes_is_cut() -> None:
    labels = tuple(f"label {at}" for at in range(40))
    counts = tuple(tuple(int(row == column) for column in range(40)) for row in range(40))
    html = html_of(confusion=Confusion(labels, counts))
    matrix = re.findall(r'<table class="heat confusion">.*?</table>', html)[0]
    assert matrix.count("<tr>") == MOST_LABELS + 1
    assert "The 25 most frequent of 40 classes." in matrix
    assert 'title="1 of 1 label 0 predicted as label 0">1</td>' in matrix


def test_curves_lie_where_their_values_are() -> None:
    chart = curves({"a": [(0, 1.0), (10, 3.0)]}, y="loss", best=10)
    (x0, y0), (x1, y1) = chart.curves["a"]
    assert x0 < x1 == chart.best
    assert y0 > y1
    flat = curves({"a": [(5, 1.0), (5, 1.0)]}, y="loss")
    assert flat.curves["a"] == [(Chart.left, Chart.bottom)] * 2
    history = History([{"step": 0.0, "loss": 1.0}, {"step": 10.0, "loss": 3.0}], None, 10.0, "loss")
    html = html_of(history=history)
    assert f'points="{x0:.1f},{y0:.1f} {x1:.1f},{y1:.1f}"' in html
    assert f'<line class="best" x1="{x1:.1f}" x2="{x1:.1f}"' in html


def test_ticks_and_numbers() -> None:
    assert ticks(2, 2) == [2]
    assert ticks(0, 0.07) == [0.0, 0.02, 0.04, 0.06]
    assert [number(value) for value in (0.25, 1500.0, 3e6)] == ["0.25", "1,500", "3e+06"]
    many = thinned([{"step": float(at)} for at in range(1001)])
    assert len(many) <= 402
    assert many[-1] == {"step": 1000.0}
