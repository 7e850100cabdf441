"""Every decoder with every bridge.

Sizes: a memory of 5 features, a summary of 3, an upper level of 4, a state of 5 and embeddings of 5
(of 4 where nothing is tied), so that all bridges fit.
"""

from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, Decoder, Generator
from sixjars.flow.values import DecoderOutput, Encoded, Padded
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.reference import REFERENCE, CellName
from sixjars_runtime.special_tokens import STOP

from .examples import TARGETS, encoded, stretched, words
from .pairwise import named

SIZE, SUMMARY, SEGMENT, CLASSES = 5, 3, 4, 6
LENGTHS = (4, 2, 3)
"""Of the sources: where there is one position only, a pointer has nothing to decide."""
ORDERS = ([6, 4, 7, 5, 2], [5, 4, 2], [4, 6, 5, 2])
SOME = ([6, 4, 7, 2], [5, 2], [4, 6, 2])
"""What a pointer may output for such sources: every position once, or some."""
Visits = Literal["all", "some"]
MADE: dict[str, Callable[..., Bridge]] = {
    **{name: kind for name, kind in BRIDGES.items() if name != "attention"},
    "additive": BRIDGES["attention"],
    "dot": partial(BRIDGES["attention"], score="dot"),
    "general": partial(BRIDGES["attention"], score="general"),
    "pooling_segments": BRIDGES["pooling"],
    "pooling_join": partial(BRIDGES["pooling"], join_summary=True),
}
TWO_LEVELS = ("two_level", "pooling_segments")
"""Those that attend to the upper level."""
Make = Callable[..., Decoder]
"""Makes a decoder that computes by a backend, the reference by default."""


def _bridge(
    bridge: str, kind: type[Decoder], settings: Mapping[str, Any], backend: Backend
) -> Bridge:
    shape = kind.state_shape(settings)
    sizes = {
        "source_size": SIZE,
        "summary_size": SUMMARY,
        "segment_size": SEGMENT if bridge in TWO_LEVELS else 0,
        "state_size": shape.state_size,
        "state_count": shape.state_count,
        "backend": backend,
    }
    wanted = signature(MADE[bridge]).parameters
    return MADE[bridge](**{name: size for name, size in sizes.items() if name in wanted})


def _sequence(
    cell: CellName,
    layers: int,
    bridge: str,
    matrix: Literal["own", "tied"] = "own",
    **settings: bool,
) -> Callable[..., Generator]:
    def make(backend: Backend = REFERENCE) -> Generator:
        made = _bridge(
            bridge, SequenceDecoder, {"cell": cell, "size": SIZE, "layers": layers}, backend
        )
        tied = matrix == "tied"
        embedding = words(size=SIZE if tied else SIZE - 1, frozen=settings.get("frozen", False))
        return SequenceDecoder(
            bridge=made,
            embedding=embedding,
            cell=cell,
            size=SIZE,
            layers=layers,
            dropout=0.2,
            tied=tied,
            conditional=settings.get("conditional", False),
            backend=backend,
        )

    return make


def _pointer(cell: CellName, layers: int, bridge: str, visits: Visits) -> Callable[..., Generator]:
    def make(backend: Backend = REFERENCE) -> Generator:
        made = _bridge(
            bridge, PointerDecoder, {"cell": cell, "size": SIZE, "layers": layers}, backend
        )
        sizes: dict[str, Any] = {"source_size": SIZE, "size": SIZE, "attention": SIZE + 1}
        sizes["layers"] = layers
        options: dict[str, Any] = {"cell": cell, "visits": visits, "backend": backend}
        return PointerDecoder(bridge=made, dropout=0.2, **options, **sizes)

    return make


def _label(bridge: str, *, multi_label: bool = False) -> Callable[..., LabelDecoder]:
    def make(backend: Backend = REFERENCE) -> LabelDecoder:
        made = _bridge(bridge, LabelDecoder, {"size": SIZE}, backend)
        return LabelDecoder(
            bridge=made,
            classes=CLASSES,
            size=SIZE,
            dropout=0.2,
            multi_label=multi_label,
            backend=backend,
        )

    return make


ALIKE = ("dot", "general", "pooling", "pooling_join")
"""Bridges that are to a decoder as others are (additive, pooling of segments)."""
SEQUENCES, RARE = named(
    _sequence,
    "sequence",
    cell=get_args(CellName),
    layers=(1, 2),
    bridge=tuple(bridge for bridge in MADE if bridge not in ALIKE),
    matrix=("own", "tied"),
)
CONDITIONAL, RARE_CONDITIONAL = named(
    partial(_sequence, conditional=True),
    "conditional",
    cell=get_args(CellName),
    layers=(1, 2),
    bridge=("additive", "dot", "general", "two_level", "location"),
    matrix=("own", "tied"),
)
RARE |= RARE_CONDITIONAL
GENERATORS: dict[str, Callable[..., Generator]] = {
    "sequence-frozen-vectors": _sequence("gru", 1, "additive", frozen=True),
    "sequence-frozen-vectors-tied": _sequence("gru", 1, "additive", "tied", frozen=True),
    **SEQUENCES,
    **CONDITIONAL,
    **{f"sequence-{bridge}": _sequence("gru", 1, bridge) for bridge in ALIKE},
    **{f"pointer-some-{bridge}": _pointer("gru", 1, bridge, "some") for bridge in MADE},
    "pointer-all-rnn": _pointer("rnn", 2, "every_step", "all"),
    "pointer-all-gru": _pointer("gru", 1, "additive", "all"),
    "pointer-all-lstm": _pointer("lstm", 2, "initial", "all"),
    "pointer-some-lstm-stacked": _pointer("lstm", 2, "additive", "some"),
}
EXPORTED = (
    "sequence-lstm-2-additive-own",
    "conditional-gru-2-two_level-own",
    "pointer-some-lstm-stacked",
)
"""Those whose export is tried in every run of the tests; it takes seconds."""
LABELS: dict[str, Callable[..., LabelDecoder]] = {
    # which needs several steps
    **{f"label-{bridge}": _label(bridge) for bridge in MADE if bridge != "location"},
    "label-multi": _label("additive", multi_label=True),
}
CASES: dict[str, Make] = {**GENERATORS, **LABELS}


def source_for(lengths: tuple[int, ...] = LENGTHS) -> Encoded:
    """What an encoder gives all of them."""
    return encoded(SIZE, lengths, summary=SUMMARY, segment=SEGMENT)


def truth_for(decoder: Decoder) -> Padded:
    """Their targets: texts or orders with junk behind them, or one label each."""
    if isinstance(decoder, PointerDecoder):
        return stretched(Padded.of(list(ORDERS if decoder.stop is None else SOME)), 0)
    return (
        Padded.of([[3], [0], [5]])
        if isinstance(decoder, LabelDecoder)
        else stretched(Padded.of(list(TARGETS)), 0)
    )


def attends_to_segments(bridge: Bridge) -> bool:
    """Whether it weighs the segments of the upper level."""
    return bool(getattr(bridge, "segment_size", isinstance(bridge, BRIDGES["two_level"])))


def reads_memory(bridge: Bridge) -> bool:
    """Whether it sums the memory: pooling sums the upper level where there is one."""
    return bridge.has_attention and (bridge.follows_state or not attends_to_segments(bridge))


def weight_on_source(decoder: Decoder, output: DecoderOutput) -> Tensor:
    """The weight on real positions at every step: all, or what a pointer does not give `<stop>`."""
    share_BT = output.logits.softmax(-1)[..., STOP]
    return 1 - share_BT if isinstance(decoder, PointerDecoder) else torch.ones_like(share_BT)
