"""The training, validation and test set of a recipe, encoded once, and warnings about them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from sixjars.data.alignment.guides import unspaced
from sixjars.data.bad_rows import remedied
from sixjars.data.dataset import Dataset, Fields
from sixjars.data.storage.cache import Examples
from sixjars.progress import number_of
from sixjars.recipe.data import LEARN, LinkFiles
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.split_files import LEAST, SPLITS, read_splits
from sixjars.runs.recipes import Blueprint
from sixjars.samples import materialise, sample_examples, sample_folder
from sixjars_runtime.errors import DataError, shown


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


def admitted(blueprint: Blueprint) -> dict[str, Examples]:
    """The usable examples of every split; the features of images and videos are then stored."""
    try:
        return _admitted(blueprint)
    except DataError as error:
        raise remedied(error) from None


def _admitted(blueprint: Blueprint) -> dict[str, Examples]:
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
    for name, field in fields.inputs.items():
        if not field.is_media:
            continue
        files = [
            file for split in examples.values() for file in split.table.column(name).to_pylist()
        ]
        materialise(recipe.task, files, sample_folder(recipe.task), field.equipment.reporter)


NEARLY_ALL = 0.99
"""The share of the training set that is shorter than the length to compare with."""
MUCH_LONGER = 0.1
"""The share of longer inputs in another set from which a note says so."""
LOOKED_AT = 10_000
"""Training rows of which it is found out whether they were cut: all of fewer than twice as many."""
LABELS_ONCE = (
    "{} in the training set only once; is that a mistake? "
    "data.label.min_count=2 leaves such labels out."
)
LABELS_MISSING = (
    "{} not in the validation set, so nothing is chosen by how well that is recognized."
)
SMALL_VALIDATION = (
    "the validation set has {}, too few to choose a checkpoint by; "
    "hold out more (data.valid), or say learning.folds: 5."
)
NO_TEST = (
    "there is no test set (data.test); the final scores are of the validation set, "
    "which also chooses the checkpoint."
)


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
        yield SMALL_VALIDATION.format(number_of(len(splits.valid), "example"))
    if held_out and splits.test is None:
        yield NO_TEST


def _labels(splits: Splits) -> Iterator[str]:
    """Notes on labels that can hardly be learned, or not be measured."""
    single = [name for name, count in splits.train.label_counts().items() if count == 1]
    if single:
        yield LABELS_ONCE.format(_some(single))
    missing = [name for name, count in splits.valid.label_counts().items() if count == 0]
    if missing:
        yield LABELS_MISSING.format(_some(missing))


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(shown(name) for name in names[:3]) + (", ..." if len(names) > 3 else "")
    return f"the label {listed} is" if len(names) == 1 else f"{len(names)} labels ({listed}) are"


def _longer(splits: Splits) -> Iterator[str]:
    """Notes on inputs that are longer than nearly all of training; a single one is chance."""
    for name in splits.train.text_inputs:
        train = np.array(splits.train.lengths(name))[splits.train.usable]
        most = int(np.quantile(train, NEARLY_ALL, method="inverted_cdf"))
        longer = {}
        for split, dataset in list(splits.named.items())[1:]:
            count = int((np.array(dataset.lengths(name)) > most).sum())
            if count > max(1, MUCH_LONGER * len(dataset)):
                longer[SPLITS[split]] = count, len(dataset)
        if longer:
            yield longer_in_words(longer, most, texts_of(name, splits.fields.inputs))


def _truncated(splits: Splits) -> Iterator[str]:
    """Notes on training texts that were cut, by a sample: each of it is tokenized again."""
    rows = np.flatnonzero(splits.train.usable)
    sample = rows[:: max(1, len(rows) // LOOKED_AT)].tolist()
    for name, field in splits.fields.all.items():
        if cut := int(field.truncated(splits.train.table, sample).sum()):
            limit = f"data.{name}.max_length ({field.settings.max_length} tokens)"
            what = texts_of(name, splits.fields.inputs)
            yield truncated_in_words(cut, len(sample), len(rows), what=what, limit=limit)


def texts_of(name: str, inputs: Collection[str]) -> str:
    """The texts of a field in words: the inputs, where there is one input alone."""
    return "inputs" if [*inputs] == [name] else f"texts of {name}"


def truncated_in_words(cut: int, looked_at: int, rows: int, *, what: str, limit: str) -> str:
    """A sentence that training texts were cut; from a sample of `rows`, about their share.

    >>> limit = "data.source.max_length (20 tokens)"
    >>> truncated_in_words(3, 40, 40, what="inputs", limit=limit).partition(";")[0]
    '3 of 40 training inputs (7.5 %) were cut at data.source.max_length (20 tokens)'
    >>> truncated_in_words(499, 1000, 50_000, what="inputs", limit=limit)[:41]
    'about 50 % of 50,000 training inputs were'
    """
    share = 100 * cut / looked_at
    count = f"about {share:.0f} % of {rows:,} training {what}"
    if looked_at == rows:
        count = f"{cut:,} of {rows:,} training {what} ({share:.3g} %)"
    were = "was" if cut == 1 and looked_at == rows else "were"
    return f"{count} {were} cut at {limit}; raise it if what comes after that matters."


def longer_in_words(
    counts: Mapping[str, tuple[int, int]], tokens: int, what: str = "inputs"
) -> str:
    """A sentence that many texts of other sets are longer than nearly all of the training set.

    >>> longer_in_words({"test": (24, 37)}, 18).partition(";")[0]
    '24 of 37 test inputs (65 %) are longer than 99 % of the training inputs (18 tokens)'
    """
    parts = []
    for split, (count, total) in counts.items():
        parts.append(f"{count:,} of {total:,} {split} {what} ({100 * count / total:.0f} %)")
    return (
        f"{' and '.join(parts)} are longer than {100 * NEARLY_ALL:g} % of the training {what} "
        f"({tokens:,} tokens); outputs may be poor there, so train on longer ones too "
        "(in translation, such as neighbouring rows joined)."
    )
