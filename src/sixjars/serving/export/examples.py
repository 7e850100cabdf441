"""Inputs of any shape, to export a network with and to compare it by.

Dims: B rows, S positions, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from sixjars.data.dataset import NOTHING, Fields
from sixjars.data.field import Field
from sixjars.flow.values import Padded, Segments
from sixjars_runtime.exported.inputs import packed
from sixjars_runtime.special_tokens import SPECIAL

SHAPES = ((5, 9), (2, 3), (3, 11), (1, 1))
"""Rows and most positions: the first is exported, at the others values are compared. The sizes of
the first, those of segments included, all differ: equal ones would be taken for one."""
LONGER = 4
"""How many positions each input has more than the one before it."""


def inputs_of(fields: Fields, rows: int, longest: int) -> dict[str, Padded]:
    """Random values of each input; each row is shorter by one position than the one before it.

    Every input is longer than the one before it, for equal lengths would be taken for one.
    """
    if not fields.inputs:
        return {NOTHING: Padded.of([[] for _ in range(rows)])}
    random = torch.Generator().manual_seed(rows)
    inputs = {}
    for number, (name, field) in enumerate(fields.inputs.items()):
        most = longest + LONGER * number
        inputs[name] = _padded(field, [most - row % most for row in range(rows)], random)
    return inputs if fields.link is None else _copied(inputs, _vocabulary(fields.output), random)


def _padded(field: Field, lengths: list[int], random: torch.Generator) -> Padded:
    blank = field.blank()
    mask_BS = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    inner, dtype = blank.values.shape[2:], blank.values.dtype
    if dtype.is_floating_point:
        values = torch.randn((*mask_BS.shape, *inner), generator=random)
    else:
        least, most = len(SPECIAL), max(len(SPECIAL) + 1, _vocabulary(field))
        if dtype == torch.uint8:
            least, most = 0, 256
        values = torch.randint(least, most, (*mask_BS.shape, *inner), generator=random)
    mask = mask_BS.view(*mask_BS.shape, *(1 for _ in inner))
    segments = None if blank.segments is None else _segments(lengths, mask_BS)
    return Padded(values.to(dtype) * mask.to(dtype), mask_BS, segments)


def _vocabulary(field: Field) -> int:
    return int(field.facts().get("vocabulary", 0))


def _segments(lengths: list[int], mask_BS: Tensor) -> Segments:
    """A segment of two thirds of each row and others of one position, all in one rectangle."""
    longest = [-(-2 * length // 3) for length in lengths]
    cut = [[first, *[1] * (length - first)] for length, first in zip(lengths, longest, strict=True)]
    pack, *indices = (torch.from_numpy(array) for array in packed(cut, mask_BS.numpy()).values())
    return Segments((pack,), *indices)


def _copied(inputs: Mapping[str, Padded], size: int, random: torch.Generator) -> dict[str, Padded]:
    """The inputs with the copy id of each position of the first: a known word, or its place."""
    (name, source), *others = inputs.items()
    known_BS = torch.randint(len(SPECIAL), size, source.mask.shape, generator=random)
    place_S = size + torch.arange(source.mask.shape[1])
    copy_BS = torch.where(known_BS % 2 == 0, known_BS, place_S) * source.mask
    return {name: replace(source, copy_ids=copy_BS), **dict(others)}
