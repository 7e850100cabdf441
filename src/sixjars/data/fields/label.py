"""Labels: a closed list, learned from the training set; one for each example, or several.

Dims: B rows, T labels of a row.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from pydantic import StrictBool

from sixjars.data.batches import FieldValues, IdColumn
from sixjars.data.field import Field, are_text_lists
from sixjars.data.storage.cache import ExampleTable, FieldEncoder, IdEncoder
from sixjars.data.text.statistics import hold_lists
from sixjars.flow.limits import Positive
from sixjars.flow.values import Padded
from sixjars.recipe.data import Column as ColumnName
from sixjars.recipe.data import FieldSettings
from sixjars_runtime.errors import DataError, RunError, shown
from sixjars_runtime.text.segments import SEPARATOR, text_of_labels, texts_of

_FORMAT = 2
ASSUMED = 2  # labels assumed where neither data nor recipe say how many there are
NAMED = 5  # labels that are named where rows are left out because of them
MULTI_LABEL_METRICS = ("labels_micro_f1", "labels_macro_f1", "labels_exact")


class LabelSettings(FieldSettings):
    """One column of labels: a closed list, learned from the training data and kept in the run."""

    kind: str = "label"
    column: ColumnName = "label"
    size: Positive | None = None
    """Most labels, the most frequent first; a rarer one is never output, and not learned from."""
    min_count: Positive = 1
    """A label seen fewer times in the training data is never output."""
    lowercase: StrictBool = False
    """Whether labels that differ only in case are one, called as it is spelled most often."""
    multi_label: StrictBool = False
    """Whether an example may have several labels: a list in JSON lines, else a text with commas
    between them."""


@final
class LabelField(Field):
    """A closed list of labels; a label that is not in it has no number.

    >>> field = LabelField("label", LabelSettings(lowercase=True)).learned(["yes", "No", "yes"])
    >>> field.names, field.encode(["Yes", "perhaps"])
    (('yes', 'No'), [[0], []])
    >>> settings = LabelSettings(multi_label=True)
    >>> several = LabelField("label", settings).learned(["wheat, grain", "wheat"])
    >>> several.encode(["grain, corn, wheat"])
    [[1, 0]]
    """

    kind = "label"
    settings_class = LabelSettings
    holds = "classes"
    fact_names = ("classes", "multi_label")
    learns = True

    def __init__(self, name: str, settings: LabelSettings, names: Sequence[str] = ()) -> None:
        super().__init__(name, settings)
        self.settings: LabelSettings = settings
        self.multi_label = settings.multi_label
        self.single_label = not settings.multi_label
        self.lists = "value" if settings.multi_label else "refused"
        self.folds_case = settings.lowercase
        self.default_metrics = MULTI_LABEL_METRICS if settings.multi_label else ()
        self.names = tuple(names)
        self._numbers: dict[str, int] = {}
        for number, label in enumerate(self.names):
            self._numbers.setdefault(self._key(label), number)

    def as_text(self, value: object) -> str:
        """The text of a label; several have commas between them."""
        if isinstance(value, list) and self.multi_label:
            return text_of_labels(value)
        return texts_of([value])[0] if isinstance(value, int) else super().as_text(value)

    def learned(self, texts: Iterable[str]) -> Self:
        """The field with the labels of the training data, by frequency, behind those it knows."""
        settings = self.settings
        spellings: dict[str, Counter[str]] = {}
        for text in texts:
            for label in self._labels(text):
                spellings.setdefault(self._key(label), Counter())[label] += 1
        counts = {key: spelled.total() for key, spelled in spellings.items()}
        new = [key for key in counts.keys() - self._numbers if counts[key] >= settings.min_count]
        new.sort(key=lambda key: (-counts[key], key))
        # Of equally frequent spellings, a Counter has the one first that was seen first.
        kept = [*self.names, *(spellings[key].most_common(1)[0][0] for key in new)][: settings.size]
        if len(kept) < 2:
            raise DataError(
                f"data.{self.name}: two labels or more are needed to choose from, but the training "
                f"set has {len(kept)}: {kept}."
            )
        return self._with(kept)

    def _with(self, names: Sequence[str]) -> Self:
        return type(self)(self.name, self.settings, names).equipped(self.equipment)

    def to_json(self) -> str:
        """The list, to be saved."""
        return json.dumps({"format": _FORMAT, "labels": self.names}, ensure_ascii=False)

    def restored(self, text: str) -> Self:
        """The field with a saved list."""
        try:
            saved = json.loads(text)
            names = saved["labels"]
            right = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if saved["format"] != _FORMAT or not right or len(set(names)) != len(names):
                raise ValueError("it is of another form")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise RunError(
                f"The saved labels are damaged or of another version: {error}."
            ) from error
        return self._with(names)

    def _key(self, label: str) -> str:
        """The form that all spellings of a label share."""
        return label.lower() if self.settings.lowercase else label

    def _labels(self, text: str) -> list[str]:
        """The labels of a text as they are spelled, each once."""
        labels = text.split(SEPARATOR.strip()) if self.multi_label else [text]
        once: dict[str, str] = {}
        for label in labels:
            plain = " ".join(label.split())
            once.setdefault(self._key(plain), plain)
        return [label for label in once.values() if label or not self.multi_label]

    def _named(self, label: str) -> str:
        """A label in the spelling of the list, if it is there."""
        number = self._numbers.get(self._key(label))
        return self._key(label) if number is None else self.names[number]

    def unknown(self, text: str) -> list[str]:
        """The labels of a text that are not in the list."""
        return [label for label in self._labels(text) if self._key(label) not in self._numbers]

    def normalize(self, text: str) -> str:
        """Single spaces, spelled as in the list if case does not count; several in order."""
        labels = list(map(self._named, self._labels(text)))
        return SEPARATOR.join(sorted(labels)) if self.multi_label else labels[0]

    def encoders(self) -> dict[str, IdEncoder]:
        """Encodes labels as their numbers in the list."""
        key = f"{self.settings.lowercase} {self.multi_label} {self.to_json()}"
        return {self.name: FieldEncoder(self.name, self.encode, lambda: key)}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the labels of each text; an empty list where none is in the list."""
        rows = ([self._key(label) for label in self._labels(text)] for text in texts)
        return [[self._numbers[key] for key in keys if key in self._numbers] for keys in rows]

    def column(self, table: ExampleTable, *, training: bool = False) -> FieldValues:
        """Labels (B, T), at least one wide."""
        return IdColumn(table.ids(self.name), narrowest=1)

    def usable(self, table: ExampleTable) -> NDArray[np.bool_]:
        """Rows with a label in the list; there is nothing to learn from the others."""
        usable = np.diff(table.ids(self.name)[1]) > 0
        if not usable.any():
            first = dict.fromkeys(table.texts(self.name, range(min(3, len(table)))))
            some = ", ".join(map(repr, first))
            raise DataError(f"none of its labels ({some}, ...) is among those that were learned.")
        return usable

    def why_unusable(self, table: ExampleTable, rows: NDArray[np.int64]) -> str:
        """Their labels are too rare, or too many; the first of them."""
        least = self.settings.min_count
        counts = Counter(label for text in table.texts(self.name) for label in self.unknown(text))
        own = (
            label for text in table.texts(self.name, rows.tolist()) for label in self.unknown(text)
        )
        labels = [*dict.fromkeys(own)]
        rare = self.settings.size is None and all(counts[label] < least for label in labels)
        one = len(rows) == 1
        they = "because its label" if one else "because their labels"
        have, are = ("has", "is") if one else ("have", "are")
        if rare:
            few = "1 row" if least == 2 else f"fewer than {least} rows"
            said = f"{they} {have} {few} (data.{self.name}.min_count)"
        else:
            said = f"{they} {are} not in the list (data.{self.name}.min_count, size)"
        more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
        return f"{said}: {', '.join(map(shown, labels[:NAMED]))}{more}" if labels else said

    def note_on_unknown(self, table: ExampleTable) -> str:
        """How many rows have labels that were not learned: each counts as wrong, often unmeant."""
        rows = 0
        labels = Counter[str]()
        for text in table.texts(self.name):
            unknown = self.unknown(text)
            rows += bool(unknown)
            labels.update(unknown)
        if not rows:
            return ""
        spelled = {name.casefold(): name for name in self.names}
        named = []
        for label, _ in labels.most_common(NAMED):
            known = spelled.get(label.casefold())
            named.append(shown(label) if known is None else f"{label!r} (it knows {known!r})")
        listed = ", ".join(named) + (", ..." if len(labels) > NAMED else "")
        have = "rows has labels" if rows == 1 else "rows have labels"
        count = "are never found" if self.multi_label else "count as wrong"
        return (
            f"{rows:,} of {len(table):,} {have} that the run has not learned, "
            f"such as {listed}: they {count}."
        )

    def blank(self) -> Padded:
        """A row with the first label."""
        return Padded.of([[0]])

    def decode(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> str:
        """The label of a number, or those of several."""
        return SEPARATOR.join(sorted(self.names[number] for number in ids))

    def tokens(self, ids: Sequence[int], source_words: Sequence[str] = ()) -> list[str]:
        """The label of each number."""
        return [self.names[number] for number in ids]

    def facts(self) -> dict[str, Any]:
        """The number of labels, and whether several may apply."""
        return {"classes": len(self.names), "multi_label": self.multi_label}

    def assumed(self) -> Self:
        """The field with as many labels as the settings allow."""
        return self._with([str(number) for number in range(self.settings.size or ASSUMED)])

    def describe(self) -> str:
        """The number of labels to choose from."""
        return f"{'any' if self.multi_label else 'one'} of {len(self.names)}"

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Texts or whole numbers; lists of texts, and texts that are lists, are several labels."""
        if are_text_lists(values):
            return {"multi_label": True}
        if not all(isinstance(value, str | int) for value in values):
            return None
        several = hold_lists([str(value) for value in values], SEPARATOR.strip())
        return {"multi_label": True} if several else {}
