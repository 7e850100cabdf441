"""Nobody asks which kind a field, an output or a component is: what differs is in its own file, behind the contract."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from sixjars.data.field import Field
from sixjars.data.fields import FIELDS
from sixjars.flow.contracts import Component, Holds
from sixjars.flow.values import Layout
from sixjars.model.build import BASES, TABLES, is_section
from sixjars.recipe.data import FieldSettings
from sixjars.tasks import TASKS

SOURCE = Path(__file__).parents[2] / "src" / "sixjars"
ALLOWED = {
    # What the positions of a source are is a value that the encoder hands on, not its kind.
    (
        "evaluation/score.py",
        "encoded.layout.kind == 'grid'",
    ): "boxes of objects are compared with cells of an image",
    (
        "drawing/view_names.py",
        "table by 'frames', 'grid', 'points', 'regions', 'segments', 'words'",
    ): "the views that fit each",
    (
        "runs/prediction/prediction.py",
        "self.layout.kind == 'words'",
    ): "JSON leaves out the usual layout",
    # What a field holds is a fact of its contract, which a field of one's own declares too.
    ("runs/evaluate.py", "fields.output.holds != 'classes'"): "a table of classes needs classes",
    (
        "evaluation/faithfulness.py",
        "dataset.fields.inputs[network.encoder.positions_of()].holds == 'tokens'",
    ): "the same",
    (
        "starter/columns.py",
        "FIELDS[slot.kind].holds == 'tokens'",
    ): "numbers, dates and ids are no texts, and texts have pretrained vectors",
    ("starter/columns.py", "FIELDS[slot.kind].holds == 'classes'"): "labels have few values",
    (
        "starter/candidates.py",
        "getattr(field, 'vectors', None)",
    ): "pretrained vectors have the size they have",
    (
        "starter/sections.py",
        "'tokens' not in suggested",
    ): "a key that statistics suggest for texts",
    (
        "runs/explanation/explain.py",
        "isinstance(decoder, Generator)",
    ): "its contract says what is never output",
    # Hooks that a module inside a component may have, and settings that a field may have.
    (
        "model/build.py",
        "getattr(hints[name], 'given', ())",
    ): "a hook: parameters that the toolkit fills in",
    ("runs/training/network.py", "getattr(inner.kind, 'given', ())"): "the same",
    ("runs/recipes.py", "getattr(inner.kind, 'given', ())"): "the same",
    (
        "runs/recipes.py",
        "hasattr(inner.kind, 'extractor')",
    ): "a hook: whoever reads files has a feature extractor",
    (
        "runs/recipes.py",
        "hasattr(inner.kind, 'section_misfits')",
    ): "a hook: settings that do not fit the field",
    (
        "runs/training/network.py",
        "getattr(field.settings, 'vectors', None)",
    ): "where the vectors are read",
    (
        "runs/recipes.py",
        "getattr(source, 'segments', 'none')",
    ): "rationales are counted in sentences",
    # Words that mean something else.
    (
        "data/tables/folders.py",
        "table by 'image', 'video'",
    ): "columns of a format, which has files of these two alone",
    (
        "runs/recipes.py",
        "TASKS['translation']",
    ): "in place of an unknown task, so that other faults can be told",
}
"""Where, what, and why it may stay."""
OTHER_SETTINGS = {"segments", "pool", "tokens", "reads", "summary"}
"""Settings that have such words as values: a text without segments has `segments: none`."""

REGISTRIES: list[dict[str, Any]] = [FIELDS, *(dict(table) for table in TABLES.values())]
REGISTERED_IN = {"data/fields/__init__.py", *(f"model/{role}s/__init__.py" for role in TABLES)}
LAYOUTS = set(get_args(get_type_hints(Layout)["kind"]))
WORDS = {*get_args(Holds), *TASKS, *(kind for table in REGISTRIES for kind in table)}
"""Kinds, what fields hold and decoders produce, and tasks, as they are written."""


def file_of(cls: type) -> str:
    return str(Path(inspect.getfile(cls)).relative_to(SOURCE))


def own_files() -> dict[str, set[str]]:
    """The files that may ask for a kind or a class: where it is defined."""
    found: dict[str, set[str]] = {}
    for table in REGISTRIES:
        for kind, cls in table.items():
            found.setdefault(kind, set()).add(file_of(cls))
    kinds = [cls for table in REGISTRIES for cls in table.values()]
    kinds += [cls.settings_class for cls in FIELDS.values()]
    family = {
        above for cls in kinds for above in cls.__mro__ if above.__module__.startswith("sixjars.")
    }
    for cls in family - set(contracts()):
        found.setdefault(cls.__name__, set()).add(file_of(cls))
    return found


def contracts() -> list[type]:
    return [Field, Component, *BASES.values(), *FieldSettings.__mro__]


def special_attributes() -> set[str]:
    """What some kinds have and the contracts do not: asking for one of these asks which kind it is."""
    components = [cls for table in REGISTRIES[1:] for cls in table.values()]
    hints = [hint for cls in components for hint in get_type_hints(cls.__init__).values()]
    kinds = [*FIELDS.values(), *components, *(hint for hint in hints if is_section(hint))]
    settings = {key for cls in FIELDS.values() for key in cls.settings_class.model_fields}
    names = settings | {name for cls in kinds for name in dir(cls)}
    return {name for name in names if not any(hasattr(cls, name) for cls in contracts())} - {
        *FieldSettings.model_fields
    }


OWN_FILES = own_files()
CLASSES = {name for name in OWN_FILES if name not in WORDS}
SPECIAL = special_attributes()


def constants(node: ast.expr) -> set[str]:
    """The texts that something is compared with."""
    nodes = [node]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        nodes = node.elts
    elif isinstance(node, ast.Dict):
        nodes = [key for key in node.keys if key is not None]
    return {
        one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }


def called(node: ast.expr) -> str:
    """What a value is called: `pool` of `settings.pool`, `settings["pool"]` or `settings.get("pool")`."""
    if isinstance(node, ast.Call):
        named = [one for one in node.args[:2] if isinstance(one, ast.Constant)]
        return str(named[0].value) if named else ""
    if isinstance(node, ast.Subscript):
        return str(node.slice.value) if isinstance(node.slice, ast.Constant) else ""
    return (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )


def of_call(node: ast.Call) -> set[str]:
    function = called(node.func)
    if function in ("isinstance", "issubclass"):
        return {
            called(one)
            for one in ast.walk(node.args[1])
            if isinstance(one, ast.Name | ast.Attribute)
        } & CLASSES
    asks = function == "hasattr" or (function == "getattr" and len(node.args) == 3)
    return constants(node.args[1]) & SPECIAL if asks else set()


def of_comparison(node: ast.Compare) -> set[str]:
    sides = [node.left, *node.comparators]
    names = {called(side) for side in sides}
    words = WORDS | LAYOUTS if "layout" in ast.unparse(node) else WORDS
    found = {word for side in sides for word in constants(side)} & words
    return (found if not names & OTHER_SETTINGS else set()) | names & CLASSES


def of_match(node: ast.Match) -> set[str]:
    values = [one.value for one in ast.walk(node) if isinstance(one, ast.MatchValue)]
    named = {called(one.cls) for one in ast.walk(node) if isinstance(one, ast.MatchClass)}
    return {word for value in values for word in constants(value)} & WORDS | named & CLASSES


def of_table(node: ast.Dict) -> set[str]:
    """Two keys or more that are kinds of the same thing."""
    tables = [constants(node) & group for group in (*map(set, REGISTRIES), LAYOUTS, set(TASKS))]
    return max((found for found in tables if len(found) > 1), key=len, default=set())


def branches(text: str, file: str) -> Iterator[str]:
    """Every branch of a file on kinds that are not its own."""
    for node in ast.walk(ast.parse(text)):
        told, kinds = "", set[str]()
        if isinstance(node, ast.Call):
            told, kinds = ast.unparse(node), of_call(node)
        elif isinstance(node, ast.Compare):
            told, kinds = ast.unparse(node), of_comparison(node)
        elif isinstance(node, ast.Match):
            kinds = of_match(node)
            told = f"match {ast.unparse(node.subject)}: {', '.join(map(repr, sorted(kinds)))}"
        elif isinstance(node, ast.Dict):
            kinds = of_table(node)
            told = f"table by {', '.join(map(repr, sorted(kinds)))}"
        elif isinstance(node, ast.Subscript) and called(node.value).isupper():
            told, kinds = ast.unparse(node), constants(node.slice) & WORDS
        if any(file not in OWN_FILES.get(kind, set()) for kind in kinds):
            yield told


def everywhere() -> Iterator[tuple[str, str]]:
    """Tasks and synthetic corpora are declarations of what there is, one for each."""
    for path in sorted(SOURCE.rglob("*.py")):
        file = path.relative_to(SOURCE).as_posix()
        if file not in {*REGISTERED_IN, "tasks.py"} and not file.startswith("samples/"):
            yield from ((file, told) for told in branches(path.read_text(encoding="utf-8"), file))


def test_no_branch_on_a_kind_outside_its_own_file() -> None:
    found = set(everywhere())
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set()  # what is no longer there needs no permission


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(field, TextField)",
        "isinstance(field, str | fields.MediaField)",
        "issubclass(kind, (int, Generator))",
        "type(field) is LabelField",
        "settings.kind == 'attention'",
        "plan.kind('bridge') != 'two_level'",
        "kind in ('image', 'video')",
        "'points' in kinds",
        "kind not in {'label': 1}",
        "recipe.task == 'dialog'",
        "output.holds == 'classes'",
        "encoded.layout.kind != 'frames'",
        "views = {'image': 1, 'text': 2}",
        "FIELDS['text']",
        "hasattr(field, 'tokenizer')",
        "getattr(field.settings, 'max_length', None)",
        "match kind:\n    case 'pointer':\n        pass",
        "match field:\n    case TextField():\n        pass",
    ],
)
def test_a_branch_would_be_found(code: str) -> None:
    assert list(branches(code, "runs/new.py")) != []


def test_other_code_is_left_alone() -> None:
    plain = "isinstance(a, str) or a == 'text file' or field.is_media or {'text': 1} or b['text'] or isinstance(c, Field)"
    assert list(branches(plain, "runs/new.py")) == []
    assert list(branches("isinstance(source, TextField)", "data/fields/text.py")) == []
    assert list(branches("isinstance(source, TextField)", "data/fields/label.py")) != []


def test_only_tables_import_the_files_of_kinds() -> None:
    """Besides those that are made of one another: a question has a text encoder in it, a video is made of frames."""
    homes = {
        f"sixjars.{file[:-3].replace('/', '.')}" for files in OWN_FILES.values() for file in files
    }
    homes = {home for home in homes if home.startswith(("sixjars.data.fields.", "sixjars.model."))}
    found = set()
    for path in SOURCE.rglob("*.py"):
        file = path.relative_to(SOURCE).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in homes:
                found.add((file, node.module.removeprefix("sixjars.")))
    assert {
        (file, home) for file, home in found if file not in {*REGISTERED_IN, "__init__.py"}
    } == {
        ("data/fields/features.py", "data.fields.image"),
        ("data/fields/video.py", "data.fields.image"),
        ("model/bridges/location.py", "model.bridges.attention"),
        ("model/encoders/bag.py", "model.encoders.text"),
        ("model/encoders/image.py", "model.encoders.text"),
        ("model/encoders/pair.py", "model.encoders.text"),
    }
    assert len(homes) > 15
