"""Scores by the length of the input, and their curves."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from sixjars.evaluation.by_length import Bucket, edges_of, scores_by_length
from sixjars.evaluation.metrics import METRICS, Outcome, RationaleWeight
from sixjars.inspection.page import draw_by_length


def test_no_example_is_lost_and_empty_ranges_have_no_value() -> None:
    outcomes = [Outcome((str(n),), (str(n) if n < 5 else "no",)) for n in range(10)]
    lengths = [3, 3, 4, 4, 5, 40, 41, 42, 43, 44]
    edges = edges_of(lengths, buckets=5)
    assert edges == [(3, 11), (12, 20), (21, 29), (30, 38), (39, 47)]
    buckets = scores_by_length(outcomes, lengths, metric=METRICS["exact_match"], edges=edges)
    assert [(bucket.shortest, bucket.longest) for bucket in buckets] == edges
    assert [(bucket.count, bucket.value) for bucket in buckets] == [(5, 1.0), (0, None), (0, None), (0, None), (5, 0.0)]


@given(lengths=st.lists(st.integers(0, 200), min_size=1, max_size=9), buckets=st.integers(1, 9))
def test_every_length_is_in_one_range_of_equal_width(lengths: list[int], buckets: int) -> None:
    edges = edges_of(lengths, buckets=buckets)
    assert len(edges) == buckets
    assert len({high - low for low, high in edges}) == 1
    assert all(sum(low <= length <= high for low, high in edges) == 1 for length in lengths)
    assert edges[0][0] == min(lengths)


@pytest.mark.parametrize("name", ["object_focus", "rationale_sentence"])
def test_a_range_without_annotations_has_no_value(name: str) -> None:
    known = Outcome(("x",), focus=0.5, rationale=RationaleWeight(0.5, 0.0, 0.0))
    outcomes = [known, Outcome(("x",)), Outcome(("x",))]
    buckets = scores_by_length(outcomes, [1, 2, 3], metric=METRICS[name], edges=[(1, 2), (3, 3)])
    assert [(bucket.count, bucket.value) for bucket in buckets] == [(2, 0.5), (1, None)]


def test_a_curve_has_a_dot_for_each_range_with_a_value(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert [text.get_text() for text in legend.get_texts()] == ["$initial_{", "attention", "fewer than 20 examples"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("length of the input (words)", "exact match")
