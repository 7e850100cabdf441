"""Parameter search, whole: from a recipe and a space to the recipe with the best values.

Trials are trained on the training set and scored on the validation set, by the metric that the
recipe chooses its checkpoint by. The test set is never scored, so its score stays an honest one for
the recipe that is found.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, product
from pathlib import Path
from threading import Lock
from typing import Any, Final, final

import torch

from sixjars.data.tables.memory import tables_of, with_tables
from sixjars.kernels.backends import Device, device_named
from sixjars.progress import Reporter, duration, usual_reporter
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.files import RecipeLike, overridden, values_from
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.split_files import SPLITS
from sixjars.runs.fine_tune import fingerprint
from sixjars.runs.recipes import chosen_by
from sixjars.runs.train import default_folder, recipe_of_training
from sixjars.tasks import TASKS
from sixjars.tuning.result import TABLE, WRITTEN, Tuning, line_of
from sixjars.tuning.search_space import (
    TRIALS,
    WHERE,
    SearchSpace,
    SpaceLike,
    overrides_of,
    space_of,
)
from sixjars.tuning.study import (
    FILE,
    TRIALS_FOLDER,
    Study,
    StudyPurpose,
    Trial,
    alone,
    is_begun,
)
from sixjars.tuning.trial import KeepGoing, TrialEnd, TrialObjects, TrialSettings, try_order
from sixjars.tuning.trial_process import TrialProcess, place_of
from sixjars_runtime.errors import Interrupted, RecipeError, RunError

HOPELESS: Final = 3
"""The search ends when so many trials fail before one succeeds."""
STAYS_HERE: Final = (
    "jobs: tables and classes in memory stay in this process; leave out jobs, or name files and "
    "allow=[…]."
)
OF_A_TOKEN: Final = ("loss", "perplexity")
"""Metrics whose values depend on how the outputs are cut into tokens."""
COMBINED: Final = 100
"""Combinations of other values that a value is tried with, before it counts as impossible."""
Try = Callable[[TrialSettings, KeepGoing], TrialEnd]
"""Runs a trial."""


def tune(  # noqa: PLR0913 - the options of a search, and those of its trainings
    recipe: RecipeLike,
    space: SpaceLike,
    *,
    trials: int = TRIALS,
    out: str | Path | None = None,
    resume: bool = False,
    jobs: int = 1,
    seed: int = 0,
    data: Any = None,
    from_run: str | Path | None = None,
    device: Device = "auto",
    reporter: Reporter | None = None,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Tuning:
    """Search for the best values of some keys of a recipe, by the validation set.

    `space` has `KEY=SPACE` texts, or is a dict: `{"learning.rate": "log(1e-4,1e-2)",
    "model.encoder.size": [64, 128]}`. A range is `log(a,b)`, `uniform(a,b)` or `int(a,b)`; a list
    has choices; any other value is the same in all trials. `trials` is how many there are in all;
    `resume` goes on with those that `out` holds. With `jobs`, so many are made at once, each in a
    process of its own. The other options are those of `train`.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     space = [*few, "learning.rate=log(1e-4,1e-2)"]
    ...     recipe = "transliteration/sample_attention"
    ...     result = sixjars.tune(recipe, space, trials=2, out=folder, device="cpu")
    ...     result.metric, list(result.best), [row["state"] for row in result.trials]
    ('loss', ['learning.rate'], ['complete', 'complete'])
    """
    outside = AllowedCode(tuple(allow), tuple(components))
    tables = tables_of(data, SPLITS)
    counts = {"trials": trials, "jobs": jobs}
    few = {name: count for name, count in counts.items() if count < 1}
    if few:
        faults = [f"{name} must be 1 or more, but is {count}." for name, count in few.items()]
        raise RecipeError(faults, WHERE)
    if jobs > 1 and (tables or outside.components):
        raise RecipeError([STAYS_HERE], WHERE)
    usual = default_folder(recipe)
    searched = space_of(space)
    folder = Path(out) if out is not None else usual.with_name(f"{usual.name}-tune")
    values, where = values_from(recipe)
    fixed = overridden(values, [*overrides_of(searched.fixed), *with_tables(tables)])
    plan = TuningPlan(
        fixed, where, folder, outside, device, None if from_run is None else Path(from_run)
    )
    begins = resume and not is_begun(folder)
    aim = _checked(plan, searched, seed=seed, resume=resume)
    with alone(folder / FILE):
        study = Study(folder, aim, searched, trials=trials)
        memory = TrialObjects(outside.components, tables)
        search = TrialLoop(plan, study, reporter or usual_reporter(), memory)
        if begins:
            search.reporter.note(f"there is no search in {folder} to resume yet, so one is begun.")
        return search.whole(min(jobs, study.trials))


def _checked(plan: "TuningPlan", space: SearchSpace, *, seed: int, resume: bool) -> StudyPurpose:
    """The aim of a search, if it can be made in this folder."""
    folder = plan.folder
    base = plan.recipe({})
    device_named(plan.device)
    if is_begun(folder) and not resume:
        remedy = "go on with --resume, or choose another folder with --out."
        raise RunError(f"{folder} holds a search already; {remedy}")
    for path in (folder / name for name in (TRIALS_FOLDER, *WRITTEN)):
        if not is_begun(folder) and path.exists():
            there = f"{path} is there already, and not of a search"
            raise RunError(f"{there}; choose another folder with --out.")
    check_values(plan, space)
    if base.learning.folds is not None:
        fault = "a search scores one validation set; remove it, or say learning.folds=null."
        raise RecipeError([f"learning.folds: {fault}"])
    metric, better = chosen_by(base, plan.outside)
    output = f"data.{TASKS[base.task].output.name}."
    counted = next((key for key in space.distributions if key.startswith(output)), None)
    if counted is not None and metric in OF_A_TOKEN:
        changes = f"{counted} changes the tokens that {metric} is the mean of"
        fault = f"{changes}; choose another metric: learning.metric=NAME."
        raise RecipeError([fault], WHERE)
    start = None if plan.start is None else fingerprint(plan.start)
    return StudyPurpose(base.to_yaml(), space.texts(), metric, better, seed, start)


@final
@dataclass(frozen=True)
class TuningPlan:
    """The settings that all trials share."""

    values: Mapping[str, Any]
    """The recipe's values, before they are checked."""
    where: str
    """The recipe's name in messages."""
    folder: Path
    outside: AllowedCode
    device: Device
    start: Path | None

    def recipe(self, values: Mapping[str, Any]) -> Recipe:
        """The recipe with some values in it."""
        overrides = overrides_of(values)
        try:
            return recipe_of_training(self.values, overrides, self.outside, None, self.start)[0]
        except RecipeError as error:
            raise RecipeError(error.faults, self.where) from None

    def order(self, trial: Trial) -> TrialSettings:
        """A trial to train, in plain values."""
        start = None if self.start is None else str(self.start)
        recipe = self.recipe(trial.values).to_yaml()
        return TrialSettings(recipe, str(trial.folder), self.device, start, self.outside.packages)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `train` besides its recipe."""
        start = () if self.start is None else ("--from", str(self.start))
        return (*start, *(word for name in self.outside.packages for word in ("--allow", name)))


def check_values(plan: TuningPlan, space: SearchSpace) -> None:
    """Refuse choices and ends of ranges that no recipe takes, with any of the other values."""
    corners = space.corners()
    faults: dict[str, None] = {}
    for key, values in corners.items():
        others = {name: corners[name] for name in corners if name != key}
        for value in values:
            wrong = _faults(plan, {key: value})
            drawn = islice(product(*others.values()), COMBINED if wrong else 0)
            combined = (dict(zip(others, draw, strict=True)) for draw in drawn)
            if wrong and all(_faults(plan, {**rest, key: value}) for rest in combined):
                faults |= dict.fromkeys(wrong)
    if faults:
        raise RecipeError(list(faults), WHERE)


def _faults(plan: TuningPlan, values: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        plan.recipe(values)
    except RecipeError as error:
        return error.faults
    return ()


@final
class TrialLoop:
    """The loop over trials: ask, train, tell; in one process or in several."""

    def __init__(
        self, plan: TuningPlan, study: Study, reporter: Reporter, memory: TrialObjects
    ) -> None:
        self.plan = plan
        self.study = study
        self.reporter = reporter
        self.memory = replace(memory, reporter=reporter)
        self.lock = Lock()
        self.began_at = time.monotonic()
        self.made = 0
        self.noted = set[str]()

    def whole(self, jobs: int) -> Tuning:
        """Run all trials and draw them; the drawing is made whatever ends the search."""
        count = self.study.trials
        if count < self.study.requested:
            combinations = f"there are {count} combinations of these values"
            self.reporter.note(f"{combinations}, so there are as many trials.")
        try:
            self._run(jobs)
        finally:
            self.reporter.end()
            result = self.result()
            if result.trials:
                result.draw()
        if result.best_trial is None:
            raise RunError(f"no trial was completed; {result.folder / TABLE} says why.")
        return result

    def _run(self, jobs: int) -> None:
        """Run trials until there are enough; those that are stopped will be repeated."""
        try:
            if jobs == 1:
                self._loop(self._here)
                return
            is_cuda = device_named(self.plan.device).type == "cuda"
            gpus = torch.cuda.device_count() if is_cuda else 0
            places = [place_of(job, jobs, gpus=gpus) for job in range(jobs)]
            self._in_processes([TrialProcess(place, self._note) for place in places])
        except (Interrupted, KeyboardInterrupt):
            done = f"stopped after {len(self.study.rows())} of {self.study.trials} trials"
            raise Interrupted(f"{done}; the same command with --resume goes on.") from None

    def _here(self, order: TrialSettings, goes_on: KeepGoing) -> TrialEnd:
        what = f"trial {len(self.study.rows()) + 1} of {self.study.trials}, steps"
        return try_order(order, goes_on, replace(self.memory, what=what, notes=self.made == 0))

    def _note(self, sentence: str) -> None:
        """Pass on notes on the data of the first trials, from any process; each sentence once."""
        with self.lock:
            if self.made == 0 and sentence not in self.noted:
                self.noted.add(sentence)
                self.reporter.note(sentence)

    def _in_processes(self, processes: list[TrialProcess]) -> None:
        """Run trials in processes, with a thread for each, which waits most of the time."""
        try:
            with ThreadPoolExecutor(len(processes)) as threads:
                loops = [threads.submit(self._loop, process.try_order) for process in processes]
                try:
                    for loop in wait(loops, return_when=FIRST_EXCEPTION).done:
                        loop.result()
                finally:
                    for process in processes:
                        process.stop()
        finally:
            for process in processes:
                process.close()

    def _loop(self, try_it: Try) -> None:
        while (trial := self.study.ask()) is not None:
            began = time.monotonic()
            try:
                end = self._ended(trial, try_it)
            except BaseException:
                self.study.stop(trial)
                raise
            self._write(self.study.end(trial, end, seconds=time.monotonic() - began))

    def _ended(self, trial: Trial, try_it: Try) -> TrialEnd:
        """The end of a trial; values that do not fit each other are an end too."""
        try:
            order = self.plan.order(trial)
        except RecipeError as error:
            return TrialEnd("failed", " ".join(error.faults))
        return try_it(order, partial(self.study.report, trial))

    def _write(self, row: Mapping[str, Any]) -> None:
        with self.lock:
            self.made += 1
            result = self.result()
            result.write_table()
            is_best = result.best_trial == row
            trials = self.study.trials
            if result.best_trial is not None:
                result.write_recipe(self.plan.recipe(result.best))
            line = line_of(row, list(result.axes), result.metric, trials=trials, is_best=is_best)
            done = len(result.trials)
            self.reporter.tried(f"{line}  {duration(row['seconds'])}{self._left(done)}")
            if done >= HOPELESS and all(each["state"] == "failed" for each in result.trials):
                failed = f"the first {done} trials all failed; the last one: {row['why']}"
                raise RunError(failed)

    def _left(self, done: int) -> str:
        """The time that the other trials will take, by those that were run here."""
        left = self.study.trials - done
        seconds = (time.monotonic() - self.began_at) / self.made * left
        return f", about {duration(seconds)} left" if left > 0 else ""

    def result(self) -> Tuning:
        """The trials that have ended so far."""
        plan, aim = self.plan, self.study.aim
        axes = self.study.space.axes()
        rows = tuple(self.study.rows())
        memory = self.memory.arguments(plan.start, plan.outside.packages)
        return Tuning(plan.folder, aim.metric, aim.better, axes, rows, plan.options, memory)
