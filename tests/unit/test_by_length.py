"""Scores by the length of the input, and their curves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import colors, image
from matplotlib.figure import Figure

from sixjars.drawing.matplotlib.by_length import draw_by_length
from sixjars.drawing.matplotlib.figure import COLORS
from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import METRICS, Outcome, RationaleWeight


def test_no_example_is_lost_and_empty_ranges_have_no_value() -> None:
    outcomes = [Outcome((str(n),), (str(n) if n < 5 else "no",)) for n in range(10)]
    lengths = [3, 3, 4, 4, 5, 40, 41, 42, 43, 44]
    edges = [(3, 11), (12, 20), (39, 47)]
    buckets = scores_by_length(outcomes, lengths, metric=METRICS["exact_match"], edges=edges)
    assert [(bucket.shortest, bucket.longest) for bucket in buckets] == edges
    assert [(bucket.count, bucket.value) for bucket in buckets] == [(5, 1.0), (0, None), (5, 0.0)]
    assert [(bucket.median, bucket.place) for bucket in buckets] == [(4, 4), (None, 16), (42, 42)]
    expected = ["3–11", "12–20", "39–47", "6"]
    assert [bucket.name for bucket in (*buckets, Bucket(6, 6, 1, 0.0))] == expected


def test_one_long_text_makes_no_empty_ranges() -> None:
    lengths = [4] * 10 + [5] * 10 + [6] * 10 + [7] * 10 + [8] * 9 + [300]
    assert edges_of(lengths, buckets=5) == [(4, 4), (5, 5), (6, 6), (7, 7), (8, 300)]
    assert edges_of([7, 7, 7], buckets=5) == [(7, 7)]


@given(lengths=st.lists(st.integers(0, 200), min_size=1, max_size=9), buckets=st.integers(1, 9))
def test_every_length_is_in_one_range_and_no_range_is_empty(
    lengths: list[int], buckets: int
) -> None:
    edges = edges_of(lengths, buckets=buckets)
    assert 1 <= len(edges) <= buckets
    assert all(sum(low <= length <= high for low, high in edges) == 1 for length in lengths)
    assert all({low, high} <= set(lengths) for low, high in edges)
    assert (edges[0][0], edges[-1][1]) == (min(lengths), max(lengths))
    if len(set(lengths)) == len(lengths) >= buckets:
        sizes = [sum(low <= length <= high for length in lengths) for low, high in edges]
        assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("name", ["object_focus", "rationale_sentence"])
def test_a_range_without_annotations_has_no_value(name: str) -> None:
    known = Outcome(("x",), focus=0.5, rationale=RationaleWeight(0.5, 0.0, 0.0))
    outcomes = [known, Outcome(("x",)), Outcome(("x",))]
    buckets = scores_by_length(outcomes, [1, 2, 3], metric=METRICS[name], edges=[(1, 2), (3, 3)])
    assert [(bucket.count, bucket.value) for bucket in buckets] == [(2, 0.5), (1, None)]


def test_a_curve_has_a_dot_for_each_range_with_a_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures: list[Figure] = []
    plain = Figure.savefig

    def savefig(self: Figure, *arguments: Any, **how: Any) -> None:
        plain(self, *arguments, **how)
        figures.append(self)

    monkeypatch.setattr(Figure, "savefig", savefig)
    first = [Bucket(1, 5, 3, 0.9), Bucket(6, 10, 0, None), Bucket(11, 14, 3, 0.4)]
    found = {"$initial_{": first, "attention": [Bucket(1, 5, 3, 0.95)]}
    draw_by_length(tmp_path / "new" / "curve.png", found, metric="exact_match")
    assert (tmp_path / "new" / "curve.png").read_bytes().startswith(b"\x89PNG")
    (axes,) = figures[0].axes
    dots = [np.asarray(line.get_xydata()).tolist() for line in axes.lines]
    assert dots == [[[3.0, 0.9], [12.5, 0.4]], [[3.0, 0.95]]]
    legend = axes.get_legend()
    assert legend is not None
    expected = ["$initial_{", "attention", "fewer than 20 examples"]
    assert [text.get_text() for text in legend.get_texts()] == expected
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length of the input (words)", "exact match")


def test_equal_curves_are_seen_beneath_each_other(tmp_path: Path) -> None:
    curve = [Bucket(1, 5, 30, 0.5), Bucket(6, 10, 30, 0.5)]
    names = ["one", "two", "three", "four"]
    draw_by_length(tmp_path / "curve.png", dict.fromkeys(names, curve), metric="exact_match")
    pixels = image.imread(tmp_path / "curve.png")[..., :3]
    seen = [
        bool((abs(pixels - colors.to_rgb(color)).max(axis=2) < 0.02).sum() > 400)
        for color in COLORS[:4]
    ]
    assert seen == [True] * 4
