"""`sixjars new` on parallel files: a recipe that names both, fits them, and trains; or a sentence."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError
from sixjars.runs.recipes import read_recipe
from sixjars.starter.write import new, started
from tests.conftest import Call


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, words in {
        "c.en": "the cat sees {}",
        "c.de": "die Katze sieht {}",
        "c.no": "katten ser {}",
    }.items():
        Path(name).write_text("".join(words.format(n) + "\n" for n in range(60)), encoding="utf-8")


def fields(recipe: str = "new.yaml") -> dict[str, Any]:
    return {name: settings.column for name, settings in read_recipe(recipe).data.fields.items()}


def test_both_files_are_named_and_trained_on(call: Call) -> None:
    said = call("new", "new.yaml", "--task", "translation", "--data", "c.en", "--data", "c.de")
    assert said.err.splitlines() == [
        "source = 'en' (c.en), target = 'de' (c.de), in the order of the files; "
        "the other way round: --source de --target en.",
        "wrote new.yaml; next: sixjars train new.yaml",
    ]
    text = Path("new.yaml").read_text(encoding="utf-8")
    assert "train: {en: c.en, de: c.de}" in text
    assert "chosen for 60 rows" in text
    assert fields() == {"source": "en", "target": "de"}
    small = ["model.encoder.size=8", "model.decoder.size=8", "model.decoder.embedding.size=8"]
    few = ["learning.steps=2", *small, "evaluation.search.max_length=4"]
    assert sixjars.train("new.yaml", few, out="run").scores


def test_it_is_the_recipe_of_a_table_with_the_same_rows() -> None:
    new("files.yaml", task="translation", data=["c.en", "c.de"])
    columns = [Path(name).read_text(encoding="utf-8").splitlines() for name in ("c.en", "c.de")]
    Path("pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in zip(*columns, strict=True)), encoding="utf-8"
    )
    new("table.yaml", task="translation", data="pairs.tsv")
    of_files, of_table = (read_recipe(name).model_dump() for name in ("files.yaml", "table.yaml"))
    assert of_files["model"] == of_table["model"]
    assert of_files["learning"] == of_table["learning"]


def test_the_other_way_round_and_by_name() -> None:
    made = started("new.yaml", task="translation", data=["c.en", "c.no"], columns={"source": "no"})
    assert made.notes[0] == (
        "source = 'no' (c.no), target = 'en' (c.en), as you say; the other way round: --source en --target no."
    )
    assert fields() == {"source": "no", "target": "en"}
    new("two.yaml", task="translation", data=["c.en", "c.no"], columns={"source": 2})
    assert fields("two.yaml") == fields()
    new("three.yaml", task="translation", data={"a": "c.en", "b": Path("c.de")})
    assert fields("three.yaml") == {"source": "a", "target": "b"}


def test_labels_in_a_file_of_their_own() -> None:
    Path("y.txt").write_text("pos\nneg\n" * 30, encoding="utf-8")
    made = started("new.yaml", task="document_classification", data=["c.en", "y.txt"])
    assert (
        made.notes[0] == "source = 'en' (c.en), label = 'txt' (y.txt), in the order of the files."
    )


@pytest.mark.parametrize(
    ("task", "data", "columns", "sentence"),
    [
        (
            "translation",
            ["c.en", "short.de"],
            {},
            "Parallel files must have equally many lines, but c.en has 60, short.de has 1.",
        ),
        (
            "translation",
            "c.en",
            {},
            "c.en: only one column was found, column 1 ('the cat sees 0'), but translation reads source and outputs a "
            "target. Columns may be separated by tabs, commas, semicolons or |, the same number in each line. Or name "
            "a file for each, line by line: --data c.en --data FILE.",
        ),
        (
            "translation",
            "c.en, c.de",
            {},
            "data file c.en, c.de does not exist. Name several files one by one: --data c.en --data c.de.",
        ),
        (
            "translation",
            ["c.en", "c.en"],
            {},
            "c.en is named twice; each parallel file has the lines of another column.",
        ),
        (
            "translation",
            ["c.en", "test.csv"],
            {},
            "several files are parallel lines, a file for each of source, target, but test.csv is a table of its own; "
            "give one to --data, and name files of other splits in the recipe (valid: FILE, test: FILE).",
        ),
        (
            "language_model",
            ["c.en", "c.de"],
            {},
            "language_model reads no input and outputs a target, which is 1 file with a line for each row, but 2 are "
            "named.",
        ),
        (
            "image_captioning",
            ["c.en", "c.de"],
            {},
            "image_captioning reads image and outputs a target, so its data is one table with both in each row; name "
            "one file.",
        ),
        (
            "translation",
            ["c.en", "c.de"],
            {"source": "fr"},
            "Parallel files: column 'fr' is unknown. Known: de, en.",
        ),
        (
            "translation",
            ["c.en", "c.de"],
            {"label": "en"},
            "field 'label' is unknown. Known: source, target. That is what translation has.",
        ),
        (
            "translation",
            ["c.en", "c.de"],
            {"source": "de", "target": "de"},
            "c.de is named for source and target; each has a file of its own.",
        ),
        ("pointing", ["c.en", "c.de"], {}, "c.en cannot be the points; it holds other values."),
        ("translation", ["c.en", "nope.de"], {}, "nope.de does not exist."),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    task: str, data: Any, columns: dict[str, str], sentence: str
) -> None:
    Path("short.de").write_text("eine Zeile\n", encoding="utf-8")
    with pytest.raises(DataError) as caught:
        new("new.yaml", task=task, data=data, columns=columns)
    assert str(caught.value) == sentence
    assert not Path("new.yaml").exists()
