"""From the texts of a column to the ids that are stored: by a tokenizer, within a limit, segment by segment."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, final

import numpy as np

from sixjars.data.flat import Flat, begins_of, cut, flattened, rows_of
from sixjars.data.text.segments import segments_of
from sixjars.data.text.sentences import RULE
from sixjars.data.text.tokenizer import AnyTokenizer
from sixjars.data.text.words import as_array
from sixjars.flow.special import STOP

T = TypeVar("T")


@final
@dataclass(frozen=True)
class TextEncoding:
    """From the texts of a column to ids: a tokenizer, what it is limited to, and the segments of a text."""

    column: str
    tokenizer: AnyTokenizer
    limit: int | None
    """Most ids of a text, the ends of its segments counted."""
    segments: str
    copies: bool
    """Whether words outside the vocabulary have numbers of their own."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; each segment of a text in segments ends in `<stop>`."""
        return rows_of(self.flat(as_array(texts)))

    def flat(self, texts: Any) -> Flat:
        """The same for a `pyarrow` array of texts."""
        if self.segments == "none":
            found = self.tokenizer.encode_flat(texts, open=self.copies)
        else:
            split = [segments_of(text, self.segments) for text in texts.to_pylist()]
            found = segment_ids(self.tokenizer, split, open=self.copies)
        if self.segments == "turns":
            return flattened([self.short(ids, end=STOP) for ids in rows_of(found)])
        return found if self.limit is None else cut(found, self.limit)

    def short(self, row: list[T], *, end: T) -> list[T]:
        """As much of a row as the limit allows."""
        if self.limit is None:
            return row
        return latest(row, self.limit, end=end) if self.segments == "turns" else row[: self.limit]

    def words(self, text: str) -> list[str]:
        """What stands at each position of a text, spelled as the tokenizer does."""
        segments = segments_of(text, self.segments)
        row: list[str | None] = [word for segment in segments for word in (*self.tokenizer.split(segment), None)]
        return [word for word in self.short(row, end=None) if word is not None]

    def key(self) -> str:
        """All that the ids depend on, besides the texts."""
        rule = {"rule": RULE} if self.segments == "sentences" else {}
        how = {"limit": self.limit, "segments": self.segments, "copies": self.copies}
        return json.dumps(how | rule) + self.tokenizer.to_json()


def segment_ids(tokenizer: AnyTokenizer, texts: Sequence[Sequence[str]], *, open: bool = False) -> Flat:
    """The ids of texts in segments: each is encoded by itself and ends in `<stop>`, also one without a word."""
    ids, begins = tokenizer.encode_flat(as_array([one for segments in texts for one in segments]), open=open)
    counts = np.fromiter(map(len, texts), np.int64, len(texts))
    ended = begins + np.arange(len(begins))
    return np.insert(ids, begins[1:], STOP), ended[begins_of(counts)]


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
