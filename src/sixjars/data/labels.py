"""A closed list of labels, learned from the training data and kept in a run. It can stand where `Tokens` can."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, final

from sixjars.errors import DataError, RunError

if TYPE_CHECKING:
    from sixjars.recipe.fields import LabelSettings

_FORMAT = 1


@final
class Labels:
    """Labels and their numbers; a label that is not in the list has none.

    >>> labels = Labels(["no", "yes"], lowercase=True)
    >>> labels.encode_many(["Yes", "perhaps"])
    [[1], []]
    """

    def __init__(self, names: Sequence[str], *, lowercase: bool = False) -> None:
        self.names = tuple(names)
        self.lowercase = lowercase
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def trained(cls, texts: Iterable[str], settings: "LabelSettings", what: str) -> "Labels":
        """The labels of the training data, the most frequent first, equally frequent ones by the alphabet."""
        empty = cls((), lowercase=settings.lowercase)
        counts = Counter(empty.normal(text) for text in texts)
        kept = [name for name, count in counts.items() if count >= settings.min_count]
        kept = sorted(kept, key=lambda name: (-counts[name], name))[: settings.size]
        if len(kept) < 2:
            raise DataError(f"{what}: two labels or more are needed to choose from, but there are {len(kept)}: {kept}.")
        return cls(kept, lowercase=settings.lowercase)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.names)

    def normal(self, text: str) -> str:
        """A label made regular: single spaces, capitals made small if asked for."""
        plain = " ".join(text.split())
        return plain.lower() if self.lowercase else plain

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The number of each label in a list of its own; an empty list where it has none."""
        numbers = [self._numbers.get(self.normal(text)) for text in texts]
        return [[] if number is None else [number] for number in numbers]

    def decode(self, ids: Sequence[int]) -> str:
        """The label of a number."""
        return " ".join(self.names[number] for number in ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One text for each number."""
        return [self.names[number] for number in ids]

    def to_json(self) -> str:
        """All of it as text, to be kept in a run."""
        return json.dumps({"format": _FORMAT, "lowercase": self.lowercase, "labels": self.names}, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Labels":
        """The opposite of `to_json`."""
        try:
            parts = json.loads(text)
            names, lowercase = parts["labels"], parts["lowercase"]
            whole = isinstance(names, list) and all(isinstance(name, str) for name in names)
            if parts["format"] != _FORMAT or not whole:
                raise ValueError("it is of another form")
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"The saved labels are damaged or of another version: {error}.") from error
        return cls(names, lowercase=bool(lowercase))
