"""Writes the pages that the code itself can tell: docs/settings.md and src/sixjars/recipes/README.md.

And the tables of measured figures in the other pages, from benchmarks/results: what stands between
`<!-- table: TOPIC/TABLE -->` and `<!-- end -->`.

python docs/generate.py           write them
python docs/generate.py --check   only say which are out of date; exit 1 if one is
"""

import argparse
import ast
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import torch
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sixjars.data.fields import FIELDS
from sixjars.decoding import KINDS
from sixjars.errors import RecipeError
from sixjars.evaluation.metrics import METRICS
from sixjars.model.build import GIVEN, TABLES, Network, build, is_section, schema_of
from sixjars.model.visual import SMALL, shape_of
from sixjars.recipe.data import FieldSettings
from sixjars.recipe.files import packaged
from sixjars.recipe.schema import Settings
from sixjars.recipe.sections import ModelSettings, Recipe
from sixjars.runs.recipes import Blueprint, read_recipe, recipe_of
from sixjars.samples import SAMPLES
from sixjars.tasks import TASKS, Slot, Task

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Written by docs/generate.py; run `make docs` after a change. -->\n"
HEAD = ("key", "may be", "default", "what it does")
TINY = 4
"""Sizes of the networks that are built to be asked for their equations."""
MEANINGS: dict[str, str] = yaml.safe_load(
    (ROOT / "docs" / "parameters.yaml").read_text(encoding="utf-8")
)
RATIONALES = {
    "rationale_sentence": "Attention on the sentence that decides the class.",
    "rationale_word": "Of the attention on that sentence, the share of the word that decides.",
    "rationale_word_near": "The same, with the words right before and after it.",
}
"""A sentence for each metric that shares its function with others; averaged over documents with a rationale."""

Sentences = Callable[[str], str]


def kind_text(annotation: Any, limits: Iterable[Any] = ()) -> str:
    """A type and its limits in words."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        flat = [
            each
            for given in inside[1:]
            for each in (given.metadata if isinstance(given, FieldInfo) else [given])
        ]
        return kind_text(inside[0], [*limits, *flat])
    if origin in (Union, UnionType):
        lines = [kind_text(inner, limits) for inner in inside if inner is not NoneType]
        return " or ".join([*lines, *(["`null`"] if NoneType in inside else [])])
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in inside)
    if origin in (dict, tuple):
        many = (
            kind_text(inside[0])
            .replace("number", "numbers")
            .replace("text", "texts")
            .replace("integer", "integers")
        )
        return f"section (name: {kind_text(inside[1])})" if origin is dict else f"list of {many}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    plain = {int: "integer", float: "number", str: "text", bool: "`true`, `false`"}
    return f"{plain[annotation]} {' and '.join(_limits(limits))}".strip()


def _limits(limits: Iterable[Any]) -> Iterator[str]:
    for limit in limits:
        for name, sign in {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}.items():
            if (value := getattr(limit, name, None)) is not None and value != 2**63:
                yield f"{sign} {value:,}" if isinstance(value, int) else f"{sign} {value:g}"


def value_text(value: Any) -> str:
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
    return (
        "".join(
            f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n"
            for line in lines
        )
        + "\n"
    )


def _section(field: FieldInfo) -> type[BaseModel] | None:
    """The settings that stand below a key, if some do."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next(
        (kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None
    )


def keys_of(
    settings: type[BaseModel], where: str, sentences: Sentences | None = None
) -> list[list[str]]:
    """A row for each key: its full name, what may stand there, its default, its sentence."""
    rows = []
    for name, field in settings.model_fields.items():
        inner = _section(field)
        if field.exclude:  # the fields of a task have sections of their own
            continue
        if (
            sentences is not None and inner is not None
        ):  # a module inside a component has no page of its own
            rows += keys_of(inner, f"{where}.{name}", partial(_below, sentences, name))
            continue
        sentence = _description(settings, name) if sentences is None else sentences(name)
        kind = kind_text(field.annotation, field.metadata)
        rows.append([f"`{where}.{name}`", kind, value_text(field.get_default()), sentence])
    return rows


