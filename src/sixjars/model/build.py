"""From the model section of a recipe to a network: the class of each component, and its arguments.

The signature is the schema: a typed parameter of a constructor is a key of the recipe, and its
default is written once, there. Parameters that the toolkit fills in itself (sizes of vocabularies,
components built earlier) are `given` and may not stand in a recipe. A parameter that is itself a
module becomes a nested section.

Dims: B batch, S source positions, T target positions, V vocabulary.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from inspect import Parameter, signature
from typing import Any, final, get_type_hints

import torch
from pydantic import create_model, model_validator
from torch import nn
from torch.overrides import TorchFunctionMode

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Bridge, Component, Decoder, Encoder, ModelPlan
from sixjars.flow.values import Batch, DecoderOutput, Encoded, Padded
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.model.recurrent import Recurrent
from sixjars.model.reference import REFERENCE
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.files import checked
from sixjars.recipe.schema import Settings
from sixjars_runtime.errors import RecipeError, ShapeError, unknown

Facts = Mapping[str, Mapping[str, Any]]
"""The facts of each field in the data: the size of its vocabulary, the pixels of an image, …"""

TABLES: Mapping[str, Mapping[str, type[Component]]] = {
    "encoder": ENCODERS,
    "bridge": BRIDGES,
    "decoder": DECODERS,
}
BASES: Mapping[str, Any] = {"encoder": Encoder, "bridge": Bridge, "decoder": Decoder}
GIVEN: Mapping[str, tuple[str, ...]] = {
    "encoder": ("backend",),
    "bridge": (
        *("source_size", "summary_size", "segment_size", "state_size", "state_count"),
        "backend",
    ),
    "decoder": ("bridge", "source_size", "backend"),
}
"""Parameters that come from other components, never from a recipe; those of the data are extra."""


@final
class Network(nn.Module):
    """The whole model: an encoder, and a decoder that is conditioned on it by its bridge.

    >>> from sixjars import InitialState, NothingEncoder, SequenceDecoder, WordEmbedding
    >>> bridge = InitialState(summary_size=4, state_size=6)
    >>> words = WordEmbedding(vocabulary=9, size=5)
    >>> decoder = SequenceDecoder(bridge=bridge, embedding=words, size=6)
    >>> network = Network(NothingEncoder(size=4), decoder)
    >>> network({"nothing": Padded.of([[], []])}, Padded.of([[5, 6, 2], [7, 2]])).logits.shape
    torch.Size([2, 3, 9])
    """

    def __init__(self, encoder: Encoder, decoder: Decoder, *, backend: Backend = REFERENCE) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder
        self.backend = backend

    @property
    def device(self) -> torch.device:
        """The device of its weights."""
        return next(self.parameters()).device

    def encode(self, inputs: Mapping[str, Padded]) -> Encoded:
        """Annotation vectors and a summary of each example."""
        encoded: Encoded = self.encoder(**inputs)
        _check_encoded(self.encoder, encoded)
        copied = [padded.copy_ids for padded in inputs.values() if padded.copy_ids is not None]
        return replace(encoded, copy_ids=copied[0]) if copied else encoded

    def forward(self, inputs: Mapping[str, Padded], target: Padded) -> DecoderOutput:
        """Teacher forcing: logits (B, T, V) for every token of the target."""
        return self.decoder.teach(self.encode(inputs), target)


def path_of(network: Network, *, fast: bool) -> str:
    """How training computes the recurrences of a network, and why; '' where it has none."""
    if not any(isinstance(module, Recurrent) for module in network.modules()):
        return ""
    if not fast:
        return "reference, step by step (learning.fast is false)"
    bridge = network.decoder.bridge
    # `scoring` is not called: its weights may be elsewhere.
    if bridge.follows_state and type(bridge).scoring is Bridge.scoring:
        kinds = {component: kind for kind, component in BRIDGES.items()}
        called = kinds.get(type(bridge), type(bridge).__name__)
        return f"fast; the decoder step by step, because bridge {called} has no fast path"
    return "fast, with the result of the plain loop (learning.fast)"


def _check_encoded(encoder: Encoder, encoded: Encoded) -> None:
    """Refuse the output of an encoder whose type or sizes are not those it has declared."""
    name = type(encoder).__name__
    if not isinstance(encoded, Encoded):
        returned = type(encoded).__name__
        raise ShapeError(f"encoder {name} must return an Encoded, but returns {returned}.")
    if encoded.memory.dim() != 3 or encoded.memory.shape[2] != encoder.output_size:
        raise ShapeError(
            f"encoder {name} returns a memory of {tuple(encoded.memory.shape)}, but it should be "
            f"(B, S, {encoder.output_size}) by its output_size."
        )
    if encoded.summary.shape != (encoded.memory.shape[0], encoder.summary_size):
        raise ShapeError(
            f"encoder {name} returns a summary of {tuple(encoded.summary.shape)}, but it should be "
            f"(B, {encoder.summary_size}) by its summary_size."
        )


def is_section(kind: Any) -> bool:
    """Whether a parameter of this type is a module, and so a section of its own in a recipe."""
    return isinstance(kind, type) and issubclass(kind, nn.Module)


class ComponentSettings(Settings):
    """The settings of a component in a recipe; `schema_of` adds the keys."""

    @model_validator(mode="before")
    @classmethod
    def _named(cls, section: Any) -> Any:
        """Read a word alone as the name, where there is such a key: `backbone: small`."""
        is_name = isinstance(section, str) and "name" in cls.model_fields
        return {"name": section} if is_name else section


def schema_of(
    component: type, given: Collection[str], is_section: Callable[[Any], bool]
) -> type[ComponentSettings]:
    """The settings of a component, read off its signature.

    A module inside it is a section of its own; its `given` names the parameters that the toolkit
    fills in there.
    """
    return _schema(component, frozenset(given), is_section)


@cache  # to create a class is slow, and reading a recipe needs several
def _schema(
    component: type, given: frozenset[str], is_section: Callable[[Any], bool]
) -> type[ComponentSettings]:
    hints = get_type_hints(component.__init__, include_extras=True)  # type: ignore[misc]
    keys: dict[str, Any] = {}
    for name, parameter in signature(component).parameters.items():
        if name in given:
            continue
        if name not in hints:
            who = f"{component.__name__}: parameter {name!r}"
            raise RecipeError([f"{who} needs a type, for it is a key of the recipe."])
        if is_section(hints[name]):
            inner = schema_of(hints[name], {*given, *getattr(hints[name], "given", ())}, is_section)
            keys[name] = (inner, inner())
        else:
            default = parameter.default
            keys[name] = (hints[name], ... if default is Parameter.empty else default)
    schema = create_model(component.__name__, __base__=ComponentSettings, **keys)
    schema.filled_in = tuple(given)
    return schema


def class_of(role: str, section: Mapping[str, Any], outside: AllowedCode) -> type[Component]:
    """The class that a section names: one of ours, or an allowed one from outside."""
    kind, table = section["kind"], TABLES[role]
    if kind in table:
        return table[kind]
    if "." in kind or outside.hands(kind):
        component: type[Component] = outside.component(kind, BASES[role], f"model.{role}.kind")
        return component
    raise RecipeError([unknown(f"model.{role}: kind", kind, list(table)) + outside.listed])


def resolved(
    role: str, section: Mapping[str, Any], facts: Collection[str], outside: AllowedCode
) -> tuple[dict[str, Any], list[str]]:
    """A section of the model with its defaults, and its faults; `facts` are names of the data's."""
    try:
        component = class_of(role, section, outside)
    except RecipeError as error:
        return {}, list(error.faults)
    schema = schema_of(component, {*GIVEN[role], *facts}, is_section)
    kind, known = section["kind"], {"kind", *schema.model_fields, *schema.filled_in}
    unknown_keys = [key for key in section if key not in known]
    others = {key: kinds for key in unknown_keys if (kinds := _kinds_with(key, role))}
    rest = {key: value for key, value in section.items() if key not in {"kind", *others}}
    settings, faults = checked(schema, rest, f"model.{role}")
    faults += [_of_other_kinds(role, kind, key, kinds, schema) for key, kinds in others.items()]
    return {} if settings is None or faults else {"kind": kind, **settings.model_dump()}, faults


