"""`sixjars predict --input FILE` with columns: what is read, what is written, and what is refused."""

import csv
import json
import math
import shutil
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sixjars
from sixjars.cli import streaming
from sixjars.data.tables import table_file
from sixjars.data.tables.table_file import TableFile
from sixjars.errors import DataError
from sixjars.recipe.data import TableSettings
from tests.unit.predicting import WORDS, Predicting, read

from .conftest import Server

NOT_UTF8 = "is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it as UTF-8."


@pytest.fixture
def predict(call: Any, run: Path, tmp_path: Path) -> Predicting:
    return Predicting(call, run, tmp_path)


@pytest.fixture(scope="module")
def answers(run: Path) -> list[str]:
    return [prediction.text for prediction in sixjars.load(run).predict(WORDS)]


def table_of(
    path: Path, text: str, columns: Mapping[str, Any], settings: TableSettings | None = None
) -> TableFile:
    path.write_text(text, encoding="utf-8")
    table = table_file(path, columns, settings or TableSettings())
    assert table is not None
    return table


@pytest.mark.parametrize(
    "name", "in.csv in.TSV in.JSONL in.json in.parquet in.csv.gz in.tsv.GZ in.jsonl.gz".split()
)
def test_columns_are_read_and_the_answer_is_added(
    name: str, predict: Predicting, answers: list[str]
) -> None:
    before = read(predict.words(name))
    said = predict()
    assert (said.code, said.err, said.out.splitlines()) == (0, "", answers)
    said = predict(out=name.lower().replace("in.", "out."))
    assert (said.code, said.err, said.out) == (0, "", "")
    added = [row | {"target": answer} for row, answer in zip(before, answers, strict=True)]
    assert read(predict.out) == added


def test_other_delimiters_and_fields_by_their_own_names(
    predict: Predicting, answers: list[str]
) -> None:
    rows = [f"{at};{word}" for at, word in enumerate(WORDS)]
    predict.write("in.csv", "\n".join(["id;source", *rows, ""]))
    assert predict(out="out.csv").code == 0
    added = [f"{row};{answer}" for row, answer in zip(rows, answers, strict=True)]
    assert predict.out.read_text() == "\n".join(["id;source;target", *added, ""])


def test_a_column_that_is_taken_is_not_written_over(
    predict: Predicting, answers: list[str]
) -> None:
    path = predict.write("in.csv", "roman,target\nnamaste,x\n")
    taken = f"{path} has a column 'target' already; the new columns begin with 'predicted_'."
    assert predict(out="out.csv").err == f"note: {taken}\n"
    assert predict.out.read_text() == f"roman,target,predicted_target\nnamaste,x,{answers[0]}\n"


def test_empty_cells_and_bad_rows_have_blank_answers(
    predict: Predicting, answers: list[str]
) -> None:
    predict.write("in.csv", "id,roman\n0,namaste\n1,\n\n2\n4,ghar\n")
    said = predict("--nbest", 2, out="out.csv")
    assert said.code == 0
    assert said.err == (
        "note: 3 of 5 inputs were skipped, and their answers are empty: the source is empty "
        "(input 2, input 3 and 1 more).\n"
    )
    content = predict.out.read_bytes()
    strict = predict("--nbest", 2, "--strict", out="strict.csv")
    assert (strict.code, strict.err) == (1, said.err)
    assert predict.out.read_bytes() == content
    rows = list(csv.reader(content.decode().splitlines()))
    assert rows[0] == ["id", "roman", "target", "target_2"]
    assert [bool(row[2]) for row in rows[1:]] == [True, False, False, False, True]
    lines = predict("--nbest", 2).out.split("\n")
    assert [bool(line) for line in lines] == [True, True, *[False] * 6, True, True, False]
    found = [json.loads(line) for line in predict("--nbest", 2, "--json").out.splitlines()]
    empty = [f"input {number}: the source is empty." for number in (2, 3, 4)]
    assert [one.get("error") for one in found] == [None, None, *empty, None, None]
    predict.write("in.jsonl", '{"roman": "namaste"}\n\n[1\n7\n{"roman": null}\n{"other": "x"}\n')
    said = predict(out="out.jsonl")
    assert [row["target"] for row in read(predict.out)] == [answers[0], *[""] * 5]
    assert said.err == (
        "note: 5 of 6 inputs were skipped, and their answers are empty: the source is empty (input 2, input 5 and 1 "
        "more); is not JSON: Expecting ',' delimiter at column 3; each line is one object (input 3); is JSON, but not "
        'an object; each line is one object, like {"text": "..."} (input 4).\n'
    )


