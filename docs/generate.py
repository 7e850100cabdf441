"""Writes the pages that the code itself can tell: docs/settings.md and src/sixjars/recipes/README.md.

    python docs/generate.py           write them
    python docs/generate.py --check   only say which are out of date; exit 1 if one is
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sixjars.data.samples import SAMPLES
from sixjars.evaluation.metrics import METRICS
from sixjars.evaluation.search import KINDS
from sixjars.flow import Part
from sixjars.model.bridges import ATTENTIONS
from sixjars.recipe import ModelSettings, Recipe
from sixjars.recipe.jars import (
    DataSettings,
    EvaluationSettings,
    LearningSettings,
    LossSettings,
    SampleSettings,
    SearchSettings,
    TextSettings,
)
from sixjars.recipe.reading import packaged
from sixjars.recipe.schema import schema_of
from sixjars.tasks.parts import GIVEN, NESTED, TABLES, class_of, network_of, resolved
from sixjars.tasks.reading import read_recipe
from sixjars.tasks.table import TASKS, Task

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Written by docs/generate.py; run `make docs` after a change. -->\n"
TINY = 4
"""Sizes of the parts that are built to be asked for their equations."""

MEANINGS = {
    "cell": "The recurrent cell.",
    "size": "Numbers in a state; the encoder of a language model: in s_0; additive attention: hidden units.",
    "layers": "Cells on top of each other, each fed by the one below.",
    "direction": "Which way the source is read: first word to last, last to first, or both.",
    "dropout": "Share of numbers set to 0 while learning.",
    "tied": "Whether the output matrix V is that of the embeddings; then `size` equals `embedding.size`.",
    "start": "The first state: `tanh(W_0 h_T + b_0)`, or a copy of h_T, which must be as large as the decoder's state.",
    "embedding.size": "Numbers in a token's vector.",
    "embedding.dropout": "Share of a vector's numbers set to 0 while learning.",
    "embedding.tuned": "Whether pretrained vectors go on learning; `false` keeps them as they are.",
}
"""A sentence for each key of a part: a signature has no room for one."""

Words = Callable[[str], str]


def kind_told(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """A type and its limits in words."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        flat = [each for given in more for each in (given.metadata if isinstance(given, FieldInfo) else [given])]
        return kind_told(inner, [*limits, *flat])
    if origin in (Union, UnionType):
        told = [kind_told(inner, limits) for inner in get_args(annotation) if inner is not NoneType]
        none = ["`null`"] if NoneType in get_args(annotation) else []
        return " or ".join([*told, *none])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in get_args(annotation))
    if origin in (dict, Mapping):
        return f"section of names, each with {kind_told(get_args(annotation)[1])}"
    if origin is tuple:
        return f"list of {kind_told(get_args(annotation)[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    plain = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`", Any: "anything"}
    return " ".join([plain[annotation], *_limits(limits)])


def _limits(limits: Iterable[Any]) -> Iterator[str]:
    words = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    for limit in limits:
        for name, sign in words.items():
            if (value := getattr(limit, name, None)) is not None:
                yield f"{sign} {'2^63' if value == 2**63 else f'{value:g}'}"


def value_told(value: Any) -> str:
    """A default as a recipe would write it."""
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "its own defaults"
    plain: dict[Any, str] = {None: "null", True: "true", False: "false", (): "[]"}
    return f"`{plain[value] if isinstance(value, bool | None | tuple) else value}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines) + "\n"


def keys_of(settings: type[BaseModel], where: str, meaning: Words | None = None) -> list[list[str]]:
    """A row for each key: full name, what may stand there, default, sentence."""
    rows = []
    for name, field in settings.model_fields.items():
        inner = field.annotation
        if meaning is not None and isinstance(inner, type) and issubclass(inner, BaseModel):
            rows += keys_of(inner, f"{where}.{name}", partial(_under, meaning, name))
            continue
        sentence = meaning(name) if meaning else (field.description or "–")
        told = kind_told(inner, field.metadata)
        rows.append([f"`{where}.{name}`".replace("`.", "`"), told, value_told(field.get_default()), sentence])
    return rows


def _under(meaning: Words, above: str, name: str) -> str:
    return meaning(f"{above}.{name}")


HEAD = ("key", "may be", "default", "what it does")


def part_told(role: str, section: Mapping[str, str], task: Task) -> str:
    """A part: what it is, its keys, its equations."""
    part = class_of(role, section)
    schema = schema_of(part, GIVEN[role], NESTED)
    named = ", ".join(f"{key}: {value}" for key, value in section.items())
    lines = [f"### `{role}: {{{named}}}`\n\n{_first_line(part.__doc__)}\n\n"]
    if rows := keys_of(schema, f"model.{role}", lambda name: MEANINGS.get(name, "–")):
        lines.append(table(HEAD, rows))
    usual = _equations(role, section, task, {})
    lines.append("```text\n" + "\n".join(usual) + "\n```\n\n")
    for change in _changes(schema):
        other = [line for line in _equations(role, section, task, change) if line not in usual]
        if other:
            told = ", ".join(f"{key}: {str(value).lower()}" for key, value in change.items())
            lines.append(f"With `{told}`:\n\n```text\n" + "\n".join(other) + "\n```\n\n")
    return "".join(lines)


