"""Opening a packed run, one file that may come from a stranger: a zip of a few plain files, and nothing else.

Nothing in it is compressed, so what is unpacked is never larger than the file. Its entries have fixed names; the folder
that comes out of it is then read with the same care as any run folder.
"""

import atexit
import re
import shutil
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from sixjars.errors import RunError, shown
from sixjars.runs.hub import downloaded, is_on_hub

ENDING: Final = ".sixjars"
CARD: Final = "README.md"
FILES: Final = ("recipe.yaml", "run.json", "scores.json", "log.jsonl", "cost.json", "model.safetensors")
"""What a packed run has besides its model card and `fields/NAME.json`."""
_FIELD = re.compile(r"fields/[A-Za-z0-9_]{1,80}\.json")
_MOST: Final = 50
"""Entries; a run has about ten."""


def is_packed(path: Path) -> bool:
    """Whether this is the file of a packed run, by its ending, or a run on the hub, by its beginning."""
    return is_on_hub(path) or (path.suffix == ENDING and path.is_file())


def unpacked(path: Path) -> Path:
    """A folder with the files of a packed run, which is removed when this process ends; or one from the hub."""
    if is_on_hub(path):
        return downloaded(path, [CARD, *FILES, "fields/*.json"])
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _check(entries, path)
            folder = Path(tempfile.mkdtemp(prefix="sixjars-"))
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
            for entry in entries:
                target = folder / entry.filename
                target.parent.mkdir(exist_ok=True)
                with archive.open(entry) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        raise RunError(f"{path} is not a packed run, or damaged: {str(error).rstrip('.')[:200]}.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be unpacked: {error.strerror or error}.") from None
    return folder


def _check(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse whatever `pack` does not write: other names, compression, encryption, sizes that do not fit the file."""
    names = [entry.filename for entry in entries]
    if len(names) > _MOST or len(set(names)) < len(names):
        raise ValueError(f"it has {len(names)} entries, or two of one name")
    for entry in entries:
        if entry.filename not in (CARD, *FILES) and not _FIELD.fullmatch(entry.filename):
            raise ValueError(f"{shown(entry.filename)} has no place in it")
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise ValueError(f"{entry.filename} is compressed or encrypted, as no packed run is")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise ValueError("its entries are larger than the file")
