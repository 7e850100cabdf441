"""Every decoder with every bridge.

Sizes: a memory of 5 features, a summary of 3, a state of 5 and embeddings of 5 (of 4 where nothing is tied), so that
all bridges fit.
"""

from collections.abc import Callable, Mapping
from inspect import signature
from itertools import product
from typing import Any, get_args

from sixjars.flow import Bridge, Chooser, Decoder, Encoded, Padded, Writer
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.cells import CellName
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.tasks.table import LOOKING

from .promises import LENGTHS, TARGETS, encoded, stretched, words

SIZE, SUMMARY, CLASSES = 5, 3, 6
HEARING: dict[str, type[Bridge]] = {
    **{name: kind for name, kind in BRIDGES.items() if name != "attention"},
    **ATTENTIONS,
}
Make = Callable[[], Decoder]


def _bridge(hears: str, kind: type[Decoder], settings: Mapping[str, Any]) -> Bridge:
    shape = kind.first_shape(settings)
    sizes = {
        "source_size": SIZE,
        "summary_size": SUMMARY,
        "state_size": shape.state_size,
        "copies": shape.copies,
    }
    wanted = signature(HEARING[hears]).parameters
    return HEARING[hears](**{name: size for name, size in sizes.items() if name in wanted})


def _sequence(cell: CellName, layers: int, hears: str, *, tied: bool, frozen: bool = False) -> Callable[[], Writer]:
    def make() -> Writer:
        bridge = _bridge(hears, SequenceDecoder, {"cell": cell, "size": SIZE, "layers": layers})
        embedding = words(size=SIZE if tied else SIZE - 1, frozen=frozen)
        return SequenceDecoder(
            bridge=bridge, embedding=embedding, cell=cell, size=SIZE, layers=layers, dropout=0.2, tied=tied
        )

    return make


def _label(hears: str) -> Callable[[], Chooser]:
    def make() -> Chooser:
        bridge = _bridge(hears, LabelDecoder, {"size": SIZE})
        return LabelDecoder(bridge=bridge, classes=CLASSES, size=SIZE, dropout=0.2)

    return make


EVERY_SEQUENCE = {
    f"sequence-{cell}-{layers}-{hears}{'-tied' if tied else ''}": _sequence(cell, layers, hears, tied=tied)
    for cell, layers, hears, tied in product(get_args(CellName), (1, 2), HEARING, (False, True))
}

WRITERS: dict[str, Callable[[], Writer]] = {
    "sequence-frozen-vectors": _sequence("gru", 1, "additive", tied=False, frozen=True),
    "sequence-frozen-vectors-tied": _sequence("gru", 1, "additive", tied=True, frozen=True),
    **EVERY_SEQUENCE,
}
CHOOSERS: dict[str, Callable[[], Chooser]] = {f"label-{hears}": _label(hears) for hears in HEARING}
CASES: dict[str, Make] = {**WRITERS, **CHOOSERS}


def heard(lengths: tuple[int, ...] = LENGTHS) -> Encoded:
    """What an encoder says to all of them."""
    return encoded(SIZE, lengths, summary=SUMMARY)


def truth_for(decoder: Decoder) -> Padded:
    """What they should say: texts of different lengths with junk behind them, or one label each."""
    return Padded.of([[3], [0], [5]]) if isinstance(decoder, Chooser) else stretched(Padded.of(list(TARGETS)), 0)


def looks(decoder: Decoder) -> bool:
    """Whether its bridge weighs the positions of the memory."""
    return isinstance(decoder.bridge, tuple({*ATTENTIONS.values(), *(BRIDGES[kind] for kind in LOOKING)}))


def hears_summary(decoder: Decoder) -> bool:
    """Pooling makes a summary of its own."""
    return not isinstance(decoder.bridge, AttentionPooling)
