"""Sharing a run, in one file or on the Hugging Face hub, with a model card.

The card tells what the run was trained on, how good it is, how large, and its licence; that of the
hub has the metadata that the hub reads too.
"""

import json
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from math import prod
from pathlib import Path
from typing import Any, Final

import yaml

from sixjars.learning.checkpoints import saved_shapes
from sixjars.progress import number_of
from sixjars.recipe.outside import Outside
from sixjars.runs.archive import CARD, ENDING, FILES, HUB, checked_name, reaching_the_hub
from sixjars.runs.data import Blueprint
from sixjars.runs.folder import RunFolder, open_run
from sixjars.runs.output_file import written_whole
from sixjars.tasks import TASKS
from sixjars_runtime.errors import RunError
from sixjars_runtime.small_files import read_limited

LICENCES: Final = frozenset(
    "apache-2.0 mit bsd-2-clause bsd-3-clause gpl-3.0 lgpl-3.0 agpl-3.0 mpl-2.0 unlicense openrail "
    "cc0-1.0 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-4.0 cc-by-nc-sa-4.0 "
    "cc-by-nd-4.0 cc-by-nc-nd-4.0".split()
)
"""The usual licences as the hub calls them; any other is named as it is given."""


def pack(
    run: str | os.PathLike[str],
    file: str | os.PathLike[str],
    *,
    licence: str = "",
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Path:
    """Write a run into one file, which `load`, `predict` and `evaluate` take like its folder.

    It has the recipe, the vocabularies, the weights, the scores, and a model card as README.md; no
    code and no data.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     packed = sixjars.pack(run.folder, f"{folder}/words.sixjars", licence="CC BY 4.0")
    ...     sixjars.load(packed).predict("namaste").error is None
    True
    """
    target = Path(file)
    if target.suffix != ENDING:
        raise RunError(f"a packed run ends in {ENDING}, but the file is {target}.")
    if target.exists():
        raise RunError(f"{target} is there already; remove it, or choose another name.")
    opened = shareable(run, Outside(tuple(allow), tuple(components)))
    with (
        written_whole(target) as beside,
        zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(CARD), model_card(opened, licence, use=usage("FILE")))
        for name in kept_files(opened.folder):
            archive.write(opened.folder / name, name)
    return target


def shareable(run: str | os.PathLike[str], outside: Outside) -> RunFolder:
    """A run that has something to share."""
    opened = open_run(run, outside)
    if not opened.weights.is_file():
        lack = "has no trained weights yet (model.safetensors), so there is nothing to share."
        raise RunError(f"{run} {lack}")
    return opened


def kept_files(folder: Path) -> list[str]:
    """The files of a run that are shared: all but its checkpoints."""
    kept = [*FILES, *(f"fields/{path.name}" for path in sorted((folder / "fields").glob("*.json")))]
    return [name for name in kept if (folder / name).is_file()]


def usage(name: str) -> str:
    """A sentence on how to use a run, under a name."""
    python = f'sixjars.load("{name}").predict("INPUT")'
    return f"`sixjars predict {name} INPUT`, or in Python with `{python}`"


def model_card(run: RunFolder, licence: str = "", *, use: str) -> str:
    """The model card of a run as Markdown: its data, scores and sizes, and how to `use` it."""
    recipe = run.recipe
    task = TASKS[run.recipe.task]
    fields = run.restored(Blueprint.of(recipe, run.outside).fields)
    shapes = saved_shapes(run.weights)
    parameters = f"{sum(map(prod, shapes)):,} parameters in {len(shapes)} tensors"
    components = ("encoder", "bridge", "decoder")
    kinds = [f"{name} `{plain(getattr(recipe.model, name)['kind'])}`" for name in components]
    lines = [
        f"# {task.name}: {task.title}",
        "",
        f"A model of [sixjars](https://pypi.org/project/sixjars/). Use it with {use}.",
        "",
        "## Licence",
        "",
        plain(licence) or "Not stated: ask whoever made it before you use it.",
        "",
        "## Data",
        "",
        *_data(run),
        *(f"- {name}: {plain(field.describe())}" for name, field in fields.all.items()),
        "",
        "## Scores",
        "",
        *_scores(run),
        "",
        "## Sizes",
        "",
        f"- {parameters}; {run.weights.stat().st_size:,} bytes",
        f"- {', '.join(kinds)}",
    ]
    return "\n".join(lines) + "\n"


def plain(value: object) -> str:
    """A text on one line that Markdown and HTML leave as it is."""
    return re.sub(r"[\s|`<>\[\]]+", " ", str(value)).strip()[:500]


def _data(run: RunFolder) -> list[str]:
    data = run.recipe.data
    if data.sample is not None:
        return [f"- synthetic: {data.sample.size} training examples, seed {data.sample.seed}"]
    files: list[tuple[str, Any]] = [("train", part.file) for part in data.training_files]
    files += [("valid", data.valid), ("test", data.test)]
    return [f"- {name}: {plain(file)}" for name, file in files if file is not None]


def scores_of(run: RunFolder) -> tuple[str, dict[str, float]]:
    """The data that a run was scored on at its end, and its scores; empty where none were kept."""
    try:
        kept = json.loads(read_limited(run.folder / "scores.json"))
        scores = {plain(name): float(score["value"]) for name, score in kept["scores"].items()}
        count = number_of(int(kept["examples"]), "example")
        return f"{count} of the {plain(kept['split'])} set", scores
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RunError):
        return "", {}


def _scores(run: RunFolder) -> list[str]:
    """A table of the final scores."""
    what, scores = scores_of(run)
    if not what:
        return ["None were kept."]
    rows = [f"| {name} | {value:.4f} |" for name, value in scores.items()]
    return [f"On {what}:", "", "| metric | value |", "| --- | --- |", *rows]


def push(
    run: str | os.PathLike[str],
    name: str,
    *,
    licence: str = "",
    private: bool = False,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> str:
    """Put a run on the Hugging Face hub, as `user/name`, and return its address.

    `load("hf:user/name")` opens it anywhere. Sign in first, with `hf auth login`; or set HF_TOKEN.
    No checkpoints and no data go along.

    >>> import sixjars
    >>> sixjars.push("runs/words", "words")
    Traceback (most recent call last):
        ...
    sixjars_runtime.errors.RunError: a run on the hub is called user/name, but this is 'words'.
    """
    from huggingface_hub import HfApi

    place = checked_name(name)
    opened = shareable(run, Outside(tuple(allow), tuple(components)))
    api = HfApi(library_name="sixjars")
    with tempfile.TemporaryDirectory(prefix="sixjars-") as temporary, reaching_the_hub(place):
        folder = Path(temporary)
        (folder / CARD).write_text(hub_card(opened, place, licence), encoding="utf-8")
        (folder / "fields").mkdir()
        for file in kept_files(opened.folder):
            shutil.copyfile(opened.folder / file, folder / file)
        address = str(api.create_repo(place, private=private, exist_ok=True))
        message = "Upload a run of sixjars"
        api.upload_folder(repo_id=place, folder_path=folder, commit_message=message)
    return address


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
