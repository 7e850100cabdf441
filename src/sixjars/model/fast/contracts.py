r"""The interface of a step of a cell and of attention, with its equations and their gradients.

Dims: K recurrences, B batch, H state features, G gate features (H times 1, 3 or 4), S source
      positions, T steps, A attention features, D source features, P segments of a row,
      Q = G + A (G + 2A at two levels).

δ is the gradient of the loss. A step h' = f(g, r, h) has the given g = U x + b and the recurrent
r = W h + b':

    RNN    h' = tanh(g + r)                             δg = δr = δh' (1 - h'²)
    GRU    o = σ(g_o + r_o), i = σ(g_i + r_i),          δg_n = δh' (1 - i) (1 - n²), δr_n = δg_n o
           n = tanh(g_n + o r_n), h' = n + i (h - n)    δg_o = δr_o = δg_n r_n o (1 - o)
                                                        δg_i = δr_i = δh' (h - n) i (1 - i)
                                                        δh = δh' i + …
    LSTM   i, f, o = σ(g + r), n = tanh(g_n + r_n),     δm' = δm' + δh' o (1 - tanh² m'), δm = δm' f
           m' = f m + i n, h' = o tanh m'               δg_i = δm' n i (1 - i)
                                                        δg_f = δm' m f (1 - f)
                                                        δg_n = δm' i (1 - n²)
                                                        δg_o = δh' tanh(m') o (1 - o)

The rest of δh is Wᵀ δr, one product for all rows.

Attention, where q_t = U_att s_{t-1} (of dot and general, s_{t-1} itself) and k_j is a key:

    e_jt = V_attᵀ tanh(q_t + k_j)  or  q_tᵀ k_j,   α_jt = softmax_j(e_jt),   c_t = Σ_j α_jt h_j

    δα_jt = h_jᵀ δc_t + other gradients of the weights,   δe_jt = α_jt (δα_jt - Σ_i α_it δα_it)
    additive:  δq_t = Σ_j δe_jt V_att ⊙ (1 - tanh²),   δk_j = Σ_t δe_jt V_att ⊙ (1 - tanh²),
               δV_att = Σ_jt δe_jt tanh
    product:   δq_t = Σ_j δe_jt k_j,                   δk_j = Σ_t δe_jt q_t
    δh_j = Σ_t α_jt δc_t

Two levels, where word j is in segment n; f_nt is the score of a segment, e_jt that of a word:

    β_nt = softmax_n(f_nt),   γ_jt = softmax of e_jt over the words of segment n,   α_jt = β_nt γ_jt

    μ_nt = Σ_{j in n} γ_jt δα_jt,   δe_jt = α_jt (δα_jt - μ_nt),
    δf_nt = β_nt (μ_nt - Σ_m β_mt μ_mt)

Only δα, δe and δq are computed in the loop over steps; each of the others is one product, or one
kernel, for all steps.
"""

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple, final

from torch import Tensor

Saved = tuple[Tensor, ...]
"""The tensors that the backward pass of a step needs."""
Memory = Tensor | None
"""The memory cell of an LSTM; None for other cells."""
LayerState = tuple[Tensor, Memory]
"""The state of one layer: (hidden (B, H), memory cell (B, H) or None)."""
Made = tuple[Memory, Saved]
Back = tuple[Tensor | None, Memory]
Summands = tuple[Tensor, ...]
"""Tensors whose sum alone is needed; a kernel adds them up while it reads them."""


class Cell(ABC):
    """One step of a cell and its backward pass, which write into the given tensors."""

    gives_alike: ClassVar[bool] = True
    """Whether δg and δr are equal, so that one tensor holds both."""

    @abstractmethod
    def forward(
        self, given: Summands, recurrent: Summands, hidden: Tensor, memory: Memory, after: Tensor
    ) -> Made:
        """Write h' into `after`, from g and r (…, B, G), h and m (…, B, H); return m' and `Saved`.

        g and r have one summand or two: the product with the weights, and the bias.
        """

    @abstractmethod
    def backward(
        self, d_after: Summands, d_memory: Memory, saved: Saved, d_given: Tensor, d_recur: Tensor
    ) -> Back:
        """Write δg and δr, from δh' and δm'; return δh without the part through W, and δm.

        δh' has one to three summands: of the output, through W of the step after, and beside it.
        δm' is None at the last step alone.
        """


@final
class AttentionSources(NamedTuple):
    """The positions that are attended to."""

    keys: Tensor
    """k, (B, S, A)."""
    memory: Tensor
    """h, (B, S, D)."""
    mask: Tensor
    """(B, S)."""
    score: Tensor | None
    """V_att (A,) of the additive score."""


@final
class UpperSources(NamedTuple):
    """The upper level of the positions."""

    keys: Tensor
    """The keys of the segments, (B, P, A)."""
    mask: Tensor
    """True where a segment has a real position, (B, P)."""
    segment_of: Tensor
    """The segment of each position, (B, S)."""
    score: Tensor
    """V_att,seg (A,)."""


@final
class RecurrentCellWeights(NamedTuple):
    """The weights of one cell; of the first, U x + b is computed before the steps."""

    inputs: Tensor | None
    """U_c (G, D) of the cell that reads the context, U (G, H) above it; None of a middle cell."""
    bias: Tensor | None
    """b (G,) of all cells but the first."""
    recurrent: Tensor
    """W (G, H); with U_att of the additive score below it where the state is the query, (Q, H)."""
    recurrent_bias: Tensor
    """b' (G,)."""
