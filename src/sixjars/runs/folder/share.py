"""Sharing a run, in one file or on the Hugging Face hub, with a model card."""

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sixjars.recipe.allowed_code import AllowedCode
from sixjars.runs.folder.archive import CARD, ENDING, FILES, checked_name, reaching_the_hub
from sixjars.runs.folder.model_card import hub_card, model_card, usage
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.output_file import written_whole
from sixjars_runtime.errors import RunError


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
    opened = shareable(run, AllowedCode(tuple(allow), tuple(components)))
    with (
        written_whole(target) as beside,
        zipfile.ZipFile(beside, "w", zipfile.ZIP_STORED) as archive,
    ):
        archive.writestr(zipfile.ZipInfo(CARD), model_card(opened, licence, use=usage("FILE")))
        for name in kept_files(opened.folder):
            archive.write(opened.folder / name, name)
    return target


def shareable(run: str | os.PathLike[str], outside: AllowedCode) -> RunFolder:
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
    opened = shareable(run, AllowedCode(tuple(allow), tuple(components)))
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