def file_of(predict: Predicting, name: str, rows: list[dict[str, Any]]) -> Path:
    """Rows in a file of any kind."""
    if name.endswith(".parquet"):
        predict.path = predict.folder / name
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), predict.path)
        return predict.path
    lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    texts = {"in.csv": "".join(f"{line}\n" for line in lines), "in.json": json.dumps(rows)}
    return predict.write(name, texts.get(name, "\n".join(map(json.dumps, rows))))


KINDS = ["in.csv", "in.jsonl", "in.json", "in.parquet"]


@pytest.mark.parametrize("name", KINDS)
def test_columns_that_are_not_there(name: str, predict: Predicting) -> None:
    path = file_of(predict, name, [{"id": "1", "text": "x"}])
    lacks = "has no column 'roman', which this run reads; it has 'id', 'text'."
    assert predict().sentence == f"{path} {lacks}"


def test_what_is_refused(predict: Predicting) -> None:
    path = predict.words("in.csv")
    assert predict(out="out.jsonl").sentence == (
        f"--output {predict.out} should end in .csv, as {path} does, for it gets the same columns and the "
        "answers; or in .txt, for one answer a line."
    )
    predict.write("in.csv", "id,roman\n")
    assert predict().sentence == f"{path} has no rows."
    predict.write("in.csv", 'roman\n"a"b\n')
    doubled = "double each quotation mark inside a quoted field."
    assert predict().sentence == f"{path}, line 2: is not CSV: ',' expected after '\"'; {doubled}"
    path = predict.write("in.json", '[{"roman": "a"}, {"roman": ')
    fault = "is not JSON: Expecting value at column 28."
    assert predict().err == f"sixjars: {path}, line 1: {fault}\n"
    path = predict.write("in.parquet", "no")
    assert predict().sentence.startswith(f"{path} is not a Parquet file or is damaged: ")


