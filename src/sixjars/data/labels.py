"""A closed list of labels, learned from the training data and kept in a run. It can stand where `Tokens` can."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, final

from sixjars.errors import DataError, RunError

if TYPE_CHECKING:
    from sixjars.recipe.fields import LabelSettings

_FORMAT = 1
BETWEEN = ", "
"""Between several labels of one example."""


@final
class Labels:
    """Labels and their numbers; a label that is not in the list has none.

    Where an example may have `several`, its text has commas between them.

    >>> labels = Labels(["no", "yes"], lowercase=True)
    >>> labels.encode_many(["Yes", "perhaps"])
    [[1], []]
    >>> Labels(["grain", "wheat"], several=True).encode_many(["wheat, grain, corn"])
    [[1, 0]]
    """

    def __init__(self, names: Sequence[str], *, lowercase: bool = False, several: bool = False) -> None:
        self.names = tuple(names)
        self.lowercase = lowercase
        self.several = several
        self._numbers = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def trained(cls, texts: Iterable[str], settings: "LabelSettings", what: str) -> "Labels":
        """The labels of the training data, the most frequent first, equally frequent ones by the alphabet."""
        empty = cls((), lowercase=settings.lowercase, several=settings.several)
        counts = Counter(name for text in texts for name in empty.names_in(text))
        kept = [name for name, count in counts.items() if count >= settings.min_count]
        kept = sorted(kept, key=lambda name: (-counts[name], name))[: settings.size]
        if len(kept) < 2:
            raise DataError(f"{what}: two labels or more are needed to choose from, but there are {len(kept)}: {kept}.")
        return cls(kept, lowercase=settings.lowercase, several=settings.several)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self.names)

    def normal(self, text: str) -> str:
        """A label made regular: single spaces, capitals made small if asked for. Several are put in order."""
        names = self.names_in(text)
        return BETWEEN.join(sorted(names)) if self.several else names[0]

    def names_in(self, text: str) -> list[str]:
        """The label of a text, or all of several, each once."""
        text = text.lower() if self.lowercase else text
        names = text.split(BETWEEN.strip()) if self.several else [text]
        plain = dict.fromkeys(" ".join(name.split()) for name in names)
        return [name for name in plain if name or not self.several]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of the labels of each text; an empty list where none is in the list."""
        return [[self._numbers[name] for name in self.names_in(text) if name in self._numbers] for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """The label of a number, or those of several."""
        return BETWEEN.join(sorted(self.names[number] for number in ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One text for each number."""
        return [self.names[number] for number in ids]

    def to_json(self) -> str:
        """All of it as text, to be kept in a run."""
        how = {"format": _FORMAT, "lowercase": self.lowercase, "several": self.several}
        return json.dumps({**how, "labels": self.names}, ensure_ascii=False)

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
        return cls(names, lowercase=bool(lowercase), several=bool(parts.get("several")))
