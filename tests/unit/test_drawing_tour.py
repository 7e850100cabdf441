"""Pictures of tours, hulls and sorted numbers: what is drawn, where, and what is refused."""

from collections.abc import Sequence
from itertools import combinations
from math import cos, dist, pi, sin
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation

from sixjars import Layout
from sixjars.drawing.matplotlib.tour import LEFT_OUT, LINE_COLOR, START_COLOR, draw_tour
from sixjars.drawing.tours import tour_title
from sixjars.drawing.view import Output, View
from sixjars.errors import DataError, ShapeError, SixJarsError

from .pages import saved_figures

SQUARE = [(0.0, 0.0), (1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.5, 0.5)]


figures = pytest.fixture(saved_figures)


def draw(path: Path, points: Any, order: Sequence[int], weights: Any = ()) -> None:
    output = Output(" ".join(map(str, order)), (), tuple(map(tuple, weights)))
    draw_tour(path, View({"x": "in"}, (output,), layout=Layout("points"), backdrop=points))


def arrows(axes: Axes) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """From where to where, in the order of drawing."""
    found = [text for text in axes.texts if isinstance(text, Annotation) and text.arrow_patch]
    return [(tuple(map(float, text.get_position())), tuple(map(float, text.xy))) for text in found]  # type: ignore[misc]


def numbers(axes: Axes) -> dict[str, tuple[float, float]]:
    """The numbers that stand on the page, and where."""
    texts = [text for text in axes.texts if not isinstance(text, Annotation)]
    return {text.get_text(): text.get_position() for text in texts}


def names(labels: Sequence[Any]) -> list[str]:
    return [label.get_text() for label in labels]


