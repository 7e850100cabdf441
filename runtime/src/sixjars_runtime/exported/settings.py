"""What the files of an exported model say of it, checked once when it is loaded.

Whatever is wrong is one sentence that names the file, so nothing behind this asks again.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sixjars_runtime.errors import DataError, RunError, shown
from sixjars_runtime.exported.schema import (
    ANY,
    Check,
    by_kind,
    choice,
    items,
    named,
    number,
    optional,
    section,
    text,
    text_or,
    whole,
    yes_no,
)
from sixjars_runtime.small_files import read_limited, values_of_json
from sixjars_runtime.text.segments import KINDS as SEGMENTS

FORMAT: Final = 1
"""Of the files that `sixjars export` writes."""
SETTINGS: Final = "model.json"
CHOOSE: Final = "choose.onnx"
ENCODER: Final = "encoder.onnx"
STEP: Final = "step.onnx"
WHOLE: Final = "whole.onnx"
"""In place of encoder and step, with the search inside."""
NOTHING: Final = "nothing"
"""The input of a model that has none: rows without positions."""
PREFIX: Final = "prefix"
"""The input of a model that has none and a search inside: how outputs begin."""
LARGEST: Final = 1 << 20
"""Bytes of `model.json`, which has about two thousand."""
MOST_FIELDS: Final = 8
"""Inputs of a task; there are at most two."""
_PIXELS: Final = {"pixels": whole(1, 4096)}
_FILE: Final = {"fit": choice("crop", "pad", "stretch"), "max_pixels": whole(1, ANY)}
_VIDEO: Final = {"frames": whole(1, 100_000), "rate": optional(number(1e-6, 1_000_000))}
_TEXT: Final = {
    "segments": choice(*SEGMENTS),
    "max_length": whole(1, ANY),
    "on_long": optional(choice("cut", "drop", "error")),
}
INPUTS: Final[Mapping[str, Check]] = {
    "text": section({"settings": section(_TEXT)}),
    "points": section({"settings": section({"dimensions": whole(1, 1_000_000)})}),
    "image": section({"settings": section(_FILE), **_PIXELS}),
    "video": section({"settings": section(_FILE | _VIDEO), **_PIXELS}),
    "features": section({}),
}
"""What is said of an input, by its kind."""
OUTPUTS: Final[Mapping[str, Check]] = dict.fromkeys(("text", "label", "order"), section({}))
_TOKEN: Final = whole(0, 1 << 31)
_SPECIAL: Final = {
    "go": _TOKEN,
    "stop": _TOKEN,
    "banned": items(_TOKEN, most=1000),
    "unknown": optional(_TOKEN),
}
MODEL: Final = section(
    {
        "inputs": named(by_kind(INPUTS), least=0, most=MOST_FIELDS),
        "output": named(by_kind(OUTPUTS), least=1, most=1),
        "columns": named(text_or(whole(0, ANY)), least=0, most=MOST_FIELDS),
        "positions_of": optional(text),
        "layout": items(text_or(whole(0, 1_000_000)), least=1, most=4),
        "has_attention": yes_no,
        "multi_label": yes_no,
        "copies": yes_no,
        "special": optional(section(_SPECIAL, others=())),
        "longest_beyond": optional(whole(-100, 1000)),
        "search": section({}),
        "batch_examples": whole(1, ANY),
    }
)
LABELS: Final = section({"format": whole(2, 2), "labels": items(text, least=1, different=True)})
FEATURES: Final = section(
    {"channels": whole(1, 1 << 24), "positions": items(optional(whole(1, 1 << 24)), most=2)}
)


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    """Turn whatever is wrong with a file into a sentence that names it."""
    try:
        yield
    except (OSError, ValueError, DataError, RunError) as error:
        reason = f"is damaged: {str(error).rstrip('.').removeprefix(f'{path} ')[:500]}"
        if isinstance(error, UnicodeDecodeError):
            reason = f"is damaged: byte {error.start} is not UTF-8 text"
        elif isinstance(error, OSError):
            reason = f"cannot be read: {error.strerror or error}"
        raise RunError(f"{path} {reason}; export the run again.") from None


def about_of(folder: Path) -> dict[str, Any]:
    """Read the settings of an exported model."""
    path = folder / SETTINGS
    if not path.is_file() and not path.exists() and not path.is_symlink():
        is_run = (folder / "recipe.yaml").is_file()  # never to be written onto
        names = f"{folder} OUT" if is_run else f"RUN {folder}"
        raise RunError(
            f"{folder} holds no exported model ({SETTINGS}); write one with: sixjars export {names}"
        )
    with damaged(path):
        about = values_of_json(read_limited(path, LARGEST))
        section({"format": whole(-ANY, ANY)})(about, "")
    if about["format"] != FORMAT:
        version = shown(about["format"])
        raise RunError(
            f"{folder} has format {version}, but this runtime reads {FORMAT}; export the run again."
        )
    with damaged(path):
        MODEL(about, "")
        _check_together(about)
    return dict(about)


def _check_together(about: Mapping[str, Any]) -> None:
    """Refuse settings of which one key contradicts another."""
    [(output, field)] = about["output"].items()
    kinds = [each["kind"] for each in about["inputs"].values()]
    kind = field["kind"]
    if output in about["inputs"]:
        raise ValueError(f"{output} is an input and the output")
    if (kind == "label") != (about["special"] is None):
        raise ValueError(f"special is {shown(about['special'])}, but the output is of kind {kind}")
    if about["multi_label"] and kind != "label":
        raise ValueError(f"multi_label is true, but the output is of kind {kind}")
    if not kinds and kind != "text":
        raise ValueError(f"inputs names none, but the output is of kind {kind}")
    if about["copies"] and [*kinds[:1], kind] != ["text", "text"]:
        raise ValueError("copies is true, but the first input and the output are not both texts")
    if set(about["columns"]) != (set(about["inputs"]) or {output}):
        raise ValueError(f"columns names {shown(list(about['columns']))}, but not the inputs")


def learned_of(folder: Path, name: str) -> tuple[Path, str]:
    """Read what a run has kept of a field, and return it with its file."""
    path = folder / "fields" / f"{name}.json"
    if not path.is_symlink() and not path.exists():
        raise RunError(f"{path} does not exist; export the run again.")
    with damaged(path):
        return path, read_limited(path)
