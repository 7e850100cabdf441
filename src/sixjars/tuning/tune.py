"""Parameter search, whole: from a recipe and a space to the recipe with the best values.

Trials are trained on the training set and scored on the validation set, by the metric that the recipe chooses its
checkpoint by. The test set is never scored, so its score stays an honest one for the recipe that is found.
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
from sixjars.evaluation.metrics import metric_named
from sixjars.learning.engine import Device, device_named
from sixjars.progress import Reporter, duration, usual_reporter
from sixjars.recipe.files import RecipeLike, overridden, values_from
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.fine_tune import fingerprint
from sixjars.runs.splits import SPLITS
from sixjars.runs.train import default_folder, recipe_of_training
from sixjars.tasks import TASKS
from sixjars.tuning.result import TABLE, WRITTEN, Tuning, line_of
from sixjars.tuning.space import (
    TRIALS,
    WHERE,
    Space,
    SpaceLike,
    check_counts,
    overrides_of,
    space_of,
)
from sixjars.tuning.study import (
    FILE,
    TRIALS_FOLDER,
    Aim,
    Asked,
    Study,
    alone,
    check_installed,
    check_unused,
    is_begun,
)
from sixjars.tuning.trial import End, Memory, Order, Told, try_order
from sixjars.tuning.trial_process import TrialProcess, place_of
from sixjars_runtime.errors import Interrupted, RecipeError, RunError

HOPELESS: Final = 3
"""When so many trials fail before one succeeds, the search ends."""
STAYS_HERE: Final = "jobs: tables and classes in memory stay in this process; leave out jobs, or name files and allow=[…]."
OF_A_TOKEN: Final = ("loss", "perplexity")
"""Metrics whose values depend on how the outputs are cut into tokens."""
COMBINED: Final = 100
"""With so many combinations of other values a value is tried, before it is said that no recipe takes it."""
Try = Callable[[Order, Told], End]
"""Makes a trial."""


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

    `space` has `KEY=SPACE` texts, or is a dict: `{"learning.rate": "log(1e-4,1e-2)", "model.encoder.size": [64, 128]}`.
    A range is `log(a,b)`, `uniform(a,b)` or `int(a,b)`; a list has choices; any other value is the same in all trials.
    `trials` is how many there are in all; `resume` goes on with those that `out` holds. With `jobs`, so many are made
    at once, each in a process of its own. The other options are those of `train`.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     space = [*few, "learning.rate=log(1e-4,1e-2)"]
    ...     found = sixjars.tune("transliteration/sample_attention", space, trials=2, out=folder, device="cpu")
    ...     found.metric, list(found.best), [row["state"] for row in found.trials]
    ('loss', ['learning.rate'], ['complete', 'complete'])
    """
    check_installed()
    outside, tables = Outside(tuple(allow), tuple(components)), tables_of(data, SPLITS)
    check_counts(trials=trials, jobs=jobs)
    if jobs > 1 and (tables or outside.components):
        raise RecipeError([STAYS_HERE], WHERE)
    usual, wanted = default_folder(recipe), space_of(space)
    folder = Path(out) if out is not None else usual.with_name(f"{usual.name}-tune")
    values, where = values_from(recipe)
    fixed = overridden(values, [*overrides_of(wanted.fixed), *with_tables(tables)])
    plan = Plan(fixed, where, folder, outside, device, None if from_run is None else Path(from_run))
    begins = resume and not is_begun(folder)
    aim = _checked(plan, wanted, seed=seed, resume=resume)
    with alone(folder / FILE):
        study = Study(folder, aim, wanted, trials=trials)
        search = Search(
            plan, study, reporter or usual_reporter(), Memory(outside.components, tables)
        )
        if begins:
            search.reporter.note(f"there is no search in {folder} to resume yet, so one is begun.")
        return search.whole(min(jobs, study.trials))


