"""Baselines beside runs: what the commands show, what is kept, what turns them off, and what is said of them."""

import json
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sixjars
from sixjars.comparison.result import Comparison, Contender, RunScore
from sixjars.data.bad_rows import LEAVE_ROWS_OUT
from sixjars.errors import DataError, Interrupted, RunError
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.baselines.table import METHODS
from sixjars.evaluation.bootstrap import error_of_difference
from sixjars.evaluation.metrics import Interval, Outcome, Score, metric_named
from sixjars.recipe.allowed_code import NOTHING
from sixjars.recipe.files import flat, packaged
from sixjars.recipe.sections import Recipe
from sixjars.runs.baselines import advice, run_baselines
from sixjars.runs.baselines.run_baselines import LEAST, SHARE, STOPPED, BaselineScoring, sentence_of
from sixjars.runs.evaluate import LEARNED, training_set
from sixjars.runs.folder.baseline_scores import (
    FILE,
    MOST,
    BaselineEntry,
    keep_entry,
    kept_entry,
    read_entries,
)
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.recipes import metrics_of, read_recipe
from sixjars.runs.training.trend import Trend, trend_of
from tests.conftest import Call, with_baselines
from tests.unit.trained import Notes

RECIPE = "document_classification/sample_flat_initial"
FEW = ["data.sample.size=300", "data.sample.valid=5", "data.sample.test=30", "learning.steps=1"]
LINEAR = "a linear model on word counts"
CPU = ("--device", "cpu")

