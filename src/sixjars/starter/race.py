"""A race: a few candidates for a recipe are trained for some minutes; the best is the recipe.

Successive halving (Jamieson & Talwalkar 2016, https://arxiv.org/abs/1502.07943): in each round
every candidate that is left trains for the same time, going on where it was; the better half stays.
What is shared is time, not updates, because time is what a person gives. Candidates are scored on
the validation set; the test set is not touched.
"""

import math
import shutil
import signal
import tempfile
import threading
import time
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final, Literal, final

from sixjars.kernels.backends import Device
from sixjars.learning.checkpoints import write_whole
from sixjars.learning.engine import fabric_for
from sixjars.progress import Reporter, duration, listening, number_of, usual_reporter
from sixjars.recipe.allowed_code import NOTHING, AllowedCode
from sixjars.recipe.files import overridden, read_text, values_from
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.splits import SMALL_VALIDATION
from sixjars.runs.folder.run_folder import RunFolder
from sixjars.runs.recipes import chosen_by, read_recipe, recipe_of
from sixjars.runs.train import fit
from sixjars.starter.candidates import candidates
from sixjars.starter.recipe_text import with_values
from sixjars.tasks import TASKS
from sixjars.tuning.search_space import overrides_of
from sixjars.tuning.trial import TrialPruned, ended
from sixjars.tuning.tune import OF_A_TOKEN
from sixjars_runtime.errors import DataError, Interrupted, RecipeError, shown

PLANNED: Final = 0.95
"""The share of the time that is planned; the rest is for a validation under way at its end."""
AGAIN: Final = 2.0
"""Seconds after which whatever has not stopped when time is over is interrupted once more."""
OPTIMISTIC: Final = (
    "the scores are of the validation set, which chose the winner, so its score is a little too "
    "good; the test set was not scored."
)
NOBODY: Final = "no candidate was scored in time, so the starter recipe stays; give more --minutes."
STOPPED: Final = "stopped by Ctrl-C before any candidate was scored, so the starter recipe stays."
SHORT: Final = (
    "{} of {} did not get as far as the first validation that its recipe plans, so the scores say "
    "little; give more --minutes."
)
ALL_FAILED: Final = "every candidate failed, so the starter recipe stays; the first one: {}"
Clock = Callable[[], float]


@final
@dataclass
class Candidate:
    """One recipe of a race, with its scores so far."""

    name: str
    changes: Mapping[str, Any]
    recipe: Recipe
    folder: Path
    """The folder of its run, which goes on in each round."""
    scores: list[tuple[float, float]] = field(default_factory=list)
    """The score of each validation, and the loss, which decides between equal scores."""
    updates: int = 0
    seconds: float = 0.0
    """Seconds of training, validations included."""
    validation: float = 0.0
    """Seconds of its longest validation; training pauses so much before the end of its time."""
    state: Literal["racing", "finished", "dropped", "failed"] = "racing"
    """Finished is a training that came to its own end."""
    why: str = ""
    """The error of a candidate that failed."""
    notes: list[str] = field(default_factory=list)
    """Notes on a small validation set, on which scores say little."""

    def ends(self, state: Literal["finished", "dropped", "failed"], why: str = "") -> None:
        """Train it no more, and remove its checkpoints, which may be gigabytes."""
        self.state, self.why = state, why
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def is_short(self) -> bool:
        """Whether it did not get as far as the first validation that its recipe plans."""
        return self.state != "failed" and self.updates < (self.recipe.learning.validate_every or 1)


@final
@dataclass(frozen=True)
class Race:
    """The result of a race.

    >>> row = {"candidate": "starter", "score": 0.5, "updates": 90, "seconds": 9.0}
    >>> race = Race("loss", "lower", "starter", ({**row, "state": "finished", "why": ""},))
    >>> race.lines[0]
    'starter  loss 0.5, 90 updates, 9 s'
    """

    metric: str
    better: Literal["higher", "lower"]
    winner: str | None
    """The name of the best candidate; None where nothing was scored."""
    rows: tuple[dict[str, Any], ...]
    """One for each candidate, the best first: candidate, score, updates, seconds, state, why."""
    notes: tuple[str, ...] = ()
    """Sentences about the result and its limits."""
    stopped: bool = False
    """Whether Ctrl-C ended it early."""

    @property
    def lines(self) -> list[str]:
        """Each row as text."""
        width = max((len(row["candidate"]) for row in self.rows), default=0)
        return [f"{row['candidate']:{width}}  {_in_words(row, self.metric)}" for row in self.rows]


