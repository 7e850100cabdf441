"""The data of a recipe: read from files or generated, split, encoded once, ready for batches."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.field import Equipment, Field
from sixjars.data.storage.cache import Examples, cache_folder
from sixjars.data.text.vectors import read_vectors
from sixjars.errors import DataError
from sixjars.flow.contracts import ModelPlan
from sixjars.model.build import nested
from sixjars.progress import Reporter
from sixjars.recipe.outside import NOTHING, Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.recipes import make_fields, model_plan
from sixjars.runs.splits import SPLITS, read_splits
from sixjars.samples import generate, materialise, sample_named
from sixjars.samples import vectors as sample_vectors
from sixjars.tasks import TASKS
from sixjars.version import version_of


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
        """From a recipe. Features are stored, unless they are of files in `places`, as for a prediction."""
        fields = make_fields(recipe, outside)
        plan = model_plan(recipe, fields, outside)
        extractors = _extractors(plan, fields, torch.device(device))

        def equipped(field: Field) -> Field:
            kit = Equipment(
                places=tuple(media_places(recipe, field) if places is None else [*places, *_archives(recipe, field)]),
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
        """A number for the weights of each frozen backbone, by the field whose files it turns into features."""
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
    """Where the files of a field are."""
    data = recipe.data
    if not field.is_media:
        return [data.path(".")]
    if data.sample is not None:
        return [sample_folder(recipe.task)]
    if data.format == "folders":
        return [data.path(one.file) for one in data.training_files if isinstance(one.file, str)]
    media = field.settings.media
    return [data.path(place) for place in ((media,) if isinstance(media, str) else media)]


def _archives(recipe: Recipe, field: Field) -> list[Path]:
    """Where the files of a prediction may be besides: in an archive of the training data, by their names in it."""
    places, endings = media_places(recipe, field), field.archive_endings
    return [place for place in places if place.suffix.lower() in endings and place.exists()]


def sample_folder(task: str) -> Path:
    """Where the files of a synthetic corpus are; other versions may draw them differently, so each has its own."""
    return cache_folder() / "samples" / version_of() / task


@final
@dataclass(frozen=True)
class Splits:
    """The training, validation and test set."""

    train: Dataset
    valid: Dataset
    test: Dataset | None
    fields: Fields

    @property
    def scored(self) -> Dataset:
        """What the final scores are of: the test set, or the validation set where there is none."""
        name, split = ("validation", self.valid) if self.test is None else ("test", self.test)
        where = split.where if split.where.startswith("the ") else f"the {name} set of {split.where}"
        return replace(split, where=where)

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for each split that changes with its content."""
        splits = zip(SPLITS, (self.train, self.valid, self.test), strict=True)
        return {name: split.table.fingerprint for name, split in splits if split is not None}

    @property
    def skipped(self) -> int:
        """Bad rows left out of all splits."""
        return sum(split.skipped for split in (self.train, self.valid, self.test) if split is not None)

    @property
    def notes(self) -> list[str]:
        """What a person should know of the data, a sentence each, each once."""
        return list(dict.fromkeys(n for s in (self.train, self.valid, self.test) if s is not None for n in s.notes))


def splits_of(blueprint: Blueprint, restored: Fields | None = None) -> Splits:
    """The data of a recipe; with fields that are `restored` from a run, nothing is learned anew."""
    examples = admitted(blueprint)
    fields = restored or blueprint.fields.learned(examples["train"])
    made = {name: Dataset.stored(found, fields) for name, found in examples.items()}
    if not made["train"].usable.any():
        raise DataError(f"{made['train'].where}: no row is left to learn from; all are too long (see on_long).")
    return Splits(made["train"], made["valid"], made.get("test"), fields)


def admitted(blueprint: Blueprint) -> dict[str, Examples]:
    """The examples of every split that can be used; of images and videos the features are then stored."""
    recipe, fields = blueprint.recipe, blueprint.fields
    examples = raw_examples(recipe, fields)
    if recipe.data.sample is not None:
        _draw_sample(recipe, fields, examples)
    skip = recipe.data.on_bad_row == "skip"
    train = fields.admit(examples.pop("train"), skip=skip)
    settled = fields.mapped(lambda field: field.settled(train))
    return {"train": train, **{name: settled.admit(found, skip=skip) for name, found in examples.items()}}


def raw_examples(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The examples of every split as texts; no file of an image or video is opened for them."""
    return _sampled(recipe) if recipe.data.sample else read_splits(recipe, fields)


def _sampled(recipe: Recipe) -> dict[str, Examples]:
    sample = recipe.data.sample
    assert sample is not None
    made = generate(
        recipe.task,
        size=sample.size,
        valid=sample.valid,
        test=sample.test,
        seed=sample.seed,
        longest=sample.longest,
        kind=sample.kind,
    )
    columns = sample_columns(recipe)
    return {
        name: Examples.of(
            {field: [row[column] for row in rows] for field, column in columns.items()},
            where=f"the {SPLITS[name]} set of the sample",
        )
        for name, rows in made.items()
    }


def sample_columns(recipe: Recipe) -> dict[str, str]:
    """The columns of the synthetic corpus, by field."""
    assert recipe.data.sample is not None
    declared, task = sample_named(recipe.task, recipe.data.sample.kind), TASKS[recipe.task]
    named = {slot.name: column for slot, column in zip(task.inputs, declared.inputs, strict=True)}
    also = {key: getattr(declared, key) for key in ANNOTATIONS}
    return {**named, task.output.name: declared.target} | {key: col for key, col in also.items() if col is not None}


def _draw_sample(recipe: Recipe, fields: Fields, examples: dict[str, Examples]) -> None:
    """Draw the files that a synthetic corpus names."""
    for name, field in fields.inputs.items():
        if field.is_media:
            files = [file for split in examples.values() for file in split.table.column(name).to_pylist()]
            materialise(recipe.task, files, sample_folder(recipe.task), field.equipment.reporter)


def add_vectors(blueprint: Blueprint, fields: Fields, facts: dict[str, dict[str, Any]]) -> None:
    """Put pretrained word vectors into the facts of the fields that have some."""
    for inner in nested(blueprint.plan):
        field = fields.all.get(inner.field)
        file = getattr(field.settings, "vectors", None) if field is not None else None
        if file is not None and "vectors" in getattr(inner.kind, "given", ()):
            words = field.tokenizer.by_word()  # type: ignore[union-attr]
            values, known = _vectors(blueprint.recipe, file, list(words), size=inner.section["size"])
            rows = [(row, at) for at, word in enumerate(known) for row in words[word]]
            picked = torch.from_numpy(values[[at for _, at in rows]])
            facts[inner.field]["vectors"] = torch.tensor([row for row, _ in rows]), picked


def _vectors(recipe: Recipe, file: str, words: list[str], *, size: int) -> tuple[np.ndarray, list[str]]:
    if file == "sample":
        made = dict(sample_vectors(recipe.task, size=size))
        known = [word for word in words if word in made]
        if not known:
            raise DataError(
                "data: the synthetic vectors know none of these words; `vectors: sample` is for the source."
            )
        return np.array([made[word] for word in known], dtype=np.float32), known
    values, rows = read_vectors(recipe.data.path(file), {word: row for row, word in enumerate(words)})
    return values, [words[row] for row in rows]
