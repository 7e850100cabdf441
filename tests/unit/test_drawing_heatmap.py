"""Heat maps and confusion matrices: what is drawn in the file, and what is printed in the terminal."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread
from rich.console import Console, RenderableType

import sixjars
from sixjars.drawing.matplotlib.figure import GREY
from sixjars.drawing.matplotlib.heatmap import WIDEST, heat_map
from sixjars.drawing.terminal import confusion_in_terminal, in_terminal
from sixjars.errors import DataError, ShapeError
from tests.contracts.pairwise import named

from .pages import saved_figures

WEIGHTS = [[0.9, 0.1], [0.2, 0.8], [0.54, 0.46]]


figures = pytest.fixture(saved_figures)


def printed(what: RenderableType, width: int = 80) -> str:
    console = Console(width=width, record=True, force_terminal=False)
    console.print(what)
    return console.export_text()


def test_each_weight_has_its_cell(tmp_path: Path, figures: list[Figure]) -> None:
    source, target = ["I", "go"], ["mein", "ja", "<stop>"]
    path, title = tmp_path / "new" / "map.png", "word " * 60
    heat_map(path, WEIGHTS, source=source, target=target, title=title)
    (axes, bar), title = figures[0].axes, figures[0].get_suptitle()
    assert np.asarray(axes.images[0].get_array()).tolist() == WEIGHTS
    assert axes.images[0].get_clim() == (0.0, 0.9)
    assert [label.get_text() for label in axes.get_xticklabels()] == source
    assert [label.get_text() for label in axes.get_yticklabels()] == target
    numbers = [text.get_text() for text in axes.texts]
    assert numbers == ["0.90", "0.10", "0.20", "0.80", "0.54", "0.46"]
    assert bar.get_ylabel() == "attention weight α,\nat most 0.90"
    assert title.count("\n") == 2
    assert title.endswith(" …")


def test_attention_that_is_spread_thinly_shows(tmp_path: Path, figures: list[Figure]) -> None:
    heat_map(tmp_path / "map.png", [[0.04] * 25], source=["a"] * 25, target=["b"])
    axes, bar = figures[0].axes
    assert axes.images[0].get_clim() == (0.0, 0.04)
    assert {text.get_text() for text in axes.texts} == {"0.04"}
    assert {text.get_color() for text in axes.texts} == {"white"}
    assert bar.get_ylabel() == "attention weight α,\nat most 0.04"


LABELLED, RARE = named(
    lambda **case: case,
    "map",
    rows=(1, 2, 4, 5, 6),
    title=("", "I go", "word " * 60),
    name=("go", "a-long-name-of-thirty-two-letters"),
)


@pytest.mark.parametrize(
    ("rows", "title", "name"),
    [
        pytest.param(*case.values(), marks=[pytest.mark.slow] if of in RARE else [])
        for of, case in LABELLED.items()
    ],
)
def test_the_label_of_the_colour_bar_is_whole(
    rows: int, title: str, name: str, tmp_path: Path, figures: list[Figure]
) -> None:
    path, weights, target = tmp_path / "map.png", [[0.36, 0.64]] * rows, ["b"] * rows
    heat_map(path, weights, source=["I", name], target=target, title=title)
    (figure,) = figures
    label = figure.axes[1].yaxis.label
    assert label.get_text().split() == ["attention", "weight", "α,", "at", "most", "0.64"]
    drawn, whole = label.get_window_extent(), figure.bbox
    assert whole.y0 <= drawn.y0
    assert drawn.y1 <= whole.y1
    assert drawn.x1 <= whole.x1


def test_large_weights_are_dark_in_the_file(tmp_path: Path) -> None:
    path = str(tmp_path / "map.png")
    sixjars.heat_map(path, [[1.0, 0.0], [0.0, 1.0]], source=["a", "b"], target=["a", "b"])
    page = np.asarray(imread(path))[:, :, :3]
    page = page[:, : int(page.shape[1] * 0.7)]  # without the colour bar
    rows, columns = np.nonzero((page[:, :, 2] - page[:, :, 0] > 0.3) & (page[:, :, 2] < 0.6))
    assert rows.size > 2000
    assert np.corrcoef(rows, columns)[0, 1] > 0.3


def test_dollars_and_long_or_unknown_tokens(tmp_path: Path, figures: list[Figure]) -> None:
    tokens = ["$5_{", "incomprehensibilities" * 9, "\U000e0fff"]
    path = tmp_path / "map.png"
    heat_map(path, [[1.0, 0.0, 0.0]], source=tokens, target=["$x$ ^_"], title="$a_{ $")
    labels = [label.get_text() for label in figures[0].axes[0].get_xticklabels()]
    assert labels == ["$5_{", "incomprehensibilities" + "incomprehe…", "[1]"]
    assert len(labels[1]) == 32
    assert figures[0].get_suptitle() == "$a_{ $"


def test_the_grid_of_a_shorter_last_part_ends_with_its_columns(
    tmp_path: Path, figures: list[Figure]
) -> None:
    heat_map(tmp_path / "p.png", [[1 / 33] * 33] * 2, source=["w"] * 33, target=["a", "b"])
    [figure] = figures
    ends = [axes.collections[0].get_paths()[0].get_extents().x1 for axes in figure.axes[:2]]
    assert ends == [16.5, 15.5]


def dark_lines(axes: Any) -> list[float]:
    """Where they stand."""
    drawn = [lines for lines in axes.collections if lines.get_color().size]
    dark = [lines for lines in drawn if to_hex(lines.get_color()[0]) == GREY]
    return [float(segment[0][0]) for lines in dark for segment in lines.get_segments()]


def test_a_dark_line_is_drawn_where_a_sentence_begins(
    tmp_path: Path, figures: list[Figure]
) -> None:
    """Not where an input is drawn in two parts, and the second begins with a sentence."""
    values: dict[str, Any] = {"source": ["x"] * 2 * WIDEST, "target": ["y"]}
    cases: list[tuple[list[int], list[float]]] = [
        ([], []),
        ([0] * 3 + [1] * (WIDEST - 3) + [2] * WIDEST, [2.5]),
    ]
    for segments, wanted in cases:
        heat_map(tmp_path / "a.png", [[0.1] * 2 * WIDEST], segments=segments, **values)
        [first, second, _] = figures[-1].axes
        assert (dark_lines(first), dark_lines(second)) == (wanted, [])
        assert ("Dark lines" in figures[-1].get_supxlabel()) is bool(wanted)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "map.png"
    with pytest.raises(ShapeError) as told:
        heat_map(path, WEIGHTS, source=["I", "go", "home"], target=["mein", "ja", "<stop>"])
    assert str(told.value) == (
        "3 output tokens and 3 source tokens need 3 rows of 3 attention weights, but the rows have [2, 2, 2]."
    )
    with pytest.raises(DataError, match=r"^there are no attention weights to draw\.$"):
        heat_map(path, [], source=[], target=[])
    assert not path.exists()


def test_the_terminal_shows_every_token_and_the_large_weights() -> None:
    text = printed(
        in_terminal([[0.93, 0.07], [0.01, 0.99]], source=["[unk]", "go"], target=["[/b]", "ja"])
    )
    assert [line.split() for line in text.splitlines()] == [
        ["[unk]", "go"],
        ["[/b]", ".93", ".07"],
        ["ja", "·", ".99"],
    ]
    assert printed(in_terminal([], source=[], target=[])).strip() == ""


def test_large_weights_are_bright_in_the_terminal() -> None:
    table = in_terminal([[1.0, 0.0, 0.5]], source=["a", "b", "incomprehensible"], target=["x"])
    cells = [next(iter(column.cells)) for column in table.columns[2:]]
    assert [str(cell.style) for cell in cells] == [  # type: ignore[union-attr]
        "black on color(255)",
        "white on color(232)",
        "black on color(244)",
    ]
    assert [len(str(cell)) for cell in cells] == [4, 4, 18]


# Confusion matrices


def test_confusion_in_the_terminal() -> None:
    text = printed(confusion_in_terminal(["cat", "[dog]"], [[30, 1], [0, 12]]))
    head, cat, dog, caption = (line.split() for line in text.splitlines())
    assert head == ["true", "↓", "predicted", "→", "cat", "[dog]"]
    assert cat == ["cat", "30", "1"]
    assert dog == ["[dog]", "·", "12"]
    assert caption == "42 of 43 are right, 98%.".split()


def test_a_cell_is_as_bright_as_its_share_of_the_row() -> None:
    table = confusion_in_terminal(["a", "b"], [[3, 1], [0, 400]])
    styles = [[str(cell.style) for cell in column.cells] for column in table.columns[2:]]  # type: ignore[union-attr]
    assert styles == [
        [f"black on color({232 + round(23 * 0.75)})", "white on color(232)"],
        [f"white on color({232 + round(23 * 0.25)})", "black on color(255)"],
    ]


def test_labels_too_long_for_columns_are_numbered() -> None:
    labels = [f"playing the accordion {chr(97 + at)}" for at in range(12)]
    counts = (1234 * np.eye(12, dtype=int)).tolist()
    lines = printed(confusion_in_terminal(labels, counts), width=110).splitlines()
    assert lines[0].split()[-12:] == [str(at + 1) for at in range(12)]
    assert lines[3].split() == "playing the accordion c 3 · · 1234 · · · · · · · · ·".split()


def test_labels_that_never_occur() -> None:
    assert "0 of 0 are right, 0%." in printed(confusion_in_terminal(["a", "b"], [[0, 0], [0, 0]]))


@pytest.mark.parametrize(
    ("labels", "counts", "sizes"), [(["a", "b"], [[1, 2], [3]], "[2, 1]"), ([], [], "[]")]
)
def test_counts_must_fit_the_labels(labels: list[str], counts: list[list[int]], sizes: str) -> None:
    with pytest.raises(ShapeError) as told:
        confusion_in_terminal(labels, counts)
    needs = f"{len(labels)} labels need as many rows of as many counts"
    assert str(told.value) == f"{needs}, but the rows have {sizes}."


def test_a_caption_tells_rows_from_columns(tmp_path: Path, figures: list[Figure]) -> None:
    heat_map(tmp_path / "map.png", [[1.0, 0.0]], source=["a", "b"], target=["c"], note="A note.")
    caption = " ".join(figures[0].get_supxlabel().split())
    assert caption == "Rows: the output. Columns: the input. A note."
