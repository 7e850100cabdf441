"""The special tokens of every vocabulary, where ordinary ids begin, and what search makes of them."""

from dataclasses import dataclass
from typing import Final, final

PAD: Final = 0
GO: Final = 1
STOP: Final = 2
UNK: Final = 3
SPECIAL: Final = ("<pad>", "<go>", "<stop>", "<unk>")
"""The special tokens, each at its id."""


@final
@dataclass(frozen=True)
class SpecialTokens:
    """The tokens with a meaning for search."""

    go: int
    """The input of the first step; never output (unless `<stop>` is the same token)."""
    stop: int
    """The token that ends a hypothesis."""
    banned: tuple[int, ...] = ()
    """Other tokens that are never output, such as `<pad>`."""
    unknown: int | None = None
    """`<unk>`, where there is such a token; search settings say whether it may be output."""

    def never(self, unknown: str) -> list[int]:
        """Return the tokens that are never output, where settings say this of `<unk>`.

        >>> SpecialTokens(go=1, stop=2, banned=(0,), unknown=3).never("ban")
        [0, 1, 3]
        """
        forbidden = {*self.banned, self.go} - {self.stop}
        if self.unknown is not None and unknown == "ban":
            forbidden.add(self.unknown)
        return sorted(forbidden)