def _description(settings: type[BaseModel], name: str) -> str:
    """The sentence under a key, or under the key of the same name that it replaces."""
    every = (sentences_of(kind) for kind in settings.__mro__ if issubclass(kind, Settings))
    return next((sentences[name] for sentences in every if name in sentences), "–")


@cache
def sentences_of(settings: type[Settings]) -> dict[str, str]:
    """The sentence under each key, read in the source: nothing else keeps it, so that settings are loaded fast."""
    [section] = ast.parse(inspect.getsource(settings)).body
    assert isinstance(section, ast.ClassDef)
    found = {}
    for key, below in pairwise(section.body):
        match key, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                value=ast.Constant(value=str(sentence))
            ):
                found[name] = " ".join(sentence.split())
    return found


def _below(sentences: Sentences, above: str, name: str) -> str:
    return sentences(f"{above}.{name}")


def section_text(settings: type[BaseModel], where: str, depth: int) -> str:
    """A section of a recipe, then those inside it."""
    text = (settings.__doc__ or "").partition("\n\n    >>>")[0]  # no doctest
    lines = [f"{'#' * depth} `{where}`\n\n{text}\n\n", table(HEAD, keys_of(settings, where))]
    for name, field in settings.model_fields.items():
        if (below := _section(field)) and not field.exclude:
            lines.append(section_text(below, f"{where}.{name}", depth + 1))
    return "".join(lines) + EXTRAS.get(where, str)()


ALSO = {"features": ["image", "video"]}
"""Kinds that no task has by itself, and the fields that may be of them."""


def _slots() -> dict[str, list[Slot]]:
    """The fields that tasks have, by their kind."""
    found: dict[str, dict[str, Slot]] = {kind: {} for kind in FIELDS}
    for task in (TASKS["translation"], *TASKS.values()):
        for slot in task.slots:
            found[slot.kind].setdefault(slot.name, slot)
    return {kind: list(slots.values()) for kind, slots in found.items()}


def _fields() -> str:
    """A section for each kind of field, with the names that it has in tasks, or what makes a field of that kind."""
    lines = []
    for kind, slots in _slots().items():
        own = [slot.name for slot in slots] or ALSO[kind]
        names = [f"`data.{name}`" for name in own]
        title = ", ".join(names[:-1]) + (" and " if names[1:] else "") + names[-1]
        title += "" if slots else f" of `kind: {kind}`"
        settings: type[FieldSettings] = FIELDS[kind].settings_class
        rows = keys_of(settings, f"data.{own[0]}")
        lines.append(
            f"### {title}\n\n{(settings.__doc__ or '').strip().splitlines()[0]}\n\n{table(HEAD, rows)}"
        )
    return "".join(lines)


def network_of(task: Task, model: Mapping[str, Any]) -> Network:
    """A network without weights, for data of the task that nobody has."""
    first = task.inputs[0].name if task.inputs else ""
    fields: dict[str, dict[str, Any]] = {slot.name: {} for slot in task.slots}
    if task.segments != "none":
        fields[first]["segments"] = task.segments
    recipe = recipe_of(
        {"task": task.name, "data": {"sample": {}, **fields}, "model": dict(model)}, "docs"
    )
    blueprint = Blueprint.of(recipe)
    with torch.device("meta"):  # only its equations are wanted
        return build(
            blueprint.plan,
            blueprint.fields.mapped(lambda field: field.assumed()).facts(),
            fresh=False,
        )


