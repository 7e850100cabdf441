"""The splits of a recipe's files: read from files of their own, found by a column, or held out."""

from collections.abc import Sequence
from dataclasses import replace
from typing import final

import numpy as np
import pyarrow
from numpy.typing import NDArray

from sixjars.data.alignment.links import read_links
from sixjars.data.annotations import ANNOTATIONS
from sixjars.data.dataset import DRAWN, Fields
from sixjars.data.storage.cache import LINE, Examples
from sixjars.data.storage.spool import filtered
from sixjars.progress import number_of
from sixjars.recipe.data import LEARN, Column, Files
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.duplicates import Numbers, numbered, paired, shared_in_words
from sixjars_runtime.errors import DataError

SPLITS = {"train": "training", "valid": "validation", "test": "test"}
"""The sets that data is split into, as recipes and as messages name them."""
USUAL, LEAST, LEAST_OF_LABEL = 0.05, 20, 2
"""The share of the inputs that is held out unless a recipe says how much, but at least so many, and
so many of each label; never more than a third."""
MIXED = 0.1
"""The share of inputs that may have several labels where labels are held out in proportion."""


def read_files(recipe: Recipe, fields: Fields, files: Files) -> Examples:
    """Examples of one file (or parallel files), in the columns of the recipe."""
    from sixjars.data.tables import read  # brings all that reads files, which no prediction needs

    columns: dict[str, Column] = {}
    for name, settings in recipe.data.fields.items():
        columns[name] = settings.column
    for key in ANNOTATIONS:
        if isinstance(column := getattr(recipe.data, key), str | int):
            columns[key] = column
    lists = {name: field.lists for name, field in fields.all.items()}
    many = [name for name, meaning in lists.items() if meaning == "rows"]
    single = [name for name, meaning in lists.items() if meaning == "value"]
    as_text = {name: fields.all[name].as_text for name in single}
    return read(files, columns, settings=recipe.data, many=many, as_text=as_text)


def read_training(recipe: Recipe, fields: Fields) -> Examples:
    """The training files as one, with a column for the file of each row and how it is drawn."""
    files = recipe.data.training_files
    parts = [read_files(recipe, fields, part.file) for part in files]
    if len(files) == 1 and files[0].weight == 1:
        return parts[0]
    tables = []
    for number, (file, examples) in enumerate(zip(files, parts, strict=True)):
        drawn = pyarrow.repeat(f"{number} {file.weight!r}", len(examples.table))
        tables.append(examples.table.append_column(DRAWN, drawn))
    where = " + ".join(examples.where for examples in parts)
    notes = tuple(sentence for examples in parts for sentence in examples.notes)
    skipped = sum(examples.skipped for examples in parts)
    return Examples(pyarrow.concat_tables(tables), skipped, where, notes, parts[0].unit)


def linked(recipe: Recipe, split: str, examples: Examples) -> Examples:
    """Examples with the links of a file, row by row, where the recipe names one for this split."""
    file = getattr(recipe.data.alignment, split, None)
    if file in (None, LEARN):
        return examples
    if recipe.data.filter or examples.skipped:
        left_out = f"bad rows are skipped ({examples.skipped})"
        if recipe.data.filter:
            left_out = "data.filter leaves out rows"
        raise DataError(
            f"data.alignment.{split}: {left_out} of {examples.where}, so the links of {file} would "
            "be those of other rows; remove these rows from both files, or give the links in a "
            "column."
        )
    links = read_links(recipe.data.path(str(file)), lines=len(examples.table))
    column = pyarrow.array(links, pyarrow.string())
    return replace(examples, table=examples.table.append_column("alignment", column))


def _check_links(recipe: Recipe) -> None:
    """Refuse links of a set that has no file, or that no column names."""
    split, named = recipe.data.split, recipe.data.alignment
    if split is not None and split.test is None and getattr(named, "test", None) is not None:
        raise DataError(
            "data.alignment.test: names a file of links, but data.split.test names no value, so "
            "there is no test set; name the value of its rows, or remove the file."
        )
    for name in ("valid", "test") if split is None else ():
        links, file = getattr(named, name, None), getattr(recipe.data, name, None)
        if links is not None and not isinstance(file, str | dict):
            raise DataError(
                f"data.alignment.{name}: names a file of links, but data.{name} names no file; "
                "remove it (rows that are held out of the training set have their links from "
                "data.alignment.train)."
            )


