"""Points become rectangles of numbers, and orders of points become tokens.

Dims: B rows, S points, N numbers of a point, M all points of all rows.
"""

import json
import warnings
from collections.abc import Sequence
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from sixjars.data.columns import Rows
from sixjars.data.pointing import order_of, points_of, spelled_order, spelled_points, whole_numbers
from sixjars.data.vocabularies import GO, PAD, SPECIAL, STOP, UNK
from sixjars.errors import DataError, RunError
from sixjars.flow import Padded

__all__ = ["Numbers", "Places", "order_of", "points_of", "spelled_order", "spelled_points"]

_FORMAT = 1
_COMMA, _SPACE, _LINE = b", \n"


@final
class Numbers:
    """The points of many rows, each of as many numbers.

    >>> Numbers.parsed(["0.5,1 2,3", "4,5"]).padded(np.array([1, 0])).values
    tensor([[[4.0000, 5.0000],
             [0.0000, 0.0000]],
    <BLANKLINE>
            [[0.5000, 1.0000],
             [2.0000, 3.0000]]])
    """

    def __init__(self, points: NDArray[np.float32], lengths: NDArray[np.int64]) -> None:
        self.points_MN = points
        self.lengths = lengths
        self.begins = np.cumsum(lengths) - lengths

    @classmethod
    def parsed(cls, texts: Sequence[str]) -> "Numbers":
        """From their texts; a `ValueError` names the first row, counted from 1, that is not as it should be."""
        found = _parsed_at_once([" ".join(text.split()) for text in texts])
        return cls(*(_parsed_one_by_one(texts) if found is None else found))

    @property
    def numbers(self) -> int:
        """N, how many numbers a point has."""
        return int(self.points_MN.shape[1])

    def padded(self, rows: Rows) -> Padded:
        """Numbers (B, S, N), zeros behind each row's last point."""
        lengths_B = self.lengths[rows]
        positions_S = np.arange(int(lengths_B.max(initial=0)))
        inside_BS = positions_S < lengths_B[:, None]
        values_BSN = np.zeros((*inside_BS.shape, self.numbers), dtype=np.float32)
        values_BSN[inside_BS] = self.points_MN[(self.begins[rows][:, None] + positions_S)[inside_BS]]
        return Padded(torch.from_numpy(values_BSN), torch.from_numpy(inside_BS))


def _parsed_at_once(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
    """All points and the number of each row's, or nothing where some text is unusual or wrong."""
    if not texts:
        return None
    whole = "\n".join(texts)
    letters = np.frombuffer(whole.encode(errors="replace"), dtype=np.uint8)
    ends = np.append(letters[(letters == _COMMA) | (letters == _SPACE) | (letters == _LINE)], _LINE)
    numbers = int(np.argmax(ends != _COMMA)) + 1
    if len(ends) % numbers or not np.array_equal(ends.reshape(-1, numbers) == _COMMA, _commas(len(ends), numbers)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            flat = np.fromstring(whole.replace(",", " "), sep=" ")
    except (DeprecationWarning, ValueError):
        return None
    narrow = flat.astype(np.float32) if np.abs(flat).max(initial=0.0) <= np.finfo(np.float32).max else None
    if narrow is None or len(flat) != len(ends):
        return None
    lasts = np.flatnonzero(ends[numbers - 1 :: numbers] == _LINE)
    return narrow.reshape(-1, numbers), np.diff(lasts, prepend=-1).astype(np.int64)


def _commas(count: int, numbers: int) -> NDArray[np.bool_]:
    """Where a comma stands behind a number: within a point, not after its last."""
    return np.tile(np.arange(numbers) < numbers - 1, (count // numbers, 1))


def _parsed_one_by_one(texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    rows: list[list[tuple[float, ...]]] = []
    for number, text in enumerate(texts, start=1):
        try:
            rows.append(points_of(text))
        except ValueError as error:
            raise ValueError(f"row {number}: {error}") from error
        wanted, got = len(rows[0][0]), len(rows[-1][0])
        if got != wanted:
            raise ValueError(f"row {number}: its points have {got} numbers, but those of row 1 have {wanted}.")
    if not rows:
        raise ValueError("there is no row of points.")
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    return np.array([point for row in rows for point in row], dtype=np.float32), lengths


@final
class Places:
    """Positions and their tokens; it can stand where `Tokens` can.

    >>> Places().encode_many(["2 0 1"]), Places().decode([6, 4, 5, STOP])
    ([[6, 4, 5]], '2 0 1')
    """

    size = len(SPECIAL)
    """How many tokens there are besides positions: the special ones."""

    def normal(self, text: str) -> str:
        """An order made regular: single spaces, no zeros in front."""
        return " ".join(str(int(word)) if word.isascii() and word.isdigit() else word for word in text.split())

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each order, without `<go>` and `<stop>`."""
        try:
            return [[len(SPECIAL) + place for place in whole_numbers(text)] for text in texts]
        except ValueError as error:
            raise DataError(f"An order of points cannot be read: {error}") from error

    def decode(self, ids: Sequence[int]) -> str:
        """The order of tokens; special ones are left out."""
        return " ".join(str(number - len(SPECIAL)) for number in ids if number not in (PAD, GO, STOP, UNK))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """One text for each token."""
        return [SPECIAL[number] if number < len(SPECIAL) else str(number - len(SPECIAL)) for number in ids]

    def to_json(self) -> str:
        """All of it as text, to be kept in a run."""
        return json.dumps({"format": _FORMAT, "places": "positions of points, counted from 0"})

    @classmethod
    def from_json(cls, text: str) -> "Places":
        """The opposite of `to_json`."""
        try:
            parts = json.loads(text)
            if parts["format"] != _FORMAT or "places" not in parts:
                raise ValueError("it is of another form")
        except (ValueError, KeyError, TypeError) as error:
            raise RunError(f"The saved places are damaged or of another version: {error}.") from error
        return cls()
