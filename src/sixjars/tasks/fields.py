"""How the fields of an example become numbers, and what a decoder says becomes text again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from sixjars.data.columns import Column, Flat, Ids, Parted, laid_flat
from sixjars.data.cuts import Cut, Kept
from sixjars.data.text import STOP, Tokens
from sixjars.recipe import Recipe
from sixjars.recipe.fields import LabelSettings, OrderSettings, TextSettings

SAID = "said"
"""The cut of the source by the words that the decoder can write: what copying each position would write."""


def written_fields(recipe: Recipe) -> dict[str, TextSettings | LabelSettings | OrderSettings]:
    """The fields that are texts, labels or positions: those that are cut into tokens of some kind."""
    kinds = TextSettings | LabelSettings | OrderSettings
    return {name: settings for name, settings in recipe.data.fields().items() if isinstance(settings, kinds)}


@final
@dataclass(frozen=True)
class Fields:
    """The written fields of a recipe, with the vocabularies that were learned for them."""

    tokens: Mapping[str, Kept]
    cuts: Mapping[str, Cut]

    @classmethod
    def of(cls, recipe: Recipe, tokens: Mapping[str, Kept]) -> "Fields":
        """As the recipe says."""
        copies = bool(recipe.model.decoder.get("copying"))
        fields = written_fields(recipe)
        cuts = {name: _cut(name, settings, tokens[name], copies=copies) for name, settings in fields.items()}
        if copies:
            source = cuts["source"]
            cuts[SAID] = Cut("source", tokens["target"], source.limit, source.parts, open=True)
        return cls(tokens, cuts)

    @property
    def copies(self) -> bool:
        """Whether the decoder may write words of the source that it does not know."""
        return SAID in self.cuts

    def column(self, name: str, flat: Flat) -> Column:
        """The ids of a field (or of what could be copied) as rows to take batches from."""
        if self.cuts[name].parts != "none":
            return Parted(flat)
        if name == "label":
            return Ids(flat, narrowest=1)
        return Ids(flat, stop=STOP if name in ("target", "order") else None)

    def encoded(self, name: str, texts: Sequence[str]) -> Column:
        """The same of texts that are in no table; none is cut short."""
        return self.column(name, laid_flat(self.cuts[name].encode(texts, limited=False)))

    def normal(self, name: str, text: str) -> str:
        """A text made regular; the parts of one in parts stay on lines of their own."""
        if name not in self.cuts:
            return text
        cut = self.cuts[name]
        return "\n".join(cut.tokens.normal(part) for part in cut.parts_of(text))

    def text_of(self, name: str, ids: Sequence[int], beyond: Sequence[str]) -> str:
        """What the decoder said of an example."""
        kept = self.tokens[name]
        return kept.decode(ids, beyond) if isinstance(kept, Tokens) else kept.decode(ids)

    def pieces_of(self, name: str, ids: Sequence[int], beyond: Sequence[str]) -> list[str]:
        """The same piece by piece."""
        kept = self.tokens[name]
        return kept.pieces(ids, beyond) if isinstance(kept, Tokens) else kept.pieces(ids)

    def beyond(self, given: Mapping[str, str], *, limited: bool) -> list[str]:
        """What stands at each position of the source, for the words that a decoder copied; nothing where none does.

        A source that was cut to its limit for the encoder (`limited`) is cut here too.
        """
        return self.cuts[SAID].pieces(given["source"], limited=limited) if self.copies else []

    def source_pieces(self, text: str) -> tuple[list[str], list[int]]:
        """The pieces that an encoder reads of a source, and the part that each belongs to (none: an empty list)."""
        cut = self.cuts["source"]
        assert isinstance(cut.tokens, Tokens)
        [ids] = cut.encode([text], limited=False)
        if cut.parts == "none":
            kept, parts = ids, []
        else:
            ends = np.cumsum([number == STOP for number in ids]).tolist()
            kept = [number for number in ids if number != STOP]
            parts = [part for number, part in zip(ids, ends, strict=True) if number != STOP]
        if self.copies:  # show the words themselves, known or not: they can be written
            return [cut.tokens.plain(piece) for piece in self.beyond({"source": text}, limited=False)], parts
        return cut.tokens.pieces(kept), parts


def _cut(name: str, settings: TextSettings | LabelSettings | OrderSettings, kept: Kept, *, copies: bool) -> Cut:
    if not isinstance(settings, TextSettings):
        several = isinstance(settings, OrderSettings) or settings.several
        return Cut(name, kept, limit=None if several else 1)
    return Cut(name, kept, settings.max_length, settings.parts, open=copies and name == "target")
