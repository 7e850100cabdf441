"""What a person is told before the first step: device, rows, vocabularies, parameters, steps; and notes on the data."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.data.flat import slices
from sixjars.errors import number_of, shown
from sixjars.flow.special import UNK
from sixjars.learning.loop import Trainer
from sixjars.progress import Summary
from sixjars.recipe.sections import Recipe, SearchSettings
from sixjars.runs.data import Splits
from sixjars.runs.splits import LEAST, SPLITS

if TYPE_CHECKING:
    from lightning_fabric import Fabric

BITS = {"32": "32-bit", "bf16": "bfloat16 with 32-bit weights", "fp16": "16-bit with 32-bit weights"}


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
    rows = [f"{len(one):,} {name}" for name, one in made.items() if one is not None]
    several = f" × {fabric.world_size} processes" if fabric.world_size > 1 else ""
    facts = {
        "device": f"{fabric.device.type}{several}, {BITS[recipe.learning.precision]}",
        "rows": ", ".join(rows) + ("" if splits.test else "; no test set, so the final score is on the validation set"),
    }
    facts |= {name: _field(splits, name) for name in splits.fields.all}
    weights = list(trainer.network.parameters())
    count, trained = (sum(weight.numel() for weight in some) for some in (weights, filter(_is_trained, weights)))
    facts["parameters"] = f"{count:,}" + (f", {trained:,} of them trained" if trained < count else "")
    epochs = number_of(float(f"{trainer.total / trainer.per_epoch:.3g}"), "epoch")
    facts["steps"] = f"{trainer.total:,} at most, {trainer.per_epoch:,} an epoch ({epochs})"
    searches = trainer.network.decoder.searches
    if searches:
        final = search_of(recipe.evaluation.search)
        greedy = final == "greedy search"
        facts["search"] = final if greedy else f"greedy search after each epoch, {final} for the final score"
    return Summary(facts, "greedy search" if searches else "")


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
            f"the validation set has {_examples(len(splits.valid))}, too few to choose a checkpoint by; "
            "hold out more (data.valid), or say learning.folds: 5."
        )
    if splits.test is None:
        yield (
            "there is no test set (data.test); the final scores are of the validation set, "
            "which also chooses the checkpoint."
        )


def _examples(count: int) -> str:
    return f"{count} example{'' if count == 1 else 's'}"


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
