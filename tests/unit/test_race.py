"""A race of candidates: successive halving on a clock that is moved, and one of real trainings."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.errors import DataError, LearningError
from sixjars.model.build import build
from sixjars.progress import Reporter
from sixjars.recipe.files import read_text, values_from
from sixjars.runs.data.splits import SMALL_VALIDATION, splits_of
from sixjars.runs.recipes import Blueprint, read_recipe, recipe_of
from sixjars.starter import race as racing
from sixjars.starter.candidates import candidates
from sixjars.starter.race import Race, check_minutes, entered, race
from sixjars.starter.write import new
from sixjars.tasks import TASKS
from sixjars.tuning.trial import TrialPruned

Call = Callable[..., Any]
STEP = 0.1
"""Seconds of an update of a usual candidate, on the clock of these tests."""


def lines(folder: Path, rows: int = 300) -> Path:
    file = folder / "texts.tsv"
    words = ["good", "bad", "fine", "poor", "new", "old", "red", "big"]
    texts = (
        f"{words[n % 8]} {words[n % 7]} {words[n % 5]}\t{'no' if n % 8 in (1, 3) else 'yes'}"
        for n in range(rows)
    )
    file.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def starter(tmp_path: Path) -> Path:
    return new(tmp_path / "mine.yaml", task="document_classification", data=lines(tmp_path))


class Kept(Reporter):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.shown: set[str] = set()

    def tried(self, sentence: str) -> None:
        self.lines.append(sentence)

    def preparing(self, what: str, *, done: int, total: int) -> None:
        assert done < total
        self.shown.add(what)


class Track:
    """In place of training: updates that take their time on a clock, and a loss that falls with them."""

    def __init__(self) -> None:
        self.now = 0.0
        self.seconds: dict[str, float] = {}
        """Of an update, by candidate."""
        self.slope: dict[str, float] = {}
        """How quickly the loss falls."""
        self.made: dict[str, int] = {}
        self.ends: dict[str, int] = {}
        """Updates after which a training ends by itself."""
        self.stops: Callable[[str, int], None] = lambda name, step: None
        self.validation = 1.0
        self.reading: dict[str, float] = {}
        """Seconds of the first reading, by candidate."""
        self.names = list(CANDIDATES)
        self.left_behind: list[Path] = []
        """Folders of candidates that were dropped before another one trained on."""

    def clock(self) -> float:
        return self.now

    def race(self, file: Path, reporter: Reporter | None = None, **settings: Any) -> Race:
        """A race of ten minutes, unless told otherwise."""
        minutes = settings.pop("minutes", 10)
        vars(self).update(settings)
        return race(file, minutes=minutes, clock=self.clock, reporter=reporter or Reporter())

    def fit(
        self, run: Any, *, resume: bool, reporter: Any, enough: Callable[[], bool], **rest: Any
    ) -> None:
        name = self.names[int(run.folder.name) - 1]
        assert resume == (name in self.made)
        if resume and name == "c":  # of the second round
            self.left_behind += [
                path for path in run.folder.parent.iterdir() if path.name in ("01", "04")
            ]
        run.folder.mkdir(parents=True, exist_ok=True)
        (run.folder / "recipe.yaml").touch()
        self.now += self.reading.pop(name, 0.0)
        reporter.begin(step=self.made.get(name, 0), total=10**6)
        paused = False
        while not paused and self.made.get(name, 0) < self.ends.get(name, 10**6):
            self.made[name] = step = self.made.get(name, 0) + 1
            self.now += self.seconds.get(name, STEP)
            self.stops(name, step)
            reporter.stepped(step=step, loss=1.0, tokens_per_second=9.0)
            paused = enough()
        self.now += self.validation
        loss = 5.0 / (1.0 + self.slope.get(name, 0.01) * self.made[name])
        reporter.validated({"step": step, "epoch": 1.0, "loss": loss}, is_best=True)


def failing(error: BaseException | type[BaseException], name: str = "", step: int = 0) -> Any:
    """What stops every candidate, or one of this name from a step on."""

    def stops(candidate: str, at: int) -> None:
        if candidate == (name or candidate) and at >= step:
            raise error

    return stops


CANDIDATES: dict[str, dict[str, Any]] = {
    "starter": {},
    "b": {"model.decoder.size": 32},
    "c": {"learning.rate": 0.002},
    "d": {"model.decoder.dropout": 0.5},
}


@pytest.fixture
def track(monkeypatch: pytest.MonkeyPatch) -> Track:
    made = Track()
    monkeypatch.setattr(racing, "fit", made.fit)
    monkeypatch.setattr(racing, "candidates", lambda task, recipe: CANDIDATES)
    return made


def test_the_better_half_goes_on_and_the_best_is_written(starter: Path, track: Track) -> None:
    before, kept = read_text(starter), Kept()
    result = track.race(starter, kept, slope={"c": 0.05, "b": 0.02})
    assert (result.winner, result.metric, result.better) == ("c", "loss", "lower")
    assert [row["candidate"] for row in result.rows] == ["c", "b", "starter", "d"]
    assert [row["state"] for row in result.rows] == ["racing", "racing", "dropped", "dropped"]
    assert not track.left_behind
    assert 540 <= track.now <= 600  # ten minutes, with the last validation
    # a quarter of half the time, then half of it
    assert track.made["c"] == pytest.approx(3 * track.made["d"], rel=0.1)
    assert kept.lines[0].startswith("round 1 of 2, starter: loss ")
    second = ["round 2 of 2, b", "round 2 of 2, c"]
    assert [line.partition(":")[0] for line in kept.lines[4:]] == second
    assert "round 2 of 2, c, seconds" in kept.shown
    comments = [line for line in read_text(starter).splitlines() if "#" in line]
    ours = [line for line in comments if line.startswith(("# Race ", "#         "))]
    assert read_recipe(str(starter)).learning.rate == 0.002
    assert "# Race    c is the best of 4 candidates after 10 min, by loss." in ours
    assert any(line.startswith("#         starter  loss ") for line in ours)
    others = [line for line in comments if line not in ours]
    assert others == [line for line in before.splitlines() if "#" in line]
    assert result.notes[1] == (
        "the scores are of the validation set, which chose the winner, so its score is a little too good; the test set "
        "was not scored."
    )


def test_one_slow_candidate_takes_no_time_of_the_others(starter: Path, track: Track) -> None:
    assert track.race(starter, seconds={"b": 200.0}, slope={"d": 0.05}).winner == "d"
    assert track.now <= 610
    assert track.made["b"] == 1
    assert track.made["d"] > 1000


@pytest.mark.parametrize(("seconds", "least"), [(60.0, 500), (300.0, 250)])
def test_who_reads_the_data_for_all_leaves_time_for_all(
    seconds: float, least: int, starter: Path, track: Track
) -> None:
    """As long as a round: before, the others made one update each, which decided who stayed."""
    track.race(starter, reading={"starter": seconds}, slope={"b": 0.9, "c": 0.8})
    assert track.made["starter"] > max(0.4 * track.made["d"], 250 if seconds > 100 else 0)
    assert track.made["d"] > least
    assert track.now <= 600


def test_time_that_one_leaves_is_for_all_rounds(starter: Path, track: Track) -> None:
    """Candidates that end at once do not make the last one's training of a round longer than the first one's."""
    track.race(starter, ends={"b": 1, "c": 1})
    assert track.made["d"] < 1.5 * track.made["starter"]


def test_ctrl_c_writes_the_best_so_far(starter: Path, track: Track) -> None:
    result = track.race(starter, stops=failing(KeyboardInterrupt, "d", 5), slope={"b": 0.05})
    assert result.winner == "b"
    assert result.notes[0].startswith("stopped by Ctrl-C; b is the best of 4 candidates after ")
    assert read_recipe(str(starter)).model.decoder["size"] == 32


FAULT = LearningError("the loss is no longer a number.")


@pytest.mark.parametrize(
    ("error", "stopped", "note"),
    [
        (
            KeyboardInterrupt,
            True,
            "stopped by Ctrl-C before any candidate was scored, so the starter recipe stays.",
        ),
        (
            TrialPruned,
            False,
            "no candidate was scored in time, so the starter recipe stays; give more --minutes.",
        ),
        (
            FAULT,
            False,
            "every candidate failed, so the starter recipe stays; the first one: the loss is no longer a number.",
        ),
    ],
)
def test_without_any_score_the_recipe_stays(
    error: Any, stopped: bool, note: str, starter: Path, track: Track
) -> None:
    values = values_from(starter)[0]
    result = track.race(starter, stops=failing(error))
    assert (result.winner, result.stopped, result.notes) == (None, stopped, (note,))
    assert values_from(starter)[0] == values


def test_few_updates_say_little(starter: Path, track: Track) -> None:
    """The recipe plans a validation every 33 updates."""
    assert track.race(starter, minutes=0.3, slope={"starter": 0.9}).notes[1] == (
        "2 of 4 candidates did not get as far as the first validation that its recipe plans, so the scores say little; "
        "give more --minutes."
    )
    assert [count < 33 for count in track.made.values()] == [False, False, True, True]


def test_a_candidate_that_fails_does_not_win(starter: Path, track: Track) -> None:
    """It fails in the second round, the best so far."""
    result = track.race(
        starter, stops=failing(FAULT, "b", 1_500), slope={"b": 0.9, "starter": 0.02}
    )
    assert result.winner == "starter"
    assert result.rows[-1]["candidate"] == "b"
    assert result.lines[-1] == "b        failed: the loss is no longer a number."


def test_a_training_that_ended_by_itself_waits_for_the_others(starter: Path, track: Track) -> None:
    result = track.race(starter, ends={"c": 100}, slope={"c": 0.9})
    assert result.winner == "c"
    assert (track.made["c"], result.rows[0]["state"]) == (100, "finished")
    assert max(track.made.values()) > 3000  # whoever was second had the rest


def test_higher_is_better_where_the_metric_says_so(
    starter: Path, track: Track, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = read_text(starter).replace("metric: loss", "metric: accuracy@1")
    starter.write_text(text, encoding="utf-8")
    real = track.fit

    def fit(run: Any, *, reporter: Any, **rest: Any) -> None:
        told = reporter.validated

        def validated(record: dict[str, float], *, is_best: bool) -> None:
            told({**record, "accuracy@1": 1.0 if record["loss"] < 2.0 else 0.5}, is_best=is_best)

        monkeypatch.setattr(reporter, "validated", validated)
        real(run, reporter=reporter, **rest)

    monkeypatch.setattr(racing, "fit", fit)
    slope = {"c": 0.05, "d": 0.06, "b": 0.0001, "starter": 0.0001}
    result = track.race(starter, slope=slope)
    assert (result.better, result.rows[0]["score"]) == ("higher", 1.0)
    assert result.winner == "d"  # of equal scores by the loss


def test_a_recipe_that_cross_validates_races_on_one_part(tmp_path: Path, track: Track) -> None:
    """And is written with its folds; few validation rows are told of."""
    data = lines(tmp_path, rows=40)
    starter = new(tmp_path / "few.yaml", task="document_classification", data=data)
    assert read_recipe(str(starter)).learning.folds == 5
    entrants = entered(str(starter), read_recipe(str(starter)), tmp_path)
    assert {(each.recipe.learning.folds, each.recipe.data.valid) for each in entrants} == {
        (None, 0.2)
    }
    sentence = f"{SMALL_VALIDATION.format('8 examples')}"
    real = track.fit

    def fit(run: Any, *, reporter: Any, **rest: Any) -> None:
        reporter.note(sentence)
        reporter.note("something else of the data.")
        real(run, reporter=reporter, **rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(racing, "fit", fit)
        result = track.race(starter, slope={"c": 0.9})
    assert (result.winner, result.notes[1]) == ("c", sentence)
    assert len(result.notes) == 3
    learning = read_recipe(str(starter)).learning
    assert (learning.folds, learning.rate) == (5, 0.002)


def test_bad_minutes(call: Call, tmp_path: Path) -> None:
    for minutes, shown in (
        (0, "0"),
        (-1.0, "-1.0"),
        (float("nan"), "nan"),
        (True, "True"),
        ("5", "'5'"),
    ):
        with pytest.raises(DataError) as caught:
            check_minutes(minutes, "a.csv")  # type: ignore[arg-type]
        assert str(caught.value) == f"minutes: must be a number above 0, such as 5, but is {shown}."
    with pytest.raises(DataError) as caught:
        new(tmp_path / "a.yaml", task="translation", minutes=3)
    sentence = "a race trains on your data; name the file with --data FILE, or leave out --minutes."
    assert str(caught.value) == sentence
    assert (
        call("new", tmp_path / "a.yaml", "--task", "translation", "--minutes", 3).sentence
        == sentence
    )
    assert not (tmp_path / "a.yaml").exists()


@pytest.mark.parametrize("task", TASKS)
def test_most_candidates_are_recipes(task: str, tmp_path: Path) -> None:
    """What fits no recipe would be left out without a word."""
    file = new(tmp_path / "a.yaml", task=task)
    recipe = read_recipe(str(file))
    named = candidates(TASKS[task], recipe)
    entrants = entered(str(file), recipe, tmp_path)
    assert [each.name for each in entrants] == list(named)
    assert 3 <= len(named) <= 6
    assert next(iter(named.items())) == ("starter", {})
    assert len({each.recipe.to_yaml() for each in entrants}) == len(named)


ROWS = {
    "translation": "the dog sleeps well\tder Hund schläft gut",
    "document_classification": "the dog sleeps well\tyes",
    "sentence_pair": "the dog sleeps well\tthe dog runs\tyes",
}


@pytest.mark.skipif(find_spec("wordllama") is None, reason="the extra vectors is not installed")
@pytest.mark.parametrize("task", ROWS)
def test_all_candidates_with_vectors_can_be_built(task: str, tmp_path: Path) -> None:
    """Half a size and other bridges fit a decoder that is tied and conditional."""
    names = "\t".join(slot.name for slot in TASKS[task].slots)
    rows = [ROWS[task], ROWS[task].replace("dog", "cat").replace("yes", "no")] * 20
    (tmp_path / "rows.tsv").write_text("\n".join([names, *rows]) + "\n", encoding="utf-8")
    file = new(tmp_path / "a.yaml", task=task, data=tmp_path / "rows.tsv")
    recipe = read_recipe(str(file))
    assert "wordllama" in file.read_text("utf-8")
    entrants = entered(str(file), recipe, tmp_path)
    assert [each.name for each in entrants] == list(candidates(TASKS[task], recipe))
    for each in entrants:
        blueprint = Blueprint.of(each.recipe)
        build(blueprint.plan, splits_of(blueprint).fields.facts())
    if task == "translation":
        assert [each.recipe.model.decoder["size"] for each in entrants[:3]] == [128, 64, 256]
        assert {each.name for each in entrants} >= {"bridge initial", "bridge every_step"}


def test_scores_of_other_tokens_are_not_compared(
    starter: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    changes = {
        "starter": {},
        "no recipe": {"model.encoder.sizes": 3},
        "labels": {"data.label.min_count": 2},
    }
    monkeypatch.setattr(racing, "candidates", lambda task, recipe: changes)
    assert [each.name for each in entered(str(starter), read_recipe(str(starter)), tmp_path)] == [
        "starter"
    ]


@pytest.fixture(params=[signal.default_int_handler, signal.SIG_IGN], ids=["usual", "ignored"])
def ctrl_c(request: pytest.FixtureRequest) -> Iterator[Any]:
    """What Ctrl-C does: it interrupts, or nothing, as in a background job of a script."""
    before = signal.signal(signal.SIGINT, request.param)
    yield request.param
    signal.signal(signal.SIGINT, before)


def test_time_ends_what_does_not_look_at_it(ctrl_c: Any) -> None:
    """A validation that takes far too long is interrupted, though nobody asks for the time in it."""
    rang, began = threading.Event(), time.monotonic()

    def validate() -> None:
        with racing.alarm(0.05, rang):
            while time.monotonic() - began < 20:
                time.sleep(0.01)

    with pytest.raises(KeyboardInterrupt):
        validate()
    assert rang.is_set()
    assert time.monotonic() - began < 10
    calm = threading.Event()
    with racing.alarm(60, calm):
        pass
    assert not calm.is_set()
    assert signal.getsignal(signal.SIGINT) is ctrl_c


def test_only_the_alarm_interrupts_what_ignores_ctrl_c() -> None:
    before, rang = signal.signal(signal.SIGINT, signal.SIG_IGN), threading.Event()
    try:
        with racing.alarm(60, rang):
            signal.raise_signal(signal.SIGINT)
        assert not rang.is_set()
    finally:
        signal.signal(signal.SIGINT, before)


def test_nothing_is_interrupted_after_the_end() -> None:
    """However close to the end the time is over."""
    is_inside, late = True, []

    def interrupted(number: int, frame: Any) -> None:
        late.extend([] if is_inside else [number])

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        for number in range(300):
            is_inside = True
            with racing.alarm(number * 5e-6, threading.Event()):
                time.sleep(5e-4)
            is_inside = False
            time.sleep(2e-4)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not late


SMALL: dict[str, Any] = {
    "data.source.vectors": None,
    "data.source.extra_words": 0,
    "learning.freeze": [],
    "model.encoder": {"kind": "text", "size": 8, "embedding": {"size": 8}},
    "model.bridge": {"kind": "pooling"},
    "model.decoder": {"kind": "label", "size": 8},
    "learning.steps": 30,
    "learning.validate_every": 10,
}


def test_a_real_race(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two small models: one cannot learn, so the other one is written, and trains. Both end long before time."""
    named = {"starter": SMALL | {"learning.rate": 1e-7}, "quick": SMALL | {"learning.rate": 0.02}}
    monkeypatch.setattr(racing, "candidates", lambda task, recipe: named)
    out, began = tmp_path / "mine.yaml", time.monotonic()
    given = ["--task", "document_classification", "--data", lines(tmp_path), "--minutes", 2]
    said = call("new", out, *given)
    assert said.code == 0, said.err
    assert time.monotonic() - began < 100
    assert (
        said.out.splitlines()[0]
        == "loss on the validation set (lower is better); the test set was not scored"
    )
    assert said.out.splitlines()[1].split() == ["candidate", "loss", "updates", "seconds"]
    assert [line.split()[:3:2] for line in said.out.splitlines()[2:]] == [
        ["quick", "30"],
        ["starter", "30"],
    ]
    assert said.out.splitlines()[2].split()[-1] == "best"
    assert "note: quick is the best of 2 candidates after " in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.yaml", "texts.tsv"]
    run = sixjars.train(
        str(out), ["learning.steps=3", "learning.folds=null", "data.test=0.2"], out=tmp_path / "run"
    )
    assert json.loads((run.folder / "scores.json").read_text())["split"] == "test"


