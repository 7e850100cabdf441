"""What a person is told of a training.

Before the first step: device, rows, vocabularies, parameters, steps, and notes on the data. After the last: the
validations, and a picture of the learning curves.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.data.flat import slices
from sixjars.errors import shown
from sixjars.evaluation.metrics import metric_named
from sixjars.flow.special import UNK
from sixjars.inspection.page import draw_learning
from sixjars.learning.loop import Trainer
from sixjars.model.build import path_of
from sixjars.progress import Summary, number_of
from sixjars.recipe.sections import Recipe, SearchSettings
from sixjars.runs.data import Splits
from sixjars.runs.folder import RunFolder, read_limited
from sixjars.runs.splits import LEAST, SPLITS

if TYPE_CHECKING:
    from lightning_fabric import Fabric

BITS = {"32": "32-bit", "bf16": "bfloat16 with 32-bit weights", "fp16": "16-bit with 32-bit weights"}
PICTURE = "curves.png"


def search_of(settings: SearchSettings) -> str:
    """A search in words.

    >>> search_of(SearchSettings()), search_of(SearchSettings(kind="beam", width=4))
    ('greedy search', 'beam search of width 4')
    """
    kinds = {"greedy": "greedy search", "sample": "sampling", "beam": f"beam search of width {settings.width}"}
    return kinds[settings.kind]


def known_tokens(dataset: Dataset, name: str) -> tuple[int, float] | None:
    """How many tokens the texts of a field have, and the share that is in the vocabulary; nothing of other fields."""
    field = dataset.fields.all[name]
    vocabulary = field.facts().get("vocabulary")
    if vocabulary is None or name not in field.encoders():
        return None
    ids, _ = dataset.table.ids(name)
    # Copied words are numbered beyond the vocabulary.
    known = sum(int(np.count_nonzero((some != UNK) & (some < vocabulary))) for some in slices(ids))
    return len(ids), known / max(len(ids), 1)


def summary_of(recipe: Recipe, splits: Splits, trainer: Trainer, fabric: "Fabric") -> Summary:
    """The block that is shown before training."""
    made = dict(zip(SPLITS.values(), (splits.train, splits.valid, splits.test), strict=True))
    several = f" × {fabric.world_size} processes" if fabric.world_size > 1 else ""
    facts = {
        "device": f"{fabric.device.type}{several}, {BITS[recipe.learning.precision]}",
        "rows": _rows(recipe, {name: len(one) for name, one in made.items() if one is not None}),
    }
    facts |= {name: _field(splits, name) for name in splits.fields.all}
    weights = list(trainer.network.parameters())
    count, trained = (sum(weight.numel() for weight in some) for some in (weights, filter(_is_trained, weights)))
    facts["parameters"] = f"{count:,}" + (f", {trained:,} of them trained" if trained < count else "")
    epochs = number_of(float(f"{trainer.total / trainer.per_epoch:.3g}"), "epoch")
    facts["steps"] = f"{trainer.total:,} at most, {trainer.per_epoch:,} an epoch ({epochs})"
    path = path_of(trainer.network, fast=recipe.learning.fast)
    if path:
        facts["path"] = path + trainer.updates.graphs()
    searches = trainer.network.decoder.searches
    if searches:
        final = search_of(recipe.evaluation.search)
        greedy = final == "greedy search"
        facts["search"] = final if greedy else f"greedy search after each epoch, {final} for the final score"
    return Summary(facts, "greedy search" if searches else "")


def _rows(recipe: Recipe, counts: Mapping[str, int]) -> str:
    """The rows of each split, and what the final score is of."""
    if recipe.learning.folds is not None:
        return f"{counts['training']:,} training; validation below is on these same rows, the final score on the folds"
    if recipe.data.fold is not None:
        training, held = counts["training"], counts["validation"]
        fold = "fold {} of {}".format(*recipe.data.fold.split("/"))
        return f"{training:,} training, {held:,} held out ({fold}); over all folds, each row is held out once"
    told = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    return told + ("" if "test" in counts else "; no test set, so the final score is on the validation set")


def stopped_early(trainer: Trainer) -> str:
    """Why a training ended before its last step."""
    learning, step = trainer.settings, trainer.state.step
    times = number_of(learning.patience or 0, "validation")
    return (
        f"stopped early at step {step:,} of {trainer.total:,}: {learning.metric or 'loss'} has not improved for "
        f"{times} (learning.patience); the best weights are kept."
    )


def _is_trained(weight: "object") -> bool:
    return bool(getattr(weight, "requires_grad", False))


def _field(splits: Splits, name: str) -> str:
    """A field, with the size of its vocabulary and how much of the validation set it covers."""
    described = splits.fields.all[name].describe()
    train, valid = known_tokens(splits.train, name), known_tokens(splits.valid, name)
    if train is None or valid is None:
        return described
    return f"{described}; {train[0]:,} training tokens; {valid[1]:.1%} of the validation tokens are known"


def notes_on(splits: Splits) -> Iterator[str]:
    """What should be known of the data before a model is trained on it, a sentence for each."""
    yield from splits.notes
    if splits.fields.output.single_label:
        yield from _labels(splits)
    if len(splits.valid) < LEAST:
        yield (
            f"the validation set has {number_of(len(splits.valid), 'example')}, too few to choose a checkpoint by; "
            "hold out more (data.valid), or say learning.folds: 5."
        )
    if splits.test is None:
        yield (
            "there is no test set (data.test); the final scores are of the validation set, "
            "which also chooses the checkpoint."
        )


def label_counts(dataset: Dataset) -> dict[str, int]:
    """How many rows have each label of the list."""
    field = dataset.fields.output
    counts = np.bincount(dataset.table.ids(field.name)[0], minlength=field.facts()["classes"])
    return {field.decode([number]): int(count) for number, count in enumerate(counts)}


def _labels(splits: Splits) -> Iterator[str]:
    """Labels that can hardly be learned, or not be measured."""
    single = [name for name, count in label_counts(splits.train).items() if count == 1]
    if single:
        yield (
            f"{_some(single)} in the training set only once; is that a mistake? "
            "data.label.min_count=2 leaves such labels out."
        )
    missing = [name for name, count in label_counts(splits.valid).items() if count == 0]
    if missing:
        yield f"{_some(missing)} not in the validation set, so nothing is chosen by how well that is recognized."


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"the label {listed} is" if len(names) == 1 else f"{len(names)} labels ({listed}) are"


def history_of(run: RunFolder) -> list[dict[str, float]]:
    """One record for each validation, the first one first."""
    return [json.loads(line) for line in read_limited(run.folder / "log.jsonl").splitlines()]


def draw_history(run: RunFolder) -> None:
    """The learning curves as a picture in the folder of the run; one validation makes no curve."""
    records, metric = history_of(run), run.recipe.learning.metric or "loss"
    if len(records) < 2:
        return
    better = "lower" if metric == "loss" else metric_named(metric, run.outside).better
    shown = metric if metric != "loss" else _first_score(records)
    best = best_of(records, metric, better=better)
    average = run.recipe.learning.average
    kept = "the weights of" if average == 1 else f"the mean of the weights of the {average} best, first of all"
    place = f"{kept} step {best['step']:,.0f}, epoch {best['epoch']:.3g}"
    title = f"Kept: {place}; {metric.replace('_', ' ')} on the validation set: {best[metric]:.4g}"
    draw_learning(run.folder / PICTURE, records, metric=shown, best=best["step"], title=title)


def best_of(
    records: Sequence[dict[str, float]], metric: str, *, better: Literal["higher", "lower"]
) -> dict[str, float]:
    """The best validation, as training keeps it: of equal scores the one with the lower loss.

    >>> best_of([{"step": 1, "f": 1.0, "loss": 2.0}, {"step": 2, "f": 1.0, "loss": 1.0}], "f", better="higher")
    {'step': 2, 'f': 1.0, 'loss': 1.0}
    """
    sign = 1.0 if better == "lower" else -1.0
    return min(records, key=lambda record: (sign * record[metric], record["loss"]))


def _first_score(records: Sequence[dict[str, float]]) -> str | None:
    """The first metric besides the losses, where there is one."""
    names = [name for name in records[0] if name not in {"epoch", "step", "rate", "train_loss", "loss"}]
    return names[0] if names else None
