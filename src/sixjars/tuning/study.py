"""The study of a parameter search: its trials and the next one, by Optuna, kept in a file.

The file is Optuna's journal: lines of JSON. Trials are drawn by the tree-structured Parzen
estimator (Bergstra et al. 2011, https://papers.nips.cc/paper/4443), and given up when they are
worse than the median of those before them (the median rule of Golovin et al. 2017,
https://doi.org/10.1145/3097983.3098043).
"""

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np

from sixjars.learning.checkpoints import disk_faults, uninterrupted
from sixjars.tuning.space import Space
from sixjars.tuning.trial import End
from sixjars_runtime.errors import MissingExtra, RunError

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
class Aim:
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
class Asked:
    """A trial to run."""

    number: int
    """From 1; a trial that was stopped leaves its number to the one that repeats it."""
    values: dict[str, Any]
    key: int
    """The number that Optuna gave it."""
    folder: Path
    """The folder to train it in."""


def is_begun(folder: Path) -> bool:
    """Whether a folder holds a study."""
    return (folder / FILE).is_file()


def check_unused(folder: Path, names: Iterable[str]) -> None:
    """Refuse a folder without a search that has files which a search would write over."""
    for name in names:
        if (folder / name).exists():
            there = f"{folder / name} is there already, and not of a search"
            raise RunError(f"{there}; choose another folder with --out.")


def check_installed() -> None:
    """Refuse to begin without Optuna, with a sentence on how to install it."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtra("optuna", "tune") from None


@final
class Study:
    """The trials of a search, which several threads may ask for."""

    def __init__(self, folder: Path, aim: Aim, space: Space, *, trials: int) -> None:
        self.folder = folder
        self.aim = aim
        self.space = space
        self.wanted = trials
        self.trials = trials if space.count is None else min(trials, space.count)
        self.lock = RLock()
        self.running: dict[int, optuna.Trial] = {}
        self.scores: dict[int, list[float]] = {}
        with self._alone():
            self.study = _opened(folder, aim, self.trials)
            _check_same(self.study, aim, folder)
            for trial in self.study.trials:
                if trial.state.name == "RUNNING":  # until a kill
                    self._take_up(trial.number, trial.params, trial.user_attrs.get("end"))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One thread at a time, uninterrupted: Optuna must release the lock of its journal."""
        with uninterrupted(), self.lock:
            yield

    def ask(self) -> Asked | None:
        """The next trial; None when there are enough."""
        with self._alone():
            taken = {row["number"] for row in self.rows()}
            taken |= {trial.user_attrs["number"] for trial in self.running.values()}
            number = next((at for at in range(1, self.trials + 1) if at not in taken), None)
            if number is None:
                return None
            place = self._place(number)
            self.study.sampler = _sampler(self.aim.seed, number)
            trial = self._drawn(number)
            trial.set_user_attr("number", number)
            self.running[trial.number], self.scores[trial.number] = trial, []
            return Asked(number, self._values(trial.params), trial.number, place)

    def _values(self, params: Mapping[str, Any]) -> dict[str, Any]:
        return {key: each.value(params[key]) for key, each in self.space.dimensions.items()}

    def _drawn(self, number: int) -> "optuna.Trial":
        """A trial with new values; where they can be counted, none are tried twice."""
        from optuna.trial import TrialState

        distributions = {key: each.distribution() for key, each in self.space.dimensions.items()}
        trial = self.study.ask(distributions)
        count = self.space.count
        if count is None:
            return trial
        values = [{key: row[key] for key in distributions} for row in self.rows()]
        values += [self._values(running.params) for running in self.running.values()]
        tried = set(map(json.dumps, values))
        if json.dumps(self._values(trial.params)) not in tried:
            return trial
        self.study.tell(trial, state=TrialState.FAIL)
        first = int(np.random.default_rng([self.aim.seed, number]).integers(count))
        draws = (self.space.draw((first + step) % count) for step in range(count))
        self.study.enqueue_trial(
            next(draw for draw in draws if json.dumps(self._values(draw)) not in tried)
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

    def told(self, asked: Asked, score: float) -> bool:
        """Record the score of a validation; return whether the trial goes on."""
        with self._alone():
            scores = self.scores[asked.key]
            scores.append(score)
            self.running[asked.key].report(score, len(scores))
            return not self.running[asked.key].should_prune()

    def end(self, asked: Asked, end: End, *, seconds: float) -> dict[str, Any]:
        """Record the end of a trial; return its row."""
        with self._alone():
            trial, scores = self.running.pop(asked.key), self.scores.pop(asked.key)
            best = (max if self.aim.better == "higher" else min)(scores, default=None)
            row = {
                "number": asked.number,
                **asked.values,
                "score": best,
                "state": end.state,
                "epochs": round(end.epochs, 2),
                "seconds": round(seconds, 1),
                "why": end.why,
            }
            trial.set_user_attr("end", row)
            self._tell(asked.key, row)
            return row

    def stop(self, asked: Asked) -> None:
        """Record that a trial was stopped: it will be repeated from its start."""
        with self._alone():
            self.scores.pop(asked.key)
            self._take_up(asked.key, self.running.pop(asked.key).params, None)

    def _take_up(self, key: int, params: dict[str, Any], row: dict[str, Any] | None) -> None:
        """Settle a trial that was left running: it had ended, or it is repeated."""
        from optuna.trial import TrialState

        if row is not None:
            self._tell(key, row)
        else:
            self.study.enqueue_trial(params)
            self.study.tell(key, state=TrialState.FAIL)

    def _tell(self, key: int, row: dict[str, Any]) -> None:
        from optuna.trial import TrialState

        states = {
            "complete": TrialState.COMPLETE,
            "pruned": TrialState.PRUNED,
            "failed": TrialState.FAIL,
        }
        score = row["score"] if row["state"] == "complete" else None
        self.study.tell(key, score, state=states[row["state"]])

    def rows(self) -> list[dict[str, Any]]:
        """The row of every trial that has ended: number, values, score, state, epochs, …."""
        with self._alone():
            notes = [trial.user_attrs for trial in self.study.trials]
        return sorted(
            (note["end"] for note in notes if "end" in note), key=lambda row: row["number"]
        )


def _opened(folder: Path, aim: Aim, trials: int) -> "optuna.Study":
    """The study of a folder, begun where there is none."""
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


def _check_same(study: "optuna.Study", aim: Aim, folder: Path) -> None:
    """Refuse to go on with another recipe, space, metric, seed or start."""
    before, now = study.user_attrs["aim"], json.loads(json.dumps(asdict(aim)))
    changed = [name for name in now if before.get(name) != now[name]]
    if changed:
        other = " and ".join("--from" if name == "start" else name for name in changed)
        remedy = "resume with the same, or choose another --out."
        raise RunError(f"{folder} holds a search with another {other}; {remedy}")


def _sampler(seed: int, number: int) -> "optuna.samplers.BaseSampler":
    """A sampler for one trial, which depends on its number, and so not on a stop before it."""
    from optuna.samplers import TPESampler

    return TPESampler(seed=int(np.random.SeedSequence([seed, number]).generate_state(1)[0]))


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
