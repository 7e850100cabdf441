"""What the contract checks share: ragged examples, junk padding, gradients, saving, exporting.

Dims: B batch, S source positions, T target positions, D source features, K summary features, F frames,
      N numbers of a frame, P parts of a row, U features of a part.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from sixjars.flow.values import Encoded, Padded, Part, SegmentLevel
from sixjars.inspection.explanation import letter_of
from sixjars.learning.checkpoints import load_weights, save_tensors
from sixjars.model.layers import WordEmbedding

from .packing import JUNK, Documents, parts_of, repacked, widths_of

P = TypeVar("P", bound=nn.Module)

VOCABULARY = 12
LENGTHS = (4, 1, 3)
ROWS = ([5, 6, 7, 8], [9], [4, 10, 11])
DOCUMENTS: Documents = [[[5, 6], [7], [8, 4, 10]], [[9]], [[4, 10], [11]]]
TARGETS = ([8, 5, 2], [4, 9, 6, 11, 2], [2])


def words(*, size: int = 5, frozen: bool = False) -> WordEmbedding:
    """Embeddings of the small vocabulary; `frozen` ones know some words and learn the rest."""
    if not frozen:
        return WordEmbedding(vocabulary=VOCABULARY, size=size, dropout=0.2)
    known = torch.tensor([5, 6, 9])
    return WordEmbedding(vocabulary=VOCABULARY, size=size, frozen=True, vectors=(known, torch.randn(3, size)))


def texts() -> Padded:
    """Ragged rows of words, junk behind them."""
    return stretched(Padded.of(list(ROWS)), 0)


def documents(*widths: int) -> Padded:
    """Ragged rows of ragged parts in rectangles of these widths, junk behind them."""
    return repacked(DOCUMENTS, widths)


def films(numbers: int, *, pixels: bool, lengths: tuple[int, ...] = LENGTHS) -> Padded:
    """Ragged rows of frames, pixels or features, and numbers as good as any other in the padding."""
    mask_BF = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return Padded(_numbers((*mask_BF.shape, numbers), pixels=pixels), mask_BF)


def _numbers(shape: tuple[int, ...], *, pixels: bool) -> Tensor:
    """Of pixels, or of features as they are kept."""
    return torch.randint(0, 256, shape, dtype=torch.uint8) if pixels else torch.randn(shape).half()


def stretched(padded: Padded, by: int) -> Padded:
    """The same rows with more padding, all of it filled with what could be real; also within and between parts."""
    if padded.parts is not None:
        wider = tuple(width + 1 for width in widths_of(padded))
        parts = padded.parts.home.shape[1] + by
        return repacked(parts_of(padded), wider, positions=padded.mask.shape[1] + by, parts=parts)
    mask_BS = nn.functional.pad(padded.mask, (0, by))
    if padded.values.dim() == 2:
        ids_BS = nn.functional.pad(padded.values, (0, by))
        return Padded(ids_BS.masked_fill(~mask_BS, JUNK), mask_BS)
    values_BFN = nn.functional.pad(padded.values, (0, 0, 0, by))
    junk_BFN = _numbers(tuple(values_BFN.shape), pixels=values_BFN.dtype == torch.uint8)
    return Padded(torch.where(mask_BS.unsqueeze(-1), values_BFN, junk_BFN), mask_BS)


def only(padded: Padded, row: int) -> Padded:
    """One row without the others and without padding."""
    if padded.parts is not None:
        return repacked([parts_of(padded)[row]], widths_of(padded))
    length = int(padded.mask[row].sum())
    return Padded(padded.values[row : row + 1, :length], padded.mask[row : row + 1, :length])


def picked(padded: Padded, rows: Sequence[int]) -> Padded:
    """Some rows, with as much padding as before."""
    if padded.parts is None:
        return padded.pick(torch.tensor(rows))
    parts, (_, positions) = parts_of(padded), padded.mask.shape
    chosen = [parts[row] for row in rows]
    return repacked(chosen, widths_of(padded), positions=positions, parts=padded.parts.home.shape[1])


def without(padded: Padded, row: int) -> Padded:
    """The same, with nothing but padding in one row."""
    if padded.parts is not None:
        parts = parts_of(padded)
        parts[row] = []
        return repacked(parts, widths_of(padded), positions=padded.mask.shape[1])
    return Padded(padded.values, padded.mask & (torch.arange(padded.rows) != row).unsqueeze(-1))


def encoded(size: int, lengths: tuple[int, ...] = LENGTHS, *, summary: int | None = None, above: int = 0) -> Encoded:
    """What an encoder might have said, as leaves that take gradients; zeros where padded."""
    mask_BS = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    memory_BSD = (torch.randn(*mask_BS.shape, size) * mask_BS.unsqueeze(-1)).requires_grad_()
    summary_BK = torch.randn(len(lengths), summary or size, requires_grad=True)
    return Encoded(memory_BSD, mask_BS, summary_BK, above=_level(mask_BS, above) if above else None)


def _level(mask_BS: Tensor, size: int) -> SegmentLevel:
    """A level above with parts of two positions, of which the first weighs more; the last part may be short."""
    of_BS = (torch.arange(mask_BS.shape[1]) // 2).expand_as(mask_BS) * mask_BS
    first_BS = torch.arange(mask_BS.shape[1]).expand_as(mask_BS) % 2 == 0
    mask_BP = mask_BS[:, ::2]
    memory_BPU = (torch.randn(*mask_BP.shape, size) * mask_BP.unsqueeze(-1)).requires_grad_()
    alone_BS = first_BS & ~nn.functional.pad(mask_BS, (0, 1))[:, 1:]
    within_BS = torch.where(alone_BS, 1.0, torch.where(first_BS, 0.75, 0.25)) * mask_BS
    return SegmentLevel(memory_BPU, mask_BP, of_BS, within_BS)


def stretched_source(source: Encoded, by: int) -> Encoded:
    """The same with more positions and parts, and junk in the memory wherever it is padded."""
    memory_BSD, mask_BS = _stretched(source.memory, source.mask, by)
    above = source.above
    if above is not None:
        within_BS = None if above.within is None else nn.functional.pad(above.within, (0, by))
        above = SegmentLevel(*_stretched(above.memory, above.mask, by), nn.functional.pad(above.of, (0, by)), within_BS)
    return Encoded(memory_BSD, mask_BS, source.summary.detach().clone().requires_grad_(), above=above)


def _stretched(memory: Tensor, mask: Tensor, by: int) -> tuple[Tensor, Tensor]:
    mask_BS = nn.functional.pad(mask, (0, by))
    memory_BSD = nn.functional.pad(memory.detach(), (0, 0, 0, by))
    junk_BSD = torch.randn_like(memory_BSD)
    return torch.where(mask_BS.unsqueeze(-1), memory_BSD, junk_BSD).requires_grad_(), mask_BS


def alone(source: Encoded, row: int) -> Encoded:
    """One row without the others and without padding."""
    length = int(source.mask[row].sum())
    own = source.pick(torch.tensor([row]))
    above = own.above
    if above is not None:
        parts = int(above.mask.sum())
        within = None if above.within is None else above.within[:, :length]
        above = SegmentLevel(above.memory[:, :parts], above.mask[:, :parts], above.of[:, :length], within)
    return Encoded(own.memory[:, :length], own.mask[:, :length], own.summary, above=above)


def unweighed(source: Encoded) -> Encoded:
    """The same from an encoder that did not weigh the positions of parts."""
    assert source.above is not None
    return replace(source, above=replace(source.above, within=None))


def gradients(part: nn.Module, worth: Tensor) -> dict[str, Tensor]:
    """The gradient of a number with respect to every weight of a part that may learn; zeros where none arrives."""
    part.zero_grad()
    worth.backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in part.named_parameters()
        if weight.requires_grad
    }


def weighed(*tensors: Tensor) -> Tensor:
    """A number that depends on every entry, on each differently."""
    return torch.stack(
        [(tensor * torch.linspace(0.5, 1.5, tensor.numel()).view_as(tensor)).sum() for tensor in tensors]
    ).sum()


def unlearned(found: Mapping[str, Tensor]) -> list[str]:
    """The weights that no gradient reaches."""
    return [name for name, gradient in found.items() if not gradient.any()]


def reloaded(part: P, make: Callable[[], P], folder: Path) -> P:
    """A fresh part of the same make that has forgotten all that is kept, into which it was loaded from disk."""
    other = make().eval()
    with torch.no_grad():
        for tensor in other.state_dict().values():
            tensor.zero_()
    save_tensors(folder / "weights.safetensors", part.state_dict(), {})
    load_weights(other, folder / "weights.safetensors")
    return other


def held(part: nn.Module) -> dict[str, Any]:
    """All that a part and the parts inside it hold: which things, and of tensors how often they were written to."""
    return {
        f"{path}.{name}": [(id(thing), getattr(thing, "_version", 0)) for thing in _things(value)]
        for path, module in part.named_modules()
        for name, value in vars(module).items()
    }


def _things(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list | tuple):
        yield from value
    else:
        yield value


def nameless(part: Part) -> list[str]:
    """The weights of a part (those of a bridge within it aside) that have no letter."""
    names = [name for name, _ in part.named_parameters() if not name.startswith("bridge.")]
    return [name for name in names if letter_of(part, name) == "–"]


def exported(
    part: nn.Module, inputs: tuple[Tensor, ...], *, counted: Sequence[str] | None = None
) -> Callable[..., tuple[Tensor, ...]]:
    """The part, whose `forward` takes any number of tensors, as `torch.export` sees it: for any number of rows.

    `counted` names what each tensor has any number of, where that is not the rows for all of them.
    """
    dims = {name: Dim(name, max=4096) for name in counted or ["rows"]}
    shapes = tuple({0: dims[name]} for name in counted or ["rows"] * len(inputs))
    program = export(part, inputs, dynamic_shapes=(shapes,))
    module: Callable[..., tuple[Tensor, ...]] = program.module()
    return module
