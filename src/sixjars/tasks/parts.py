"""From the model jar to a network: which class each section means, and how the parts are put together."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, get_type_hints

from torch import nn

from sixjars.errors import ShapeError, unknown
from sixjars.flow import Bridge, Decoder, Encoder, Part
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.model.encoders.image import ImageEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.network import Network
from sixjars.model.sight import Sight, learns
from sixjars.recipe import ModelSettings
from sixjars.recipe.schema import Nested, checked, schema_of
from sixjars.tasks.table import LOOKING, Task

Facts = Mapping[str, Mapping[str, Any]]
"""What the data says of each field: how many words or classes there are, their vectors, the pixels of a picture."""

TABLES: Mapping[str, Mapping[str, type[Part]]] = {"encoder": ENCODERS, "bridge": BRIDGES, "decoder": DECODERS}
GIVEN = {
    "encoder": ("numbers",),
    "bridge": ("source_size", "summary_size", "above_size", "state_size", "copies"),
    "decoder": ("bridge", "source_size", "classes", "several"),
}
"""Parameters that come from other parts or from the data, and so never from a recipe."""
NESTED: Nested = {
    WordEmbedding: ("vocabulary", "vectors"),
    Sight: ("pixels", "cells", "pretrained"),
    TextEncoder: (),
    ImageEncoder: (),
}
"""Parts inside parts, with the parameters that come from the data."""


def resolved(role: str, section: Mapping[str, Any], task: Task) -> tuple[dict[str, Any], list[str]]:
    """A section of the model jar with every default filled in, and its faults."""
    where, rest = f"model.{role}", dict(section)
    chosen = {"kind": str(rest.pop("kind", getattr(task, role)))}
    table = TABLES[role]
    if chosen["kind"] not in table:
        return {}, [unknown(f"{where}: kind", chosen["kind"], list(table))]
    if chosen["kind"] == "attention":
        chosen["score"] = str(rest.pop("score", "additive"))
        if chosen["score"] not in ATTENTIONS:
            return {}, [unknown(f"{where}: score", chosen["score"], list(ATTENTIONS))]
    settings, faults = checked(schema_of(class_of(role, chosen), GIVEN[role], NESTED), rest, where)
    return {} if settings is None else {**chosen, **settings.model_dump()}, faults


def class_of(role: str, section: Mapping[str, Any]) -> type[Part]:
    """The class that a section means."""
    if section["kind"] == "attention":
        return ATTENTIONS[section["score"]]
    return TABLES[role][section["kind"]]


def inputs_of(encoder: str) -> tuple[str, ...]:
    """The inputs that a kind of encoder reads: the parameters of its `forward`."""
    return tuple(name for name in signature(ENCODERS[encoder].forward).parameters if name != "self")


def sight_of(encoder: Mapping[str, Any]) -> Mapping[str, Any]:
    """How a resolved encoder sees pictures or films."""
    section: Mapping[str, Any] = encoder["backbone"] if "backbone" in encoder else encoder["image"]["backbone"]
    return section


def looks_at_cells(model: ModelSettings) -> bool:
    """Whether anybody looks at the cells of a frame, or all listen to its vector alone."""
    if "reads" in model.encoder:
        return bool(model.encoder["reads"] != "frames")
    return model.bridge["kind"] in LOOKING


def all_heard(model: ModelSettings) -> bool:
    """Whether every weight of an encoder that sees reaches the decoder: those of the cells and of the vector.

    A network of another library that learns may have layers behind both.
    """
    sight = sight_of(model.encoder)
    learning = learns(sight["name"], tuned=sight["tuned"])
    if learning and "/" in sight["name"]:
        return False
    if "reads" in model.encoder:
        return not learning or bool(model.encoder["reads"] != "clips")
    return bool(model.bridge["kind"] == "attention" and model.encoder.get("summary", "both") == "both")


def _made(part: type[nn.Module], section: Mapping[str, Any], given: Mapping[str, Any], facts: Facts) -> nn.Module:
    """A part from its section of a recipe, with what the toolkit knows put in where the signature wants it.

    A part inside it that is called as a field is given what the data says of that field.
    """
    hints = get_type_hints(vars(part)["__init__"])
    arguments = {}
    for name in signature(part).parameters:
        if hints[name] in NESTED:
            arguments[name] = _made(hints[name], section[name], facts.get(name, given), facts)
        elif name in section or name in given:
            arguments[name] = section[name] if name in section else given[name]
    return part(**arguments)


def network_of(settings: ModelSettings, facts: Facts) -> Network:
    """The network that a resolved model jar describes, with fresh weights."""
    read = {key: value for name in inputs_of(settings.encoder["kind"]) for key, value in facts.get(name, {}).items()}
    encoder = _made(class_of("encoder", settings.encoder), settings.encoder, read, facts)
    assert isinstance(encoder, Encoder)
    if settings.bridge["kind"] in LOOKING and not encoder.attendable:
        kind = settings.encoder["kind"]
        raise ShapeError(
            f"attention has nothing to look at: an encoder of kind {kind!r} has no positions. Use initial."
        )
    chosen = DECODERS[settings.decoder["kind"]]
    shape = chosen.first_shape(settings.decoder)
    sizes = {
        "source_size": encoder.output_size,
        "summary_size": encoder.summary_size,
        "above_size": encoder.above_size,
        "state_size": shape.state_size,
        "copies": shape.copies,
    }
    bridge = _made(class_of("bridge", settings.bridge), settings.bridge, sizes, {})
    assert isinstance(bridge, Bridge)
    said = next(facts[name] for name in ("label", "order", "target") if name in facts)
    given = {"bridge": bridge, "source_size": encoder.output_size, **said}
    decoder = _made(chosen, settings.decoder, given, {})
    assert isinstance(decoder, Decoder)
    return Network(encoder, decoder)
