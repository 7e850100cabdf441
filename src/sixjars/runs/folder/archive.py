"""Opening a run from elsewhere: the one file of a packed run, or a run on the Hugging Face hub.

A packed run is a zip of a few plain files, and nothing else. Nothing in it is compressed, so what
is unpacked is never larger than the file. Its entries have fixed names. From the hub, or a server
of your own that speaks as it does (`HF_ENDPOINT`), only the files of a run are fetched, and none is
code. The folder that comes out of either is then read with the same care as any run folder.
"""

import atexit
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sixjars_runtime.errors import RunError, first_line, shown

HUB: Final = "hf:"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
ENDING: Final = ".sixjars"
CARD: Final = "README.md"
FILES: Final = (
    "recipe.yaml",
    "run.json",
    "scores.json",
    "log.jsonl",
    "cost.json",
    "model.safetensors",
)
"""The files of a packed run besides its model card and `fields/NAME.json`."""
_FIELD = re.compile(r"fields/[A-Za-z0-9_]{1,80}\.json")
_MOST: Final = 50
"""Entries; a run has about ten."""


def is_on_hub(path: Path) -> bool:
    """Whether this names a run on the hub.

    >>> is_on_hub(Path("hf:user/name")), is_on_hub(Path("runs/name"))
    (True, False)
    """
    return str(path).startswith(HUB)


def checked_name(name: str) -> str:
    """The name of a repository, without `hf:`; others are refused before anything is sent."""
    plain = name.removeprefix(HUB)
    if not _NAME.fullmatch(plain):
        raise RunError(f"a run on the hub is called user/name, but this is {shown(name)}.")
    return plain


def downloaded(path: Path) -> Path:
    """The folder of a run on the hub, `hf:user/name` or `hf:user/name@revision`; it is cached."""
    from huggingface_hub import snapshot_download

    plain, _, revision = str(path).partition("@")
    name = checked_name(plain)
    with reaching_the_hub(name):
        fetched = snapshot_download(
            name,
            revision=revision or None,
            allow_patterns=[CARD, *FILES, "fields/*.json"],
            library_name="sixjars",
            tqdm_class=None,
        )
    folder = Path(fetched)
    if not (folder / "recipe.yaml").is_file():
        raise RunError(f"{plain} is not a run of sixjars: it has no recipe.yaml.")
    return folder


@contextmanager
def reaching_the_hub(name: str) -> Iterator[None]:
    """Make one sentence of whatever the hub or the network says."""
    from huggingface_hub import errors

    try:
        yield
    except errors.RevisionNotFoundError:
        raise RunError(f"{name} has no such revision on the hub.") from None
    except errors.RepositoryNotFoundError:
        remedy = "sign in with `hf auth login`, or set HF_TOKEN, if it is yours."
        raise RunError(f"{name} is not on the hub, or not for you; {remedy}") from None
    except errors.LocalEntryNotFoundError:
        reason = "the hub cannot be reached, and it was never here."
        raise RunError(f"{name} cannot be downloaded: {reason}") from None
    except errors.HfHubHTTPError as error:
        said = error.server_message or str(error).splitlines()[0]
        raise RunError(f"the hub refused {name}: {said.strip().rstrip('.')}.") from None
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]
        raise RunError(f"the hub cannot be reached for {name}: {first_line(error)}.") from None


def is_packed(path: Path) -> bool:
    """Whether this is a packed run, by its ending, or a run on the hub, by its beginning."""
    return is_on_hub(path) or (path.suffix == ENDING and path.is_file())


def unpacked(path: Path) -> Path:
    """A folder with the files of a packed run until this process ends, or of a run on the hub."""
    if is_on_hub(path):
        return downloaded(path)
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
        reason = str(error).rstrip(".")[:200]
        raise RunError(f"{path} is not a packed run, or damaged: {reason}.") from None
    except OSError as error:
        raise RunError(f"{path} cannot be unpacked: {error.strerror or error}.") from None
    return folder


def _check(entries: list[zipfile.ZipInfo], path: Path) -> None:
    """Refuse whatever `pack` does not write: other names, compression, encryption, wrong sizes."""
    names = [entry.filename for entry in entries]
    if len(names) > _MOST or len(set(names)) < len(names):
        raise ValueError(f"it has {len(names)} entries, or two of one name")
    for entry in entries:
        if entry.filename not in (CARD, *FILES) and not _FIELD.fullmatch(entry.filename):
            raise ValueError(f"{shown(entry.filename)} has no place in it")
        is_stored = entry.compress_type == zipfile.ZIP_STORED
        if not is_stored or entry.file_size != entry.compress_size or entry.flag_bits & 1:
            raise ValueError(f"{entry.filename} is compressed or encrypted, as no packed run is")
    if sum(entry.file_size for entry in entries) > path.stat().st_size:
        raise ValueError("its entries are larger than the file")
