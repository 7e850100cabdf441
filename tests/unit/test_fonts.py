"""Fonts: those of the machine that have the letters are found; where there are none, a number and a sentence."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from matplotlib import font_manager

from sixjars.drawing.matplotlib import fonts
from sixjars.drawing.matplotlib.fonts import fonts_for, legend, missing_font, shown_text, spelled


def forget() -> None:
    for known in (fonts._letters, fonts._others, fonts._own, fonts_for):
        known.cache_clear()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine with three fonts besides those of matplotlib."""
    letters = {
        "noto.ttf": "नमस्ते",
        "lohit.ttf": "नमस्ते१",
        "cjk.ttc": "你好",
        "last.otf": "नम你好한",
    }
    faces = [
        ("Lohit Devanagari", "lohit.ttf"),
        ("Noto Sans Devanagari", "noto.ttf"),
        ("Any CJK", "cjk.ttc"),
        ("Last Resort High-Efficiency", "last.otf"),
    ]
    found = [
        SimpleNamespace(
            name=name,
            fname=file,
            style="normal",
            weight=400,
            variant="normal",
            stretch="normal",
            size="scalable",
        )
        for name, file in faces
    ]
    real = font_manager.get_font
    monkeypatch.setattr(
        font_manager.fontManager, "ttflist", [*font_manager.fontManager.ttflist, *found]
    )

    def get_font(file: str) -> object:
        if file not in letters:
            return real(file)
        return SimpleNamespace(get_charmap=lambda: {ord(letter): 1 for letter in letters[file]})

    monkeypatch.setattr(font_manager, "get_font", get_font)
    forget()
    yield
    forget()


def test_the_fonts_of_the_machine_are_found(machine: None) -> None:
    assert fonts_for("plain") == (("DejaVu Sans",), frozenset())
    assert fonts_for("नम 你") == (("DejaVu Sans", "Noto Sans Devanagari", "Any CJK"), frozenset())
    assert fonts_for("न१") == (
        ("DejaVu Sans", "Noto Sans Devanagari", "Lohit Devanagari"),
        frozenset(),
    )
    assert fonts_for("한") == (("DejaVu Sans",), frozenset("한"))
    assert missing_font(["नम", "你"]) is None
    assert missing_font(["नम", "한"]) == (
        "No font on this machine has these letters; install Noto Sans CJK KR to see them."
    )


def test_without_a_font_there_is_a_number_a_legend_and_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fonts, "_others", lambda: ())
    fonts_for.cache_clear()
    numbers: dict[str, int] = {}
    assert shown_text("I → घर हूँ घर", numbers) == "I → [1] [2] [1]"
    assert shown_text("你好", numbers) == "[3]"
    assert legend(numbers) == [
        "[1] Devanagari gha-ra",
        "[2] Devanagari ha-uu-candrabindu",
        "[3] U+4F60-U+597D",
        "No font on this machine has these letters; install Noto Sans Devanagari and Noto Sans CJK SC to see them.",
    ]
    assert missing_font(["\U000e0fff"]) == "No font on this machine has some of these characters."
    assert legend({}) == []
    assert spelled("ा9") == "Devanagari aa-9"
    assert missing_font(["🎉，"]) == (
        "No font on this machine has these letters; install Noto Sans CJK SC and Noto Emoji to see them."
    )
    fonts_for.cache_clear()


def test_a_font_that_cannot_be_read_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(file: str) -> object:
        raise RuntimeError("it is damaged")

    monkeypatch.setattr(font_manager, "get_font", broken)
    assert fonts._letters("broken.ttf") == frozenset()
    forget()