def _kinds_with(key: str, role: str) -> list[str]:
    """The kinds of a component that have a key."""
    table = TABLES[role].items()
    return [kind for kind, component in table if key in signature(component).parameters]


def _of_other_kinds(
    role: str, kind: str, key: str, kinds: Sequence[str], schema: type[Settings]
) -> str:
    """The fault of a key of other kinds: only the kind was changed, or the key is in a section."""
    sections = {name: field.annotation for name, field in schema.model_fields.items()}
    inside = [name for name, part in sections.items() if key in getattr(part, "model_fields", ())]
    has = f", which has {' and '.join(f'{name}.{key}' for name in inside)}" if inside else ""
    return (
        f"model.{role}: key {key!r} is one of kind {' or '.join(kinds)}, but the kind is {kind}{has}; "
        f"remove it, or replace the section: 'model.{role}={{kind: {kind}}}'."
    )


@final
@dataclass(frozen=True)
class Nested:
    """A module inside a component, its section, and the field whose facts it is given."""

    where: str
    """For messages: `model.encoder.embedding`."""
    kind: Any
    section: Mapping[str, Any]
    field: str


def nested(plan: ModelPlan) -> Iterator[Nested]:
    """Every module inside the encoder and the decoder, the outer ones first."""
    fields = [*plan.inputs] or [""]
    yield from _nested(plan.encoder, plan.settings["encoder"], "model.encoder", fields)
    yield from _nested(plan.decoder, plan.settings["decoder"], "model.decoder", [plan.output.name])


