"""`sixjars predict` in parts: together they are the whole, each is there once, and half-done work goes on."""

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.bulk import on_ray
from sixjars.bulk.job import BulkJob, RowReader, Worker, WorkerSettings, job_of
from sixjars.bulk.on_ray import PartWorker, pool_size, predicted_on_ray
from sixjars.bulk.plan import BulkPlan, Shard, SourceFile, keep_plan
from sixjars.errors import DataError, MissingExtra
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.prediction import Prediction
from tests.conftest import Call
from tests.unit.predicting import WORDS, Predicting, read, written


@pytest.fixture
def predict(call: Call, run: Path, tmp_path: Path) -> Predicting:
    return Predicting(call, run, tmp_path)


def there(folder: Path) -> list[str]:
    """All files, hidden ones too, but for the plan."""
    files = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    assert "parts.json" in files
    return [name for name in files if name != "parts.json"]


def rows_of(out: Path) -> list[Any]:
    """The rows of all files of answers, one after the other."""
    return [row for name in there(out) for row in read(out / name)]


@pytest.mark.parametrize(
    "ending", ["csv", "tsv", "jsonl", "json", "parquet", "txt", "csv.gz", "txt.gz"]
)
def test_the_parts_of_all_jobs_are_the_whole(ending: str, predict: Predicting) -> None:
    plain = ending if ending != "txt.gz" else "txt"
    predict.words(f"in.{ending}")
    assert predict(out=f"whole.{plain}").code == 0
    whole = read(predict.out)
    for shard, rows, files in (("2/2", 3, 1), ("1/2", 4, 2)):
        said = predict("--part-rows", 3, "--shard", shard, out="out")
        assert (said.code, said.out) == (0, "")
        counts = f"rows answered: {rows}; files written: {files}"
        assert said.err == f"{counts}; in {predict.out}\n"
    assert there(predict.out) == [f"in-0000{part}-of-00003.{plain}" for part in (1, 2, 3)]
    assert rows_of(predict.out) == whole


