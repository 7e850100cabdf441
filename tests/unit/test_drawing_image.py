"""Image overlays of attention weights, read back from the files that were drawn."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sixjars import Layout
from sixjars.drawing.matplotlib.image import draw_overlay, overlaid
from sixjars.drawing.weights import DARK, WHOLE, Box
from sixjars.errors import ShapeError

from .pages import Pixels, one_hot, read, red, runs, view_of, written_texts

written = pytest.fixture(written_texts)


def draw(
    path: Path, image: Any, weights: Any, grid: tuple[int, int], tokens: Any, box: Box = WHOLE
) -> Pixels:
    view = view_of("out", tokens, weights, layout=Layout("grid", grid), backdrop=(image, box))
    draw_overlay(path, view)
    return read(path)


def panels(page: Pixels) -> list[Pixels]:
    """The red light of each panel, (height, width), in reading order."""
    mask = page[:, :, 0] - page[:, :, 1] > 0.15
    return [
        page[top + 2 : bottom - 2, left + 2 : right - 2, 0]
        for top, bottom in runs(mask, 0)
        for left, right in runs(mask[top:bottom], 1)
    ]


def cells(panel: Pixels, rows: int, columns: int) -> Pixels:
    """The mean light of each cell."""
    lines = [np.array_split(line, columns, axis=1) for line in np.array_split(panel, rows)]
    return np.array([[cell.mean() for cell in line] for line in lines])


@pytest.mark.parametrize(
    ("high", "wide"), [(60, 80), (300, 90), (40, 200), (1300, 1700), (7, 7), (600, 60)]
)
def test_each_token_brightens_its_own_cell(high: int, wide: int, tmp_path: Path) -> None:
    rows, columns = 2, 3
    words = ["a", "dog", "on", "green", "grass", "."]
    path = tmp_path / "new" / "p.png"
    alone, *each = panels(draw(path, red(high, wide), one_hot(6), (rows, columns), words))
    assert len(each) == len(words)
    assert cells(alone, rows, columns).min() > 0.99
    assert [int(cells(panel, rows, columns).argmax()) for panel in each] == list(range(6))
    assert all(cells(panel, rows, columns).min() < 0.4 for panel in each)
    assert all(panel.max() > 0.99 for panel in each)
    assert all(abs(panel.shape[1] / panel.shape[0] / (wide / high) - 1) < 0.1 for panel in each)


EVERY = slice(None)
MIDDLE, TALL = (0.25, 0.0, 0.75, 1.0), (0.0, -0.5, 1.0, 1.5)


@pytest.mark.parametrize(
    ("box", "grid", "at", "bright", "dark"),
    [
        (MIDDLE, (1, 2), 0, (EVERY, slice(26, 48)), (EVERY, slice(0, 24))),
        (MIDDLE, (1, 2), 1, (EVERY, slice(52, 74)), (EVERY, slice(76, 100))),
        (TALL, (16, 1), 5, (slice(13, 24), EVERY), (slice(50, 100), EVERY)),
        (TALL, (16, 1), 11, (slice(88, 99), EVERY), (slice(0, 60), EVERY)),
    ],
)
def test_cells_lie_in_the_box_of_the_input(
    box: Box, grid: tuple[int, int], at: int, bright: tuple[slice, slice], dark: tuple[slice, slice]
) -> None:
    weights = np.array(one_hot(grid[0] * grid[1])[at]).reshape(grid)
    light = overlaid(red(100, 100), weights, box)[:, :, 0] / 255
    assert light[dark].max() < DARK + 0.02
    assert light[bright].mean() > light[dark].mean() + 0.2


def test_weights_on_the_padding_beside_the_image_are_not_in_it() -> None:
    weights = np.zeros((16, 1))
    weights[1], weights[8] = 0.8, 0.2  # the padding above the image, and the middle of the image
    light = overlaid(red(100, 100), weights, TALL)[:, :, 0] / 255
    dim = DARK + (1 - DARK) * 0.25
    assert light[56].mean() == pytest.approx(dim + 0.15 * 0.25 * (1 - dim), abs=0.01)
    assert light.argmax() // 100 == 56


def test_what_is_outside_the_box_is_dark_in_the_file_too(tmp_path: Path) -> None:
    page = draw(tmp_path / "p.png", red(60, 80), [[0.0, 1.0]], (1, 2), ["x"], MIDDLE)
    quarters = cells(panels(page)[-1], 1, 4)[0]
    assert quarters[2] > 0.8
    assert quarters[[0, 3]].max() < DARK + 0.03


def spline(at: float, order: int = 4) -> float:
    """The centred B-spline by the recursion of de Boor (1972)."""
    if order == 1:
        return float(-0.5 <= at < 0.5)
    left, right = (order / 2 + at) * spline(at + 0.5, order - 1), order / 2 - at
    return (left + right * spline(at - 0.5, order - 1)) / (order - 1)


def test_brightness_is_the_spline_of_the_weights() -> None:
    weights = np.random.default_rng(3).random((5, 7)) ** 4
    grey = np.full((50, 70, 3), 200, dtype=np.uint8)

    def smooth(y: float, x: float) -> float:
        ends = np.pad(weights, 2, mode="edge")
        return sum(
            float(ends[i, j]) * spline(y - (i - 2)) * spline(x - (j - 2))
            for i in range(ends.shape[0])
            for j in range(ends.shape[1])
        )

    strongest = max(smooth(i, j) for i in range(5) for j in range(7))
    shown = overlaid(grey, weights)
    for row, column in [(0, 0), (14, 33), (25, 12), (49, 69), (40, 51)]:
        light = min(smooth((row + 0.5) / 10 - 0.5, (column + 0.5) / 10 - 0.5) / strongest, 1.0)
        dim = 200 * (0.2 + 0.8 * light)
        assert abs(int(shown[row, column, 1]) - (dim + 0.15 * light * (255 - dim))) <= 0.51


@pytest.mark.parametrize("count", [0, 1, 7, 15, 40])
def test_any_number_of_tokens_in_rows_of_six_at_most(count: int, tmp_path: Path) -> None:
    words = ["incomprehensibilities-of-every-sort"] * count
    page = draw(tmp_path / "p.png", red(64, 64), [[1 / 64] * 64] * count, (8, 8), words)
    shown = panels(page)
    assert len(shown) == count + 1
    assert page.shape[1] / (shown[0].shape[1] + 4) < 8  # six panels and what is between them
    sizes = {panel.shape for panel in shown}
    assert max(max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a in sizes for b in sizes) <= 1


def test_long_tokens_stay_above_their_panel(tmp_path: Path) -> None:
    long, short = (
        draw(tmp_path / "p.png", red(64, 64), [[1.0], [1.0]], (1, 1), [word, "a"])
        for word in ("incomprehensibilities" * 5, "a")
    )
    changed = np.flatnonzero((long != short).any(axis=(0, 2)))
    left, right = runs(long[:, :, 0] - long[:, :, 1] > 0.15, 1)[1]
    assert left - 2 <= changed.min()
    assert changed.max() <= right


def test_no_weight_is_dark(tmp_path: Path) -> None:
    page = draw(tmp_path / "p.png", red(64, 64), [[0.0] * 4], (2, 2), ["नमस्ते"])
    assert abs(panels(page)[1] - DARK).max() < 0.01


def test_the_captions(tmp_path: Path, written: list[str]) -> None:
    draw(tmp_path / "p.png", red(60, 300), [[0.25, 0.75]], (1, 2), ["dog"])
    caption = "Brightness: the attention weight, relative to the largest of the token. Number: the largest weight."
    assert written == ["in → out", "75%", "dog", caption]
    written.clear()
    draw(tmp_path / "p.png", red(60, 300), [], (1, 2), [], (0.1, 0.0, 0.9, 1.0))
    assert written[1:] == ["The output is empty. Dashed: the network's input."]


@pytest.mark.parametrize(
    ("image", "weights", "grid", "tokens", "box", "sentence"),
    [
        (red(9, 9), [[1.0]], (1, 1), ["a", "b"], WHOLE,
         "2 output tokens and 1 cells need 2 rows of 1 attention weights, but the rows have [1]."),
        (red(9, 9), [[0.25] * 4], (2, 3), ["a"], WHOLE,
         "1 output tokens and 6 cells need 1 rows of 6 attention weights, but the rows have [4]."),
        (red(9, 9)[:, :, 0], [[1.0]], (1, 1), ["a"], WHOLE, "an image must be (height, width, 3), but is (9, 9)."),
        (red(9, 9), [[1.0]], (1, 1), ["a"], (0.5, 0, 0.5, 1),
         "the box of the network's input must be (left, top, right, bottom), but is (0.5, 0, 0.5, 1)."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    image: Any, weights: Any, grid: Any, tokens: Any, box: Box, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ShapeError) as told:
        draw(tmp_path / "p.png", image, weights, grid, tokens, box)
    assert str(told.value) == sentence
    assert not (tmp_path / "p.png").exists()
