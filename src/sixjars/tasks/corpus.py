"""The examples of a recipe: read or made up, split, seen and tokenised once, ready to be cut into batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow
import torch

from sixjars.data.cache import cache_folder, cached
from sixjars.data.cuts import Kept
from sixjars.data.labels import Labels
from sixjars.data.media import Media
from sixjars.data.parting import parted
from sixjars.data.points import Places
from sixjars.data.readers import Examples
from sixjars.data.samples import materialise
from sixjars.data.text import Tokens
from sixjars.errors import DataError
from sixjars.learning.devices import device_named
from sixjars.learning.progress import Reporter, Silent
from sixjars.recipe import Recipe
from sixjars.recipe.fields import LabelSettings, MediaSettings, OrderSettings
from sixjars.tasks.examples import examples_for
from sixjars.tasks.fields import Fields, written_fields
from sixjars.tasks.part import KEY, Part
from sixjars.tasks.parts import looks_at_cells, sight_of
from sixjars.tasks.seeing import Seeing, keep, media_of
from sixjars.tasks.table import TASKS


def seeing_of(recipe: Recipe, device: torch.device | None = None) -> dict[str, Seeing]:
    """How the pictures or films of a recipe become numbers."""
    fields = recipe.data.fields()
    return {
        name: Seeing(
            settings, sight_of(recipe.model.encoder), looks_at_cells(recipe.model), device or device_named("auto")
        )
        for name, settings in fields.items()
        if isinstance(settings, MediaSettings)
    }


def facts_of(recipe: Recipe, tokens: Mapping[str, Kept], *, fresh: bool = False) -> dict[str, dict[str, Any]]:
    """What the parts of a network must know of the data; a `fresh` one begins from a backbone's pretrained weights."""
    facts = {name: _facts_of(kept) for name, kept in tokens.items()}
    if recipe.data.points is not None:
        facts["points"] = {"numbers": recipe.data.points.numbers}
    return facts | {
        name: {"pixels": seeing.pixels, "cells": seeing.cells, "pretrained": fresh}
        for name, seeing in seeing_of(recipe).items()
    }


def _facts_of(kept: Kept) -> dict[str, Any]:
    if isinstance(kept, Tokens):
        return {"vocabulary": kept.size, "vectors": None}
    return {"classes": kept.size, "several": kept.several} if isinstance(kept, Labels) else {}


@final
@dataclass(frozen=True)
class Corpus:
    """All parts of the data, and the vocabularies learned from the training part."""

    train: Part
    valid: Part
    test: Part | None
    tokens: Mapping[str, Kept]

    @property
    def scored(self) -> Part:
        """What the final scores are of: the test part, or the validation part where there is none."""
        name, part = ("valid", self.valid) if self.test is None else ("test", self.test)
        return replace(part, where=part.where if part.where.startswith("the ") else f"the {name} part of {part.where}")

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for each part that changes with its content."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: part.table.fingerprint for name, part in parts.items() if part is not None}

    @property
    def skipped(self) -> int:
        """Bad rows left out of all parts."""
        return sum(part.skipped for part in (self.train, self.valid, self.test) if part is not None)


def corpus_of(
    recipe: Recipe,
    tokens: Mapping[str, Kept] | None = None,
    *,
    seed: int = 0,
    reporter: Reporter | None = None,
    device: torch.device | None = None,
) -> Corpus:
    """The data of a recipe; with `tokens` given (a run's own) no vocabulary is learned. Files are seen on `device`."""
    examples = seen_parts(recipe, seed, reporter, device)
    if tokens is None:
        tokens = learned_tokens(recipe, examples["train"])
    parts = {name: part_of(found, recipe, tokens) for name, found in examples.items()}
    return Corpus(parts["train"], parts["valid"], parts.get("test"), tokens)


def seen_parts(
    recipe: Recipe, seed: int, reporter: Reporter | None, device: torch.device | None = None
) -> dict[str, Examples]:
    """The examples of every part, their pictures or films seen."""
    examples = examples_for(recipe, seed)
    if recipe.data.sample is not None:
        _paint(recipe, examples, reporter)
    return {name: seen(found, recipe, reporter, device) for name, found in examples.items()}


