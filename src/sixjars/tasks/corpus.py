"""The examples of a recipe: read or made up, split, seen and tokenised once, ready to be cut into batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow
import torch

from sixjars.data.cache import Kept, cache_folder, cached
from sixjars.data.labels import Labels
from sixjars.data.media import Media
from sixjars.data.readers import Examples, examples_of, read
from sixjars.data.readers.rows import LINE
from sixjars.data.samples import SAMPLES, make, materialise
from sixjars.data.text import Tokens
from sixjars.errors import DataError
from sixjars.learning.devices import device_named
from sixjars.learning.progress import Reporter, Silent
from sixjars.recipe import Recipe
from sixjars.recipe.fields import Column, Files, LabelSettings, MediaSettings, TextSettings
from sixjars.recipe.jars import SplitSettings
from sixjars.tasks.part import KEY, Part
from sixjars.tasks.parts import looks_at_cells, sight_of
from sixjars.tasks.seeing import Seeing, keep, media_of
from sixjars.tasks.table import TASKS


def written_fields(recipe: Recipe) -> dict[str, TextSettings | LabelSettings]:
    """The fields that are texts or labels, and so have a vocabulary or a list."""
    fields = recipe.data.fields()
    return {name: settings for name, settings in fields.items() if isinstance(settings, TextSettings | LabelSettings)}


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
    facts: dict[str, dict[str, Any]] = {
        name: {"vocabulary": kept.size, "vectors": None} if isinstance(kept, Tokens) else {"classes": kept.size}
        for name, kept in tokens.items()
    }
    return facts | {
        name: {"pixels": seeing.pixels, "cells": seeing.cells, "pretrained": fresh}
        for name, seeing in seeing_of(recipe).items()
    }


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
    examples = _examples(recipe, seed)
    if recipe.data.sample is not None:
        _paint(recipe, examples, reporter)
    return {name: seen(found, recipe, reporter, device) for name, found in examples.items()}


def learned(recipe: Recipe) -> dict[str, Kept]:
    """The vocabularies alone; no file of a picture or film is opened for them."""
    return learned_tokens(recipe, _examples(recipe, recipe.learning.seed)["train"])


def _examples(recipe: Recipe, seed: int) -> dict[str, Examples]:
    return _sampled(recipe) if recipe.data.sample else _read(recipe, seed)


def learned_tokens(recipe: Recipe, train: Examples) -> dict[str, Kept]:
    """The vocabularies and the list of labels that the training part teaches."""
    kept: dict[str, Kept] = {}
    for name, settings in written_fields(recipe).items():
        texts = _texts(train.table.column(name))
        if isinstance(settings, LabelSettings):
            kept[name] = Labels.trained(texts, settings, f"data.{name}")
        else:
            kept[name] = Tokens.trained(texts, settings, f"data.{name}")
    return kept


def _texts(column: Any) -> Iterator[str]:
    """The texts of an Arrow column, some at a time."""
    for chunk in column.chunks:
        yield from chunk.to_pylist()


def part_of(examples: Examples, recipe: Recipe, tokens: Mapping[str, Kept]) -> Part:
    """Examples, tokenised into the cache."""
    fields = written_fields(recipe)
    limits = {name: s.max_length if isinstance(s, TextSettings) else 1 for name, s in fields.items()}
    table = cached(examples, tokens, limits=limits, folder=cache_folder())
    if "label" in tokens and not len(table.ids("label")[0]):
        some = ", ".join(repr(text) for text in dict.fromkeys(table.texts("label", range(min(3, len(table))))))
        raise DataError(f"{examples.where}: none of its labels ({some}, ...) is among those that were learned.")
    return Part(TASKS[recipe.task], table, tokens, examples.where, examples.skipped, seeing_of(recipe))


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


def columns_of(recipe: Recipe) -> dict[str, Column]:
    """Which column each field is."""
    columns: dict[str, Column] = {name: settings.column for name, settings in recipe.data.fields().items()}
    also = {"alignment": recipe.data.alignment, "boxes": recipe.data.boxes}
    return columns | {name: column for name, column in also.items() if column is not None}


def read_files(recipe: Recipe, files: Files) -> Examples:
    """Examples of one file (or parallel files), in the columns of the recipe."""
    return read(files, columns_of(recipe), settings=recipe.data, many=("target",))


def _read(recipe: Recipe, seed: int) -> dict[str, Examples]:
    data = recipe.data
    assert data.train is not None
    if data.split is not None:
        return _by_column(recipe, data.split, data.train)
    found = {"train": read_files(recipe, data.train)}
    for name in ("valid", "test"):
        part = getattr(data, name)
        if isinstance(part, float):
            inputs = TASKS[recipe.task].inputs[:1]  # all questions about a picture stay together
            found["train"], found[name] = _split(found["train"], inputs, fraction=part, seed=seed, where=f"data.{name}")
        elif part is not None:
            found[name] = read_files(recipe, part)
    return found


def _by_column(recipe: Recipe, split: SplitSettings, file: Files) -> dict[str, Examples]:
    """The parts that one file holds, each with the rows that have its value."""
    values = {"train": split.train, "valid": split.valid, "test": split.test}
    found = {}
    for name, value in values.items():
        if value is not None:
            where = {**recipe.data.where, str(split.column): value}
            own = recipe.model_copy(update={"data": recipe.data.model_copy(update={"where": where})})
            part = read_files(own, file)
            found[name] = replace(part, where=f"the {name} part of {part.where}")
    return found


def _split(
    examples: Examples, inputs: Sequence[str], *, fraction: float, seed: int, where: str
) -> tuple[Examples, Examples]:
    """Hold out a fraction of the inputs, chosen by a seed; both sides keep the file's order.

    Rows with the same input (the captions of one picture) stay together, so that none is held out and learned from.
    """
    group = np.zeros(examples.table.num_rows, dtype=np.int64)
    for name in inputs or (LINE,):
        codes = examples.table.column(name).combine_chunks().dictionary_encode().indices.to_numpy()
        group = np.unique(group * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1]
    groups = int(group.max(initial=-1)) + 1
    count = max(1, round(groups * fraction))
    if count >= groups:
        raise DataError(
            f"{where}: a fraction of {fraction} leaves nothing to train on; {examples.where} has {groups} inputs."
        )
    held = np.zeros(groups, dtype=bool)
    held[np.random.default_rng(seed).permutation(groups)[:count]] = True
    chosen = held[group]
    return (
        replace(examples, table=examples.table.filter(pyarrow.array(~chosen))),
        replace(examples, table=examples.table.filter(pyarrow.array(chosen)), skipped=0),
    )


def _sampled(recipe: Recipe) -> dict[str, Examples]:
    sample = recipe.data.sample
    assert sample is not None
    made = make(
        recipe.task,
        size=sample.size,
        valid=sample.valid,
        test=sample.test,
        seed=sample.seed,
        longest=sample.longest,
    )
    columns = sample_columns(recipe)
    return {
        part: examples_of({f: [row[c] for row in rows] for f, c in columns.items()}, where=f"the sample's {part} part")
        for part, rows in made.items()
    }


def _paint(recipe: Recipe, examples: Mapping[str, Examples], reporter: Reporter | None) -> None:
    """Draw the files that a made-up corpus names."""

    def told(done: int, total: int) -> None:
        (reporter or Silent()).prepared("drawing made-up files", done=done, total=total)

    for name in TASKS[recipe.task].media:
        files = [file for part in examples.values() for file in part.table.column(name).to_pylist()]
        materialise(recipe.task, files, sample_folder(recipe.task), told)


def sample_columns(recipe: Recipe) -> dict[str, str]:
    """The columns of the made-up corpus, by field."""
    declared, task = SAMPLES[recipe.task], TASKS[recipe.task]
    named = {**dict(zip(task.inputs, declared.inputs, strict=True)), task.output: declared.target}
    also = {"alignment": declared.alignment, "boxes": declared.boxes}
    return named | {name: column for name, column in also.items() if column is not None}
