"""The inputs of `predict`: texts, paths of media, objects by column, lines, and tables."""

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, final

from sixjars.cli.options import note
from sixjars.data.text.files import is_gzipped
from sixjars.runs.notes import cut_in_words
from sixjars.runs.prediction_input import (
    input_of_parts,
    input_of_row,
    object_named,
    object_of,
    raw_lines,
    text_of,
)
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.data.tables.table_file import TableFile
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction
    from sixjars.runs.prediction_input import Item

_AT_ONCE = 1 << 16  # bytes of a read


def at_terminal() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


def texts_given(
    predictor: "Predictor", given: Iterator[str], questions: Sequence[str]
) -> "Iterator[Item]":
    """Yield inputs one after the other, every question with every image."""
    first, *others = predictor.inputs
    asked = others[0] if others and predictor.inputs[first].is_media else None
    if questions and asked is None:
        raise DataError(
            f"--question is for images that are asked about; {predictor.recipe.task} takes none."
        )
    for text in given:
        named = object_named(predictor, text)
        if named is not None:
            yield named, None
            continue
        if not questions and asked is not None:
            raise DataError(f"a {asked} is needed; ask it with --question.")
        if others and not questions:
            yield input_of_parts(predictor, text), None
            continue
        for value in predictor.inputs[first].arguments(text):
            if asked is None:
                yield value, None
            else:
                yield from (({first: value, asked: question}, None) for question in questions)


def on_one_line(
    predictor: "Predictor", texts: Sequence[str], questions: Sequence[str]
) -> list[str]:
    """Arguments as lines: the texts of one input stand after each other, with a tab between."""
    count = len(predictor.inputs)
    whole = any("\t" in text or object_named(predictor, text) is not None for text in texts)
    media = any(field.is_media for field in predictor.inputs.values())
    if count < 2 or questions or whole or media:
        return list(texts)
    if len(texts) % count:
        names = " and ".join(predictor.inputs)
        raise DataError(
            f"{predictor.recipe.task} reads {names}: give {count} texts for each input, "
            f"not {len(texts)}; or an object each: {object_of(predictor)}."
        )
    return ["\t".join(texts[at : at + count]) for at in range(0, len(texts), count)]


def note_file_names(predictor: "Predictor", texts: Sequence[str]) -> None:
    """A note where a text is the name of a file, whose content may be meant."""
    if any(field.is_media for field in predictor.inputs.values()):
        return
    # `isfile` is false, not an error, for a text that is too long
    named = next((text for text in texts if os.path.isfile(text)), None)
    if named is not None:
        note(f"note: {named} is the name of a file; to read it, say --input {named}.")


def note_cut(prediction: "Prediction") -> None:
    """A note where an input was cut."""
    if prediction.truncated:
        note(f"note: {cut_in_words()}")


@final
class Lines:
    """Lines of a file or of stdin, one input each; it counts the bytes read, for progress."""

    def __init__(self, file: Path | None, predictor: "Predictor") -> None:
        self.file = file
        self.reads = bool(predictor.fields.inputs)
        self.read = 0
        if file is not None and not file.is_file():
            problem = "is a folder." if file.is_dir() else "does not exist."
            raise DataError(f"input file {file} {problem}")
        self.size = None if file is None or is_gzipped(file) else file.stat().st_size

    def __iter__(self) -> Iterator[str]:
        """Yield the lines; a language model without any begins from nothing."""
        number = 0
        if self.file is not None or (sys.stdin is not None and (self.reads or not at_terminal())):
            for number, line in enumerate(self._raw(), start=1):
                self.read += len(line)
                yield text_of(line, number)
        if not number and self.reads:
            name = self.file or "standard input"
            raise DataError(
                f"{name} has no text; give texts, --input FILE or lines on standard input."
            )
        if not number:
            yield ""

    def _raw(self) -> Iterator[bytes]:
        if self.file is None:
            yield from _as_they_come(sys.stdin.buffer)
            return
        yield from raw_lines(self.file)


def _as_they_come(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of stdin, past its buffer, in which a waiting thread keeps Python from ending."""
    source = getattr(stream, "raw", stream)
    rest = b""
    while block := source.read(_AT_ONCE):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def rows_given(predictor: "Predictor", file: "TableFile") -> "Iterator[Item]":
    """The rows of a file with columns; images and videos may be beside it."""
    row = None
    for row in file.rows():
        yield input_of_row(predictor, file.path, row)
    if row is None:
        raise DataError(f"{file.path} has no rows.")
