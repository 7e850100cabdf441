"""A run on the Hugging Face hub: the files of a packed run, and a model card with the metadata that the hub reads."""

import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import yaml

from sixjars.recipe.outside import Outside
from sixjars.runs.archive import CARD
from sixjars.runs.folder import RunFolder
from sixjars.runs.hub import HUB, checked_name, reaching_the_hub
from sixjars.runs.pack import kept_files, model_card, scores_of, shareable, usage
from sixjars.tasks import TASKS

LICENCES: Final = frozenset(
    "apache-2.0 mit bsd-2-clause bsd-3-clause gpl-3.0 lgpl-3.0 agpl-3.0 mpl-2.0 unlicense openrail cc0-1.0 cc-by-3.0 "
    "cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-4.0 cc-by-nc-sa-4.0 cc-by-nd-4.0 cc-by-nc-nd-4.0".split()
)
"""What the hub calls the usual ones; any other is named as it is given."""


def push(
    run: str | os.PathLike[str],
    name: str,
    *,
    licence: str = "",
    private: bool = False,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> str:
    """Put a run on the Hugging Face hub, as `user/name`; its address. `load("hf:user/name")` opens it anywhere.

    Sign in first, with `hf auth login`; or set HF_TOKEN. No checkpoints and no data go along.

    >>> import sixjars
    >>> sixjars.push("runs/words", "words")
    Traceback (most recent call last):
        ...
    sixjars.errors.RunError: a run on the hub is called user/name, but this is 'words'.
    """
    from huggingface_hub import HfApi

    place = checked_name(name)
    opened = shareable(run, Outside(tuple(allow), tuple(components)))
    api = HfApi(library_name="sixjars")
    with tempfile.TemporaryDirectory(prefix="sixjars-") as made, reaching_the_hub(place):
        folder = Path(made)
        (folder / CARD).write_text(hub_card(opened, place, licence), encoding="utf-8")
        (folder / "fields").mkdir()
        for one in kept_files(opened.folder):
            shutil.copyfile(opened.folder / one, folder / one)
        address = str(api.create_repo(place, private=private, exist_ok=True))
        api.upload_folder(repo_id=place, folder_path=folder, commit_message="Upload a run of sixjars")
    return address


def hub_card(run: RunFolder, name: str, licence: str = "") -> str:
    """The model card, with metadata by which the hub finds and shows a model."""
    task = TASKS[run.recipe.task]
    facts: dict[str, Any] = {"library_name": "sixjars", "tags": ["sixjars", "encoder-decoder", task.name]}
    facts |= {"pipeline_tag": task.pipeline} if task.pipeline else {}
    known = re.sub(r"[\s_]+", "-", licence.strip().lower())
    if licence.strip():
        facts |= {"license": known} if known in LICENCES else {"license": "other", "license_name": known[:80]}
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