pytestmark = pytest.mark.usefixtures("scored_baselines")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> sixjars.Run:
    """A run of one step, with its baselines; tests that write take a copy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sixjars.runs.train._baselines", with_baselines()["train", "_baselines"])
        return sixjars.train(RECIPE, FEW, out=tmp_path_factory.mktemp("runs") / "run", device="cpu")


@pytest.fixture
def run(trained: sixjars.Run, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained.folder, tmp_path / "run"))


def score_of(
    value: float, metric: str = "accuracy@1", better: Any = "higher", count: int = 4_000
) -> Score:
    return Score(metric, value, "", better, count)


def one(name: str, *scores: float | Score, topic: str = "labels", **more: Any) -> Baseline:
    """A baseline that took two seconds; a number is its accuracy of 4,000 rows."""
    values = (score if isinstance(score, Score) else score_of(score) for score in scores)
    return Baseline(name, tuple(values), 2.0, topic=topic, **more)


@pytest.fixture
def recipe() -> Recipe:
    return read_recipe(RECIPE, [], NOTHING)


def choosing(recipe: Recipe, metric: str) -> Recipe:
    """The recipe with another metric that chooses the weights."""
    learning = recipe.learning.model_copy(update={"metric": metric})
    return recipe.model_copy(update={"learning": learning})


# What is said.


REACHED = f"accuracy@1: {LINEAR} reaches 0.880 in 2 s; this model"


def test_a_model_that_is_ahead(recipe: Recipe) -> None:
    baselines = [one("the most frequent label", 0.5), one(LINEAR, 0.88)]
    assert sentence_of(baselines, [score_of(0.9)], recipe) == f"{REACHED} 0.900."


def test_a_model_that_is_behind_is_told_what_to_try(recipe: Recipe) -> None:
    tries = advice.advice_for("labels", recipe)
    listed = "; ".join(f"{at}. {says}" for at, says in enumerate(tries, start=1))
    assert sentence_of([one(LINEAR, 0.88)], [score_of(0.813)], recipe) == (
        f"{REACHED} 0.813, which is worse. Try, in this order: {listed}. docs/bad_model.md says more."
    )
    assert len(tries) >= 3


def test_a_model_that_is_as_good_is_no_better(recipe: Recipe) -> None:
    sentence = sentence_of([one(LINEAR, 0.8801)], [score_of(0.8799)], recipe)
    equal = "0.880 too: no difference that 4000 rows can show. Try, in this order: 1."
    assert sentence.startswith(f"{REACHED} {equal}")
    bleu = score_of(30.1, "bleu")
    sentence = sentence_of([one(LINEAR, bleu)], [bleu], recipe)
    assert "; this model 30.1 too, no better. Try, in this order: 1." in sentence


def test_a_difference_that_may_be_chance_is_none(recipe: Recipe) -> None:
    """By 862 rows, two shares of about 0.87 differ by 0.032 or more: 1.96 * sqrt(2 * 0.87 * 0.13 / 862)."""
    said = "accuracy@1: a linear model on word counts reaches 0.865 in 2 s; this model {}"
    chance = ": no difference that 862 rows can show."
    ahead, behind, clearly, worse = (
        sentence_of([one(LINEAR, 0.8654)], [score_of(value, count=862)], recipe)
        for value in (0.8689, 0.85, 0.9, 0.82)
    )
    assert ahead == said.format("0.869") + chance
    assert behind.startswith(said.format("0.850") + chance + " Try, in this order: 1. ")
    assert clearly == said.format("0.900") + "."
    assert worse.startswith(said.format("0.820") + ", which is worse. Try")


def test_what_the_same_rows_tell_counts_more_than_a_guess(recipe: Recipe) -> None:
    """1.96 standard errors of the paired difference are 0.0098 here, and 0.0392 there."""
    model, scores = [score_of(0.885, count=862)], (score_of(0.865, count=862),)
    known = [one(LINEAR, *scores, errors={"accuracy@1": error}) for error in (0.005, 0.02)]
    assert sentence_of(known[:1], model, recipe).endswith("; this model 0.885.")
    assert sentence_of(known[1:], model, recipe).endswith(": no difference that 862 rows can show.")


CHANCE = ": no difference that 862 rows can show."
LOWER, HIGHER = (
    f" By macro_f1 it is {way} against 0.783." for way in ("worse: 0.745", "better: 0.820")
)


@pytest.mark.parametrize(
    ("accuracy", "f1", "ends", "tries"),
    [
        (0.869, 0.745, f"{CHANCE}{LOWER}", True),
        (0.869, 0.820, f"{CHANCE}{HIGHER}", False),
        (0.869, 0.790, CHANCE, False),
        (0.930, 0.745, f".{LOWER}", False),
        (0.930, 0.820, ".", False),
        (0.800, 0.820, f", which is worse.{HIGHER}", False),
    ],
)
def test_another_metric_that_says_the_opposite_is_named(
    recipe: Recipe, accuracy: float, f1: float, ends: str, *, tries: bool
) -> None:
    errors = {"accuracy@1": 0.01, "macro_f1": 0.01}
    rival, model = (
        [score_of(first, count=862), score_of(second, "macro_f1", count=862)]
        for first, second in ((0.865, 0.783), (accuracy, f1))
    )
    sentence = sentence_of([one(LINEAR, *rival, errors=errors)], model, recipe)
    rest = sentence.partition(f"; this model {accuracy:.3f}")[2]
    assert rest.partition(" Try")[0] == ends
    assert (" Try" in rest) == tries


def test_the_standard_error_of_a_difference_is_that_of_the_rows() -> None:
    """Of shares, against the plain formula: the deviation of the differences of the rows."""
    draw = np.random.default_rng(3)
    right = draw.random((2, 1500)) < np.array([[0.8], [0.7]])
    model, rival = ([Outcome(("a",), ("a" if hit else "b",)) for hit in hits] for hits in right)
    found = error_of_difference(metric_named("accuracy@1"), rival, model)
    wanted = np.std(right[0].astype(float) - right[1]) / 1500**0.5
    assert found == pytest.approx(wanted, rel=0.1)
    assert error_of_difference(metric_named("accuracy@1"), model, model) == 0.0
    # Five rows that are all better are chance in one of sixteen cases: no difference that can be shown.
    few = [replace(one, candidates=("a",)) for one in rival]
    wrong = [at for at, one in enumerate(rival) if one.candidates == ("b",)]
    five = [few[at] if at in wrong[:5] else one for at, one in enumerate(rival)]
    error = error_of_difference(metric_named("accuracy@1"), rival, five)
    assert error is not None
    assert error * 1.96 > 5 / 1500
    assert error_of_difference(metric_named("distinct1"), rival, model) is None


@pytest.mark.parametrize(("metric", "value"), [("accuracy@1", 1.0), ("bleu", 100.0)])
def test_two_perfect_scores_need_no_advice(recipe: Recipe, metric: str, value: float) -> None:
    score = score_of(value, metric)
    sentence = sentence_of([one(LINEAR, score)], [score], recipe)
    assert sentence.endswith(f"; this model {value:.{1 if value > 1 else 3}f} too.")


def test_where_there_is_no_advice_the_page_is_named(recipe: Recipe) -> None:
    sentence = sentence_of([one(LINEAR, 0.88, topic="")], [score_of(0.813)], recipe)
    assert sentence == f"{REACHED} 0.813, which is worse. docs/bad_model.md says what to try."


def test_lower_may_be_better(recipe: Recipe) -> None:
    ahead, behind, unigram, five = (
        score_of(value, "perplexity", "lower") for value in (120.5, 160.0, 687.0, 151.4)
    )
    found = [one("a unigram model", unigram), one("five words", five)]
    reached = "perplexity: five words reaches 151.4 in 2 s; this model"
    assert sentence_of(found, [ahead], recipe) == f"{reached} 120.5."
    assert sentence_of(found, [behind], recipe).startswith(f"{reached} 160.0, which is worse.")


def test_the_metric_that_chooses_the_weights_comes_first(recipe: Recipe) -> None:
    scores = [score_of(0.9), score_of(0.4, "macro_f1")]
    both = one(LINEAR, 0.88, score_of(0.5, "macro_f1"))
    by_f1 = choosing(recipe, "macro_f1")
    assert sentence_of([both], scores, by_f1).startswith("macro_f1: ")
    assert sentence_of([both], scores, recipe).startswith("accuracy@1: ")


def test_two_zeros_say_nothing(recipe: Recipe) -> None:
    copying, zero = one("copying", 0.0, score_of(0.2, "macro_f1")), score_of(0.0)
    by_f1 = sentence_of([copying], [zero, score_of(0.3, "macro_f1")], recipe)
    assert by_f1.startswith("macro_f1: ")
    assert sentence_of([copying], [zero], recipe) == ""
    assert sentence_of([], [score_of(0.5)], recipe) == ""


def test_a_baseline_that_gets_nothing_right_is_left_out(recipe: Recipe) -> None:
    def scores_of(exact: float, error: float) -> list[Score]:
        return [score_of(exact, "exact_match"), score_of(error, "character_error_rate", "lower")]

    copying = one("copying the input", *scores_of(0.0, 0.9))
    nearest, nothing = (
        one("the nearest", *scores_of(0.3, 0.95)),
        one("nothing", *scores_of(4e-4, 0.7)),
    )
    model, by_error = scores_of(0.8, 0.1), choosing(recipe, "character_error_rate")
    assert sentence_of([copying], model, recipe) == ""
    assert sentence_of([copying, nothing], model, recipe) == ""
    assert sentence_of([copying], model, by_error) == ""
    sentence = sentence_of([copying, nearest], model, by_error)
    assert sentence == "character_error_rate: the nearest reaches 0.950 in 2 s; this model 0.100."
    sentence = sentence_of([copying], scores_of(0.0, 0.1), recipe)
    assert sentence.startswith("character_error_rate: copying the input ")


def compared(*baselines: Baseline) -> Comparison:
    """Two runs beside baselines."""
    runs = (
        Contender(name, 9, value, (), "", (RunScore(score_of(value)),))
        for name, value in (("a", 0.9), ("b", 0.8))
    )
    return Comparison("accuracy@1", tuple(runs), None, 100, "rows", baselines=baselines)


def test_a_comparison_leaves_out_what_gets_nothing_right() -> None:
    assert compared(one("copying the input", 0.0)).beside() == ""


def test_advice_leaves_out_what_a_recipe_does(recipe: Recipe) -> None:
    changes = ["data.source.lowercase=true", "loss.smoothing=0.1", "model.encoder.dropout=0.5"]
    other = read_recipe(RECIPE, changes, NOTHING)
    before, after = (advice.advice_for("labels", one) for one in (recipe, other))
    assert before == [
        "lowercase (data.source.lowercase=true)",
        "more dropout (model.encoder.dropout=0.5)",
        "pretrained word vectors, if the texts are English, or a file of them (data.source.vectors=wordllama "
        "model.encoder.embedding.size=256)",
        "more updates (smaller batches, more learning.steps, more learning.patience)",
        "an encoder of words and pairs of words ('model.encoder={kind: bag}' 'model.bridge={kind: pooling, "
        "join_summary: true}')",
    ]
    plain = "no label smoothing and no class weights (loss.smoothing=0)"
    assert after == [before[2], plain, *before[3:]]


def log_of(folder: Path, train: list[float], valid: list[float]) -> None:
    """A log as training writes it: a line for each validation."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        {"epoch": 1.0 + at, "step": 10 + 10 * at, "train_loss": one, "loss": other}
        for at, (one, other) in enumerate(zip(train, valid, strict=True))
    ]
    (folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


FALLS = [2.0, 1.5, 1.1, 0.8, 0.5, 0.3]
RISES = [1.9, 1.4, 1.2, 1.3, 1.4, 1.5]
GAINS = [2.1, 1.7, 1.4, 1.2, 1.0, 0.8]
FLAT = [1.0, 0.9, 0.8, 0.82, 0.81, 0.805]


def trend(**facts: bool) -> Trend:
    usual = {"overfits": False, "improves": False, "stopped_early": False, "has_gap": True}
    return Trend(**usual | facts)


@pytest.mark.parametrize(
    ("train", "valid", "expected"),
    [
        (FALLS, RISES, trend(overfits=True, stopped_early=True)),
        (FALLS, GAINS, trend(improves=True)),
        (FALLS, FLAT, trend(stopped_early=True)),
        ([3.0] * 6, FLAT, trend(stopped_early=True, has_gap=False)),
        (FALLS[:3], RISES[:3], None),
        ([], [], None),
    ],
)
def test_the_log_says_how_training_went(
    tmp_path: Path, train: list[float], valid: list[float], expected: Trend | None
) -> None:
    changes = ["learning.metric=loss", "learning.patience=3"]
    run = RunFolder(tmp_path, read_recipe(RECIPE, changes, NOTHING))
    log_of(tmp_path, train, valid)
    assert trend_of(run) == expected
    (tmp_path / "log.jsonl").write_text("damaged\n")
    assert trend_of(run) is None


def test_of_folds_most_logs_count(tmp_path: Path) -> None:
    changes = ["data.sample=null", "data.train=a.csv", "learning.folds=3", "learning.metric=loss"]
    run = RunFolder(tmp_path, read_recipe(RECIPE, [*changes, "learning.patience=3"], NOTHING))
    log_of(tmp_path, FALLS, GAINS)  # that of all rows, which validates by rows that it learns from
    for number, valid in enumerate((RISES, GAINS, RISES), start=1):
        log_of(tmp_path / "folds" / str(number), FALLS, valid)
    assert trend_of(run) == trend(overfits=True, stopped_early=True)


def test_advice_is_chosen_by_the_log(recipe: Recipe) -> None:
    def told(**facts: bool) -> list[str]:
        said = advice.advice_for("labels", recipe, trend(**facts))
        return [one.partition(" (")[0] for one in said]

    usual = [one.partition(" (")[0] for one in advice.advice_for("labels", recipe)]
    assert usual[:2] == ["lowercase", "more dropout"]
    assert told() == usual
    assert told(stopped_early=True) == [one for one in usual if one != "more updates"]
    assert told(has_gap=False) == [one for one in usual if one != "more dropout"]
    assert told(improves=True) == ["more updates", *(one for one in usual if one != "more updates")]
    rest = [one for one in usual if one != "more updates"]
    overfits = told(overfits=True, stopped_early=True)  # by the order of the page all the same
    assert overfits == [*rest, "a smaller model", "more data"]


def test_a_single_thing_to_try_needs_no_number() -> None:
    done = read_recipe("pointing/sample_sorting", [], NOTHING)
    updates = "more updates (smaller batches, more learning.steps, more learning.patience)"
    assert advice.advice_for("order", done, trend(has_gap=False)) == [updates]
    order = one("the order", 0.9, topic="order")
    sentence = sentence_of([order], [score_of(0.5)], done, trend(has_gap=False))
    assert sentence.endswith(f", which is worse. Try {updates}. docs/bad_model.md says more.")


TOPICS = {
    "document_classification": ("labels", "names"),
    "image_classification": ("images",),
    "image_question_answering": ("labels",),
    "language_model": ("language",),
    "pointing": ("order",),
    "sentence_pair": ("pairs",),
    "video_classification": ("images",),
}
"""Of those tasks that do not write texts."""


def test_every_baseline_has_a_topic_with_advice(recipe: Recipe) -> None:
    methods = [method for some in METHODS.values() for method in some]
    texts = SimpleNamespace(texts=["source"], counts_characters=False)
    known = {method.topic(texts) for method in methods}  # type: ignore[arg-type]
    changes: tuple[dict[str, Any], ...] = (
        {"texts": []},
        {"texts": ["a", "b"]},
        {"counts_characters": True},
    )
    for change in changes:
        known |= {method.topic(SimpleNamespace(**{**vars(texts), **change})) for method in methods}  # type: ignore[arg-type]
    assert known == set(advice.ADVICE)


@pytest.mark.parametrize("name", packaged())
def test_a_recipe_takes_all_advice_and_then_does_it_already(name: str) -> None:
    """Each `KEY=VALUE` is one that this recipe has, also where words or copying come together."""
    for topic in TOPICS.get(name.partition("/")[0], ("texts",)):
        for some in advice.ADVICE[topic]:
            if some is advice.UPDATES:
                continue
            values = flat(read_recipe(name).model_dump(mode="json"))
            changes = shlex.split(" ".join(some.changes(values)))
            assert some.for_recipe(read_recipe(name, changes)) == "", (some.says, changes)


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        (
            "sentence_pair/sick",
            [],
            ["model.encoder.compare=words", "data.sentence1.vectors=wordllama"],
        ),
        ("sentence_pair/sample_words", [], ["data.sentence1.vectors=wordllama"]),
        ("image_classification/sample_plain", [], ["model.encoder.backbone=efficientnet_lite0"]),
        ("image_question_answering/daquar_plain", [], ["data.question.lowercase=true"]),
        ("translation/multi30k_initial", [], ["'model.bridge={kind: attention}'"]),
        ("summarization/bbc_copy", [], ["data.source.vectors=wordllama"]),
        ("summarization/bbc_copy", ["model.decoder.copying=false"], ["model.decoder.copying=true"]),
        ("transliteration/dakshina_attention", [], ["model.encoder.dropout=0.5"]),
        ("document_classification/sample_bag", [], ["data.source.lowercase=true"]),
    ],
)
def test_advice_names_the_keys_of_the_recipe(
    name: str, changes: list[str], expected: list[str]
) -> None:
    topics = TOPICS.get(name.partition("/")[0], ("texts",))
    given = [
        said
        for said in advice.advice_for(topics[0], read_recipe(name, changes))
        if "learning." not in said
    ]
    assert expected[0] in given[0]
    assert all(any(change in said for said in given) for change in expected)
    assert not any("kind: bag" in said for said in given)


