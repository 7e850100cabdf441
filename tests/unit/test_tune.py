"""Parameter search: real runs of few trials through the command line; pruning, resuming, failing, several at once."""

import csv
import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import Interrupted, LearningError, RecipeError, RunError
from sixjars.progress import Reporter
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.tuning import trial, trial_process
from sixjars.tuning.result import Tuning
from sixjars.tuning.search_space import TRIALS, SearchSpace, check_installed, space_of
from sixjars.tuning.study import FILE, Study, StudyPurpose
from sixjars.tuning.trial import TrialEnd, TrialObjects, TrialSettings, try_order
from sixjars.tuning.trial_process import TrialProcess, place_of
from sixjars.tuning.tune import TuningPlan, check_values

# in this process; the searches that are killed draw in their own
pytestmark = pytest.mark.usefixtures("unrendered")
Maker = Callable[..., Any]
RATE = "learning.rate=log(1e-3,1e-1)"
AIM = StudyPurpose("", {}, "loss", "lower", 0)
EXACT = {"metrics": ["exact_match"]}
BAD = "learning.rate=[0.03,1e-6]"
LINE = r"trial (\d) of (\d)  learning\.rate (\S+)  loss \S+( best)?(  pruned at epoch \S+)?  \d+ s(, about .* left)?"


