"""Jar 4: what training minimizes.

Dims: B batch, T target positions or labels of a row, S source positions, V vocabulary or labels of
      the list, N batch times target positions, H state features.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast, final

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.flow.values import Batch, DecoderOutput, LinearLogits, Padded
from sixjars.model.build import Network
from sixjars.model.fast.compiled import fits_loss, gradient, kernels_for
from sixjars.model.fast.steps import Factor
from sixjars.model.fast.unrolled import has_kernels
from sixjars.model.layers import by_onednn, computed_in, product, summed_rows, wide
from sixjars.model.processor import FEWEST_ONCE
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


CHUNK = {"cpu": 2**23}
"""Logits in memory at once, by the kind of device; 32 MB on a CPU, about the size of its cache."""
CHUNK_ELSEWHERE = 2**28


def gradient_of(
    logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The smoothed and plain loss, (N,) each, and the gradient; kernels overwrite the logits."""
    if has_kernels(logits):
        from sixjars.model.fast.output_kernels import fused_gradient

        return fused_gradient(logits, truth, factor, smoothing)
    kernels = kernels_for(logits)
    if kernels is not None and fits_loss(logits, truth, factor):
        return gradient(logits, truth, factor, smoothing, kernels)
    values = wide(logits)
    shares = torch.softmax(values, 1)
    total_N = values.amax(1) - shares.amax(1).log()  # the highest share is exp(highest - total)
    plain_N = total_N - values.gather(1, truth.unsqueeze(1)).squeeze(1)
    true_N1, loss_N = truth.unsqueeze(1), plain_N
    if smoothing:
        loss_N = torch.lerp(plain_N, total_N - values.mean(1), smoothing)
        shares.sub_(smoothing / values.shape[1])
    shares.scatter_add_(1, true_N1, torch.full_like(plain_N, smoothing - 1.0).unsqueeze(1))
    return loss_N * factor, plain_N, shares.mul_(factor.unsqueeze(1)).to(logits.dtype)


@final
class OutputLoss(torch.autograd.Function):
    r"""The output layer and the cross entropy in one, in chunks, to save memory.

        z = V_out s + b_out,   L = Σ_n f_n Σ_v p_nv (log Σ_u exp z_nu - z_nv),
        δz = f_n (softmax(z) - p)

    where p is 1 - ε at the true token and ε / V everywhere (label smoothing), and f_n the factor of
    a token. The loss is a sum, so its gradient is known up to one factor while it is computed: δz
    takes the place of z.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor,
        truth: Tensor,
        factor: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        """Both sums; the gradients are computed here and kept for the backward pass."""
        all_states = states
        real_N = _counted(factor)
        if real_N is not None:
            states, truth, factor = states[real_N], truth[real_N], factor[real_N]
        rows = max(CHUNK.get(states.device.type, CHUNK_ELSEWHERE) // len(weight), 1)
        loss, plain = torch.zeros_like(factor[:1]).sum(), torch.zeros_like(factor[:1]).sum()
        d_states, d_weight, d_bias = [], None, None
        learns = any(ctx.needs_input_grad)
        matrix = Factor(weight)
        with torch.autocast(states.device.type, enabled=False):
            for at in range(0, len(states), rows):
                chunk, true, factors = (each[at : at + rows] for each in (states, truth, factor))
                loss_N, plain_N, d_logits_NV = gradient_of(
                    matrix.times(chunk, bias=bias), true, factors, smoothing
                )
                loss = loss + loss_N.sum()
                plain = plain + (plain_N * (factors != 0.0)).sum()
                if learns:
                    d_states.append(product(d_logits_NV, weight.t()))
                    d_weight = _added_product(d_weight, d_logits_NV, chunk)
                    d_bias = _added(d_bias, summed_rows(d_logits_NV))
        if learns:
            d_all = torch.cat(d_states)
            if real_N is not None:
                d_all = torch.zeros_like(all_states).index_copy_(0, real_N, d_all)
            ctx.save_for_backward(d_all, d_weight, d_bias)
            ctx.dtypes = states.dtype, weight.dtype, bias.dtype
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_loss: Tensor, _: Tensor) -> Any:
        """The gradients times the gradient of the loss."""
        pairs = zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        return *((d_loss * gradient).to(dtype) for gradient, dtype in pairs), None, None, None


def _counted(factor: Tensor) -> Tensor | None:
    """The tokens that count, on a CPU and where some do not; a GPU would wait for their number."""
    if factor.device.type != "cpu":
        return None
    real_N = factor.nonzero().squeeze(1)
    return real_N if 0 < len(real_N) < len(factor) else None


def _added_product(total: Tensor | None, d_logits: Tensor, states: Tensor) -> Tensor:
    """The total plus Σ_n δz_n s_nᵀ, (V, H); transposed by oneDNN, whose product is faster so."""
    if by_onednn(d_logits, FEWEST_ONCE):
        return product(states.t(), d_logits.t(), total=None if total is None else total.t()).t()
    if total is not None and total.dtype == d_logits.dtype:
        return total.addmm_(d_logits.t(), states)
    return _added(total, d_logits.t() @ states)


def _added(total: Tensor | None, part: Tensor) -> Tensor:
    return wide(part) if total is None else total.add_(part)


def output_loss(
    linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float
) -> tuple[Tensor, Tensor]:
    """Σ of factor times loss over all tokens, and Σ of the plain -log P where the factor is not 0.

    `truth` (B, T) are the true tokens, `factor` (B, T) is 0 where padded.
    """
    dtype = computed_in(linear.states)
    states_NH = linear.states.flatten(0, 1).to(dtype)
    weight, bias = linear.weight.to(dtype), linear.bias.to(dtype)
    factor_N = factor.flatten().to(torch.promote_types(dtype, torch.float32))
    sums = OutputLoss.apply(states_NH, weight, bias, truth.flatten(), factor_N, smoothing)  # type: ignore[no-untyped-call]
    return cast("tuple[Tensor, Tensor]", sums)


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
        self.fast = True
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
        if self.fast and self.weights is None and isinstance(output.scores, LinearLogits):
            return output_loss(output.scores, target.values, target.mask, self.settings.smoothing)
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