@pytest.fixture(scope="module")
def moods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose label is in a column of another name."""
    rows = [{"text": f"word{n} here", "mood": ["good", "bad"][n % 2]} for n in range(60)]
    model = {"encoder": {"kind": "text", "size": 4}, "bridge": {"kind": "pooling"}}
    recipe = {
        "task": "document_classification",
        "data": {"source": {"column": "text"}, "label": {"column": "mood"}},
        "model": model | {"decoder": {"kind": "label"}},
        "learning": {"steps": 1},
    }
    folder = tmp_path_factory.mktemp("moods") / "run"
    return sixjars.train(recipe, data=rows, out=folder, device="cpu").folder


@pytest.fixture
def mood(call: Any, moods: Path, tmp_path: Path) -> Predicting:
    return Predicting(call, moods, tmp_path)


@pytest.mark.parametrize("name", KINDS)
def test_an_answer_has_the_name_of_the_column_and_a_probability_is_a_number(
    name: str, mood: Predicting
) -> None:
    rows: list[dict[str, Any]] = [{"id": 1, "text": "word1"}, {"id": 2, "text": ""}]
    file_of(mood, name, rows)
    if name == "in.json":
        mood.write(name, json.dumps({"rows": rows}))
    assert mood(out=f"out{Path(name).suffix}").code == 0
    good, bad = read(mood.out)
    assert list(good) == ["id", "text", "mood", "probability"]
    assert good["mood"] in ("good", "bad")
    if name == "in.csv":
        assert (float(good["probability"]) > 0.4, bad["probability"]) == (True, "")
    else:
        assert isinstance(good["probability"], float)
        assert bad["probability"] is None
    assert bad["mood"] == ""


def test_a_file_is_not_written_over(mood: Predicting) -> None:
    path = mood.write("in.csv", "text,mood\nword1 here,good\n")
    mood.out.touch()  # nothing is lost in an empty one
    assert mood(out="out.csv").code == 0
    before = mood.out.read_text()
    refused = f"--output {mood.out} exists already; choose another name."
    assert mood(out="out.csv").sentence == refused
    evaluate = ("evaluate", mood.run, "--data", path)
    assert mood.call(*evaluate, "--output", mood.out).sentence == refused
    assert mood.out.read_text() == before
    assert mood.call("predict", mood.run, "word1", "--output", "/dev/null").code == 0


def test_columns_by_number_have_no_header(tmp_path: Path) -> None:
    path, text = tmp_path / "in.tsv", "a\tb\nc\td\n"
    rows = table_of(path, text, {"source": 2}).rows()
    assert [row.values for row in rows] == [{"source": "b"}, {"source": "d"}]
    with pytest.raises(DataError) as caught:
        next(table_of(path, text, {"source": 3}).rows())
    assert str(caught.value) == f"{path} has no column 3, which this run reads; it has 2."
    assert table_file(tmp_path / "in.txt", {"source": 1}) is None


def test_a_long_list_is_read_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.data.text.files.FIRST", 7)
    monkeypatch.setattr("sixjars.data.text.files.BLOCK", 7)
    rows = [{"text": f'[{at}], "é{{"', "deep": [[at]]} for at in range(50)]
    text = json.dumps(rows, ensure_ascii=False, indent=2)
    table = table_of(tmp_path / "in.json", text, {"source": "text"})
    assert [row.values for row in table.rows()] == [{"source": row["text"]} for row in rows]


def test_objects_on_the_command_line(call: Any, run: Path, answers: list[str]) -> None:
    said = call("predict", run, '{"roman": "namaste", "id": 3}', '{"source": "ghar"}')
    assert said.out.splitlines() == answers[:2]
    other = call("predict", run, '{"colour": "red"}')  # no column of the run: a text like any other
    assert other.code == 0
    unknown = " % of the input tokens are unknown to the run (<unk>); outputs may be poor.\n"
    assert other.err.endswith(unknown)


def test_notes_are_not_a_flood(predict: Predicting) -> None:
    predict.write("in.txt", "ghar\n" + "\n" * 50)
    said = predict()
    assert len(said.out.splitlines()) == 51
    assert said.err == (
        "note: 50 of 51 inputs were skipped, and their answers are empty: the source is empty "
        "(input 2, input 3 and 48 more).\n"
    )


@pytest.mark.parametrize("cut", [3, 4, 30])
def test_inputs_that_are_cut_are_told_three_times(cut: int, predict: Predicting) -> None:
    predict.write("in.txt", "ghar\n" + f"{'ghar' * 300}\n" * cut)
    said = predict()
    assert len(said.out.splitlines()) == cut + 1
    longer = "was cut, because it is longer than the run reads (max_length)."
    further = "note: further notes about single inputs are left out."
    rest = [further, f"note: {cut} of {cut + 1} inputs were cut."]
    singles = [f"note: input {n} {longer}" for n in (2, 3, 4)]
    assert said.err.splitlines() == singles + (rest if cut > 3 else [])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("\n", "1 of 1 input was skipped, and its answer is empty: the source is empty (input 1)."),
        (
            " \n\n",
            "all 2 inputs were skipped, and their answers are empty: the source is empty (input 1 and input 2).",
        ),
    ],
)
@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_input_of_which_nothing_can_be_used(
    content: str, told: str, options: list[str], predict: Predicting
) -> None:
    predict.write("in.txt", content)
    said = predict(*options, out="out.txt")
    assert (said.code, said.err) == (1, f"note: {told}\n")
    assert len(predict.out.read_text().splitlines()) == content.count("\n")


def test_reasons_are_counted(call: Any, run: Path) -> None:
    content = b"ghar\n\nb\xff\n\n\nab\xfe\n"
    for how in ([], ["--json"], ["--nbest", "2"]):
        said = call("predict", run, *how, stdin=content)
        assert said.code == 0
        assert said.err == (
            "note: 5 of 6 inputs were skipped, and their answers are empty: the source is empty (input 2, input 4 and "
            "1 more); byte 2 of the source (0xff) is not UTF-8; give it in UTF-8 (input 3); byte 3 of the source "
            "(0xfe) is not UTF-8; give it in UTF-8 (input 6).\n"
        )
        assert call("predict", run, *how, "--strict", stdin=content).code == 1


def test_a_kill_leaves_whole_rows(
    server: Server, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    """SIGKILL in the middle of a large file: what was answered is there, in order, each row with its answer."""
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,roman\n" + "".join(f"{at},{WORDS[at % 7]}\n" for at in range(200_000)))
    process = server.start("predict", run, "--input", path, "--output", out)
    until = time.monotonic() + 60
    while (not out.exists() or out.stat().st_size < 10_000) and time.monotonic() < until:
        time.sleep(0.01)
    process.kill(signal.SIGKILL)
    assert process.wait().code == -signal.SIGKILL
    text = out.read_text()
    assert text.endswith("\n")
    rows = list(csv.reader(text.splitlines()))
    assert rows[0] == ["id", "roman", "target"]
    assert 100 < len(rows) < 200_000
    for at, row in enumerate(rows[1:]):
        assert row == [str(at), WORDS[at % 7], answers[at % 7]]


def test_what_is_done_is_there_when_it_is_killed(
    predict: Predicting, monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    """A failure in the third portion leaves the rows of the first two, and a list that is closed."""
    monkeypatch.setattr(streaming, "AT_ONCE", 2)
    predict.write("in.json", "[" + ",".join(['{"roman": "namaste"}'] * 4) + ', {"roman')
    assert predict(out="out.json").code == 2
    assert read(predict.out) == [{"roman": "namaste", "target": answers[0]}] * 4


def test_unknown_tokens_are_told_whatever_is_written(predict: Predicting) -> None:
    """Also where nobody asked for tokens and weights; all tokens of all inputs count."""
    told = "note: 45.5 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    predict.write("words.csv", "roman\nna我我\nghar\n 我我我\n")
    for said in (predict(), predict(out="out.csv"), predict("--json")):
        assert said.err.strip() == told
    assert predict.call("predict", predict.run, "ghar").err == ""


def test_where_all_is_unknown_other_columns_are_suggested(predict: Predicting) -> None:
    path = predict.write("words.csv", "id,roman,deva\n1,我我,ghar\n2,我,kamal\n")
    assert predict().err.splitlines() == [
        "note: 100 % of the input tokens are unknown to the run (<unk>); outputs may be poor.",
        f"note: read was 'roman' of {path}, which also has 'id', 'deva': if one is meant, call it 'source' there.",
    ]
    predict.write("words.csv", "roman\n我我\n")
    assert "read was" not in predict().err


def test_columns_by_number_are_told_with_their_first_cell(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    table = table_of(path, "слово,translit\nдом,dom\n", {"source": 2})
    assert list(table.rows())
    assert table.other_columns() == (
        f"read was column 2 ('translit') of {path}, which also has column 1 ('слово'): if one is "
        "meant, move it to column 2."
    )


def test_a_row_that_is_longer_than_the_header_keeps_the_answer_in_its_column(
    predict: Predicting, answers: list[str]
) -> None:
    predict.write("in.csv", f"id,roman\n1,{WORDS[0]},,\n2\n3,{WORDS[1]}\n")
    assert "more values" not in predict(out="out.csv").err  # those are empty
    first, _, third = read(predict.out)
    assert first == {"id": 1, "roman": WORDS[0], "target": answers[0]}
    assert third == {"id": 3, "roman": WORDS[1], "target": answers[1]}


def test_texts_that_a_delimiter_cuts_are_told(predict: Predicting) -> None:
    """In training too; without a word, the answer would be that of the first part of the text."""
    path = predict.write("in.csv", "roman,id\nghar, namaste,1\nghar,2\n" + "ghar, kamal,3\n" * 6)
    told = (
        f"note: {path}: 7 of 8 rows have more values than the header, which has 2 names (input 1, 3, 4, 5, 6, ...), so "
        "values may be in the wrong columns, and those beyond are left out: a delimiter inside a text ends it. "
        'Enclose such texts in quotation marks (").'
    )
    inspected = predict.call("inspect", predict.run, "--input", path)
    for said in (predict(), predict("--part-rows", 5, out="parts"), inspected):
        assert told in said.err.splitlines()
    predict.write("in.csv", "roman,id\nghar, namaste,1\nghar,2\n")
    assert "1 of 2 rows has more values" in predict().err
    predict.write("in.csv", 'roman,id\n"ghar, namaste",1\n')
    assert "more values" not in predict().err


@pytest.mark.parametrize("ending", ["csv", "tsv"])
@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
def test_the_mark_of_excel_is_kept(ending: str, mark: bytes, predict: Predicting) -> None:
    """Without it, Excel shows umlauts as two letters each."""
    predict.write(f"in.{ending}", mark + f"roman\n{WORDS[0]}\n".encode())
    assert predict(out=f"out.{ending}").code == 0
    assert predict.out.read_bytes().partition(b"roman")[0] == mark


def test_what_was_saved_by_an_old_excel_can_be_opened_by_it(predict: Predicting) -> None:
    """Windows-1252 comes back in UTF-8, with the mark by which Excel knows it."""
    path = predict.write("in.csv", "name,roman\nZoë,ghar\nJürgen,ghar\n".encode("cp1252"))
    said = predict(out="out.csv")
    assert (said.code, said.err) == (0, f"note: {path} {NOT_UTF8}\n")
    assert predict.out.read_bytes().startswith(b"\xef\xbb\xbf")
    assert "Zoë" in predict.out.read_text(encoding="utf-8-sig")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_lines_in_other_encodings_are_read_as_in_training(
    encoding: str, predict: Predicting
) -> None:
    """Windows-1252 with a note; also where the answers go to a folder."""
    predict.write("right.txt", "ghar\nJürgen\n")
    right = predict().out
    other = predict.write("other.txt", "ghar\nJürgen\n".encode(encoding))
    told = [f"note: {other} {NOT_UTF8}"] if encoding == "cp1252" else []
    said = predict()
    assert (said.code, said.out) == (0, right)
    in_parts = predict("--part-rows", 5, out="out")
    assert (predict.out / "other.txt").read_text() == right
    for each in (said, in_parts):
        assert [line for line in each.err.splitlines() if "UTF-8" in line] == told


def test_an_input_without_an_answer_has_no_probability(run: Path) -> None:
    wrong, right = sixjars.load(run).predict(["", "ghar"])
    assert wrong.error is not None
    assert math.isnan(wrong.probability)
    assert 0.0 <= right.probability <= 1.0


QUOTED = 'Body\tid\n"Hi,\nWhere is my ""parcel""?"\t1\nHello\t2\n'


@pytest.mark.parametrize(
    ("text", "quotes", "bodies"),
    [
        (QUOTED, True, ['Hi,\nWhere is my "parcel"?', "Hello"]),  # as the recipe says
        (QUOTED, None, ['Hi,\nWhere is my "parcel"?', "Hello"]),  # as `new` would
        (QUOTED, False, ['"Hi,', 'Where is my ""parcel""?"', "Hello"]),
        ('Body\tid\n"Hi" he said\t1\n"Hello\t2\n', None, ['"Hi" he said', '"Hello']),
    ],
)
def test_quotation_marks_between_tabs_are_read_as_in_training(
    text: str, quotes: bool | None, bodies: list[str], tmp_path: Path
) -> None:
    settings = TableSettings(quotes=quotes)
    table = table_of(tmp_path / "in.tsv", text, {"source": "Body"}, settings)
    assert [row.values for row in table.rows()] == [{"source": body} for body in bodies]


def test_a_quoted_tsv_stays_one(predict: Predicting, answers: list[str]) -> None:
    predict.write("in.tsv", f'note\troman\n"a\n""b"""\t{WORDS[0]}\nc\t{WORDS[1]}\n')
    assert predict(out="out.tsv").code == 0
    assert read(predict.out) == [
        {"note": 'a\n"b"', "roman": WORDS[0], "target": answers[0]},
        {"note": "c", "roman": WORDS[1], "target": answers[1]},
    ]


