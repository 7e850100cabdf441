"""Texts in parts as a network is given them, packed by plain loops.

Dims: B batch, S source positions, P parts of a row.
"""

from itertools import accumulate

import torch

from sixjars.flow.values import Padded, Segments

Documents = list[list[list[int]]]
"""Of each row its parts, of each part its words."""

JUNK = 7
"""A real word that stands in the padding, where nobody may see it."""


def repacked(documents: Documents, widths: tuple[int, ...], *, positions: int = 1, parts: int = 1) -> Padded:
    """Documents in rectangles of the given widths, narrow ones first: each part in the first that holds it.

    There are at least so many `positions` and `parts`. Later rows are packed before earlier ones, and every rectangle
    begins with a part that is nobody's, so that nothing stands where it stood in the text.
    """
    rows = [[word for part in document for word in part] for document in documents]
    positions = max(positions, *map(len, rows))
    parts = max(parts, *map(len, documents))
    packs = [[[-1] * width] for width in widths]
    homes: dict[tuple[int, int], tuple[int, int]] = {}
    for row in reversed(range(len(rows))):
        place = row * positions
        for number, part in enumerate(documents[row]):
            pack = next(at for at, width in enumerate(widths) if width >= len(part))
            homes[row, number] = pack, len(packs[pack])
            line = [*range(place, place + len(part)), *[-1] * (widths[pack] - len(part))]
            packs[pack].append(line)
            place += len(part)
    before = [0, *accumulate(len(pack) for pack in packs)]
    values_BS = torch.tensor([[*row, *[JUNK] * (positions - len(row))] for row in rows])
    mask_BS = torch.tensor([[at < len(row) for at in range(positions)] for row in rows])
    home_BP = torch.full((len(rows), parts), -1)
    for (row, number), (pack, line_number) in homes.items():
        home_BP[row, number] = before[pack] + line_number
    back_BS, of_BS = torch.zeros_like(values_BS), torch.zeros_like(values_BS)
    places = [place for pack in packs for line in pack for place in line]
    for at, place in enumerate(places):
        if place >= 0:
            back_BS[place // positions, place % positions] = at
    for row, document in enumerate(documents):
        numbers = [number for number, part in enumerate(document) for _ in part]
        of_BS[row, : len(numbers)] = torch.tensor(numbers, dtype=torch.long)
    return Padded(values_BS, mask_BS, Segments(tuple(map(torch.tensor, packs)), home_BP, back_BS, of_BS))


def parts_of(padded: Padded) -> Documents:
    """The documents that were packed."""
    assert padded.parts is not None
    flat = padded.values.flatten().tolist()
    lines = [line for pack in padded.parts.packs for line in pack.tolist()]
    return [
        [[flat[place] for place in lines[home] if place >= 0] for home in row if home >= 0]
        for row in padded.parts.home.tolist()
    ]


def widths_of(padded: Padded) -> tuple[int, ...]:
    """Of each rectangle how wide it is."""
    assert padded.parts is not None
    return tuple(pack.shape[1] for pack in padded.parts.packs)
