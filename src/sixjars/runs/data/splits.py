"""The data of a recipe, read or generated, split and encoded once; and a network that fits it."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import torch
from torch import nn

from sixjars.data.alignment.learned import unspaced
from sixjars.data.bad_rows import remedied
from sixjars.data.dataset import NOTHING as NO_INPUT
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Equipment, Field
from sixjars.data.storage.cache import Examples
from sixjars.decoding.memory import free_on
from sixjars.flow.contracts import ModelPlan
from sixjars.flow.values import Batch
from sixjars.learning.parameters import belongs_to, freeze_named
from sixjars.model.build import Network, Unfilled, build, freeze_unused, nested
from sixjars.progress import Reporter, number_of
from sixjars.recipe.data import LEARN, LinkFiles
from sixjars.recipe.outside import NOTHING, Outside
from sixjars.recipe.sections import LearningSettings, Recipe
from sixjars.runs import notes
from sixjars.runs.data.pretrained_vectors import token_vectors
from sixjars.runs.data.split_files import LEAST, SPLITS, read_splits
from sixjars.runs.recipes import make_fields, model_plan
from sixjars.samples import materialise, sample_examples, sample_folder
from sixjars_runtime.errors import DataError, LearningError, SixJarsError, memory_is_short, shown
from sixjars_runtime.memory import in_words

COUNTED_AT_ONCE = 256
"""Examples in memory while an encoder counts."""

NUMBER: Final = 4
"""Bytes of a weight, of its gradient, and of each number that an optimizer remembers of it."""
MOMENTS: Final[Mapping[str, int]] = {"adam": 2, "adamw": 2, "adadelta": 2, "sgd": 0}
"""How many numbers an optimizer remembers of each weight; SGD with momentum one more."""
NAMED: Final = 3
"""The largest weights that a message lists."""
NEVER_TOO_MUCH: Final = 2**28
"""Bytes that are free on every machine that could load torch, so for less nothing is measured."""


@final
@dataclass(frozen=True)
class Blueprint:
    """A recipe with its fields and the plan of its model: what data and network are made from."""

    recipe: Recipe
    fields: Fields
    plan: ModelPlan

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        outside: Outside = NOTHING,
        *,
        device: torch.device | str = "cpu",
        places: Sequence[Path] | None = None,
        reporter: Reporter | None = None,
    ) -> "Blueprint":
        """Make it of a recipe; features are stored unless `places` are given, as to predict."""
        fields = make_fields(recipe, outside)
        plan = model_plan(recipe, fields, outside)
        extractors = _extractors(plan, fields, torch.device(device))

        def equipped(field: Field) -> Field:
            searched = media_places(recipe, field) if places is None else [*places]
            searched += [] if places is None else _archives(recipe, field)
            kit = Equipment(
                places=tuple(searched),
                extractor=extractors.get(field.name),
                stored=places is None,
                target_options=field.equipment.target_options,
                learned_from=plan.encoder.learned_from(field.name),
                reporter=reporter or Reporter(),
            )
            return field.equipped(kit)

        return cls(recipe, fields.mapped(equipped), plan)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for the weights of each frozen backbone, by the field whose files it reads."""
        kits = {name: field.equipment.extractor for name, field in self.fields.all.items()}
        found = {name: kit.fingerprint for name, kit in kits.items() if kit is not None}
        return {name: number for name, number in found.items() if number is not None}


def _extractors(plan: ModelPlan, fields: Fields, device: torch.device) -> dict[str, Any]:
    """A feature extractor for each field that a visual input of the encoder reads."""
    cells = plan.encoder.needs_cells(plan.settings["encoder"], attended=plan.bridge.has_attention)
    return {
        inner.field: inner.kind.extractor(
            inner.section, pixels=fields.all[inner.field].settings.size, cells=cells, device=device
        )
        for inner in nested(plan)
        if hasattr(inner.kind, "extractor") and "cells" in fields.all[inner.field].fact_names
    }


def media_places(recipe: Recipe, field: Field) -> list[Path]:
    """The folders or archives of the files of a field."""
    data = recipe.data
    if not field.is_media:
        return [data.path(".")]
    if data.sample is not None:
        return [sample_folder(recipe.task)]
    if data.format == "folders":
        return [data.path(part.file) for part in data.training_files if isinstance(part.file, str)]
    media = field.settings.media
    return [data.path(place) for place in ([media] if isinstance(media, str) else media)]


