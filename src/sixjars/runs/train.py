"""Training, whole: from a recipe to a folder that can be used."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch

from sixjars.data.dataset import NOTHING, Fields
from sixjars.errors import Interrupted, LearningError
from sixjars.evaluation.metrics import Metric, Score, metric_named
from sixjars.evaluation.score import judged
from sixjars.flow.values import Batch
from sixjars.learning.engine import Device, all_or_none, fabric_for
from sixjars.learning.loop import Surroundings, Trainer
from sixjars.loss import Objective
from sixjars.model.build import Network, build, freeze_unused
from sixjars.progress import Reporter
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint, Splits, add_vectors, splits_of
from sixjars.runs.folder import Run, begin_run, check_free, resume_run
from sixjars.runs.recipes import metrics_of, read_recipe

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@final
@dataclass(frozen=True)
class Trained:
    """What training left behind."""

    folder: Path
    scores: tuple[Score, ...]
    """On the test set, or on the validation set where there is none."""
    examples: int
    """How many were scored."""
    where: str
    """What they are."""
    skipped: int
    """Bad rows that were left out of the data."""
    dropped: int
    """Training rows that were not learned from: too long, or with a label that is not in the list."""
    missed: tuple[str, ...]
    """What the recipe expected and did not get, a sentence each."""


def train(  # noqa: PLR0913 - the options of one training
    recipe: str | Path,
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: Device = "auto",
    devices: int = 1,
    reporter: Reporter | None = None,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Trained:
    """Train what a recipe describes; the run's folder can then be loaded.

    `recipe` is a file or the name of one that comes with the package; `overrides` are `KEY=VALUE` strings.
    `components` are classes of yours that the recipe names by their path (`kind: my_package.module.MyEncoder`);
    `allow` names packages that such classes may be imported from.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     [score.name for score in run.scores]
    ['exact_match', 'character_error_rate']
    """
    outside = Outside(tuple(allow), tuple(components))
    wanted = read_recipe(str(recipe), overrides, outside)
    folder = Path(out) if out is not None else default_folder(str(recipe))
    fabric = fabric_for(device=device, devices=devices, precision=wanted.learning.precision)
    reporter = reporter or Reporter()
    try:
        with all_or_none(fabric):
            return _train(Run(folder, wanted, outside), resume=resume, fabric=fabric, reporter=reporter)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; the same command with --resume goes on from what {folder} holds.") from None
    finally:
        reporter.end()


def default_folder(recipe: str) -> Path:
    """Where a run goes when nobody says: `runs/translation-sample_attention`."""
    path = Path(recipe)
    return Path("runs") / (path.stem if path.suffix in {".yaml", ".yml"} else recipe.replace("/", "-"))


def _train(run: Run, *, resume: bool, fabric: "Fabric", reporter: Reporter) -> Trained:
    recipe, leads = run.recipe, fabric.global_rank == 0
    reporter = reporter if leads else Reporter()
    if leads:
        resume_run(run.folder, recipe, run.outside) if resume else check_free(run.folder)
    fabric.barrier()
    blueprint = Blueprint.of(recipe, run.outside, device=fabric.device, reporter=reporter)
    if resume:
        run.check_backbones(blueprint.fingerprints)
    kept = run.restored(blueprint.fields) if resume and run.has_fields(blueprint.fields) else None
    with fabric.rank_zero_first():  # one process fills the cache, the others read it
        splits = splits_of(blueprint, kept)
    if resume:
        run.check_data(splits.fingerprints)
    network = fresh_network(blueprint, splits)
    if leads and kept is None:
        if not resume:  # only now: data or sizes that do not fit leave no run behind
            begin_run(run, splits.fingerprints, blueprint.fingerprints)
        run.keep_fields(splits.fields)
    trainer = _trainer(network, splits, run, fabric=fabric, reporter=reporter)
    if resume:
        trainer.resume()
    trainer.run()
    return _finished(run, blueprint, splits, fabric)


def fresh_network(blueprint: Blueprint, splits: Splits) -> Network:
    """A network with initial weights; those that no output depends on are frozen."""
    torch.manual_seed(blueprint.recipe.learning.seed)
    facts = splits.fields.facts()
    add_vectors(blueprint, splits.fields, facts)
    network = build(blueprint.plan, facts)
    freeze_unused(network, blank_batch(splits.fields))
    return network


def blank_batch(fields: Fields) -> Batch:
    """One example of nothing in particular, such as the network could be given."""
    inputs = {name: field.blank() for name, field in fields.inputs.items()}
    target = fields.output.blank()
    if fields.link is not None:
        name = next(iter(inputs))
        inputs[name] = replace(inputs[name], copy_ids=inputs[name].values)
    if not inputs:
        inputs = {NOTHING: replace(target, values=target.values[:, :0], mask=target.mask[:, :0])}
    return Batch(inputs, target, torch.zeros(1, dtype=torch.long))


def _trainer(network: Network, splits: Splits, run: Run, *, fabric: "Fabric", reporter: Reporter) -> Trainer:
    recipe, learning = run.recipe, run.recipe.learning
    batches = splits.train.batches(
        batch_tokens=learning.batch_tokens,
        batch_examples=learning.batch_examples,
        seed=learning.seed,
        training=True,
        guided=recipe.loss.guide > 0,
    )
    chosen = [] if learning.metric == "loss" else [metric_named(learning.metric, run.outside)]
    validate = _validation(network, splits, run, chosen)
    around = Surroundings(run.folder, validate, chosen[0].better if chosen else "lower", reporter)
    return Trainer(Objective(network, recipe.loss), batches, learning, around, fabric)


def _validation(network: Network, splits: Splits, run: Run, chosen: Sequence[Metric]) -> Callable[[], dict[str, float]]:
    """Loss and metrics on the validation set, with greedy search, which is quick and steady enough to compare by."""
    recipe = run.recipe
    search = recipe.evaluation.search.model_copy(update={"kind": "greedy", "nbest": 1})
    settings = recipe.evaluation.model_copy(update={"search": search})
    named = {metric.name: metric for metric in metrics_of(recipe, run.outside) if metric.nbest == 1}
    metrics = list((named | {metric.name: metric for metric in chosen}).values())

    def validate() -> dict[str, float]:
        found = judged(network, splits.valid, settings, metrics, training=splits.train, with_loss=True)
        if not math.isfinite(found.loss):
            raise LearningError("the validation loss is no longer a number; try a lower learning.rate.")
        return {"loss": found.loss} | {score.name: score.value for score in found.scores(metrics)}

    return validate


def _finished(run: Run, blueprint: Blueprint, splits: Splits, fabric: "Fabric") -> Trained:
    """Score the final weights and keep the scores."""
    recipe, scored, dropped = run.recipe, splits.scored, splits.train.dropped
    if fabric.global_rank != 0:
        return Trained(run.folder, (), len(scored), scored.where, splits.skipped, dropped, ())
    network = run.network(blueprint, splits.fields).to(fabric.device)
    metrics = metrics_of(recipe, run.outside)
    scores = tuple(judged(network, scored, recipe.evaluation, metrics, training=splits.train).scores(metrics))
    run.write_scores(
        {
            "split": "valid" if splits.test is None else "test",
            "examples": scores[0].count,
            "scores": {score.name: {"value": score.value, "signature": score.signature} for score in scores},
        }
    )
    missed = missed_of(recipe, scores)
    return Trained(run.folder, scores, scores[0].count, scored.where, splits.skipped, dropped, missed)


def missed_of(recipe: Recipe, scores: Sequence[Score]) -> tuple[str, ...]:
    """What the recipe expected and did not get."""
    by_name = {score.name: score for score in scores}
    missed = []
    for name, floor in recipe.expect.items():
        found = by_name[name]
        if found.value < floor if found.better == "higher" else found.value > floor:
            wanted = "at least" if found.better == "higher" else "at most"
            missed.append(f"{name} is {found.value:.4g}, but the recipe expects {wanted} {floor:.4g}.")
    return tuple(missed)
