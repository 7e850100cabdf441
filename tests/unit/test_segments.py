"""Texts in segments: how they are split, marked, joined and read from lists."""

from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.fields.label import LabelField, LabelSettings
from sixjars_runtime.text.segments import (
    KINDS,
    OTHER,
    OWN,
    joined,
    kind_of,
    marked,
    segments_of,
    text_of_labels,
    text_of_segments,
    texts_of,
)

TEXT = " One. Two.\n\n \tThree?  \nfour "


@pytest.mark.parametrize(
    ("kind", "segments"),
    [
        ("none", [TEXT]),
        ("sentences", ["One.", "Two.", "Three?", "four"]),
        ("lines", ["One. Two.", "Three?", "four"]),
        ("turns", ["> One. Two.", "< Three?", "> four"]),
    ],
)
def test_every_kind(kind: str, segments: list[str]) -> None:
    assert kind in KINDS
    assert segments_of(TEXT, kind) == segments
    assert segments_of(" \n ", kind) == ([" \n "] if kind == "none" else [])


def test_an_unknown_kind() -> None:
    told = r"^kind of segments 'line' is unknown\. Did you mean 'lines'\?"
    with pytest.raises(ValueError, match=told):
        segments_of("x", "line")


def test_the_last_turn_is_by_the_other_speaker() -> None:
    assert segments_of("a\nb", "turns") == ["< a", "> b"]
    assert segments_of("a", "turns") == ["> a"]
    assert (marked("a", own=False), marked("a", own=True)) == (f"{OTHER} a", f"{OWN} a")


def test_marks_stay_where_every_line_has_one() -> None:
    assert segments_of("> a\n> b\n< c", "turns") == ["> a", "> b", "< c"]
    assert segments_of("> a\n<b", "turns") == ["< > a", "> <b"]
    assert segments_of("> a\nb", "turns") == ["< > a", "> b"]


@given(st.lists(st.text(max_size=8).filter(str.strip), min_size=1, max_size=6))
def test_joined_lines_come_back(segments: list[str]) -> None:
    text = joined(segments)
    found = segments_of(text, "lines")
    assert [line.split() for line in found] == [one.split() for one in segments]
    turns = segments_of(text + "\nlast", "turns")[:-1]
    assert [turn[2:].split() for turn in turns] == [one.split() for one in segments]


def test_lists_become_texts() -> None:
    told = "One line.\nTwo.\n3\n4\n0.5\nfalse"
    assert text_of_segments(["One\r\nline.", "Two.", "3", 4, 0.5, False]) == told
    assert text_of_labels(["grain", " winter\nwheat ", 3]) == "grain, winter wheat, 3"
    labels = ["grain", "winter wheat"]
    field = LabelField("label", LabelSettings(multi_label=True), labels)
    assert field.encode([text_of_labels(labels)]) == [[0, 1]]


@pytest.mark.parametrize("to_text", [text_of_segments, text_of_labels, texts_of])
@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([], "holds an empty list."),
        (["x", None], "holds a list with null in it; it may hold texts alone."),
        (["x", ["y"]], "holds a list with a list in it; it may hold texts alone."),
        (["x", {"y": "z"}], "holds a list with an object in it; it may hold texts alone."),
        (["x", b"y"], "holds a list with bytes in it; it may hold texts alone."),
        (None, "holds null, not a list of texts."),
        ("x", "holds a text, not a list of texts."),
        ({"x": "y"}, "holds an object, not a list of texts."),
        (5, "holds a number, not a list of texts."),
    ],
)
def test_what_is_no_list_of_texts(to_text: Any, value: object, sentence: str) -> None:
    with pytest.raises(ValueError, match="holds") as caught:
        to_text(value)
    assert str(caught.value) == sentence


COMMA = "but a comma stands between labels; write it without."


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", "b, c"], f"holds the label 'b, c', {COMMA}"),
        (["a", "b,\nc"], f"holds the label 'b, c', {COMMA}"),
        (["a,b"], f"holds the label 'a,b', {COMMA}"),
        (["a", " "], "holds an empty label."),
    ],
)
def test_labels_that_cannot_be_told_apart(labels: list[str], sentence: str) -> None:
    with pytest.raises(ValueError, match="holds") as caught:
        text_of_labels(labels)
    assert str(caught.value) == sentence


def test_kinds_of_values() -> None:
    names = ["null", "a list", "an object", "bytes", "a text", "a number", "a number"]
    values: list[object] = [None, [], {}, b"", "", 1, 1.5, True, date(2024, 1, 2)]
    assert [kind_of(value) for value in values] == [*names, "true or false", "date"]


def test_a_long_label_is_not_echoed_whole() -> None:
    with pytest.raises(ValueError, match="but a comma stands between labels") as caught:
        text_of_labels(["a," * 50_000])
    assert len(str(caught.value)) < 200
