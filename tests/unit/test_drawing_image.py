"""Image overlays of attention weights, read back from the files that were drawn."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from sixjars.drawing.light import DARK, Box
from sixjars.drawing.matplotlib.image import draw_overlay, overlaid
from sixjars.errors import ShapeError

from .pages import Pixels, one_hot, read, red, runs


def panels(page: Pixels) -> list[Pixels]:
    """The red light of each panel, (height, width), in reading order."""
    mask = page[:, :, 0] - page[:, :, 1] > 0.15
    boxes = [
        (top, bottom, left, right)
        for top, bottom in runs(mask, 0)
        for left, right in runs(mask[top:bottom], 1)
    ]
    return [
        page[top + 2 : bottom - 2, left + 2 : right - 2, 0] for top, bottom, left, right in boxes
    ]


def cells(panel: Pixels, rows: int, columns: int) -> Pixels:
    """The mean light of each cell."""
    return np.array(
        [
            [c.mean() for c in np.array_split(r, columns, axis=1)]
            for r in np.array_split(panel, rows)
        ]
    )


@pytest.mark.parametrize(
    ("high", "wide"), [(60, 80), (300, 90), (40, 200), (1300, 1700), (7, 7), (600, 60)]
)
def test_each_token_brightens_its_own_cell(high: int, wide: int, tmp_path: Path) -> None:
    rows, columns = 2, 3
    words = ["a", "dog", "on", "green", "grass", "."]
    draw_overlay(
        tmp_path / "new" / "p.png", red(high, wide), one_hot(6), grid=(rows, columns), tokens=words
    )
    alone, *each = panels(read(tmp_path / "new" / "p.png"))
    assert len(each) == len(words)
    assert cells(alone, rows, columns).min() > 0.99
    assert [int(cells(panel, rows, columns).argmax()) for panel in each] == list(range(6))
    assert all(cells(panel, rows, columns).min() < 0.4 for panel in each)
    assert all(panel.max() > 0.99 for panel in each)
    assert all(abs(panel.shape[1] / panel.shape[0] / (wide / high) - 1) < 0.1 for panel in each)


@pytest.mark.parametrize(
    ("box", "grid", "at", "bright", "dark"),
    [
        (
            (0.25, 0.0, 0.75, 1.0),
            (1, 2),
            0,
            (slice(None), slice(26, 48)),
            (slice(None), slice(0, 24)),
        ),
        (
            (0.25, 0.0, 0.75, 1.0),
            (1, 2),
            1,
            (slice(None), slice(52, 74)),
            (slice(None), slice(76, 100)),
        ),
        (
            (0.0, -0.5, 1.0, 1.5),
            (16, 1),
            5,
            (slice(13, 24), slice(None)),
            (slice(50, 100), slice(None)),
        ),
        (
            (0.0, -0.5, 1.0, 1.5),
            (16, 1),
            11,
            (slice(88, 99), slice(None)),
            (slice(0, 60), slice(None)),
        ),
    ],
)
def test_cells_lie_in_the_box_of_the_input(
    box: Box, grid: tuple[int, int], at: int, bright: tuple[slice, slice], dark: tuple[slice, slice]
) -> None:
    light = (
        overlaid(red(100, 100), np.array(one_hot(grid[0] * grid[1])[at]).reshape(grid), box)[
            :, :, 0
        ]
        / 255
    )
    assert light[dark].max() < DARK + 0.02
    assert light[bright].mean() > light[dark].mean() + 0.2


def test_weights_on_the_padding_beside_the_image_are_not_in_it() -> None:
    weights = np.zeros((16, 1))
    weights[1], weights[8] = 0.8, 0.2  # the padding above the image, and the middle of the image
    light = overlaid(red(100, 100), weights, (0.0, -0.5, 1.0, 1.5))[:, :, 0] / 255
    dim = DARK + (1 - DARK) * 0.25
    assert light[56].mean() == pytest.approx(dim + 0.15 * 0.25 * (1 - dim), abs=0.01)
    assert light.argmax() // 100 == 56


def test_what_is_outside_the_box_is_dark_in_the_file_too(tmp_path: Path) -> None:
    box = (0.25, 0.0, 0.75, 1.0)
    draw_overlay(tmp_path / "p.png", red(60, 80), [[0.0, 1.0]], grid=(1, 2), tokens=["x"], box=box)
    quarters = cells(panels(read(tmp_path / "p.png"))[-1], 1, 4)[0]
    assert quarters[2] > 0.8
    assert quarters[[0, 3]].max() < DARK + 0.03


def spline(at: float, order: int = 4) -> float:
    """The centred B-spline by the recursion of de Boor (1972)."""
    if order == 1:
        return float(-0.5 <= at < 0.5)
    half = order / 2
    return (
        (half + at) * spline(at + 0.5, order - 1) + (half - at) * spline(at - 0.5, order - 1)
    ) / (order - 1)


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
    weights = [[1 / 64] * 64] * count
    draw_overlay(
        tmp_path / "p.png", red(64, 64), weights, grid=(8, 8), tokens=words, title="$a_{ word " * 20
    )
    page = read(tmp_path / "p.png")
    shown = panels(page)
    assert len(shown) == count + 1
    assert page.shape[1] / (shown[0].shape[1] + 4) < 8  # six panels and what is between them
    sizes = {panel.shape for panel in shown}
    assert max(max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a in sizes for b in sizes) <= 1


def test_long_tokens_stay_above_their_panel(tmp_path: Path) -> None:
    for name, word in (("long", "incomprehensibilities" * 5), ("short", "a")):
        draw_overlay(
            tmp_path / f"{name}.png", red(64, 64), [[1.0], [1.0]], grid=(1, 1), tokens=[word, "a"]
        )
    long, short = (read(tmp_path / f"{name}.png") for name in ("long", "short"))
    changed = np.flatnonzero((long != short).any(axis=(0, 2)))
    left, right = runs(long[:, :, 0] - long[:, :, 1] > 0.15, 1)[1]
    assert left - 2 <= changed.min()
    assert changed.max() <= right


def test_no_weight_is_dark(tmp_path: Path) -> None:
    draw_overlay(tmp_path / "p.png", red(64, 64), [[0.0] * 4], grid=(2, 2), tokens=["नमस्ते"])
    assert abs(panels(read(tmp_path / "p.png"))[1] - DARK).max() < 0.01


def test_the_captions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    plain = Axes.text

    def text(self: Axes, x: float, y: float, s: str, *arguments: object, **how: object) -> object:
        texts.append(s)
        return plain(self, x, y, s, *arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Axes, "text", text)
    draw_overlay(
        tmp_path / "p.png",
        red(60, 300),
        [[0.25, 0.75]],
        grid=(1, 2),
        tokens=["dog"],
        title="a title",
    )
    assert texts == [
        "a title",
        "75%",
        "dog",
        "Brightness: the attention weight, relative to the largest of the token. Number: the largest weight.",
    ]
    texts.clear()
    draw_overlay(
        tmp_path / "p.png", red(60, 300), [], grid=(1, 2), tokens=[], box=(0.1, 0.0, 0.9, 1.0)
    )
    assert texts == ["The output is empty. Dashed: the network's input."]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path, image = tmp_path / "p.png", red(9, 9)
    with pytest.raises(ShapeError) as told:
        draw_overlay(path, image, [[1.0]], grid=(1, 1), tokens=["a", "b"])
    assert str(told.value) == (
        "2 output tokens and 1 cells need 2 rows of 1 attention weights, but the rows have [1]."
    )
    with pytest.raises(
        ShapeError, match=r"^1 output tokens and 6 cells need .*, but the rows have \[4\]\.$"
    ):
        draw_overlay(path, image, [[0.25] * 4], grid=(2, 3), tokens=["a"])
    with pytest.raises(
        ShapeError, match=r"^an image must be \(height, width, 3\), but is \(9, 9\)\.$"
    ):
        draw_overlay(path, image[:, :, 0], [[1.0]], grid=(1, 1), tokens=["a"])
    with pytest.raises(
        ShapeError,
        match=r"^the box of the network's input must be \(left, top, right, bottom\), but is \(0\.5, 0, 0\.5, 1\)\.$",
    ):
        draw_overlay(path, image, [[1.0]], grid=(1, 1), tokens=["a"], box=(0.5, 0, 0.5, 1))
    assert not path.exists()
