"""Encoders: each file reads one kind of source; this table is the whole registry."""

from sixjars.flow import Encoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.text import TextEncoder

ENCODERS: dict[str, type[Encoder]] = {
    "none": NothingEncoder,
    "text": TextEncoder,
}
