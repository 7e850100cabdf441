"""The model card of a run: what it was trained on, how good it is, how large, and its licence.

Its words are in `templates/model_card.md`. The card on the hub begins with metadata that the hub reads.
"""

import json
import re
from functools import cache
from math import prod
from typing import Any, Final

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from sixjars.learning.checkpoints import saved_shapes
from sixjars.progress import number_of
from sixjars.runs.folder.archive import HUB
from sixjars.runs.folder.run_folder import RunFolder
from sixjars.runs.recipes import Blueprint
from sixjars.tasks import TASKS
from sixjars_runtime.errors import RunError
from sixjars_runtime.small_files import read_limited

LICENCES: Final = frozenset(
    "apache-2.0 mit bsd-2-clause bsd-3-clause gpl-3.0 lgpl-3.0 agpl-3.0 mpl-2.0 unlicense openrail "
    "cc0-1.0 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-4.0 cc-by-nc-sa-4.0 "
    "cc-by-nd-4.0 cc-by-nc-nd-4.0".split()
)
"""The usual licences as the hub calls them; any other is named as it is given."""


def plain(value: object) -> str:
    """A text on one line that Markdown and HTML leave as it is; marked as safe, it stays."""
    if isinstance(value, Markup):
        return value
    return re.sub(r"[\s|`<>\[\]]+", " ", str(value)).strip()[:500]


@cache
def _template() -> Template:
    """The template of a card, in which every text is made plain."""
    templates = Environment(
        loader=PackageLoader("sixjars.runs.folder"),
        undefined=StrictUndefined,
        finalize=plain,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    return templates.get_template("model_card.md")


def usage(name: str) -> str:
    """A sentence on how to use a run, under a name."""
    python = f'sixjars.load("{name}").predict("INPUT")'
    return f"`sixjars predict {name} INPUT`, or in Python with `{python}`"


def model_card(run: RunFolder, licence: str = "", *, use: str) -> str:
    """The model card of a run as Markdown: its data, scores and sizes, and how to `use` it."""
    fields = run.restored(Blueprint.of(run.recipe, run.outside).fields).all
    shapes = saved_shapes(run.weights).values()
    scored, scores = scores_of(run)
    return _template().render(
        task=TASKS[run.recipe.task],
        use=use,
        licence=plain(licence),
        data=[*_data(run), *((name, field.describe()) for name, field in fields.items())],
        scored=scored,
        scores=scores,
        parameters=sum(map(prod, shapes)),
        tensors=len(shapes),
        size=run.weights.stat().st_size,
        model=run.recipe.model,
    )


def _data(run: RunFolder) -> list[tuple[str, object]]:
    """The source of each split: files, or a seed."""
    data = run.recipe.data
    if data.sample is not None:
        return [("synthetic", f"{data.sample.size} training examples, seed {data.sample.seed}")]
    files: list[tuple[str, object]] = [("train", part.file) for part in data.training_files]
    files += [("valid", data.valid), ("test", data.test)]
    return [(name, file) for name, file in files if file is not None]


def scores_of(run: RunFolder) -> tuple[str, dict[str, float]]:
    """The data that a run was scored on at its end, and its scores; empty where none were kept."""
    try:
        kept = json.loads(read_limited(run.folder / "scores.json"))
        scores = {plain(name): float(score["value"]) for name, score in kept["scores"].items()}
        count = number_of(int(kept["examples"]), "example")
        return f"{count} of the {plain(kept['split'])} set", scores
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RunError):
        return "", {}


def hub_card(run: RunFolder, name: str, licence: str = "") -> str:
    """The model card, with metadata by which the hub finds and shows a model."""
    task = TASKS[run.recipe.task]
    tags = ["sixjars", "encoder-decoder", task.name]
    facts: dict[str, Any] = {"library_name": "sixjars", "tags": tags}
    facts |= {"pipeline_tag": task.pipeline} if task.pipeline else {}
    known = re.sub(r"[\s_]+", "-", licence.strip().lower())
    if known in LICENCES:
        facts["license"] = known
    elif licence.strip():
        facts |= {"license": "other", "license_name": known[:80]}
    data, scores = scores_of(run)
    if scores:
        results = {
            "task": {"type": task.pipeline or task.name},
            "dataset": {"type": "own", "name": data},
            "metrics": [{"type": metric, "value": value} for metric, value in scores.items()],
        }
        facts["model-index"] = [{"name": name.partition("/")[2], "results": [results]}]
    head = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)
    return f"---\n{head}---\n\n{model_card(run, licence, use=usage(f'{HUB}{name}'))}"