def _checked(plan: "Plan", space: Space, *, seed: int, resume: bool) -> Aim:
    """What is searched for, if it can be searched in this folder."""
    folder, base = plan.folder, plan.recipe({})
    device_named(plan.device)
    if is_begun(folder) and not resume:
        raise RunError(
            f"{folder} holds a search already; go on with --resume, or choose another folder with --out."
        )
    if not is_begun(folder):
        check_unused(folder, (TRIALS_FOLDER, *WRITTEN))
    check_values(plan, space)
    aim = _aim(base, space, seed, plan.outside)
    return replace(aim, start=None if plan.start is None else fingerprint(plan.start))


def _aim(base: Recipe, space: Space, seed: int, outside: Outside) -> Aim:
    """What is searched for, by which metric."""
    if base.learning.folds is not None:
        raise RecipeError(
            [
                "learning.folds: a search scores one validation set; remove it, or say learning.folds=null."
            ]
        )
    metric, output = base.learning.metric or "loss", f"data.{TASKS[base.task].output.name}."
    counted = next((key for key in space.dimensions if key.startswith(output)), None)
    if counted is not None and metric in OF_A_TOKEN:
        fault = f"{counted} changes the tokens that {metric} is the mean of; choose another metric: learning.metric=NAME."
        raise RecipeError([fault], WHERE)
    better = "lower" if metric == "loss" else metric_named(metric, outside).better
    return Aim(base.to_yaml(), space.texts(), metric, better, seed)


@final
@dataclass(frozen=True)
class Plan:
    """What all trials share."""

    values: Mapping[str, Any]
    """Of the recipe, before it is checked."""
    where: str
    """What messages call it."""
    folder: Path
    outside: Outside
    device: Device
    start: Path | None

    def recipe(self, values: Mapping[str, Any]) -> Recipe:
        """The recipe with some values in it."""
        try:
            return recipe_of_training(
                self.values, overrides_of(values), self.outside, None, self.start
            )[0]
        except RecipeError as error:
            raise RecipeError(error.faults, self.where) from None

    def order(self, asked: Asked) -> Order:
        """What a trial is told."""
        start = None if self.start is None else str(self.start)
        return Order(
            self.recipe(asked.values).to_yaml(),
            str(asked.folder),
            self.device,
            start,
            self.outside.packages,
        )

    @property
    def options(self) -> tuple[str, ...]:
        """What `train` needs besides a recipe."""
        start = () if self.start is None else ("--from", str(self.start))
        return (*start, *(word for name in self.outside.packages for word in ("--allow", name)))


def check_values(plan: Plan, space: Space) -> None:
    """Every choice and every end of a range is in some recipe that can be built; otherwise a fault says why."""
    corners = {key: one.corners() for key, one in space.dimensions.items()}
    faults: dict[str, None] = {}
    for key, values in corners.items():
        others = {name: some for name, some in corners.items() if name != key}
        for value in values:
            wrong = _faults(plan, {key: value})
            combined = islice(product(*others.values()), COMBINED if wrong else 0)
            if wrong and all(
                _faults(plan, {**dict(zip(others, some, strict=True)), key: value})
                for some in combined
            ):
                faults |= dict.fromkeys(wrong)
    if faults:
        raise RecipeError(list(faults), WHERE)


def _faults(plan: Plan, values: Mapping[str, Any]) -> tuple[str, ...]:
    try:
        plan.recipe(values)
    except RecipeError as error:
        return error.faults
    return ()


