"""A run as a static folder: a page that computes in the browser, with plain JavaScript and the run's own weights.

    index.html  script.js  model.safetensors

What the browser can do is what there are files for: a setting such as `bridge.kind: attention` needs the file
`script/bridge/attention.js`. The script has only those that a model needs, so it is small and can be read.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from safetensors.torch import save
from torch import Tensor

from sixjars.data.field import Field
from sixjars.errors import DataError, RunError
from sixjars.learning.checkpoints import write_whole
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint
from sixjars.runs.folder import open_run
from sixjars.runs.predict import Predictor
from sixjars.samples import generate, sample_columns
from sixjars.serving.pages import script, style, titles
from sixjars.tasks import TASKS

Part = tuple[str, str]
"""A folder and a file in it: what a setting is, and its value."""
SCRIPT = files("sixjars.serving.web").joinpath("script")
FILES = ("index.html", "script.js", "model.safetensors")
"""What is written."""
NOTE = "sixjars_web"
"""Among the notes of the safetensors file: model, search and vocabularies, as JSON."""
FINGERPRINT = "sixjars_page"
"""Another note, which the page has too: a hash of the first. A page refuses a file with another one."""
BEFORE = ("tensors", "recurrent", "bridge", "text")
AFTER = ("model", "drawing", "page")
"""Parts of the script that every model needs, before and after those of its components."""
SEARCH = (("search", "rules"), ("search", "greedy"), ("search", "beam"), ("search", "sample"))
"""Files of search: what its kinds share, then all of them, for the page lets one choose."""
CONTROLS: Mapping[Part, str] = {("segments", "turns"): "talk", ("field", "points"): "points"}
"""What is not given as a text, by the part of a model that reads it."""
KEYS = ("tokens", "segments")
"""Settings of a field whose values have files."""
PUBLIC = ("kind", "segments", "max_length", "on_long", "dimensions", "multi_label")
"""Settings of a field that the page needs; others, such as names of files, are nobody else's business."""


def export_web(run: Path, out: Path, example: str | None = None) -> Path:
    """Write a run as a page that runs in a browser, into a new or empty folder.

    The page opens with the example, which everybody sees; two inputs have a tab between them. Where none is given,
    synthetic data has one, and of other data no row is published.

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
    model, predictor = Blueprint.of(opened.recipe, opened.outside).plan, Predictor(opened, device="cpu")
    fields, columns = predictor.fields, titles(predictor)
    plan = {
        "model": {role: dict(section) for role, section in model.settings.items()},
        "inputs": [_field(field, columns) for field in fields.inputs.values()],
        "output": _field(fields.output, columns),
        "positions_of": predictor.network.encoder.positions_of(),
        "search": opened.recipe.evaluation.search.model_dump(),
        "example": _example(predictor, example),
    }
    tensors = {name: _plain(tensor) for name, tensor in predictor.network.state_dict().items()}
    parts += SEARCH if model.decoder.searches else ()
    note = json.dumps(plan, ensure_ascii=False, separators=(",", ":"))
    fingerprint = sha256(note.encode()).hexdigest()
    weights = save(tensors, {NOTE: note, FINGERPRINT: fingerprint})
    page = _page(opened.recipe, len(weights), fingerprint)
    written = zip(FILES, (page, _script(parts), weights), strict=True)
    for name, content in written:
        write_whole(out / name, content)
    return out


def _example(run: Predictor, given: str | None) -> dict[str, str]:
    """What the page opens with, a text for each input: what is given, or a row that a generator draws."""
    sample, names = run.recipe.data.sample, list(run.inputs)
    if given is not None:
        texts = given.split("\t") if len(names) > 1 else [given]
        found = run.prepare(dict(zip(names, texts, strict=False)))
        if found.error is not None:
            raise DataError(f"the example cannot be used: {found.error.removeprefix('input 1: ')}")
        return dict(found.texts)
    if sample is None or not run.fields.inputs:
        return {}
    drawn = generate(
        run.recipe.task, size=0, valid=0, test=1, seed=sample.seed, longest=sample.longest, kind=sample.kind
    )
    return {name: drawn["test"][0][column] for name, column in sample_columns(run.recipe).items() if name in names}


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


def _script(parts: Collection[Part]) -> bytes:
    """All parts in one file, in the order in which they need each other."""
    paths = [SCRIPT.joinpath(f"{name}.js") for name in BEFORE]
    paths += [SCRIPT.joinpath(folder, f"{name}.js") for folder, name in parts]
    paths += [SCRIPT.joinpath(f"{name}.js") for name in AFTER]
    controls = [control for part, control in CONTROLS.items() if part in parts]
    return "\n".join([script(controls), *(path.read_text("utf-8") for path in paths)]).encode()


def _page(recipe: Recipe, size: int, fingerprint: str) -> bytes:
    task = TASKS[recipe.task]
    names = {"title": escape(task.name.replace("_", " ")), "about": escape(task.title), "size": f"{size / 1e6:.1f} MB"}
    names["fingerprint"] = fingerprint
    template = Template(SCRIPT.joinpath("index.html").read_text("utf-8"))
    return template.substitute(names, style=style() + SCRIPT.joinpath("page.css").read_text("utf-8")).encode()


def _field(field: Field, columns: Mapping[str, str]) -> dict[str, Any]:
    """A field with what it learned."""
    values = field.settings.model_dump(mode="json")
    settings = {key: values[key] for key in PUBLIC if key in values}
    learned = json.loads(field.to_json()) if field.learns else None
    return {"name": field.name, "column": columns[field.name], "settings": settings, "learned": learned}


def _plain(tensor: Tensor) -> Tensor:
    """In 32 bits, as the script computes; what is true or false stays so."""
    return (tensor.float() if tensor.is_floating_point() else tensor).contiguous()
