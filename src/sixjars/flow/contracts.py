"""The contracts of encoders, bridges, decoders and search.

Dims: B batch, H state features, R rows open in search (B times beam width), V vocabulary.

Nothing that changes between steps is an attribute of a module: it is one of the values. What a
component offers or needs is on its class, so that neighbours are checked before they are built.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any, ClassVar, Literal, Protocol, final

from torch import Tensor, nn

from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import (
    Batch,
    Context,
    DecoderOutput,
    Encoded,
    Padded,
    Prepared,
    Rows,
    StepOutput,
)
from sixjars_runtime.special_tokens import SpecialTokens

Holds = Literal["tokens", "classes", "positions", "points", "pixels", "features"]
"""The values of a field: tokens of a vocabulary, classes of a list, positions of an input, …"""


class FieldInfo(Protocol):
    """The part of a field that components may know."""

    name: str
    holds: ClassVar[Holds]
    in_segments: bool
    """Whether its values are texts in segments."""
    multi_label: bool
    """Whether an example may have several labels."""
    has_vectors: bool
    """Whether its tokens have pretrained vectors."""

    def copy_misfits(self, source: Any) -> list[str]:
        """Why words of `source` cannot be copied into this field, a sentence each."""
        ...

    def vocabulary_misfits(self, other: Any) -> list[str]:
        """Why this field and another cannot have one vocabulary, a sentence each."""
        ...


class Component(nn.Module, ABC):
    """A component of a model that can tell its equations and the letters of its weights."""

    letters: ClassVar[Mapping[str, str]] = {}
    """The letter of each parameter in the equations, by its name; the name `""` is for all."""

    def equations(self) -> list[str]:
        """The equations that this component computes; a prototype may have none."""
        return []

    def letter(self, name: str) -> str:
        """The letter of a parameter, in this module or the module inside it that has it."""
        module: nn.Module = self
        while True:
            letters: Mapping[str, str] = getattr(module, "letters", {})
            if name in letters or "" in letters:
                return letters.get(name, letters.get("", ""))
            inside, dot, name = name.partition(".")
            if not dot:
                return "–"
            module = getattr(module, inside)

    @classmethod
    def misfits(cls, plan: "ModelPlan") -> list[str]:
        """Why this component and its neighbours do not fit, a sentence each."""
        return []

    @classmethod
    def suggest(cls, size: int, dropout: float, *, labels: bool) -> dict[str, Any]:
        """Settings for a starter recipe, from hidden size and dropout; `labels` are the output."""
        return {}


class Encoder(Component):
    """Encodes a source of any kind into annotation vectors and a summary vector."""

    output_size: int
    """D, the size of each annotation vector."""
    summary_size: int
    """K, the size of the summary."""
    segment_size: int = 0
    """U, the size of each vector of the upper level; 0 where there is one level."""
    attendable: bool = True
    """Whether there are positions to attend to."""
    has_segments: ClassVar[bool] = False
    """Whether there is an upper level of segments."""
    recurs: ClassVar[bool] = True
    """Whether it encodes one position after the other, so that long inputs take long."""
    keeps_vectors: ClassVar[bool] = False
    """Whether a starter recipe freezes pretrained vectors, so that unseen words stay comparable."""
    for_vectors: ClassVar[Mapping[str, Any]] = {}
    """Settings that a starter recipe adds where words have pretrained vectors."""
    one_vocabulary: ClassVar[bool] = False
    """Whether one vocabulary, learned from all inputs, numbers the words of all of them."""

    counted: ClassVar[tuple[str, ...]] = ()
    """Buffers that `count` fills; 0 is what never occurred, to which fine-tuning adds."""

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """The fields that it encodes: the parameters of `forward`."""
        return tuple(name for name in signature(cls.forward).parameters if name != "self")

    @classmethod
    def companions(cls, settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """The keys of `bridge`, `decoder` and `learning` that suit these settings in a starter."""
        return {}

    @classmethod
    def positions_of(cls) -> str:
        """The input whose positions the memory has: the first; no name where there is none."""
        return next(iter(cls.inputs()), "")

    @classmethod
    def learned_from(cls, field: str) -> tuple[str, ...]:
        """The fields whose values teach a field its vocabulary: itself, or all inputs together."""
        inputs = cls.inputs()
        return inputs if cls.one_vocabulary and field in inputs else (field,)

    @classmethod
    def needs_cells(cls, settings: Mapping[str, Any], *, attended: bool) -> bool:
        """Whether it needs the cells of each frame, or its vector; `attended` is the bridge's."""
        return attended

    def count(self, batches: Iterable[Batch]) -> None:
        """Count what it needs in the training set; most encoders count nothing."""
        return

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Encoded:
        """Encode a `Padded` for each input, by name; padding must not influence the result."""


