"""The study of a parameter search: its trials and the next one, by Optuna, kept in a file.

The file is Optuna's journal: lines of JSON. Trials are drawn by the tree-structured Parzen
estimator (Bergstra et al. 2011, https://papers.nips.cc/paper/4443), and given up when they are
worse than the median of those before them (the median rule of Golovin et al. 2017,
https://doi.org/10.1145/3097983.3098043).
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from sixjars.learning.checkpoints import disk_faults, uninterrupted
from sixjars.tuning.search_space import SearchSpace
from sixjars.tuning.trial import TrialEnd
from sixjars_runtime.errors import RunError

if TYPE_CHECKING:
    import optuna

FILE: Final = "study.journal"
TRIALS_FOLDER: Final = "trials"
NAME: Final = "sixjars"
FEWEST, MOST = 2, 5
"""Complete trials before one is pruned: a fifth of all, but at least and at most so many."""
EARLIEST: Final = 2
"""The first validation that a trial can be pruned at."""


@final
@dataclass(frozen=True)
class StudyPurpose:
    """The purpose of a study; a search that goes on must have the same."""

    recipe: str
    """YAML, every default filled in, before a trial changes it."""
    space: Mapping[str, str]
    metric: str
    better: Literal["higher", "lower"]
    seed: int
    start: str | None = None
    """The fingerprint of the weights that trials start from."""


@final
@dataclass(frozen=True)
class Trial:
    """A trial to run."""

    number: int
    """From 1; a trial that was stopped leaves its number to the one that repeats it."""
    values: dict[str, Any]
    folder: Path
    """The folder to train it in."""
    recorded: "optuna.Trial"
    """The same trial in Optuna's study."""
    scores: list[float] = field(default_factory=list)
    """The score of each validation so far."""


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a study."""
    return (folder / FILE).is_file()


@final
class Study:
    """The trials of a search, which several threads may ask for."""

    def __init__(self, folder: Path, aim: StudyPurpose, space: SearchSpace, *, trials: int) -> None:
        self.folder = folder
        self.aim = aim
        self.space = space
        self.requested = trials
        self.trials = trials if space.count is None else min(trials, space.count)
        self.lock = RLock()
        with self._alone():
            self.study = _opened(folder, aim, self.trials)
            _check_same(self.study, aim, folder)
            for trial in self.study.trials:
                if trial.state.name == "RUNNING":  # until a kill
                    self._tell(trial.number, trial.params, trial.user_attrs.get("end"))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, uninterrupted: Optuna must release the lock of its journal."""
        with uninterrupted(), self.lock:
            yield

    def ask(self) -> Trial | None:
        """The next trial; None when there are enough."""
        from optuna.samplers import TPESampler

        with self._alone():
            begun = [
                trial
                for trial in self.study.trials
                if trial.state.name == "RUNNING" or "end" in trial.user_attrs
            ]
            taken = {trial.user_attrs["number"] for trial in begun}
            number = next((at for at in range(1, self.trials + 1) if at not in taken), None)
            if number is None:
                return None
            place = self._place(number)
            # of its number alone, and so not of a stop before it
            state = np.random.SeedSequence([self.aim.seed, number]).generate_state(1)
            self.study.sampler = TPESampler(seed=int(state[0]))
            tried = {json.dumps(self.space.values(trial.params)) for trial in begun}
            recorded = self._drawn(number, tried)
            recorded.set_user_attr("number", number)
            return Trial(number, self.space.values(recorded.params), place, recorded)

    def _drawn(self, number: int, tried: set[str]) -> "optuna.Trial":
        """A trial with new values; where they can be counted, none are tried twice."""
        from optuna.trial import TrialState

        distributions = dict(self.space.distributions)
        trial = self.study.ask(distributions)
        count = self.space.count
        if count is None or json.dumps(self.space.values(trial.params)) not in tried:
            return trial
        self.study.tell(trial, state=TrialState.FAIL)
        first = int(np.random.default_rng([self.aim.seed, number]).integers(count))
        draws = (self.space.draw((first + step) % count) for step in range(count))
        self.study.enqueue_trial(
            next(draw for draw in draws if json.dumps(self.space.values(draw)) not in tried)
        )
        return self.study.ask(distributions)

    def _place(self, number: int) -> Path:
        """The folder of a trial, emptied only of what a stopped trial of this study left."""
        place = self.folder / TRIALS_FOLDER / f"{number:03}"
        if any(trial.user_attrs.get("number") == number for trial in self.study.trials):
            shutil.rmtree(place, ignore_errors=True)
        elif place.exists():
            remedy = "move it away, or choose another folder with --out."
            raise RunError(f"{place} is not of this search; {remedy}")
        return place

    def report(self, trial: Trial, score: float) -> bool:
        """Record the score of a validation; return whether the trial goes on."""
        with self._alone():
            trial.scores.append(score)
            trial.recorded.report(score, len(trial.scores))
            return not trial.recorded.should_prune()

    def end(self, trial: Trial, end: TrialEnd, *, seconds: float) -> dict[str, Any]:
        """Record the end of a trial; return its row."""
        with self._alone():
            row = {
                "number": trial.number,
                **trial.values,
                "score": (max if self.aim.better == "higher" else min)(trial.scores, default=None),
                "state": end.state,
                "epochs": round(end.epochs, 2),
                "seconds": round(seconds, 1),
                "why": end.why,
            }
            trial.recorded.set_user_attr("end", row)
            self._tell(trial.recorded.number, trial.recorded.params, row)
            return row

    def stop(self, trial: Trial) -> None:
        """Record that a trial was stopped: it will be repeated from its start."""
        with self._alone():
            self._tell(trial.recorded.number, trial.recorded.params, None)

    def _tell(self, key: int, params: dict[str, Any], row: dict[str, Any] | None) -> None:
        """Tell Optuna the end of a trial; one without a row was stopped, and is repeated."""
        from optuna.trial import TrialState

        states = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
        if row is None:
            self.study.enqueue_trial(params)
            row = {"state": "stopped"}
        score = row["score"] if row["state"] == "complete" else None
        self.study.tell(key, score, state=states.get(row["state"], TrialState.FAIL))

    def rows(self) -> list[dict[str, Any]]:
        """The row of every trial that has ended: number, values, score, state, epochs, …."""
        with self._alone():
            notes = [trial.user_attrs for trial in self.study.trials]
        return sorted(
            (note["end"] for note in notes if "end" in note), key=lambda row: row["number"]
        )