@pytest.mark.parametrize("delimiter", [";", None])
def test_a_line_of_one_column_is_one_text(delimiter: Any, tmp_path: Path) -> None:
    """The delimiter of the run goes before others."""
    path, lines = tmp_path / "in.csv", "Body\nI forgot it, help\nOne, two, three\n"
    table = table_of(path, lines, {"source": "Body"}, TableSettings(delimiter=delimiter))
    texts = ["I forgot it, help", "One, two, three"]
    assert [row.values for row in table.rows()] == [{"source": text} for text in texts]
    assert table.cut == 0
    says = f"{path}: 2 of 2 rows have more values than the header, which has 1 name (input 1, 2)"
    notes = [note.partition(":  ")[0][: len(says)] for note in table.notes()]
    assert notes == ([] if delimiter else [says])
    unnamed = table_of(path, "\n".join(texts), {"source": 1}, TableSettings(delimiter=";"))
    assert [row.values for row in unnamed.rows()] == [{"source": text} for text in texts]


def test_strict_ends_with_1_where_a_delimiter_cut_texts(predict: Predicting) -> None:
    predict.write("in.csv", "id,roman\n1,ghar, namaste\n")
    assert (predict().code, predict("--strict").code) == (0, 1)
    predict.write("in.csv", "roman\nghar, namaste\n")
    assert predict("--strict").code == 0