def read_splits(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The examples of every split, from files."""
    data = recipe.data
    _check_links(recipe)
    if data.split is not None:
        return _compared(_by_column(recipe, fields), fields)
    train = linked(recipe, "train", read_training(recipe, fields))
    if recipe.learning.folds is not None:
        # The model that is kept learns from all rows; its scores are those of the folds.
        rows = without_weights(train)
        valid = replace(rows, where=f"the training set of {rows.where}")
        return {"train": train, "valid": valid}
    # All questions about an image stay together, and all turns of a conversation: the latter by
    # their line.
    by_line = data.format == "dialogs" or not fields.inputs
    together = [LINE, DRAWN] if by_line else [next(iter(fields.inputs))]
    if data.fold is not None:
        number, count = map(int, data.fold.split("/"))
        holder = _Holder(train, fields, together, "data.fold")
        train, valid = holder.fold(number, count, seed=data.seed)
        return {"train": train, "valid": valid}
    others = {}
    for name in ("valid", "test"):
        split = getattr(data, name)
        if isinstance(split, float) or (split is None and name == "valid"):
            holder = _Holder(train, fields, together, f"data.{name}")
            train, others[name] = holder.split(split, seed=data.seed)
        elif split is not None:
            others[name] = linked(recipe, name, read_files(recipe, fields, split))
    return _compared({"train": train, **others}, fields)


def _compared(splits: dict[str, Examples], fields: Fields) -> dict[str, Examples]:
    """The same splits, with a note where rows of the training set are in another one too."""
    train = splits["train"]
    names = list(fields.all)
    for name, other in splits.items():
        if name != "train":
            sentence = shared_in_words(train, other, names, what=SPLITS[name])
            splits[name] = replace(other, notes=(*other.notes, *sentence))
    return splits


def _by_column(recipe: Recipe, fields: Fields) -> dict[str, Examples]:
    """The splits that one file holds, each with the rows that have its value."""
    data = recipe.data
    splits = {}
    assert data.split is not None
    for name, called in SPLITS.items():
        value = getattr(data.split, name)
        if value is not None:
            rows = {**data.filter, str(data.split.column): value}
            part = recipe.model_copy(update={"data": data.model_copy(update={"filter": rows})})
            split = linked(recipe, name, read_training(part, fields))
            split = split if name == "train" else without_weights(split)
            splits[name] = replace(split, where=f"the {called} set of {split.where}")
    return splits


def without_weights(examples: Examples) -> Examples:
    """Examples without the column of how they are drawn: each is scored once."""
    if DRAWN not in examples.table.column_names:
        return examples
    return replace(examples, table=examples.table.drop_columns([DRAWN]))


@final
class _Holder:
    """Holds out some of the inputs, chosen by a seed; both sides keep the file's order.

    Rows with the same input (the captions of one image) stay together, so that none is held out and
    learned from. Where inputs have one label each, a few with two aside, every label is held out in
    proportion.
    """

    def __init__(
        self, examples: Examples, fields: Fields, together: Sequence[str], where: str
    ) -> None:
        self.examples = examples
        self.where = where
        self.group = numbered(examples, together)
        self.unit = "line" if LINE in together else "input"
        if len({type(field) for field in fields.inputs.values()}) < len(fields.inputs):
            self.group = paired(examples, list(fields.inputs), self.group)
        self.groups = int(self.group.max(initial=-1)) + 1
        self.label = self._labels(fields)

    def _labels(self, fields: Fields) -> Numbers | None:
        """The label of each input as a number; None without labels, or where many are mixed."""
        if not fields.output.single_label:
            return None
        label = numbered(self.examples, [fields.output.name])
        of_group = np.zeros(self.groups, dtype=np.int64)
        of_group[self.group] = label
        mixed = np.unique(self.group[of_group[self.group] != label])
        return of_group if len(mixed) <= MIXED * self.groups else None

    def split(self, fraction: float | None, *, seed: int) -> tuple[Examples, Examples]:
        """The examples that are left, and those that are held out."""
        count = self._count(fraction)
        if count >= self.groups:
            share = "holding out one" if fraction is None else f"a fraction of {fraction}"
            raise DataError(
                f"{self.where}: {share} leaves nothing to train on; "
                f"{self.examples.where} has {number_of(self.groups, 'input')}."
            )
        held = np.zeros(self.groups, dtype=bool)
        order = np.random.default_rng(seed).permutation(self.groups)
        if self.label is None:
            held[order[:count]] = True
        else:
            least = LEAST_OF_LABEL if fraction is None else 0
            for label, quota in enumerate(quotas(np.bincount(self.label), count, least=least)):
                held[order[self.label[order] == label][:quota]] = True
        train, other = self._sides(held)
        notes = self._repeated(len(other.table), count, fraction or USUAL)
        return train, replace(other, notes=notes)

    def fold(self, number: int, count: int, *, seed: int) -> tuple[Examples, Examples]:
        """All but one of `count` parts, and that one, numbered from 1."""
        if count > self.groups:
            few = number_of(self.groups, "different input")
            fewer = f", or say learning.folds: {self.groups}" if self.groups > 1 else ""
            raise DataError(
                f"learning.folds: {count} folds need {count} different inputs or more, but "
                f"{self.examples.where} has {few}; give more data{fewer}."
            )
        sizes = [] if self.label is None else np.bincount(self.label).tolist()
        if len(sizes) == 2 and min(sizes) == 1:
            raise DataError(
                f"learning.folds: one of the two labels of {self.examples.where} has one input "
                "alone, and nothing is left to learn it from where that is held out; give it more "
                "rows."
            )
        if number > count:
            raise DataError(
                f"{self.where}: part {number} of {count} cannot be held out; "
                f"{self.examples.where} has {number_of(self.groups, 'input')}."
            )
        order = np.random.default_rng(seed).permutation(self.groups)
        if self.label is not None:  # one label after the other, dealt out in turn
            order = order[np.argsort(self.label[order], kind="stable")]
        part = np.empty(self.groups, dtype=np.int64)
        part[order] = np.arange(self.groups) % count
        return self._sides(part == number - 1)

    def _repeated(self, held: int, count: int, share: float) -> tuple[str, ...]:
        """A sentence where repeated inputs make far more rows held out than a person expects."""
        rows = len(self.examples.table)
        if self.groups * 2 > rows or held <= 2 * share * rows:
            return ()
        return (
            f"{self.where}: {rows:,} rows have only "
            f"{number_of(self.groups, f'different {self.unit}')}, and rows with the same "
            f"{self.unit} are held out together: {held:,} rows ({held / rows:.0%}) with "
            f"{number_of(count, self.unit)}.",
        )

    def _sides(self, held: "NDArray[np.bool_]") -> tuple[Examples, Examples]:
        return self._kept(~held), without_weights(replace(self._kept(held), skipped=0, notes=()))

    def _count(self, fraction: float | None) -> int:
        if fraction is not None:
            return max(1, round(self.groups * fraction))
        labels = 0 if self.label is None else int(self.label.max()) + 1
        usual = max(round(self.groups * USUAL), LEAST, LEAST_OF_LABEL * labels)
        return max(1, min(usual, self.groups // 3))

    def _kept(self, groups: "NDArray[np.bool_]") -> Examples:
        return replace(self.examples, table=filtered(self.examples.table, groups[self.group]))


def quotas(sizes: Numbers, total: int, *, least: int) -> Numbers:
    """How many of each label to hold out, in proportion; at least `least`, at most half of it.

    >>> quotas(np.array([800, 60, 60, 60]), 49, least=2), quotas(np.array([30, 5, 1]), 9, least=2)
    (array([40,  3,  3,  3]), array([7, 2, 0]))
    """
    lowest = np.minimum(least, sizes // 2)
    largest = np.argsort(-sizes, kind="stable")
    # Where there is no room for all, the rarest go without.
    lowest[largest[np.cumsum(lowest[largest]) > total]] = 0
    ideal = sizes * total / sizes.sum()
    counts: Numbers = np.maximum(lowest, np.floor(ideal).astype(np.int64))
    counts = np.minimum(counts, np.maximum(sizes - 1, 0))
    while counts.sum() < total:
        room = counts < sizes - 1
        if not room.any():
            break
        counts[np.argmax(np.where(room, ideal - counts, -np.inf))] += 1
    return counts
