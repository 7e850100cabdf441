"""Lines between input and output are as thick as the weights, and stay on the page however long the input is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from sixjars.drawing.matplotlib import figure as figure_module
from sixjars.drawing.matplotlib.lines import BLUE, ORANGE, THICKEST, draw_lines
from sixjars.drawing.weights import LEAST
from sixjars.errors import DataError, ShapeError

from .pages import view_of


def draw(weights: Any, source: Any, target: Any, copied: Any = ()) -> None:
    view = view_of("out", target, weights, copied, source=tuple(source))
    draw_lines(Path("a.png"), view, copying=bool(copied))


@pytest.fixture
def figures(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """What was drawn; no file is written."""
    found: list[Figure] = []
    monkeypatch.setattr(figure_module, "save", lambda figure, path, title="": found.append(figure))
    return found


def lines_of(figure: Figure) -> list[PathPatch]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, PathPatch)]


def test_a_line_for_each_weight_that_is_not_small(figures: list[Figure]) -> None:
    weights = [[0.9, 0.07, 0.03], [0.2, 0.3, 0.5]]
    draw(weights, "abc", "xy")
    widths = sorted(line.get_linewidth() for line in lines_of(figures[0]))
    assert np.allclose(
        widths, [THICKEST * weight for weight in sorted(np.ravel(weights)) if weight >= LEAST]
    )


@pytest.mark.parametrize("count", [3, 200])
def test_every_line_begins_at_its_word_on_the_page(figures: list[Figure], count: int) -> None:
    source = [f"word{at}" for at in range(count)]
    draw(np.eye(count)[:3].tolist(), source, ["x", "y", "<stop>"])
    [axes] = figures[0].axes
    spots = {text.get_text(): text.get_position() for text in axes.texts}
    assert set(spots) >= {*source, "x", "y", "<stop>"}
    for at, line in enumerate(lines_of(figures[0])):
        curve = np.asarray(line.get_path().vertices, dtype=np.float64)
        for spot, word in ((curve[0], source[at]), (curve[-1], ["x", "y", "<stop>"][at])):
            assert np.abs(np.subtract(spot, spots[word])).max() < 0.3
    right, bottom = axes.get_xlim()[1], axes.get_ylim()[0]
    assert all(
        0 <= x <= right and 0 <= y <= bottom
        for x, y in (spots[word] for word in (*source, "x", "y"))
    )
    assert figures[0].get_figwidth() < 14


def test_copied_words_have_lines_to_where_they_stand(figures: list[Figure]) -> None:
    weights = [[0.6, 0.1, 0.3], [0.5, 0.4, 0.1], [0.2, 0.7, 0.1]]
    source, target = ["Rex", "ran", "Rex"], ["Rex", "ran", "far"]
    draw(weights, source, target, [0, None, None])
    found = {
        (round(line.get_linewidth() / THICKEST, 3), line.get_edgecolor()[:3])
        for line in lines_of(figures[0])
    }
    orange, blue = (
        tuple(int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)) for color in (ORANGE, BLUE)
    )
    assert found == {(0.6, orange), (0.3, orange), (0.4, blue)}
    draw(weights, source, target, [None] * 3)
    written = " ".join(text.get_text() for text in figures[1].axes[0].texts)
    assert "No word of this output had to be copied." in written


def test_weights_that_do_not_fit_are_refused() -> None:
    rows = "1 output tokens and 1 source tokens need 1 rows of 1 attention weights"
    with pytest.raises(ShapeError, match=f"^{rows}"):
        draw([[1.0]] * 2, ["a"], ["x"])
    with pytest.raises(DataError, match=r"^there are no attention weights to draw\.$"):
        draw([[]], [], ["x"])
