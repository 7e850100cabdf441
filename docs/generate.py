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

from sixjars.evaluation.metrics import METRICS
from sixjars.evaluation.search import KINDS
from sixjars.model.backbones import SMALL, shape_of, usual_size_of
from sixjars.model.bridges import ATTENTIONS
from sixjars.model.build import GIVEN, NESTED, TABLES, build, class_of, resolved
from sixjars.recipe import ModelSettings, Recipe
from sixjars.recipe.files import packaged
from sixjars.recipe.schema import schema_of
from sixjars.runs.data import seeing_of
from sixjars.runs.recipes import read_recipe
from sixjars.samples import SAMPLES
from sixjars.tasks import LOOKING, TASKS, Task

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Written by docs/generate.py; run `make docs` after a change. -->\n"
HEAD = ("key", "may be", "default", "what it does")
TINY = 4
"""Sizes of the parts that are built to be asked for their equations."""
FACTS: dict[str, dict[str, Any]] = {
    **{name: {"vocabulary": TINY, "vectors": None} for name in ("source", "question", "target")},
    **{name: {"pixels": usual_size_of(SMALL), "cells": True, "pretrained": False} for name in ("image", "video")},
    "label": {"classes": TINY, "multi_label": False},
    "points": {"numbers": 2},
    "order": {},
}
"""What their data would say of each field."""

MEANINGS = {
    "cell": "The recurrent cell.",
    "size": "PointColumn in a state.",
    "TextEncoder.size": "PointColumn in a state of one direction.",
    "VideoEncoder.size": "PointColumn in a state of one direction, and in the features of a clip.",
    "HierarchyEncoder.size": "PointColumn in a state of one direction of the parts.",
    "PointsEncoder.size": "PointColumn in a state of one direction.",
    "NothingEncoder.size": "PointColumn in s_0.",
    "AdditiveAttention.size": "Hidden units: rows of U_att and W_att.",
    "AttentionPooling.size": "Hidden units: rows of W_att.",
    "TwoLevelAttention.size": "Hidden units of each level: rows of U_s and W_s, of U_w and W_w.",
    "LabelDecoder.size": "PointColumn in s_0, from which the label is judged.",
    "layers": "Cells on top of each other, each fed by the one below.",
    "direction": "Which way the source is read: from the first word, from the last, or both.",
    "VideoEncoder.direction": "Which way the film is read: from the first frame, from the last, or both.",
    "HierarchyEncoder.direction": "Which way the parts are read: from the first, from the last, or both.",
    "PointsEncoder.direction": "Which way the points are read: from the first, from the last, or both.",
    "dropout": "Share of numbers set to 0 while learning: between layers, and of what the part gives.",
    "ImageEncoder.dropout": "Share of the numbers of h_j and h_T set to 0 while learning.",
    "LabelDecoder.dropout": "Share of the numbers that the label is judged from set to 0 while learning.",
    "tied": "Whether the output matrix V is that of the embeddings; then `size` equals `embedding.size`.",
    "copying": "Whether words of the source can be written too, also those outside the vocabulary; needs attention.",
    "attention": "Hidden units of the pointer: rows of W_1 and W_2.",
    "visits": "`all` ends when every point was pointed at, and only then; with `some` the model itself says the end.",
    "pool": "The vector of a part: the last state of its words, or a mixture of all of them with learned attention.",
    "start": "The decoder's first state: made from h_T to any size, or h_T itself, which must then be of that size.",
    "embedding": "PointColumn in the vector that a point becomes before it is read.",
    "embedding.size": "PointColumn in a token's vector.",
    "embedding.dropout": "Share of a vector's numbers set to 0 while learning.",
    "embedding.tuned": "Whether pretrained vectors go on learning; `false` keeps them as they are.",
    "backbone.name": "What sees: `small` learns from nothing; `efficientnet_lite0` is pretrained (`sixjars[vision]`); "
    "or a network of an installed library: `torchvision/resnet50`, `timm/NAME`, `transformers/NAME`. The name alone "
    "may stand for the section.",
    "backbone.layer": "The layer whose maps are the cells; the backbone's usual one when absent. `small` has one only.",
    "backbone.tuned": "Whether pretrained weights learn too: not at all (then each file is seen once, and its features "
    "are kept), all of them, or from the named layer on.",
    "backbone.widths": "Of `small` alone: channels after each halving of the picture.",
    "reads": "What a step of the film is: the vector of a frame, the features of the clip around it, or both.",
    "summary": "What h_T is: the question and the picture, or the question alone, so that attention asks with it.",
    "image.dropout": "Share of the numbers of h_j and ĥ_I set to 0 while learning.",
    "question.cell": "The recurrent cell that reads the question.",
    "question.size": "PointColumn in a state of one direction of the question.",
    "question.direction": "Which way the question is read: from the first word, from the last, or both.",
    "words.cell": "The recurrent cell that reads the words of a part.",
    "words.size": "PointColumn in a state of one direction of the words.",
    "words.direction": "Which way the words of a part are read: from the first, from the last, or both.",
}
"""A sentence for each key of a part, because a signature has no room for one.

`Class.key` wins over `key`; a key of a part inside a part (`image.backbone.name`) may go without its first names.
"""

