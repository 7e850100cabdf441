"""Pictures of attention over images and films, and of confusion, read back from the files that were drawn."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from numpy.typing import NDArray
from rich.console import Console, RenderableType

from sixjars.errors import ShapeError
from sixjars.inspection.confusion import confusion_in_terminal, draw_confusion
from sixjars.inspection.frames import draw_frames, in_terminal_frames
from sixjars.inspection.heatmap import in_terminal
from sixjars.inspection.overlay import DARK, Box, draw_regions, in_terminal_regions, lit

Pixels = NDArray[np.float64]


def red(high: int, wide: int) -> NDArray[np.uint8]:
    """Something that is easily found on a page of black, white and grey."""
    picture = np.zeros((high, wide, 3), dtype=np.uint8)
    picture[:, :, 0] = 255
    return picture


def one_hot(size: int) -> list[list[float]]:
    return np.eye(size).tolist()


def read(path: Path) -> Pixels:
    assert path.read_bytes().startswith(b"\x89PNG")
    return np.asarray(imread(path), dtype=np.float64)


def runs(mask: NDArray[np.bool_], axis: int) -> list[tuple[int, int]]:
    """Where stretches with something True begin and end, along the rows (0) or the columns (1) of a page."""
    there = np.asarray(mask.any(axis=1 - axis), dtype=np.int64)
    edges = np.flatnonzero(np.diff(there, prepend=0, append=0))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def panels(page: Pixels) -> list[Pixels]:
    """The red light of each panel, (height, width), in reading order."""
    mask = page[:, :, 0] - page[:, :, 1] > 0.15
    boxes = [(top, bottom, left, right) for top, bottom in runs(mask, 0) for left, right in runs(mask[top:bottom], 1)]
    return [page[top + 2 : bottom - 2, left + 2 : right - 2, 0] for top, bottom, left, right in boxes]


def cells(panel: Pixels, rows: int, columns: int) -> Pixels:
    """The mean light of each cell."""
    return np.array([[c.mean() for c in np.array_split(r, columns, axis=1)] for r in np.array_split(panel, rows)])


def printed(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, force_terminal=False)
    console.print(what)
    return console.export_text()


@pytest.mark.parametrize(("high", "wide"), [(60, 80), (300, 90), (40, 200), (1300, 1700), (7, 7), (600, 60)])
def test_each_word_lights_its_own_cell(high: int, wide: int, tmp_path: Path) -> None:
    rows, columns = 2, 3
    words = ["a", "dog", "on", "green", "grass", "."]
    draw_regions(tmp_path / "new" / "p.png", red(high, wide), one_hot(6), grid=(rows, columns), words=words)
    alone, *each = panels(read(tmp_path / "new" / "p.png"))
    assert len(each) == len(words)
    assert cells(alone, rows, columns).min() > 0.99
    assert [int(cells(panel, rows, columns).argmax()) for panel in each] == list(range(6))
    assert all(cells(panel, rows, columns).min() < 0.4 for panel in each)
    assert all(panel.max() > 0.99 for panel in each)
    assert all(abs(panel.shape[1] / panel.shape[0] / (wide / high) - 1) < 0.1 for panel in each)


@pytest.mark.parametrize(
    ("seen", "grid", "at", "lit_part", "dark_part"),
    [
        ((0.25, 0.0, 0.75, 1.0), (1, 2), 0, (slice(None), slice(26, 48)), (slice(None), slice(0, 24))),
        ((0.25, 0.0, 0.75, 1.0), (1, 2), 1, (slice(None), slice(52, 74)), (slice(None), slice(76, 100))),
        ((0.0, -0.5, 1.0, 1.5), (16, 1), 5, (slice(13, 24), slice(None)), (slice(50, 100), slice(None))),
        ((0.0, -0.5, 1.0, 1.5), (16, 1), 11, (slice(88, 99), slice(None)), (slice(0, 60), slice(None))),
    ],
)
def test_cells_lie_in_the_box_that_was_seen(
    seen: Box, grid: tuple[int, int], at: int, lit_part: tuple[slice, slice], dark_part: tuple[slice, slice]
) -> None:
    light = lit(red(100, 100), np.array(one_hot(grid[0] * grid[1])[at]).reshape(grid), seen)[:, :, 0] / 255
    assert light[dark_part].max() < DARK + 0.02
    assert light[lit_part].mean() > light[dark_part].mean() + 0.2


def test_light_on_the_bars_beside_the_picture_is_not_in_it() -> None:
    weights = np.zeros((16, 1))
    weights[1], weights[8] = 0.8, 0.2  # the bar above the picture, and the middle of the picture
    light = lit(red(100, 100), weights, (0.0, -0.5, 1.0, 1.5))[:, :, 0] / 255
    dim = DARK + (1 - DARK) * 0.25
    assert light[56].mean() == pytest.approx(dim + 0.15 * 0.25 * (1 - dim), abs=0.01)
    assert light.argmax() // 100 == 56


def test_the_part_that_was_not_seen_is_dark_in_the_file_too(tmp_path: Path) -> None:
    seen = (0.25, 0.0, 0.75, 1.0)
    draw_regions(tmp_path / "p.png", red(60, 80), [[0.0, 1.0]], grid=(1, 2), words=["x"], seen=seen)
    quarters = cells(panels(read(tmp_path / "p.png"))[-1], 1, 4)[0]
    assert quarters[2] > 0.8
    assert quarters[[0, 3]].max() < DARK + 0.03


def spline(at: float, order: int = 4) -> float:
    """The centred B-spline by the recursion of de Boor (1972)."""
    if order == 1:
        return float(-0.5 <= at < 0.5)
    half = order / 2
    return ((half + at) * spline(at + 0.5, order - 1) + (half - at) * spline(at - 0.5, order - 1)) / (order - 1)


def test_light_is_the_spline_of_the_weights() -> None:
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
    shown = lit(grey, weights)
    for row, column in [(0, 0), (14, 33), (25, 12), (49, 69), (40, 51)]:
        light = min(smooth((row + 0.5) / 10 - 0.5, (column + 0.5) / 10 - 0.5) / strongest, 1.0)
        dim = 200 * (0.2 + 0.8 * light)
        assert abs(int(shown[row, column, 1]) - (dim + 0.15 * light * (255 - dim))) <= 0.51


@pytest.mark.parametrize("count", [0, 1, 7, 15, 40])
def test_any_number_of_words_in_rows_of_six_at_most(count: int, tmp_path: Path) -> None:
    words = ["incomprehensibilities-of-every-sort"] * count
    weights = [[1 / 64] * 64] * count
    draw_regions(tmp_path / "p.png", red(64, 64), weights, grid=(8, 8), words=words, title="$a_{ word " * 20)
    page = read(tmp_path / "p.png")
    shown = panels(page)
    assert len(shown) == count + 1
    assert page.shape[1] / (shown[0].shape[1] + 4) < 8  # six panels and what is between them
    sizes = {panel.shape for panel in shown}
    assert max(max(abs(a[0] - b[0]), abs(a[1] - b[1])) for a in sizes for b in sizes) <= 1


def test_long_words_stay_above_their_panel(tmp_path: Path) -> None:
    for name, word in (("long", "incomprehensibilities" * 5), ("short", "a")):
        draw_regions(tmp_path / f"{name}.png", red(64, 64), [[1.0], [1.0]], grid=(1, 1), words=[word, "a"])
    long, short = (read(tmp_path / f"{name}.png") for name in ("long", "short"))
    changed = np.flatnonzero((long != short).any(axis=(0, 2)))
    left, right = runs(long[:, :, 0] - long[:, :, 1] > 0.15, 1)[1]
    assert left - 2 <= changed.min()
    assert changed.max() <= right


def test_no_weight_is_no_light(tmp_path: Path) -> None:
    draw_regions(tmp_path / "p.png", red(64, 64), [[0.0] * 4], grid=(2, 2), words=["नमस्ते"])
    assert abs(panels(read(tmp_path / "p.png"))[1] - DARK).max() < 0.01
    assert "x 0%" in printed(in_terminal_regions([[0.0] * 4], grid=(2, 2), words=["x"]))


def test_regions_in_the_terminal() -> None:
    weights = [[0.0, 0.0, 0.0, 1.0], [0.25, 0.5, 0.0, 0.25]]
    text = printed(in_terminal_regions(weights, grid=(2, 2), words=["[dog]", "a"]))
    assert [line.split() for line in text.splitlines()] == [
        ["[dog]", "100%", "a", "50%"],
        ["····", "▒▒██"],
        ["··██", "··▒▒"],
    ]


@pytest.mark.parametrize(("size", "shown"), [(14, 14), (15, 8), (28, 14), (30, 10)])
def test_large_grids_are_made_smaller_for_the_terminal(size: int, shown: int) -> None:
    weights = [[1 / size**2] * size**2]
    _, *lines = printed(in_terminal_regions(weights, grid=(size, size), words=["x"])).splitlines()
    assert [line.strip() for line in lines] == ["██" * shown] * shown


def test_each_word_has_its_bar_under_its_frame(tmp_path: Path) -> None:
    draw_frames(tmp_path / "f.png", np.stack([red(30, 40)] * 4), one_hot(4), words=list("abcd"), title="four")
    page = read(tmp_path / "f.png")
    frames = runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)
    blue = page[:, :, 2] - page[:, :, 0] > 0.3
    bars = [(top, runs(blue[top:bottom], 1)) for top, bottom in runs(blue, 0)]
    assert len(frames) == len(bars) == 4
    for frame, (_, found) in zip(frames, bars, strict=True):
        assert len(found) == 1
        assert max(abs(a - b) for a, b in zip(frame, found[0], strict=True)) <= 1
    steps = [after - before for (before, _), (after, _) in pairwise(bars)]
    assert max(steps) - min(steps) <= 1


def test_bars_are_as_high_as_the_weights(tmp_path: Path) -> None:
    draw_frames(tmp_path / "f.png", np.stack([red(30, 40)] * 3), [[0.6, 0.3, 0.1]], words=["incomprehensibility" * 4])
    page = read(tmp_path / "f.png")
    blue = page[:, :, 2] - page[:, :, 0] > 0.15
    high = [int(blue[:, left + 3].sum()) for left, _ in runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)]
    assert high[0] > 30
    assert [h / high[0] for h in high] == pytest.approx([1.0, 0.5, 1 / 6], abs=0.05)


@pytest.mark.parametrize(("frames", "shown"), [(1, 1), (16, 16), (17, 16), (100, 16)])
def test_at_most_sixteen_frames_and_no_weight_is_lost(frames: int, shown: int, tmp_path: Path) -> None:
    draw_frames(tmp_path / "f.png", np.stack([red(20, 20)] * frames), [[1 / frames] * frames], words=["x"])
    page = read(tmp_path / "f.png")
    assert len(runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)) == shown
    weights = np.zeros(frames)
    weights[-1] = 0.97
    text = printed(in_terminal_frames([weights.tolist()], words=["x"]), width=120)
    numbers, line = (row.split() for row in text.splitlines())
    assert line == ["x", *["·"] * (shown - 1), ".97"]
    assert numbers[0] == "1"
    assert len(numbers) == shown


def test_neighbouring_frames_add_up() -> None:
    text = printed(in_terminal_frames([[0.4, 0.2] + [0.0125] * 32], words=["[x]"]), width=120)
    numbers, line = (row.split() for row in text.splitlines())
    assert numbers[:2] == ["1", "4"]  # 34 frames: the first of the sixteen groups has three
    assert line[:2] == ["[x]", ".61"]


def test_films_without_words_or_weight(tmp_path: Path) -> None:
    film = np.stack([red(20, 20)] * 2)
    draw_frames(tmp_path / "none.png", film, [], words=[])
    draw_frames(tmp_path / "zero.png", film, [[0.0, 0.0]] * 40, words=["w"] * 40)
    none, zero = (read(tmp_path / f"{name}.png") for name in ("none", "zero"))
    assert zero.shape[0] > 5 * none.shape[0]
    assert not (zero[:, :, 2] - zero[:, :, 0] > 0.3).any()
    assert printed(in_terminal_frames([], words=[])).strip() == ""


@pytest.mark.parametrize(("counts", "falling"), [([[9, 1], [1, 9]], True), ([[1, 9], [9, 1]], False)])
def test_what_is_often_confused_is_dark(counts: list[list[int]], falling: bool, tmp_path: Path) -> None:
    draw_confusion(tmp_path / "c.png", ["walking", "$run_{"], counts)
    page = read(tmp_path / "c.png")
    rows, columns = np.nonzero(page[:, :, 2] - page[:, :, 0] > 0.4)
    assert rows.size > 5000
    assert (np.corrcoef(rows, columns)[0, 1] > 0) == falling


def test_confusion_in_the_terminal() -> None:
    text = printed(confusion_in_terminal(["cat", "[dog]"], [[30, 1], [0, 12]]))
    head, cat, dog, told = (line.split() for line in text.splitlines())
    assert head[-2:] == ["cat", "[dog]"]
    assert cat == ["cat", "30", "1"]
    assert dog == ["[dog]", "·", "12"]
    assert told == "42 of 43 are right, 98%.".split()


def test_labels_too_long_for_columns_are_numbered(tmp_path: Path) -> None:
    labels = [f"playing the accordion {chr(97 + at)}" for at in range(12)]
    counts = (1234 * np.eye(12, dtype=int)).tolist()
    draw_confusion(tmp_path / "c.png", labels, counts)
    assert min(read(tmp_path / "c.png").shape[:2]) > 900
    lines = printed(confusion_in_terminal(labels, counts), width=110).splitlines()
    assert lines[0].split()[-12:] == [str(at + 1) for at in range(12)]
    assert lines[3].split() == ["playing", "the", "accordion", "c", "3", "·", "·", "1234", *["·"] * 9]


def test_a_label_that_never_occurs(tmp_path: Path) -> None:
    draw_confusion(tmp_path / "c.png", ["a", "b"], [[0, 0], [0, 0]])
    assert "0 of 0 are right, 0%." in printed(confusion_in_terminal(["a", "b"], [[0, 0], [0, 0]]))


def test_words_in_brackets_are_words_in_heat_maps_too() -> None:
    text = printed(in_terminal([[0.5, 0.5]], source=["[unk]", "[/b]"], target=["[bold]"]))
    assert all(word in text for word in ("[unk]", "[/b]", "[bold]"))


def test_what_does_not_fit_together_is_told(tmp_path: Path) -> None:
    path, picture, film = tmp_path / "p.png", red(9, 9), np.stack([red(9, 9)] * 2)
    with pytest.raises(ShapeError, match=r"^there are 2 words, but 1 rows of weights\.$"):
        draw_regions(path, picture, [[1.0]], grid=(1, 1), words=["a", "b"])
    with pytest.raises(ShapeError, match=r"^a grid of 2 × 3 has 6 cells, but there are 4 weights\.$"):
        in_terminal_regions([[0.25] * 4], grid=(2, 3), words=["a"])
    with pytest.raises(ShapeError, match=r"^a picture must be \(height, width, 3\), but is \(9, 9\)\.$"):
        draw_regions(path, picture[:, :, 0], [[1.0]], grid=(1, 1), words=["a"])
    with pytest.raises(ShapeError, match=r"must be \(left, top, right, bottom\), but is \(0\.5, 0, 0\.5, 1\)\.$"):
        draw_regions(path, picture, [[1.0]], grid=(1, 1), words=["a"], seen=(0.5, 0, 0.5, 1))
    with pytest.raises(ShapeError, match=r"^frames must be \(number, height, width, 3\), but are \(9, 9, 3\)\.$"):
        draw_frames(path, picture, [[1.0]], words=["a"])
    with pytest.raises(ShapeError, match=r"^there are 0 words, but 1 rows of weights\.$"):
        in_terminal_frames([[1.0]], words=[])
    with pytest.raises(ShapeError, match=r"^there are 2 frames, but 3 weights for a word\.$"):
        draw_frames(path, film, [[0.5, 0.5], [0.1, 0.2, 0.7]], words=["a", "b"])
    with pytest.raises(ShapeError, match=r"^2 labels need .* as many counts, but the rows have \[2, 1\]\.$"):
        draw_confusion(path, ["a", "b"], [[1, 2], [3]])
    with pytest.raises(ShapeError, match=r"^0 labels need"):
        confusion_in_terminal([], [])
    assert not path.exists()