def test_weights_of_each_label_are_no_plain_loss() -> None:
    weighted = read_recipe(RECIPE, ["loss.class_weights={animals: 5}"], NOTHING)
    assert any("loss.class_weights=null" in said for said in advice.advice_for("labels", weighted))


def test_components_of_ones_own_are_left_alone() -> None:
    values: dict[str, Any] = {"loss.smoothing": 0.0}
    values |= {f"model.{part}.kind": "mine:Part" for part in ("encoder", "bridge")}
    for some in {some for topic in advice.ADVICE.values() for some in topic} - {advice.UPDATES}:
        assert list(some.changes(values)) == []


# Where it is shown.


def test_a_run_has_them(trained: sixjars.Run) -> None:
    assert [found.name for found in trained.baselines] == ["the most frequent label", LINEAR]
    for found in trained.baselines:
        assert [score.name for score in found.scores] == [score.name for score in trained.scores]
        assert [score.count for score in found.scores] == [30, 30]
        assert found.rows == 300
    assert trained.beside.startswith(f"accuracy@1: {LINEAR} reaches ")
    assert LINEAR in trained._repr_html_()


def test_the_linear_model_is_scored_as_scikit_learn_says(trained: sixjars.Run) -> None:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.multiclass import OneVsRestClassifier

    from sixjars.samples import generate

    rows = generate("document_classification", size=300, valid=5, test=30)
    texts = {name: [row["document"] for row in split] for name, split in rows.items()}
    labels = {name: [row["topic"] for row in split] for name, split in rows.items()}
    counted = TfidfVectorizer(ngram_range=(1, 2))
    train = counted.fit_transform(texts["train"])
    single = LogisticRegression(C=10, solver="liblinear", dual=True, random_state=0)
    model = OneVsRestClassifier(single).fit(train, labels["train"])
    given = model.predict(counted.transform(texts["test"]))
    found = trained.baselines[1]
    assert found.value("accuracy@1") == pytest.approx(accuracy_score(labels["test"], given))
    f1 = f1_score(labels["test"], given, average="macro")
    assert found.value("macro_f1") == pytest.approx(f1)


