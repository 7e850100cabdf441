"""Jar 4: what training minimizes.

Dims: B batch, T target positions or labels of a row, S source positions, V vocabulary or labels of
      the list, N batch times target positions, H state features.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.values import Batch, DecoderOutput, LinearLogits, Padded
from sixjars.model.build import Network
from sixjars.model.layers import wide
from sixjars.recipe.sections import LossSettings
from sixjars_runtime.errors import RecipeError, unknown
from sixjars_runtime.special_tokens import UNK

TINY = 1e-9


def token_loss(logits: Tensor, target: Padded, *, smoothing: float = 0.0) -> Tensor:
    """-log P(y_t = ℓ_t | ...) for each token of each row, zero where padded, (B, T).

    With label smoothing ε the truth is (1 - ε) at the right token and ε / V everywhere (Szegedy et
    al. 2016, https://arxiv.org/abs/1512.00567, section 7).
    """
    flat_NV, truth_N = logits.flatten(0, 1), target.values.flatten()
    loss_N = F.cross_entropy(flat_NV, truth_N, reduction="none", label_smoothing=smoothing)
    return loss_N.view_as(target.values) * target.mask


def labels_loss(logits: Tensor, target: Padded) -> Tensor:
    """-Σ_c [y_c log σ(z_c) + (1 - y_c) log(1 - σ(z_c))] of each row, (B,).

    `logits` are (B, V), the labels of each row (B, T); each label is a binary decision of its own
    (Nam et al. 2014, https://arxiv.org/abs/1312.5419, section 3.2).

    >>> labels_loss(torch.zeros(1, 3), Padded.of([[0, 2]])) / torch.log(torch.tensor(2.0))
    tensor([3.])
    """
    real_BT = target.mask.to(logits.dtype)
    truth_BV = torch.zeros_like(logits).scatter_reduce(1, target.values, real_BT, "amax")
    return F.binary_cross_entropy_with_logits(logits, truth_BV, reduction="none").sum(-1)


def truth_loss(output: DecoderOutput, target: Padded, *, smoothing: float = 0.0) -> Tensor:
    """-log P of the truth: for each token (B, T), or for the labels of each row (B, 1)."""
    logits = wide(output.logits)
    if output.multi_label:
        return labels_loss(logits.squeeze(1), target).unsqueeze(1)
    return token_loss(logits, target, smoothing=smoothing)


def guided_loss(weights: Tensor, truth: Tensor) -> Tensor:
    """L(α_true, α_pred) = -Σ_j α_true_jt log α_pred_jt, (B, T); zero without a known alignment.

    Guided attention: Chen et al. 2016 (https://arxiv.org/abs/1607.01628), equation 6, with the
    alignment of each target word spread evenly over its source words.
    """
    return -(truth * (weights + TINY).log()).sum(-1)


def coverage_loss(weights: Tensor, mask: Tensor) -> Tensor:
    """Σ_j min(α_jt, Σ_{τ<t} α_jτ) for each step, zero where padded: (B, T, S), (B, T) -> (B, T).

    See, Liu & Manning 2017 (https://arxiv.org/abs/1704.04368), equation 12. There the sum of
    earlier weights is also an input of the attention; here it is only in the loss.

    >>> twice = torch.tensor([[[1.0, 0.0], [0.75, 0.25]]])
    >>> coverage_loss(twice, torch.ones(1, 2, dtype=torch.bool))
    tensor([[0.0000, 0.7500]])
    """
    earlier_BTS = weights.cumsum(dim=1) - weights
    return torch.minimum(weights, earlier_BTS).sum(-1) * mask


def class_weights(
    settings: LossSettings, counts: Mapping[str, int], name: Callable[[str], str] = str
) -> Tensor:
    """The weight of each label, (V,), from how often it is in the training set.

    `name` gives the spelling in `counts` of a label in the settings, where case does not count.
    `balanced` is N / (C n_ℓ), as in King & Zeng 2001
    (https://doi.org/10.1093/oxfordjournals.pan.a004868): the mean weight of the examples is 1.

    >>> class_weights(LossSettings(class_weights="balanced"), {"a": 6, "b": 2})
    tensor([0.6667, 2.0000])
    """
    if settings.class_weights == "balanced":
        total = sum(counts.values())
        return torch.tensor([total / (len(counts) * max(count, 1)) for count in counts.values()])
    chosen: dict[str, float] = {}
    for label, weight in (settings.class_weights or {}).items():
        spelled = name(label)
        if spelled not in counts:
            raise RecipeError([unknown("loss.class_weights: label", label, list(counts))])
        if spelled in chosen:
            fault = f"loss.class_weights: {spelled!r} is there twice, for its case does not count."
            raise RecipeError([fault])
        chosen[spelled] = weight
    return torch.tensor([chosen.get(label, 1.0) for label in counts])


def without_words(values: Padded, share: float) -> Padded:
    """Word dropout: a random share of the tokens becomes `<unk>`, so that its vector is learned.

    Iyyer et al. 2015 (https://aclanthology.org/P15-1162, section 3.2) leave such words out; here a
    word that is not known keeps its place, as it does in prediction.
    """
    dropped = torch.rand(values.values.shape, device=values.values.device) < share
    return replace(values, values=values.values.masked_fill(dropped & values.mask, UNK))


@final
class SealedBatch:
    """A batch that Fabric passes on: it maps over dataclasses, and refuses frozen ones."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch


@final
class Objective(nn.Module):
    """A network and its loss, so that a training step is one call of one module."""

    def __init__(
        self,
        network: Network,
        settings: LossSettings,
        *,
        weights: Tensor | None = None,
        word_dropout: Mapping[str, float] | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.settings = settings
        self.word_dropout = dict(word_dropout or {})
        self.weights: Tensor | None
        self.register_buffer("weights", weights, persistent=False)

    def forward(self, sealed: SealedBatch) -> Tensor:
        """(2,): the loss summed over the tokens of the batch, and the plain -Σ log P within it."""
        batch = sealed.batch
        inputs = dict(batch.inputs)
        for name, share in self.word_dropout.items() if self.training else ():
            inputs[name] = without_words(inputs[name], share)
        output: DecoderOutput = self.network(inputs, batch.target)
        total, plain = self._of_truth(output, batch.target)
        return torch.stack([total + self._of_attention(output, batch), plain])

    def _of_truth(self, output: DecoderOutput, target: Padded) -> tuple[Tensor, Tensor]:
        """The loss of all tokens as it is minimized, and the plain -Σ log P."""
        if self.weights is None and isinstance(output.scores, LinearLogits):
            of_tokens = self.network.backend.output_loss
            return of_tokens(output.scores, target.values, target.mask, self.settings.smoothing)
        loss_BT = truth_loss(output, target, smoothing=self.settings.smoothing)
        total = (loss_BT if self.weights is None else loss_BT * self.weights[target.values]).sum()
        if self.settings.smoothing or self.weights is not None:
            return total, truth_loss(output.mapped(Tensor.detach), target).sum()
        return total, total.detach()

    def _of_attention(self, output: DecoderOutput, batch: Batch) -> Tensor | float:
        """The losses of the attention weights: the guided one, and that of coverage."""
        guide = self.settings.guide if batch.alignment is not None else 0.0
        if not guide and not self.settings.coverage:
            return 0.0
        if output.weights is None:
            name = "guide" if guide else "coverage"
            raise RecipeError([f"loss.{name} needs a bridge with attention."])
        cost = torch.zeros((), device=output.device)
        weights = wide(output.weights)
        if guide and batch.alignment is not None:
            cost = cost + guide * guided_loss(weights, batch.alignment).sum()
        if self.settings.coverage:
            cost = cost + self.settings.coverage * coverage_loss(weights, batch.target.mask).sum()
        return cost
