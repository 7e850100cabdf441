"""`sixjars predict` in parts: together they are the whole, each is there once, and half-done work goes on."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

import sixjars
from sixjars.bulk import on_ray
from sixjars.bulk.job import BulkJob, job_of
from sixjars.bulk.on_ray import PartWorker, pool_size, predicted_on_ray
from sixjars.bulk.plan import BulkPlan, Shard, SourceFile, keep_plan
from sixjars.bulk.worker import RowReader, Worker, WorkerSettings
from sixjars.errors import DataError, MissingExtra
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.prediction import Prediction

from .conftest import Call

WORDS = ["namaste", "ghar", "kamal", "nadi", "phal", "rat", "din"]


def written(path: Path, words: list[str] = WORDS) -> Path:
    """The words as a file of the kind that its name ends in; some cells have a line break."""
    rows = [{"id": at, "roman": word} for at, word in enumerate(words)]
    kind = path.name.removesuffix(".gz").rpartition(".")[2]
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "parquet":
        schema = pyarrow.schema([("id", pyarrow.int64()), ("roman", pyarrow.string())])
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema), path)
        return path
    text = {
        "csv": "note,roman\n"
        + "".join(f'"{at}\n, {at}",{word}\n' for at, word in enumerate(words)),
        "tsv": "id\troman\n" + "".join(f"{at}\t{word}\n" for at, word in enumerate(words)),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows),
        "txt": "".join(f"{word}\n" for word in words),
    }[kind]
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def rows_of(path: Path) -> list[Any]:
    """What is in a file of answers, without the header."""
    if path.suffix == ".parquet":
        return list(pyarrow.parquet.read_table(path).to_pylist())
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text, kind = raw.decode(), path.name.removesuffix(".gz").rpartition(".")[2]
    if kind == "json":
        return list(json.loads(text))
    lines = text.split("\n")
    return lines[1 if kind in ("csv", "tsv") else 0 : -1]


def there(folder: Path) -> list[str]:
    """All files, hidden ones too, but for the plan."""
    files = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert "parts.json" in files
    return [name for name in files if name != "parts.json"]


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "jsonl", "json", "parquet", "txt", "csv.gz", "txt.gz"]
)
def test_the_parts_of_all_jobs_are_the_whole(
    ending: str, call: Call, run: Path, tmp_path: Path
) -> None:
    path, out = written(tmp_path / f"in.{ending}"), tmp_path / "out"
    plain = ending if ending != "txt.gz" else "txt"
    whole = tmp_path / f"whole.{plain}"
    assert call("predict", run, "--input", path, "--output", whole).code == 0
    for number in (2, 1):
        said = call(
            "predict",
            run,
            "--input",
            path,
            "--output",
            out,
            "--part-rows",
            3,
            "--shard",
            f"{number}/2",
        )
        count = {2: (3, 1), 1: (4, 2)}[number]
        assert (said.code, said.out) == (0, "")
        assert said.err == f"rows answered: {count[0]}; files written: {count[1]}; in {out}\n"
    names = [f"in-0000{number}-of-00003.{plain}" for number in (1, 2, 3)]
    assert there(out) == names
    assert [row for name in names for row in rows_of(out / name)] == rows_of(whole)


def test_samples_are_the_same_draws_in_parts(call: Call, run: Path, tmp_path: Path) -> None:
    path, out = written(tmp_path / "in.txt"), tmp_path / "out"
    how = ("--search", "sample", "--nbest", 2, "--json", "--input", path)
    whole = [json.loads(line) for line in call("predict", run, *how).out.splitlines()]
    assert call("predict", run, *how, "--output", out, "--part-rows", 2).code == 0
    names = there(out)
    assert names[0] == "in.txt-00001-of-00004.jsonl"
    found = [json.loads(line) for name in names for line in (out / name).read_text().splitlines()]
    assert [row["text"] for row in found] == [row["text"] for row in whole]
    assert len(found) == 2 * len(WORDS)


def test_a_folder_or_a_glob_of_files(call: Call, run: Path, tmp_path: Path) -> None:
    """Files have their own names again; what is empty, hidden, of another kind or written has no answers."""
    folder = tmp_path / "in"
    out = folder / "out"
    for name in ("a.tsv", "more/a.tsv", "b.txt", "c.parquet"):
        written(folder / name, WORDS[:2])
    written(folder / "none.parquet", [])
    for name, text in (
        ("empty.txt", ""),
        ("only.csv", "id,roman\n"),
        ("_SUCCESS.txt", "x"),
        (".b.txt", "x"),
        ("d", ""),
        ("more/e.pdf", "x"),
        ("empty.csv", ""),
        ("empty.json", ""),
    ):
        (folder / name).write_text(text)
    (folder / "empty.tsv.gz").write_bytes(gzip.compress(b""))
    left_out = [
        f"note: left out because of the ending: 2 files in {folder}",
        "note: left out because there are no rows: 6 files, "
        "empty.csv, empty.json, empty.tsv.gz, empty.txt, none.parquet, …",
    ]
    said = call("predict", run, "--input", folder, "--output", out)
    assert (said.code, said.err.splitlines()[:-1]) == (0, left_out)
    assert there(out) == ["a.tsv", "b.txt", "c.parquet", "more/a.tsv"]
    assert len(rows_of(out / "more/a.tsv")) == 2
    again = call("predict", run, "--input", folder, "--output", out, "--resume")
    assert again.err.splitlines() == [
        *left_out,
        "4 of 4 parts are there already",
        f"rows answered: 0; files written: 0; in {out}",
    ]
    assert (
        call("predict", run, "--input", f"{folder}/m*/**/a.*", "--output", tmp_path / "other").code
        == 0
    )
    assert there(tmp_path / "other") == ["a.tsv"]
    assert call(
        "predict", run, "--input", f"{folder}/*.xml", "--output", tmp_path / "o"
    ).sentence == (f"no file fits --input {folder}/*.xml.")
    assert call("predict", run, "--input", folder, "--output", folder).sentence == (
        f"--output {folder} is where the inputs are; choose another folder."
    )
    (tmp_path / "nothing").mkdir()
    assert call(
        "predict", run, "--input", tmp_path / "nothing", "--output", tmp_path / "o"
    ).sentence == (
        f"folder {tmp_path / 'nothing'} has no file to read: none ends in "
        ".csv, .tsv, .json, .jsonl, .parquet, .txt, .xlsx."
    )
    assert call(
        "predict", run, "--input", f"{folder}/[eo]*.*", "--output", tmp_path / "o"
    ).sentence == ("none of the 5 files has rows.")
    assert call(
        "predict", run, "--input", folder / "only.csv", "--output", tmp_path / "o", "--resume"
    ).sentence == (f"{folder / 'only.csv'} has no rows.")


@pytest.fixture
def stopped(
    run: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> tuple[Path, Path]:
    """Input and output of work in three parts that was stopped in its second, and one that a kill left there."""
    path, out = written(tmp_path / "in.tsv"), tmp_path / "out"
    take = RowReader.take

    def fail(self: RowReader, first: int, count: int) -> Any:
        if first > 2:
            raise KeyboardInterrupt
        return take(self, first, count)

    with monkeypatch.context() as patch:
        patch.setattr(RowReader, "take", fail)
        said = call("predict", run, "--input", path, "--output", out, "--part-rows", 3)
    assert (said.code, said.err) == (
        130,
        "sixjars: stopped; the same command with --resume goes on.\n",
    )
    assert there(out) == ["in-00001-of-00003.tsv"]
    (out / ".in-00002-of-00003.tsv.1234abcd.tsv").write_text("half a ro")
    return path, out


def test_half_done_work_goes_on(
    stopped: tuple[Path, Path], call: Call, run: Path, tmp_path: Path
) -> None:
    path, out = stopped
    first = (out / "in-00001-of-00003.tsv").stat()
    assert call("predict", run, "--input", path, "--output", out, "--part-rows", 3).sentence == (
        f"--output {out} holds 1 of its 3 parts already; go on with --resume, or choose another folder."
    )
    said = call("predict", run, "--input", path, "--output", out, "--resume")
    assert said.err.splitlines() == [
        "1 of 3 parts are there already",
        f"rows answered: 4; files written: 2; in {out}",
    ]
    assert (out / "in-00001-of-00003.tsv").stat() == first
    assert call("predict", run, "--input", path, "--output", tmp_path / "whole.tsv").code == 0
    assert [row for name in there(out) for row in rows_of(out / name)] == rows_of(
        tmp_path / "whole.tsv"
    )


def test_other_work_in_the_folder_is_refused(
    stopped: tuple[Path, Path], call: Call, run: Path
) -> None:
    path, out = stopped
    begun = ("predict", run, "--input", path, "--output", out, "--resume")
    other = (
        f"--output {out} holds other work: its parts.json has other {{}}. Choose another folder."
    )
    assert call(*begun, "--nbest", 2).sentence == other.format("search")
    assert call(*begun, "--precision", "bf16", "--json").sentence == other.format(
        "precision and json"
    )
    assert call(*begun, "--part-rows", 4).sentence == other.format("part_rows")
    kept = (out / "parts.json").read_text()
    (out / "parts.json").write_text(kept.replace('"weights": "', '"weights": "0'))
    assert call(*begun).sentence == other.format("weights")
    (out / "parts.json").write_text(kept)
    path.write_text(path.read_text() + "8\tmore\n")
    assert call(*begun).sentence == other.format("inputs")
    (out / "parts.json").write_text("{")
    assert (
        call(*begun).sentence
        == f"{out / 'parts.json'} is damaged; choose another folder for --output."
    )
    (out / "parts.json").unlink()
    assert call(*begun, "--part-rows", 3).sentence == (
        f"--output {out} holds in-00001-of-00003.tsv already, from elsewhere; choose another folder."
    )


def test_of_two_jobs_that_begin_at_once_one_plan_stays(tmp_path: Path) -> None:
    for rows in (3, 4):
        keep_plan(tmp_path, BulkPlan({}, rows, (SourceFile("a.txt", 9, 9, "a.txt"),)))
    assert json.loads((tmp_path / "parts.json").read_text())["part_rows"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["parts.json"]


def test_rows_that_cannot_be_used_are_blank(call: Call, run: Path, tmp_path: Path) -> None:
    path, out = written(tmp_path / "in.tsv", ["ghar", "", *WORDS[:2], ""]), tmp_path / "out"
    said = call("predict", run, "--input", path, "--output", out, "--part-rows", 2)
    assert said.code == 0
    assert said.err.splitlines() == [
        "note: 2 of 5 inputs were skipped, and their answers are empty: the source is empty (in.tsv, input 2 and "
        "in.tsv, input 5).",
        f"rows answered: 5; files written: 3; in {out}",
    ]
    strict = call(
        "predict",
        run,
        "--input",
        path,
        "--output",
        tmp_path / "strict",
        "--part-rows",
        2,
        "--strict",
    )
    assert (strict.code, strict.err.splitlines()[0]) == (1, said.err.splitlines()[0])
    assert [row.split("\t")[0] for name in there(out) for row in rows_of(out / name)] == [*"01234"]


def test_unknown_tokens_and_cut_inputs_are_counted(call: Call, run: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "in.txt", ["na我我", "ghar", "我我我"])
    said = call("predict", run, "--input", path, "--output", tmp_path / "out", "--part-rows", 1)
    assert said.err.splitlines()[0] == (
        "note: 45.5 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    )
    cut = InputCounts.of(
        [[Prediction("", truncated=True, tokens_read=3)], [Prediction("", error="x")]]
    )
    both = cut + cut
    assert both == InputCounts(rows=4, skipped=both.skipped, cut=2, tokens=6, unknown=0)
    assert both.skipped.count == 2
    assert on_ray.AS_TEXT.validate_json(on_ray.AS_TEXT.dump_json(both)) == both


def test_notes_are_not_a_flood(call: Call, run: Path, tmp_path: Path) -> None:
    path = written(tmp_path / "in.txt", [""] * 60)
    said = call("predict", run, "--input", path, "--output", tmp_path / "out", "--part-rows", 30)
    assert said.code == 1  # none of them could be used
    assert said.err.splitlines()[0] == (
        "note: all 60 inputs were skipped, and their answers are empty: the source is empty (in.txt, input 1, in.txt, "
        "input 2 and 58 more)."
    )
    assert len(said.err.splitlines()) == 2


def test_a_column_that_is_taken_is_told_once(call: Call, run: Path, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("roman,target\nghar,x\nnadi,y\n")
    said = call(
        "predict",
        run,
        "--input",
        tmp_path / "in.csv",
        "--output",
        tmp_path / "out",
        "--part-rows",
        1,
    )
    told = f"note: {tmp_path / 'in.csv'} has a column 'target' already; the new columns begin with 'predicted_'."
    assert said.err.splitlines()[:-1] == [told]


def test_nothing_is_written_where_a_file_cannot_be_read(
    call: Call, run: Path, tmp_path: Path
) -> None:
    written(tmp_path / "in/a.tsv")
    (tmp_path / "in/b.tsv").write_text("id\tword\n1\tghar\n")
    assert call(
        "predict", run, "--input", tmp_path / "in", "--output", tmp_path / "out"
    ).sentence == (
        f"{tmp_path / 'in/b.tsv'} has no column 'roman', which this run reads; it has 'id', 'word'."
    )
    assert not (tmp_path / "out").exists()


def test_two_files_with_one_name_for_their_answers(call: Call, run: Path, tmp_path: Path) -> None:
    written(tmp_path / "in/a.txt")
    written(tmp_path / "in/a.txt.gz")
    assert call(
        "predict", run, "--input", tmp_path / "in", "--output", tmp_path / "out"
    ).sentence == ("a.txt and a.txt.gz would both be written to a.txt; rename one of them.")


def test_an_excel_file_is_answered_in_csv(call: Call, run: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "roman"], [1, "ghar"], [2, "nadi"], [3, "din"]):
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    assert (
        call(
            "predict",
            run,
            "--input",
            tmp_path / "*.xlsx",
            "--output",
            tmp_path / "out",
            "--part-rows",
            2,
        ).code
        == 0
    )
    assert there(tmp_path / "out") == ["in-00001-of-00002.csv", "in-00002-of-00002.csv"]
    assert [len(rows_of(tmp_path / "out" / name)) for name in there(tmp_path / "out")] == [2, 1]


def test_a_workbook_without_cells_is_left_out(call: Call, run: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    (tmp_path / "in").mkdir()
    openpyxl.Workbook().save(tmp_path / "in/empty.xlsx")
    (tmp_path / "in/a.txt").write_text("ghar\n")
    said = call("predict", run, "--input", tmp_path / "in", "--output", tmp_path / "out")
    assert said.code == 0
    assert "left out because there are no rows: 1 file, empty.xlsx" in said.err
    assert there(tmp_path / "out") == ["a.txt"]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "-1/2", "1/0"])
def test_shards_are_counted_from_one(shard: str) -> None:
    with pytest.raises(DataError) as caught:
        Shard.of(shard)
    assert str(caught.value) == (
        f"--shard is the number of a job and how many there are, from 1/8 to 8/8, not {shard!r}."
    )


def test_options_that_do_not_go_together(call: Call, run: Path, tmp_path: Path) -> None:
    path, out = written(tmp_path / "in.txt"), tmp_path / "out"
    files = ("--input", path, "--output", out)
    assert call("predict", run, "--shard", "1/2", "--input", path).sentence == (
        f"answers to --input {path} are files: give --output, a folder for them."
    )
    assert call("predict", run, "ghar", "--shard", "1/2", "--output", out).sentence == (
        "give --input, a file, a folder or a glob, and with --output a folder for the answers."
    )
    assert call("predict", run, *files, "--resume", "--chat").sentence == (
        "answers in a folder go without texts, --question, --pictures and --chat."
    )
    for option in (("--workers", 2), ("--ray-address", "auto")):
        sentence = call("predict", run, *files, *option).sentence
        assert sentence == "--workers and --ray-address are for --engine ray."
    out.write_text("")
    assert call("predict", run, *files, "--shard", "1/2").sentence == (
        f"--output {out} is a file, but these answers need a folder, and work in one file cannot go on; "
        "begin again with --output FOLDER."
    )
    for name in ("x.txt", "x.TSV.gz"):
        wrong = call(
            "predict", run, "--input", path, "--output", tmp_path / name, "--shard", "1/2"
        ).sentence
        assert wrong == (
            f"--output {tmp_path / name} would be a folder, because these answers are files; name it without ending."
        )


# what Ray calls, without Ray


@pytest.fixture
def job(run: Path, tmp_path: Path) -> Callable[..., BulkJob]:
    predictor = sixjars.load(run, device="cpu")
    search = predictor.recipe.evaluation.search

    def make(path: Path) -> BulkJob:
        order = WorkerSettings(str(run), "", str(tmp_path / "out"), search, "cpu")
        return job_of(order, predictor, path, shard=Shard(), part_rows=3)

    return make


def test_a_worker_of_ray_takes_any_part(
    job: Callable[..., BulkJob], call: Call, run: Path, tmp_path: Path
) -> None:
    """In any order, also one that is there already; a file that has become shorter is an error with a sentence."""
    path = written(tmp_path / "in.tsv")
    made = job(path)
    worker = PartWorker(made.order, made.left)
    for number, rows, tokens in (
        (1, 3, 11),
        (0, 3, 16),
        (2, 1, 3),
        (1, 3, 0),
    ):  # the last one is there already
        row = worker({"id": [number]})
        assert (row["notes"], row["error"]) == ([[]], [""])
        counts = on_ray.AS_TEXT.validate_json(row["counts"][0])
        assert counts == InputCounts(rows, tokens=tokens)
    assert call("predict", run, "--input", path, "--output", tmp_path / "whole.tsv").code == 0
    found = [row for name in there(tmp_path / "out") for row in rows_of(tmp_path / "out" / name)]
    assert found == rows_of(tmp_path / "whole.tsv")
    (tmp_path / "out" / made.left[2].target).unlink()
    written(path, WORDS[:6])
    said = PartWorker(made.order, made.left)({"id": [2]})
    assert said["error"] == [f"{path} has fewer rows than when the work was begun."]
    assert len(there(tmp_path / "out")) == 2


def test_rows_that_end_every_worker_are_given_up(
    job: Callable[..., BulkJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = job(written(tmp_path / "in.tsv"))

    def lost(self: Worker, part: Any) -> InputCounts:
        raise SystemExit

    for number in range(on_ray.TRIES):
        (tmp_path / "out" / f".{made.left[0].target}.{number:08}.tsv").write_text("")
    monkeypatch.setattr(Worker, "predict", lost)
    said = PartWorker(made.order, made.left)({"id": [0]})
    assert said["error"] == [
        "in-00001-of-00003.tsv was begun 4 times, and each time its worker was lost."
    ]


def test_a_pool_leaves_a_cpu_free() -> None:
    assert [pool_size(cpus, 0, workers=None, parts=9) for cpus in (2, 8, 64)] == [1, 7, 9]
    assert pool_size(64, 4, workers=2, parts=9) == 2
    for cpus, gpus, workers, what in (
        (1, 0, None, "1 CPUs"),
        (4, 0, 4, "4 CPUs"),
        (8, 2, 3, "2 GPUs and 8 CPUs"),
    ):
        with pytest.raises(DataError) as caught:
            pool_size(cpus, gpus, workers=workers, parts=9)
        assert str(caught.value) == (
            f"--workers {workers or 1} needs more than Ray has ({what}); one CPU must stay free."
        )


def test_without_ray(
    job: Callable[..., BulkJob], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    made = job(written(tmp_path / "in.tsv"))
    with pytest.raises(
        MissingExtra, match=r"^ray is not installed\. Run: pip install 'sixjars\[scale\]'$"
    ):
        next(iter(predicted_on_ray(made)))


def test_texts_of_a_pair_have_a_tab_between_them(tmp_path: Path) -> None:
    few = ["data.sample.size=24", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    predictor = sixjars.train(
        "sentence_pair/sample_attention", few, out=tmp_path / "run"
    ).predictor(device="cpu")
    (tmp_path / "in.txt").write_text("a man sleeps\ta man rests\nonly one\n")
    items = RowReader(tmp_path / "in.txt", predictor).take(0, 2)
    assert list(items[0][0]) == list(predictor.inputs)  # type: ignore[arg-type]
    found = predictor.nbest([one for one, _ in items])
    assert found[0][0].error is None
    told = f"input 2: must be {' and '.join(predictor.inputs)} with a tab between them, or {{"
    assert str(found[1][0].error).startswith(told)
