"""Comparisons of runs and recipes: what is trained, what is taken as it is, and what cannot be compared."""

import shutil
from pathlib import Path

import pytest
import yaml
from matplotlib.figure import Figure

import sixjars
from sixjars.cli.options import results
from sixjars.cli.show import show_comparison
from sixjars.errors import DataError, RecipeError, RunError
from sixjars.evaluation.by_length import Bucket
from sixjars.inspection.page import draw_by_length
from sixjars.runs.compare import Comparison, Contender, compare

FEW = [
    "data.sample.size=64",
    "data.sample.valid=4",
    "data.sample.test=12",
    "learning.steps=2",
    "evaluation.search.max_length=4",
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three runs; the last one has other test examples."""
    folder = tmp_path_factory.mktemp("runs")
    recipes = {
        "initial": ("transliteration/sample_initial", FEW),
        "attention": ("transliteration/sample_attention", FEW),
        "other": ("transliteration/sample_initial", [*FEW, "data.sample.test=13"]),
        "language_model": ("language_model/sample_gru", FEW),
    }
    return {
        name: sixjars.train(recipe, overrides, out=folder / f"run_{name}", device="cpu").folder
        for name, (recipe, overrides) in recipes.items()
    }


def test_runs_are_taken_as_they_are(runs: dict[str, Path], tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in runs["initial"].rglob("*")}
    found = compare([runs["initial"], str(runs["attention"])], out=tmp_path, metric="exact_match", device="cpu")
    assert [contender.name for contender in found.contenders] == ["initial", "attention"]
    assert [sum(bucket.count for bucket in one.buckets) for one in found.contenders] == [12, 12]
    assert found.contenders[0].overall == sixjars.evaluate(runs["initial"], metrics=["exact_match"]).scores[0].value
    assert found.title == "exact_match on 12 examples of the test set of the sample, greedy search"
    assert {"examples": 12, "data": "the test set of the sample"}.items() <= found.to_json().items()
    assert found.picture == tmp_path / "by_length.png"
    assert found.picture.read_bytes().startswith(b"\x89PNG")
    assert {path: path.stat().st_mtime_ns for path in runs["initial"].rglob("*")} == before


def test_the_table_says_what_was_scored(capsys: pytest.CaptureFixture[str]) -> None:
    buckets = (Bucket(2, 4, 30, 0.5), Bucket(5, 7, 3, 0.25), Bucket(8, 10, 0, None))
    two = tuple(Contender(name, 1000, 0.4, buckets, how) for name, how in (("a", "greedy search"), ("b", "sampling")))
    show_comparison(results(), Comparison("bleu", two, Path("p.png"), 33, "the test set of x.tsv"))
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert " ".join(lines[0]) == "bleu on 33 examples of the test set of x.tsv, a: greedy search; b: sampling"
    assert lines[2:6] == [
        ["parameters", "all", "2–4", "5–7", "8–10"],
        ["a", "1,000", "0.400", "0.500", "0.250*", "–"],
        ["b", "1,000", "0.400", "0.500", "0.250*", "–"],
        ["examples", "33", "30", "3", "0"],
    ]
    assert [" ".join(line) for line in lines[6:8]] == [
        "* fewer than 20 examples: too few to go by",
        "– no example of such a length can be scored",
    ]


def test_lengths_are_whole_numbers_in_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    curve = [Bucket(5, 5, 30, 0.5), Bucket(6, 6, 3, 0.25)]
    draw_by_length(tmp_path / "p.png", {"one": curve}, metric="exact_match", title="exact_match on 33 examples")
    axes = drawn[0].axes[0]
    assert all(float(tick).is_integer() for tick in axes.get_xticks())
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["one", "fewer than 20 examples"]
    assert drawn[0].get_suptitle() == "exact_match on 33 examples"


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
        f"{first} and {other} are scored on different examples; score both on one file with "
        "`sixjars evaluate RUN --data FILE`."
    )
    with pytest.raises(DataError) as told:
        compare([language_model, language_model], out=tmp_path, metric="perplexity", device="cpu")
    assert str(told.value) == (
        f"{language_model} is a language_model model; its inputs have no length that could be compared."
    )


def test_what_cannot_be_compared(runs: dict[str, Path], tmp_path: Path) -> None:
    images = ["image_captioning/sample_initial", "image_captioning/sample_attention"]
    with pytest.raises(
        DataError, match=r"^image_captioning/sample_initial is a .* no length that could be compared\.$"
    ):
        compare(images, out=tmp_path / "images")
    assert not (tmp_path / "images").exists()  # before anything is trained
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
        Path(f"small_{how}.yaml").write_text(yaml.safe_dump(recipe.model_dump(mode="json", exclude_unset=True)))
    names = ["small_initial.yaml", "small_attention.yaml"]
    found = compare(names, out="both", metric="exact_match", device="cpu")
    assert [contender.name for contender in found.contenders] == ["initial", "attention"]
    before = {path: path.stat().st_mtime_ns for path in Path("both").rglob("scores.json")}
    assert len(before) == 2
    assert compare(names, out="both", metric="exact_match", device="cpu") == found
    assert {path: path.stat().st_mtime_ns for path in Path("both").rglob("scores.json")} == before