def _opened(folder: Path, aim: StudyPurpose, trials: int) -> "optuna.Study":
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    folder.mkdir(parents=True, exist_ok=True)
    _mend(folder / FILE)
    startup = min(max(trials // 5, FEWEST), MOST)
    pruner = optuna.pruners.MedianPruner(n_startup_trials=startup, n_warmup_steps=EARLIEST)
    try:
        study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(folder / FILE))),
            pruner=pruner,
            study_name=NAME,
            direction="maximize" if aim.better == "higher" else "minimize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        damaged = f"{folder / FILE} is damaged ({error})"
        raise RunError(f"{damaged}; begin again with another --out.") from None
    if "aim" not in study.user_attrs:
        study.set_user_attr("aim", asdict(aim))
    return study


def _mend(path: Path) -> None:
    """Remove half a line that a kill left at the end."""
    if path.is_file():
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("rb+") as file:
                file.truncate(whole)


def _check_same(study: "optuna.Study", aim: StudyPurpose, folder: Path) -> None:
    before, now = study.user_attrs["aim"], json.loads(json.dumps(asdict(aim)))
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        other = " and ".join("--from" if name == "start" else name for name in changed)
        remedy = "resume with the same, or choose another --out."
        raise RunError(f"{folder} holds a search with another {other}; {remedy}")


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold a lock on a file, which is made where there is none; a second search is refused.

    Where the system or its disk has no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:
        yield
        return
    with disk_faults(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            remedy = "wait for its end, or choose another folder with --out."
            raise RunError(f"another search is at work in {path.parent}; {remedy}") from None
        except OSError:
            pass
        yield
