"""`sixjars report`: what comes out for runs of every kind, and what it refuses before any work is done."""

import errno
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import pytest
import yaml

import sixjars
from sixjars.errors import DataError
from sixjars.progress import Reporter
from sixjars.reports import report as of_reports
from sixjars.reports.tables import shown_number
from tests.unit.conftest import Call, recipe_from_file

FEW = ["data.sample.size=24", "data.sample.valid=4", "data.sample.test=12", "learning.steps=1"]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation run, of words, on a file."""
    folder = tmp_path_factory.mktemp("words")
    rows = [f"word{n % 4} and{' more' * (n % 5)}\twort{n % 3} und mehr" for n in range(24)]
    file = pairs_in(folder / "pairs.tsv", *rows)
    recipe = recipe_from_file(folder, file, {"learning": {"epochs": 2}})
    return sixjars.train(recipe, out=folder / "run", device="cpu").folder


def report_of(run: Any, folder: Path, **options: Any) -> str:
    """The HTML of a report."""
    file = sixjars.report(run, out=folder / "r.html", device="cpu", **options)
    return file.read_text(encoding="utf-8")


def with_evaluation(run: Path, folder: Path, change: Callable[[Any], object]) -> Path:
    """A copy of a run whose recipe evaluates in another way."""
    copy = shutil.copytree(run, folder / "run")
    recipe = yaml.safe_load((copy / "recipe.yaml").read_text())
    change(recipe["evaluation"])
    (copy / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    return copy


def pairs_in(file: Path, *rows: str) -> Path:
    file.write_text("\n".join(["en\tde", *rows, ""]))
    return file


def text_of(html: str) -> str:
    """Without tags."""
    return re.sub(r"<[^>]+>", " ", re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.S))


@pytest.fixture(scope="module")
def page(words: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report of that run on a file with an unknown word."""
    folder = tmp_path_factory.mktemp("page")
    rows = [f"word{n % 4} <b>strange{n}</b> and{' more' * (n % 6)}\twort{n % 3}" for n in range(30)]
    file = pairs_in(folder / "test.tsv", *rows)
    out = folder / "new" / "report.html"
    assert sixjars.report(words, data=file, out=out, device="cpu") == out
    return out.read_text(encoding="utf-8")


