"""A run as a static folder: a page that computes in the browser with plain JavaScript.

    index.html  script.js  model.bin

`model.bin` has the run's weights. The script has only the parts that a model needs, so it is small
and can be read.
"""

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from mimetypes import guess_type
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Any, get_args

from torch import Tensor

from sixjars.data.field import Field
from sixjars.decoding.scores import order_in_words
from sixjars.drawing.view import BY_PROBABILITY
from sixjars.learning.checkpoints import write_whole
from sixjars.model.backbones.pretrained import BackboneExtractor
from sixjars.model.visual import VisualInput
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.recipes import Blueprint
from sixjars.samples import generate, materialise, sample_columns
from sixjars.serving.pages import titles
from sixjars.serving.web.packing import packed, planes
from sixjars.serving.web.parts import SCRIPT, features, parts_of, script, style
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RunError
from sixjars_runtime.text.spelling import has_marked_words

FILES = ("index.html", "script.js", "model.bin")
"""The files of a page."""
PUBLIC = (
    *("kind", "segments", "max_length", "on_long", "dimensions", "multi_label"),
    *("fit", "max_pixels", "frames", "rate"),
)
"""Settings of a field that the page needs; others, such as names of files, stay private."""


def export_web(run: Path, out: Path, example: str | None = None) -> Path:
    """Write a run as a page that runs in a browser, into a new or empty folder.

    The page opens with the example, which everybody sees; two inputs have a tab between them. Where
    none is given, synthetic data has one, and of other data no row is published.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     page = export_web(run.folder, Path(folder) / "page")
    ...     sorted(path.name for path in page.iterdir())
    ['index.html', 'model.bin', 'script.js']
    """
    opened = open_run(run)
    if out.exists() and (not out.is_dir() or any(path.name not in FILES for path in out.iterdir())):
        raise RunError(
            f"{out} is there already and holds something else; choose an empty folder for the page."
        )
    parts = parts_of(opened.recipe)
    predictor = Predictor(opened, device="cpu")
    searches = predictor.network.decoder.searches
    tensors = {name: tensor.float().numpy() for name, tensor in _weights(predictor).items()}
    plan = _plan(opened, predictor, searches=searches) | {
        "example": _example(predictor, example),
        "tensors": {name: tensor.shape for name, tensor in tensors.items()},
    }
    fingerprint = sha256(json.dumps(plan).encode() + planes(tensors.values())).hexdigest()
    weights = packed({"page": fingerprint, **plan}, tensors.values())
    fields = [*plan["inputs"], plan["output"]]
    marked = any(has_marked_words(field["learned"] or {}) for field in fields)
    attends = predictor.has_attention
    has = features(opened.recipe, searches=searches, attends=attends, marked=marked)
    task, size = TASKS[opened.recipe.task], f"{len(weights) / 1e6:.1f} MB"
    texts = {"title": escape(task.name.replace("_", " ")), "about": escape(task.title)}
    texts |= {"size": size, "fingerprint": fingerprint, "style": style(parts, has)}
    page = Template(SCRIPT.joinpath("index.html").read_text("utf-8")).substitute(texts).encode()
    for name, content in zip(FILES, (page, script(parts, has), weights), strict=True):
        write_whole(out / name, content)
    return out


def _plan(run: RunFolder, predictor: Predictor, *, searches: bool) -> dict[str, Any]:
    """All that the page must know of a model besides its weights."""
    fields = predictor.fields
    columns = titles(predictor)
    sections = Blueprint.of(run.recipe, run.outside).plan.settings
    search = run.recipe.evaluation.search
    return {
        "model": {role: dict(section) for role, section in sections.items()},
        "inputs": [_field(field, columns) for field in fields.inputs.values()],
        "output": _field(fields.output, columns),
        "positions_of": predictor.network.encoder.positions_of(),
        "search": search.model_dump(),
        # a sentence on the order of several outputs, by the kind of search
        "order": {
            kind: order_in_words(search.model_copy(update={"kind": kind}))
            if searches
            else BY_PROBABILITY
            for kind in get_args(SearchSettings.model_fields["kind"].annotation)
        },
    }


def _weights(run: Predictor) -> dict[str, Tensor]:
    weights = dict(run.network.state_dict())
    extractors = [field.equipment.extractor for field in run.fields.inputs.values()]
    for path, module in run.network.named_modules():
        if isinstance(module, VisualInput) and module.backbone is None:
            [frozen] = [each.backbone for each in extractors if isinstance(each, BackboneExtractor)]
            for name, tensor in frozen.state_dict().items():
                weights[f"{path}.backbone.{name}"] = tensor
    return weights


def _example(run: Predictor, given: str | None) -> dict[str, str]:
    """The example of the page, by input: as given, or a row that a generator draws."""
    sample = run.recipe.data.sample
    names = list(run.inputs)
    if given is not None:
        parts = given.split("\t") if len(names) > 1 else [given]
        request = run.prepare(dict(zip(names, parts, strict=False)))
        error = request.error or run.encode([request])[1].get(0)
        if error is not None:
            raise DataError(f"the example cannot be used: {error.removeprefix('input 1: ')}")
        return {name: _shown(run.inputs[name], text) for name, text in request.texts.items()}
    if sample is None or not run.fields.inputs:
        return {}
    options: dict[str, Any] = {"seed": sample.seed, "longest": sample.longest, "kind": sample.kind}
    [row] = generate(run.recipe.task, size=0, valid=0, test=1, **options)["test"]
    columns = sample_columns(run.recipe)
    with TemporaryDirectory() as folder:
        texts = {name: row[columns[name]] for name in names}
        for name in names:
            if run.inputs[name].is_media:
                materialise(run.recipe.task, [texts[name]], Path(folder))
                texts[name] = str(Path(folder) / texts[name])
        return {name: _shown(run.inputs[name], text) for name, text in texts.items()}


def _shown(field: Field, text: str) -> str:
    """A text, or the file that it names as a data URI."""
    if not field.is_media:
        return text
    return f"data:{guess_type(text)[0]};base64,{b64encode(Path(text).read_bytes()).decode()}"


def _field(field: Field, columns: Mapping[str, str]) -> dict[str, Any]:
    values = field.settings.model_dump(mode="json")
    settings = {key: values[key] for key in PUBLIC if key in values}
    settings |= {"pixels": field.facts()["pixels"]} if field.is_media else {}
    learned = json.loads(field.to_json()) if field.learns else None
    names = {"name": field.name, "column": columns[field.name]}
    return {**names, "settings": settings, "learned": learned}