def test_from_python(tmp_path: Path, track: Track, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def raced(file: Path, **given: Any) -> Race:
        seen.append((file, given))
        return Race("loss", "lower", None, ())

    monkeypatch.setattr(racing, "race", raced)
    path = sixjars.new(
        tmp_path / "a.yaml", task="document_classification", data=lines(tmp_path), minutes=0.5
    )
    assert seen == [(path, {"minutes": 0.5})]


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize("stopped", [True, False])
def test_whoever_stops_a_race_waits_for_no_estimate(
    stopped: bool, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        racing, "race", lambda *_, **__: Race("loss", "lower", None, (), stopped=stopped)
    )
    monkeypatch.setattr("sixjars.cli.train.estimated", lambda file: ["about 5 min"])
    given = ["--task", "document_classification", "--data", lines(tmp_path), "--minutes", 2]
    said = call("new", tmp_path / "a.yaml", *given)
    assert ("about 5 min" in said.err) == (not stopped)
    assert "wrote " in said.err


def test_sizes_are_halved_and_doubled_but_for_those_of_pretrained_vectors() -> None:
    sides = {"source": {"column": 1, "vectors": "v.txt"}, "target": {"column": 2}}
    model = {
        "encoder": {"size": 32, "embedding": {"size": 50}},
        "bridge": {"size": 32},
        "decoder": {"size": 64, "embedding": {"size": 40}},
    }
    values = {"task": "translation", "data": {"train": "a.tsv", **sides}, "model": model}
    found = candidates(TASKS["translation"], recipe_of(values, "test"))
    assert found["half the size"] == {
        "model.encoder.size": 16,
        "model.bridge.size": 16,
        "model.decoder.size": 32,
        "model.decoder.embedding.size": 20,
    }
    twice = {key: 4 * size for key, size in found["half the size"].items()}
    assert found["twice the size"] == twice
    small = {**values, "model": {**model, "bridge": {"size": 31}}}
    assert "half the size" not in candidates(TASKS["translation"], recipe_of(small, "test"))
