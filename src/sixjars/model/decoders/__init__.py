"""Decoders: each file produces one kind of output; this table is the whole registry."""

from sixjars.flow.contracts import Decoder
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.decoders.sequence import SequenceDecoder

DECODERS: dict[str, type[Decoder]] = {
    "label": LabelDecoder,
    "pointer": PointerDecoder,
    "sequence": SequenceDecoder,
}