def test_the_line_is_closed_and_goes_in_order(tmp_path: Path, figures: list[Figure]) -> None:
    draw(tmp_path / "new" / "p.png", SQUARE, [3, 0, 2, 1])
    (axes,) = figures[0].axes
    corners = [(0.0, 1.0), (0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]
    assert arrows(axes) == list(zip(corners, [*corners[1:], corners[0]], strict=True))
    assert numbers(axes) == {str(at): point for at, point in enumerate(SQUARE)}
    assert axes.get_title() == "Not in the output: 4."
    assert axes.get_xlabel() == "Numbers: positions in the input. Orange: the first of the output."
    assert (
        figures[0].get_suptitle()
        == "A closed line through 4 of 5 points,\nlength 4.00: their convex hull"
    )
    assert axes.get_aspect() == 1.0
    edges = [to_hex(line.get_markeredgecolor()) for line in axes.lines]
    assert edges == [LINE_COLOR, LINE_COLOR, LINE_COLOR, START_COLOR, LEFT_OUT]


def test_the_file_shows_it(tmp_path: Path) -> None:
    """The start is the one orange spot, and it lies where the first point is."""
    corners = {(0, 1, 2, 3): (0, 0), (1, 0, 2, 3): (1, 1), (2, 0, 1, 3): (1, 0)}
    for order, (right, up) in corners.items():
        draw(tmp_path / "p.png", SQUARE, order)
        page = np.asarray(imread(tmp_path / "p.png"))[:, :, :3]
        orange = np.array([int(START_COLOR[at : at + 2], 16) / 255 for at in (1, 3, 5)])
        rows, columns = np.nonzero(np.abs(page - orange).max(axis=2) < 0.02)
        assert len(rows) > 100
        assert (columns.mean() > page.shape[1] / 2) == (right == 1)
        assert (rows.mean() < page.shape[0] / 2) == (up == 1)


@pytest.mark.parametrize(
    ("order", "count", "title"),
    [
        ([], 0, "Not in the output: 0, 1, 2, 3, 4."),
        ([4], 0, "Not in the output: 0, 1, 2, 3."),
        ([0, 2, 0], 2, "Not in the output: 1, 3, 4. More than once: 0."),
        ([0, 0, 0, 0], 0, "Not in the output: 1, 2, 3, 4. More than once: 0."),
    ],
)
def test_orders_that_are_no_tours(
    order: list[int], count: int, title: str, tmp_path: Path, figures: list[Figure]
) -> None:
    draw(tmp_path / "p.png", SQUARE, order)
    assert len(arrows(figures[0].axes[0])) == count
    assert figures[0].axes[0].get_title() == title


def test_many_that_are_left_out_are_counted(tmp_path: Path, figures: list[Figure]) -> None:
    circle = [(cos(2 * pi * at / 60), sin(2 * pi * at / 60)) for at in range(60)]
    draw(tmp_path / "p.png", circle, range(0, 60, 2))
    told = "Not in the output: 1, 3, 5, 7, 9, 11, 13, 15 and 22 more."
    assert figures[0].axes[0].get_title() == told


def test_one_point(tmp_path: Path) -> None:
    draw(tmp_path / "p.png", [(2.0, 2.0)], [0], [[1.0]])
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_numbers_are_bars_in_the_order_of_the_output(tmp_path: Path, figures: list[Figure]) -> None:
    points = [(0.5,), (-0.25,), (0.1,), (0.75,)]
    draw(tmp_path / "p.png", points, [1, 2, 0])
    (axes,) = figures[0].axes
    bars = [bar for bar in axes.patches if isinstance(bar, Rectangle)]
    assert [bar.get_height() for bar in bars] == [-0.25, 0.1, 0.5, 0.75]
    colors = [to_hex(bar.get_facecolor()) for bar in bars]
    assert colors == [START_COLOR, LINE_COLOR, LINE_COLOR, LEFT_OUT]
    assert names(axes.get_xticklabels()) == ["1", "2", "0", "3"]
    assert names(axes.texts) == ["-0.25", "0.1", "0.5", "0.75"]
    assert axes.get_title() == "Not in the output: 3."
    told = "Below: positions in the input, in the order of the output; the first is orange."
    assert axes.get_xlabel() == told


@pytest.mark.parametrize("order", [[], range(200)])
def test_no_bars_or_many(order: Sequence[int], tmp_path: Path, figures: list[Figure]) -> None:
    points = [(at / 7,) for at in range(200)]
    draw(tmp_path / "p.png", points, order)
    assert len(figures[0].axes[0].patches) == 200
    assert names(figures[0].axes[0].texts) == []


@pytest.mark.parametrize("stops", [False, True])
def test_the_weights_are_beside(stops: bool, tmp_path: Path, figures: list[Figure]) -> None:
    order = [3, 0, 2]
    weights = [[0.02, 0.03, 0.05, 0.9, 0.0], [0.4, 0.3, 0.15, 0.1, 0.05], [0.0, 0.0, 1.0, 0.0, 0.0]]
    weights += [[0.08] * 5] if stops else []
    draw(tmp_path / "p.png", SQUARE, order, weights)
    heat = figures[0].axes[1]
    assert np.asarray(heat.images[0].get_array()).tolist() == weights
    assert heat.images[0].get_clim() == (0.0, 1.0)
    assert names(heat.get_yticklabels()) == ["3", "0", "2", *["<stop>"][:stops]]
    assert names(heat.get_xticklabels()) == ["0", "1", "2", "3", "4"]
    framed = [patch.get_xy() for patch in heat.patches if isinstance(patch, Rectangle)]
    assert framed == [(at - 0.5, row - 0.5) for row, at in enumerate(order)]
    assert names(heat.texts) == ["0.90", "0.40", "0.30", "0.15", "0.10", "1.00"]
    told = "Each row is a step: its attention weights, darkest for 1.00. Framed: its output."
    told += "\nThe rest of a row, up to 1, is the weight of <stop>." if stops else ""
    assert heat.get_xlabel() == told


def test_a_large_heat_map_names_some(tmp_path: Path, figures: list[Figure]) -> None:
    points = np.random.default_rng(5).random((64, 2)).tolist()
    order = np.random.default_rng(6).permutation(64).tolist()
    draw(tmp_path / "p.png", [tuple(point) for point in points], order, np.eye(64)[order])
    heat = figures[0].axes[1]
    assert names(heat.get_xticklabels()) == [str(at) for at in range(0, 64, 3)]
    assert names(heat.get_yticklabels()) == [str(at) for at in order[::3]]
    assert names(heat.texts) == []


def rows_of(wanted: int, sizes: str) -> str:
    rows = f"{wanted} output tokens and 5 points need {wanted} rows of 5 attention weights"
    return f"{rows}, but the rows have {sizes}."


NUMBERED = "the order names point {}, but there are 5 points, counted from 0."
DRAWABLE = "only points of 1 or 2 coordinates can be drawn, but these have {}."
UNEVEN = "all points need as many coordinates, but point 0 has 2 and point 1 has 1."


@pytest.mark.parametrize(
    ("points", "order", "weights", "kind", "sentence"),
    [
        ([], [], [], DataError, "there are no points to draw."),
        ([(0.0, 1.0), (1.0,)], [], [], DataError, UNEVEN),
        ([(0.0, 1.0, 2.0)], [0], [], DataError, DRAWABLE.format(3)),
        ([()], [0], [], DataError, DRAWABLE.format(0)),
        (SQUARE, [0, 5], [], DataError, NUMBERED.format(5)),
        (SQUARE, [-1], [], DataError, NUMBERED.format(-1)),
        (SQUARE, [0, 1], [[0.2] * 5], ShapeError, rows_of(2, "[5]")),
        (SQUARE, [0], [[0.2] * 5] * 3, ShapeError, rows_of(2, "[5, 5, 5]")),
        (SQUARE, [0], [[0.25] * 4], ShapeError, rows_of(1, "[4]")),
    ],
)
def test_what_cannot_be_drawn(
    points: Any,
    order: list[int],
    weights: Any,
    kind: type[SixJarsError],
    sentence: str,
    tmp_path: Path,
) -> None:
    with pytest.raises(kind) as told:
        draw(tmp_path / "p.png", points, order, weights)
    assert str(told.value) == sentence
    assert not (tmp_path / "p.png").exists()


def test_points_that_would_cover_each_other_stand_side_by_side(
    tmp_path: Path, figures: list[Figure]
) -> None:
    points = [(0.0, 0.0), (1.0, 1.0), (1.0, 1.0), (0.5, 0.51), (0.5, 0.5)]
    draw(tmp_path / "p.png", points, [0, 1, 2, 3, 4])
    (axes,) = figures[0].axes
    spots = numbers(axes)
    size = axes.lines[0].get_markersize() * figures[0].dpi / 72
    for one, two in combinations(spots.values(), 2):
        assert dist(*axes.transData.transform([one, two])) > 0.95 * size
    assert spots["0"] == (0.0, 0.0)
    assert len(arrows(axes)) == 5
    assert axes.get_xlabel().endswith(
        "\nPoints that would cover each other are drawn side by side."
    )


HULL = [(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)]


@pytest.mark.parametrize(
    ("points", "order", "title"),
    [
        ([*HULL, (0.5, 0.5)], [3, 2, 1, 0], "4 of 5 points, length 4.00: their convex hull"),
        ([*HULL, (0.5, 0.5)], [0, 1, 4], "3 of 5 points, length 2.41"),
        ([*HULL, (0.5, 0.5)], [0, 2, 1, 3], "4 of 5 points, length 4.83"),
        (HULL, [0, 1, 2, 3], "all 4 points, length 4.00: 1.00 times the shortest"),
    ],
)
def test_a_hull_is_called_so(points: Any, order: list[int], title: str) -> None:
    assert tour_title(points, order) == f"A closed line through {title}"
