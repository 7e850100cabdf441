"""The training, validation and test set of a recipe, read or generated, and encoded once."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import final

from sixjars.data.bad_rows import remedied
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.storage.cache import Examples
from sixjars.recipe.data import LEARN, LinkFiles
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.blueprint import Blueprint
from sixjars.runs.data.split_files import SPLITS, read_splits
from sixjars.samples import materialise, sample_examples, sample_folder
from sixjars_runtime.errors import DataError


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
