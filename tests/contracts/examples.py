"""Inputs of the contract checks: ragged rows of words, segments, frames and vectors, with junk in
the padding.

Dims: B batch, S source positions, D source features, K summary features, F frames, N numbers of a
frame, P segments of a row, U features of a segment.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from sixjars.flow.features import FeatureShape
from sixjars.flow.values import Encoded, Padded, SegmentLevel
from sixjars.model.backbones.backbone import MapShape
from sixjars.model.layers import WordEmbedding
from sixjars.model.visual import VisualInput

from .packing import JUNK, Documents, documents_of, repacked, widths_of

VOCABULARY = 12
LENGTHS = (4, 1, 3)
ROWS = ([5, 6, 7, 8], [9], [4, 10, 11])
DOCUMENTS: Documents = [[[5, 6], [7], [8, 4, 10]], [[9]], [[4, 10], [11]]]
TARGETS = ([8, 5, 2], [4, 9, 6, 11, 2], [2])
PIXELS, CELLS = 8, 4
"""Of each side of an image; and the cells that the two halvings of the small backbone leave."""


def words(*, size: int = 5, frozen: bool = False) -> WordEmbedding:
    """Embeddings of the small vocabulary; `frozen` ones have some vectors and learn the rest."""
    if not frozen:
        return WordEmbedding(vocabulary=VOCABULARY, size=size, dropout=0.2)
    known = torch.tensor([5, 6, 9])
    return WordEmbedding(
        vocabulary=VOCABULARY, size=size, frozen=True, vectors=(known, torch.randn(3, size))
    )


def learning(train_from: str | None = None) -> VisualInput:
    """A small backbone that learns from pixels."""
    return VisualInput(
        pixels=PIXELS, widths=(4, 6), frozen=train_from is None, train_from=train_from
    )


def features() -> VisualInput:
    """Cells and vectors that a frozen backbone computed."""
    return VisualInput(pixels=32, name="efficientnet_lite0")


def vectors() -> VisualInput:
    """Vectors alone."""
    return VisualInput(pixels=32, name="efficientnet_lite0", cells=False)


def given() -> VisualInput:
    """Regions or frames whose features the data has, any number of them."""
    return VisualInput(pixels=0, feature_shape=FeatureShape(5, (None,)))


def texts() -> Padded:
    """Ragged rows of words, junk behind them."""
    return stretched(Padded.of(list(ROWS)), 0)


def other_texts() -> Padded:
    """Three texts of other lengths, for a second input."""
    return Padded.of([[6, 9], [5, 6, 7], [11]])


def documents(*widths: int) -> Padded:
    """Ragged rows of ragged segments in rectangles of these widths, junk behind them."""
    return repacked(DOCUMENTS, widths)


def frames(visual: VisualInput, lengths: tuple[int, ...] = LENGTHS) -> Padded:
    """Ragged videos as a visual input takes them."""
    learns = visual.backbone is not None
    return ragged(
        3 * visual.pixels**2 if learns else numbers_of(visual.shape), pixels=learns, lengths=lengths
    )


def numbers_of(shape: MapShape) -> int:
    """Of the maps and the vector of a frame together."""
    return shape.channels * shape.height * shape.width + shape.vector


def images(visual: VisualInput) -> Padded:
    """Three images, of one frame each."""
    return frames(visual, lengths=(1, 1, 1))


def ragged(numbers: int, *, pixels: bool, lengths: tuple[int, ...] = LENGTHS) -> Padded:
    """Ragged rows of pixels, features or points, and as good numbers in the padding."""
    mask_BF = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Padded(_numbers((*mask_BF.shape, numbers), pixels=pixels), mask_BF)


def _numbers(shape: tuple[int, ...], *, pixels: bool) -> Tensor:
    """Of pixels, or of features as they are kept."""
    return torch.randint(0, 256, shape, dtype=torch.uint8) if pixels else torch.randn(shape).half()


def stretched(padded: Padded, by: int) -> Padded:
    """The same rows with more padding, filled with what could be real; in segments too."""
    if padded.segments is not None:
        wider = tuple(width + 1 for width in widths_of(padded))
        segments = padded.segments.segment_index.shape[1] + by
        return repacked(
            documents_of(padded), wider, positions=padded.mask.shape[1] + by, segments=segments
        )
    mask_BS = nn.functional.pad(padded.mask, (0, by))
    if padded.values.dim() == 2:
        ids_BS = nn.functional.pad(padded.values, (0, by))
        return Padded(ids_BS.masked_fill(~mask_BS, JUNK), mask_BS)
    values_BFN = nn.functional.pad(padded.values, (0, 0, 0, by))
    junk_BFN = _numbers(tuple(values_BFN.shape), pixels=values_BFN.dtype == torch.uint8)
    return Padded(torch.where(mask_BS.unsqueeze(-1), values_BFN, junk_BFN), mask_BS)


def only(padded: Padded, row: int) -> Padded:
    """One row without the others and without padding."""
    if padded.segments is not None:
        return repacked([documents_of(padded)[row]], widths_of(padded))
    length = int(padded.mask[row].sum())
    return Padded(padded.values[row : row + 1, :length], padded.mask[row : row + 1, :length])


def picked(padded: Padded, rows: Sequence[int]) -> Padded:
    """Some rows, with as much padding as before."""
    if padded.segments is None:
        return padded.pick(torch.tensor(rows))
    found, (_, positions) = documents_of(padded), padded.mask.shape
    chosen = [found[row] for row in rows]
    segments = padded.segments.segment_index.shape[1]
    return repacked(chosen, widths_of(padded), positions=positions, segments=segments)


def without(padded: Padded, row: int) -> Padded:
    """The same, with nothing but padding in one row."""
    if padded.segments is not None:
        found = documents_of(padded)
        found[row] = []
        return repacked(found, widths_of(padded), positions=padded.mask.shape[1])
    return Padded(padded.values, padded.mask & (torch.arange(padded.rows) != row).unsqueeze(-1))


def encoded(
    size: int, lengths: tuple[int, ...] = LENGTHS, *, summary: int | None = None, segment: int = 0
) -> Encoded:
    """What an encoder might have returned, as leaves that take gradients; zeros where padded."""
    mask_BS = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    memory_BSD = (torch.randn(*mask_BS.shape, size) * mask_BS.unsqueeze(-1)).requires_grad_()
    summary_BK = torch.randn(len(lengths), summary or size, requires_grad=True)
    return Encoded(
        memory_BSD, mask_BS, summary_BK, segments=_level(mask_BS, segment) if segment else None
    )


def _level(mask_BS: Tensor, size: int) -> SegmentLevel:
    """An upper level with segments of two positions, the first of which weighs more."""
    of_BS = (torch.arange(mask_BS.shape[1]) // 2).expand_as(mask_BS) * mask_BS
    first_BS = torch.arange(mask_BS.shape[1]).expand_as(mask_BS) % 2 == 0
    mask_BP = mask_BS[:, ::2]
    memory_BPU = (torch.randn(*mask_BP.shape, size) * mask_BP.unsqueeze(-1)).requires_grad_()
    alone_BS = first_BS & ~nn.functional.pad(mask_BS, (0, 1))[:, 1:]
    within_BS = torch.where(alone_BS, 1.0, torch.where(first_BS, 0.75, 0.25)) * mask_BS
    return SegmentLevel(memory_BPU, mask_BP, of_BS, within_BS)


def stretched_source(source: Encoded, by: int) -> Encoded:
    """The same with more positions and segments, and junk in the memory wherever it is padded."""
    memory_BSD, mask_BS = _stretched(source.memory, source.mask, by)
    level = source.segments
    if level is not None:
        within_BS = None if level.weights is None else nn.functional.pad(level.weights, (0, by))
        of_BS = nn.functional.pad(level.segment_of, (0, by))
        level = SegmentLevel(*_stretched(level.memory, level.mask, by), of_BS, within_BS)
    return Encoded(
        memory_BSD, mask_BS, source.summary.detach().clone().requires_grad_(), segments=level
    )


def _stretched(memory: Tensor, mask: Tensor, by: int) -> tuple[Tensor, Tensor]:
    mask_BS = nn.functional.pad(mask, (0, by))
    memory_BSD = nn.functional.pad(memory.detach(), (0, 0, 0, by))
    junk_BSD = torch.randn_like(memory_BSD)
    return torch.where(mask_BS.unsqueeze(-1), memory_BSD, junk_BSD).requires_grad_(), mask_BS


def alone(source: Encoded, row: int) -> Encoded:
    """One row without the others and without padding."""
    length = int(source.mask[row].sum())
    own = source.pick(torch.tensor([row]))
    level = own.segments
    if level is not None:
        count = int(level.mask.sum())
        within = None if level.weights is None else level.weights[:, :length]
        level = SegmentLevel(
            level.memory[:, :count], level.mask[:, :count], level.segment_of[:, :length], within
        )
    return Encoded(own.memory[:, :length], own.mask[:, :length], own.summary, segments=level)


def unweighed(source: Encoded) -> Encoded:
    """The same from an encoder that has no weights of the positions in segments."""
    assert source.segments is not None
    return replace(source, segments=replace(source.segments, weights=None))
