"""Training, whole: from a recipe to a folder that can be used."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from sixjars.data.tables.memory import given_tables, tables_of, with_tables
from sixjars.decoding import in_words
from sixjars.evaluation.baselines.result import Baseline
from sixjars.evaluation.metrics import Metric, metric_named, missed_of, why_zero
from sixjars.evaluation.score import JudgedOutputs, judged
from sixjars.flow.backend import Backend
from sixjars.kernels.backends import Device
from sixjars.learning.checkpoints import read_cost
from sixjars.learning.engine import (
    Engine,
    backend_of_training,
    fabric_for,
    precision_on,
    together,
)
from sixjars.learning.loggers import loggers_for
from sixjars.learning.loop import Trainer, TrainingHooks
from sixjars.loss import Objective, class_weights
from sixjars.model.build import Network, path_of
from sixjars.progress import Reporter, Summary, listening, number_of, usual_reporter
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.files import RecipeLike, listed_overrides
from sixjars.recipe.sections import Recipe
from sixjars.runs.baselines.run_baselines import BaselineScoring, kept_baselines
from sixjars.runs.data.split_files import SPLITS
from sixjars.runs.data.splits import Splits, notes_on, splits_of
from sixjars.runs.fine_tune import StartingRun, recipe_and_origin
from sixjars.runs.folder.run_folder import RunFolder, begin_run, check_free, has_run, was_begun
from sixjars.runs.recipes import Blueprint, metrics_of, read_recipe
from sixjars.runs.run import Run
from sixjars.runs.training.end import sentence_of_end
from sixjars.runs.training.folds import cross_validate, notes_on_all
from sixjars.runs.training.learning_curves import draw_curves
from sixjars.runs.training.network import check_fits, enough_memory, fresh_network
from sixjars.runs.training.resume import Extension, extension_of
from sixjars.runs.training.trend import FEWEST
from sixjars_runtime.errors import Interrupted, LearningError

if TYPE_CHECKING:
    from lightning_fabric.loggers.logger import Logger

BITS = {
    "32": "32-bit",
    "bf16": "bfloat16 with 32-bit weights",
    "fp16": "16-bit with 32-bit weights",
}


def train(  # noqa: PLR0913 - the options of one training
    recipe: RecipeLike,
    overrides: Sequence[str] = (),
    *,
    data: Any = None,
    out: str | Path | None = None,
    resume: bool = False,
    from_run: str | Path | None = None,
    device: Device = "auto",
    devices: int = 1,
    fsdp: bool = False,
    reporter: Reporter | None = None,
    baselines: bool = True,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Run:
    """Train what a recipe describes; the run's folder can then be loaded.

    `recipe` is a file, the name of a packaged one, or a dict; `overrides` are `KEY=VALUE` strings.
    `data` is a table in memory in place of the training file: pandas, Arrow, or a list of dicts; or
    one for each split, `{"train": …, "valid": …}`. `components` are classes of yours that the
    recipe names, and metrics; `allow` names packages that they may be imported from. With
    `from_run`, training starts from the weights and vocabularies of that run, and no model need be
    given. `devices` are processes that train one model, with `fsdp` a share of it each. Without a
    `reporter`, a terminal or notebook shows progress. `baselines` are scored too.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     [score.name for score in run.scores]
    ['exact_match', 'character_error_rate']
    """
    outside = AllowedCode(tuple(allow), tuple(components))
    tables = {} if data is None else tables_of(data, SPLITS)
    overrides = [*listed_overrides(overrides), *(with_tables(tables) if tables else ())]
    folder = Path(out) if out is not None else default_folder(recipe)
    begins = resume and not was_begun(folder)
    resume = resume and was_begun(folder)
    resumed = folder if resume else None
    resolved, start = recipe_of_training(recipe, overrides, outside, resumed, from_run)
    learning = resolved.learning
    loggers = loggers_for(learning.loggers, folder) if learning.loggers else []
    fabric = fabric_for(
        device=device, devices=devices, precision=learning.precision, fsdp=fsdp, loggers=loggers
    )
    reporter = (reporter or usual_reporter()) if fabric.global_rank == 0 else Reporter()
    try:
        with (
            given_tables(tables) if tables else nullcontext(),
            together(fabric),
            listening(reporter),
        ):
            if begins and fabric.global_rank == 0:
                reporter.note(begun_instead(folder))
            run = RunFolder(folder, resolved, outside)
            options = TrainingOptions(resume, start, baselines)
            return _whole(run, options, fabric=fabric, reporter=reporter)
    except KeyboardInterrupt:
        raise Interrupted(stopped_in(folder)) from None
    finally:
        _end(reporter, loggers)


def recipe_of_training(
    recipe: RecipeLike,
    overrides: Sequence[str],
    outside: AllowedCode,
    resumed: Path | None,
    from_run: str | Path | None,
) -> tuple[Recipe, Path | None]:
    """The recipe of a training, and the run that it starts from, if any."""
    if resumed is not None and not has_run(resumed):  # folds alone
        resumed = None
    if resumed is None and from_run is None:
        return read_recipe(recipe, overrides, outside), None
    return recipe_and_origin(recipe, overrides, outside, resumed=resumed, from_run=from_run)


def begun_instead(folder: Path) -> str:
    """The note that a run is begun, as there is none to resume; refuse a folder of another kind."""
    check_free(folder)
    return f"there is no run in {folder} to resume yet, so one is begun."


def stopped_in(folder: Path) -> str:
    """The sentence for a training that was stopped outside its loop, which knows its step."""
    if was_begun(folder):
        return f"stopped; the same command with --resume goes on from what {folder} holds."
    return f"stopped before anything was kept in {folder}; the same command begins again."


def _end(reporter: Reporter, loggers: "Iterable[Logger]") -> None:
    """End the progress display, and write what loggers still hold."""
    reporter.end()
    for logger in loggers:
        logger.finalize("success")


def default_folder(recipe: RecipeLike) -> Path:
    """The folder of a run without `out`, named after its recipe, or after the task of a dict."""
    name = str(recipe.get("task", "run")) if isinstance(recipe, Mapping) else str(recipe)
    path = Path(name)
    is_file = path.suffix in {".yaml", ".yml"}
    return Path("runs") / (path.stem if is_file else name.replace("/", "-"))


@final
@dataclass(frozen=True)
class TrainingOptions:
    """The options of one training, besides its recipe."""

    resume: bool
    """Whether training goes on from what the folder holds."""
    start: Path | None
    """The run whose weights it begins with."""
    baselines: bool
    """Whether baselines are scored beside the model."""


def _whole(run: RunFolder, options: TrainingOptions, *, fabric: Engine, reporter: Reporter) -> Run:
    """One training, or one for each fold."""
    training = _train if run.recipe.learning.folds is None else _cross_validated
    return training(run, options, fabric=fabric, reporter=reporter)


def _cross_validated(
    run: RunFolder, options: TrainingOptions, *, fabric: Engine, reporter: Reporter
) -> Run:
    """Train a model for each fold and the one that is kept; a fold that was begun is resumed."""

    def train_one(fold: RunFolder) -> Run:
        begun = options.resume and (fold.folder / "recipe.yaml").is_file()
        fabric.barrier()  # before any process writes there
        return _train(fold, replace(options, resume=begun), fabric=fabric, reporter=reporter)

    if not options.resume:
        check_free(run.folder)
    about = notes_on_all(run, fabric.device, reporter) if fabric.global_rank == 0 else ()
    trained: Run = cross_validate(run, train_one, reporter.note, about)
    if not trained.scores:
        return trained
    return replace(trained, missed=missed_of(run.recipe.expect, trained.scores))


def _train(run: RunFolder, options: TrainingOptions, *, fabric: Engine, reporter: Reporter) -> Run:
    blueprint, splits, backend = fit(
        run, resume=options.resume, start=options.start, fabric=fabric, reporter=reporter
    )
    trained, model = _finished(run, blueprint, splits, fabric, backend, reporter)
    has_held_out = run.recipe.learning.folds is None  # else a baseline has no rows to be scored on
    if model is None or not options.baselines or not has_held_out:
        return trained
    return replace(trained, baselines=_baselines(run, splits, model, reporter))


def _baselines(
    run: RunFolder, splits: Splits, model: JudgedOutputs, reporter: Reporter
) -> tuple[Baseline, ...]:
    """The scores of baselines on the rows of the final scores."""
    spent = read_cost(run.folder)
    seconds = 0.0 if spent is None else spent.seconds
    beside = BaselineScoring.of(
        run.recipe, metrics_of(run.recipe, run.outside), took=seconds, model=model
    )
    return kept_baselines(run, beside, splits.scored, lambda: splits.train, reporter)


@enough_memory()
def fit(
    run: RunFolder,
    *,
    resume: bool,
    start: Path | None,
    fabric: Engine,
    reporter: Reporter,
    enough: Callable[[], bool] = lambda: False,
) -> tuple[Blueprint, Splits, Backend]:
    """Train, choosing weights by the validation set; the test set is not scored yet.

    Training pauses after the update at which `enough` is true; it goes on when it is resumed.
    """
    recipe = run.recipe
    leads = fabric.global_rank == 0
    extension = fabric.broadcast(_extension(run, resume=resume) if leads else Extension())
    fabric.barrier()
    blueprint = Blueprint.of(recipe, run.outside, device=fabric.device, reporter=reporter)
    if resume:
        run.check_backbones(blueprint.fingerprints)
        run.history()  # one that is damaged would be found after hours
    kept = run.restored(blueprint.fields) if resume and run.has_fields(blueprint.fields) else None
    begins = kept is None or not run.is_under_way
    origin = StartingRun.of(start, run.outside) if start is not None and begins else None
    with fabric.rank_zero_first():  # one process fills the cache, the others read it
        splits = splits_of(blueprint if origin is None else origin.taught(blueprint), kept)
    if resume:
        run.check_data(splits.fingerprints)
    check_fits(blueprint, splits, fabric.device, shares=fabric.world_size if fabric.shares else 1)
    backend = backend_of_training(fabric, recipe.learning)
    network = fresh_network(blueprint, splits, backend)
    if origin is not None:
        reporter.note(origin.hand_over(network, blueprint, splits.fields))
    hooks = _training_hooks(network, splits, run, reporter, enough)
    trainer = trainer_of(network, splits, recipe, hooks, fabric)
    if leads and kept is None:
        if not resume:  # only now: data or sizes that do not fit leave no run behind
            begin_run(run, splits.fingerprints, blueprint.fingerprints, origin and origin.note())
        run.keep_fields(splits.fields)
    if resume:
        extension.take_up(trainer, run)
    with fabric.whole():
        reporter.summary(summary_of(run, splits, trainer, fabric))
    is_whole = recipe.learning.folds is None and recipe.data.fold is None
    for sentence in notes_on(splits) if is_whole else ():
        reporter.note(sentence)
    _run(trainer, run)
    return blueprint, splits, backend


def _run(trainer: Trainer, run: RunFolder) -> None:
    had_finished = trainer.state.finished
    trainer.run()
    if not had_finished and trainer.state.finished and trainer.leads:
        if trainer.state.step == trainer.total and trainer.validations < FEWEST:
            return  # so few show no trend
        resumable = run.recipe.learning.folds is None and run.recipe.data.fold is None
        if sentence := sentence_of_end(trainer, run.history(), resumable=resumable):
            trainer.hooks.reporter.stopped(sentence)


def _extension(run: RunFolder, *, resume: bool) -> Extension:
    """The changes of a run that is resumed; a new one must not spoil its folder."""
    if resume:
        return extension_of(run)
    check_free(run.folder)
    return Extension()


def summary_of(run: RunFolder, splits: Splits, trainer: Trainer, fabric: Engine) -> Summary:
    """The facts that are shown before training."""
    recipe = run.recipe
    several = f" × {fabric.world_size} processes" if fabric.world_size > 1 else ""
    several += ", each with a share of the weights" if fabric.shares else ""
    bits = BITS[precision_on(fabric.device.type, recipe.learning.precision)]
    facts = {"device": f"{fabric.device.type}{several}, {bits}", **splits.facts(recipe)}
    weights = list(trainer.network.parameters())
    count = sum(weight.numel() for weight in weights)
    trained = sum(weight.numel() for weight in weights if weight.requires_grad)
    facts["parameters"] = f"{count:,}"
    if trained < count:
        facts["parameters"] += f", {trained:,} of them trained"
    epochs = number_of(float(f"{trainer.total / trainer.per_epoch:.3g}"), "epoch")
    facts["steps"] = f"{trainer.total:,} at most, {trainer.per_epoch:,} an epoch ({epochs})"
    if path := path_of(trainer.network, fast=recipe.learning.fast):
        facts["path"] = path + trainer.updates.means()
    searches = trainer.network.decoder.searches
    if searches:
        final = in_words(recipe.evaluation.search)
        greedy = final == "greedy search"
        every = recipe.learning.validate_every
        when = "after each epoch" if every is None else f"every {number_of(every, 'step')}"
        facts["search"] = final if greedy else f"greedy search {when}, {final} for the final score"
    slow = [metric.name for metric in metrics_of(recipe, run.outside) if metric.slow]
    if late := [name for name in slow if name != recipe.learning.metric]:
        take = "they take" if len(late) > 1 else "it takes"
        facts["at the end"] = f"{', '.join(late)}, because {take} long"
    return Summary(facts, "greedy search" if searches else "")


def trainer_of(
    network: Network, splits: Splits, recipe: Recipe, hooks: TrainingHooks, fabric: Engine
) -> Trainer:
    """The trainer of a network on the training set of a recipe."""
    learning = recipe.learning
    batches = splits.train.batches(
        batch_tokens=learning.batch_tokens,
        batch_examples=learning.batch_examples,
        seed=learning.seed,
        training=True,
        guided=recipe.loss.guide > 0,
    )
    return Trainer(_objective(network, splits, recipe), batches, learning, hooks, fabric)


def _training_hooks(
    network: Network, splits: Splits, run: RunFolder, reporter: Reporter, enough: Callable[[], bool]
) -> TrainingHooks:
    metric = run.recipe.learning.metric
    chosen = [] if metric in (None, "loss") else [metric_named(str(metric), run.outside)]
    better = chosen[0].better if chosen else "lower"
    validate = _validation(network, splits, run, chosen)
    return TrainingHooks(run.folder, validate, better, reporter, enough)


def _objective(network: Network, splits: Splits, recipe: Recipe) -> Objective:
    """The network and its loss, with class weights from the training set and word dropout."""
    counts = splits.train.label_counts
    label = splits.fields.output.normalize
    weights = class_weights(recipe.loss, counts(), label) if recipe.loss.class_weights else None
    rates = {name: field.word_dropout for name, field in splits.fields.inputs.items()}
    dropped = {name: rate for name, rate in rates.items() if rate}
    return Objective(network, recipe.loss, weights=weights, word_dropout=dropped)


def _validation(
    network: Network, splits: Splits, run: RunFolder, chosen: Sequence[Metric]
) -> Callable[[], dict[str, float]]:
    """Loss and metrics on the validation set, by greedy search: quick, and steady to compare by."""
    recipe = run.recipe
    search = recipe.evaluation.search.model_copy(update={"kind": "greedy", "nbest": 1})
    settings = recipe.evaluation.model_copy(update={"search": search})
    reported = metrics_of(recipe, run.outside)
    named = {metric.name: metric for metric in reported if metric.nbest == 1 and not metric.slow}
    if not splits.valid.table.has("alignment"):  # where only the test set has links
        named = {name: metric for name, metric in named.items() if "links" not in metric.needs}
    metrics = list((named | {metric.name: metric for metric in chosen}).values())

    def validate() -> dict[str, float]:
        result = judged(
            network, splits.valid, settings, metrics, training=splits.train, with_loss=True
        )
        if not math.isfinite(result.loss):
            raise LearningError(
                "the validation loss is no longer a number; try a lower learning.rate."
            )
        return {"loss": result.loss} | {score.name: score.value for score in result.scores(metrics)}

    return validate


def _finished(
    run: RunFolder,
    blueprint: Blueprint,
    splits: Splits,
    fabric: Engine,
    backend: Backend,
    reporter: Reporter,
) -> tuple[Run, JudgedOutputs | None]:
    """Score the final weights and keep the scores; one process of several does that."""
    recipe, scored, dropped = run.recipe, splits.scored, splits.train.dropped
    if fabric.global_rank != 0:
        return Run(run.folder, (), len(scored), scored.where, splits.skipped, dropped, ()), None
    network = run.network(blueprint, splits.fields, backend).to(fabric.device)
    metrics = metrics_of(recipe, run.outside)
    model = judged(network, scored, recipe.evaluation, metrics, training=splits.train)
    scores = tuple(model.scores(metrics))
    if model.searches:
        for sentence in why_zero(metrics, scores, model.outcomes[min(model.outcomes)]):
            reporter.note(sentence)
    values = {score.name: {"value": score.value, "signature": score.signature} for score in scores}
    split = "valid" if splits.test is None else "test"
    count = scores[0].count
    run.write_scores({"split": split, "examples": count, "scores": values})
    draw_curves(run)
    missed = missed_of(recipe.expect, scores)
    why = splits.train.why_dropped
    where, skipped = scored.where, splits.skipped
    return Run(run.folder, scores, count, where, skipped, dropped, missed, run.outside, why), model