def test_train_says_it_and_the_switch_is_silent(call: Call, tmp_path: Path) -> None:
    def trained(name: str, *switch: str) -> str:
        said = call("train", RECIPE, *FEW, *CPU, *switch, "--out", tmp_path / name)
        assert said.code == 0
        assert (tmp_path / name / FILE).is_file() == (not switch)
        return said.out

    assert "without a network, on the same examples:" in (out := trained("with"))
    assert f"\naccuracy@1: {LINEAR} reaches " in out
    out = trained("without", "--no-baselines")
    assert "network" not in out
    assert "reaches" not in out


def test_evaluate_says_it_and_the_switch_is_silent(call: Call, run: Path) -> None:
    def told(*options: str) -> str:
        return call("evaluate", run, *CPU, *options).out

    assert f"\naccuracy@1: {LINEAR} reaches " in told()
    baselines = json.loads(told("--json"))["baselines"]
    assert [own["name"] for own in baselines] == ["the most frequent label", LINEAR]
    assert set(baselines[0]["scores"]) == {"accuracy@1", "macro_f1"}
    assert "reaches" not in told("--no-baselines")
    assert json.loads(told("--json", "--no-baselines"))["baselines"] == []


def test_compare_says_it_and_the_switch_is_silent(call: Call, run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other")

    def told(out: str, *switch: str) -> str:
        said = call("compare", run, other, "--out", tmp_path / out, *CPU, *switch)
        assert said.code == 0, said.err
        return said.out

    begin = f"accuracy@1: {LINEAR} reaches"
    [line] = [line for line in told("all").splitlines() if line.startswith(begin)]
    assert "; run 0." in line
    assert "; other 0." in line
    table = (tmp_path / "all" / "comparison.md").read_text()
    assert "## Without a network, on the same examples" in table
    assert f"| {LINEAR} |" in table
    told("all.csv")
    assert f"\n{LINEAR}," in (tmp_path / "all.csv").read_text()
    assert LINEAR not in told("none.md", "--no-baselines") + (tmp_path / "none.md").read_text()


def test_the_report_shows_them_beside_the_scores(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    page = sixjars.report(run, out=out, device="cpu").read_text()
    assert f'<th scope="row">{LINEAR}</th>' in page
    assert '<th scope="row">this model</th>' in page
    assert f"accuracy@1: {LINEAR} reaches " in page
    assert LINEAR not in sixjars.report(run, out=out, device="cpu", baselines=False).read_text()


def test_a_comparison_says_which_runs_are_no_better() -> None:
    found = compared(one(LINEAR, 0.88))
    better, worse = found.contenders
    begins = f"accuracy@1: {LINEAR} reaches 0.880 in 2 s; a 0.900; b 0.800."
    ends = "No better: b; docs/bad_model.md says what to try."
    assert found.beside() == f"{begins} {ends}"
    equal = replace(worse, scores=(RunScore(score_of(0.88)),))
    assert "No better: b;" in replace(found, contenders=(better, equal)).beside()
    unsure = replace(better, scores=(RunScore(score_of(0.9), Interval(0.87, 0.93)),))
    by_chance = replace(found, contenders=(unsure, worse)).beside()
    assert by_chance == f"{begins} No difference that 4000 rows can show: a. {ends}"
    assert replace(found, baselines=()).beside() == ""


# What is kept.


def test_they_are_computed_once(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = sixjars.evaluate(run, device="cpu").baselines

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(run_baselines, "measured", never)
    assert sixjars.evaluate(run, device="cpu").baselines == first
    with pytest.raises(AssertionError):
        sixjars.evaluate(run, device="cpu", metrics=["micro_f1"])


def other_rows(folder: Path, count: int = 12) -> Path:
    from sixjars.samples import generate

    rows = generate("document_classification", size=1, valid=1, test=count + 30)["test"][30:]
    file = folder / f"other{count}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_other_data_has_its_own(run: Path, tmp_path: Path) -> None:
    before = read_entries(run)
    for number, count in enumerate((12, 13), start=1):  # then the data has changed
        found = sixjars.evaluate(run, data=other_rows(tmp_path, count), device="cpu")
        assert [score.count for own in found.baselines for score in own.scores] == [count] * 4
        assert len(read_entries(run)) == len(before) + number


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": 1}',
        b'{"format": 99, "entries": []}',
        b"\xff\x00",
        b'{"format": 1, "entries": [{"key": 3}]}',
    ],
)
def test_a_damaged_file_is_written_anew(run: Path, content: bytes) -> None:
    wanted = [own.scores for own in sixjars.evaluate(run, device="cpu").baselines]
    (run / FILE).write_bytes(content)
    assert [own.scores for own in sixjars.evaluate(run, device="cpu").baselines] == wanted
    assert len(read_entries(run)) == 1


def test_a_folder_that_cannot_be_written_keeps_none(run: Path) -> None:
    (run / FILE).unlink()
    (run / f".{FILE}.part").mkdir()  # where the file would be written, also for root
    notes = Notes()
    assert len(sixjars.evaluate(run, device="cpu", reporter=notes).baselines) == 2
    assert not (run / FILE).exists()
    assert notes.lines == []


def test_a_packed_run_has_them_and_stays_as_it_is(run: Path, call: Call, tmp_path: Path) -> None:
    packed = sixjars.pack(run, tmp_path / "run.sixjars")
    before = packed.read_bytes()
    of_packed, of_folder = (
        [own.scores for own in sixjars.evaluate(place, device="cpu").baselines]
        for place in (packed, run)
    )
    assert of_packed == of_folder != []
    assert LINEAR in sixjars.report(packed, out=tmp_path / "report.html", device="cpu").read_text()
    assert LINEAR in call("compare", packed, run, "--out", tmp_path / "both.md", *CPU).out
    assert packed.read_bytes() == before


def test_old_entries_leave(tmp_path: Path) -> None:
    entries = [
        BaselineEntry({"scored": str(number)}, (one(LINEAR, 0.5),), ("a note.",))
        for number in range(MOST + 2)
    ]
    for entry in entries:
        keep_entry(tmp_path, entry)
    assert len(read_entries(tmp_path)) == MOST
    assert kept_entry(tmp_path, {"scored": "1"}) is None
    assert kept_entry(tmp_path, {"scored": "5"}) == entries[5]


def test_a_metric_of_yours_is_computed_each_time(run: Path) -> None:
    calls = []

    def loud(outcomes: Any) -> float:
        calls.append(len(outcomes))
        return 0.5

    before = read_entries(run)
    for _ in range(2):
        found = sixjars.evaluate(run, device="cpu", metrics=["loud"], components=[loud])
    assert found.baselines[0].value("loud") == 0.5
    assert read_entries(run) == before
    assert len(calls) >= 6  # the model and two baselines, twice


# What is needed.


def own_run(folder: Path, count: int = 20, *more: str) -> Path:
    """A run that was trained on a file."""
    data = [f"data.train={other_rows(folder, count)}", "data.sample=null"]
    changes = [*data, "data.source.column=document", "learning.steps=1", *more]
    return sixjars.train(RECIPE, changes, out=folder / "own", device="cpu").folder


def test_rows_that_were_learned_from_have_none(tmp_path: Path) -> None:
    run = own_run(tmp_path, 40, "data.valid=0.3")
    assert notes_of_evaluation(run, data=other_rows(tmp_path, 40)) == [LEARNED]
    assert len(sixjars.evaluate(run, device="cpu").baselines) == 2


def test_without_the_training_set_there_is_a_note(tmp_path: Path) -> None:
    from sixjars.samples import generate

    rows = generate("document_classification", size=60, valid=20, test=20)
    table: dict[str, Any] = {"train": rows["train"], "valid": rows["valid"]}
    changes = ["data.source.column=document", "learning.steps=1"]
    out = tmp_path / "run"
    run = sixjars.train(RECIPE, changes, data=table, out=out, device="cpu", baselines=False)
    assert notes_of_evaluation(run.folder, data=rows["test"]) == [
        f"{NO_BASELINES}memory:train is data that was in memory, not a "
        "file; give it again from Python: data={'train': TABLE}."
    ]


NO_BASELINES = "no baselines beside it, for they learn from the training set: "


def notes_of_evaluation(run: Path, data: Any) -> list[str]:
    """The notes where a file is scored and there are no baselines beside it."""
    notes = Notes()
    evaluation = sixjars.evaluate(run, data=data, device="cpu", reporter=notes)
    assert evaluation.baselines == ()
    return notes.lines


def test_other_data_is_scored_where_the_training_set_has_changed(tmp_path: Path) -> None:
    run, file = own_run(tmp_path, 20, "data.valid=0.3"), tmp_path / "other20.jsonl"
    file.write_text(file.read_text().replace("{", "{ "))
    assert len(sixjars.evaluate(run, data=other_rows(tmp_path, 9), device="cpu").baselines) == 2
    file.write_text(file.read_text() + file.read_text().splitlines()[0] + "\n")
    [note] = notes_of_evaluation(run, other_rows(tmp_path, 8))
    assert note.startswith(f"{NO_BASELINES}the data of {run} has changed since ")


def test_other_data_is_scored_where_an_old_run_does_not_say_its_data(tmp_path: Path) -> None:
    run = own_run(tmp_path, 20, "data.valid=0.3")
    remembered = json.loads((run / "run.json").read_text())
    del remembered["data"]
    (run / "run.json").write_text(json.dumps(remembered))
    [note] = notes_of_evaluation(run, other_rows(tmp_path, 9))
    assert note.endswith("run.json is missing or damaged, so its data cannot be checked.")


def test_a_training_set_on_the_hub_or_a_large_one_is_not_read_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_run(own_run(tmp_path, 20, "data.valid=0.3"))
    data = opened.recipe.data.model_copy(update={"train": "hf:user/name"})
    on_hub = replace(opened, recipe=opened.recipe.model_copy(update={"data": data}))
    with pytest.raises(
        DataError, match=r"^hf:user/name is on the hub, and is not fetched for that\.$"
    ):
        training_set(on_hub)
    monkeypatch.setattr("sixjars.runs.evaluate.LARGEST", 100)
    with pytest.raises(DataError, match=r"^0 MB of it are too many to read for that\.$"):
        training_set(opened)


def test_images_are_not_decoded_again_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = ["data.sample.size=8", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    run = sixjars.train("image_captioning/sample_initial", few, out=tmp_path / "run", device="cpu")
    assert len(training_set(open_run(run.folder))) == 8
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "empty"))
    lost = r"^what was read of the image files is not in the cache any more\.$"
    with pytest.raises(RunError, match=lost):
        training_set(open_run(run.folder))