def _in_words(row: Mapping[str, Any], metric: str) -> str:
    if row["state"] == "failed":
        return f"failed: {row['why']}"
    score = "not scored" if row["score"] is None else f"{metric} {row['score']:.4g}"
    updates = "1 update" if row["updates"] == 1 else f"{row['updates']:,} updates"
    return f"{score}, {updates}, {duration(row['seconds'])}"


def check_minutes(minutes: float, data: object) -> None:
    """Refuse a race without a time or data, before anything is written."""
    is_number = isinstance(minutes, int | float) and not isinstance(minutes, bool)
    if not is_number or not 0 < minutes < math.inf:
        raise DataError(f"minutes: must be a number above 0, such as 5, but is {shown(minutes)}.")
    if data is None:
        remedy = "name the file with --data FILE, or leave out --minutes."
        raise DataError(f"a race trains on your data; {remedy}")


def race(
    file: str | Path,
    *,
    minutes: float,
    device: Device = "auto",
    reporter: Reporter | None = None,
    outside: AllowedCode = NOTHING,
    clock: Clock = time.monotonic,
) -> Race:
    """Train a few candidates for a recipe file for some minutes; it then has the best recipe.

    Ctrl-C ends the race early, and the best so far is the winner. Runs are temporary.
    """
    began = clock()
    text = read_text(Path(file))
    recipe = read_recipe(str(file), (), outside)
    metric, better = chosen_by(recipe, outside)
    with tempfile.TemporaryDirectory(prefix="sixjars-race-", ignore_cleanup_errors=True) as folder:
        entrants = entered(str(file), recipe, Path(folder), outside)
        rounds = RaceRounds(entrants, better, device, outside, clock, reporter or usual_reporter())
        stopped = rounds.run(began + 60 * minutes)
    result = rounds.result(metric, began, stopped=stopped)
    changes = [each.changes for each in entrants if each.name == result.winner]
    lines = [f"# Race    {sentence}" for sentence in result.notes]
    lines += [f"#         {line}" for line in result.lines]
    changed = with_values(text, changes[0]) if changes else text
    write_whole(Path(file), headed(changed, lines).encode())
    return result


def headed(text: str, lines: list[str]) -> str:
    r"""The text of a recipe with further lines under the comments that it begins with.

    >>> headed("# a\ntask: dialog\n", ["# b"])
    '# a\n# b\ntask: dialog\n'
    """
    all_lines = text.splitlines()
    at = next((at for at, line in enumerate(all_lines) if not line.startswith("#")), len(all_lines))
    return "\n".join([*all_lines[:at], *lines, *all_lines[at:]]) + "\n"


def entered(
    file: str, recipe: Recipe, folder: Path, outside: AllowedCode = NOTHING
) -> list[Candidate]:
    """The candidates that a recipe can be made of, and whose scores can be compared.

    Of a recipe that cross-validates, they race on its first part: as many models would take all the
    time.
    """
    values, where = values_from(file)
    folds = recipe.learning.folds
    alone = {} if folds is None else {"learning.folds": None, "data.valid": 1 / folds}
    metric = recipe.learning.metric or "loss"
    output = f"data.{TASKS[recipe.task].output.name}."
    entrants = []
    every = candidates(TASKS[recipe.task], recipe)
    for number, (name, changes) in enumerate(every.items(), start=1):
        if metric in OF_A_TOKEN and any(key.startswith(output) for key in changes):
            continue  # other tokens, so another mean
        with suppress(RecipeError):  # values that do not fit each other
            changed = overridden(values, overrides_of({**changes, **alone}))
            checked = recipe_of(changed, where, outside)
            entrants.append(Candidate(name, changes, checked, folder / f"{number:02}"))
    return entrants


