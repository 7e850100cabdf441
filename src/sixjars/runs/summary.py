"""What a training is about to do, before its first step: device, rows, vocabularies, parameters, steps, search."""

from typing import TYPE_CHECKING

import numpy as np

from sixjars.data.dataset import Dataset
from sixjars.flow.special import UNK
from sixjars.learning.loop import Trainer
from sixjars.progress import Summary
from sixjars.recipe.sections import Recipe, SearchSettings
from sixjars.runs.data import Splits
from sixjars.runs.splits import SPLITS

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
    known = int(np.count_nonzero((ids != UNK) & (ids < vocabulary)))  # copied words are numbered beyond it
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
    epochs = trainer.total / trainer.per_epoch
    facts["steps"] = f"{trainer.total:,} at most, {trainer.per_epoch:,} an epoch ({epochs:.3g} epochs)"
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