def test_whoever_stops_them_has_all_else(
    call: Call, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_baselines, "measured", stopped)
    (run / FILE).unlink()
    for command in (["train", RECIPE, *FEW, "--out", tmp_path / "run2"], ["evaluate", run]):
        said = call(*command, *CPU)
        assert said.code == 0
        assert f"note: {STOPPED}" in said.err
        assert "  accuracy@1  " in said.out
        assert "without a network" not in said.out
    with pytest.raises(Interrupted, match=r"^stopped; the same command with --resume goes on"):
        own_run(tmp_path, 30, "learning.folds=2")  # two more trainings would come


def test_time_is_a_tenth_or_two_seconds(recipe: Recipe) -> None:
    metrics = metrics_of(recipe, NOTHING)
    assert (SHARE, LEAST) == (0.1, 2.0)
    assert BaselineScoring.of(recipe, metrics, took=3.0).seconds == 2.0
    assert BaselineScoring.of(recipe, metrics, took=300.0).seconds == 30.0


def test_folds_have_the_mean(tmp_path: Path) -> None:
    data = [f"data.train={other_rows(tmp_path, 40)}", "data.sample=null"]
    changes = [*data, "data.source.column=document", "learning.folds=2", "learning.steps=1"]
    run = sixjars.train(RECIPE, changes, out=tmp_path / "run", device="cpu")
    each = [read_entries(run.folder / "folds" / str(number))[0].baselines for number in (1, 2)]
    for at, found in enumerate(run.baselines):
        wanted = sum(float(fold[at].value("accuracy@1") or 0) for fold in each) / 2
        assert found.value("accuracy@1") == pytest.approx(wanted)
        assert found.scores[0].count == 40
    assert len(run.baselines) == 2
    alone = sixjars.baselines(RECIPE, changes)
    assert [own.scores for own in alone] == [own.scores for own in run.baselines]
    assert sixjars.evaluate(run.folder, device="cpu").baselines == ()  # it learned from all rows