def _archives(recipe: Recipe, field: Field) -> list[Path]:
    """Archives of the training data, whose files a prediction may name."""
    places, endings = media_places(recipe, field), field.archive_endings
    return [place for place in places if place.suffix.lower() in endings and place.exists()]


@final
@dataclass(frozen=True)
class Splits:
    """The training, validation and test set."""

    train: Dataset
    valid: Dataset
    test: Dataset | None
    fields: Fields

    @property
    def named(self) -> dict[str, Dataset]:
        """The sets that there are, by their names in a recipe."""
        sets = zip(SPLITS, (self.train, self.valid, self.test), strict=True)
        return {name: split for name, split in sets if split is not None}

    @property
    def scored(self) -> Dataset:
        """The set of the final scores: the test set, or the validation set where there is none."""
        name, split = ("validation", self.valid) if self.test is None else ("test", self.test)
        has_name = split.where.startswith("the ")
        return split if has_name else replace(split, where=f"the {name} set of {split.where}")

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for each split that changes with its content."""
        return {name: split.table.fingerprint for name, split in self.named.items()}

    @property
    def skipped(self) -> int:
        """Bad rows left out of all splits."""
        return sum(split.skipped for split in self.named.values())

    def facts(self, recipe: Recipe) -> dict[str, str]:
        """The facts that are shown before training: the rows of each set, and each field."""
        rows = _rows(recipe, {SPLITS[name]: len(split) for name, split in self.named.items()})
        guides = {"alignment": self.train.guides.describe()} if recipe.loss.guide else {}
        return {"rows": rows} | {name: self._field(name) for name in self.fields.all} | guides

    def _field(self, name: str) -> str:
        """A field, with the size of its vocabulary and how much of the validation set it covers."""
        described = self.fields.all[name].describe()
        train, valid = self.train.known_tokens(name), self.valid.known_tokens(name)
        if train is None or valid is None:
            return described
        counts = f"{train[0]:,} training tokens; {valid[1]:.1%} of the validation tokens are known"
        return f"{described}; {counts}"


def _rows(recipe: Recipe, counts: Mapping[str, int]) -> str:
    """The rows of each split, and what the final score is of."""
    if recipe.learning.folds is not None:
        same = "validation below is on these same rows, the final score on the folds"
        return f"{counts['training']:,} training; {same}"
    if recipe.data.fold is not None:
        number, folds = recipe.data.fold.split("/")
        sets = f"{counts['training']:,} training, {counts['validation']:,} held out"
        return f"{sets} (fold {number} of {folds}); over all folds, each row is held out once"
    sets = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    no_test = "; no test set, so the final score is on the validation set"
    return sets + ("" if "test" in counts else no_test)


def notes_on(splits: Splits, *, held_out: bool = True) -> Iterator[str]:
    """Sentences about the data before training; the validation set may not be `held_out`."""
    every = [sentence for split in splits.named.values() for sentence in split.notes]
    yield from dict.fromkeys(every)  # each once
    if splits.fields.output.single_label:
        yield from _labels(splits)
    yield from _truncated(splits)
    yield from _longer(splits)
    if splits.train.diagonal is not None:
        texts = {}
        for name in ("source", splits.fields.output.name):
            first = splits.train.table.texts(name, range(min(len(splits.train), 1000)))
            texts[name] = splits.fields.all[name].words(first)
        yield from unspaced(texts)
    if held_out and len(splits.valid) < LEAST:
        yield notes.SMALL_VALIDATION.format(number_of(len(splits.valid), "example"))
    if held_out and splits.test is None:
        yield notes.NO_TEST


def _labels(splits: Splits) -> Iterator[str]:
    """Notes on labels that can hardly be learned, or not be measured."""
    single = [name for name, count in splits.train.label_counts().items() if count == 1]
    if single:
        yield notes.LABELS_ONCE.format(_some(single))
    missing = [name for name, count in splits.valid.label_counts().items() if count == 0]
    if missing:
        yield notes.LABELS_MISSING.format(_some(missing))


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"the label {listed} is" if len(names) == 1 else f"{len(names)} labels ({listed}) are"


def _longer(splits: Splits) -> Iterator[str]:
    """Notes on inputs that are longer than nearly all of training; a single one is chance."""
    for name in splits.train.text_inputs:
        train = np.array(splits.train.lengths(name))[splits.train.usable]
        most = int(np.quantile(train, notes.NEARLY_ALL, method="inverted_cdf"))
        longer = {}
        for split, dataset in list(splits.named.items())[1:]:
            count = int((np.array(dataset.lengths(name)) > most).sum())
            if count > max(1, notes.MUCH_LONGER * len(dataset)):
                longer[SPLITS[split]] = count, len(dataset)
        if longer:
            yield notes.longer_in_words(longer, most, notes.texts_of(name, splits.fields.inputs))


def _truncated(splits: Splits) -> Iterator[str]:
    """Notes on training texts that were cut, by a sample: each of it is tokenized again."""
    rows = np.flatnonzero(splits.train.usable)
    sample = rows[:: max(1, len(rows) // notes.LOOKED_AT)].tolist()
    for name, field in splits.fields.all.items():
        if cut := int(field.truncated(splits.train.table, sample).sum()):
            limit = f"data.{name}.max_length ({field.settings.max_length} tokens)"
            what = notes.texts_of(name, splits.fields.inputs)
            yield notes.truncated_in_words(cut, len(sample), len(rows), what=what, limit=limit)


def splits_of(blueprint: Blueprint, restored: Fields | None = None) -> Splits:
    """The data of a recipe; with fields that are `restored` from a run, nothing is learned anew."""
    examples = admitted(blueprint)
    fields = restored or blueprint.fields.learned(examples["train"])
    sets = {name: Dataset.stored(split, fields) for name, split in examples.items()}
    train = sets["train"]
    links = blueprint.recipe.data.alignment
    if isinstance(links, LinkFiles) and links.train == LEARN:
        train = _guided(train, links.diagonal if blueprint.recipe.loss.guide else None)
    if not train.usable.any():
        reason = "no row is left to learn from; all are too long (see on_long)."
        raise DataError(f"{train.where}: {reason}")
    return Splits(train, sets["valid"], sets.get("test"), fields)


def _guided(train: Dataset, diagonal: float | None) -> Dataset:
    """A training set whose links are to be learned, unless nothing is guided by them."""
    if diagonal is not None:
        return replace(train, diagonal=diagonal)
    sentence = (
        "data.alignment: learn changes nothing here, because loss.guide is 0; "
        "say loss.guide: 0.5, or remove it."
    )
    return replace(train, diagonal=None, notes=(*train.notes, sentence))


@remedied()
def admitted(blueprint: Blueprint) -> dict[str, Examples]:
    """The usable examples of every split; the features of images and videos are then stored."""
    recipe, fields = blueprint.recipe, blueprint.fields
    examples = raw_examples(recipe, fields)
    if recipe.data.sample is not None:
        _draw_sample(recipe, fields, examples)
    skip = recipe.data.on_bad_row == "skip"
    train = fields.admit(examples.pop("train"), skip=skip)
    settled = fields.mapped(lambda field: field.settled(train))
    rest = {name: settled.admit(split, skip=skip) for name, split in examples.items()}
    if recipe.learning.folds:  # validated on the same rows, whose notes would stand twice
        rest = {name: replace(split, skipped=0, notes=()) for name, split in rest.items()}
    return {"train": train} | rest


def raw_examples(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The examples of every split as texts; no image or video is opened for them."""
    return sample_examples(recipe, SPLITS) if recipe.data.sample else read_splits(recipe, fields)