def _equations(
    role: str, section: Mapping[str, Any], task: Task, bridge: str = "initial"
) -> list[str]:
    """Those of a tiny network with this component in it."""
    chosen: dict[str, dict[str, Any]] = {"encoder": {}, "bridge": {"kind": bridge}, "decoder": {}}
    chosen[role] = dict(section)
    for each, given in chosen.items():
        component = TABLES[each][given.get("kind", getattr(task, each))]
        schema = schema_of(component, {*GIVEN[each], *_facts(task, each)}, is_section)
        sizes = {
            name: TINY
            for name in ("size", "attention")
            if name in schema.model_fields and each != "bridge"
        }
        inside = {name: {"size": TINY} for name in ("embedding",) if _is_section(schema, name)}
        encoders = [name for name in ("words", "sentence") if _is_section(schema, name)]
        words = {name: {"size": TINY, "embedding": {"size": TINY}} for name in encoders}
        chosen[each] = {**sizes, **inside, **words, **given}
    network = network_of(task, chosen)
    made: Any = network.decoder.bridge if role == "bridge" else getattr(network, role)
    lines: list[str] = made.equations()
    return lines


def _is_section(schema: type[BaseModel], name: str) -> bool:
    return name in schema.model_fields and _section(schema.model_fields[name]) is not None


def _facts(task: Task, role: str) -> set[str]:
    """The parameters that the data of a task fills in."""
    slots = {"encoder": task.inputs, "bridge": (), "decoder": (task.output,)}[role]
    return {fact for slot in slots for fact in FIELDS[slot.kind].fact_names}


INITIAL = {"standardize"}
"""Keys that change initial values, and no equation."""


def _changes(schema: type[BaseModel]) -> Iterator[dict[str, Any]]:
    """What else a component can be, one key at a time."""
    for name, field in schema.model_fields.items():
        if get_origin(field.annotation) is Literal:
            yield from (
                {name: value} for value in get_args(field.annotation) if value != field.default
            )
        elif field.annotation is bool and name not in INITIAL:
            yield {name: not field.default}
        elif name == "layers":
            yield {name: 2}


def component_text(role: str, kind: str, task: Task) -> str:
    """A component: what it is, its keys, its equations."""
    component: Any = TABLES[role][kind]
    schema = schema_of(component, {*GIVEN[role], *_facts(task, role)}, is_section)

    def sentence(key: str) -> str:
        names = key.split(".")
        known = [f"{component.__name__}.{key}", *(".".join(names[at:]) for at in range(len(names)))]
        return next((MEANINGS[name] for name in known if name in MEANINGS), "–")

    usual = _equations(role, {"kind": kind}, task)
    lines = [
        f"### `{role}: {{kind: {kind}}}`\n\n{_opening(component)} In Python: `{component.__name__}`.\n\n"
    ]
    lines += [
        table(HEAD, keys_of(schema, f"model.{role}", sentence)),
        "```text\n",
        *(f"{line}\n" for line in usual),
    ]
    for change in _changes(schema):
        if other := _difference(role, kind, change, task):
            [(key, value)] = change.items()
            lines += [f"\n{key}: {str(value).lower()}\n", *(f"    {line}\n" for line in other)]
    return "".join([*lines, "```\n\n"])


def _difference(role: str, kind: str, change: Mapping[str, Any], task: Task) -> list[str]:
    """The equations that a change brings; some changes need attention."""
    for bridge in ("initial", "attention"):
        try:
            changed = _equations(role, {"kind": kind, **change}, task, bridge)
        except RecipeError:
            continue
        usual = _equations(role, {"kind": kind}, task, bridge)
        return [line for line in changed if line not in usual]
    raise ValueError(f"no bridge fits model.{role} with {change}")


def _opening(thing: Any) -> str:
    """The first line of a docstring, with an equation at its start as code."""
    line = str(thing.__doc__ or "").strip().splitlines()[0]
    equation, colon, rest = line.rstrip(".").partition(": ")
    is_prose = "=" not in equation or re.match(r"[A-Z][a-z]+[ :]", line)
    return line if is_prose else f"`{equation}`{colon}{rest}."


