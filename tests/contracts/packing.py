"""Texts in segments as a network is given them, packed by plain loops.

Dims: B batch, S source positions, P segments of a row.
"""

from itertools import accumulate

import torch

from sixjars.flow.values import Padded, Segments

Documents = list[list[list[int]]]
"""Of each row its segments, of each segment its words."""

JUNK = 7
"""A real word that stands in the padding, where it must have no influence."""


def repacked(
    documents: Documents, widths: tuple[int, ...], *, positions: int = 1, segments: int = 1
) -> Padded:
    """Documents in rectangles of the given widths, narrow ones first: each segment in the first
    that holds it.

    There are at least so many `positions` and `segments`. Later rows are packed before earlier
    ones, and every rectangle begins with a segment of no row, so that nothing stands where it stood
    in the text.
    """
    rows = [[word for segment in document for word in segment] for document in documents]
    positions = max(positions, *map(len, rows))
    segments = max(segments, *map(len, documents))
    packs = [[[-1] * width] for width in widths]
    homes: dict[tuple[int, int], tuple[int, int]] = {}
    for row in reversed(range(len(rows))):
        place = row * positions
        for number, segment in enumerate(documents[row]):
            pack = next(at for at, width in enumerate(widths) if width >= len(segment))
            homes[row, number] = pack, len(packs[pack])
            packs[pack].append(
                [*range(place, place + len(segment)), *[-1] * (widths[pack] - len(segment))]
            )
            place += len(segment)
    before = [0, *accumulate(len(pack) for pack in packs)]
    values_BS = torch.tensor([[*row, *[JUNK] * (positions - len(row))] for row in rows])
    mask_BS = torch.tensor([[at < len(row) for at in range(positions)] for row in rows])
    index_BP = torch.full((len(rows), segments), -1)
    for (row, number), (pack, line_number) in homes.items():
        index_BP[row, number] = before[pack] + line_number
    places = [place for pack in packs for line in pack for place in line]
    # also where padded: the mask alone counts
    real = next((at for at, place in enumerate(places) if place >= 0), 0)
    position_BS, of_BS = torch.full_like(values_BS, real), torch.zeros_like(values_BS)
    for at, place in enumerate(places):
        if place >= 0:
            position_BS[place // positions, place % positions] = at
    for row, document in enumerate(documents):
        numbers = [number for number, segment in enumerate(document) for _ in segment]
        of_BS[row, : len(numbers)] = torch.tensor(numbers, dtype=torch.long)
    return Padded(
        values_BS, mask_BS, Segments(tuple(map(torch.tensor, packs)), index_BP, position_BS, of_BS)
    )


def documents_of(padded: Padded) -> Documents:
    """The documents that were packed."""
    assert padded.segments is not None
    flat = padded.values.flatten().tolist()
    lines = [line for pack in padded.segments.packs for line in pack.tolist()]
    return [
        [[flat[place] for place in lines[home] if place >= 0] for home in row if home >= 0]
        for row in padded.segments.segment_index.tolist()
    ]


def widths_of(padded: Padded) -> tuple[int, ...]:
    """Of each rectangle how wide it is."""
    assert padded.segments is not None
    return tuple(pack.shape[1] for pack in padded.segments.packs)
