"""`sixjars predict --input FILE` with columns: what is read, what is written, and what is refused."""

import csv
import gzip
import json
import math
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sixjars
from sixjars.cli import streaming
from sixjars.data.tables import table_file
from sixjars.errors import DataError
from sixjars.recipe.data import TableSettings

from .conftest import Server

WORDS = ["namaste", "ghar", "kamal"]
ROWS = [
    {"id": at, "roman": word, "note": f'a, "{word}"\nand more'} for at, word in enumerate(WORDS)
]


@pytest.fixture
def answers(run: Path) -> list[str]:
    return [found.text for found in sixjars.load(run).predict(WORDS)]


def written(path: Path) -> Path:
    """The rows as a file of the kind that its name ends in."""
    name = path.name.lower()
    whole = {
        "csv": lambda: _delimited(","),
        "tsv": lambda: "id\troman\n" + "".join(f"{row['id']}\t{row['roman']}\n" for row in ROWS),
        "jsonl": lambda: "".join(json.dumps(row) + "\n" for row in ROWS),
        "json": lambda: json.dumps(ROWS, indent=1),
    }
    if name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
        return path
    text = whole[name.removesuffix(".gz").rpartition(".")[2]]()
    path.write_bytes(
        gzip.compress(text.encode()) if name.endswith(".gz") else b"\xef\xbb\xbf" + text.encode()
    )
    return path


def _delimited(mark: str) -> str:
    rows = [
        [str(row["id"]), str(row["roman"]), str(row["note"]).replace('"', '""')] for row in ROWS
    ]
    return f"id{mark}roman{mark}note\n" + "".join(
        f'{mark.join(row[:2])}{mark}"{row[2]}"\n' for row in rows
    )


def read(path: Path) -> list[dict[str, Any]]:
    name = path.name.lower()
    if name.endswith(".parquet"):
        return list(pyarrow.parquet.read_table(path).to_pylist())
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode("utf-8-sig")
    if ".csv" in name or ".tsv" in name:
        mark = "\t" if ".tsv" in name else ","
        return [
            {**row, "id": int(row["id"])}
            for row in csv.DictReader(text.splitlines(keepends=True), delimiter=mark)
        ]
    return (
        list(json.loads(text))
        if name.endswith(".json")
        else [json.loads(line) for line in text.splitlines()]
    )