def test_the_scores_are_those_of_evaluate(call: Call, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    said = call("report", words, "--out", out, "--device", "cpu")
    assert said.code == 0
    assert said.out == ""
    assert re.fullmatch(rf"wrote {re.escape(str(out))} \(0\.\d MB\)", said.err.splitlines()[-1])
    scored = sixjars.evaluate(words, device="cpu")
    text = out.read_text(encoding="utf-8")
    for score in scored.scores:
        assert f'<th scope="row">{score.name}</th><td>{shown_number(score.value)}</td>' in text
    assert f"on {scored.examples:,} examples of {scored.where}" in text


def test_a_report_has_all_of_it(page: str, words: Path) -> None:
    text = text_of(page)
    assert "<b>strange" not in page
    assert "strange7" in text
    assert "30 examples of " in text
    assert "9 of 30 examples" in text
    assert page.count('class="view"') == 9
    assert page.count('class="dot"') == 30
    assert "words of the source" in text
    assert "The most frequent words with an unknown token." in text
    assert "e_jt = V_attᵀ tanh" in text
    assert "95 % interval" in text
    assert "sixjars report runs/again --data" in text
    assert "tokens: words" in text  # of the recipe
    assert page.count('<polyline class="curve') == 3
    assert "2 epochs" in text
    assert f"{sixjars.explain(words).count:,} trained" in text


def test_lengths_have_counts_that_add_up(page: str) -> None:
    [table] = re.findall(r"by length\..*?<tbody>(.*?)</tbody>", page)
    counts = [int(count) for count in re.findall(r"</th><td>(\d+)(?: \(few\))?</td>", table)]
    assert sum(counts) == 30


def test_the_view_shown_is_what_the_model_attends_to(page: str, words: Path) -> None:
    given = re.findall(r'id="best-1-view".*?<span class="given">(.*?)</span>', page)[0]
    source = given.replace("&lt;", "<").replace("&gt;", ">")
    kept = sixjars.load(words, device="cpu").predict(source)
    found = re.findall(r'id="best-1-view".*?class="weights">.*?<tbody>(.*?)</tbody>', page)[0]
    drawn = [float(cell) for cell in re.findall(r"<td>([\d.]+)</td>", found)]
    assert drawn == pytest.approx([weight for row in kept.weights for weight in row], abs=2e-5)


@pytest.mark.parametrize(
    ("recipe", "told"),
    [
        ("translation/sample_initial", "This model has no attention, so there are no weights to show."),
        ("document_classification/sample_attention", "Confusion matrix"),
        ("pointing/sample_sorting", "number of points"),
        ("image_captioning/sample_initial", "This model has no attention"),
        ("video_classification/sample_attention", "Confusion matrix"),
    ],
)  # fmt: skip
def test_every_kind_of_run(recipe: str, told: str, tmp_path: Path) -> None:
    run = sixjars.train(recipe, FEW, out=tmp_path / "run", device="cpu").folder
    html = report_of(run, tmp_path)
    assert told in html
    assert html.count('class="dot"') == 12
    attends = sixjars.load(run, device="cpu").has_attention
    assert html.count('class="view"') == (9 if attends else 0)
    if not attends and recipe.startswith("image"):
        assert html.count('<img class="given" src="data:image/jpeg') == 9


@pytest.mark.usefixtures("scored_baselines")
def test_a_cross_validated_run_leads_with_rows_held_out(tmp_path: Path) -> None:
    """Not with the score of the rows that its model learned from, nor with baselines on these."""
    texts = [(f"word{number % 9} end{number % 4}", "ab"[number % 2]) for number in range(40)]
    (tmp_path / "rows.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in texts))
    recipe: dict[str, Any] = {"task": "document_classification"}
    fields = {"source": {"column": 1, "tokens": "words"}, "label": {"column": 2}}
    recipe["data"] = {"train": str(tmp_path / "rows.tsv"), **fields}
    recipe["model"] = {
        "encoder": {"kind": "text", "size": 4, "embedding": {"size": 4}},
        "bridge": {"kind": "initial"},
        "decoder": {"kind": "label", "size": 4},
    }
    recipe["learning"] = {"folds": 2, "epochs": 3}
    recipe["evaluation"] = {"metrics": ["accuracy@1"]}
    run = sixjars.train(recipe, out=tmp_path / "run", device="cpu")
    held_out, baseline = run.scores[0].value, run.baselines[0]
    text = " ".join(text_of(report_of(run.folder, tmp_path)).split())
    assert f"accuracy@1 {held_out:.3f} in cross-validation on 40 examples" in text
    assert f"this model {held_out:.3f} " in text
    assert f"{baseline.name} {baseline.value('accuracy@1'):.3f} " in text
    (run.folder / "scores.json").write_text("{}")
    assert "damaged or missing (scores.json)" in report_of(run.folder, tmp_path)


def test_a_language_model_has_no_input(language_model: Path, tmp_path: Path) -> None:
    text = text_of(report_of(language_model, tmp_path))
    for told in ("there is no map", "or there is no input", "The inputs have no words."):
        assert told in text
    assert "log probability of a token" in text


def test_a_packed_run_and_a_table_in_memory(run: Path, tmp_path: Path) -> None:
    packed = sixjars.pack(run, tmp_path / "words.sixjars")
    rows = [{"latin": "ghar", "devanagari": "घर"}, {"latin": "ram", "devanagari": "राम"}]
    columns = sixjars.load(run, device="cpu").all_columns
    table = [dict(zip(map(str, columns.values()), row.values(), strict=True)) for row in rows]
    html = report_of(packed, tmp_path, data=table)
    assert "<title>Report of words.sixjars</title>" in html
    assert "2 of 2 examples" in html


def test_data_without_annotations_is_scored_by_the_other_metrics(tmp_path: Path) -> None:
    run = sixjars.train("translation/sample_attention", FEW, out=tmp_path / "run", device="cpu")
    (tmp_path / "pairs.tsv").write_text("english\thindi\nI am going home\tmein ghar ja raha hoon\n")
    told = "Left out, for this data has no annotations: alignment_error_rate."
    for data, left_out in ((None, False), (tmp_path / "pairs.tsv", True)):
        html = report_of(run.folder, tmp_path, data=data)
        assert '<th scope="row">exact_match</th>' in html
        assert ('<th scope="row">alignment_error_rate</th>' in html) != left_out
        assert (told in html) == left_out


def test_which_set_chose_the_weights_and_which_rows_are_missing(tmp_path: Path) -> None:
    """Two bad rows, and a training row that is too long; of the run's own data, and of another file."""
    rows = [f"word{n % 4} and\twort{n % 3} und mehr" for n in range(20)]
    file = pairs_in(tmp_path / "pairs.tsv", "one", "two", "a b\t" + "x " * 30, *rows)
    valid = pairs_in(tmp_path / "valid.tsv", *rows[:8])
    data = {"on_bad_row": "skip", "target": {"max_length": 9}, "valid": str(valid)}
    changes = {"data": data, "learning": {"epochs": 1, "average": 2}}
    recipe = recipe_from_file(tmp_path, file, changes)
    run = sixjars.train(recipe, out=tmp_path / "run", device="cpu")
    assert (run.skipped, run.dropped) == (2, 1)
    text = text_of(report_of(run, tmp_path))
    assert (
        "The validation set chose the weights: they are the mean of the 2 checkpoints with the best "
        "character_error_rate on it. "
        "There is no test set, so these scores are of the validation set too, and may be too good. "
        "2 bad rows were skipped in reading the data. "
        "1 training row was left out (with more tokens than data.target.max_length (9))."
    ) in text
    text = text_of(report_of(run, tmp_path, data=valid))
    told = "with the best character_error_rate on it. No bad row was skipped in reading this file."
    assert told in text
    assert "There is no test set" not in text


def test_the_training_cost_is_told(words: Path, tmp_path: Path) -> None:
    text = text_of(report_of(words, tmp_path))
    assert re.search(r"training time\s+\d+ s on cpu, with validation", text)
    old = shutil.copytree(words, tmp_path / "old")
    (old / "cost.json").unlink()
    text = text_of(report_of(old, tmp_path))
    assert re.search(r"training time\s+not known; the run did not note it", text)
    assert "checksum of the training set" in text


def test_an_input_has_one_point_and_is_shown_once(words: Path, tmp_path: Path) -> None:
    rows = ["word1 and\twort1", "word1 and\twort1", "word2 and more\twort2 und", "word1 and\tmehr"]
    html = report_of(words, tmp_path, data=pairs_in(tmp_path / "test.tsv", *rows))
    assert html.count('class="dot"') == 2
    assert "2 different inputs of 4 examples are shown." in html
    assert html.count('class="example"') == 2
    assert html.count("3 examples have this input") == 1


@final
class Noted(Reporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.said: list[tuple[str, int, int]] = []

    def preparing(self, what: str, *, done: int, total: int) -> None:
        self.said.append((what, done, total))


def test_progress_is_shown(words: Path, tmp_path: Path) -> None:
    reporter = Noted()
    sixjars.report(words, out=tmp_path / "r.html", device="cpu", reporter=reporter)
    assert reporter.said[-1] == ("map of summary vectors", 5, 5)  # two of six inputs are the same


def test_bad_input_is_one_sentence(call: Call, words: Path, tmp_path: Path) -> None:
    missing, file = tmp_path / "no", tmp_path / "other.tsv"
    assert call("report", missing).sentence == f"run folder {missing} does not exist."
    command = ["report", words, "--data", file, "--out", tmp_path / "r.html"]
    for text in ("a\tb\nx\ty\n", "en\tde\n"):
        file.write_text(text)
        assert "other.tsv" in call(*command).sentence
    file.write_text("en\tde\n\tWort1\n")
    assert call(*command).sentence == f"{file}, line 2: column 'en' is empty."
    assert not (tmp_path / "r.html").exists()


@pytest.mark.parametrize(
    ("out", "told"),
    [
        ("r.png", "a report is an HTML file, but {} does not end in .html or .htm."),
        ("folder.html", "{} is a folder; name a file in it."),
        ("file.txt/r.html", "{} cannot be written: {folder}/file.txt is not a folder."),
        ("locked/r.html", "{} cannot be written: Permission denied."),
    ],
)
def test_a_file_that_cannot_be_written_is_told_before_the_work(
    call: Call, words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, told: str
) -> None:
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "file.txt").touch()
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr(of_reports, "judged_run", _never)
    monkeypatch.setattr("sixjars.runs.output_file.TemporaryFile", _refused)
    path = tmp_path / out
    assert call("report", words, "--out", path).sentence == told.format(path, folder=tmp_path)


def _refused(dir: Path) -> None:
    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), dir)


