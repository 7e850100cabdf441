"""Documents with their attention weights, read back from the files that were drawn."""

import math
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread
from numpy.typing import NDArray

from sixjars.drawing.matplotlib.document import MOST_LINES, draw_document
from sixjars.errors import ShapeError

from .pages import Pixels


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is put on a page, in order."""
    texts: list[str] = []
    plain = Axes.text

    def text(self: Axes, x: float, y: float, s: str, *arguments: object, **how: object) -> object:
        texts.append(s)
        return plain(self, x, y, s, *arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Axes, "text", text)
    return texts


def read(path: Path) -> Pixels:
    assert path.read_bytes().startswith(b"\x89PNG")
    return np.asarray(imread(path), dtype=np.float64)[:, :, :3]


def stretches(there: NDArray[np.bool_]) -> list[slice]:
    """Where something is, along a line."""
    edges = np.flatnonzero(np.diff(there.astype(np.int64), prepend=0, append=0))
    return [slice(*pair) for pair in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)]


def shades(page: Pixels, hue: int) -> list[list[float]]:
    """How far each box of a colour (0 red, 2 blue) is from white, by rows; its letters are not counted."""
    tinted = page[:, :, hue] - page[:, :, 2 - hue] > 0.015
    rows = []
    for row in stretches(tinted.sum(axis=1) > 8):
        boxes = [box for box in stretches(tinted[row].sum(axis=0) > 8) if box.stop - box.start > 8]
        # the corner of a box has no letter on it
        rows.append([float(1 - page[row, box][2:4, 2:6].mean()) for box in boxes])
    return [row for row in rows if row]


def test_a_sentence_is_as_dark_as_its_weight(tmp_path: Path) -> None:
    weights = [0.1, 0.5, 0.05, 0.05, 0.2, 0.1]
    words, segments = ["one", "two", "three", "four", "five", "six"], [0, 0, 1, 1, 2, 2]
    draw_document(
        tmp_path / "new" / "p.png", words=words, segments=segments, weights=weights, title="a title"
    )
    first, second, third = (row[0] for row in shades(read(tmp_path / "new" / "p.png"), 0))
    assert first > third > second > 0.02
    assert first == pytest.approx(shade("Reds", 1.0), abs=0.01)
    assert third == pytest.approx(shade("Reds", 0.3 / 0.6), abs=0.01)
    assert second == pytest.approx(shade("Reds", 0.1 / 0.6), abs=0.01)


def shade(colors: str, share: float) -> float:
    """How far a colour is from white."""
    from matplotlib import colormaps

    return 1 - float(np.mean(colormaps[colors](0.9 * share)[:3]))


def test_a_word_is_as_dark_as_its_share_times_the_root_of_its_sentence(tmp_path: Path) -> None:
    """By hand: sentences of 0.64 and 0.36, words of 3/4 and 1/4 of the first and of a half each of the second."""
    weights = [0.64 * 0.75, 0.64 * 0.25, 0.36 * 0.5, 0.36 * 0.5]
    draw_document(
        tmp_path / "p.png", words=["wwww"] * 4, segments=[0, 0, 1, 1], weights=weights, title=""
    )
    rows = shades(read(tmp_path / "p.png"), 2)
    largest = 0.8 * 0.75
    expected = [[1.0, 0.8 * 0.25 / largest], [0.6 * 0.5 / largest] * 2]
    assert rows == [
        pytest.approx([shade("Blues", share) for share in row], abs=0.01) for row in expected
    ]


def test_all_that_matters_is_written(tmp_path: Path, written: list[str]) -> None:
    words = ["good", "$5", "and", "$6", "बुरा"]
    draw_document(
        tmp_path / "p.png",
        words=words,
        segments=[0, 0, 0, 2, 2],
        weights=[0.3, 0, 0, 0.05, 0.004],
        title="T",
    )
    assert written[:9] == ["T", "1", "30%", "good", "$5", "and", "3", "5.4%", "$6"]
    assert written[10:] == [
        "Red: the weight of a sentence, all its words together.",
        "Blue: the weight of a word within its sentence, times √(weight of the sentence). The largest are darkest.",
    ]


def test_one_sentence_alone_has_no_weight(tmp_path: Path, written: list[str]) -> None:
    draw_document(
        tmp_path / "p.png", words=["one", "two"], segments=[0, 0], weights=[0.8, 0.2], title="T"
    )
    assert written == [
        "T",
        "one",
        "two",
        "Blue: the attention weight, averaged over the output; the largest is darkest.",
    ]


def test_turns_of_a_conversation_are_told_apart(tmp_path: Path, written: list[str]) -> None:
    words, segments = ["<", "hello", ">", "who"], [0, 0, 1, 1]
    draw_document(tmp_path / "p.png", words=words, segments=segments, weights=[0.25] * 4)
    assert written[-1] == "> and <: turns of the other speaker, and of the one who answers."


def test_long_sentences_go_on_below(tmp_path: Path) -> None:
    sizes = []
    for count in (5, 100):
        draw_document(
            tmp_path / "p.png",
            words=["word"] * count,
            segments=[0] * count,
            weights=[1 / count] * count,
        )
        sizes.append(read(tmp_path / "p.png").shape[:2])
    assert sizes[0][1] == sizes[1][1]
    lines = (sizes[1][0] - sizes[0][0]) / 150 / 0.215
    assert lines == pytest.approx(5, abs=0.1)  # 19 to a line
    page = read(tmp_path / "p.png")
    assert page[:, -20:].min() == 1.0, "something runs over the edge"


def document(sentences: int, words: int) -> tuple[list[str], list[int], list[float]]:
    """Sentences whose words tell their number; every seventh weighs ten times as much."""
    segments = [number for number in range(sentences) for _ in range(words)]
    heavy = np.array([10.0 if segment % 7 == 0 else 1.0 for segment in segments])
    return [f"w{segment}" for segment in segments], segments, (heavy / heavy.sum()).tolist()


def test_of_a_long_document_the_heavy_sentences_are_shown(
    tmp_path: Path, written: list[str]
) -> None:
    words, segments, weights = document(300, 6)
    draw_document(tmp_path / "p.png", words=words, segments=segments, weights=weights, title="")
    shown = [int(text[1:]) for text in written if text.startswith("w")]
    assert shown == sorted(shown)
    assert {at for at in range(300) if at % 7 == 0} <= set(shown)
    light = 6 * min(weights)
    assert f"… 6 more, {6 * light:.1%}" in written
    told = f"{len(set(shown))} of 300 sentences are shown, those with the most weight: "
    assert (
        written[-1] == f"{told}{math.fsum(weights[6 * at] * 6 for at in set(shown)):.0%} together."
    )
    assert len(set(shown)) + sum(text.startswith("…") for text in written) <= MOST_LINES
    assert read(tmp_path / "p.png").shape[0] < 4800


@pytest.mark.usefixtures("unrendered")
def test_a_left_out_sentence_that_needs_no_more_room_is_shown(
    tmp_path: Path, written: list[str]
) -> None:
    heavy = [2.0 if at % 2 == 0 else 1.0 for at in range(MOST_LINES + 2)]
    draw_document(
        tmp_path / "p.png",
        words=["w"] * len(heavy),
        segments=range(len(heavy)),
        weights=heavy,
        title="",
    )
    assert written.count("w") == MOST_LINES - 1
    assert [text for text in written if text.startswith("…")] == ["… 3 more, 400%"]


def test_a_sentence_longer_than_a_page_is_cut(
    tmp_path: Path, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.drawing.matplotlib.document.MOST_LINES", 12)
    words, segments = ["first", *["word"] * 400, "last", "x" * 400], [0, *[1] * 401, 2]
    draw_document(
        tmp_path / "p.png",
        words=words,
        segments=segments,
        weights=[1 / 403] * 403,
        title="long " * 100,
    )
    assert "…" in written
    assert "last" not in written
    assert {"first", "x" * 400} <= set(written)
    page = read(tmp_path / "p.png")
    assert page.shape[0] < 700
    assert page[:, -10:].min() == 1.0


@pytest.mark.parametrize(
    ("words", "caption"), [([], "The document is empty."), (["a", "b"], "No word has any weight.")]
)
def test_nothing_to_shade(
    words: list[str], caption: str, tmp_path: Path, written: list[str]
) -> None:
    segments = list(range(len(words)))
    draw_document(
        tmp_path / "p.png", words=words, segments=segments, weights=[0.0] * len(words), title=""
    )
    assert written[-1] == caption
    assert shades(read(tmp_path / "p.png"), 2) == []


@pytest.mark.parametrize(
    ("words", "segments", "weights", "sentence"),
    [
        (
            ["a", "b"],
            [0],
            [0.5, 0.5],
            "each word has a sentence and a weight, but there are 2 words, 1 sentences' numbers and 2 weights.",
        ),
        (
            ["a", "b"],
            [1, 0],
            [0.5, 0.5],
            "sentences come one after the other, but 0 comes after 1.",
        ),
    ],
)
def test_what_does_not_fit(
    words: list[str], segments: list[int], weights: list[float], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ShapeError) as told:
        draw_document(tmp_path / "p.png", words=words, segments=segments, weights=weights, title="")
    assert str(told.value) == sentence
    assert not (tmp_path / "p.png").exists()