@pytest.mark.parametrize(
    "name",
    [
        "in.csv",
        "in.TSV",
        "in.JSONL",
        "in.json",
        "in.parquet",
        "in.csv.gz",
        "in.tsv.GZ",
        "in.jsonl.gz",
    ],
)
def test_columns_are_read_and_the_answer_is_added(
    name: str, call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    path, out = written(tmp_path / name), tmp_path / name.lower().replace("in.", "out.")
    said = call("predict", run, "--input", path)
    assert (said.code, said.err, said.out.splitlines()) == (0, "", answers)
    said = call("predict", run, "--input", path, "--output", out)
    assert (said.code, said.err, said.out) == (0, "", "")
    kept = [
        {key: value for key, value in row.items() if key != "note" or "tsv" not in name.lower()}
        for row in ROWS
    ]
    assert read(out) == [
        {**row, "target": answer} for row, answer in zip(kept, answers, strict=True)
    ]


def test_other_delimiters_and_fields_by_their_own_names(
    call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id;source\n" + "".join(f"{at};{word}\n" for at, word in enumerate(WORDS)))
    assert call("predict", run, "--input", path, "--output", out).code == 0
    assert out.read_text() == "id;source;target\n" + "".join(
        f"{at};{WORDS[at]};{answers[at]}\n" for at in range(3)
    )


def test_a_column_that_is_taken_is_not_written_over(
    call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("roman,target\nnamaste,x\n")
    said = call("predict", run, "--input", path, "--output", out)
    assert (
        said.err
        == f"note: {path} has a column 'target' already; the new columns begin with 'predicted_'.\n"
    )
    assert out.read_text() == f"roman,target,predicted_target\nnamaste,x,{answers[0]}\n"


def test_empty_cells_and_bad_rows_have_blank_answers(
    call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,roman\n0,namaste\n1,\n\n2\n4,ghar\n")
    said = call("predict", run, "--input", path, "--output", out, "--nbest", 2)
    assert said.code == 0
    assert said.err == (
        "note: 3 of 5 inputs were skipped, and their answers are empty: the source is empty "
        "(input 2, input 3 and 1 more).\n"
    )
    strict = call(
        "predict",
        run,
        "--input",
        path,
        "--output",
        tmp_path / "strict.csv",
        "--nbest",
        2,
        "--strict",
    )
    assert (strict.code, strict.err) == (1, said.err)
    assert (tmp_path / "strict.csv").read_bytes() == out.read_bytes()
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["id", "roman", "target", "target_2"]
    assert [bool(row[2]) for row in rows[1:]] == [True, False, False, False, True]
    lines = call("predict", run, "--input", path, "--nbest", 2).out.split("\n")
    assert [bool(line) for line in lines] == [True, True, *[False] * 6, True, True, False]
    found = [
        json.loads(line)
        for line in call("predict", run, "--input", path, "--nbest", 2, "--json").out.splitlines()
    ]
    errors = [
        None,
        None,
        *(f"input {number}: the source is empty." for number in (2, 3, 4)),
        None,
        None,
    ]
    assert [one.get("error") for one in found] == errors
    path = tmp_path / "in.jsonl"
    path.write_text('{"roman": "namaste"}\n\n[1\n7\n{"roman": null}\n{"other": "x"}\n')
    said = call("predict", run, "--input", path, "--output", tmp_path / "out.jsonl")
    assert [row["target"] for row in read(tmp_path / "out.jsonl")] == [answers[0], *[""] * 5]
    assert said.err == (
        "note: 5 of 6 inputs were skipped, and their answers are empty: the source is empty (input 2, input 5 and 1 "
        "more); is not JSON: Expecting ',' delimiter at column 3; each line is one object (input 3); is JSON, but not "
        'an object; each line is one object, like {"text": "..."} (input 4).\n'
    )


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.json", "in.parquet"])
def test_columns_that_are_not_there(name: str, call: Any, run: Path, tmp_path: Path) -> None:
    path = tmp_path / name
    rows = [{"id": "1", "text": "x"}]
    if name == "in.parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text(
            {"in.csv": "id,text\n1,x\n", "in.json": json.dumps(rows)}.get(name, json.dumps(rows[0]))
        )
    sentence = call("predict", run, "--input", path).sentence
    assert sentence == f"{path} has no column 'roman', which this run reads; it has 'id', 'text'."


def test_what_is_refused(call: Any, run: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "in.csv")
    assert call("predict", run, "--input", path, "--output", tmp_path / "out.jsonl").sentence == (
        f"--output {tmp_path / 'out.jsonl'} should end in .csv, as {path} does, for it gets the same columns and the "
        "answers; or in .txt, for one answer a line."
    )
    for text, message in (
        ("id,roman\n", f"{path} has no rows."),
        (
            'roman\n"a"b\n',
            f"{path}, line 2: is not CSV: ',' expected after '\"'; double each quotation mark inside a quoted field.",
        ),
    ):
        path.write_text(text)
        assert call("predict", run, "--input", path).sentence == message
    path = tmp_path / "in.json"
    path.write_text('[{"roman": "a"}, {"roman": ')
    said = call("predict", run, "--input", path)
    assert said.err == f"sixjars: {path}, line 1: is not JSON: Expecting value at column 28.\n"
    path = tmp_path / "in.parquet"
    path.write_text("no")
    assert call("predict", run, "--input", path).sentence.startswith(
        f"{path} is not a Parquet file or is damaged: "
    )


@pytest.fixture(scope="module")
def moods(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose label is in a column of another name."""
    data: dict[str, Any] = {"source": {"column": "text"}, "label": {"column": "mood"}}
    data["train"] = [{"text": f"word{n} here", "mood": ["good", "bad"][n % 2]} for n in range(60)]
    model = {
        "encoder": {"kind": "text", "size": 4},
        "decoder": {"kind": "label"},
        "bridge": {"kind": "pooling"},
    }
    rows = data.pop("train")
    made = {
        "task": "document_classification",
        "data": data,
        "model": model,
        "learning": {"steps": 1},
    }
    return sixjars.train(
        made, data=rows, out=tmp_path_factory.mktemp("moods") / "run", device="cpu"
    ).folder


@pytest.mark.parametrize("name", ["in.csv", "in.jsonl", "in.json", "in.parquet"])
def test_an_answer_has_the_name_of_the_column_and_a_probability_is_a_number(
    name: str, call: Any, moods: Path, tmp_path: Path
) -> None:
    rows = [{"id": 1, "text": "word1"}, {"id": 2, "text": ""}]
    path, out = tmp_path / name, tmp_path / f"out{Path(name).suffix}"
    if name == "in.parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        lines = [json.dumps(row) for row in rows]
        texts = {"in.csv": "id,text\n1,word1\n2,\n", "in.jsonl": "\n".join(lines)}
        texts["in.json"] = f'{{"rows": [{", ".join(lines)}]}}'
        path.write_text(texts[name])
    assert call("predict", moods, "--input", path, "--output", out).code == 0
    good, bad = read(out)
    assert list(good) == ["id", "text", "mood", "probability"]
    assert good["mood"] in ("good", "bad")
    if name == "in.csv":
        assert (float(good["probability"]) > 0.4, bad["probability"]) == (True, "")
    else:
        assert isinstance(good["probability"], float)
        assert bad["probability"] is None
    assert bad["mood"] == ""


def test_a_file_is_not_written_over(call: Any, moods: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("text,mood\nword1 here,good\n")
    out.touch()  # nothing is lost in an empty one
    assert call("predict", moods, "--input", path, "--output", out).code == 0
    before, refused = out.read_text(), f"--output {out} exists already; choose another name."
    assert call("predict", moods, "--input", path, "--output", out).sentence == refused
    assert call("evaluate", moods, "--data", path, "--output", out).sentence == refused
    assert out.read_text() == before
    assert call("predict", moods, "word1", "--output", "/dev/null").code == 0


def test_columns_by_number_have_no_header(tmp_path: Path) -> None:
    path = tmp_path / "in.tsv"
    path.write_text("a\tb\nc\td\n")
    file = table_file(path, {"source": 2})
    assert file is not None
    assert [row.values for row in file.rows()] == [{"source": "b"}, {"source": "d"}]
    few = table_file(path, {"source": 3})
    assert few is not None
    with pytest.raises(DataError) as caught:
        next(few.rows())
    assert str(caught.value) == f"{path} has no column 3, which this run reads; it has 2."
    assert table_file(tmp_path / "in.txt", {"source": 1}) is None


def test_a_long_list_is_read_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.data.text.files.FIRST", 7)
    monkeypatch.setattr("sixjars.data.text.files.BLOCK", 7)
    rows = [{"text": f'[{at}], "é{{"', "deep": [[at]]} for at in range(50)]
    (tmp_path / "in.json").write_text(json.dumps(rows, ensure_ascii=False, indent=2))
    file = table_file(tmp_path / "in.json", {"source": "text"})
    assert file is not None
    assert [row.values for row in file.rows()] == [{"source": row["text"]} for row in rows]


def test_objects_on_the_command_line(call: Any, run: Path, answers: list[str]) -> None:
    said = call("predict", run, '{"roman": "namaste", "id": 3}', '{"source": "ghar"}')
    assert said.out.splitlines() == answers[:2]
    other = call("predict", run, '{"colour": "red"}')  # no column of the run: a text like any other
    assert other.code == 0
    assert other.err.endswith(
        " % of the input tokens are unknown to the run (<unk>); outputs may be poor.\n"
    )


def test_notes_are_not_a_flood(call: Any, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("ghar\n" + "\n" * 50)
    said = call("predict", run, "--input", tmp_path / "in.txt")
    assert len(said.out.splitlines()) == 51
    assert said.err == (
        "note: 50 of 51 inputs were skipped, and their answers are empty: the source is empty "
        "(input 2, input 3 and 48 more).\n"
    )


@pytest.mark.parametrize("cut", [3, 4, 30])
def test_inputs_that_are_cut_are_told_three_times(
    cut: int, call: Any, run: Path, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("ghar\n" + f"{'ghar' * 300}\n" * cut)
    said = call("predict", run, "--input", tmp_path / "in.txt")
    assert len(said.out.splitlines()) == cut + 1
    singles = [
        f"note: input {n} was cut, because it is longer than the run reads (max_length)."
        for n in (2, 3, 4)
    ]
    rest = [
        "note: further notes about single inputs are left out.",
        f"note: {cut} of {cut + 1} inputs were cut.",
    ]
    assert said.err.splitlines() == singles + (rest if cut > 3 else [])


def test_an_input_of_which_nothing_can_be_used(call: Any, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    for content, told in (
        ("\n", "1 of 1 input was skipped, and its answer is empty: the source is empty (input 1)."),
        (
            " \n\n",
            "all 2 inputs were skipped, and their answers are empty: the source is empty (input 1 and input 2).",
        ),
    ):
        path.write_text(content)
        for how in ([], ["--json"]):
            out = tmp_path / f"out-{len(content)}-{len(how)}.txt"
            said = call("predict", run, "--input", path, "--output", out, *how)
            assert (said.code, said.err) == (1, f"note: {told}\n")
            assert len(out.read_text().splitlines()) == content.count("\n")


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


def test_a_kill_leaves_whole_rows(server: Server, run: Path, tmp_path: Path) -> None:
    """SIGKILL in the middle of a large file: what was answered is there, in order, each row with its answer."""
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("id,roman\n" + "".join(f"{at},{WORDS[at % 3]}\n" for at in range(200_000)))
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
    assert [row[:2] for row in rows[1:]] == [
        [str(at), WORDS[at % 3]] for at in range(len(rows) - 1)
    ]
    assert {tuple(row[1:]) for row in rows[1:]} == set(
        zip(WORDS, (row[2] for row in rows[1:4]), strict=True)
    )


def test_what_is_done_is_there_when_it_is_killed(
    call: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: list[str]
) -> None:
    """A failure in the third portion leaves the rows of the first two, and a list that is closed."""
    monkeypatch.setattr(streaming, "AT_ONCE", 2)
    path, out = tmp_path / "in.json", tmp_path / "out.json"
    path.write_text("[" + ",".join(['{"roman": "namaste"}'] * 4) + ', {"roman')
    assert call("predict", run, "--input", path, "--output", out).code == 2
    assert json.loads(out.read_text()) == [{"roman": "namaste", "target": answers[0]}] * 4


def test_unknown_tokens_are_told_whatever_is_written(call: Any, run: Path, tmp_path: Path) -> None:
    """Also where nobody asked for tokens and weights; all tokens of all inputs count."""
    told = "note: 45.5 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    (tmp_path / "words.csv").write_text("roman\nna我我\nghar\n我我我\n", encoding="utf-8")
    plain = call("predict", run, "--input", tmp_path / "words.csv")
    table = call(
        "predict", run, "--input", tmp_path / "words.csv", "--output", tmp_path / "out.csv"
    )
    as_json = call("predict", run, "--input", tmp_path / "words.csv", "--json")
    assert [plain.err.strip(), table.err.strip(), as_json.err.strip()] == [told] * 3
    assert call("predict", run, "ghar").err == ""


def test_where_all_is_unknown_other_columns_are_suggested(
    call: Any, run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "words.csv"
    path.write_text("id,roman,deva\n1,我我,ghar\n2,我,kamal\n", encoding="utf-8")
    said = call("predict", run, "--input", path)
    assert said.err.splitlines() == [
        "note: 100 % of the input tokens are unknown to the run (<unk>); outputs may be poor.",
        f"note: read was 'roman' of {path}, which also has 'id', 'deva': if one is meant, call it 'source' there.",
    ]
    path.write_text("roman\n我我\n", encoding="utf-8")
    assert "read was" not in call("predict", run, "--input", path).err


def test_columns_by_number_are_told_with_their_first_cell(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("слово,translit\nдом,dom\n", encoding="utf-8")
    table = table_file(path, {"source": 2})
    assert table is not None
    assert list(table.rows())
    assert table.other_columns() == (
        f"read was column 2 ('translit') of {path}, which also has column 1 ('слово'): if one is "
        "meant, move it to column 2."
    )


def test_a_row_that_is_longer_than_the_header_keeps_the_answer_in_its_column(
    call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text(f"id,roman\n1,{WORDS[0]},,\n2\n3,{WORDS[1]}\n")
    assert (
        "more values" not in call("predict", run, "--input", path, "--output", out).err
    )  # those are empty
    first, _, third = csv.DictReader(out.read_text().splitlines())
    assert [first, third] == [
        {"id": "1", "roman": WORDS[0], "target": answers[0]},
        {"id": "3", "roman": WORDS[1], "target": answers[1]},
    ]


def test_texts_that_a_delimiter_cuts_are_told(call: Any, run: Path, tmp_path: Path) -> None:
    """In training too; without a word, the answer would be that of the first part of the text."""
    path = tmp_path / "in.csv"
    path.write_text("roman,id\nghar, namaste,1\nghar,2\n" + "ghar, kamal,3\n" * 6)
    told = (
        f"note: {path}: 7 of 8 rows have more values than the header, which has 2 names (input 1, 3, 4, 5, 6, ...), so "
        "values may be in the wrong columns, and those beyond are left out: a delimiter inside a text ends it. "
        'Enclose such texts in quotation marks (").'
    )
    parts = ("--output", tmp_path / "parts", "--part-rows", 5)
    for command, *more in (["predict"], ["predict", *parts], ["inspect"]):
        assert told in call(command, run, "--input", path, *more).err.splitlines()
    path.write_text("roman,id\nghar, namaste,1\nghar,2\n")
    assert "1 of 2 rows has more values" in call("predict", run, "--input", path).err
    path.write_text('roman,id\n"ghar, namaste",1\n')
    assert "more values" not in call("predict", run, "--input", path).err


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_the_mark_of_excel_is_kept(ending: str, call: Any, run: Path, tmp_path: Path) -> None:
    """Without it, Excel shows umlauts as two letters each."""
    path, out = tmp_path / f"in.{ending}", tmp_path / f"out.{ending}"
    for mark in (b"\xef\xbb\xbf", b""):
        out.unlink(missing_ok=True)
        path.write_bytes(mark + f"roman\n{WORDS[0]}\n".encode())
        assert call("predict", run, "--input", path, "--output", out).code == 0
        assert out.read_bytes().partition(b"roman")[0] == mark


def test_what_was_saved_by_an_old_excel_can_be_opened_by_it(
    call: Any, run: Path, tmp_path: Path
) -> None:
    """Windows-1252 comes back in UTF-8, with the mark by which Excel knows it."""
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_bytes("name,roman\nZoë,ghar\nJürgen,ghar\n".encode("cp1252"))
    said = call("predict", run, "--input", path, "--output", out)
    told = f"note: {path} is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it as UTF-8.\n"
    assert (said.code, said.err) == (0, told)
    assert out.read_bytes().startswith(b"\xef\xbb\xbf")
    assert "Zoë" in out.read_text(encoding="utf-8-sig")


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_lines_in_other_encodings_are_read_as_in_training(
    encoding: str, call: Any, run: Path, tmp_path: Path
) -> None:
    """Windows-1252 with a note; also where the answers go to a folder."""
    right, other = tmp_path / "right.txt", tmp_path / "other.txt"
    right.write_text("ghar\nJürgen\n", encoding="utf-8")
    other.write_text("ghar\nJürgen\n", encoding=encoding)
    told = [
        f"note: {other} is not UTF-8, so it is read as Windows-1252; if letters look wrong, save it as UTF-8."
    ]
    whole, said = call("predict", run, "--input", right), call("predict", run, "--input", other)
    assert (said.code, said.out) == (0, whole.out)
    assert [line for line in said.err.splitlines() if "UTF-8" in line] == (
        told if encoding == "cp1252" else []
    )
    said = call("predict", run, "--input", other, "--output", tmp_path / "out", "--part-rows", 5)
    assert (tmp_path / "out/other.txt").read_text() == whole.out
    assert [line for line in said.err.splitlines() if "UTF-8" in line] == (
        told if encoding == "cp1252" else []
    )


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
    path = tmp_path / "in.tsv"
    path.write_text(text, encoding="utf-8")
    table = table_file(path, {"source": "Body"}, TableSettings(quotes=quotes))
    assert table is not None
    assert [row.values for row in table.rows()] == [{"source": body} for body in bodies]


def test_a_quoted_tsv_stays_one(call: Any, run: Path, tmp_path: Path, answers: list[str]) -> None:
    path, out = tmp_path / "in.tsv", tmp_path / "out.tsv"
    path.write_text(f'note\troman\n"a\n""b"""\t{WORDS[0]}\nc\t{WORDS[1]}\n')
    assert call("predict", run, "--input", path, "--output", out).code == 0
    assert list(csv.reader(out.read_text().splitlines(keepends=True), delimiter="\t")) == [
        ["note", "roman", "target"],
        ['a\n"b"', WORDS[0], answers[0]],
        ["c", WORDS[1], answers[1]],
    ]


LINES = "Body\nI forgot it, help\nOne, two, three\n"


@pytest.mark.parametrize("delimiter", [";", None])
def test_a_line_of_one_column_is_one_text(delimiter: Any, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text(LINES)
    table = table_file(path, {"source": "Body"}, TableSettings(delimiter=delimiter))
    assert table is not None
    assert [row.values for row in table.rows()] == [
        {"source": "I forgot it, help"},
        {"source": "One, two, three"},
    ]
    assert table.cut == 0
    says = f"{path}: 2 of 2 rows have more values than the header, which has 1 name (input 1, 2)"
    assert [note.partition(":  ")[0][: len(says)] for note in table.notes()] == (
        [] if delimiter else [says]
    )


def test_the_delimiter_of_the_run_goes_before_others(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("I forgot it, help\nOne, two\n")
    table = table_file(path, {"source": 1}, TableSettings(delimiter=";"))
    assert table is not None
    assert [row.values for row in table.rows()] == [
        {"source": "I forgot it, help"},
        {"source": "One, two"},
    ]


def test_strict_ends_with_1_where_a_delimiter_cut_texts(
    call: Any, run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("id,roman\n1,ghar, namaste\n")
    assert call("predict", run, "--input", path).code == 0
    assert call("predict", run, "--input", path, "--strict").code == 1
    path.write_text("roman\nghar, namaste\n")
    assert call("predict", run, "--input", path, "--strict").code == 0


def test_labels_that_a_run_has_not_learned_are_told(call: Any, moods: Path, tmp_path: Path) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text,mood\nword1,good\nword2,BAD\nword3,BAD\nword4,sad\nword5,bad\n")
    told = "3 of 5 rows have labels that the run has not learned, such as 'BAD' (it knows 'bad'), 'sad'"
    assert f"note: {told}: they count as wrong.\n" in call("evaluate", moods, "--data", path).err
    path.write_text("text,mood\nword1,good\n")
    assert "not learned" not in call("evaluate", moods, "--data", path).err


def test_a_column_that_is_there_twice_is_refused_where_it_is_read(
    call: Any, run: Path, tmp_path: Path
) -> None:
    path = tmp_path / "in.csv"
    path.write_text("roman,id,roman\nghar,1,namaste\n")
    told = f"{path}: column 'roman' is in the header twice; rename one."
    assert call("predict", run, "--input", path).sentence == told
    path.write_text("id,roman,id\n1,ghar,2\n")
    assert call("predict", run, "--input", path).code == 0


def test_bad_rows_of_a_file_that_is_scored_are_named(
    call: Any, moods: Path, tmp_path: Path
) -> None:
    path = tmp_path / "new.csv"
    path.write_text("text,mood\nword1,good\n,bad\nword3\nword5,bad\n")
    skip = tmp_path / "run"
    shutil.copytree(moods, skip)
    recipe = skip / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("on_bad_row: error", "on_bad_row: skip"))
    said = call("evaluate", skip, "--data", path)
    assert (
        f"note: {path}: 2 bad rows were skipped. Line 3: column 'text' is empty. Line 4:"
        in said.err
    )


def test_a_few_unknown_tokens_are_not_worth_a_note(call: Any, run: Path, tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("roman\nnamaste\n我\n" + "namaste\n" * 20, encoding="utf-8")
    assert call("predict", run, "--input", path).err == ""
    path.write_text("roman\nnamaste\n我\n", encoding="utf-8")
    assert "12.5 % of the input tokens are unknown" in call("predict", run, "--input", path).err


@pytest.mark.parametrize("name", ["in.csv", "in.tsv"])
def test_the_line_ends_of_windows_are_kept(
    name: str, call: Any, run: Path, tmp_path: Path, answers: list[str]
) -> None:
    mark = "\t" if name == "in.tsv" else ","
    path, out = tmp_path / name, tmp_path / f"out{name}"
    path.write_bytes(f"id{mark}roman\r\n1{mark}{WORDS[0]}\r\n".encode())
    assert call("predict", run, "--input", path, "--output", out).code == 0
    assert out.read_bytes().decode() == (
        f"id{mark}roman{mark}target\r\n1{mark}{WORDS[0]}{mark}{answers[0]}\r\n"
    )