def _draw_sample(recipe: Recipe, fields: Fields, examples: dict[str, Examples]) -> None:
    """Draw the files that a synthetic corpus names."""
    for name, field in fields.inputs.items():
        if not field.is_media:
            continue
        files = [
            file for split in examples.values() for file in split.table.column(name).to_pylist()
        ]
        materialise(recipe.task, files, sample_folder(recipe.task), field.equipment.reporter)


def add_vectors(blueprint: Blueprint, fields: Fields, facts: dict[str, dict[str, Any]]) -> None:
    """Put pretrained word vectors into the facts of the fields that have some."""
    for inner in nested(blueprint.plan):
        field = fields.all.get(inner.field)
        source = getattr(field.settings, "vectors", None) if field is not None else None
        if source is not None and "vectors" in getattr(inner.kind, "given", ()):
            ids, values = token_vectors(
                blueprint.recipe, field, size=inner.section["size"], where=inner.where
            )
            facts[inner.field]["vectors"] = torch.tensor(ids), torch.from_numpy(values)


def fresh_network(blueprint: Blueprint, splits: Splits) -> Network:
    """A network with initial weights; those that no output depends on are frozen."""
    torch.manual_seed(blueprint.recipe.learning.seed)
    facts = splits.fields.facts()
    add_vectors(blueprint, splits.fields, facts)
    network = build(blueprint.plan, facts)
    network.encoder.count(counted_batches(splits.train))
    freeze_unused(network, blank_batch(splits.fields))
    if blueprint.recipe.learning.freeze:
        freeze_named(network, blueprint.recipe.learning.freeze)
    return network


