"""Runs on the Hugging Face hub, or on a server of your own that speaks as it does (`HF_ENDPOINT`).

What is downloaded is a run folder from a stranger: only the files of a run are fetched, none is code, and all are read
with the same care as any other folder.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sixjars.errors import RunError, shown

HUB: Final = "hf:"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


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


def downloaded(path: Path, files: Sequence[str]) -> Path:
    """The folder of a run on the hub, `hf:user/name` or `hf:user/name@revision`; what was fetched before is kept."""
    from huggingface_hub import snapshot_download

    plain, _, revision = str(path).partition("@")
    name = checked_name(plain)
    with reaching_the_hub(name):
        folder = Path(
            snapshot_download(
                name, revision=revision or None, allow_patterns=list(files), library_name="sixjars", tqdm_class=None
            )
        )
    if not (folder / "recipe.yaml").is_file():
        raise RunError(f"{plain} is not a run of sixjars: it has no recipe.yaml.")
    return folder


@contextmanager
def reaching_the_hub(name: str) -> Iterator[None]:
    """Whatever the hub or the network says becomes one sentence."""
    from huggingface_hub import errors

    try:
        yield
    except errors.RevisionNotFoundError:
        raise RunError(f"{name} has no such revision on the hub.") from None
    except errors.RepositoryNotFoundError:
        raise RunError(
            f"{name} is not on the hub, or not for you; sign in with `hf auth login`, or set HF_TOKEN, if it is yours."
        ) from None
    except errors.LocalEntryNotFoundError:
        raise RunError(f"{name} cannot be downloaded: the hub cannot be reached, and it was never here.") from None
    except errors.HfHubHTTPError as error:
        said = error.server_message or str(error).splitlines()[0]
        raise RunError(f"the hub refused {name}: {said.strip().rstrip('.')}.") from None
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]  # of the library that it calls with
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise RunError(f"the hub cannot be reached for {name}: {reason.rstrip('.')}.") from None