@final
@dataclass
class RaceRounds:
    """The rounds of a race."""

    entrants: list[Candidate]
    better: Literal["higher", "lower"]
    device: Device
    outside: AllowedCode
    clock: Clock
    reporter: Reporter
    end: float = math.inf

    def __post_init__(self) -> None:
        self.sign = 1.0 if self.better == "lower" else -1.0
        self.rounds = max(1, math.ceil(math.log2(max(1, len(self.entrants)))))

    def run(self, end: float) -> bool:
        """Run all rounds until `end` at the latest; return whether Ctrl-C ended them before."""
        now = self.clock()
        self.end = now + PLANNED * (end - now)
        rang = threading.Event()
        try:
            with alarm(end - now, rang):
                for number in range(1, self.rounds + 1):
                    self._round(number)
        except (Interrupted, KeyboardInterrupt):
            return not rang.is_set()
        finally:
            self.reporter.end()
        return False

    def _round(self, number: int) -> None:
        """Train everyone who is left for the same time; then the better half stays."""
        left = [each for each in self.entrants if each.state == "racing"]
        for at, candidate in enumerate(left):
            if self.clock() >= self.end:
                return
            # In trainings of one candidate. What one takes more or less than its share (the first
            # reads the data for all) is spread over all rounds: in this one alone it would be the
            # others' whole time.
            to_come = len(left) - at + len(left) * (self.rounds - number)
            what = f"round {number} of {self.rounds}, {candidate.name}"
            self._train(candidate, (self.end - self.clock()) / to_come, what)
        if number < self.rounds and self.clock() < self.end:
            alive = [each for each in self.ranked if each.state in ("racing", "finished")]
            for loser in alive[max(1, math.ceil(len(alive) / 2)) :]:
                loser.ends("dropped")

    @property
    def ranked(self) -> list[Candidate]:
        """The best candidate first; then those that were not scored, then those that failed."""
        worst = (math.inf, math.inf)
        return sorted(
            self.entrants, key=lambda each: (each.state == "failed", self._best(each) or worst)
        )

    def _best(self, candidate: Candidate) -> tuple[float, float] | None:
        """The best score, with a sign that makes less better, and the loss with it."""
        return min(((self.sign * score, loss) for score, loss in candidate.scores), default=None)

    def _train(self, candidate: Candidate, seconds: float, what: str) -> None:
        """Train for so long, going on where the round before ended."""
        began = self.clock()
        watching = CandidateReporter(candidate, self, seconds, what)

        def train() -> None:
            precision = candidate.recipe.learning.precision
            with listening(watching):
                fit(
                    RunFolder(candidate.folder, candidate.recipe, self.outside),
                    resume=(candidate.folder / "recipe.yaml").is_file(),
                    start=None,
                    fabric=fabric_for(device=self.device, devices=1, precision=precision),
                    reporter=watching,
                    enough=watching.enough,
                )

        try:
            end = ended(train, lambda: 0.0)
        finally:
            candidate.seconds += self.clock() - began
            self.reporter.end()
        if end.state == "failed":
            candidate.ends("failed", end.why)
        elif end.state == "complete" and not watching.paused:
            candidate.ends("finished")
        line = _in_words(self._row(candidate), candidate.recipe.learning.metric or "loss")
        self.reporter.tried(f"{what}: {line}")

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        best = self._best(candidate)
        return {
            "candidate": candidate.name,
            "score": None if best is None else best[0] * self.sign,
            "updates": candidate.updates,
            "seconds": round(candidate.seconds, 1),
            "state": candidate.state,
            "why": candidate.why,
        }

    def result(self, metric: str, began: float, *, stopped: bool) -> Race:
        """The ranked candidates, with sentences about the winner."""
        ranked = self.ranked
        took = duration(self.clock() - began)
        rows = tuple(map(self._row, ranked))
        scored = [each for each in ranked if each.scores and each.state != "failed"]
        if not scored:
            why = STOPPED if stopped else NOBODY
            if all(each.state == "failed" for each in ranked):
                why = ALL_FAILED.format(self.entrants[0].why)
            return Race(metric, self.better, None, rows, (why,), stopped=stopped)
        winner = scored[0]
        by = "stopped by Ctrl-C; " if stopped else ""
        entrants = number_of(len(ranked), "candidate")
        best = f"{by}{winner.name} is the best of {entrants} after {took}, by {metric}."
        short = sum(each.is_short for each in ranked)
        too_short = [SHORT.format(short, entrants)] if short and not stopped else []
        notes = (best, *too_short, *dict.fromkeys(winner.notes), OPTIMISTIC)
        return Race(metric, self.better, winner.name, rows, notes, stopped=stopped)


