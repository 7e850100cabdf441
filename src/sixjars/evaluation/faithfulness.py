r"""Whether attention weights order the input as erasing it and as gradients do.

Dims: T steps of an output, S source positions, N copies of one example, E embedding features,
D source features.

For the output y of an example, and the probability of each of its tokens given those before it:

.. math:: f_{tj} = \log P(y_t \mid x) - \log P(y_t \mid x \text{ without } j), \quad
          g_{tj} = \lVert \partial \log P(y_t \mid x) / \partial e_j \rVert, \quad
          \tau(\alpha_t, f_t), \; \tau(\alpha_t, g_t)

Such a comparison by Kendall's τ, with gradients and by leaving one word out, is that of Jain &
Wallace 2019 (https://aclanthology.org/N19-1357/), for classifiers. Where we differ: they measure
how far the distribution over all outputs moves, we how far the log probability of the output falls;
and their gradient is that of the one-hot vector of a word, ours the norm at its embedding e_j.

A token is erased by `<unk>` in its place and by masking its position out of attention; its gradient
is that at its embedding. The cells of an image, frames and points are erased in the memory alone,
and their gradient is that at h_j.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import torch
from torch import Tensor, nn

from sixjars.data.batches import Batches
from sixjars.data.dataset import Dataset
from sixjars.evaluation.agreement import ExampleAgreement, agreement
from sixjars.evaluation.score import encoded_batches, hypotheses_of
from sixjars.flow.values import Encoded, Padded
from sixjars.loss import truth_loss
from sixjars.model.build import Network
from sixjars.model.layers import WordEmbedding
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.special_tokens import STOP, UNK

ROUNDING: Final = 6
"""Digits of a log probability behind the point; what differs by less is equal."""
IMPOSSIBLE: Final = -1e4
"""The log probability of what cannot be output, such as pointing at a position that is erased."""
NUMBERS: Final = 2**24
"""Logits, or numbers of memory or attention, at a time: this limits the copies of an example."""
SCORED: Final = 64
"""Numbers that attention needs for each weight, about."""


@final
class ForcedCopies:
    """One example many times over, with a forced output: a copy for each erasure or each step."""

    def __init__(
        self, network: Network, batches: Batches, row: int, output: Sequence[int], *, tokens: bool
    ) -> None:
        self.network = network
        self.batches = batches
        self.row = row
        self.target = Padded.of([list(output)]).to(network.device)
        self.name = network.encoder.positions_of()
        with torch.no_grad():
            self.encoded = network.encode(self._inputs(1))
            taught = network.decoder.teach(self.encoded, self.target)
            self.log_T = self._log_probabilities(self.encoded)[0]
        assert taught.weights is not None
        self.steps = len(self.log_T)
        self.positions = int(self.encoded.mask.sum())
        self.weights_TS = taught.weights[0, : self.steps, : self.positions]
        sizes = taught.logits.numel(), self.encoded.memory.numel(), SCORED * self.weights_TS.numel()
        self.at_once = max(1, NUMBERS // max(sizes))
        width = self.encoded.mask.shape[1]
        self.tokens = tokens and self._inputs(1)[self.name].values.shape[1:] == (width,)
        """Whether the positions are tokens of the input."""

    def falls(self) -> Tensor:
        """How far the log probability of each token falls where each position is erased, (T, S).

        It may be negative.
        """
        columns = []
        with torch.no_grad():
            for places_N in self._portions(self.positions):
                erased_TN = self._log_probabilities(self._erased(places_N)).t()
                columns.append(self.log_T.unsqueeze(1) - erased_TN)
        return torch.cat(columns, dim=1).double().round(decimals=ROUNDING)

    def gradients(self) -> Tensor:
        """The norm of the gradient of each token's log probability at each position, (T, S)."""
        rows = []
        # the recurrences of cuDNN have no gradients in evaluation mode
        without_cudnn = torch.backends.cudnn.flags(enabled=False)
        with torch.enable_grad(), without_cudnn:
            for steps_N in self._portions(self.steps):
                encoded, leaves, index_NS = self._differentiable(len(steps_N))
                log_NT = self._log_probabilities(encoded)
                total = log_NT.gather(1, steps_N.unsqueeze(1)).sum()
                gradients = torch.autograd.grad(total, leaves)
                norms = torch.cat([gradient.norm(dim=-1).flatten() for gradient in gradients])
                rows.append(norms[index_NS][:, : self.positions].double())
        return torch.cat(rows)

    def _portions(self, count: int) -> Sequence[Tensor]:
        """The numbers below a count, in portions of as many copies as fit into memory."""
        return torch.split(torch.arange(count, device=self.network.device), self.at_once)

    def _inputs(self, count: int) -> dict[str, Padded]:
        """So many copies of the inputs, read again, for segments are packed across rows."""
        batch = self.batches.collate(torch.full((count,), self.row)).to(self.network.device)
        return dict(batch.inputs)

    def _log_probabilities(self, encoded: Encoded) -> Tensor:
        """The log probability of each token, (N, T); of labels chosen together, (N, 1)."""
        target = self.target.repeat(encoded.rows)
        loss = truth_loss(self.network.decoder.teach(encoded, target), target)
        return -loss.clamp(max=-IMPOSSIBLE)

    def _erased(self, places_N: Tensor) -> Encoded:
        """A copy for each of these positions, without it."""
        count = len(places_N)
        places_S = torch.arange(self.encoded.mask.shape[1], device=places_N.device)
        gone_NS = places_S == places_N.unsqueeze(1)
        if self.tokens:
            inputs = self._inputs(count)
            source = inputs[self.name]
            inputs[self.name] = replace(source, values=source.values.masked_fill(gone_NS, UNK))
            encoded = self.network.encode(inputs)
        else:
            encoded = self.encoded.repeat(count)
        memory = encoded.memory.masked_fill(gone_NS.unsqueeze(-1), 0.0)
        return replace(encoded, memory=memory, mask=encoded.mask & ~gone_NS)

    def _differentiable(self, count: int) -> tuple[Encoded, list[Tensor], Tensor]:
        """Copies, the tensors to differentiate by, and where in these each position is, (N, S)."""
        numbers = torch.arange(count * self.encoded.mask.shape[1], device=self.network.device)
        every_NS = numbers.view(count, -1)
        if self.tokens:
            inputs = self._inputs(count)
            source = inputs[self.name]
            with _embedded(self.network.encoder) as calls:
                encoded = self.network.encode(inputs)
            leaves = [leaf for ids, leaf in calls if ids is source.values]
            if leaves:
                return encoded, leaves, every_NS
            if calls and source.segments is not None:  # one call for each pack
                return encoded, [leaf for _, leaf in calls], source.segments.position_index
        encoded = self.encoded.repeat(count)
        leaf_NSD = encoded.memory.clone().requires_grad_()
        return replace(encoded, memory=leaf_NSD), [leaf_NSD], every_NS