def test_labels_that_a_run_has_not_learned_are_told(mood: Predicting) -> None:
    path = mood.write(
        "new.csv", "text,mood\nword1,good\nword2,BAD\nword3,BAD\nword4,sad\nword5,bad\n"
    )
    told = "3 of 5 rows have labels that the run has not learned, such as 'BAD' (it knows 'bad'), 'sad'"
    evaluate = ("evaluate", mood.run, "--data", path)
    assert f"note: {told}: they count as wrong.\n" in mood.call(*evaluate).err
    mood.write("new.csv", "text,mood\nword1,good\n")
    assert "not learned" not in mood.call(*evaluate).err


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(predict: Predicting) -> None:
    path = predict.write("in.csv", "roman,id,roman\nghar,1,namaste\n")
    told = f"{path}: column 'roman' is in the header twice; rename one."
    assert predict().sentence == told
    predict.write("in.csv", "id,roman,id\n1,ghar,2\n")
    assert predict().code == 0


def test_bad_rows_of_a_file_that_is_scored_are_named(mood: Predicting) -> None:
    path = mood.write("new.csv", "text,mood\nword1,good\n,bad\nword3\nword5,bad\n")
    skip = Path(shutil.copytree(mood.run, mood.folder / "run"))
    recipe = skip / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("on_bad_row: error", "on_bad_row: skip"))
    told = "2 bad rows were skipped. Line 3: column 'text' is empty. Line 4:"
    assert f"note: {path}: {told}" in mood.call("evaluate", skip, "--data", path).err


def test_a_few_unknown_tokens_are_not_worth_a_note(predict: Predicting) -> None:
    predict.write("words.csv", "roman\nnamaste\n我\n" + "namaste\n" * 20)
    assert predict().err == ""
    predict.write("words.csv", "roman\nnamaste\n我\n")
    assert "12.5 % of the input tokens are unknown" in predict().err


@pytest.mark.parametrize(("ending", "mark"), [("csv", ","), ("tsv", "\t")])
def test_the_line_ends_of_windows_are_kept(
    ending: str, mark: str, predict: Predicting, answers: list[str]
) -> None:
    predict.write(f"in.{ending}", f"id{mark}roman\r\n1{mark}{WORDS[0]}\r\n")
    assert predict(out=f"out.{ending}").code == 0
    assert predict.out.read_bytes().decode() == (
        f"id{mark}roman{mark}target\r\n1{mark}{WORDS[0]}{mark}{answers[0]}\r\n"
    )