KEYS = {
    "key_sentence": "Attention on the sentence that decides the class.",
    "key_word": "Of the attention on that sentence, the share of the word that decides.",
    "key_word_near": "The same, with the words right before and after it.",
}
"""A sentence for each metric that shares its function with others; averaged over documents whose key is known."""

Sentences = Callable[[str], str]


def kind_told(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """A type and its limits in words."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        flat = [each for given in inside[1:] for each in (given.metadata if isinstance(given, FieldInfo) else [given])]
        return kind_told(inside[0], [*limits, *flat])
    if origin in (Union, UnionType):
        told = [kind_told(inner, limits) for inner in inside if inner is not NoneType]
        return " or ".join([*told, *(["`null`"] if NoneType in inside else [])])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if origin in (dict, tuple):
        many = kind_told(inside[0]).replace("number", "numbers").replace("text", "texts")
        return f"section (name: {kind_told(inside[1])})" if origin is dict else f"list of {many}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    plain = {int: "whole number", float: "number", str: "text", bool: "`true`, `false`"}
    return f"{plain[annotation]} {' and '.join(_limits(limits))}".strip()


def _limits(limits: Iterable[Any]) -> Iterator[str]:
    for limit in limits:
        for name, sign in {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}.items():
            if (value := getattr(limit, name, None)) is not None:
                yield f"{sign} {'2^63' if value == 2**63 else f'{value:g}'}"


def value_told(value: Any) -> str:
    """A default as a recipe would write it."""
    if value is PydanticUndefined:
        return "required"
    if isinstance(value, BaseModel):
        return "the defaults below"
    if isinstance(value, tuple):
        return f"`{list(value)}`"
    plain: dict[Any, str] = {None: "null", True: "true", False: "false"}
    return f"`{plain[value] if isinstance(value, bool | None) else value}`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; bars inside cells are escaped."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines) + "\n"


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The settings that stand below a key, if some do."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def keys_of(settings: type[BaseModel], where: str, sentences: Sentences | None = None) -> list[list[str]]:
    """A row for each key: its full name, what may stand there, its default, its sentence."""
    rows = []
    for name, field in settings.model_fields.items():
        inner = _section(field)
        if sentences is not None and inner is not None:  # a part inside a part has no page of its own
            rows += keys_of(inner, f"{where}.{name}", partial(_below, sentences, name))
            continue
        told = " ".join((field.description or "–").split()) if sentences is None else sentences(name)
        kind = kind_told(field.annotation, field.metadata)
        rows.append([f"`{where}.{name}`", kind, value_told(field.get_default()), told])
    return rows


def _below(sentences: Sentences, above: str, name: str) -> str:
    return sentences(f"{above}.{name}")


def jar_told(settings: type[BaseModel], where: Sequence[str], depth: int) -> str:
    """A section of a recipe, then those inside it; two sections with the same keys are told together."""
    title = ", ".join(f"`{name}`" for name in where[:-1]) + (" and " if where[1:] else "") + f"`{where[-1]}`"
    told = [f"{'#' * depth} {title}\n\n{settings.__doc__}\n\n", table(HEAD, keys_of(settings, where[0]))]
    inner: dict[type[BaseModel], list[str]] = {}
    for name, field in settings.model_fields.items():
        if below := _section(field):
            inner.setdefault(below, []).append(f"{where[0]}.{name}")
    told += [jar_told(below, names, depth + 1) for below, names in inner.items()]
    return "".join(told) + EXTRAS.get(where[0], str)()


def _equations(role: str, section: Mapping[str, Any], task: Task) -> list[str]:
    """Wanted of a tiny network with this part in it."""
    chosen: dict[str, Mapping[str, Any]] = {"encoder": {}, "bridge": {"kind": "initial"}, "decoder": {}, role: section}
    parts = {}
    for each, given in chosen.items():
        usual, _ = resolved(each, given, task)
        small = {"size": TINY, "embedding": {"size": TINY} if isinstance(usual.get("embedding"), dict) else TINY}
        parts[each], faults = resolved(each, {**given, **{key: small[key] for key in small if key in usual}}, task)
        assert not faults, faults
    network = build(ModelSettings(**parts), {name: FACTS[name] for name in task.fields})
    made: Any = network.decoder.bridge if role == "bridge" else getattr(network, role)
    lines: list[str] = made.equations()
    return lines


def _changes(schema: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """What else a part can be told to be, one key at a time."""
    for name, field in schema.model_fields.items():
        if get_origin(field.annotation) is Literal:
            yield from ({name: value} for value in get_args(field.annotation) if value != field.default)
        elif field.annotation is bool:
            yield {name: not field.default}
        elif name == "layers":
            yield {name: 2}


def part_told(role: str, section: Mapping[str, str], task: Task) -> str:
    """A part: what it is, its keys, its equations."""
    part = class_of(role, section)
    schema = schema_of(part, GIVEN[role], NESTED)

    def sentence(key: str) -> str:
        names = key.split(".")
        known = [f"{part.__name__}.{key}", *(".".join(names[at:]) for at in range(len(names)))]
        return next((MEANINGS[name] for name in known if name in MEANINGS), "–")

    named = ", ".join(f"{key}: {value}" for key, value in section.items())
    usual = _equations(role, section, task)
    told = [f"### `{role}: {{{named}}}`\n\n{_opening(part)} In Python: `{part.__name__}`.\n\n"]
    told += [table(HEAD, keys_of(schema, f"model.{role}", sentence)), "```text\n", *(f"{line}\n" for line in usual)]
    for change in _changes(schema):
        other = [line for line in _equations(role, {**section, **change}, task) if line not in usual]
        if other:
            [(key, value)] = change.items()
            told += [f"\n{key}: {str(value).lower()}\n", *(f"    {line}\n" for line in other)]
    return "".join([*told, "```\n\n"])


def _opening(thing: Any) -> str:
    """The first line of a docstring, with an equation at its start as code."""
    line = str(thing.__doc__ or "").strip().splitlines()[0]
    equation, colon, rest = line.rstrip(".").partition(": ")
    return line if "=" not in equation else f"`{equation}`{colon}{rest}."


def _model() -> str:
    """The model jar: each part that a recipe can name."""
    scored, _ = resolved("bridge", {"kind": "attention"}, TASKS["translation"])
    score = [
        "`model.bridge.score`",
        _code(ATTENTIONS),
        f"`{scored['score']}`",
        "Of attention: how positions are scored.",
    ]
    told = [
        "## `model`\n\nJar 3: encoder, bridge, decoder. The keys of a part are the parameters of its constructor.\n\n",
        table(HEAD, [*(_kind_row(role) for role in TABLES), score]),
    ]
    for role, kinds in TABLES.items():
        for kind in kinds:
            task = next((task for task in TASKS.values() if getattr(task, role) == kind), TASKS["translation"])
            if role == "bridge" and kind != "two_level":  # most tasks have others, and look at one level
                task = TASKS["translation"]
            scores = [{"score": name} for name in ATTENTIONS] if kind == "attention" else [{}]
            told += [part_told(role, {"kind": kind, **score}, task) for score in scores]
    return "".join(told)


def _kind_row(role: str) -> list[str]:
    """The kinds of a part, and the one that each task has where a recipe names none."""
    by_kind: dict[str, list[str]] = {}
    for task in TASKS.values():
        by_kind.setdefault(resolved(role, {}, task)[0]["kind"], []).append(task.name)
    most, *others = sorted(by_kind, key=lambda kind: -len(by_kind[kind]))
    usual = "; ".join([f"`{most}`", *(f"`{kind}` for {_code(by_kind[kind])}" for kind in others)])
    return [f"`model.{role}.kind`", _code(TABLES[role]), usual, ModelSettings.model_fields[role].description or "–"]


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _metrics() -> str:
    needs = {
        "candidates": "what search finds",
        "familiar": "the training data",
        "focus": "true boxes, attention",
        "given": "what was read",
        "key": "true keys, attention",
        "likelihood": "no search",
        "links": "true alignments, attention",
    }
    rows = []
    for metric in METRICS.values():
        compute = getattr(metric.compute, "func", metric.compute)
        name = metric.name.replace("@1", "@k")
        wanted = ", ".join(needs[need] for need in sorted(metric.needs))
        rows.append([f"`{name}`", metric.better, wanted, KEYS.get(name) or _opening(compute)])
    floors = [row for row in keys_of(Recipe, "") if row[0] == "`.expect`"]
    expect = table(HEAD, [[f"`{row[0][2:]}", *row[1:]] for row in floors])
    return f"### Metrics\n\n{table(('metric', 'better', 'needs', 'what it is'), rows)}### `expect`\n\n{expect}"


def _searches() -> str:
    return table(("kind", "what it finds"), [[f"`{kind}`", _opening(found)] for kind, found in KINDS.items()])


def _samples() -> str:
    rows = []
    kinds = {name: made for name, made in SAMPLES.items() if "/" in name}
    for name, made in SAMPLES.items():
        if name in kinds or made not in kinds.values():  # the first of several kinds is told by its own name
            task, _, kind = name.partition("/")
            usual = " or none" if made is SAMPLES[task] else ""
            longest = "none" if made.longest is None else f"{made.longest} {made.tokens}"
            named = f"`{kind}`{usual}" if kind else "none"
            rows.append([f"`{task}`", named, _code(made.columns), longest, made.description])
    return table(("task", "`kind`", "columns", "`longest` when absent", "what it is"), rows)


EXTRAS: Mapping[str, Callable[[], str]] = {
    "data.sample": _samples,
    "evaluation.search": _searches,
    "evaluation": _metrics,
}
"""Tables that follow a section."""


def settings_page() -> str:
    """docs/settings.md."""
    tasks = [[f"`{t.name}`", f"{t.number}: {t.title}", _code(t.metrics)] for t in TASKS.values()]
    told = [
        f"# Every key of a recipe\n\n{NOTE}\n",
        "A recipe is one YAML file, told as six jars. Write only what differs from the defaults. Any key can also\n",
        "be set for one run: `sixjars train RECIPE learning.rate=5e-4 model.encoder.layers=2`.\n\n",
        "## `task`\n\nJar 1: the system. Required.\n\n",
        table(("task", "what it is", "metrics when a recipe names none"), tasks),
    ]
    for name, field in Recipe.model_fields.items():
        if below := _section(field):
            told.append(_model() if below is ModelSettings else jar_told(below, [name], 2))
    return "".join(told).rstrip("\n") + "\n"


def header_of(text: str) -> dict[str, str]:
    """What a recipe says of itself at its top: `shows`, `run`, `cost`, `expect`; an indented line goes on."""
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


def parts_in_short(recipe: Recipe) -> str:
    """Encoder → bridge → decoder, in as few words as tell recipes apart."""
    bridge = recipe.model.bridge
    named = {
        "attention": f"{bridge.get('score')} attention",
        "pooling": "attention pooling",
        "two_level": "attention at both levels",
    }
    heard = named.get(bridge["kind"], bridge["kind"].replace("_", " "))
    copied = ", s_0 = h_T" if bridge["start"] == "copy" else ""
    return f"{_encoder_in_short(recipe)} → {heard}{copied} → {_decoder_in_short(recipe.model)}"


def _encoder_in_short(recipe: Recipe) -> str:
    section = recipe.model.encoder
    if section["kind"] == "none":
        return "learned s_0"
    if section["kind"] == "image":
        return _sight_in_short(recipe)
    if section["kind"] == "image_question":
        asks = ", the question asks" if section["summary"] == "question" else ""
        return f"{_sight_in_short(recipe)} + {_reading_in_short(section['question'])}{asks}"
    if section["kind"] == "video":
        read = "frames and clips" if section["reads"] == "both" else section["reads"]
        return f"{_reading_in_short(section)} over {read} ({_sight_in_short(recipe)})"
    if section["kind"] == "hierarchy":
        pooled = ", attention pooling of words" if section["pool"] == "attention" else ""
        return f"words {_reading_in_short(section['words'])}, parts {_reading_in_short(section)}{pooled}"
    return _reading_in_short(section)


def _decoder_in_short(model: ModelSettings) -> str:
    if model.decoder["kind"] == "pointer":
        some = ", of some points" if model.decoder["visits"] == "some" else ""
        return f"{_reading_in_short(model.decoder)}, pointer{some}"
    if model.decoder["kind"] != "label":
        return _reading_in_short(model.decoder)
    return "label" if model.bridge["start"] == "copy" else f"{model.decoder['size']} hidden, label"


def _sight_in_short(recipe: Recipe) -> str:
    """The backbone, and the cells of one that comes with weights where somebody looks at them."""
    [seeing] = seeing_of(recipe).values()
    sight = seeing.sight
    if sight["name"] == SMALL:
        return "small CNN"
    shape = shape_of(sight["name"], layer=sight["layer"], size=seeing.pixels)
    looked = recipe.model.bridge["kind"] in LOOKING and seeing.kind == "image"
    cells = f" {shape.height}×{shape.width}" if looked else ""
    tuned = ", tuned" if sight["tuned"] else ""
    return f"{NETWORKS.get(sight['name'], sight['name'])}{cells}{tuned}"


NETWORKS = {"efficientnet_lite0": "EfficientNet-Lite0"}
"""As their makers write them."""


def _reading_in_short(section: Mapping[str, Any]) -> str:
    layers = f"{section['layers']} × " if section["layers"] > 1 else ""
    direction = {"backward": " reversed", "both": " both ways"}.get(section.get("direction", ""), "")
    embedding = section.get("embedding")
    frozen = ", frozen vectors" if isinstance(embedding, Mapping) and not embedding["tuned"] else ""
    extras = (", tied" if section.get("tied") else "") + (", copying" if section.get("copying") else "") + frozen
    return f"{layers}{section['cell'].upper()} {section['size']}{direction}{extras}"


def recipes_page() -> str:
    """src/sixjars/recipes/README.md."""
    told = [
        f"# The recipes that come with the package\n\n{NOTE}\n",
        "Train one by its name: `sixjars train translation/sample_attention`. Those called `sample` make up their\n",
        "corpus and need no data. The others read files; `data.folder=FOLDER` says where those are.\n\n",
    ]
    for task in TASKS.values():
        rows = []
        for name, path in packaged().items():
            if name.startswith(f"{task.name}/"):
                says = header_of(path.read_text(encoding="utf-8"))
                short = parts_in_short(read_recipe(name))
                link = f"[`{name.partition('/')[2]}`]({name}.yaml)"
                rows.append([link, says["shows"], short, says.get("cost") or "–", says.get("expect") or "–"])
        told.append(f"## {task.number} `{task.name}`: {task.title}\n\n")
        told.append(table(("recipe", "what it shows", "encoder → bridge → decoder", "cost", "expect"), rows))
    return "".join(told).rstrip("\n") + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "src/sixjars/recipes/README.md": recipes_page,
}


def stale(root: Path) -> dict[str, str]:
    """The pages below `root` that do not say what the code says, each with what it should say."""
    wanted = {name: page() for name, page in PAGES.items()}
    return {name: text for name, text in wanted.items() if _read(root / name) != text}


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


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
