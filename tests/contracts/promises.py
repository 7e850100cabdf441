"""What the contract checks share: ragged examples, junk padding, gradients, saving, exporting.

Dims: B batch, S source positions, T target positions, D source features.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.export import Dim, export

from sixjars.flow import Encoded, Padded, Part
from sixjars.inspection.explain import letter_of
from sixjars.learning.checkpoints import load_weights, save_tensors
from sixjars.model.layers import WordEmbedding

P = TypeVar("P", bound=nn.Module)

VOCABULARY = 12
JUNK = 7
"""A real word that stands in the padding, where nobody may see it."""
ROWS = ([5, 6, 7, 8], [9], [4, 10, 11])
TARGETS = ([8, 5, 2], [4, 9, 6, 11, 2], [2])


def words(*, size: int = 5, frozen: bool = False) -> WordEmbedding:
    """Embeddings of the small vocabulary; `frozen` ones know some words and learn the rest."""
    if not frozen:
        return WordEmbedding(vocabulary=VOCABULARY, size=size, dropout=0.2)
    known = torch.tensor([5, 6, 9])
    return WordEmbedding(vocabulary=VOCABULARY, size=size, tuned=False, vectors=(known, torch.randn(3, size)))


def stretched(padded: Padded, by: int) -> Padded:
    """The same rows with more padding, all padding filled with a real word."""
    values = nn.functional.pad(padded.values, (0, by))
    mask = nn.functional.pad(padded.mask, (0, by))
    return Padded(values.masked_fill(~mask, JUNK), mask)


def encoded(size: int, lengths: tuple[int, ...] = (4, 1, 3)) -> Encoded:
    """What an encoder might have said, as leaves that take gradients; zeros where padded."""
    mask_BS = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    memory_BSD = (torch.randn(*mask_BS.shape, size) * mask_BS.unsqueeze(-1)).requires_grad_()
    return Encoded(memory_BSD, mask_BS, torch.randn(len(lengths), size, requires_grad=True))


def stretched_source(source: Encoded, by: int) -> Encoded:
    """The same with more positions, and junk in the memory wherever it is padded."""
    mask_BS = nn.functional.pad(source.mask, (0, by))
    memory_BSD = nn.functional.pad(source.memory.detach(), (0, 0, 0, by))
    junk_BSD = torch.randn_like(memory_BSD)
    memory_BSD = torch.where(mask_BS.unsqueeze(-1), memory_BSD, junk_BSD).requires_grad_()
    return Encoded(memory_BSD, mask_BS, source.summary.detach().clone().requires_grad_())


def alone(source: Encoded, row: int) -> Encoded:
    """One row without the others and without padding."""
    length = int(source.mask[row].sum())
    own = source.pick(torch.tensor([row]))
    return Encoded(own.memory[:, :length], own.mask[:, :length], own.summary)


def gradients(part: nn.Module, worth: Tensor) -> dict[str, Tensor]:
    """The gradient of a number with respect to every weight of a part; zeros where none arrives."""
    part.zero_grad()
    worth.backward()  # type: ignore[no-untyped-call]
    return {
        name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
        for name, weight in part.named_parameters()
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
    """A fresh part of the same make that has forgotten everything, into which the weights were loaded from disk."""
    other = make().eval()
    with torch.no_grad():
        for tensor in (*other.parameters(), *other.buffers()):
            tensor.zero_()
    save_tensors(folder / "weights.safetensors", part.state_dict(), {})
    load_weights(other, folder / "weights.safetensors")
    return other


def nameless(part: Part) -> list[str]:
    """The weights of a part (those of a bridge within it aside) that have no letter."""
    names = [name for name, _ in part.named_parameters() if not name.startswith("bridge.")]
    return [name for name in names if letter_of(part, name) == "–"]


def exported(part: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[..., tuple[Tensor, ...]]:
    """The part, whose `forward` takes any number of tensors, as `torch.export` sees it: for any number of rows."""
    rows = Dim("rows", max=4096)
    program = export(part, inputs, dynamic_shapes=(tuple({0: rows} for _ in inputs),))
    module: Callable[..., tuple[Tensor, ...]] = program.module()
    return module
