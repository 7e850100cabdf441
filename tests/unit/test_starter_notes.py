"""What `sixjars new` tells of faults in the data: one bad row or file is no reason to refuse the others."""

import json
from pathlib import Path
from typing import Any

import pytest

from sixjars.runs.recipes import read_recipe
from sixjars.runs.starter import started


def lined(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ([], "holds an empty list."),
        (None, "has no value."),
        ([None], "holds a list with null in it; it may hold texts alone."),
    ],
)
@pytest.mark.parametrize("line", [1, 5])
def test_one_list_without_texts_is_a_bad_row(bad: object, sentence: str, line: int, tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"image": f"{n}.jpg", "captions": [f"a dog {n}", "a pet"]} for n in range(12)]
    rows[line - 1]["captions"] = bad
    data = lined(tmp_path / "a.jsonl", rows)
    made = started(tmp_path / "new.yaml", task="image_captioning", data=data, columns={"target": "captions"})
    assert f"{data}: 1 bad row was skipped. Line {line}: column 'captions' {sentence}" in made.notes


def test_a_conversation_without_turns_is_a_bad_row(tmp_path: Path) -> None:
    data = lined(tmp_path / "a.jsonl", [{"turns": []}, *({"turns": ["how are you?", f"fine {n}"]} for n in range(12))])
    made = started(tmp_path / "new.yaml", task="conversation", data=data)
    assert read_recipe(made.path).data.format == "dialogs"
    assert read_recipe(made.path).data.on_bad_row == "skip"
    assert any("Line 1: column 'turns' holds an empty list." in note for note in made.notes)
