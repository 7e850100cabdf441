"""How the text of a field is cut into the numbers that are kept of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from sixjars.data.labels import Labels
from sixjars.data.parting import parted
from sixjars.data.points import Places
from sixjars.data.text import STOP, Tokens

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
        limit = self.limit if limited else None
        if limit is None:
            return rows
        return [latest(ids, limit) if self.parts == "turns" else ids[:limit] for ids in rows]

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
        return json.dumps(how) + self.tokens.to_json()


def latest(ids: list[int], limit: int) -> list[int]:
    """The last turns of a conversation, as many whole ones as fit; the very last is cut if it does not fit alone.

    >>> latest([7, 8, STOP, 9, STOP, 7, STOP], limit=5)
    [9, 2, 7, 2]
    >>> latest([7, STOP, 8, 9, 10, STOP], limit=2)
    [8, 9]
    """
    begins = [0, *(place + 1 for place, number in enumerate(ids[:-1]) if number == STOP)]
    fits = [begin for begin in begins if len(ids) - begin <= limit]
    return ids[fits[0] :] if fits else ids[begins[-1] : begins[-1] + limit]