def test_samples_are_the_same_draws_in_parts(
    predict: Predicting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.bulk.job.AT_ONCE", 1)
    predict.words("in.txt")
    search = ("--search", "sample", "--nbest", 2, "--json")
    whole = [json.loads(line)["text"] for line in predict(*search).out.splitlines()]
    assert predict(*search, "--part-rows", 2, out="out").code == 0
    assert there(predict.out)[0] == "in.txt-00001-of-00004.jsonl"
    assert [row["text"] for row in rows_of(predict.out)] == whole
    assert len(whole) == 2 * len(WORDS)


def test_a_folder_or_a_glob_of_files(predict: Predicting) -> None:
    """Files have their own names again; what is empty, hidden, of another kind or written has no answers."""
    folder = predict.folder / "in"
    for name in ("a.tsv", "more/a.tsv", "b.txt", "c.parquet"):
        predict.words(f"in/{name}", WORDS[:2])
    predict.words("in/none.parquet", [])
    blank = dict.fromkeys(["empty.txt", "d", "empty.csv", "empty.json"], "")
    x = dict.fromkeys(["_SUCCESS.txt", ".b.txt", "more/e.pdf"], "x")
    for name, text in (blank | x | {"only.csv": "id,roman\n"}).items():
        (folder / name).write_text(text)
    (folder / "empty.tsv.gz").write_bytes(gzip.compress(b""))
    left_out = [
        f"note: left out because of the ending: 2 files in {folder}",
        "note: left out because there are no rows: 6 files, "
        "empty.csv, empty.json, empty.tsv.gz, empty.txt, none.parquet, …",
    ]
    said = predict(of=folder, out="in/out")
    assert (said.code, said.err.splitlines()[:-1]) == (0, left_out)
    assert there(predict.out) == ["a.tsv", "b.txt", "c.parquet", "more/a.tsv"]
    assert len(read(predict.out / "more/a.tsv")) == 2
    assert predict("--resume", of=folder, out="in/out").err.splitlines() == [
        *left_out,
        "4 of 4 parts are there already",
        f"rows answered: 0; files written: 0; in {predict.out}",
    ]
    assert predict(of=f"{folder}/m*/**/a.*", out="other").code == 0
    assert there(predict.out) == ["a.tsv"]
    nothing = predict.folder / "nothing"
    nothing.mkdir()
    endings = ".csv, .tsv, .json, .jsonl, .parquet, .txt, .xlsx."
    for given, sentence in (
        (f"{folder}/*.xml", f"no file fits --input {folder}/*.xml."),
        (nothing, f"folder {nothing} has no file to read: none ends in {endings}"),
        (f"{folder}/[eo]*.*", "none of the 5 files has rows."),
    ):
        assert predict(of=given, out="o").sentence == sentence
    only = folder / "only.csv"
    assert predict("--resume", of=only, out="o").sentence == f"{only} has no rows."
    inside = f"--output {folder} is where the inputs are; choose another folder."
    assert predict(of=folder, out="in").sentence == inside


@pytest.fixture
def stopped(predict: Predicting, monkeypatch: pytest.MonkeyPatch) -> Predicting:
    """Work in three parts that was stopped in its second, and one that a kill left there."""
    take = RowReader.take

    def fail(self: RowReader, first: int, count: int) -> Any:
        if first > 2:
            raise KeyboardInterrupt
        return take(self, first, count)

    predict.words("in.tsv")
    with monkeypatch.context() as patch:
        patch.setattr(RowReader, "take", fail)
        said = predict("--part-rows", 3, out="out")
    stopped = "sixjars: stopped; the same command with --resume goes on.\n"
    assert (said.code, said.err) == (130, stopped)
    assert there(predict.out) == ["in-00001-of-00003.tsv"]
    (predict.out / ".in-00002-of-00003.tsv.1234abcd.tsv").write_text("half a ro")
    return predict


def test_half_done_work_goes_on(stopped: Predicting) -> None:
    out = stopped.out
    first = (out / "in-00001-of-00003.tsv").stat()
    assert stopped("--part-rows", 3, out="out").sentence == (
        f"--output {out} holds 1 of its 3 parts already; go on with --resume, or choose another folder."
    )
    assert stopped("--resume", out="out").err.splitlines() == [
        "1 of 3 parts are there already",
        f"rows answered: 4; files written: 2; in {out}",
    ]
    assert (out / "in-00001-of-00003.tsv").stat() == first
    assert stopped(out="whole.tsv").code == 0
    assert rows_of(out) == read(stopped.out)


def test_other_work_in_the_folder_is_refused(stopped: Predicting) -> None:
    out, plan = stopped.out, stopped.out / "parts.json"

    def refused(*options: object) -> str:
        return stopped("--resume", *options, out="out").sentence

    other = (
        f"--output {out} holds other work: its parts.json has other {{}}. Choose another folder."
    )
    assert refused("--nbest", 2) == other.format("search")
    assert refused("--precision", "bf16", "--json") == other.format("precision and json")
    assert refused("--part-rows", 4) == other.format("part_rows")
    kept = plan.read_text()
    plan.write_text(kept.replace('"weights": "', '"weights": "0'))
    assert refused() == other.format("weights")
    plan.write_text(kept)
    stopped.path.write_text(stopped.path.read_text() + "8\tmore\n")
    assert refused() == other.format("inputs")
    plan.write_text("{")
    assert refused() == f"{plan} is damaged; choose another folder for --output."
    plan.unlink()
    held = f"--output {out} holds in-00001-of-00003.tsv already, from elsewhere"
    assert refused("--part-rows", 3) == f"{held}; choose another folder."


def test_of_two_jobs_that_begin_at_once_one_plan_stays(tmp_path: Path) -> None:
    for rows in (3, 4):
        keep_plan(tmp_path, BulkPlan({}, rows, (SourceFile("a.txt", 9, 9, "a.txt"),)))
    assert json.loads((tmp_path / "parts.json").read_text())["part_rows"] == 3
    assert [path.name for path in tmp_path.iterdir()] == ["parts.json"]


def test_rows_that_cannot_be_used_are_blank(predict: Predicting) -> None:
    predict.words("in.tsv", ["ghar", "", *WORDS[:2], ""])
    said = predict("--part-rows", 2, out="out")
    assert said.code == 0
    assert said.err.splitlines() == [
        "note: 2 of 5 inputs were skipped, and their answers are empty: the source is empty (in.tsv, input 2 and "
        "in.tsv, input 5).",
        f"rows answered: 5; files written: 3; in {predict.out}",
    ]
    assert [row["id"] for row in rows_of(predict.out)] == [*range(5)]
    strict = predict("--part-rows", 2, "--strict", out="strict")
    assert (strict.code, strict.err.splitlines()[0]) == (1, said.err.splitlines()[0])


def test_unknown_tokens_and_cut_inputs_are_counted(predict: Predicting) -> None:
    predict.words("in.txt", ["na我我", "ghar", "我我我"])
    assert predict("--part-rows", 1, out="out").err.splitlines()[0] == (
        "note: 45.5 % of the input tokens are unknown to the run (<unk>); outputs may be poor."
    )
    cut = InputCounts.of(
        [[Prediction("", truncated=True, tokens_read=3)], [Prediction("", error="x")]]
    )
    both = cut + cut
    assert both == InputCounts(rows=4, skipped=both.skipped, cut=2, tokens=6, unknown=0)
    assert both.skipped.count == 2
    assert on_ray.AS_TEXT.validate_json(on_ray.AS_TEXT.dump_json(both)) == both


def test_notes_are_not_a_flood(predict: Predicting) -> None:
    predict.words("in.txt", [""] * 60)
    said = predict("--part-rows", 30, out="out")
    assert said.code == 1  # none of them could be used
    assert said.err.splitlines()[0] == (
        "note: all 60 inputs were skipped, and their answers are empty: the source is empty (in.txt, input 1, in.txt, "
        "input 2 and 58 more)."
    )
    assert len(said.err.splitlines()) == 2


def test_a_column_that_is_taken_is_told_once(predict: Predicting) -> None:
    path = predict.write("in.csv", "roman,target\nghar,x\nnadi,y\n")
    told = f"{path} has a column 'target' already; the new columns begin with 'predicted_'."
    said = predict("--part-rows", 1, out="out")
    assert said.err.splitlines()[:-1] == [f"note: {told}"]


def test_nothing_is_written_where_a_file_cannot_be_read(predict: Predicting) -> None:
    predict.words("in/a.tsv")
    bad = predict.write("in/b.tsv", "id\tword\n1\tghar\n")
    lacks = "has no column 'roman', which this run reads; it has 'id', 'word'."
    assert predict(of=bad.parent, out="out").sentence == f"{bad} {lacks}"
    assert not predict.out.exists()


def test_two_files_with_one_name_for_their_answers(predict: Predicting) -> None:
    folder = predict.words("in/a.txt").parent
    predict.words("in/a.txt.gz")
    both = "a.txt and a.txt.gz would both be written to a.txt; rename one of them."
    assert predict(of=folder, out="out").sentence == both


def test_an_excel_file_is_answered_in_csv(predict: Predicting) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "roman"], [1, "ghar"], [2, "nadi"], [3, "din"]):
        book.active.append(row)
    book.save(predict.folder / "in.xlsx")
    assert predict("--part-rows", 2, of=predict.folder / "*.xlsx", out="out").code == 0
    assert there(predict.out) == ["in-00001-of-00002.csv", "in-00002-of-00002.csv"]
    assert [len(read(predict.out / name)) for name in there(predict.out)] == [2, 1]