def _model() -> str:
    """The model section: each component that a recipe can name."""
    about = (
        "encoder, bridge, decoder. The keys of a component are the parameters of its constructor."
    )
    lines = [f"## `model`\n\nJar 3: {about}\n\n", table(HEAD, [_kind_row(role) for role in TABLES])]
    for role, kinds in TABLES.items():
        for kind in kinds:
            usual = [TASKS["translation"], *TASKS.values()]
            task = next((task for task in usual if getattr(task, role) == kind), usual[0])
            if (
                role == "bridge" and kind != "two_level"
            ):  # the tasks that have them by default attend to images
                task = TASKS["translation"]
            lines.append(component_text(role, kind, task))
    return "".join(lines)


def _kind_row(role: str) -> list[str]:
    """The kinds of a component, and the one that each task has where a recipe names none."""
    by_kind: dict[str, list[str]] = {}
    for task in TASKS.values():
        by_kind.setdefault(getattr(task, role), []).append(task.name)
    most, *others = sorted(by_kind, key=lambda kind: -len(by_kind[kind]))
    usual = "; ".join([f"`{most}`", *(f"`{kind}` for {_code(by_kind[kind])}" for kind in others)])
    kinds = f"{_code(TABLES[role])}, or a class of yours"
    return [f"`model.{role}.kind`", kinds, usual, _description(ModelSettings, role)]


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _metrics() -> str:
    needs = {
        "candidates": "what search finds",
        "familiar": "the training data",
        "focus": "true boxes, attention",
        "given": "the input",
        "rationale": "true rationales, attention",
        "likelihood": "no search",
        "links": "true alignments, attention",
    }
    rows = []
    for metric in METRICS.values():
        compute = getattr(metric.compute, "func", metric.compute)
        name = metric.name.replace("@1", "@k")
        wanted = ", ".join(needs[need] for need in sorted(metric.needs))
        rows.append([f"`{name}`", metric.better, wanted, RATIONALES.get(name) or _opening(compute)])
    floors = [row for row in keys_of(Recipe, "") if row[0] == "`.expect`"]
    expect = table(HEAD, [[f"`{row[0][2:]}", *row[1:]] for row in floors])
    return f"### Metrics\n\n{table(('metric', 'better', 'needs', 'what it is'), rows)}### `expect`\n\n{expect}"


def _searches() -> str:
    return table(
        ("kind", "what it finds"), [[f"`{kind}`", _opening(found)] for kind, found in KINDS.items()]
    )


def _samples() -> str:
    rows = []
    kinds = {name: made for name, made in SAMPLES.items() if "/" in name}
    for name, made in SAMPLES.items():
        if (
            name in kinds or made not in kinds.values()
        ):  # the first of several kinds has a name of its own
            task, _, kind = name.partition("/")
            usual = " or none" if made is SAMPLES[task] else ""
            longest = "none" if made.longest is None else f"{made.longest} {made.tokens}"
            named = f"`{kind}`{usual}" if kind else "none"
            rows.append([f"`{task}`", named, _code(made.columns), longest, made.description])
    return table(("task", "`kind`", "columns", "`longest` when absent", "what it is"), rows)


EXTRAS: Mapping[str, Callable[[], str]] = {
    "data": _fields,
    "data.sample": _samples,
    "evaluation.search": _searches,
    "evaluation": _metrics,
}
"""Tables that follow a section."""


@cache
def settings_page() -> str:
    """docs/settings.md."""
    tasks = [
        [_code([t.name, *t.also]), f"{t.number}: {t.title}", _code(t.metrics)]
        for t in TASKS.values()
    ]
    lines = [
        f"# Every key of a recipe\n\n{NOTE}\n",
        "A recipe is one YAML file with six sections (the six jars): task, data, model, loss, learning, evaluation.\n",
        "Write only what differs from the defaults. Any key can also be set for one run:\n",
        "`sixjars train RECIPE learning.rate=5e-4 model.encoder.layers=2`.\n\n",
        "## `task`\n\nJar 1: the system. Required.\n\n",
        table(("task", "what it is", "metrics when a recipe names none"), tasks),
    ]
    for name, field in Recipe.model_fields.items():
        if below := _section(field):
            lines.append(_model() if below is ModelSettings else section_text(below, name, 2))
    return "".join(lines).rstrip("\n") + "\n"


