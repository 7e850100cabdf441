"""The drawing of a parameter search: panels, axes, marks and names."""

from pathlib import Path
from typing import Any

import pytest

from sixjars.drawing.matplotlib import tuning
from sixjars.drawing.matplotlib.tuning import draw_tuning

AXES = {"learning.rate": "log", "model.encoder.size": "names", "model.encoder.dropout": "linear"}
SCORES = [0.5, 0.7, 0.6, None, 0.7]
STATES = ["complete", "complete", "pruned", "failed", "complete"]


def rows(rates: list[float]) -> list[dict[str, Any]]:
    return [
        {"number": n, "learning.rate": rate, "model.encoder.size": [128, None, "auto"][n % 3]}
        | {"model.encoder.dropout": n / 10, "score": SCORES[n - 1], "state": STATES[n - 1]}
        for n, rate in enumerate(rates, start=1)
    ]


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Figures that are saved."""
    saved: list[Any] = []
    before = vars(tuning)["save"]

    def save(figure: Any, path: Any, title: str) -> None:
        before(figure, path, title)
        saved.append(figure)

    monkeypatch.setattr(tuning, "save", save)
    return saved


def drawn(
    figures: list[Any], trials: list[dict[str, Any]], axes: dict[str, str], better: Any = "higher"
) -> list[Any]:
    draw_tuning(
        "search.png", trials, axes, metric="exact_match", better=better, title="exact match"
    )
    assert Path("search.png").read_bytes().startswith(b"\x89PNG")
    found: list[Any] = figures[-1].axes
    return found


def ticks(axis: Any) -> list[str]:
    return [text.get_text() for text in axis.get_xticklabels()]


def star(axis: Any) -> tuple[float, float]:
    [found] = [marks for marks in axis.collections if marks.get_label() == "best"]
    x, y = found.get_offsets()[0]
    return float(x), float(y)


def test_a_panel_for_the_order_and_for_each_key(
    figures: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    panels = drawn(figures, rows([1e-4, 1e-3, 1e-2, 1e-1, 5e-3]), AXES)
    assert [axis.get_xlabel() for axis in panels] == ["trial", *AXES]
    assert [axis.get_xscale() for axis in panels] == ["linear", "log", "linear", "linear"]
    assert panels[0].get_ylabel() == "exact match (higher is better)"
    assert ticks(panels[2]) == ["128", "auto", "null"]
    assert "0.001" in ticks(panels[1])
    assert not any("$" in text for text in ticks(panels[1]))
    assert [star(axis) for axis in panels] == [
        (2, 0.7),
        (1e-3, 0.7),
        (1, 0.7),
        (0.2, 0.7),
    ]  # the first of equal ones
    [line] = panels[0].lines
    assert list(line.get_xdata()) == [1, 2, 5, 5]
    assert list(line.get_ydata()) == [0.5, 0.7, 0.7, 0.7]
    [legend] = figures[-1].legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "complete",
        "pruned",
        "failed",
        "best so far",
        "best",
    ]
    lower = drawn(figures, rows([1e-4, 1e-3, 1e-2, 1e-1, 5e-3]), AXES, "lower")
    assert star(lower[0]) == (1, 0.5)


@pytest.mark.parametrize("rates", [[0.013], [0.011, 0.013], [0.002, 0.03], [1e-6, 1e-1]])
def test_a_logarithmic_axis_always_has_numbers(
    rates: list[float], figures: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    axis = drawn(figures, rows(rates), {"learning.rate": "log"})[1]
    low, high = axis.get_xlim()
    assert len([at for at in axis.get_xticks() if low <= at <= high]) > 1


def test_nothing_but_failures(
    figures: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed = [{**row, "score": None, "state": "failed"} for row in rows([0.1, 0.2])]
    drawn(figures, failed, AXES)
    assert [text.get_text() for text in figures[-1].legends[0].get_texts()] == ["failed"]
