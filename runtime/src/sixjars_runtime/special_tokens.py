"""The special tokens of every vocabulary, and where ordinary ids begin."""

from typing import Final

PAD: Final = 0
GO: Final = 1
STOP: Final = 2
UNK: Final = 3
SPECIAL: Final = ("<pad>", "<go>", "<stop>", "<unk>")
"""The special tokens, each at its id."""