def header_of(text: str) -> dict[str, str]:
    """What a recipe says of itself at its top: `shows`, `run`, `cost`, `expect`; an indented line goes on."""
    first, *rest = [line[1:] for line in text.splitlines() if line.startswith("#")]
    header, last = {"shows": first.strip()}, "shows"
    for line in rest:
        word, _, after = line.strip().partition(" ")
        if word in ("Run", "Cost", "Expect"):
            last = word.lower()
            header[last] = after.strip()
        elif line.startswith("   "):
            header[last] += f" {line.strip()}"
    return header


def model_in_short(recipe: Recipe) -> str:
    """Encoder → bridge → decoder, in as few words as tell recipes apart."""
    bridge = recipe.model.bridge
    named = {
        "attention": f"{bridge.get('score')} attention",
        "location": "location-sensitive attention",
        "pooling": "attention pooling",
        "two_level": "two-level attention",
    }
    conditioned = named.get(bridge["kind"], bridge["kind"].replace("_", " "))
    copied = ", s_0 = h_T" if bridge["start"] == "copy" else ""
    return (
        f"{_encoder_in_short(recipe)} → {conditioned}{copied} → {_decoder_in_short(recipe.model)}"
    )


def _encoder_in_short(recipe: Recipe) -> str:
    section = recipe.model.encoder
    if section["kind"] == "none":
        return "learned s_0"
    if section["kind"] == "image":
        return _backbone_in_short(recipe, section["backbone"])
    if section["kind"] == "image_question":
        query = ", queried by the question" if section["summary"] == "question" else ""
        image = _backbone_in_short(recipe, section["image"]["backbone"])
        return f"{image} + {_rnn_in_short(section['question'])}{query}"
    if section["kind"] == "video":
        read = "frames and clips" if section["reads"] == "both" else section["reads"]
        return f"{_rnn_in_short(section)} over {read} ({_backbone_in_short(recipe, section['backbone'])})"
    return _texts_in_short(section)


def _texts_in_short(section: Mapping[str, Any]) -> str:
    """An encoder of words, of one text or of two."""
    if section["kind"] == "pair":
        by = ", compared by word" if section["compare"] == "words" else ""
        return f"{_rnn_in_short(section['sentence'])} over each sentence{by}"
    if section["kind"] == "bag":
        return "bag of words and pairs"
    if section["kind"] == "wide_deep":
        return f"{_rnn_in_short(section['deep'])} + bag of words and pairs"
    if section["kind"] == "hierarchy":
        pooled = ", attention pooling of words" if section["pool"] == "attention" else ""
        return f"words {_rnn_in_short(section['words'])}, segments {_rnn_in_short(section)}{pooled}"
    return _rnn_in_short(section)


def _decoder_in_short(model: ModelSettings) -> str:
    if model.decoder["kind"] == "pointer":
        some = ", of some points" if model.decoder["visits"] == "some" else ""
        return f"{_rnn_in_short(model.decoder)}, pointer{some}"
    if model.decoder["kind"] != "label":
        return _rnn_in_short(model.decoder)
    return "label" if model.bridge["start"] == "copy" else f"{model.decoder['size']} hidden, label"


def _backbone_in_short(recipe: Recipe, backbone: Mapping[str, Any]) -> str:
    """The backbone, and the cells of a pretrained one where they are attended to."""
    if backbone["name"] == SMALL:
        return "small CNN"
    pixels = recipe.data.fields[next(iter(recipe.data.fields))].size  # type: ignore[attr-defined]
    shape = shape_of(backbone["name"], layer=backbone["layer"], size=pixels)
    attended = Blueprint.of(recipe).plan.bridge.has_attention and "image" in recipe.data.fields
    cells = f" {shape.height}×{shape.width}" if attended else ""
    tuned = "" if backbone["frozen"] else ", fine-tuned"
    return f"{NETWORKS.get(backbone['name'], backbone['name'])}{cells}{tuned}"


