"""Pages: their measures, their fonts, and that nothing of the process is changed by drawing."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import imread
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.by_length import draw_by_length
from sixjars.drawing.matplotlib.figure import (
    drawable,
    even_lines,
    figure_of,
    fit,
    save,
    saved_page,
    set_font,
    title_lines,
    width_of,
)
from sixjars.drawing.matplotlib.heatmap import heat_map
from sixjars.drawing.weights import ink
from sixjars.evaluation.by_length import Bucket


def read(path: Path) -> NDArray[np.float64]:
    return np.asarray(imread(path), dtype=np.float64)[:, :, :3]


def inked(page: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """The box of all that is not white: top, bottom, left, right."""
    rows, columns = np.nonzero((page < 0.99).any(axis=2))
    return int(rows.min()), int(rows.max()), int(columns.min()), int(columns.max())


def test_inches_count_from_the_top_left_of_the_area(tmp_path: Path) -> None:
    with saved_page(tmp_path / "p.png", 4.0, 2.0, title="", caption="") as page:
        page.fill([1.0, 2.0, 2.0, 1.0], [0.5, 0.5, 1.5, 1.5], color="red", linewidth=0)
    picture = read(tmp_path / "p.png")
    assert picture.shape[:2] == (round(150 * 2.4), round(150 * 4.4))
    expected = [150 * 0.7, 150 * 1.7, 150 * 1.2, 150 * 2.2]
    assert inked(picture) == pytest.approx(expected, abs=1.5)


def test_title_and_caption_make_room_for_themselves(tmp_path: Path) -> None:
    heights = {}
    for title, caption in (
        ("", ""),
        ("a title", ""),
        ("word " * 60, ""),
        ("", "a note"),
        ("", "one\ntwo"),
    ):
        with saved_page(tmp_path / "p.png", 4.0, 1.0, title=title, caption=caption) as page:
            page.fill([0.0, 4.0, 4.0, 0.0], [0.0, 0.0, 1.0, 1.0], color="red", linewidth=0)
        picture = read(tmp_path / "p.png")
        red = (picture[:, :, 0] > 0.99) & (picture[:, :, 1] < 0.01)
        assert red.sum() == pytest.approx(600 * 150, rel=0.01), "something covers the area"
        heights[title[:1] + caption] = (picture.shape[0] - 1.4 * 150) / 150
    assert heights == pytest.approx(
        {"": 0, "a": 0.25, "w": 0.65, "a note": 0.16, "one\ntwo": 0.32}, abs=0.02
    )


def test_texts_are_made_to_fit() -> None:
    figure = figure_of(5.0, 1.0)
    short, long = (
        figure.text(0, 0, text, fontsize=10) for text in ("a", "incomprehensibilities" * 5)
    )
    for text in (short, long):
        fit(text, 1.0)
        assert width_of(text) <= 1.0
    assert (short.get_text(), short.get_fontsize()) == ("a", 10)
    assert long.get_text().endswith("…")
    assert long.get_fontsize() == 7.0


def test_texts_are_measured_in_our_fonts() -> None:
    figure = figure_of(5.0, 1.0)
    plain, other = (
        figure.text(0, 0, "$a_b$ ilk", fontfamily=name)
        for name in ("DejaVu Sans", "DejaVu Sans Mono")
    )
    assert width_of(other) == width_of(plain) > 0.5


def test_words_without_a_font_are_numbers() -> None:
    figure = figure_of(1.0, 1.0)
    assert drawable(figure, "né ↓ √ $x_{") == "né ↓ √ $x_{"
    assert drawable(figure, "one\ntwo\tthree\u00a0four") == "one\ntwo three four"
    assert drawable(figure, "a\U000e0fffb c") == "[1] c"
    assert drawable(figure, "\U000e0ffe a\U000e0fffb") == "[2] [1]"
    assert drawable(figure_of(1.0, 1.0), "\U000e0ffe") == "[1]"  # each figure counts by itself


def test_letters_can_be_read_on_every_shade() -> None:
    """A contrast of 4.5 to 1, as WCAG 2.1 asks for."""

    def luminance(color: tuple[float, ...]) -> float:
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in color[:3]
        ]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    for name in ("Blues", "Reds", "Greys"):
        for share in np.linspace(0.0, 1.0, 101):
            shade = mpl.colormaps[name](share)
            light, dark = sorted([luminance(shade), luminance(to_rgb(ink(shade)))], reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_a_text_gets_our_fonts_and_no_mathematics() -> None:
    text = figure_of(1.0, 1.0).text(0, 0, "$x$", fontweight="bold")
    set_font(text)
    assert text.get_fontfamily()[0] == "DejaVu Sans"
    assert text.get_fontweight() == "bold"
    assert not text.get_parse_math()
    assert text.get_text() == "$x$"


def test_nothing_of_the_process_changes(tmp_path: Path) -> None:
    settings, filters = dict(mpl.rcParams), list(warnings.filters)
    with saved_page(tmp_path / "p.png", 3.0, 1.0, title="मैं $x_{", caption="c") as page:
        page.text(0.0, 0.5, "नमस्ते \U000e0fff $")
        assert dict(mpl.rcParams) == settings
        assert list(warnings.filters) == filters
    heat_map(tmp_path / "h.png", [[1.0]], source=["हूँ $"], target=["\U000e0fff"], title="घर_{$")
    assert dict(mpl.rcParams) == settings
    assert list(warnings.filters) == filters


def test_settings_of_the_process_do_not_change_the_fonts(tmp_path: Path) -> None:
    heat_map(tmp_path / "one.png", [[0.5, 0.5]], source=["a", "b"], target=["c"], title="t")
    with mpl.rc_context({"font.family": ["DejaVu Serif"]}):
        heat_map(tmp_path / "two.png", [[0.5, 0.5]], source=["a", "b"], target=["c"], title="t")
        assert FontProperties().get_family() == ["DejaVu Serif"]
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_threads_draw_the_same_as_one(tmp_path: Path) -> None:
    def drawn(number: int) -> bytes:
        path = tmp_path / f"{number}.png"
        tokens = [f"token{number % 3}", "नमस्ते"]
        heat_map(path, [[0.9, 0.1], [0.2, 0.8]], source=tokens, target=tokens, title="together")
        return path.read_bytes()

    alone = [drawn(number) for number in range(3)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(drawn, range(3, 15)))
    assert together == [alone[number % 3] for number in range(3, 15)]


def test_folders_are_made(tmp_path: Path) -> None:
    save(figure_of(1.0, 1.0), str(tmp_path / "new" / "er" / "p.png"))
    assert read(tmp_path / "new" / "er" / "p.png").shape == (150, 150, 3)


def test_titles_and_captions_have_even_lines() -> None:
    assert title_lines("short → kurz", 4.0) == ["short → kurz"]
    assert title_lines("i do not like old yellow snakes at all .", 3.5) == [
        "i do not like old",
        "yellow snakes at all .",
    ]
    assert title_lines(f"{'one ' * 30} → {'two ' * 30}", 4.0)[-1].endswith(" …")
    assert len(title_lines(f"{'one ' * 30} → {'two ' * 30}", 4.0)) == 3
    assert title_lines("", 4.0) == even_lines("", 10) == []


def test_numbers_of_examples_do_not_cover_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[Figure] = []
    monkeypatch.setattr(
        "sixjars.drawing.matplotlib.by_length.save", lambda figure, *_: found.append(figure)
    )
    buckets = [Bucket(at, at, 1234, 0.0) for at in (4, 6, 9, 30, 60)]
    draw_by_length(tmp_path / "p.png", {"run": buckets}, metric="bleu")
    found[0].draw_without_rendering()
    (axes,) = found[0].axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert len(boxes) == 5
    assert not any(one.overlaps(two) for one, two in combinations(boxes, 2))
    assert not axes.lines[0].get_clip_on()  # dots at 0 are whole
