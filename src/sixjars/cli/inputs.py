"""The inputs of `predict`: texts, or images and videos by path, folder or glob, with questions about them."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sixjars.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.predict import Input, Predictor


def inputs_of(predictor: "Predictor", given: Iterator[str], questions: Sequence[str]) -> "Iterator[Input]":
    """One input after the other; every question is asked about every image."""
    first, *others = predictor.inputs
    if questions and "question" not in others:
        raise DataError(f"--question is for images that are asked about; {predictor.recipe.task} takes none.")
    if not questions and "question" in others:
        raise DataError("a question is needed; ask it with --question.")
    for value in (value for one in given for value in predictor.inputs[first].arguments(one)):
        if questions:
            yield from ({first: value, "question": question} for question in questions)
        else:
            yield value


def at_terminal() -> bool:
    """Whether somebody types."""
    return sys.stdin is not None and sys.stdin.isatty()


def lines_of(file: Path | None, predictor: "Predictor") -> Iterator[str]:
    """Lines of a file or of stdin; a language model that is given nothing begins from nothing."""
    reads, name, number = bool(predictor.fields.inputs), str(file or "standard input"), 0
    if file is not None and not file.is_file():
        raise DataError(f"input file {file} is a folder." if file.is_dir() else f"input file {file} does not exist.")
    if file is not None or (sys.stdin is not None and (reads or not at_terminal())):
        with sys.stdin.buffer if file is None else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape")
                yield text.rstrip("\r\n")
    if not number and reads:
        raise DataError(f"{name} has no text; give texts, --input FILE or lines on standard input.")
    if not number:
        yield ""