NETWORKS = {"efficientnet_lite0": "EfficientNet-Lite0"}
"""As their makers write them."""


def _rnn_in_short(section: Mapping[str, Any]) -> str:
    layers = f"{section['layers']} × " if section["layers"] > 1 else ""
    direction = {"backward": " backward", "both": " bidirectional"}.get(
        section.get("direction", ""), ""
    )
    embedding = section.get("embedding")
    frozen = ", frozen vectors" if isinstance(embedding, Mapping) and embedding["frozen"] else ""
    extras = (
        "".join(f", {key}" for key in ("tied", "copying", "conditional") if section.get(key))
        + frozen
    )
    return f"{layers}{section['cell'].upper()} {section['size']}{direction}{extras}"


def _optimistic(recipe: Recipe) -> str:
    """Said of a score where no other rows are left for it than those that chose the checkpoint."""
    data = recipe.data
    has_test = (
        data.sample
        or data.test is not None
        or (data.split is not None and data.split.test is not None)
    )
    return "" if has_test else "; this set chose the checkpoint too"


@cache
def recipes_page() -> str:
    """src/sixjars/recipes/README.md."""
    lines = [
        f"# The recipes that come with the package\n\n{NOTE}\n",
        "Train one by its name: `sixjars train translation/sample_attention`. Those called `sample` generate a\n",
        "synthetic corpus and need no data. The others read files; `data.folder=FOLDER` says where those are.\n\n",
    ]
    for task in TASKS.values():
        rows = []
        for name, path in packaged().items():
            if name.startswith(f"{task.name}/"):
                says = header_of(path.read_text(encoding="utf-8"))
                recipe = read_recipe(name)
                link = f"[`{name.partition('/')[2]}`]({name}.yaml)"
                expect = says["expect"] + _optimistic(recipe) if says.get("expect") else "–"
                rows.append(
                    [link, says["shows"], model_in_short(recipe), says.get("cost") or "–", expect]
                )
        lines.append(f"## {task.number} `{task.name}`: {task.title}\n\n")
        lines.append(
            table(("recipe", "what it shows", "encoder → bridge → decoder", "cost", "expect"), rows)
        )
    return "".join(lines).rstrip("\n") + "\n"


def _kept_tables() -> Any:
    """benchmarks/kept.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("kept", ROOT / "benchmarks" / "kept.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURED = re.compile(
    r"(?P<mark><!-- table: (?P<topic>\w+)/(?P<table>\w+) -->\n).*?(?P<end><!-- end -->)", re.DOTALL
)
"""A table of measured figures in a page."""


@cache
def _topics() -> Any:
    kept = _kept_tables()
    return kept, kept.topics()


def with_tables(text: str) -> str:
    """A page with its tables as benchmarks/results has them."""
    kept, topics = _topics()

    def current(mark: re.Match[str]) -> str:
        topic = topics[mark["topic"]]
        return f"{mark['mark']}\n{kept.markdown(topic, topic.tables[mark['table']])}\n{mark['end']}"

    return MEASURED.sub(current, text)


def _measured_page(name: str) -> str:
    return with_tables((ROOT / name).read_text(encoding="utf-8"))


def _measured_pages() -> Iterator[str]:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if MEASURED.search(path.read_text(encoding="utf-8")):
            yield path.relative_to(ROOT).as_posix()


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "src/sixjars/recipes/README.md": recipes_page,
    **{name: partial(_measured_page, name) for name in _measured_pages()},
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
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 if a page is out of date"
    )
    parser.add_argument("--root", type=Path, default=ROOT, help="the project's folder")
    asked = parser.parse_args(arguments)
    old = stale(asked.root)
    for name, text in old.items():
        sys.stderr.write(
            f"{name} is out of date; run `make docs`.\n" if asked.check else f"wrote {name}\n"
        )
        if not asked.check:
            (asked.root / name).write_text(text, encoding="utf-8")
    return 1 if asked.check and old else 0


if __name__ == "__main__":
    sys.exit(main())