@final
class CandidateReporter(Reporter):
    """Shows the time of a candidate, keeps its scores, and ends its training in time."""

    def __init__(self, candidate: Candidate, rounds: RaceRounds, seconds: float, what: str) -> None:
        self.candidate = candidate
        self.clock = rounds.clock
        self.reporter = rounds.reporter
        self.seconds = seconds
        self.what = what
        self.began = self.stepped_at = self.clock()
        self.until = self.over = rounds.end
        self.paused = False

    def enough(self) -> bool:
        """Whether training pauses now, to be validated and saved."""
        self.paused = self.clock() >= self.until - self.candidate.validation
        return self.paused

    def begin(self, *, step: int, total: int) -> None:
        """Count reading as at most half of its time: the first candidate reads for all."""
        self.stepped_at = self.clock()
        fair = max(self.began + self.seconds, self.stepped_at + self.seconds / 2)
        self.until = min(fair, self.over)

    def note(self, sentence: str) -> None:
        """Keep a note on a small validation set; `train` repeats all other notes."""
        if sentence.startswith(SMALL_VALIDATION.partition("{")[0]):
            self.candidate.notes.append(sentence)

    def reading(self, what: str, *, rows: int, total: int | None = None) -> None:
        """End a reading that takes too long."""
        if self.clock() >= self.over:
            raise TrialPruned

    def preparing(self, what: str, *, done: int, total: int) -> None:
        """End a preparation that takes too long."""
        self.reading(what, rows=done, total=total)

    def stepped(self, *, step: int, loss: float, tokens_per_second: float) -> None:
        """Show the share of its time that has passed."""
        self.candidate.updates, self.stepped_at = step, self.clock()
        whole = max(1, math.ceil(self.until - self.began))
        done = min(int(self.stepped_at - self.began), whole - 1)
        self.reporter.preparing(f"{self.what}, seconds", done=done, total=whole)

    def validated(self, record: Mapping[str, float], *, is_best: bool) -> None:
        """Keep the score, and the time that the validation took."""
        seconds = self.clock() - self.stepped_at
        self.candidate.validation = max(self.candidate.validation, seconds)
        metric = self.candidate.recipe.learning.metric or "loss"
        if math.isfinite(record[metric]):
            self.candidate.scores.append((record[metric], record["loss"]))


@contextmanager
def alarm(seconds: float, rang: threading.Event) -> Iterator[None]:
    """Interrupt what is inside when its time is over, as Ctrl-C would, repeatedly until it ends.

    `rang` is set when it does. Outside of the main thread nothing can be interrupted.
    """
    off = threading.Event()

    def wait() -> None:
        pause = seconds
        while not off.wait(max(0.0, pause)):
            rang.set()
            interrupt_main()
            pause = AGAIN

    thread = threading.Thread(target=wait, name="alarm", daemon=True)
    with _interruptible(rang) as can_interrupt:
        if can_interrupt:
            thread.start()
        try:
            yield
        finally:
            try:
                off.set()
                if thread.is_alive():
                    thread.join()  # an interrupt under way comes here, not after the end
            finally:
                off.set()  # again, for the interrupt may have come before the first time


@contextmanager
def _interruptible(rang: threading.Event) -> Iterator[bool]:
    """Let the alarm through, and nothing else, where Ctrl-C is ignored, as in a background job of a script.

    False in other threads than the main one, which alone can be interrupted.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield is_main
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if rang.is_set():
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield True
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