@final
class Search:
    """The loop over trials: ask, train, tell; in one process or in several."""

    def __init__(self, plan: Plan, study: Study, reporter: Reporter, memory: Memory) -> None:
        self.plan, self.study, self.reporter = plan, study, reporter
        self.memory = replace(memory, reporter=reporter)
        self.lock = Lock()
        self.began_at, self.made, self.noted = time.monotonic(), 0, set[str]()

    def whole(self, jobs: int) -> Tuning:
        """All of it, and the drawing, whatever ends it."""
        count = self.study.trials
        if count < self.study.wanted:
            self.reporter.note(
                f"there are {count} combinations of these values, so there are as many trials."
            )
        try:
            self._run(jobs)
        finally:
            self.reporter.end()
            found = self.found()
            if found.trials:
                found.draw()
        if found.best_trial is None:
            raise RunError(f"no trial was completed; {found.folder / TABLE} says why.")
        return found

    def _run(self, jobs: int) -> None:
        """Until there are enough trials; those that are under way when it is stopped will be made again."""
        try:
            if jobs == 1:
                self._loop(self._here)
            else:
                gpus = (
                    torch.cuda.device_count()
                    if device_named(self.plan.device).type == "cuda"
                    else 0
                )
                self._in_processes(
                    [
                        TrialProcess(place_of(job, jobs, gpus=gpus), self._note)
                        for job in range(jobs)
                    ]
                )
        except (Interrupted, KeyboardInterrupt):
            done = len(self.study.rows())
            raise Interrupted(
                f"stopped after {done} of {self.study.trials} trials; the same command with --resume goes on."
            ) from None

    def _here(self, order: Order, told: Told) -> End:
        what = f"trial {len(self.study.rows()) + 1} of {self.study.trials}, steps"
        return try_order(order, told, replace(self.memory, what=what, notes=self.made == 0))

    def _note(self, sentence: str) -> None:
        """From any process, about the data, which all trials share: each sentence once, of the first trials."""
        with self.lock:
            if self.made == 0 and sentence not in self.noted:
                self.noted.add(sentence)
                self.reporter.note(sentence)

    def _in_processes(self, processes: list[TrialProcess]) -> None:
        """A thread for each, which waits most of the time."""
        try:
            with ThreadPoolExecutor(len(processes)) as threads:
                loops = [threads.submit(self._loop, one.try_order) for one in processes]
                try:
                    for loop in wait(loops, return_when=FIRST_EXCEPTION).done:
                        loop.result()
                finally:
                    for one in processes:
                        one.stop()
        finally:
            for one in processes:
                one.close()

    def _loop(self, try_it: Try) -> None:
        while (asked := self.study.ask()) is not None:
            began = time.monotonic()
            try:
                end = self._ended(asked, partial(self.study.told, asked), try_it)
            except BaseException:
                self.study.stop(asked)
                raise
            self._write(self.study.end(asked, end, seconds=time.monotonic() - began))

    def _ended(self, asked: Asked, told: Told, try_it: Try) -> End:
        """The end of a trial; values that do not fit each other are one too."""
        try:
            order = self.plan.order(asked)
        except RecipeError as error:
            return End("failed", " ".join(error.faults))
        return try_it(order, told)

    def _write(self, row: Mapping[str, Any]) -> None:
        """What is on disk and on the screen after a trial."""
        with self.lock:
            self.made += 1
            found = self.found()
            found.write_table()
            is_best = found.best_trial == row
            if found.best_trial is not None:
                found.write_recipe(self.plan.recipe(found.best))
            line = line_of(
                row, list(found.axes), found.metric, trials=self.study.trials, is_best=is_best
            )
            self.reporter.tried(
                f"{line}  {duration(row['seconds'])}{self._left(len(found.trials))}"
            )
            if len(found.trials) >= HOPELESS and all(
                one["state"] == "failed" for one in found.trials
            ):
                raise RunError(
                    f"the first {len(found.trials)} trials all failed; the last one: {row['why']}"
                )

    def _left(self, done: int) -> str:
        """How long the others will take, by those that were made here."""
        left = self.study.trials - done
        seconds = (time.monotonic() - self.began_at) / self.made * left
        return f", about {duration(seconds)} left" if left > 0 else ""

    def found(self) -> Tuning:
        """What there is so far."""
        aim, axes = (
            self.study.aim,
            {key: one.axis for key, one in self.study.space.dimensions.items()},
        )
        rows = tuple(self.study.rows())
        memory = self.memory.arguments(self.plan.start, self.plan.outside.packages)
        return Tuning(
            self.plan.folder, aim.metric, aim.better, axes, rows, self.plan.options, memory
        )
