"""Pretrained vectors from an installed package: `wordllama` (https://github.com/dleemiller/WordLlama).

Its wheel holds 32,000 pieces of BPE with 256 numbers each, and the tokenizer that finds them. Both
are read from its folder; the package itself is never imported. A token of any vocabulary of ours
gets the vector of its pieces.

Dims: P pieces, E numbers of a vector.
"""

import re
from collections.abc import Iterable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self, final

import numpy
from safetensors.numpy import load_file
from tokenizers import Tokenizer, normalizers

from sixjars.data.text.vectors import Vectors
from sixjars_runtime.errors import DataError, MissingExtra, first_line

NAME: Final = "wordllama"  # the package; also the value of `vectors` that means it
EXTRA: Final = "vectors"
WIDTH: Final = 256  # numbers of a vector of the package
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
TOKENIZER: Final = "tokenizers/l2_supercat_tokenizer_config.json"
SPREAD: Final = 0.4
"""The standard deviation that all numbers together are scaled to: that of GloVe's files, so that a
recipe that fits those fits these. News classified by a GRU: 0.4 and the package's own 0.9 were
equal, 0.06 (that of an embedding without vectors) was a point worse. One factor for all: a long
vector is a word that tells much, and stays longer than one that tells little."""
_BLANK: Final = "▁"  # begins a piece that follows a blank
_BLANKS: Final = (_BLANK, "Ġ")
_EMPTY: Final = re.compile(f"{_BLANK}|<0x..>", re.DOTALL)
_AT_ONCE: Final = 4096
"""Tokens that are composed at once: the pieces of all of them would be hundreds of megabytes."""
_INSIDE: Final = "##"
"""Begins a token of WordPiece that continues a word."""


def package_folder() -> Path:
    """Where the package is installed; nothing of it is run."""
    spec = find_spec(NAME)
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not folders:
        raise MissingExtra(NAME, EXTRA)
    return Path(folders[0])


def piece_vectors() -> "PieceVectors":
    """The pieces of the installed package, read once."""
    return _read(package_folder())


@cache
def _read(folder: Path) -> "PieceVectors":
    return PieceVectors.read(folder)


@final
class PieceVectors:
    """Pieces of words with a vector each, and the tokenizer that splits a word into them."""

    def __init__(self, tokenizer: Tokenizer, values_PE: Vectors) -> None:
        self.values_PE = values_PE * numpy.float32(SPREAD / (values_PE.std() or 1.0))
        self._numbers: dict[str, int] = tokenizer.get_vocab(with_added_tokens=True)
        added = tokenizer.get_added_tokens_decoder().items()
        special = {number for number, token in added if token.special}
        # A byte of a letter that has no piece of its own is spelled so: <0x0A>.
        empty = {piece for piece in self._numbers if _EMPTY.fullmatch(piece)}
        self._left_out = special | {self._numbers[piece] for piece in empty}
        # Blanks are spelled here, so that the inside of a word can be looked up too.
        tokenizer.normalizer = normalizers.Sequence([])
        self._tokenizer = tokenizer

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Read the pieces from the folder of the package."""
        try:
            tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
            (values,) = load_file(folder / WEIGHTS).values()
        except Exception as error:  # the library of tokenizers raises no class of its own
            raise _unread(folder, first_line(error)) from error
        if values.ndim != 2 or len(values) < tokenizer.get_vocab_size():
            shape = "×".join(map(str, values.shape))
            reason = f"{tokenizer.get_vocab_size()} pieces, but numbers of the shape {shape}"
            raise _unread(folder, reason)
        return cls(tokenizer, values.astype(numpy.float32))

    @property
    def size(self) -> int:
        """How many numbers a vector has."""
        return int(self.values_PE.shape[1])

    @cached_property
    def whole_words(self) -> list[str]:
        """The words that are one piece, in the package's order: roughly by frequency."""
        pieces = sorted(self._numbers, key=self._numbers.__getitem__)
        words = (piece.removeprefix(_BLANK) for piece in pieces if piece.startswith(_BLANK))
        return [word for word in words if word.isalpha()]

    def of_tokens(self, tokens: Sequence[str]) -> tuple[Vectors, list[int]]:
        """The vectors of tokens as a tokenizer shows them, and their places in `tokens`.

        A token of nothing but letters that the package does not know has none.
        """
        spellings = _spellings(tokens)
        pieces = self._pieces(set().union(*spellings))
        chosen = [_fewest([pieces[spelling] for spelling in token]) for token in spellings]
        places = [place for place, token in enumerate(chosen) if token]
        parts = [numpy.zeros((0, self.size), numpy.float32)]
        for begin in range(0, len(places), _AT_ONCE):
            block = places[begin : begin + _AT_ONCE]
            parts.append(self._composed([chosen[place] for place in block]))
        return numpy.concatenate(parts), places

    def _pieces(self, spellings: Iterable[str]) -> dict[str, tuple[int, list[int]]]:
        """How many pieces each spelling has, and those of them that say something about a word."""
        every = list(spellings)
        encoded = self._tokenizer.encode_batch(every, add_special_tokens=False)
        pieces = {}
        for spelling, encoding in zip(every, encoded, strict=True):
            kept = [number for number in encoding.ids if number not in self._left_out]
            pieces[spelling] = len(encoding.ids), kept
        return pieces

    def _composed(self, chosen: Sequence[Sequence[Sequence[int]]]) -> Vectors:
        """A vector for each token: the mean over its spellings, each a sum of pieces.

        The sum is divided by the root of their number: a word of several pieces is rare and tells
        much, and their mean would make it shorter than a word of one piece.
        """
        counts = [sum(map(len, spellings)) for spellings in chosen]
        flat: list[int] = []
        shares: list[float] = []
        for spellings in chosen:
            for pieces in spellings:
                flat += pieces
                shares += [1 / (len(spellings) * len(pieces) ** 0.5)] * len(pieces)
        weighted = self.values_PE[flat] * numpy.array(shares, dtype=numpy.float32)[:, None]
        sums: Vectors = numpy.add.reduceat(weighted, numpy.cumsum([0, *counts[:-1]]))
        return sums