def test_a_place_that_takes_no_files_is_told_before_the_work(
    call: Call, words: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where whoever may do everything may write, by the permissions."""
    if not Path("/proc/self").exists():
        pytest.skip("there is no /proc")
    monkeypatch.setattr(of_reports, "judged_run", _never)
    told = call("report", words, "--out", "/proc/report.html").sentence
    why = r"(No such file or directory|Permission denied)\."
    assert re.fullmatch(f"/proc/report.html cannot be written: {why}", told)
    long = f"{'x' * 300}.html"
    told = call("report", words, "--out", long).sentence
    assert told == f"{long} cannot be written: File name too long."


def _never(*given: object, **more: object) -> Callable[[], None]:
    raise AssertionError("it was scored")


def test_unknown_characters(tmp_path: Path) -> None:
    file = pairs_in(tmp_path / "pairs.tsv", *["ab ba\tx y", "ba ab a\ty x"] * 6)
    changes = {"data": {"source": {"tokens": "characters"}}, "learning": {"epochs": 1}}
    recipe = recipe_from_file(tmp_path, file, changes)
    run = sixjars.train(recipe, out=tmp_path / "run", device="cpu")
    data = pairs_in(tmp_path / "test.tsv", "ab bQ\tx y", "Qb a\ty")
    assert re.search(r"Q\s+2\b", text_of(report_of(run.folder, tmp_path, data=data)))


def test_metrics_of_several_outputs_are_not_called_left_out(words: Path, tmp_path: Path) -> None:
    change = {"metrics": ["accuracy@5"]}
    html = report_of(with_evaluation(words, tmp_path, lambda it: it.update(change)), tmp_path)
    assert "accuracy@5" in html
    assert "Left out" not in html


def test_hypotheses_of_a_beam_are_ordered_by_their_scores(words: Path, tmp_path: Path) -> None:
    beam = {"kind": "beam", "width": 2, "length_penalty": 0.5}
    run = with_evaluation(words, tmp_path, lambda it: it["search"].update(beam))
    html = report_of(run, tmp_path)
    assert "Ordered by score: log probability / tokens^0.5." in html
    assert "Ordered by probability" not in html


def test_only_a_report_is_written_over(call: Call, words: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    out.write_text("<p>mine</p>")
    told = f"{out} exists already; choose another name."
    assert call("report", words, "--out", out).sentence == told
    with pytest.raises(DataError, match="exists already; choose another name"):
        sixjars.report(words, out=out, device="cpu")
    with pytest.raises(DataError) as caught:
        sixjars.report(words, data=out, out=out, device="cpu")
    assert str(caught.value) == f"{out} is the data that is read; choose another name."
    assert out.read_text() == "<p>mine</p>"
    out.unlink()
    for _ in range(2):
        assert call("report", words, "--out", out, "--device", "cpu").code == 0
