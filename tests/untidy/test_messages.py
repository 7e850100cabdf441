"""What `new` and `train` tell of untidy files, word for word."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sixjars.data.bad_rows import LEAVE_ROWS_OUT
from sixjars.runs.recipes import read_recipe
from tests.conftest import Call

HEADED = "English\tGerman\n" + "".join(f"a cat sits {n}\teine Katze sitzt {n}\n" for n in range(12))
FEW = ["learning.steps=2", "model.encoder.size=8", "model.decoder.size=8", "data.valid=0.2"]
RECIPE = """task: translation
data: {{train: {file}, {more}source: {{column: {source}}}, target: {{column: {target}}}}}
evaluation: {{search: {{max_length: 4}}, metrics: [bleu]}}
"""
Train = Callable[..., str]


@pytest.fixture
def train(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Train:
    """What training on a file says on stderr."""
    monkeypatch.chdir(tmp_path)

    def run(
        content: str | bytes, *columns: object, file: str = "a.tsv", more: str = "", code: int = 0
    ) -> str:
        Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
        source, target = columns
        Path("a.yaml").write_text(RECIPE.format(file=file, source=source, target=target, more=more))
        said = call("train", "a.yaml", *FEW, "--device", "cpu")
        assert said.code == code, said
        return said.err

    return run


def test_a_header_that_is_read_as_an_example_is_a_warning(train: Train) -> None:
    assert (
        "note: a.tsv: the first line ('English', 'German') looks like a header, but is read as an example, because "
        "columns are given by number; name them, or write `data.header: true` "
        "(`data.header: false` if it is an example).\n"
    ) in train(HEADED, 1, 2)


@pytest.mark.parametrize("more", ["header: true, ", "header: false, "])
def test_no_warning_where_the_recipe_says_it(more: str, train: Train) -> None:
    assert "header" not in train(HEADED, 1, 2, more=more)


def test_names_where_the_recipe_says_that_there_is_no_header(train: Train) -> None:
    told = train(HEADED, "English", "German", more="header: false, ", code=2)
    assert (
        told
        == "sixjars: a.tsv has no header, as the recipe says; give columns by number, not 'English'.\n"
    )


def test_bad_rows_that_are_skipped_are_named(train: Train) -> None:
    told = train(HEADED + "alone\n\tempty\n", "English", "German", more="on_bad_row: skip, ")
    assert (
        "note: a.tsv: 2 bad rows were skipped. Line 14: has 1 column, but column 2 is asked for. "
        "Line 15: column 'English' is empty.\n"
    ) in told
    told = train(HEADED + "alone\n" * 9, "English", "German", more="on_bad_row: skip, ", code=2)
    assert "runs/a" in told  # the folder of the first run


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_another_delimiter_is_asked_for(mark: str, train: Train) -> None:
    written = '"\\t"' if mark == "\t" else repr(mark)
    question = f"Is the delimiter {written}? Then write `data.delimiter: {written}`.\n"
    content = HEADED.replace("\t", mark)
    assert train(content, "English", "German", file="a.csv", code=2).endswith(question)
    assert train(content, 1, 2, file="a.csv", code=2).endswith(question)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            '[{"en": "a", "de": "b"}\n {"en": "a"}]',
            "line 2: is not JSON: a comma or the end of the list is missing.",
        ),
        ('[{"en": "a", "de": "b"},\n x]', "line 2: is not JSON: Expecting value at column 2."),
        ('[{"en": "a", "de": "b"},\n 3]', "line 2: is no object; a list holds objects here."),
        (
            '{\n"data": [{"en": "a", "de": "b"},\n 3]}',
            "line 3: is no object; a list holds objects here.",
        ),
        (b'[\n{"en": "\x81"}]', "line 2: is not UTF-8; save the file as UTF-8."),
        ("[" * 100_000, "line 1: has too many brackets inside brackets."),
    ],
)
def test_json_lists_that_cannot_be_read(content: str | bytes, sentence: str, train: Train) -> None:
    more = ""
    if "is no object" in sentence or "UTF-8" in sentence:  # rows that may be left out
        more = LEAVE_ROWS_OUT
    told = train(content, "en", "de", file="a.json", code=2)
    assert told == f"sixjars: a.json, {sentence}{more}\n"


def test_utf16_that_is_none(train: Train) -> None:
    told = train(b"\xff\xfe" + b"\x00\xd8a\x00" * 9, "en", "de", code=2)
    assert told.startswith("sixjars: a.tsv begins as UTF-16, but is not: ")
    assert told.endswith("; save the file as UTF-8.\n")


def test_new_tells_what_it_chose_and_what_else_there_is(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.tsv").write_text(HEADED)
    said = call("new", "a.yaml", "--task", "translation", "--data", "a.tsv")
    told = (
        "source = 'English' (the first text), target = 'German' (the only other text); "
        "the other way round: --source German --target English."
    )
    assert said.err == f"{told}\nwrote a.yaml; next: sixjars train a.yaml\n"
    assert f"# Columns {told}\n" in Path("a.yaml").read_text()
    said = call("new", "b.yaml", "--task", "translation", "--source", "English")
    assert (
        said.err
        == "sixjars: a column for source is named, but no data; name the file with --data FILE.\n"
    )
    said = call("new", "b.yaml", "--task", "translation", "--data", "a.tsv", "--column", "source")
    assert (
        said.err == "sixjars: --column source: write FIELD=COLUMN, such as --column image=photo.\n"
    )


def test_a_label_that_is_a_number_among_words(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [
        f'{{"text": "it is mail {n}", "label": "{("ham", "spam")[n % 2]}"}}\n' for n in range(20)
    ]
    Path("a.jsonl").write_text("".join([*rows, '{"text": "it is odd", "label": 3}\n']))
    said = call("new", "a.yaml", "--task", "document_classification", "--data", "a.jsonl")
    assert (
        "a.jsonl: 1 label is a number (3) where the others are words; each is a class too.\n"
        in said.err
    )


def labelled(call: Call, labels: list[str]) -> str:
    """What `new` says of texts with these labels."""
    rows = [f'"it is mail {n}","{label}"\n' for n, label in enumerate(labels)]
    Path("a.csv").write_text("text,label\n" + "".join(rows))
    Path("a.yaml").unlink(missing_ok=True)
    return call("new", "a.yaml", "--task", "document_classification", "--data", "a.csv").err


def test_a_label_with_few_rows_is_named_and_weights_are_offered(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = labelled(call, ["ham"] * 90 + ["spam"] * 30 + ["spma"])
    assert (
        "label 'spma' has 1 row: a typo of 'spam'? A label of 1 row is left out (min_count: 2 under label).\n"
        in told
    )
    written = Path("a.yaml").read_text()
    assert (
        "smoothing: 0.0} # some labels are rare: class_weights: balanced finds more of them, at the cost of accuracy\n"
    ) in written
    assert "label: {column: label, min_count: 2}" in written
    assert read_recipe("a.yaml").loss.class_weights is None
    assert read_recipe("a.yaml", ["loss.class_weights=balanced"]).loss.class_weights == "balanced"
    told = labelled(call, ["ham"] * 60 + ["spam"] * 50 + ["news", "news"])
    assert "label 'news' has 2 rows: a typo, or too few to learn it from?\n" in told
    assert not {"min_count", "class_weights"} & set(re.findall(r"\w+", Path("a.yaml").read_text()))
    told = labelled(
        call,
        [
            *["ham"] * 90,
            *["spam"] * 90,
            *["maps"] * 90,
            *["harm"] * 80,
            "one",
            "two",
            "three",
            "four",
        ],
    )
    assert told.count(" has 1 row: ") == 3
    assert "; and 1 more." in told
    assert "?;" not in told
    two = labelled(call, ["ham"] * 90 + ["spam"] * 30 + ["news", "weather"])
    why = "has 1 row: a typo, or too few to learn it from"
    assert f"label 'news' {why}; label 'weather' {why}? A label of 1 row" in two
    assert " has " not in labelled(call, [f"kind {n // 2}" for n in range(200)])


def test_labels_that_differ_only_in_case_or_blanks(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = labelled(call, ["ham"] * 20 + ["spam "] * 12 + ["Spam"] * 9)
    assert (
        "labels differ only in case, and are different classes: 'spam' (12 rows) and 'Spam' (9 rows). "
        "Write `lowercase: true` under label to make them one.\n"
        "blanks around a label do not count: 'spam ' is read as 'spam'.\n"
    ) in told


def test_images_that_are_not_square(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = pytest.importorskip("PIL.Image")
    monkeypatch.chdir(tmp_path)
    for n in range(4):
        image.new("RGB", (320, 200)).save(f"{n}.png")
    Path("a.csv").write_text(
        "photo,caption\n" + "".join(f"{n}.png,a cat {n} sits\n" for n in range(4))
    )
    said = call("new", "a.yaml", "--task", "image_captioning", "--data", "a.csv")
    assert (
        "images such as 0.png are 320 x 200; their middle square, 62% of them, is all that the network gets. "
        "Write `fit: pad` under image to keep the whole.\n"
    ) in said.err
