"""Whole conversations: every turn but the first is an example, and bad ones are named by file and line."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sixjars.data.tables import Examples
from sixjars.data.tables import rows as reading_rows
from sixjars.recipe.data import Column
from sixjars_runtime.text.segments import segments_of

from .rows import readers

TURNS: dict[str, Column] = {"source": "turns", "target": "turns"}
GOOD = {"turns": ["Hello?", "Speaking.", "This is Ann."]}
Row = tuple[Any, ...]


reading, message = readers(TURNS, format="dialogs")


def rows(examples: Examples) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in examples.table.columns), strict=True))


def written(folder: Path, *dialogs: Any, name: str = "a.jsonl") -> Path:
    content = "".join(json.dumps(dialog) + "\n" for dialog in dialogs).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.json"])
@pytest.mark.parametrize("block", [2, 1 << 14])
def test_two_who_take_turns(
    name: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_rows, "AT_ONCE", block)
    path = written(
        tmp_path, GOOD, {"turns": ["alone"]}, {"turns": [" a\n b ", "c\u2028d", 3, True]}, name=name
    )
    found = reading(tmp_path, name)
    assert rows(found) == [
        ("> Hello?", "Speaking.", 1),
        ("< Hello?\n> Speaking.", "This is Ann.", 1),
        ("> a b", "c d", 3),
        ("< a b\n> c d", "3", 3),
        ("> a b\n< c d\n> 3", "true", 3),
    ]
    assert (found.skipped, found.where, found.table.column_names) == (
        0,
        str(path),
        ["source", "target", "line"],
    )
    for source, _, _ in rows(found):
        assert segments_of(source, "turns") == source.split("\n")


def test_speakers(tmp_path: Path) -> None:
    written(
        tmp_path,
        {"turns": list("abcd"), "who": ["U", "U", "S", "U"]},
        {"turns": list("xyz"), "who": [1, 2, 3]},
    )
    assert rows(reading(tmp_path, speakers="who")) == [
        ("< a", "b", 1),
        ("> a\n> b", "c", 1),
        ("< a\n< b\n> c", "d", 1),
        ("> x", "y", 2),
        ("> x\n> y", "z", 2),
    ]


def test_columns_may_be_deep_and_the_target_is_not_read(tmp_path: Path) -> None:
    written(tmp_path, {"talk": {"said": ["a", "b"], "by": ["x", "x"]}})
    found = reading(
        tmp_path, columns={"target": "nowhere", "source": "talk.said"}, speakers="talk.by"
    )
    assert rows(found) == [("b", "< a", 1)]
    assert found.table.column_names == ["target", "source", "line"]


def test_filter(tmp_path: Path) -> None:
    bad = {"turns": ["a", ""], "split": "b"}
    path = written(
        tmp_path, {"turns": ["a", "b"], "split": "a"}, bad, {"turns": ["c", "d"], "split": "a"}
    )
    assert rows(reading(tmp_path, filter={"split": "a"})) == [("> a", "b", 1), ("> c", "d", 3)]
    assert message(tmp_path, filter={"split": "b"}) == f"{path}, line 2: turn 2 is empty."
    assert message(tmp_path, filter={"split": "c"}) == (
        f"{path}: no row is left of 3; 0 were bad and 3 did not fit 'filter'."
    )


def test_a_filter_may_be_called_like_a_field(tmp_path: Path) -> None:
    written(
        tmp_path, {"turns": ["a", "b"], "source": "web"}, {"turns": ["c", "d"], "source": "film"}
    )
    assert rows(reading(tmp_path, filter={"source": "web"})) == [("> a", "b", 1)]


BAD: dict[str, tuple[Any, str]] = {
    "empty turn": ({"turns": ["a", "b", " \n"]}, "turn 3 is empty."),
    "no turns": ({"turns": []}, "column 'turns' holds an empty list."),
    "null": ({"turns": None}, "column 'turns' holds null, not a list of texts."),
    "text": ({"turns": "a"}, "column 'turns' holds a text, not a list of texts."),
    "truth": ({"turns": True}, "column 'turns' holds true or false, not a list of texts."),
    "null inside": (
        {"turns": ["a", None]},
        "column 'turns' holds a list with null in it; it may hold texts alone.",
    ),
    "object inside": (
        {"turns": [{"text": "a"}]},
        "column 'turns' holds a list with an object in it; it may hold texts alone.",
    ),
    "surrogate": (
        {"turns": ["a", "\ud800"]},
        "column 'turns' holds half a character (a lone surrogate), which is no text.",
    ),
    "no key": ({"turn": ["a"]}, "column 'turns' is unknown. Did you mean 'turn'? Known: turn."),
    "no object": (
        ["a"],
        'is JSON, but not an object; each line is one object, like {"text": "..."}.',
    ),
}


@pytest.mark.parametrize(("dialog", "sentence"), BAD.values(), ids=BAD)
def test_bad_conversations(dialog: Any, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, dialog, GOOD)
    assert message(tmp_path) == f"{path}, line 2: {sentence}"
    found = reading(tmp_path, on_bad_row="skip")
    assert ([row[-1] for row in rows(found)], found.skipped) == ([1, 1, 3, 3], 1)


@pytest.mark.parametrize(
    ("who", "sentence"),
    [
        (["U", "S"], "has 3 turns, but column 'who' names 2 speakers."),
        ([], "column 'who' holds an empty list."),
        ("U", "column 'who' holds a text, not a list of texts."),
        (["U", None, "S"], "column 'who' holds a list with null in it; it may hold texts alone."),
    ],
)
def test_bad_speakers(who: Any, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path, {**GOOD, "who": who})
    assert message(tmp_path, speakers="who") == f"{path}, line 1: {sentence}"


@pytest.mark.parametrize("block", [2, 1 << 14])
def test_a_turn_that_nobody_answers_teaches_nothing(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_rows, "AT_ONCE", block)
    path = written(tmp_path, {"turns": ["a"]}, {"turns": ["b"]})
    alone = "has two turns or more, so there is no turn that answers another."
    assert message(tmp_path) == f"{path}: no conversation {alone}"
    written(tmp_path, {"turns": ["a"], "split": "a"}, {**GOOD, "split": "b"})
    assert (
        message(tmp_path, filter={"split": "a"})
        == f"{path}: no conversation that fits 'filter' {alone}"
    )
    written(tmp_path, {"turns": ["a"]}, {"turns": []})
    assert message(tmp_path) == f"{path}, line 2: column 'turns' holds an empty list."
    assert message(tmp_path, on_bad_row="skip") == f"{path}: no conversation {alone}"
    written(tmp_path, {"turns": ["a"]}, GOOD, {"turns": ["b"]})
    assert {row[-1] for row in rows(reading(tmp_path))} == {2}


def test_errors(tmp_path: Path) -> None:
    path = written(tmp_path)
    assert message(tmp_path) == f"{path} is empty."
    assert message(tmp_path, {"en": "a", "de": "b"}) == (
        "Format dialogs is one file of JSON lines, but files are given for en, de; name one file."
    )
    for columns in ({"source": "turns"}, {**TURNS, "label": "mood"}):
        assert message(tmp_path, columns=columns) == (
            f"Format dialogs gives source and target, no more and no less, not {', '.join(columns)}."
        )
    numbers = "JSON lines have names, not numbers, so column 2 is not there; give its name."
    assert message(tmp_path, columns={"source": 2, "target": 3}) == f"{path}: {numbers}"
    assert message(tmp_path, speakers=2) == f"{path}: {numbers}"
    assert message(tmp_path, "b.jsonl") == f"{tmp_path / 'b.jsonl'} does not exist."
    path.write_text('{"turns": ["a", "b"]}\n\nnot JSON\n')
    assert message(tmp_path) == f"{path}, line 2: the line is empty."
    assert reading(tmp_path, on_bad_row="skip").skipped == 2
