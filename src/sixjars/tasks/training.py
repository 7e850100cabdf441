"""Training, whole: from a recipe to a folder that can be used."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import torch

from sixjars.errors import Interrupted, LearningError
from sixjars.evaluation.metrics import Score, metric_named
from sixjars.learning.devices import Device, all_or_none, fabric_for
from sixjars.learning.loop import Learner, Surroundings
from sixjars.learning.progress import Reporter, Silent
from sixjars.loss.objective import Objective
from sixjars.model.network import Network
from sixjars.recipe import Recipe
from sixjars.tasks.corpus import Corpus, corpus_of, facts_of
from sixjars.tasks.parts import all_heard, network_of
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.runs import Run, begin_run, check_free, keep_tokens, resume_run
from sixjars.tasks.scoring import loss_of, scores_of
from sixjars.tasks.table import OF_SETS, TASKS
from sixjars.tasks.vectors import vectors_of

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@final
@dataclass(frozen=True)
class Trained:
    """What training left behind."""

    folder: Path
    scores: tuple[Score, ...]
    """On the test part, or on the validation part where there is none."""
    examples: int
    """How many were scored."""
    where: str
    """What they are."""
    skipped: int
    """Bad rows that were left out of the data."""
    missed: tuple[str, ...]
    """What the recipe expected and did not get, a sentence each."""


def train(
    recipe: str | Path,
    overrides: Sequence[str] = (),
    *,
    out: str | Path | None = None,
    resume: bool = False,
    device: Device = "auto",
    devices: int = 1,
    reporter: Reporter | None = None,
) -> Trained:
    """Train what a recipe describes; the run's folder can then be loaded.

    `recipe` is a file or the name of one that comes with the package; `overrides` are `KEY=VALUE` strings.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     [score.name for score in run.scores]
    ['exact_match', 'character_error_rate']
    """
    wanted = read_recipe(str(recipe), overrides)
    folder = Path(out) if out is not None else default_folder(str(recipe))
    unheard = bool(TASKS[wanted.task].media) and not all_heard(wanted.model)
    fabric = fabric_for(device=device, devices=devices, precision=wanted.learning.precision, unheard=unheard)
    told = reporter or Silent()
    try:
        with all_or_none(fabric):
            return _train(wanted, folder, resume=resume, fabric=fabric, reporter=told)
    except KeyboardInterrupt:
        raise Interrupted(f"stopped; the same command with --resume goes on from what {folder} holds.") from None
    finally:
        told.end()


def default_folder(recipe: str) -> Path:
    """Where a run goes when nobody says: `runs/translation-sample_attention`."""
    path = Path(recipe)
    return Path("runs") / (path.stem if path.suffix in {".yaml", ".yml"} else recipe.replace("/", "-"))


def _train(recipe: Recipe, folder: Path, *, resume: bool, fabric: "Fabric", reporter: Reporter) -> Trained:
    leads = fabric.global_rank == 0
    reporter = reporter if leads else Silent()
    if leads:
        resume_run(folder, recipe) if resume else check_free(folder)
    fabric.barrier()
    run = Run(folder, recipe)
    if resume:
        run.check_backbones()
    kept = run.tokens() if resume and run.has_tokens else None
    with fabric.rank_zero_first():  # one process fills the cache, the others read it
        corpus = corpus_of(recipe, kept, seed=recipe.learning.seed, reporter=reporter, device=fabric.device)
    if resume:
        run.check_data(corpus.fingerprints)
    torch.manual_seed(recipe.learning.seed)
    facts = facts_of(recipe, corpus.tokens, fresh=True)
    for name, vectors in vectors_of(recipe, corpus.tokens).items():
        facts[name]["vectors"] = vectors
    network = network_of(recipe.model, facts)
    if leads and kept is None:
        if not resume:  # only now: data or sizes that do not fit leave no run behind
            begin_run(folder, recipe, corpus.fingerprints)
        keep_tokens(run, corpus.tokens)
    learner = _learner(network, corpus, run, fabric=fabric, reporter=reporter)
    if resume:
        learner.resume()
    learner.run()
    return _finished(run, corpus, fabric)


def _learner(network: Network, corpus: Corpus, run: Run, *, fabric: "Fabric", reporter: Reporter) -> Learner:
    recipe, learning = run.recipe, run.recipe.learning
    batches = corpus.train.batches(
        batch_tokens=learning.batch_tokens,
        batch_examples=learning.batch_examples,
        seed=learning.seed,
        guided=recipe.loss.guide > 0,
    )
    better = "lower" if learning.metric == "loss" else metric_named(learning.metric).better
    around = Surroundings(run.folder, _validation(network, corpus, recipe), better, reporter)
    return Learner(Objective(network, recipe.loss), batches, learning, around, fabric)


def metrics_of(recipe: Recipe) -> list[str]:
    """The metrics that a run reports: the recipe's, or its task's, and all that it expects."""
    several = recipe.data.label is not None and recipe.data.label.several
    named = recipe.evaluation.metrics or (OF_SETS if several else TASKS[recipe.task].metrics)
    return list(dict.fromkeys([*named, *recipe.expect]))


def _validation(network: Network, corpus: Corpus, recipe: Recipe) -> Callable[[], dict[str, float]]:
    """Loss and metrics on the validation part, with greedy search, which is quick and steady enough to compare by."""
    search = recipe.evaluation.search.model_copy(update={"kind": "greedy", "nbest": 1})
    settings = recipe.evaluation.model_copy(update={"search": search})
    also = [] if recipe.learning.metric == "loss" else [recipe.learning.metric]
    metrics = [
        name for name in dict.fromkeys([*metrics_of(recipe), *also]) if name in also or metric_named(name).nbest == 1
    ]

    def validate() -> dict[str, float]:
        loss = loss_of(network, corpus.valid, examples=settings.batch_examples)
        if not math.isfinite(loss):
            raise LearningError("the validation loss is no longer a number; try a lower learning.rate.")
        scores = scores_of(network, corpus.valid, settings, metrics, training=corpus.train)
        return {"loss": loss} | {score.name: score.value for score in scores}

    return validate


def _finished(run: Run, corpus: Corpus, fabric: "Fabric") -> Trained:
    """Score the final weights and keep the scores."""
    recipe, scored = run.recipe, corpus.scored
    if fabric.global_rank != 0:
        return Trained(run.folder, (), len(scored), scored.where, corpus.skipped, ())
    network = run.network(corpus.tokens).to(fabric.device)
    scores = tuple(scores_of(network, scored, recipe.evaluation, metrics_of(recipe), training=corpus.train))
    told: dict[str, Any] = {
        "part": "valid" if corpus.test is None else "test",
        "examples": scores[0].count,
        "scores": {score.name: {"value": score.value, "signature": score.signature} for score in scores},
    }
    run.write_scores(told)
    return Trained(run.folder, scores, scores[0].count, scored.where, corpus.skipped, missed_of(recipe, scores))


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