def _fewest(spellings: Sequence[tuple[int, list[int]]]) -> list[list[int]]:
    """The spellings of a token that have the fewest pieces: `Paris` is one, `paris` two."""
    usable = [(count, pieces) for count, pieces in spellings if pieces]
    least = min((count for count, _ in usable), default=0)
    return [pieces for count, pieces in usable if count == least]


def _unread(folder: Path, reason: str) -> DataError:
    return DataError(
        f"the package {NAME} in {folder} cannot be read ({reason}). "
        f"Run: pip install --force-reinstall 'sixjars[{EXTRA}]'"
    )


def _spellings(tokens: Sequence[str]) -> list[tuple[str, ...]]:
    """How each token may be spelled in the pieces' alphabet, `▁` for a blank before it.

    A vocabulary without capitals has merged the cases, so that each token stands for all of them.
    """
    pairs = zip(tokens, _begin_words(tokens), strict=True)
    plain = [_spelled(token, begins=begins) for token, begins in pairs]
    if any(token != token.lower() for token in plain):
        return [(token,) for token in plain]
    split = [
        (_BLANK if token.startswith(_BLANK) else "", token.removeprefix(_BLANK)) for token in plain
    ]
    return [
        tuple(dict.fromkeys(mark + case for case in (word, word.capitalize(), word.upper())))
        for mark, word in split
    ]


def _begin_words(tokens: Sequence[str]) -> list[bool]:
    """Which tokens begin a word: by their marks, if this vocabulary has any; else all."""
    if any(token.startswith(_INSIDE) and token != _INSIDE for token in tokens):
        return [not token.startswith(_INSIDE) for token in tokens]
    if any(token.startswith(_BLANKS) and token not in _BLANKS for token in tokens):
        return [token.startswith(_BLANKS) for token in tokens]
    return [True] * len(tokens)


def _spelled(token: str, *, begins: bool) -> str:
    """A token with the pieces' own mark in place of its own."""
    mark = next((mark for mark in (*_BLANKS, _INSIDE) if token.startswith(mark)), "")
    plain = token.removeprefix(mark) or token
    return _BLANK + plain.replace(" ", _BLANK) if begins else plain
