"""The parts of the script that a model needs: files, and sections of files.

The browser can run what has a file: a setting such as `bridge.kind: attention` needs the file
`script/bridge/attention.js`, which is the part `bridge/attention`. Sections that a model does not
need are left out, see `drawing/html/assets.py`. They are marked with features: the value of a
setting, such as `cell/lstm`; a setting that is true, such as `copying`; the kind of an input or of
the output, such as `input/text`; or what several of these mean together.
"""

from collections.abc import Collection, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from sixjars.drawing.html.assets import kept, static, view_files
from sixjars.recipe.sections import Recipe
from sixjars.tasks import TASKS
from sixjars_runtime.errors import RunError

SCRIPT = files("sixjars.serving.web").joinpath("script")
MARKED_WORDS = "words/marks"
"""A feature that is not in the recipe: words are spelled as in older versions."""
BEFORE, AFTER = ("tensors", "bridge"), ("model", "page")
"""Files that every model needs, before and after those of its components."""
SEARCH = ("search/rules", "search/greedy", "search/beam", "search/sample", "choice")
"""Files of search: what its kinds share, then all of them, for the page lets one choose."""
FILES = "field/image field/video"
SEQUENCES = (
    "encoder/text encoder/pair encoder/hierarchy encoder/wide_deep encoder/points "
    "encoder/image_question encoder/video"
)
SHARED = {
    "recurrent": f"{SEQUENCES} decoder/sequence decoder/pointer",
    "text": "field/text field/points",
    "pixels": FILES,
    "visual": "encoder/image encoder/image_question encoder/video",
    "directional": SEQUENCES,
    "score": "bridge/attention bridge/location bridge/two_level decoder/pointer",
    "ngrams": "encoder/bag encoder/wide_deep",
    "encoder/image": "encoder/image_question",
}
"""Files that several parts share, by their names."""
CONTROLS = {"talk": "segments/turns", "points": "field/points", "files": FILES}
"""Inputs that are not texts, by the parts of models that read them."""
LABELS, SEGMENTS = "decoder/label", "segments/lines segments/sentences segments/turns"
VIEWS = {
    "tour": "field/points",
    "image": "field/image",
    "frames": "field/video",
    "document": f"{LABELS} {SEGMENTS}",
}
"""Views of attention beside or in place of a heat map, by the parts of models that need them."""
KEYS = ("tokens", "segments")
"""Settings of a field whose values have files."""


def features(
    recipe: Recipe, *, searches: bool, attends: bool, marked: bool = False
) -> frozenset[str]:
    """The features of a model that searches for its outputs, attends to its input, or both.

    `marked` says whether one of its tokenizers is of an older version, in which words carry marks.

    >>> from sixjars.runs.recipes import read_recipe
    >>> has = features(read_recipe("language_model/sample_rnn"), searches=True, attends=False)
    >>> [name in has for name in ("cell/rnn", "output/text", "searches", "input/text", "borrows")]
    [True, True, True, False, False]
    """
    output = TASKS[recipe.task].output.name
    flags = {"searches": searches, "attends": attends, MARKED_WORDS: marked}
    has = {name for name, value in flags.items() if value}
    for name, settings in recipe.data.fields.items():
        has.add(f"{'output' if name == output else 'input'}/{settings.kind}")
        has.update(_settings(settings.model_dump(mode="json")))
    for role, section in _sections(recipe).items():
        has.add(f"{role}/{section['kind']}")
        has.update(_settings(section))
    # An output may hold words of the source: copied ones, or in place of unknown ones.
    if {"searches", "attends", "input/text", "output/text"} <= has:
        has.add("borrows")
    return frozenset(has)


def _sections(recipe: Recipe) -> dict[str, Mapping[str, Any]]:
    model = recipe.model
    return {"encoder": model.encoder, "bridge": model.bridge, "decoder": model.decoder}


def _settings(section: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif isinstance(value, str):
            yield f"{key}/{value}"
        elif value is True:
            yield key


def parts_of(recipe: Recipe) -> list[str]:
    """The files of all components of a model, each once; refuses what the browser cannot run."""
    parts: dict[str, None] = {}
    for key, folder, value in _wanted(recipe):
        known = {Path(file.name).stem for file in SCRIPT.joinpath(folder).iterdir()}
        if not isinstance(value, str) or value not in known:
            shown = value if isinstance(value, str) else "a file of your own"
            allowed = ", ".join(sorted(known))
            raise RunError(
                f"{key} is {shown}, which cannot run in a browser yet; what can is {allowed}."
            )
        parts[f"{folder}/{value}"] = None
    return list(parts)


def _wanted(recipe: Recipe) -> Iterator[tuple[str, str, Any]]:
    """The key of each setting that has a file, the folder of its files, and its value."""
    sections = _sections(recipe).items()
    yield from ((f"model.{role}.kind", role, section["kind"]) for role, section in sections)
    for role, section in sections:
        yield from _inner(f"model.{role}", section)
    for name, settings in recipe.data.fields.items():
        values = settings.model_dump(mode="json")
        yield f"data.{name}.kind", "field", settings.kind
        yield from ((f"data.{name}.{key}", key, values[key]) for key in KEYS if key in values)


def _inner(where: str, section: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """The cells and backbones of a component, and of the components that it is made of."""
    for key, value in section.items():
        if key == "cell":
            yield f"{where}.{key}", key, value
        elif isinstance(value, Mapping):
            if key == "backbone":
                yield f"{where}.{key}.name", key, value["name"]
            yield from _inner(f"{where}.{key}", value)


def script(parts: Collection[str], features: Collection[str]) -> bytes:
    """All that a model needs in one file, in the order in which its parts need each other."""
    views = [f"view/{name}" for name in _views(parts)]
    names = [*BEFORE, *_used(SHARED, parts), *parts]
    names += SEARCH if "searches" in features else ()
    names += ["figure", *views, *AFTER] if "attends" in features else ["outputs", *AFTER]
    has = {*features, *views}
    shown = [view_files(["view"], "js", has)] if "attends" in features else []
    first, *others = (kept(SCRIPT.joinpath(f"{name}.js").read_text("utf-8"), has) for name in names)
    return "\n".join([first, *shown, *_inputs(parts, "js", features), *others]).encode()


def style(parts: Collection[str], features: Collection[str]) -> str:
    """The style of the page of a model."""
    attends = "attends" in features
    views = view_files(["colours", *(["view", *_views(parts)] if attends else [])], "css", features)
    names = ["page.css"] if attends else ["page.css", "outputs.css"]
    own = (kept(SCRIPT.joinpath(name).read_text("utf-8"), features) for name in names)
    return "".join([views, *_inputs(parts, "css", features), *own])


def _inputs(parts: Collection[str], ending: str, features: Collection[str]) -> list[str]:
    names = ("inputs", *_used(CONTROLS, parts))
    return [static("serving", f"{name}.{ending}", features) for name in names]


def _views(parts: Collection[str]) -> list[str]:
    """The views in the order they are tried; files, and labels of segments, have no heat map."""
    views = _used(VIEWS, parts)
    if _meet(FILES, parts):
        return views[:1]
    return views if _meet(LABELS, parts) and _meet(SEGMENTS, parts) else [*views, "heat"]


def _used(files: Mapping[str, str], parts: Collection[str]) -> list[str]:
    return [name for name, users in files.items() if _meet(users, parts)]


def _meet(users: str, parts: Collection[str]) -> bool:
    return not set(users.split()).isdisjoint(parts)
