"""How the operations of a model are computed: the interface of a backend.

Dims: K stacks side by side, B batch, R rows open in search, T steps, S source positions, I input
      features, O output features, H state features, G gate features (H times 1, 3 or 4),
      A attention features, C context features, D source features, V vocabulary.

A backend is a value, as in thinc (https://thinc.ai/docs/api-backends): it is chosen once, from
device, precision and `learning.fast`, and handed to every component that computes. `Reference` in
`model.reference` computes each operation as its equation is written; those in `kernels` compute the
same faster. Everything else (embeddings, dropout, softmax of other scores) is computed by the
components themselves.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Self, final

from torch import Tensor, nn

from sixjars.flow.values import Context, LinearLogits, Prepared, State, StepOutput

LayerState = tuple[Tensor, Tensor | None]
"""The state of one layer: (hidden (B, H), memory cell of an LSTM (B, H) or None)."""
Scoring = tuple[Tensor | None, ...]
"""The weights of the score of attention, as `Bridge.scoring` returns them."""


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
class AttendedRecurrence(NamedTuple):
    """A recurrence whose inputs at each step are a token and the context attended to before it."""

    stack: nn.RNNBase
    middle: nn.RNNBase | None
    """The cell between state and attention of a conditional decoder; it reads the tokens then."""
    inputs: Tensor
    """The embeddings of all steps, (B, T, I)."""
    state: State
    prepared: Prepared
    scoring: Scoring


@final
class ChoiceRules(NamedTuple):
    """The rules of greedy search for the next token."""

    never: Tensor
    """The tokens that are never output."""
    stop: int
    fewest: int
    """The tokens that come before `<stop>`, unless nothing else may follow."""
    longest: int


class Backend(ABC):
    """The operations of a model that can be computed in several ways.

    Where a method may return None, the backend has no way of its own, and its caller computes the
    equations that it has.
    """

    note: str = ""
    """What is printed behind the path of a training."""

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """The same backend, for a copy of a network too."""
        return self

    @abstractmethod
    def linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """X Wᵀ + b: inputs (…, I), W (O, I) -> (…, O)."""

    @abstractmethod
    def pack(self, modules: Iterable[nn.Module], precision: str) -> None:
        """Prepare the matrices of linear layers and recurrent stacks for prediction.

        In 32 bits they get another layout; in bf16 or int8 also fewer bits. The weights themselves
        stay as they are.
        """

    @abstractmethod
    def recurrences(
        self, stacks: Sequence[nn.RNNBase], inputs: Sequence[Tensor], first: State | None = None
    ) -> list[Tensor]:
        """The states (B, T, H) of stacks of one shape, each over its own inputs (B, T, I)."""

    @abstractmethod
    def cell(self, name: str, given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
        """The state after one step, from g = U x + b and r = W h + b', (B, G) each."""

    @abstractmethod
    def step(self, name: str, stack: nn.RNNBase, inputs: Tensor, before: LayerState) -> LayerState:
        """The state after one step of the only layer of a stack, from its inputs (B, I)."""

    @abstractmethod
    def unroll(self, recurrence: AttendedRecurrence) -> tuple[Tensor, Context] | None:
        """The states (B, T, H), and contexts (B, T, C) with weights (B, T, S), of all steps."""

    @abstractmethod
    def keys(self, memory: Tensor, weight: Tensor) -> Tensor:
        """The keys W_att h of all positions, (B, S, D) -> (B, S, A), once for each source."""

    @abstractmethod
    def key_powers(self, keys: Tensor) -> Tensor | None:
        """What `attend` wants to know of the keys (B, S, A) of each source besides them."""

    @abstractmethod
    def attend(
        self, query: Tensor, sources: AttentionSources, powers: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """Contexts (R, D) and weights (R, S) by the additive score, from queries U_att s (R, A).

        Each source has R / B of the queries. `powers` is what `key_powers` returned.
        """

    @abstractmethod
    def output_loss(
        self, linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """Σ of factor times loss over all tokens, and Σ of the plain -log P where it counts.

        `truth` (B, T) are the true tokens, `factor` (B, T) is 0 where padded.
        """

    @abstractmethod
    def log_probabilities(self, logits: Tensor) -> Tensor:
        """The log softmax of each row (R, V), in 32 bits at least; it may overwrite the logits."""

    @abstractmethod
    def choose(
        self, scored: StepOutput, rules: ChoiceRules, opened: Tensor, totals: Tensor, steps: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """Greedy search after `steps` steps, a tensor in a CUDA graph.

        Each row's token, its log probability, whether the row goes on, and its total, (R,) each.
        `opened` are the rows that are not finished, `totals` the log probabilities so far.
        """