def counted_batches(train: Dataset) -> Iterator[Batch]:
    """The training set in batches, for an encoder that counts something in them."""
    batches = train.batches(batch_examples=COUNTED_AT_ONCE, training=True)
    for (rows,) in batches.plan(epoch=0, accumulate=1):
        yield batches.collate(rows)


def blank_batch(fields: Fields) -> Batch:
    """A batch of one blank example, such as the network could be given."""
    inputs = {name: field.blank() for name, field in fields.inputs.items()}
    target = fields.output.blank()
    if fields.link is not None:
        name = next(iter(inputs))
        inputs[name] = replace(inputs[name], copy_ids=inputs[name].values)
    if not inputs:
        inputs = {NO_INPUT: replace(target, values=target.values[:, :0], mask=target.mask[:, :0])}
    return Batch(inputs, target, torch.zeros(1, dtype=torch.long))


def check_fits(
    blueprint: Blueprint, splits: Splits, device: torch.device, *, shares: int = 1
) -> None:
    """Refuse a recipe whose weights, gradients and optimizer do not fit into the free memory.

    Nothing is allocated. `shares` processes divide the weights. What a batch takes besides is not
    known yet: see `enough_memory`.
    """
    try:
        with torch.device("meta"), Unfilled():
            network = build(blueprint.plan, splits.fields.facts(), fresh=False)
    except SixJarsError:
        raise
    except (RuntimeError, ValueError, TypeError, AttributeError):
        return  # a component that needs real numbers; building it will say more
    learning = blueprint.recipe.learning
    sizes = {name: _bytes(name, weight, learning) for name, weight in network.named_parameters()}
    needed = sum(sizes.values()) // shares
    free = free_on(device) if needed > NEVER_TOO_MUCH else None
    if free is None or needed <= free:
        return
    largest = sorted(sizes, key=lambda name: sizes[name], reverse=True)[:NAMED]
    shapes = {name: tuple(weight.shape) for name, weight in network.named_parameters()}
    listed = ", ".join(f"{name} {shapes[name]} takes {in_words(sizes[name])}" for name in largest)
    keys = dict.fromkeys(key_of(name, blueprint) for name in largest)
    where = "are free" if device.type == "cpu" else f"are free on {device.type}"
    each = f" in each of {shares} processes" if shares > 1 else ""
    raise LearningError(
        f"training this recipe needs about {in_words(needed)} of memory{each} (weights, gradients "
        f"and the optimizer's numbers), but {in_words(free)} {where}. The largest: {listed}. "
        f"Lower {', '.join(keys)}."
    )


def _bytes(name: str, weight: nn.Parameter, learning: LearningSettings) -> int:
    """Bytes of one weight in training; a frozen one has no gradient and no optimizer state."""
    frozen = not weight.requires_grad or any(belongs_to(name, part) for part in learning.freeze)
    numbers = 1 if frozen else 2 + MOMENTS[learning.optimizer] + (learning.momentum > 0)
    return weight.numel() * NUMBER * numbers


def key_of(name: str, blueprint: Blueprint) -> str:
    """The key of a recipe that a weight's size comes from: `model.encoder.embedding.size`."""
    key = "model." + name.replace("decoder.bridge.", "bridge.", 1)
    sections = {f"model.{role}": section for role, section in blueprint.plan.settings.items()}
    sections |= {inner.where: inner.section for inner in nested(blueprint.plan)}
    where = max((place for place in sections if key.startswith(f"{place}.")), key=len)
    return f"{where}.size" if "size" in sections[where] else where


@contextmanager
def enough_memory() -> Iterator[None]:
    """Make a sentence of what an allocator says of a batch that does not fit."""
    try:
        yield
    except SixJarsError:
        raise
    except (RuntimeError, MemoryError) as error:
        if not memory_is_short(error):
            raise
        raise LearningError(
            "there is not enough memory for this training; lower learning.batch_examples or "
            "learning.batch_tokens, data.*.max_length, or the sizes of model."
        ) from error
