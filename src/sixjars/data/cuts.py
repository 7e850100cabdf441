"""How the text of a field is cut into the numbers that are kept of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar, final

from sixjars.data.labels import Labels
from sixjars.data.parting import parted
from sixjars.data.points import Places
from sixjars.data.sentences import RULE
from sixjars.data.text import STOP, Tokens

T = TypeVar("T")
Kept = Tokens | Labels | Places
"""What turns a text into numbers and back; a run keeps it."""


@final
@dataclass(frozen=True)
class Cut:
    """From the texts of a column to ids."""

    column: str
    """The field whose texts are cut."""
    tokens: Kept
    limit: int | None = None
    """Most ids of a text, the ends of its parts counted."""
    parts: str = "none"
    """What a text is made of; see `TextSettings.parts`."""
    open: bool = False
    """Whether words outside the vocabulary have numbers of their own."""

    def encode(self, texts: Sequence[str], *, limited: bool = True) -> list[list[int]]:
        """The ids of each text; each part of a text in parts ends in `<stop>`."""
        rows = self._encoded(texts)
        return [self._short(ids, end=STOP) for ids in rows] if limited else rows

    def _short(self, row: list[T], *, end: T) -> list[T]:
        """As much of a row as the limit allows."""
        if self.limit is None:
            return row
        return latest(row, self.limit, end=end) if self.parts == "turns" else row[: self.limit]

    def pieces(self, text: str, *, limited: bool = True) -> list[str]:
        """What stands at each position of a text whose words can be copied, spelled as `Tokens.cut` does."""
        assert isinstance(self.tokens, Tokens)
        row: list[str | None] = [piece for part in self.parts_of(text) for piece in (*self.tokens.cut(part), None)]
        return [piece for piece in (self._short(row, end=None) if limited else row) if piece is not None]

    def _encoded(self, texts: Sequence[str]) -> list[list[int]]:
        if not isinstance(self.tokens, Tokens):
            return self.tokens.encode_many(texts)
        if self.parts == "none":
            return self.tokens.encode_many(texts, open=self.open)
        return self.tokens.encode_parted([self.parts_of(text) for text in texts], open=self.open)

    def parts_of(self, text: str) -> list[str]:
        """The parts of a text; one where it is made of nothing smaller than tokens."""
        return parted(text, self.parts)

    def key(self) -> str:
        """All that the ids depend on, besides the texts."""
        how = {"column": self.column, "limit": self.limit, "parts": self.parts, "open": self.open}
        rule = {"rule": RULE} if self.parts == "sentences" else {}
        return json.dumps(how | rule) + self.tokens.to_json()


def latest(ids: list[T], limit: int, *, end: T) -> list[T]:
    """The last turns of a conversation, as many whole ones as fit; the very last is cut if it does not fit alone.

    >>> latest([7, 8, STOP, 9, STOP, 7, STOP], limit=5, end=STOP)
    [9, 2, 7, 2]
    >>> latest([7, STOP, 8, 9, 10, STOP], limit=2, end=STOP)
    [8, 9]
    """
    begins = [0, *(place + 1 for place, number in enumerate(ids[:-1]) if number == end)]
    fits = [begin for begin in begins if len(ids) - begin <= limit]
    return ids[fits[0] :] if fits else ids[begins[-1] : begins[-1] + limit]
