"""The parts of the script that a model needs.

The browser can run what has a file: a setting such as `bridge.kind: attention` needs the file
`script/bridge/attention.js`. Sections that a model does not need are left out, see
`drawing/html/assets.py`.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from sixjars.drawing.html.assets import kept, static, view_files
from sixjars.recipe.sections import Recipe
from sixjars_runtime.errors import RunError

Part = tuple[str, str]
"""A folder and a file in it: the kind of a setting, and its value."""
SCRIPT = files("sixjars.serving.web").joinpath("script")
BEFORE, AFTER = ("tensors", "bridge"), ("model", "page")
"""Files that every model needs, before and after those of its components."""
SEARCH = ("search/rules", "search/greedy", "search/beam", "search/sample", "choice")
"""Files of search: what its kinds share, then all of them, for the page lets one choose."""


def _all(role: str, kinds: str) -> list[Part]:
    """The parts of a role, with spaces between their kinds."""
    return [(role, kind) for kind in kinds.split()]


TEXT: Collection[Part] = _all("field", "text points")
FILES: Collection[Part] = _all("field", "image video")
VISUAL: Collection[Part] = _all("encoder", "image image_question video")
ASKED: Collection[Part] = _all("encoder", "image_question")
SEQUENCES: Collection[Part] = _all(
    "encoder", "text pair hierarchy wide_deep points image_question video"
)
NGRAMS: Collection[Part] = _all("encoder", "bag wide_deep")
SCORES: Collection[Part] = [*_all("bridge", "attention location two_level"), ("decoder", "pointer")]
SHARED: Mapping[str, Collection[Part]] = {
    "recurrent": [*SEQUENCES, ("decoder", "sequence"), ("decoder", "pointer")],
    "text": TEXT,
    "pixels": FILES,
    "visual": VISUAL,
    "directional": SEQUENCES,
    "score": SCORES,
    "ngrams": NGRAMS,
    "encoder/image": ASKED,
}
"""Files that several parts share, by their names."""
CONTROLS: Mapping[str, Collection[Part]] = {
    "talk": [("segments", "turns")],
    "points": [("field", "points")],
    "files": FILES,
}
"""Inputs that are not texts, by the parts of models that read them."""
LABELS: Collection[Part] = [("decoder", "label")]
SEGMENTS: Collection[Part] = _all("segments", "lines sentences turns")
VIEWS: Mapping[str, Collection[Part]] = {
    "tour": [("field", "points")],
    "image": [("field", "image")],
    "frames": [("field", "video")],
    "document": [*LABELS, *SEGMENTS],
}
"""Views of attention beside or in place of a heat map, by the parts of models that need them."""
KEYS = ("tokens", "segments")
"""Settings of a field whose values have files."""


def parts_of(recipe: Recipe) -> list[Part]:
    """The files of all components of a model, each once; refuses what the browser cannot run."""
    parts: dict[Part, None] = {}
    for key, folder, value in _wanted(recipe):
        known = {Path(file.name).stem for file in SCRIPT.joinpath(folder).iterdir()}
        if not isinstance(value, str) or value not in known:
            shown = value if isinstance(value, str) else "a file of your own"
            allowed = ", ".join(sorted(known))
            raise RunError(
                f"{key} is {shown}, which cannot run in a browser yet; what can is {allowed}."
            )
        parts[folder, value] = None
    return list(parts)


def _wanted(recipe: Recipe) -> Iterator[tuple[str, str, Any]]:
    """The key of each setting that has a file, the folder of its files, and its value."""
    model = recipe.model
    sections = {"encoder": model.encoder, "bridge": model.bridge, "decoder": model.decoder}
    for role, section in sections.items():
        yield f"model.{role}.kind", role, section["kind"]
    for role, section in sections.items():
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


def script(parts: Collection[Part], features: Collection[str]) -> bytes:
    """All that a model needs in one file, in the order in which its parts need each other."""
    shared = [name for name, users in SHARED.items() if _meet(users, parts)]
    attends = "attends" in features
    views = [f"view/{name}" for name in _views(parts)]
    components = [f"{folder}/{name}" for folder, name in parts]
    names = [*BEFORE, *shared, *components, *(SEARCH if "searches" in features else ())]
    names += ["figure", *views, *AFTER] if attends else ["outputs", *AFTER]
    controls = [static("serving", f"{name}.js", features) for name in ("inputs", *_controls(parts))]
    has = {*features, *views}
    shown = [view_files(["view"], "js", has)] if attends else []
    first, *others = (kept(SCRIPT.joinpath(f"{name}.js").read_text("utf-8"), has) for name in names)
    return "\n".join([first, *shown, *controls, *others]).encode()


def style(parts: Collection[Part], features: Collection[str]) -> str:
    """The style of the page of a model."""
    attends = "attends" in features
    views = view_files(["colours", *(["view", *_views(parts)] if attends else [])], "css", features)
    inputs = [static("serving", f"{name}.css", features) for name in ("inputs", *_controls(parts))]
    names = ["page.css"] if attends else ["page.css", "outputs.css"]
    own = (kept(SCRIPT.joinpath(name).read_text("utf-8"), features) for name in names)
    return "".join([views, *inputs, *own])


def _controls(parts: Collection[Part]) -> list[str]:
    return [name for name, users in CONTROLS.items() if _meet(users, parts)]


def _views(parts: Collection[Part]) -> list[str]:
    """The views in the order they are tried; files, and labels of segments, have no heat map."""
    views = [name for name, users in VIEWS.items() if _meet(users, parts)]
    if _meet(FILES, parts):
        return views[:1]
    return views if _meet(LABELS, parts) and _meet(SEGMENTS, parts) else [*views, "heat"]


def _meet(users: Iterable[Part], parts: Collection[Part]) -> bool:
    return any(part in parts for part in users)