# From Python.


def rows_of_two(count: int = 60) -> list[dict[str, str]]:
    words = {"good": "fine great film joy".split(), "bad": "dull long film bore".split()}
    return [
        {"text": f"{words[label][n % 4]} number {n} {words[label][(n + 1) % 4]}", "label": label}
        for n in range(count)
        for label in ("good", "bad")
    ]


def test_a_recipe_as_a_dict_and_a_table() -> None:
    rows = rows_of_two()
    recipe = {
        "task": "document_classification",
        "data": {"source": {"column": "text"}, "label": {"column": "label"}},
        "model": {"encoder": {"kind": "text"}},
    }
    found = sixjars.baselines(recipe, data={"train": rows[:80], "valid": rows[80:]})
    assert [own.value("accuracy@1") for own in found] == [0.5, 1.0]


def test_a_table_and_a_task(tmp_path: Path) -> None:
    rows = rows_of_two(150)
    found = sixjars.baselines(rows, task="document_classification")
    assert [own.name for own in found] == ["the most frequent label", LINEAR]
    assert found[1].value("accuracy@1") == 1.0
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    again = sixjars.baselines(file, task="document_classification")
    assert [own.scores for own in again] == [own.scores for own in found]


def test_notes_reach_the_reporter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sixjars.evaluation.baselines.table.find_spec", lambda name: None)
    notes = Notes()
    found = sixjars.baselines(RECIPE, FEW, reporter=notes)
    assert [own.name for own in found] == ["the most frequent label"]
    assert notes.lines[-1].endswith("Run: pip install 'sixjars[baselines]'")


