"""The examples of a recipe: read or made up, split, tokenised once, ready to be cut into batches."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, final

import numpy as np
import torch

from sixjars.data.batches import Alignments, Batches, Links
from sixjars.data.cache import Table, cache_folder, cached
from sixjars.data.readers import Examples, examples_of, read
from sixjars.data.samples import SAMPLES, make
from sixjars.data.samples import vectors as sample_vectors
from sixjars.data.text import Tokens
from sixjars.data.vectors import read_vectors
from sixjars.errors import DataError
from sixjars.recipe import Recipe
from sixjars.recipe.jars import Column, Files, TextSettings

FIELDS = ("source", "target")


def text_fields(recipe: Recipe) -> dict[str, TextSettings]:
    """The text columns of a recipe, by field."""
    source, target = recipe.data.source, recipe.data.target
    return {"target": target} if source is None else {"source": source, "target": target}


@final
@dataclass(frozen=True)
class Part:
    """One part of the data (train, valid or test), tokenised."""

    table: Table
    tokens: Mapping[str, Tokens]
    where: str
    """For messages."""
    skipped: int = 0
    """Bad rows that were left out."""

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def sources(self) -> list[str]:
        """What the encoder reads, made regular; empty texts where it reads nothing."""
        if "source" not in self.tokens:
            return [""] * len(self)
        return [self.tokens["source"].normal(text) for text in self.table.texts("source")]

    @cached_property
    def targets(self) -> list[str]:
        """What the decoder should write, made regular as its tokens are (Unicode form, spaces, case if asked for)."""
        return [self.tokens["target"].normal(text) for text in self.table.texts("target")]

    @cached_property
    def alignments(self) -> list[frozenset[tuple[int, int]]] | None:
        """True links between words (or characters), where the data has them."""
        if not self.table.has("alignment"):
            return None
        return [self._links(row, text) for row, text in enumerate(self.table.texts("alignment"))]

    def _links(self, row: int, text: str) -> frozenset[tuple[int, int]]:
        try:
            pairs = [tuple(int(number) for number in pair.split("-")) for pair in text.split()]
            links = frozenset((source, target) for source, target in pairs)
        except ValueError:
            raise DataError(
                f"{self.where}, line {self.table.line(row)}: alignment {text!r} must be pairs like `0-0 1-2`."
            ) from None
        sides = (self.sources[row], self.targets[row])
        for side, (name, words) in enumerate(zip(FIELDS, sides, strict=True)):
            count = self.tokens[name].words_of(words)[-1] + 1
            over = [link for link in links if not 0 <= link[side] < count]
            if over:
                raise DataError(
                    f"{self.where}, line {self.table.line(row)}: alignment {over[0][0]}-{over[0][1]} points outside "
                    f"the {name}, which has {count} words (counted from 0)."
                )
        return links

    def token_links(self, row: int) -> Links:
        """True links between token positions of a row."""
        assert self.alignments is not None
        source = self.tokens["source"].words_of(self.sources[row])[: self.length("source", row)]
        target = self.tokens["target"].words_of(self.targets[row])[: self.length("target", row)]
        links = self.alignments[row]
        return tuple(
            (s, t) for s, word in enumerate(source) for t, written in enumerate(target) if (word, written) in links
        )

    def length(self, field: str, row: int) -> int:
        """How many tokens of a row were kept."""
        offsets = self.table.ids(field)[1]
        return int(offsets[row + 1] - offsets[row])

    def batches(
        self,
        *,
        batch_tokens: int | None = None,
        batch_examples: int | None = None,
        seed: int = 0,
        guided: bool = False,
    ) -> Batches:
        """The same as padded batches; `guided` ones carry the true alignment."""
        alignments: Alignments | None = self.token_links if guided and self.alignments is not None else None
        return Batches(
            {name: self.table.ids(name) for name in self.tokens if name != "target"},
            self.table.ids("target"),
            batch_tokens=batch_tokens,
            batch_examples=batch_examples,
            seed=seed,
            alignments=alignments,
        )


@final
@dataclass(frozen=True)
class Corpus:
    """All parts of the data, and the vocabularies learned from the training part."""

    train: Part
    valid: Part
    test: Part | None
    tokens: Mapping[str, Tokens]

    @property
    def scored(self) -> Part:
        """What the final scores are of: the test part, or the validation part where there is none."""
        name, part = ("valid", self.valid) if self.test is None else ("test", self.test)
        return replace(part, where=part.where if "part" in part.where else f"the {name} part of {part.where}")

    @property
    def fingerprints(self) -> dict[str, str]:
        """A number for each part that changes with its content."""
        parts = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: part.table.fingerprint for name, part in parts.items() if part is not None}

    @property
    def skipped(self) -> int:
        """Bad rows left out of all parts."""
        return sum(part.skipped for part in (self.train, self.valid, self.test) if part is not None)


def corpus_of(recipe: Recipe, tokens: Mapping[str, Tokens] | None = None, *, seed: int = 0) -> Corpus:
    """The data of a recipe; with `tokens` given (a run's own) no vocabulary is learned."""
    examples = _sampled(recipe) if recipe.data.sample else _read(recipe, seed)
    fields = text_fields(recipe)
    if tokens is None:
        train = examples["train"].table
        tokens = {
            name: Tokens.trained(_texts(train.column(name)), settings, f"data.{name}")
            for name, settings in fields.items()
        }
    parts = {name: part_of(found, tokens, fields) for name, found in examples.items()}
    return Corpus(parts["train"], parts["valid"], parts.get("test"), tokens)


def _texts(column: Any) -> Iterator[str]:
    """The texts of an Arrow column, some at a time."""
    for chunk in column.chunks:
        yield from chunk.to_pylist()


def part_of(examples: Examples, tokens: Mapping[str, Tokens], fields: Mapping[str, TextSettings]) -> Part:
    """Examples, tokenised into the cache."""
    limits = {name: settings.max_length for name, settings in fields.items()}
    table = cached(examples, tokens, limits=limits, folder=cache_folder())
    return Part(table, tokens, examples.where, examples.skipped)


def columns_of(recipe: Recipe) -> dict[str, Column]:
    """Which column each field is."""
    columns = {name: settings.column for name, settings in text_fields(recipe).items()}
    return columns if recipe.data.alignment is None else {**columns, "alignment": recipe.data.alignment}


def read_files(recipe: Recipe, files: Files) -> Examples:
    """Examples of one file (or parallel files), in the columns of the recipe."""
    return read(files, columns_of(recipe), settings=recipe.data)


def _read(recipe: Recipe, seed: int) -> dict[str, Examples]:
    data = recipe.data
    assert data.train is not None
    found = {"train": read_files(recipe, data.train)}
    for name in ("valid", "test"):
        part = getattr(data, name)
        if isinstance(part, float):
            found["train"], found[name] = _split(found["train"], part, seed, f"data.{name}")
        elif part is not None:
            found[name] = read_files(recipe, part)
    return found


def _split(examples: Examples, fraction: float, seed: int, where: str) -> tuple[Examples, Examples]:
    """Hold out a fraction, chosen by a seed; both sides keep the file's order."""
    rows = examples.table.num_rows
    count = max(1, round(rows * fraction))
    if count >= rows:
        raise DataError(
            f"{where}: a fraction of {fraction} leaves nothing to train on; {examples.where} has {rows} rows."
        )
    chosen = np.zeros(rows, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(rows)[:count]] = True
    return (
        replace(examples, table=examples.table.filter(~chosen)),
        replace(examples, table=examples.table.filter(chosen), skipped=0),
    )


def _sampled(recipe: Recipe) -> dict[str, Examples]:
    sample, declared = recipe.data.sample, SAMPLES[recipe.task]
    assert sample is not None
    made = make(
        recipe.task,
        size=sample.size,
        valid=sample.valid,
        test=sample.test,
        seed=sample.seed,
        longest=sample.longest,
    )
    names = {"source": declared.source, "target": declared.target, "alignment": declared.alignment}
    wanted = {field: column for field, column in names.items() if column is not None}
    return {
        part: examples_of({f: [row[c] for row in rows] for f, c in wanted.items()}, where=f"the sample's {part} part")
        for part, rows in made.items()
    }


def vectors_of(recipe: Recipe, tokens: Mapping[str, Tokens]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Pretrained vectors of the words that a recipe's vocabularies know."""
    found = {}
    for name, settings in text_fields(recipe).items():
        if settings.vectors is not None:
            words = tokens[name].by_word()
            values, known = _vectors(recipe, settings.vectors, list(words), size=_embedding_size(recipe, name))
            rows = [(row, at) for at, word in enumerate(known) for row in words[word]]
            picked = values[[at for _, at in rows]]
            found[name] = (torch.tensor([row for row, _ in rows]), torch.from_numpy(picked))
    return found


def _embedding_size(recipe: Recipe, field: str) -> int:
    section = recipe.model.encoder if field == "source" else recipe.model.decoder
    size: int = section["embedding"]["size"]
    return size


def _vectors(recipe: Recipe, file: str, words: list[str], *, size: int) -> tuple[np.ndarray, list[str]]:
    if file == "sample":
        made = dict(sample_vectors(recipe.task, size=size))
        known = [word for word in words if word in made]
        if not known:
            raise DataError("data: the made-up vectors know none of these words; `vectors: sample` is for the source.")
        return np.array([made[word] for word in known], dtype=np.float32), known
    values, rows = read_vectors(recipe.data.path(file), {word: row for row, word in enumerate(words)}, None)
    return values, [words[row] for row in rows]