@contextmanager
def _embedded(encoder: nn.Module) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """The ids and vectors of every call of an embedding meanwhile, the vectors as leaves."""
    calls: list[tuple[Tensor, Tensor]] = []

    def cut(_: nn.Module, ids: tuple[Tensor], vectors: Tensor) -> Tensor:
        calls.append((ids[0], vectors.detach().requires_grad_()))
        return calls[-1][1]

    embeddings = [module for module in encoder.modules() if isinstance(module, WordEmbedding)]
    hooks = [embedding.register_forward_hook(cut) for embedding in embeddings]
    try:
        yield calls
    finally:
        for hook in hooks:
            hook.remove()


@final
@dataclass(frozen=True)
class CheckedExample:
    """One example; an agreement is missing where no step has an order."""

    erasure: ExampleAgreement | None
    gradient: ExampleAgreement | None


def falls_of(network: Network, dataset: Dataset, row: int) -> list[float]:
    """How far a row's log probability of its reference falls where each position is erased.

    The sum over all tokens: what a position did for the output, by attention or otherwise.
    """
    batches = dataset.batches()
    tokens = dataset.fields.inputs[network.encoder.positions_of()].holds == "tokens"
    copies = ForcedCopies(network, batches, row, _reference(batches, row), tokens=tokens)
    return copies.falls().sum(0).tolist()


def checked_examples(
    network: Network,
    dataset: Dataset,
    rows: Sequence[int],
    *,
    search: SearchSettings | None,
    examples: int,
) -> Iterator[CheckedExample]:
    """Check rows, so many `examples` at a time; without `search`, of their references."""
    batches = dataset.batches()
    tokens = dataset.fields.inputs[network.encoder.positions_of()].holds == "tokens"
    for block in (rows[at : at + examples] for at in range(0, len(rows), examples)):
        outputs = dict(_outputs(network, batches, block, search))
        for row in block:
            if not outputs[row]:
                yield CheckedExample(None, None)
                continue
            random = np.random.default_rng(row)
            copies = ForcedCopies(network, batches, row, outputs[row], tokens=tokens)
            by_erasure = agreement(copies.weights_TS, copies.falls(), random)
            by_gradient = agreement(copies.weights_TS, copies.gradients(), random)
            yield CheckedExample(by_erasure, by_gradient)


def _reference(batches: Batches, row: int) -> list[int]:
    target = batches.collate(torch.tensor([row])).target
    return [int(token) for token in target.values[target.mask]]


def _outputs(
    network: Network, batches: Batches, rows: Sequence[int], search: SearchSettings | None
) -> Iterator[tuple[int, list[int]]]:
    """The ids of the output of each row, `<stop>` included where it was reached."""
    if search is None:
        yield from ((row, _reference(batches, row)) for row in rows)
        return
    for batch, encoded in encoded_batches(network, batches, examples=len(rows), rows=rows):
        numbers = batch.numbers.tolist()
        hypotheses = hypotheses_of(network, encoded, search, seeds=numbers, attention=False)
        for row, [best, *_] in zip(numbers, hypotheses, strict=True):
            ends = network.decoder.searches and best.finished
            yield row, [*best.tokens, *([STOP] if ends else [])]
