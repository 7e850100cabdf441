"""A run as a static folder: a page that computes in the browser, with plain JavaScript and the run's own weights.

    index.html  script.js  model.safetensors

What the browser can do is what there are files for: a setting such as `bridge.kind: attention` needs the file
`script/bridge/attention.js`. The script has only those that a model needs, so it is small and can be read.
"""

import json
from collections.abc import Iterable, Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from safetensors.torch import save
from torch import Tensor

from sixjars.data.field import Field
from sixjars.errors import RunError
from sixjars.learning.checkpoints import write_whole
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint
from sixjars.runs.folder import open_run
from sixjars.tasks import TASKS

SCRIPT = files("sixjars.serving.web").joinpath("script")
LIVE = files("sixjars.inspection").joinpath("live")
FILES = ("index.html", "script.js", "model.safetensors")
"""What is written."""
NOTE = "sixjars_web"
"""Among the notes of the safetensors file: model, search and vocabularies, as JSON."""
BEFORE = ("tensors", "recurrent", "bridge", "text")
AFTER = ("model", "drawing")
"""Parts of the script that every model needs, before and after those of its components."""
SEARCH = (("search", "rules"), ("search", "greedy"), ("search", "beam"), ("search", "sample"))
"""Files of search: what its kinds share, then all of them, for the page lets one choose."""
KEYS = ("tokens", "segments")
"""Settings of a field whose values have files."""
PUBLIC = ("kind", "segments", "max_length", "on_long", "dimensions", "multi_label")
"""Settings of a field that the page needs; others, such as names of files, are nobody else's business."""

Part = tuple[str, str]
"""A folder and a file in it: what a setting is, and its value."""


def export_web(run: Path, out: Path) -> Path:
    """Write a run as a page that runs in a browser, into a new or empty folder.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     page = export_web(run.folder, Path(folder) / "page")
    ...     sorted(path.name for path in page.iterdir())
    ['index.html', 'model.safetensors', 'script.js']
    """
    opened = open_run(run)
    if out.exists() and (not out.is_dir() or any(path.name not in FILES for path in out.iterdir())):
        raise RunError(f"{out} is there already and holds something else; choose an empty folder for the page.")
    parts = _parts(opened.recipe)
    blueprint = Blueprint.of(opened.recipe, opened.outside)
    fields = opened.restored(blueprint.fields)
    network = opened.network(blueprint, fields)
    plan = {
        "model": {role: dict(section) for role, section in blueprint.plan.settings.items()},
        "inputs": [_field(field) for field in fields.inputs.values()],
        "output": _field(fields.output),
        "positions_of": network.encoder.positions_of(),
        "search": opened.recipe.evaluation.search.model_dump(),
    }
    tensors = {name: _plain(tensor) for name, tensor in network.state_dict().items()}
    parts += SEARCH if blueprint.plan.decoder.searches else ()
    weights = save(tensors, {NOTE: json.dumps(plan, ensure_ascii=False, separators=(",", ":"))})
    written = zip(FILES, (_page(opened.recipe, len(weights)), _script(parts), weights), strict=True)
    for name, content in written:
        write_whole(out / name, content)
    return out


def _parts(recipe: Recipe) -> list[Part]:
    """The files of all components of a model, each once; refuses what the browser cannot run."""
    found: dict[Part, None] = {}
    for key, folder, value in _wanted(recipe):
        known = {Path(file.name).stem for file in SCRIPT.joinpath(folder).iterdir()}
        if not isinstance(value, str) or value not in known:
            shown, allowed = value if isinstance(value, str) else "a file of your own", ", ".join(sorted(known))
            raise RunError(f"{key} is {shown}, which cannot run in a browser yet; what can is {allowed}.")
        found[folder, value] = None
    return list(found)


def _wanted(recipe: Recipe) -> Iterator[tuple[str, str, Any]]:
    """The key of each setting that has a file, the folder of its files, and its value."""
    model = {"encoder": recipe.model.encoder, "bridge": recipe.model.bridge, "decoder": recipe.model.decoder}
    yield from ((f"model.{role}.kind", role, section["kind"]) for role, section in model.items())
    for name, settings in recipe.data.fields.items():
        values = settings.model_dump(mode="json")
        yield f"data.{name}.kind", "field", settings.kind
        yield from ((f"data.{name}.{key}", key, values[key]) for key in KEYS if key in values)


def _script(parts: Iterable[Part]) -> bytes:
    """All parts in one file, in the order in which they need each other."""
    paths = [SCRIPT.joinpath(f"{name}.js") for name in BEFORE]
    paths += [SCRIPT.joinpath(folder, f"{name}.js") for folder, name in parts]
    paths += [SCRIPT.joinpath(f"{name}.js") for name in AFTER]
    paths += [LIVE.joinpath("view.js"), SCRIPT.joinpath("page.js")]
    return "\n".join(path.read_text("utf-8") for path in paths).encode()


def _page(recipe: Recipe, size: int) -> bytes:
    task = TASKS[recipe.task]
    title = escape(f"{task.name.replace('_', ' ')}: {task.title}")
    style = LIVE.joinpath("view.css").read_text("utf-8") + SCRIPT.joinpath("page.css").read_text("utf-8")
    megabytes = f"{size / 1e6:.1f} MB"
    template = Template(SCRIPT.joinpath("index.html").read_text("utf-8"))
    return template.substitute(title=title, style=style, size=megabytes).encode()


def _field(field: Field) -> dict[str, Any]:
    """A field with what it learned."""
    values = field.settings.model_dump(mode="json")
    settings = {key: values[key] for key in PUBLIC if key in values}
    return {"name": field.name, "settings": settings, "learned": json.loads(field.to_json()) if field.learns else None}


def _plain(tensor: Tensor) -> Tensor:
    """In 32 bits, as the script computes; what is true or false stays so."""
    return (tensor.float() if tensor.is_floating_point() else tensor).contiguous()
