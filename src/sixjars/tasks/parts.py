"""From the model jar to a network: which class each section means, and how the parts are put together."""

from collections.abc import Mapping
from inspect import signature
from typing import Any, get_type_hints

from torch import Tensor

from sixjars.errors import ShapeError, unknown
from sixjars.flow import Bridge, Decoder, Encoder, Part
from sixjars.model.bridges import ATTENTIONS, BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.model.layers import WordEmbedding
from sixjars.model.network import Network
from sixjars.recipe import ModelSettings
from sixjars.recipe.schema import Nested, checked, schema_of
from sixjars.tasks.table import Task

Vectors = tuple[Tensor, Tensor]
"""Rows of a vocabulary, and the pretrained vectors of those words."""

TABLES: Mapping[str, Mapping[str, type[Part]]] = {"encoder": ENCODERS, "bridge": BRIDGES, "decoder": DECODERS}
GIVEN = {"encoder": (), "bridge": ("source_size", "state_size", "copies"), "decoder": ("bridge",)}
"""Parameters that come from other parts, and so never from a recipe."""
NESTED: Nested = {WordEmbedding: ("vocabulary", "vectors")}
"""Parts inside parts; how many words there are and what they mean comes from the data."""


def resolved(role: str, section: Mapping[str, Any], task: Task) -> tuple[dict[str, Any], list[str]]:
    """A section of the model jar with every default filled in, and its faults."""
    where, rest = f"model.{role}", dict(section)
    usual = {"encoder": task.encoder, "bridge": task.bridge, "decoder": "sequence"}[role]
    chosen = {"kind": str(rest.pop("kind", usual))}
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


def _made(part: type[Part], section: Mapping[str, Any], given: Mapping[str, Any]) -> Part:
    """A part from its section of a recipe, with what the toolkit knows put in where the signature wants it."""
    hints = get_type_hints(vars(part)["__init__"])
    arguments = {}
    for name in signature(part).parameters:
        if hints[name] is WordEmbedding:
            arguments[name] = WordEmbedding(**section[name], vocabulary=given["vocabulary"], vectors=given["vectors"])
        else:
            arguments[name] = section[name] if name in section else given[name]
    return part(**arguments)


def network_of(
    settings: ModelSettings, vocabularies: Mapping[str, int], vectors: Mapping[str, Vectors] | None = None
) -> Network:
    """The network that a resolved model jar describes, with fresh weights."""
    vectors = vectors or {}
    words = {field: {"vocabulary": size, "vectors": vectors.get(field)} for field, size in vocabularies.items()}
    encoder = _made(class_of("encoder", settings.encoder), settings.encoder, words.get("source", {}))
    assert isinstance(encoder, Encoder)
    if settings.bridge["kind"] == "attention" and not encoder.attendable:
        kind = settings.encoder["kind"]
        raise ShapeError(
            f"attention has nothing to look at: an encoder of kind {kind!r} has no positions. Use initial."
        )
    writer = class_of("decoder", settings.decoder)
    shape_of = vars(writer)["first_shape"].__func__
    shape = shape_of(**{name: settings.decoder[name] for name in signature(shape_of).parameters})
    sizes = {"source_size": encoder.output_size, "state_size": shape.state_size, "copies": shape.copies}
    bridge = _made(class_of("bridge", settings.bridge), settings.bridge, sizes)
    assert isinstance(bridge, Bridge)
    decoder = _made(writer, settings.decoder, {"bridge": bridge, **words["target"]})
    assert isinstance(decoder, Decoder)
    return Network(encoder, decoder)
