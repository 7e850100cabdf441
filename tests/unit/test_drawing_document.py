"""Documents with their attention weights, read back from the files that were drawn."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colormaps

from sixjars.drawing.matplotlib.document import MOST_LINES, draw_document
from sixjars.errors import ShapeError

from . import pages
from .pages import Pixels, read

written = pytest.fixture(pages.written_texts)


def draw(
    path: Path, words: Sequence[str], segments: Any, weights: Sequence[float], text: str = "T"
) -> None:
    """A document whose output is one token."""
    view = pages.view_of(text, [text], [weights], source=tuple(words), segments=tuple(segments))
    draw_document(path, view)


def shades(page: Pixels, hue: int) -> list[list[float]]:
    """How far each box of a colour (0 red, 2 blue) is from white, by rows; its letters are not counted."""
    page = page[:, :, :3]
    tinted = page[:, :, hue] - page[:, :, 2 - hue] > 0.015
    rows = []
    for top, bottom in pages.runs(tinted, 0, least=9):
        boxes = [(a, b) for a, b in pages.runs(tinted[top:bottom], 1, least=9) if b - a > 8]
        # the corner of a box has no letter on it
        rows.append([float(1 - page[top:bottom, a:b][2:4, 2:6].mean()) for a, b in boxes])
    return [row for row in rows if row]


def shade(colors: str, share: float) -> float:
    """How far a colour is from white."""
    return 1 - float(np.mean(colormaps[colors](0.9 * share)[:3]))


def test_a_sentence_is_as_dark_as_its_weight(tmp_path: Path) -> None:
    words, path = "one two three four five six".split(), tmp_path / "new" / "p.png"
    draw(path, words, [0, 0, 1, 1, 2, 2], [0.1, 0.5, 0.05, 0.05, 0.2, 0.1])
    first, second, third = (row[0] for row in shades(read(path), 0))
    assert first > third > second > 0.02
    expected = [shade("Reds", share / 0.6) for share in (0.6, 0.3, 0.1)]
    assert [first, third, second] == pytest.approx(expected, abs=0.01)


def test_a_word_is_as_dark_as_its_share_times_the_root_of_its_sentence(tmp_path: Path) -> None:
    """By hand: sentences of 0.64 and 0.36, words of 3/4 and 1/4 of the first and of a half each of the second."""
    weights = [0.64 * 0.75, 0.64 * 0.25, 0.36 * 0.5, 0.36 * 0.5]
    draw(tmp_path / "p.png", ["wwww"] * 4, [0, 0, 1, 1], weights)
    largest = 0.8 * 0.75
    for row, shares in zip(
        shades(read(tmp_path / "p.png"), 2),
        [[1.0, 0.8 * 0.25 / largest], [0.6 * 0.5 / largest] * 2],
        strict=True,
    ):
        assert row == pytest.approx([shade("Blues", share) for share in shares], abs=0.01)


def test_all_that_matters_is_written(tmp_path: Path, written: list[str]) -> None:
    words = ["good", "$5", "and", "$6", "बुरा"]
    draw(tmp_path / "p.png", words, [0, 0, 0, 2, 2], [0.3, 0, 0, 0.05, 0.004])
    title = "T (probability 100%) ← in"
    assert written[:9] == [title, "1", "30%", "good", "$5", "and", "3", "5.4%", "$6"]
    assert written[10:] == [
        "Red: the weight of a sentence, all its words together.",
        "Blue: the weight of a word within its sentence, times √(weight of the sentence). The largest are darkest.",
    ]


def test_one_sentence_alone_has_no_weight(tmp_path: Path, written: list[str]) -> None:
    draw(tmp_path / "p.png", ["one", "two"], [], [0.8, 0.2])
    caption = "Blue: the attention weight, averaged over the output; the largest is darkest."
    assert written[1:] == ["one", "two", caption]


def test_turns_of_a_conversation_are_told_apart(tmp_path: Path, written: list[str]) -> None:
    draw(tmp_path / "p.png", ["<", "hello", ">", "who"], [0, 0, 1, 1], [0.25] * 4)
    assert written[-1] == "> and <: turns of the other speaker, and of the one who answers."


def test_long_sentences_go_on_below(tmp_path: Path) -> None:
    found = []
    for count in (5, 100):
        draw(tmp_path / "p.png", ["word"] * count, [0] * count, [1 / count] * count)
        found.append(read(tmp_path / "p.png"))
    (short, wide), (long, wider) = (page.shape[:2] for page in found)
    assert wide == wider
    assert (long - short) / 150 / 0.215 == pytest.approx(5, abs=0.1)  # 19 words to a line
    assert found[1][:, -20:].min() == 1.0, "something runs over the edge"


def test_of_a_long_document_the_heavy_sentences_are_shown(
    tmp_path: Path, written: list[str]
) -> None:
    """Every seventh sentence weighs ten times as much; words tell their sentence."""
    segments = [number for number in range(300) for _ in range(6)]
    heavy = np.array([10.0 if segment % 7 == 0 else 1.0 for segment in segments])
    weights = (heavy / heavy.sum()).tolist()
    draw(tmp_path / "p.png", [f"w{segment}" for segment in segments], segments, weights)
    shown = [int(text[1:]) for text in written if text.startswith("w")]
    assert shown == sorted(shown)
    assert {at for at in range(300) if at % 7 == 0} <= set(shown)
    assert f"… 6 more, {6 * 6 * min(weights):.1%}" in written
    told = f"{len(set(shown))} of 300 sentences are shown, those with the most weight: "
    total = math.fsum(weights[6 * at] * 6 for at in set(shown))
    assert written[-1] == f"{told}{total:.0%} together."
    assert len(set(shown)) + sum(text.startswith("…") for text in written) <= MOST_LINES
    assert read(tmp_path / "p.png").shape[0] < 4800


@pytest.mark.usefixtures("unrendered")
def test_a_left_out_sentence_that_needs_no_more_room_is_shown(
    tmp_path: Path, written: list[str]
) -> None:
    heavy = [2.0 if at % 2 == 0 else 1.0 for at in range(MOST_LINES + 2)]
    draw(tmp_path / "p.png", ["w"] * len(heavy), range(len(heavy)), heavy)
    assert written.count("w") == MOST_LINES - 1
    assert [text for text in written if text.startswith("…")] == ["… 3 more, 400%"]


def test_a_sentence_longer_than_a_page_is_cut(
    tmp_path: Path, written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.drawing.matplotlib.document.MOST_LINES", 12)
    words, segments = ["first", *["word"] * 400, "last", "x" * 400], [0, *[1] * 401, 2]
    draw(tmp_path / "p.png", words, segments, [1 / 403] * 403, "long " * 100)
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
    draw(tmp_path / "p.png", words, range(len(words)), [0.0] * len(words))
    assert written[-1] == caption
    assert shades(read(tmp_path / "p.png"), 2) == []


@pytest.mark.parametrize(
    ("segments", "sentence"),
    [
        ([0], "each word has a sentence and a weight, but there are 2 words, 1 sentences' numbers and 2 weights."),
        ([1, 0], "sentences come one after the other, but 0 comes after 1."),
    ],
)  # fmt: skip
def test_what_does_not_fit(segments: list[int], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ShapeError) as told:
        draw(tmp_path / "p.png", ["a", "b"], segments, [0.5, 0.5])
    assert str(told.value) == sentence
    assert not (tmp_path / "p.png").exists()