def test_a_workbook_without_cells_is_left_out(predict: Predicting) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    folder = predict.words("in/a.txt", ["ghar"]).parent
    openpyxl.Workbook().save(folder / "empty.xlsx")
    said = predict(of=folder, out="out")
    assert said.code == 0
    assert "left out because there are no rows: 1 file, empty.xlsx" in said.err
    assert there(predict.out) == ["a.txt"]


@pytest.mark.parametrize("shard", ["0/2", "3/2", "1", "a/b", "-1/2", "1/0"])
def test_shards_are_counted_from_one(shard: str) -> None:
    with pytest.raises(DataError) as caught:
        Shard.of(shard)
    assert str(caught.value) == (
        f"--shard is the number of a job and how many there are, from 1/8 to 8/8, not {shard!r}."
    )


def test_options_that_do_not_go_together(predict: Predicting) -> None:
    path = predict.words("in.txt")
    files = f"answers to --input {path} are files: give --output, a folder for them."
    assert predict("--shard", "1/2").sentence == files
    texts = predict.call("predict", predict.run, "ghar", "--shard", "1/2")
    assert texts.sentence == (
        "give --input, a file, a folder or a glob, and with --output a folder for the answers."
    )
    alone = "answers in a folder go without texts, --question, --pictures and --chat."
    assert predict("--resume", "--chat", out="out").sentence == alone
    for option in (("--workers", 2), ("--ray-address", "auto")):
        sentence = predict(*option, out="out").sentence
        assert sentence == "--workers and --ray-address are for --engine ray."
    predict.out.write_text("")
    assert predict("--shard", "1/2", out="out").sentence == (
        f"--output {predict.out} is a file, but these answers need a folder, and work in one file cannot go on; "
        "begin again with --output FOLDER."
    )
    for name in ("x.txt", "x.TSV.gz"):
        assert predict("--shard", "1/2", out=name).sentence == (
            f"--output {predict.out} would be a folder, because these answers are files; name it without ending."
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


def test_a_worker_of_ray_takes_any_part(job: Callable[..., BulkJob], predict: Predicting) -> None:
    """In any order, also one that is there already; a file that has become shorter is an error with a sentence."""
    path, out = predict.words("in.tsv"), predict.folder / "out"
    made = job(path)
    worker = PartWorker(made.order, made.left)
    for number, rows, tokens in ((1, 3, 11), (0, 3, 16), (2, 1, 3), (1, 3, 0)):  # the last is there
        row = worker({"id": [number]})
        assert (row["notes"], row["error"]) == ([[]], [""])
        counts = on_ray.AS_TEXT.validate_json(row["counts"][0])
        assert counts == InputCounts(rows, tokens=tokens)
    assert predict(out="whole.tsv").code == 0
    assert rows_of(out) == read(predict.out)
    (out / made.left[2].target).unlink()
    predict.words("in.tsv", WORDS[:6])
    said = PartWorker(made.order, made.left)({"id": [2]})
    assert said["error"] == [f"{path} has fewer rows than when the work was begun."]
    assert len(there(out)) == 2


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