def _nested(
    kind: type, section: Mapping[str, Any], where: str, fields: list[str]
) -> Iterator[Nested]:
    hints = get_type_hints(kind.__init__)  # type: ignore[misc]
    for name in signature(kind).parameters:
        if name in section and is_section(hints[name]):
            inner = [name] if name in fields else fields
            yield Nested(f"{where}.{name}", hints[name], section[name], inner[0])
            yield from _nested(hints[name], section[name], f"{where}.{name}", inner)


def _made(
    kind: type[nn.Module], section: Mapping[str, Any], given: Mapping[str, Any], facts: Facts
) -> nn.Module:
    """A module from its section, with the `given` values that its signature has.

    A module inside it that is named like a field is given the facts of that field.
    """
    hints = get_type_hints(kind.__init__)
    arguments = {}
    for name in signature(kind).parameters:
        if name in section and is_section(hints[name]):
            arguments[name] = _made(hints[name], section[name], facts.get(name, given), facts)
        elif name in section or name in given:
            arguments[name] = section[name] if name in section else given[name]
    return kind(**arguments)


def build(
    plan: ModelPlan, facts: Facts, *, fresh: bool = True, backend: Backend = REFERENCE
) -> Network:
    """The network of a plan; a `fresh` one starts from a backbone's pretrained weights.

    Its components compute by the backend.
    """
    extra = {"pretrained": fresh, "backend": backend}
    facts = {name: {**known, **extra} for name, known in facts.items()}
    named = reversed(plan.encoder.inputs())  # of several inputs, the facts of the first count
    read = {"backend": backend}
    read |= {key: value for name in named for key, value in facts.get(name, {}).items()}
    encoder = _made(plan.encoder, plan.settings["encoder"], read, facts)
    assert isinstance(encoder, Encoder)
    for name in ("output_size", "summary_size"):
        if not isinstance(getattr(encoder, name, None), int):
            called = type(encoder).__name__
            raise ShapeError(
                f"encoder {called} does not say its {name}: set self.{name} in its __init__, "
                "a whole number."
            )
    if plan.bridge.has_attention and not encoder.attendable:
        kind = plan.kind("encoder")
        raise ShapeError(
            f"attention has nothing to attend to: an encoder of kind {kind!r} has no positions. "
            "Use a bridge of kind initial."
        )
    shape = plan.decoder.state_shape(plan.settings["decoder"])
    sizes = {
        "source_size": encoder.output_size,
        "summary_size": encoder.summary_size,
        "segment_size": encoder.segment_size,
        "state_size": shape.state_size,
        "state_count": shape.state_count,
        "backend": backend,
    }
    bridge = _made(plan.bridge, plan.settings["bridge"], sizes, {})
    inputs = {"bridge": bridge, "source_size": encoder.output_size, **facts[plan.output.name]}
    decoder = _made(plan.decoder, plan.settings["decoder"], inputs, {})
    assert isinstance(decoder, Decoder)
    return Network(encoder, decoder, backend=backend)


@final
class Unfilled(TorchFunctionMode):
    """Leaves out random initial values, where others take their place.

    Without memory to fill, torch would load its compiler for them, which takes seconds.
    """

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        options = kwargs or {}
        if func in (torch.nn.init.normal_, torch.nn.init.uniform_):
            return options["tensor"]
        if func in (torch.Tensor.normal_, torch.Tensor.uniform_):
            return args[0]
        return func(*args, **options)


def freeze_unused(network: Network, batch: Batch) -> None:
    """Freeze the weights that no output depends on, such as a layer that nothing attends to.

    They would be counted as trainable and never learn, and several processes would wait for their
    gradients.
    """
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    logits = network(batch.inputs, batch.target).logits
    # A gradient is None where there is no path to the logits, and otherwise a tensor, even if 0.
    gradients = torch.autograd.grad(logits.sum(), trained, allow_unused=True)
    for weight, gradient in zip(trained, gradients, strict=True):
        weight.requires_grad_(gradient is not None)