def learned(recipe: Recipe) -> dict[str, Kept]:
    """The vocabularies alone; no file of a picture or film is opened for them."""
    return learned_tokens(recipe, examples_for(recipe, recipe.learning.seed)["train"])


def learned_tokens(recipe: Recipe, train: Examples) -> dict[str, Kept]:
    """The vocabularies and the list of labels that the training part teaches."""
    kept: dict[str, Kept] = {}
    for name, settings in written_fields(recipe).items():
        texts = _texts(train.table.column(name))
        if isinstance(settings, LabelSettings):
            kept[name] = Labels.trained(texts, settings, f"data.{name}")
        elif isinstance(settings, OrderSettings):
            kept[name] = Places()
        else:
            parts = (part for text in texts for part in parted(text, settings.parts))
            kept[name] = Tokens.trained(parts, settings, f"data.{name}")
    return kept


def _texts(column: Any) -> Iterator[str]:
    """The texts of an Arrow column, some at a time."""
    for chunk in column.chunks:
        yield from chunk.to_pylist()


def part_of(examples: Examples, recipe: Recipe, tokens: Mapping[str, Kept]) -> Part:
    """Examples, tokenised into the cache."""
    fields = Fields.of(recipe, tokens)
    table = cached(examples, fields.cuts, folder=cache_folder())
    if "label" in tokens and not len(table.ids("label")[0]):
        some = ", ".join(repr(text) for text in dict.fromkeys(table.texts("label", range(min(3, len(table))))))
        raise DataError(f"{examples.where}: none of its labels ({some}, ...) is among those that were learned.")
    return Part(TASKS[recipe.task], table, fields, examples.where, examples.skipped, seeing_of(recipe))


def seen(
    examples: Examples, recipe: Recipe, reporter: Reporter | None = None, device: torch.device | None = None
) -> Examples:
    """The examples whose files can be seen, each with the keys of their content; the files' numbers are then kept."""
    for name, seeing in seeing_of(recipe, device).items():
        files = examples.table.column(name).to_pylist()
        kept = keep(files, _media(recipe, name, examples), seeing, reporter or Silent())
        good = np.array([file in kept.keys for file in files])
        if not good.all() and recipe.data.on_bad_row == "error":
            raise DataError(next(iter(kept.faults.values())))
        if not good.any():
            raise DataError(f"{examples.where}: no {name} file is left; {next(iter(kept.faults.values()))}")
        table = examples.table.filter(pyarrow.array(good))
        keys = pyarrow.array([kept.keys[file] for file in files if file in kept.keys], pyarrow.string())
        table = table.append_column(KEY.format(name), keys)
        examples = replace(examples, table=table, skipped=examples.skipped + int((~good).sum()))
    return examples


def _media(recipe: Recipe, name: str, examples: Examples) -> Media:
    if recipe.data.sample is not None:
        return media_of([sample_folder(recipe.task)])
    if recipe.data.format == "folders":
        return media_of([Path(examples.where)])
    settings = recipe.data.fields()[name]
    assert isinstance(settings, MediaSettings)
    places = (settings.media,) if isinstance(settings.media, str) else settings.media
    return media_of([recipe.data.path(place) for place in places])


def sample_folder(task: str) -> Path:
    """Where the files of a made-up corpus are drawn; other versions may draw them differently, so each has its own."""
    return cache_folder() / "samples" / version("sixjars") / task


def _paint(recipe: Recipe, examples: Mapping[str, Examples], reporter: Reporter | None) -> None:
    """Draw the files that a made-up corpus names."""

    def told(done: int, total: int) -> None:
        (reporter or Silent()).prepared("drawing made-up files", done=done, total=total)

    for name in TASKS[recipe.task].media:
        files = [file for part in examples.values() for file in part.table.column(name).to_pylist()]
        materialise(recipe.task, files, sample_folder(recipe.task), told)
