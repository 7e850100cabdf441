"""Jar 1: the systems, one declaration each. Loads no torch, so that listing them is instant."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any, final

import yaml


@final
@dataclass(frozen=True)
class Slot:
    """A field that a task needs."""

    name: str
    """Its key in the data section; an input's is also the name of the encoder's parameter."""
    kind: str
    """The kind of field where a recipe names none."""
    letter: str
    """Its letter in the equations."""
    columns: tuple[str, ...] = ()
    """Usual names of its column; the first is used where there is no data yet."""


@final
@dataclass(frozen=True)
class Task:
    """A system: inputs, output, and the components and metrics of a recipe that names none."""

    name: str
    """Its name in recipes and on the command line."""
    number: str
    """Its number in the table of systems."""
    title: str
    """One line for a person."""
    inputs: tuple[Slot, ...]
    output: Slot
    encoder: str
    bridge: str
    decoder: str
    metrics: tuple[str, ...]
    bridges: tuple[str, ...] = ("attention", "initial", "every_step")
    """The bridges that a starter recipe offers, the best first."""
    tokens: str = "words"
    """The tokens of a starter recipe."""
    segments: str = "none"
    """The segments of the source in a starter recipe."""
    flat: str = ""
    """The encoder of a starter recipe where sources have few segments and are read as one."""
    starter: str = ""
    """The encoder of a starter recipe where another than `encoder` learns more from few rows."""
    longer_source: bool = False
    """Whether the source is longer than the target."""
    conversation: bool = False
    """Whether rows may be whole conversations, of which every turn but the first is an example."""
    also: tuple[str, ...] = ()
    """Other names that people type for it; recipes and commands understand them."""
    captioned: bool = False
    """Whether data may come in the formats of collections of captioned images: coco, flickr8k."""
    pipeline: str = ""
    """Its name on model hubs, if it has one there."""
    slots: tuple[Slot, ...] = ()
    """All fields of an example, the output last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", (*self.inputs, self.output))

    def role(self) -> str:
        """The inputs and the output in words, for messages."""
        reads = " and ".join(slot.name for slot in self.inputs) or "no input"
        article = "an" if self.output.name[0] in "aeiou" else "a"
        return f"{self.name} reads {reads} and outputs {article} {self.output.name}"


def _slot(name: str, columns: str) -> Slot:
    field = _DECLARED["fields"][name]
    every = columns.replace("…", field["columns"])
    return Slot(name, field["kind"], field["letter"], tuple(every.split()))


def _task(name: str, keys: dict[str, Any]) -> Task:
    inputs, output = (
        [_slot(*slot) for slot in keys.pop(key).items()] for key in ("inputs", "output")
    )
    encoder, bridge, decoder = keys.pop("model").split()
    lists = {key: tuple(value) for key, value in keys.items() if isinstance(value, list)}
    return Task(
        name,
        inputs=tuple(inputs),
        output=output[0],
        encoder=encoder,
        bridge=bridge,
        decoder=decoder,
        **keys | lists,
    )


_FILE = files("sixjars") / "recipes" / "tasks.yaml"
_DECLARED = yaml.load(
    _FILE.read_text(encoding="utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
)
TASKS = {name: _task(name, keys) for name, keys in _DECLARED["tasks"].items()}
"""The systems by name; they are declared in `recipes/tasks.yaml`."""
TASK_NAMED = TASKS | {other: task for task in TASKS.values() for other in task.also}
"""Tasks by all names that people type for them."""


def own_name(name: str) -> str:
    """The own name of a task, or of a recipe or corpus of it, for another name of the task.

    >>> own_name("text_classification"), own_name("text_classification/imdb_flat")
    ('document_classification', 'document_classification/imdb_flat')
    >>> own_name("dialog")
    'dialog'
    """
    task, slash, rest = name.partition("/")
    return f"{TASK_NAMED[task].name if task in TASK_NAMED else task}{slash}{rest}"