class Kept(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def tried(self, sentence: str) -> None:
        self.lines.append(sentence)

    def note(self, sentence: str) -> None:
        self.lines.append(f"note: {sentence}")


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def never_scores_the_test_set(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever is scored is noted down."""
    from sixjars.runs import train

    seen: list[str] = []
    before = vars(train)["judged"]

    def judged(network: Any, dataset: Any, *rest: Any, **more: Any) -> Any:
        seen.append(dataset.where)
        return before(network, dataset, *rest, **more)

    monkeypatch.setattr(train, "judged", judged)
    return seen


def test_four_trials_and_two_more(
    call: Maker, recipe: Maker, tmp_path: Path, never_scores_the_test_set: list[str]
) -> None:
    file, out = recipe(learning={"epochs": 4, "metric": "loss"}), tmp_path / "search"
    said = call("tune", file, RATE, "--trials", 4, "--out", out, "--device", "cpu")
    assert said.code == 0, said.err
    assert set(never_scores_the_test_set) == {"the validation set of the sample"}
    lines = [line for line in said.err.splitlines() if not line.startswith("note: ")]
    assert [re.fullmatch(LINE, line) is not None for line in lines] == [True] * 4, lines
    begins = "loss on the validation set (lower is better); the test set was not scored\n"
    assert said.out.startswith(begins)
    train = f"sixjars train {out}/best.yaml --out {out}/best"
    assert said.out.endswith(f"train and score it: {train}\n")
    rows = rows_of(out)
    assert list(rows[0]) == "number learning.rate score state epochs seconds why".split()
    assert [row["number"] for row in rows] == ["1", "2", "3", "4"]
    assert {row["state"] for row in rows} <= {"complete", "pruned"}
    assert (out / "tune.png").is_file()
    assert {path.name for path in (out / "trials/001").iterdir()} == {"log.jsonl", "recipe.yaml"}
    complete = [row for row in rows if row["state"] == "complete"]
    best = min(complete, key=lambda row: float(row["score"]))
    log = (out / f"trials/00{best['number']}/log.jsonl").read_text().splitlines()
    assert float(best["score"]) == min(json.loads(line)["loss"] for line in log)
    assert sixjars.read_recipe(out / "best.yaml").learning.rate == float(best["learning.rate"])
    head = (out / "best.yaml").read_text().splitlines()[:4]
    assert head[0] == f"# The best of 4 trials of a parameter search, trial {best['number']}."
    assert head[3] == f"# Run     {train}"
    more = ["--trials", 6, "--out", out, "--resume"]
    found = json.loads(call("tune", file, RATE, *more, "--device", "cpu", "--json").out)
    assert [row["number"] for row in found["trials"]] == [1, 2, 3, 4, 5, 6]
    rates = [str(row["learning.rate"]) for row in found["trials"][:4]]
    assert rates == [row["learning.rate"] for row in rows]
    assert found["split"] == "valid"
    assert call("train", out / "best.yaml", "--out", out / "best").code == 0
    told = call("tune", file, RATE, *more)
    assert (told.code, told.err) == (0, "")


def test_bad_values_are_pruned(recipe: Maker, tmp_path: Path) -> None:
    """Rates that learn nothing, after two that do."""
    file, kept = recipe(learning={"epochs": 3, "metric": "loss"}), Kept()
    space = [BAD, "data.source.max_length=[97,98,99]"]  # the length makes no difference
    out = tmp_path / "search"
    found = sixjars.tune(file, space, trials=6, out=out, device="cpu", reporter=kept)
    learned, not_learned = (
        [row for row in found.trials if row["learning.rate"] == rate] for rate in (0.03, 1e-6)
    )
    assert all(row["state"] == "complete" for row in learned)
    pruned = [row for row in not_learned if row["state"] == "pruned"]
    assert pruned
    assert {row["epochs"] for row in pruned} == {2.0}
    assert any("pruned at epoch 2" in line for line in kept.lines)
    assert found.best["learning.rate"] == 0.03
    assert found.trials == sixjars.tune(file, space, trials=6, out=out, resume=True).trials
    assert "<td>pruned</td>" in found._repr_html_()


def test_higher_is_better_where_the_metric_says_so(recipe: Maker, tmp_path: Path) -> None:
    file = recipe(learning={"epochs": 3, "metric": "exact_match"}, evaluation=EXACT)
    found = sixjars.tune(file, [BAD], trials=3, out=tmp_path / "search", device="cpu")
    assert (found.metric, found.better) == ("exact_match", "higher")
    scores = enumerate((0.2, 0.9, 0.9), start=1)
    rows = tuple({"number": n, "score": score, "state": "complete"} for n, score in scores)
    for way, number in (("higher", 2), ("lower", 1)):
        assert (Tuning(tmp_path, "m", way, {}, rows).best_trial or {})["number"] == number  # type: ignore[arg-type]


def test_a_search_that_is_stopped_tries_the_same_values(recipe: Maker, tmp_path: Path) -> None:
    file = recipe(learning={"epochs": 1, "metric": "loss"})
    values: Any = {"trials": 3, "device": "cpu", "seed": 5}

    def search(name: str, **options: Any) -> Tuning:
        space = [RATE, "model.encoder.size=[4,8]"]
        return sixjars.tune(file, space, out=tmp_path / name, **values, **options)

    whole = search("whole")

    class Stops(Kept):
        def preparing(self, what: str, *, done: int, total: int) -> None:
            if what.startswith("trial 2") and done == 2:
                signal.raise_signal(signal.SIGINT)

    kept = Stops()
    with pytest.raises(Interrupted) as caught:
        search("s", resume=True, reporter=kept)
    stopped = "stopped after 1 of 3 trials; the same command with --resume goes on."
    assert str(caught.value) == stopped
    begun = f"note: there is no search in {tmp_path / 's'} to resume yet, so one is begun."
    assert kept.lines[0] == begun
    assert len(rows_of(tmp_path / "s")) == 1
    with (tmp_path / "s" / FILE).open("ab") as journal:
        journal.write(b'{"op_code": 4, "half a li')  # as a kill may leave it
    calm = Kept()
    found = search("s", resume=True, reporter=calm)
    assert not any("to resume yet" in line for line in calm.lines)
    timeless = [[{**row, "seconds": 0} for row in one.trials] for one in (whole, found)]
    assert timeless[0] == timeless[1]


@pytest.mark.usefixtures("quick_trials")
def test_two_at_once_and_one_that_fails(call: Maker, recipe: Maker, tmp_path: Path) -> None:
    """A learning rate that makes the loss overflow fails with a sentence; the others go on."""
    learning = {"epochs": 2, "metric": "loss", "optimizer": "sgd", "clip": None}
    file, out = recipe(learning=learning), tmp_path / "search"
    said = call("tune", file, "learning.rate=[0.01,1e38]", "--jobs", 2, "--trials", 4, "--out", out)
    assert said.code == 0, said.err
    states = {(row["learning.rate"], row["state"]) for row in rows_of(out)}
    assert states <= {("0.01", "complete"), ("0.01", "pruned"), ("1e+38", "failed")}
    assert len(states) > 1
    failed = [row["why"] for row in rows_of(out) if row["state"] == "failed"]
    assert all("no longer a number" in why for why in failed)
    assert f"failed: {failed[0]}" in said.err
    # of the data, which all share: once
    assert said.err.count("\nnote: the validation set has ") == 1, said.err


QUICK = """
import os
from sixjars.tuning import trial_process
code = f"import os; os.getppid = lambda: {{os.getpid()}}; from sixjars.tuning.trial_process import main; main()"
trial_process.ONE_OF = [{python!r}, "-c", code]
"""
"""As `quick_trials`, for a search in a process of its own."""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_search_that_is_killed_keeps_its_trials(
    server: Any, recipe: Maker, tmp_path: Path, jobs: int, warm_python: str
) -> None:
    file, out = recipe(learning={"epochs": 2, "metric": "loss"}), tmp_path / "search"
    given = ["--trials", 50, "--out", out, "--device", "cpu", "--jobs", jobs]
    process = server.start("tune", file, RATE, *given, before=QUICK.format(python=warm_python))
    while not (out / "trials.csv").is_file():
        time.sleep(0.05)
    process.kill(signal.SIGTERM)
    said = process.wait()
    assert said.code == 130
    stopped = r"sixjars: stopped after \d+ of 50 trials; the same command with --resume goes on\."
    assert re.fullmatch(stopped, said.err.splitlines()[-1])
    assert (out / "tune.png").read_bytes().startswith(b"\x89PNG")
    count = len(rows_of(out)) + 1
    found = sixjars.tune(file, [RATE], trials=count, out=out, resume=True, device="cpu")
    assert len(found.trials) == count


@pytest.mark.usefixtures("quick_trials", "heeds_ctrl_c")
def test_a_signal_waits_until_the_journal_is_written(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it comes while Optuna releases its lock, whose file it has removed already."""
    file = recipe(learning={"epochs": 2, "metric": "loss"})
    out, removed = tmp_path / "search", os.unlink

    def unlink(path: Any, **more: Any) -> None:
        removed(path, **more)
        if str(path).endswith(".rename") and (out / "trials.csv").is_file():
            monkeypatch.undo()
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(os, "unlink", unlink)
    with pytest.raises(Interrupted) as caught:
        sixjars.tune(file, [RATE], trials=9, out=out, device="cpu")
    assert str(caught.value).startswith("stopped after ")
    assert not list(out.glob("*.lock*"))
    count = len(rows_of(out)) + 1
    found = sixjars.tune(file, [RATE], trials=count, out=out, resume=True, device="cpu")
    assert len(found.trials) == count


def failing(
    sentence: str, monkeypatch: pytest.MonkeyPatch, kind: type[Exception] = LearningError
) -> None:
    def fit(*given: Any, **more: Any) -> None:
        raise kind(sentence)

    monkeypatch.setattr(trial, "fit", fit)


def test_a_search_without_hope_ends(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing("it diverged.", monkeypatch)
    told = sentence_of(RunError, recipe(), [RATE], trials=9, out=tmp_path / "a", device="cpu")
    assert told == "the first 3 trials all failed; the last one: it diverged."
    told = sentence_of(RunError, recipe(), [RATE], trials=2, out=tmp_path / "b", device="cpu")
    assert told == f"no trial was completed; {tmp_path / 'b' / 'trials.csv'} says why."
    assert [row["why"] for row in rows_of(tmp_path / "b")] == ["it diverged."] * 2


def test_memory_that_is_short_and_our_own_mistakes(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = TrialSettings(sixjars.read_recipe(recipe()).to_yaml(), str(tmp_path / "t"), "cpu")
    failing("CUDA out of memory. Tried to allocate 2 GiB", monkeypatch, RuntimeError)
    sentence = "there is not enough memory for this; make batches or sizes smaller."
    assert try_order(order, lambda score: True, TrialObjects()) == TrialEnd("failed", sentence)
    failing("a mistake of ours", monkeypatch, RuntimeError)
    with pytest.raises(RuntimeError, match="a mistake of ours"):
        try_order(order, lambda score: True, TrialObjects())


def test_a_score_that_is_no_number(recipe: Maker, tmp_path: Path) -> None:
    def nothing(outcomes: Any) -> float:
        return float("nan")

    file, values = recipe(learning={"metric": "nothing"}), {"trials": 3, "components": [nothing]}
    told = sentence_of(RunError, file, [RATE], out=tmp_path / "s", device="cpu", **values)
    sentence = "nothing on the validation set is not a number; try a lower learning.rate."
    assert told == f"the first 3 trials all failed; the last one: {sentence}"


def test_values_that_no_recipe_takes(recipe: Maker, tmp_path: Path) -> None:
    optimizers = "learning.optimizer=[adam,adamm]"
    space = ["learning.rat=log(1e-3,1)", optimizers, "model.encoder.size=uniform(3,9)"]
    with pytest.raises(RecipeError) as caught:
        sixjars.tune(recipe(), space, out=tmp_path / "s")
    told = [fault.partition(" Known:")[0] for fault in caught.value.faults]
    assert told == [
        "learning: key 'rat' is unknown. Did you mean 'rate'?",
        "learning.optimizer: should be 'adam', 'adamw', 'sgd' or 'adadelta', but is 'adamm'. Did you mean 'adam'?",
        "model.encoder.size: should be a valid integer, but is 3.0.",
        "model.encoder.size: should be a valid integer, but is 9.0.",
    ]
    assert not (tmp_path / "s").exists()


def test_a_value_that_fits_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def recipe_with(plan: TuningPlan, values: Any) -> Any:
        seen.append(values)

    monkeypatch.setattr(TuningPlan, "recipe", recipe_with)
    plan = TuningPlan({}, "", tmp_path, AllowedCode(), "cpu", None)
    check_values(plan, space_of([f"learning.{key}=uniform(0,1)" for key in "abcdefg"]))
    assert len(seen) == 14


def test_values_that_only_fit_together(recipe: Maker, tmp_path: Path) -> None:
    """With tied weights two sizes must be equal: other combinations are failed trials."""
    sizes = [f"model.decoder.{key}=[8,16]" for key in ("size", "embedding.size")]
    sizes.append("model.decoder.tied=true")
    file = recipe(learning={"epochs": 1, "steps": 1, "metric": "loss"})
    found = sixjars.tune(file, sizes, trials=6, out=tmp_path / "s", device="cpu", seed=1)
    for row in found.trials:
        fits = row["model.decoder.size"] == row["model.decoder.embedding.size"]
        assert (row["state"] != "failed") == fits
    assert {row["state"] == "failed" for row in found.trials} == {True, False}


def test_fine_tuning_is_searched_too(recipe: Maker, tmp_path: Path) -> None:
    file, old = recipe(learning={"steps": 1, "metric": "loss"}), tmp_path / "old"
    sixjars.train(file, out=old, device="cpu")
    found = sixjars.tune(file, [RATE], trials=1, out=tmp_path / "s", from_run=old, device="cpu")
    command = f"sixjars train {tmp_path}/s/best.yaml --out {tmp_path}/s/best --from {old}"
    assert found.command == command
    begun = sixjars.train(found.recipe, out=tmp_path / "new", from_run=old, device="cpu")
    assert begun.history[0]["loss"] == found.score
    new = tmp_path / "new"
    (new / "model.safetensors").rename(tmp_path / "away")
    told = sentence_of(RunError, file, [RATE], out=tmp_path / "t", from_run=new)
    assert told == f"{new} has no trained weights yet (model.safetensors); train it first."
    (tmp_path / "away").rename(new / "model.safetensors")
    options: Any = {"trials": 2, "out": tmp_path / "s", "resume": True}
    for other in (None, new):
        told = sentence_of(RunError, file, [RATE], from_run=other, **options)
        assert told.startswith(f"{tmp_path / 's'} holds a search with another ")
        assert told.endswith("--from; resume with the same, or choose another --out.")


def test_a_table_in_memory_and_a_recipe_as_a_dict(tmp_path: Path) -> None:
    rows = [{"en": f"word{n % 4} and more", "de": f"wort{n % 3} und mehr"} for n in range(24)]
    wanted = {
        "task": "translation",
        "data": {"valid": 0.25, "source": {"column": "en"}, "target": {"column": "de"}},
        "model": {"encoder": {"size": 4}, "bridge": {"kind": "initial"}, "decoder": {"size": 4}},
        "learning": {"steps": 1},
    }
    space = {"learning.rate": [0.1, 0.01]}
    found = sixjars.tune(wanted, space, data=rows, trials=2, out=tmp_path / "s", device="cpu")
    assert found.metric == "bleu"
    assert sixjars.train(found.recipe, data=rows, out=tmp_path / "best", device="cpu").scores


def sentence_of(error: type[Exception], *given: Any, **more: Any) -> str:
    with pytest.raises(error) as caught:
        sixjars.tune(*given, **more)
    return str(caught.value)


MEMORY = "tables and classes in memory stay in this process; leave out jobs, or name files and allow=[…]."
FOLDS = "a search scores one validation set; remove it, or say learning.folds=null."
TOKENS = "data.target.max_length changes the tokens that loss is the mean of; choose another metric: learning.metric=NAME."


@pytest.mark.parametrize(
    ("space", "options", "sentence"),
    [
        ([RATE], {"trials": 0}, "the search space: trials must be 1 or more, but is 0."),
        ([RATE], {"jobs": 0}, "the search space: jobs must be 1 or more, but is 0."),
        ([RATE], {"jobs": 2, "components": [Kept]}, f"the search space: jobs: {MEMORY}"),
        ([RATE, "learning.folds=3"], {}, f"this recipe: learning.folds: {FOLDS}"),
        (["data.target.max_length=[9,99]", "learning.metric=loss"], {}, f"the search space: {TOKENS}"),
        ([RATE, "learning.epochs=few"], {}, "FILE: learning.epochs: "),
    ],
)  # fmt: skip
def test_searches_that_cannot_begin(
    recipe: Maker, tmp_path: Path, space: list[str], options: dict[str, Any], sentence: str
) -> None:
    file, out = recipe(learning={"steps": 1}), tmp_path / "s"
    told = sentence_of(RecipeError, file, space, out=out, **options).replace(str(file), "FILE")
    assert told == sentence or (told.startswith(sentence) and sentence.endswith(": "))
    assert not out.exists()


def test_searches_that_are_there_already(
    recipe: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, out = recipe(learning={"steps": 1}), tmp_path / "s"
    sixjars.tune(file, [RATE], trials=1, out=out, device="cpu")
    told = sentence_of(RunError, file, [RATE], trials=1, out=out)
    remedy = "go on with --resume, or choose another folder with --out."
    assert told == f"{out} holds a search already; {remedy}"
    space = ["learning.rate=[1,2]"]
    told = sentence_of(RunError, file, space, trials=1, out=out, resume=True, seed=3)
    remedy = "resume with the same, or choose another --out."
    assert told == f"{out} holds a search with another space and seed; {remedy}"
    monkeypatch.setitem(sys.modules, "optuna", None)
    told = sentence_of(sixjars.SixJarsError, file, [RATE], out=out)
    assert told == "optuna is not installed. Run: pip install 'sixjars[tune]'"


def test_help_names_the_usual_number_of_trials(call: Maker) -> None:
    told = re.sub(r"\n +", " ", call("tune", "--help").out)
    assert f"How many in all.  [default: {TRIALS}]" in told


def test_a_journal_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no journal\n{}\n")
    told = r"study\.journal is damaged \(.*\); begin again with another --out\.$"
    with pytest.raises(RunError, match=told):
        Study(tmp_path, AIM, SearchSpace({}), trials=1)


def test_no_combination_is_tried_twice(recipe: Maker, tmp_path: Path) -> None:
    space = space_of(["a.b=[1,true,null]", "a.c=int(1,3)", "a.d=[[x],[y]]"])
    seen = []
    for _ in range(2):
        study = Study(tmp_path / "a", AIM, space, trials=99)
        assert study.trials == space.count == 18
        left = study.ask()  # and killed: it is tried again
        study = Study(tmp_path / "a", AIM, space, trials=99)
        for _ in range(9):
            asked = study.ask()
            assert asked is not None
            assert left is None or asked.values == left.values
            left = None
            study.report(asked, 1.0)
            study.end(asked, TrialEnd("complete"), seconds=1.0)
            seen.append(json.dumps(asked.values))
    assert study.ask() is None
    assert len(set(seen)) == 18
    file, kept = recipe(learning={"steps": 1, "metric": "loss"}), Kept()
    cells = ["model.encoder.cell=[gru,lstm]"]
    found = sixjars.tune(file, cells, trials=5, out=tmp_path / "s", device="cpu", reporter=kept)
    told = "note: there are 2 combinations of these values, so there are as many trials."
    assert kept.lines[0] == told
    assert {row["model.encoder.cell"] for row in found.trials} == {"gru", "lstm"}
    assert len(found.trials) == 2


def test_a_trial_that_had_ended_when_the_search_was_killed(tmp_path: Path) -> None:
    """Killed between two lines of the journal, or in the middle of a trial: nothing is lost, nothing is made twice."""
    space = space_of([RATE])
    study = Study(tmp_path, AIM, space, trials=2)
    first, second = study.ask(), study.ask()
    assert first is not None
    assert second is not None
    assert study.ask() is None
    study.report(first, 1.5)
    study.report(first, 1.25)
    study._tell = lambda key, params, row: None  # type: ignore[method-assign]
    row = study.end(first, TrialEnd("complete", epochs=2.0), seconds=3.04)
    assert row["score"] == 1.25
    later = Study(tmp_path, AIM, space, trials=2)
    assert later.rows() == [
        {"number": 1, **first.values, "score": 1.25, "state": "complete", "epochs": 2.0}
        | {"seconds": 3.0, "why": ""}
    ]
    again = later.ask()
    assert again is not None
    assert (again.number, again.values) == (2, second.values)
    check_installed()


def test_each_job_has_its_gpu_and_its_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    places = [place_of(job, 3, gpus=2) for job in range(3)]
    assert [place["CUDA_VISIBLE_DEVICES"] for place in places] == ["0", "1", "0"]
    assert {place["OMP_NUM_THREADS"] for place in places} == {"2"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert [place_of(job, 2, gpus=2)["CUDA_VISIBLE_DEVICES"] for job in range(2)] == ["5", "7"]
    assert "CUDA_VISIBLE_DEVICES" not in place_of(0, 2, gpus=1)


@pytest.mark.parametrize("size", [0, 1_000_000], ids=["a short order", "more than a pipe holds"])
def test_a_process_that_dies(size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = TrialSettings("a" * size, str(tmp_path), "cpu")

    def ended(code: str) -> TrialEnd:
        monkeypatch.setattr(trial_process, "ONE_OF", [sys.executable, "-c", code])
        process = TrialProcess({}, print)
        try:
            return process.try_order(order, lambda score: True)
        finally:
            process.close()

    killed = "its process was killed (signal 9), perhaps because memory was short."
    assert ended("import os; os.kill(os.getpid(), 9)") == TrialEnd("failed", killed)
    with pytest.raises(RunError) as caught:
        ended("raise ValueError('no jar')")
    why = "a trial ended unexpectedly (ValueError: no jar); with --jobs 1 it says where."
    assert str(caught.value) == why
    with pytest.raises(Interrupted):
        ended("raise SystemExit(130)")


def tuning(folder: Path, scores: list[float | None], **values: list[object]) -> Tuning:
    """A search with these scores; without one, a trial was pruned."""
    rows = []
    for at, score in enumerate(scores):
        row: dict[str, Any] = {"number": at + 1, **{key: some[at] for key, some in values.items()}}
        state = "pruned" if score is None else "complete"
        row |= {"score": 0.99 if score is None else score, "state": state}
        rows.append(row | {"epochs": 1.0, "seconds": 1.0, "why": ""})
    return Tuning(folder, "exact_match", "higher", dict.fromkeys(values, "names"), tuple(rows))


def test_a_tie_is_told(tmp_path: Path) -> None:
    whole = tuning(tmp_path, [0.5, 0.5, 0.5], rate=[1, 2, 3], size=[8, 8, 8])
    assert whole.tie_in_words == (
        "all 3 complete trials (1, 2 and 3) tie at exact_match 0.5, so it made no difference which was taken of rate. "
        "Trial 1 is kept because it was the first; a finer metric may tell them apart: learning.metric=loss."
    )
    some = tuning(tmp_path, [0.1, 0.5, None, 0.5], rate=[1, 2, 3, 2], size=[8, 8, 8, 16])
    assert some.tie_in_words.startswith(
        "2 of 3 complete trials (2 and 4) tie at exact_match 0.5, so nothing decides between their values of size. "
        "Trial 2 is kept because it was the first;"
    )
    assert some.to_json()["tied"] == [2, 4]
    assert some.to_json()["best"] == {"rate": 2, "size": 8}
    assert "tie at exact_match 0.5" in some._repr_html_()
    alone = tuning(tmp_path, [0.1, 0.5], rate=[1, 2]), tuning(tmp_path, [None], rate=[1])
    for found in (*alone, tuning(tmp_path, [])):
        assert (found.tied, found.tie_in_words, found.to_json()["tied"]) == ([], "", [])
    many = tuning(tmp_path, [0.0] * 30, rate=[*range(30)])
    told = "all 30 complete trials tie at exact_match 0, so it made no difference"
    assert many.tie_in_words.startswith(told)


def test_the_command_names_no_winner_of_a_tie(call: Maker, recipe: Maker, tmp_path: Path) -> None:
    """A rate that learns nothing, whatever the length that is read."""
    file = recipe(learning={"epochs": 1, "metric": "exact_match"}, evaluation=EXACT)
    out, space = tmp_path / "search", "data.source.max_length=[97,98,99]"
    said = call("tune", file, space, "--trials", 3, "--out", out)
    told = (
        "all 3 complete trials (1, 2 and 3) tie at exact_match 0, so it made no difference which was taken of "
        "data.source.max_length. Trial 1 is kept because it was the first; a finer metric may tell them apart: "
        "learning.metric=loss."
    )
    assert f"tie:     {told}\n" in said.out
    assert f"# Of equals the first: {told}\n" in (out / "best.yaml").read_text()
