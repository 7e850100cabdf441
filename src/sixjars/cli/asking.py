"""What `predict` is asked: texts, or pictures and films by path, folder or glob, with questions about them."""

import json
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixjars.errors import DataError

if TYPE_CHECKING:
    from sixjars.serving.predictor import Asked, Predictor


def asked_of(predictor: "Predictor", given: Iterator[str], questions: Sequence[str]) -> "Iterator[Asked]":
    """One input after the other; every question is asked of every picture."""
    inputs = predictor.task.inputs
    if questions and "question" not in inputs:
        raise DataError(f"--question is for pictures that are asked about; {predictor.task.name} takes none.")
    if not questions and "question" in inputs:
        raise DataError("a question is needed; ask it with --question.")
    if not predictor.task.media:
        yield from (listed(predictor, text) for text in given)
        return
    [field] = predictor.task.media
    for path in (path for one in given for path in files_of(one, field)):
        if questions:
            yield from ({field: path, "question": question} for question in questions)
        else:
            yield path


def listed(predictor: "Predictor", text: str) -> "Asked":
    """A text, or the JSON list that it is where a model reads lists: of sentences, turns or points."""
    data = predictor.recipe.data
    reads = data.points is not None or (data.source is not None and data.source.parts != "none")
    if not reads or not text.lstrip().startswith("["):
        return text
    try:
        value: list[Any] = json.loads(text)
    except (ValueError, RecursionError):
        return text  # a text may begin with a bracket too
    return value


def files_of(given: str, kind: str) -> list[str]:
    """The files that a path, a folder or a glob means; in folders and globs only those of a known ending."""
    from sixjars.data.films import FILM_ENDINGS
    from sixjars.data.pictures import PICTURE_ENDINGS

    path = Path(given)
    if path.is_file() or not (path.is_dir() or has_magic(given)):
        return [given]
    endings = FILM_ENDINGS if kind == "video" else PICTURE_ENDINGS
    found = [str(file) for file in path.rglob("*")] if path.is_dir() else glob(given, recursive=True)
    plain = [file for file in found if not (Path(file).name.startswith(".") or "__MACOSX" in Path(file).parts)]
    kept = sorted(file for file in plain if Path(file).suffix.lower() in endings and Path(file).is_file())
    if not kept:
        raise DataError(f"{given} holds no {kind} file (known endings: {' '.join(sorted(endings))}).")
    return kept