@pytest.mark.parametrize(
    ("data", "options", "sentence"),
    [
        (
            3,
            {"task": "document_classification"},
            "data must be a pandas or Arrow table, or a list of dicts, but is 3 (int).",
        ),
        (
            rows_of_two(),
            {},
            "data in memory needs a task: sixjars.baselines(TABLE, task='document_classification').",
        ),
        (
            RECIPE,
            {"columns": {"source": "text"}},
            "columns are for data with a task; a recipe names its own.",
        ),
    ],
)
def test_what_is_refused(data: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(DataError) as caught:
        sixjars.baselines(data, **options)
    assert str(caught.value) == sentence


def test_an_error_in_a_table_names_no_file() -> None:
    rows: list[dict[str, Any]] = [*rows_of_two()]
    for row in rows[3::4]:
        row["label"] = None
    with pytest.raises(DataError) as caught:
        sixjars.baselines(rows, task="document_classification")
    assert str(caught.value) == f"the table, row 4: column 'label' has no value.{LEAVE_ROWS_OUT}"
    skipping = ["data.on_bad_row=skip"]  # as is advised
    assert sixjars.baselines(rows, skipping, task="document_classification")


def test_it_is_said_what_was_read_of_a_table_and_what_was_left_out() -> None:
    rows: list[dict[str, Any]] = [*rows_of_two()]
    rows[3]["label"] = None
    notes = Notes()
    found = sixjars.baselines(rows, task="document_classification", reporter=notes)
    assert notes.lines[:2] == [
        "source = 'text' (by its name), label = 'label' (by its name).",
        "the table: 1 bad row was skipped. Row 4: column 'label' has no value.",
    ]
    assert found[1].value("accuracy@1") == 1.0


def test_what_compare_prints_for_programs_is_that_of_evaluate(
    call: Call, run: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(run, tmp_path / "other")
    said = call("compare", run, other, "--out", tmp_path / "all", *CPU, "--json")
    compared = json.loads(said.out)["baselines"]
    assert compared == json.loads(call("evaluate", run, "--json", *CPU).out)["baselines"]
    assert [baseline["name"] for baseline in compared] == ["the most frequent label", LINEAR]
