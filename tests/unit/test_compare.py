"""Comparisons of runs and recipes: what is trained, what is taken as it is, and what cannot be compared."""

import csv
import errno
import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import sixjars
from sixjars import progress
from sixjars.cli.options import results
from sixjars.cli.show import show_comparison
from sixjars.comparison.compare import _changes, _check_data, _metrics, _names, compare
from sixjars.comparison.result import Comparison, Contender, DifferingExample, RunCost, RunScore
from sixjars.comparison.scored_run import seeds_of
from sixjars.comparison.tables import ComparisonOutput
from sixjars.drawing.matplotlib.by_length import draw_by_length
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.evaluation.bootstrap import Difference
from sixjars.evaluation.by_length import Bucket
from sixjars.evaluation.metrics import METRICS, Interval, Outcome, Score
from sixjars.recipe.allowed_code import NOTHING
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.scored_files import file_dataset
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.recipes import Blueprint

FEW = ["data.sample.size=64", "data.sample.valid=4", "data.sample.test=12", "learning.steps=2"]
GROUPED = "evaluation.group=true"
FEW.append("evaluation.search.max_length=4")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three runs; the last one has other test examples."""
    folder = tmp_path_factory.mktemp("runs")
    recipes = {
        "initial": ("transliteration/sample_initial", FEW),
        "attention": ("transliteration/sample_attention", FEW),
        "other": ("transliteration/sample_initial", [*FEW, "data.sample.test=13", GROUPED]),
        "language_model": ("language_model/sample_gru", FEW),
    }
    return {
        name: sixjars.train(recipe, overrides, out=folder / f"run_{name}", device="cpu").folder
        for name, (recipe, overrides) in recipes.items()
    }


def test_runs_are_taken_as_they_are(runs: dict[str, Path], tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs["initial"].rglob("*")}
    two: list[str | Path] = [runs["initial"], str(runs["attention"])]
    found = compare(two, out=tmp_path, metric="exact_match", device="cpu")
    assert [contender.name for contender in found.contenders] == ["initial", "attention"]
    assert [sum(bucket.count for bucket in one.buckets) for one in found.contenders] == [12, 12]
    [score] = sixjars.evaluate(runs["initial"], metrics=["exact_match"]).scores
    assert found.contenders[0].overall == score.value
    assert found.title == "exact_match on 12 examples of the test set of the sample, greedy search"
    assert {"examples": 12, "data": "the test set of the sample"}.items() <= found.to_json().items()
    assert found.picture == tmp_path / "by_length.png"
    assert found.picture.read_bytes().startswith(b"\x89PNG")
    assert {path: path.stat().st_mtime_ns for path in runs["initial"].rglob("*")} == before


def scored(
    value: float, interval: Interval | None, change: Difference | None = None, name: str = "bleu"
) -> RunScore:
    return RunScore(Score(name, value, "", "higher", 33), interval, change)


def test_the_table_says_what_was_scored(capsys: pytest.CaptureFixture[str]) -> None:
    buckets = (Bucket(2, 4, 30, 0.5), Bucket(5, 7, 3, 0.25), Bucket(8, 10, 0, None))
    better = Difference(11.5, Interval(9.0, 14.0), 0.002)
    first = scored(25.02, Interval(23.0, 27.0))
    other = scored(36.52, Interval(34.0, 38.1), better)
    cost = RunCost(1_640_000, 1500, 2.5, 200.0, "cpu", 120.4, "cpu × 2 processes")
    unknown = RunCost(812, None, None, None, "cpu", 9.0)
    two = (
        Contender("a", 1000, 0.4, buckets, "greedy search", (first,), cost),
        Contender("b", 1000, 0.4, buckets, "sampling", (other,), unknown),
    )
    example = DifferingExample("b", "I run", ("je cours", "cours"), "je", "je cours", 0.5, times=3)
    by, where = "length of the input (words)", "the test set of x.tsv"
    found = Comparison("bleu", two, Path("p.png"), 33, where, by, (example,))
    show_comparison(results(), found)
    printed = capsys.readouterr().out
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    assert lines == [
        "bleu on 33 examples of the test set of x.tsv, a: greedy search; b: sampling",
        "a b",
        "bleu 25.0 (23.0–27.0) 36.5 (34.0–38.1) ▲",
        "parameters 1,000 1,000",
        "size 1.6 MB 812 B",
        "examples scored 120/s on cpu 9/s on cpu",
        "training 1500 steps, 2.5 epochs, 3 min on cpu × 2 processes not known",
        "In brackets: 95 % bootstrap interval. ▲ better, ▼ worse than the first run (p < 0.05).",
        "bleu: b is significantly better than a (+11.5; 95 % interval 9.0 to 14.0, p = 0.002).",
        "",
        "bleu by the length of the input (words):",
        "all 2–4 5–7 8–10",
        "a 0.400 0.500 0.250* –",
        "b 0.400 0.500 0.250* –",
        "examples 33 30 3 0",
        "* fewer than 20 examples: too few to go by",
        "– no example of such a length can be scored",
        "",
        "examples where they differ most:",
        "bleu +0.5 for b against a (better; 3 examples have this input)",
        "input I run",
        "reference je cours / cours",
        "a je",
        "b je cours",
    ]
    assert "▲" in found._repr_html_()


def test_what_is_significant_in_words() -> None:
    first, between = scored(0.5, Interval(0.4, 0.6)), Interval(-0.2, -0.1)
    worse, even = (
        Difference(-0.15, between, 0.004),
        Difference(-0.01, Interval(-0.1, 0.1), 0.613),
    )
    endless = RunScore(Score("perplexity", math.inf, "", "lower", 33))
    single = RunScore(Score("ter", 4.0, "", "lower", 1))
    alone = scored(0.5, None)
    for one, other, sentence in (
        (first, scored(0.35, between, worse),
         "bleu: b is significantly worse than a (-0.150; 95 % interval -0.200 to -0.100, p = 0.004)."),
        (first, scored(0.49, between, even),
         "bleu: b and a do not differ significantly (-0.010; 95 % interval -0.100 to 0.100, p = 0.61)."),
        (first, scored(0.49, between), "bleu: too few resamples have a value to compare b with a."),
        (alone, scored(0.4, None), "bleu: no interval, for only all examples together have a value."),
        (endless, endless, "perplexity: no interval, for it is inf."),
        (single, single, "ter: no interval, for there is only one example."),
        (first, RunScore(first.score, between, comparable=False),
         "bleu: b and a have different vocabularies, so their values do not compare."),
    ):  # fmt: skip
        two = (Contender("a", 1, 0.0, (), "", (one,)), Contender("b", 1, 0.0, (), "", (other,)))
        assert [*Comparison("bleu", two, None, 9, "x").findings()] == [sentence]
    lower = RunScore(Score("ter", 40.0, "", "lower", 9), between, Difference(-9.0, between, 0.01))
    assert lower.mark == "▲"
    assert scored(0.4, None, Difference(-9.0, between, 0.01)).mark == "▼"


def test_lengths_are_whole_numbers_in_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    curve = [Bucket(5, 5, 30, 0.5, Interval(0.4, 0.6)), Bucket(6, 6, 3, 0.25, Interval(0.1, 0.5))]
    title = "exact_match on 33 examples"
    draw_by_length(tmp_path / "p.png", {"one": curve}, metric="exact_match", title=title)
    axes = drawn[0].axes[0]
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    legend = axes.get_legend()
    assert legend is not None
    names = [text.get_text() for text in legend.get_texts()]
    assert names == ["one", "fewer than 20 examples", "95 % interval"]
    assert drawn[0].get_suptitle() == title
    assert [text.get_text() for text in axes.texts] == ["n = 30", "n = 3"]
    [shade, _] = [one for one in axes.collections if isinstance(one, PolyCollection)]
    corners = {tuple(corner) for corner in np.asarray(shade.get_paths()[0].vertices).tolist()}
    assert corners == {(5, 0.4), (5, 0.6), (6, 0.1), (6, 0.5)}


def test_models_of_different_tasks_or_examples(runs: dict[str, Path], tmp_path: Path) -> None:
    first, other, language_model = runs["initial"], runs["other"], runs["language_model"]
    with pytest.raises(DataError) as told:
        compare([first, language_model], out=tmp_path, metric="perplexity", device="cpu")
    assert str(told.value) == (
        f"{first} is a transliteration model, but {language_model} is a language_model model; "
        "compare models of one task."
    )
    with pytest.raises(DataError) as told:
        compare([first, other], out=tmp_path, metric="exact_match", device="cpu")
    assert str(told.value) == (
        f"{first} and {other} are scored on different examples; score both on one file: --data FILE."
    )
    rows = [{"roman": "ghar", "devanagari": "घर"}, {"roman": "pani", "devanagari": "पानी"}]
    files = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    for file, some in zip(files, (rows, rows[::-1]), strict=True):
        file.write_text("".join(json.dumps(row) + "\n" for row in some), encoding="utf-8")
    one, two = (
        file_dataset(opened.recipe, opened.restored(Blueprint.of(opened.recipe).fields), file)
        for opened, file in zip((open_run(first), open_run(first)), files, strict=True)
    )
    with pytest.raises(DataError) as told:
        _check_data("a", one, "b", two)
    assert str(told.value) == (
        "a and b are scored on the same examples in a different order; score both on one file: --data FILE."
    )
    found = compare([first, other], data=files[0], out=tmp_path / "t.csv", device="cpu")
    assert found.examples == 2


def test_every_score_has_its_interval_and_its_cost(runs: dict[str, Path], tmp_path: Path) -> None:
    three = [runs["initial"], runs["attention"], runs["initial"]]
    found = compare(three, out=tmp_path, device="cpu")
    first, other, again = found.contenders
    assert (first.name, other.name, again.name) == ("initial", "attention", "initial (2)")
    names = [measured.score.name for measured in first.scores]
    assert names == [score.name for score in sixjars.evaluate(runs["initial"], device="cpu").scores]
    for measured in (*first.scores, *other.scores):
        assert measured.interval is not None
        assert measured.interval.low <= measured.score.value <= measured.interval.high
    assert all(measured.difference is None for measured in first.scores)
    for measured in again.scores:
        assert measured.difference is not None
        assert measured.difference.p == 1.0
    assert all(bucket.interval is not None for bucket in first.buckets if bucket.count > 1)
    assert first.cost is not None
    assert (first.cost.steps, first.cost.device, first.cost.trained_on) == (2, "cpu", "cpu")
    noted = json.loads((runs["initial"] / "cost.json").read_text())
    assert first.cost.seconds == noted[0]["seconds"] > 0
    assert first.cost.size > (runs["initial"] / "model.safetensors").stat().st_size
    assert first.cost.speed > 0
    assert all(one.difference != 0 for one in found.differing)
    assert {one.name for one in found.differing} <= {other.name}
    table = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert table.startswith(f"# Comparison of initial, attention, initial (2)\n\n{found.title}.\n")
    assert re.findall(r"^## (.*)", table, re.M)[0] == f"{found.metric} by the {found.by}"
    assert f"| {other.name} | " in table


def test_a_run_is_called_by_its_path_only_where_another_has_its_name(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    """A packed run, and one of a recipe file, have other folders than what was given."""
    packed, recipe = tmp_path / "packed.sixjars", tmp_path / "mine.yaml"
    packed.touch()
    recipe.touch()
    places = {"a/run": "a/run", "b/run": "b/run", "c/best": "c/best", "c/best/": "c/best"}
    pairs = [*places.items(), (str(packed), "sixjars-1"), (str(packed), "sixjars-2")]
    pairs.append((str(recipe), f"out/{tmp_path}-mine"))
    opened = open_run(runs["initial"])
    folders = [replace(opened, folder=Path(folder)) for _, folder in pairs]
    found = _names([given for given, _ in pairs], folders)
    assert found == ["a/run", "b/run", "best", "best", "packed", "packed", "mine"]


def test_the_title_has_no_path_that_is_not_needed(runs: dict[str, Path], tmp_path: Path) -> None:
    beams = [tmp_path / name / "best" for name in "ab"]
    for folder in beams:
        shutil.copytree(runs["attention"], folder)
        recipe = yaml.safe_load((folder / "recipe.yaml").read_text())
        recipe["evaluation"]["search"] |= {"kind": "beam", "width": 2}
        (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    found = compare([runs["initial"], *beams], out=tmp_path / "t.md", device="cpu")
    _, title = found.title.split(" of the test set of the sample, ")
    how = [f"{folder}: beam search of width 2" for folder in beams]
    assert title == "; ".join(["run_initial: greedy search", *how])


def test_examples_that_differ() -> None:
    right, wrong = Outcome(("a b c d",), ("a b c d",)), Outcome(("a b c d",), ("a b x d",))
    for name in ("exact_match", "bleu"):
        metric = METRICS[name]
        changes = _changes(metric, [right, wrong, right], [right, right, wrong])
        assert changes[0] == 0
        assert changes[1] > 0 > changes[2]
    assert _changes(METRICS["distinct1"], [right], [wrong]) == {}
    unknown, known = Outcome(("x",)), Outcome(("x",), focus=0.5)
    assert _changes(METRICS["object_focus"], [unknown, known], [known, known]) == {1: 0.0}


@pytest.mark.parametrize("ending", [".md", ".csv", ".json", ".png", ".svg", ".pdf"])
def test_one_file(ending: str, runs: dict[str, Path], tmp_path: Path) -> None:
    file = tmp_path / "new" / f"both{ending}"
    found = compare([runs["initial"], runs["attention"]], out=file, device="cpu")
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    content = file.read_bytes()
    assert found.picture == (file if ending in begins else None)
    assert content.startswith(begins.get(ending, b""))
    if ending == ".csv":
        [first, other] = csv.DictReader(content.decode().splitlines())
        score = found.contenders[1].scores[0]
        assert score.difference is not None
        assert float(other[f"{score.score.name} p"]) == score.difference.p
        told = [first[key] for key in (f"{score.score.name} p", "run", "trained on")]
        assert told == ["", "initial", "cpu"]
        assert float(first["training seconds"]) > 0
    if ending == ".json":
        [written, *_] = json.loads(content)["contenders"][1]["scores"]
        assert written["score"]["value"] == found.contenders[1].scores[0].score.value


def test_a_file_that_cannot_be_written_is_refused_first(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    folder, file = tmp_path / "folder.md", tmp_path / "file"
    folder.mkdir()
    file.write_text("x")
    names = [str(runs["initial"]), "transliteration/sample_attention"]  # that would be trained
    for out, sentence in (
        (folder, f"{folder} is a folder; name a file in it."),
        (file, f"{file} is a file; name a folder, or a file that ends in .md, .csv, .json."),
        (file / "x.md", f"{file / 'x.md'} cannot be written: {file} is not a folder."),
        (file / "x", f"{file / 'x'} cannot be written: {file} is not a folder."),
        (
            tmp_path / "x.html",
            f"{tmp_path / 'x.html'} is no file that a comparison can be: a table is .md, .csv, .json, a picture "
            ".png, .svg, .pdf; a name without an ending is a folder.",
        ),
    ):
        with pytest.raises(DataError) as told:
            compare(names, out=out)
        assert str(told.value) == sentence


@pytest.mark.parametrize("name", ["x.md", "folder"])
def test_no_permission(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(dir: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), dir)

    monkeypatch.setattr("sixjars.runs.output_file.TemporaryFile", refused)
    out = tmp_path / "new" / name
    with pytest.raises(DataError) as told:
        ComparisonOutput(out).check()
    assert str(told.value) == f"{out} cannot be written: Permission denied."


def test_a_language_model_is_compared_by_the_length_of_its_texts(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    found = compare([runs["language_model"]] * 2, out=tmp_path / "t.md", device="cpu")
    assert (found.metric, found.by) == ("perplexity", "length of the reference (words)")
    assert found.title.endswith("no search")
    assert found.differing == ()


def test_rows_with_the_same_input_are_one_example(runs: dict[str, Path], tmp_path: Path) -> None:
    rows = [("ghar", "घर"), ("pani", "पानी"), ("ghar", "घड़")]
    table = [{"roman": roman, "devanagari": devanagari} for roman, devanagari in rows]
    two = [runs["other"], runs["attention"]]  # as the first of them has it
    metric = "character_error_rate"
    found = compare(two, data=table, out=tmp_path / "t.md", metric=metric, device="cpu")
    assert found.examples == 2
    assert {one.references for one in found.differing} <= {("घर", "घड़"), ("पानी",)}
    [score] = sixjars.evaluate(two[0], data=table, metrics=[metric]).scores
    assert found.contenders[0].overall == score.value


def test_progress_is_shown_to_whoever_is_listening(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, int | None]] = []

    class Listener(progress.Reporter):
        def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
            told.append((what, total))

    monkeypatch.setattr(progress, "_ROWS", 0)
    monkeypatch.setattr(progress, "_OFTEN", -1.0)
    two = [runs["initial"], runs["attention"]]
    with progress.listening(Listener()):
        compare(two, out=tmp_path / "t.md", device="cpu")
    assert {(f"scoring {run}", 12) for run in two} <= set(told)


def test_metrics_that_they_share(runs: dict[str, Path]) -> None:
    recipe = open_run(runs["initial"]).recipe

    def having(*metrics: str) -> Recipe:
        evaluation = recipe.evaluation.model_copy(update={"metrics": metrics})
        return recipe.model_copy(update={"evaluation": evaluation, "expect": {}})

    one, other = having("exact_match", "bleu"), having("bleu")
    metrics, chosen = _metrics(["a", "b"], [one, other], None, NOTHING)
    assert ([metric.name for metric in metrics], chosen.name) == (["bleu"], "bleu")
    metrics, chosen = _metrics(["a", "b"], [one, other], "chrf", NOTHING)
    assert ([metric.name for metric in metrics], chosen.name) == (["bleu", "chrf"], "chrf")
    with pytest.raises(DataError) as told:
        _metrics(["a", "b"], [one, having("chrf")], None, NOTHING)
    sentence = "a and the others have no metric in common; choose one with --metric NAME."
    assert str(told.value) == sentence


def test_what_cannot_be_compared(runs: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^compare needs two recipes or runs, or more\.$"):
        compare(["x"], out=tmp_path, metric="bleu")
    with pytest.raises(RecipeError, match=r"metric 'blue' is unknown\. Did you mean 'bleu'"):
        compare(["x", "y"], out=tmp_path, metric="blue")
    shutil.copytree(runs["language_model"], tmp_path / "transliteration-sample_initial")
    names = ["transliteration/sample_initial", "transliteration/sample_attention"]
    with pytest.raises(RunError, match="was begun with another recipe"):
        compare(names, out=tmp_path, metric="exact_match", device="cpu")


def test_recipes_are_trained_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for how in ("initial", "attention"):
        recipe = sixjars.read_recipe(f"transliteration/sample_{how}", FEW)
        values = recipe.model_dump(mode="json", exclude_unset=True)
        Path(f"small_{how}.yaml").write_text(yaml.safe_dump(values))
    names = ["small_initial.yaml", "small_attention.yaml"]
    found = compare(names, out="both", metric="exact_match", device="cpu")
    assert [contender.name for contender in found.contenders] == ["initial", "attention"]
    before = {path: path.stat().st_mtime_ns for path in Path("both").rglob("scores.json")}
    assert len(before) == 2
    assert compare(names, out="both", metric="exact_match", device="cpu") == found
    assert {path: path.stat().st_mtime_ns for path in Path("both").rglob("scores.json")} == before


def test_seeds_of_one_recipe_are_no_rivals(runs: dict[str, Path], tmp_path: Path) -> None:
    def trained(name: str, *more: str) -> Path:
        recipe, out = "transliteration/sample_initial", tmp_path / name
        return sixjars.train(recipe, [*FEW, *more], out=out, device="cpu").folder

    one, two = (trained(f"seed_{seed}", f"learning.seed={seed}") for seed in (1, 2))
    four = [runs["initial"], one, runs["attention"], two]
    found = compare(four, out=tmp_path / "all.json", device="cpu")
    first, *_ = found.contenders
    assert [some.rows for some in found.seeds] == [(0, 1, 3)]
    assert [some.seeds for some in found.seeds] == [(0, 1, 2)]
    for at, measured in enumerate(first.scores):
        values = [contender.scores[at].score.value for contender in found.contenders]
        same = [values[row] for row in (0, 1, 3)]
        for row in (1, 3):
            assert found.contenders[row].scores[at].difference is None
            assert found.contenders[row].scores[at].mark == ""
        name = measured.score.name
        own = [sentence for sentence in found.findings() if sentence.startswith(f"{name}: ")]
        seeds = "run_initial, seed_1 and seed_2 are one recipe with seed 0, 1 and 2: mean "
        assert own[0].startswith(f"{name}: {seeds}")
        mean, deviation = map(float, re.findall(r"(?:mean|deviation) ([\d.]+)", own[0]))
        assert mean == pytest.approx(float(np.mean(same)), abs=0.06)
        assert deviation == pytest.approx(float(np.std(same, ddof=1)), abs=0.06)
        assert all("attention" in sentence or "no interval" in sentence for sentence in own[1:])
    assert {one.name for one in found.differing} <= {"run_attention"}
    [seeds] = json.loads((tmp_path / "all.json").read_text())["seeds"]
    assert seeds == {"rows": [0, 1, 3], "seeds": [0, 1, 2]}


def test_other_recipes_and_other_data_are_rivals(runs: dict[str, Path], tmp_path: Path) -> None:
    changes = [*FEW, "learning.steps=3", "learning.seed=1"]
    longer = sixjars.train("transliteration/sample_initial", changes, out=tmp_path / "longer")
    found = compare([runs["initial"], longer.folder], out=tmp_path / "all.json", device="cpu")
    assert found.seeds == ()
    copy = shutil.copytree(runs["initial"], tmp_path / "copy")

    def seeds() -> list[tuple[int, ...]]:
        return [some.seeds for some in seeds_of([open_run(runs["initial"]), open_run(copy)])]

    assert seeds() == []  # the same run twice
    values = yaml.safe_load((copy / "recipe.yaml").read_text())
    values["learning"]["seed"] = 7
    (copy / "recipe.yaml").write_text(yaml.safe_dump(values))
    assert seeds() == [(0, 7)]
    about = json.loads((copy / "run.json").read_text())
    about["data"]["train"] = "another"
    (copy / "run.json").write_text(json.dumps(about))
    assert seeds() == []