class Bridge(Component):
    """How the decoder is conditioned on the encoder: initial state, every step, or attention."""

    context_size: int
    """C, the size of the context vector given at every step."""
    has_attention: ClassVar[bool] = False
    """Whether it attends to source positions."""
    follows_state: ClassVar[bool] = False
    """Whether the context depends on the decoder's state, so that steps follow each other."""
    reads_summary: bool = True
    """Whether the decoder's initial state is made from the encoder's summary."""
    grouped: ClassVar[bool] = False
    """Whether `step` takes several queries for each source, side by side, so that search need not
    copy what is prepared for it; such a step also copies nothing to the host."""
    query_letter: str = "s_{t-1}"
    """The letter of the query in its equations: the previous state, or as the decoder sets it."""

    @abstractmethod
    def start(self, encoded: Encoded) -> Prepared:
        """Compute all that is the same for every step."""

    @abstractmethod
    def step(self, query: Tensor, prepared: Prepared) -> Context:
        """The context for one step; the query is a decoder state (B, H), or (R, H) if `grouped`."""

    def first_attended(self, prepared: Prepared) -> Tensor | None:
        """Where attention was, for the first step of a bridge that receives it, (B, 2, S)."""
        return None

    def step_from(self, query: Tensor, prepared: Prepared, attended: Tensor | None) -> Context:
        """As `step`, with the `attended` of the context before, or `first_attended`."""
        return self.step(query, prepared)

    def scoring(self) -> tuple[Tensor | None, ...] | None:
        """U_att (A, H) and V_att (A,) of attention over the memory, for all steps in one call.

        Both are None where the score is the product of state and keys. At two levels the U of words
        and segments stand one above the other, (2A, H), then the V of each. None without attention
        of this kind.
        """
        return None

    @classmethod
    def misfits(cls, plan: "ModelPlan") -> list[str]:
        """A sentence if there is attention, but no positions."""
        if cls.has_attention and not plan.encoder.attendable:
            bridge, encoder = plan.kind("bridge"), plan.kind("encoder")
            fault = f"{bridge} has nothing to attend to: model.encoder is {encoder}."
            return [f"model.bridge: {fault} Use initial."]
        return []


@final
@dataclass(frozen=True)
class StateShape:
    """The size of a decoder's initial state."""

    state_size: int
    """H, the size of one vector; also of the query that a bridge receives."""
    state_count: int
    """How many such vectors: layers times states of the cell."""


class OutputChoice(Protocol):
    """How an output is chosen: greedily, by sampling, by a beam, or the most probable labels."""

    @property
    def settings(self) -> Any:
        """The recipe's; its `nbest` are the outputs for each source, also without a search."""
        ...

    def find(
        self,
        generator: "Generator",
        state: Rows,
        prepared: Prepared,
        *,
        longest: int | None,
        prefix: Padded | None,
    ) -> list[list[Hypothesis]]:
        """For each source at least one hypothesis, the best first.

        `longest` is the most tokens of an output, `<stop>` included, where the source decides and
        not the settings. Each hypothesis begins with its row of `prefix`.
        """
        ...


class Decoder(Component):
    """Produces the output: a text, labels of a closed list, or positions of the input."""

    produces: ClassVar[Holds]
    """The kind of its output; the output field must hold the same."""
    searches: ClassVar[bool] = True
    """Whether outputs are found step by step, so that the search settings matter."""
    bridge: Bridge

    @staticmethod
    @abstractmethod
    def state_shape(settings: Mapping[str, Any]) -> StateShape:
        """The size of the initial state of a decoder with these settings."""

    @classmethod
    def target_options(cls, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Options for the output field, such as whether words are copied."""
        return {}

    @property
    def has_attention(self) -> bool:
        """Whether its outputs come with weights over the source positions."""
        return self.bridge.has_attention

    @abstractmethod
    def teach(self, encoded: Encoded, target: Padded) -> DecoderOutput:
        """Logits of a whole target by teacher forcing: each step gets the true previous token."""

    @abstractmethod
    def answer(
        self, encoded: Encoded, search: OutputChoice, prefix: Padded | None = None
    ) -> list[list[Hypothesis]]:
        """The outputs for each row, best first."""

    @abstractmethod
    def loss_equation(self) -> str:
        """The equation of the loss."""

    def answer_equation(self) -> str:
        """The equation by which an output is chosen, where there is no search."""
        return ""


class Generator(Decoder):
    """Generates one token (or point) after the other; `teach` and `start` + `step` agree."""

    special: ClassVar[SpecialTokens]

    @property
    def grouped(self) -> bool:
        """Whether `step` takes grouped queries; its outputs may be overwritten by the next."""
        return False

    @abstractmethod
    def start(self, encoded: Encoded) -> tuple[Any, Prepared]:
        """The state before the first token (some `Rows`), and the constants of each source."""

    @abstractmethod
    def step(self, token: Tensor, state: Any, prepared: Prepared) -> tuple[StepOutput, Any]:
        """From one token for each row (R,): the scores of what may follow, and the next state."""

    def longest(self, encoded: Encoded) -> int | None:
        """The most tokens of an output, `<stop>` included, where the source decides."""
        return None

    def answer(
        self, encoded: Encoded, search: OutputChoice, prefix: Padded | None = None
    ) -> list[list[Hypothesis]]:
        """The hypotheses that search finds."""
        state, prepared = self.start(encoded)
        longest = self.longest(encoded)
        return search.find(self, state, prepared, longest=longest, prefix=prefix)

    def loss_equation(self) -> str:
        """The equation of the cross entropy of every token."""
        return "L = -Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens"


@final
@dataclass(frozen=True)
class ModelPlan:
    """A model before it is built: all that its components can check each other by."""

    encoder: type[Encoder]
    bridge: type[Bridge]
    decoder: type[Decoder]
    settings: Mapping[str, Mapping[str, Any]]
    """The resolved section of each role: `encoder`, `bridge`, `decoder`."""
    inputs: Mapping[str, FieldInfo]
    output: FieldInfo
    smoothing: float = 0.0
    """Label smoothing of the loss."""

    def kind(self, role: str) -> str:
        """The kind of a component, as the recipe names it."""
        return str(self.settings[role]["kind"])