def _first_line(text: str | None) -> str:
    """The first line of a docstring; an equation becomes code."""
    line = (text or "").strip().splitlines()[0]
    return f"`{line.rstrip('.')}`" if "=" in line.split(":")[0] else line


def _changes(schema: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """What else a part can be told to be, one key at a time."""
    for name, field in schema.model_fields.items():
        if get_origin(field.annotation) is Literal:
            yield from ({name: value} for value in get_args(field.annotation) if value != field.default)
        elif field.annotation is bool:
            yield {name: not field.default}
        elif name == "layers":
            yield {name: 2}


def _equations(role: str, section: Mapping[str, str], task: Task, change: Mapping[str, Any]) -> list[str]:
    """Asked of a tiny network with this part in it."""
    chosen: dict[str, Mapping[str, Any]] = {"encoder": {}, "bridge": {"kind": "initial"}, "decoder": {}}
    chosen[role] = {**section, **change}
    parts = {}
    for each, given in chosen.items():
        kinds = resolved(each, given, task)[0]
        sizes = {key: TINY for key in kinds if key == "size"}
        words = {"embedding": {"size": TINY}} if "embedding" in kinds else {}
        parts[each], faults = resolved(each, {**given, **sizes, **words}, task)
        assert not faults, faults
    network = network_of(ModelSettings(**parts), {"source": TINY, "target": TINY})
    made: Any = network.decoder.bridge if role == "bridge" else getattr(network, role)
    assert isinstance(made, Part)
    return made.equations()


def _usual_kinds(role: str) -> str:
    """The kind where a recipe names none, for each task."""
    if role == "decoder":
        return "`sequence`"
    by_kind: dict[str, list[str]] = {}
    for task in TASKS.values():
        by_kind.setdefault(getattr(task, role), []).append(task.name)
    most = max(by_kind, key=lambda kind: len(by_kind[kind]))
    others = [f"`{kind}` for {', '.join(tasks)}" for kind, tasks in by_kind.items() if kind != most]
    return "; ".join([f"`{most}`", *others])


def _model() -> str:
    """The model jar: each part that a recipe can name."""
    told = [
        "The keys of a part are the parameters of its constructor. A section that is left out has the defaults.\n\n",
        table(HEAD, [_kind_row(role) for role in TABLES]),
    ]
    for role, kinds in TABLES.items():
        told.append(f"## {role.capitalize()}s\n\n")
        for kind in kinds:
            task = next((task for task in TASKS.values() if task.encoder == kind), TASKS["translation"])
            scores = [{"score": score} for score in ATTENTIONS] if kind == "attention" else [{}]
            told += [part_told(role, {"kind": kind, **score}, task) for score in scores]
    return "".join(told)


def _kind_row(role: str) -> list[str]:
    kinds = ", ".join(f"`{kind}`" for kind in TABLES[role])
    return [f"`model.{role}.kind`", kinds, _usual_kinds(role), ModelSettings.model_fields[role].description or "–"]


def _metrics() -> str:
    needs = {"links": "true alignments and attention", "likelihood": "nothing but the model", "candidates": "outputs"}
    rows = []
    for metric in METRICS.values():
        compute: Any = getattr(metric.compute, "func", metric.compute)
        name = "accuracy@k" if metric.name == "accuracy@1" else metric.name
        rows.append([f"`{name}`", metric.better, " ".join(needs[need] for need in metric.needs), _sentence(compute)])
    return table(("metric", "better", "needs", "what it is"), rows)


def _sentence(thing: Any) -> str:
    return str(thing.__doc__ or "").strip().splitlines()[0]


def _jar(name: str, settings: type[BaseModel]) -> str:
    return f"{settings.__doc__}\n\n" + table(HEAD, keys_of(settings, name))


def _samples() -> str:
    rows = [
        [
            f"`{name}`",
            ", ".join(f"`{column}`" for column in (made.source, made.target, made.alignment) if column),
            "–" if made.longest is None else f"{made.longest} {made.tokens}",
            made.description,
        ]
        for name, made in SAMPLES.items()
    ]
    return table(("task", "columns", "`longest` when absent", "what it is"), rows)


def settings_page() -> str:
    """docs/settings.md."""
    tasks = table(
        ("task", "what it is", "metrics when a recipe names none"),
        [[f"`{t.name}`", f"{t.number}: {t.title}", ", ".join(f"`{m}`" for m in t.metrics)] for t in TASKS.values()],
    )
    searches = table(("kind", "what it gives"), [[f"`{kind}`", _sentence(found)] for kind, found in KINDS.items()])
    top = [row for row in keys_of(Recipe, "") if row[0] in ("`task`", "`expect`")]
    return "".join(
        [
            f"# Every key of a recipe\n\n{NOTE}\n",
            "A recipe is one YAML file with six jars. Write only what differs from the defaults below. Any key can also\n",
            "be set for one run: `sixjars train RECIPE learning.rate=5e-4 model.encoder.layers=2`.\n\n",
            f"# Task\n\n{table(HEAD, top)}{tasks}",
            f"# Data\n\n{_jar('data', DataSettings)}## `data.source` and `data.target`\n\n",
            _jar("data.source", TextSettings),
            f"## `data.sample`\n\n{_jar('data.sample', SampleSettings)}{_samples()}",
            f"# Model\n\n{_model()}# Loss\n\n{_jar('loss', LossSettings)}",
            f"# Learning\n\n{_jar('learning', LearningSettings)}",
            f"# Evaluation\n\n{_jar('evaluation', EvaluationSettings)}## `evaluation.search`\n\n",
            f"{_jar('evaluation.search', SearchSettings)}{searches}## Metrics\n\n{_metrics()}",
        ]
    ).rstrip("\n") + "\n"


def header_of(text: str) -> dict[str, str]:
    """What a recipe says of itself at its top: `shows`, `run`, `cost`, `expect`; indented lines go on."""
    first, *rest = [line[1:] for line in text.splitlines() if line.startswith("#")]
    told, last = {"shows": first.strip()}, "shows"
    for line in rest:
        word, _, after = line.strip().partition(" ")
        if word in ("Run", "Cost", "Expect"):
            last = word.lower()
            told[last] = after.strip()
        elif line.startswith("   "):
            told[last] += f" {line.strip()}"
    return told


def parts_in_short(model: ModelSettings) -> str:
    """Encoder → bridge → decoder, as few words as tell recipes apart."""
    encoder, bridge, decoder = model.encoder, model.bridge, model.decoder
    heard = f"{bridge['score']} attention" if bridge["kind"] == "attention" else bridge["kind"].replace("_", " ")
    copied = ", s_0 = h_T" if bridge["start"] == "copy" else ""
    return f"{_recurrent(encoder)} → {heard}{copied} → {_recurrent(decoder)}"


def _recurrent(section: Mapping[str, Any]) -> str:
    if "cell" not in section:
        return "learned s_0" if section["kind"] == "none" else str(section["kind"])
    direction = {"backward": " reversed", "both": " both ways"}.get(section.get("direction", ""), "")
    layers = f"{section['layers']} × " if section["layers"] > 1 else ""
    frozen = "" if section["embedding"]["tuned"] else ", frozen vectors"
    return f"{layers}{section['cell'].upper()} {section['size']}{direction}{', tied' if section.get('tied') else ''}{frozen}"


def recipes_page() -> str:
    """src/sixjars/recipes/README.md."""
    told = [
        f"# The recipes that come with the package\n\n{NOTE}\n",
        "Train one by its name: `sixjars train translation/sample_attention`. `sample` is the made-up corpus of the\n",
        "system, so those need no data. The others read files: `data.folder=FOLDER` says where they are.\n\n",
    ]
    for task in TASKS.values():
        rows = []
        for name, path in packaged().items():
            if name.startswith(f"{task.name}/"):
                says = header_of(path.read_text(encoding="utf-8"))
                costs, expects = says.get("cost") or "–", says.get("expect") or "–"
                short = parts_in_short(read_recipe(name).model)
                rows.append([f"[`{name}`]({name}.yaml)", says["shows"], short, costs, expects])
        told.append(f"## {task.number} {task.name}: {task.title}\n\n")
        told.append(table(("recipe", "what it shows", "encoder → bridge → decoder", "cost", "expect"), rows))
    return "".join(told).rstrip("\n") + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "src/sixjars/recipes/README.md": recipes_page,
}


def stale(root: Path) -> dict[str, str]:
    """The pages below `root` that do not say what the code says, with what they should say."""
    wanted = {name: page() for name, page in PAGES.items()}
    return {
        name: text
        for name, text in wanted.items()
        if not (root / name).is_file() or (root / name).read_text(encoding="utf-8") != text
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is stale, or only name it."""
    parser = argparse.ArgumentParser(description="Write the pages that the code itself can tell.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    asked = parser.parse_args(arguments)
    old = stale(asked.root)
    for name, text in old.items():
        sys.stderr.write(f"{name} is out of date; run `make docs`.\n" if asked.check else f"wrote {name}\n")
        if not asked.check:
            (asked.root / name).write_text(text, encoding="utf-8")
    return 1 if asked.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
