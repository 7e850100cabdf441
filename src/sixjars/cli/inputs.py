"""The inputs of `predict`: texts, images and videos by path, objects by column, lines, and files with columns."""

import gzip
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast, final

from sixjars.cli.options import note
from sixjars.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.answer_files import Row
    from sixjars.runs.files import InputFile
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction
    from sixjars.runs.requests import Input

    Item = tuple[Input, Row | None]
    """One input, and the row that it comes from where that is in a file with columns."""

_AT_ONCE = 1 << 16  # bytes


def at_terminal() -> bool:
    """Whether somebody types."""
    return sys.stdin is not None and sys.stdin.isatty()


def texts_given(predictor: "Predictor", given: Iterator[str], questions: Sequence[str]) -> "Iterator[Item]":
    """One input after the other; every question is asked about every image."""
    first, *others = predictor.inputs
    asked = others[0] if others and predictor.inputs[first].is_media else None
    if questions and asked is None:
        raise DataError(f"--question is for images that are asked about; {predictor.recipe.task} takes none.")
    for one in given:
        named = object_named(predictor, one)
        if named is not None:
            yield named, None
            continue
        if not questions and asked is not None:
            raise DataError(f"a {asked} is needed; ask it with --question.")
        if others and not questions:
            yield _parted(predictor, one), None
            continue
        for value in predictor.inputs[first].arguments(one):
            if asked is None:
                yield value, None
            else:
                yield from (({first: value, asked: question}, None) for question in questions)


def _parted(predictor: "Predictor", line: str) -> "Input":
    """The texts of a line with tabs between them."""
    from sixjars.runs.requests import Unreadable

    names, texts = list(predictor.inputs), line.split("\t")
    if len(texts) != len(names):
        return Unreadable(f"must be {' and '.join(names)} with a tab between them.")
    return dict(zip(names, texts, strict=True))


def on_one_line(predictor: "Predictor", texts: Sequence[str], questions: Sequence[str]) -> list[str]:
    """Arguments as lines are: where an input has two texts, they stand one after the other, and a tab is between."""
    count = len(predictor.inputs)
    whole = any("\t" in text or object_named(predictor, text) is not None for text in texts)
    if count < 2 or questions or whole or any(field.is_media for field in predictor.inputs.values()):
        return list(texts)
    if len(texts) % count:
        names = " and ".join(predictor.inputs)
        raise DataError(f"{predictor.recipe.task} reads {names}: give {count} texts for each input, not {len(texts)}.")
    return ["\t".join(texts[at : at + count]) for at in range(0, len(texts), count)]


def note_file_names(predictor: "Predictor", texts: Sequence[str]) -> None:
    """A note where a text that is to be read is the name of a file: maybe what is in the file is meant."""
    if any(field.is_media for field in predictor.inputs.values()):
        return
    named = next((text for text in texts if os.path.isfile(text)), None)  # false for a text too long
    if named is not None:
        note(f"note: {named} is the name of a file; to read it, say --input {named}.")


def note_fault(prediction: "Prediction") -> bool:
    """Whether an input could not be used, which is noted; so is one that was cut."""
    if prediction.error is not None:
        note(f"note: {prediction.error}")
    elif prediction.truncated:
        note("note: the input was cut, because it is longer than the run reads (max_length).")
    return prediction.error is not None


def object_named(predictor: "Predictor", text: str) -> "Mapping[str, Any] | None":
    """The input that a JSON object gives by the names of columns or fields; nothing of another text."""
    if not text.lstrip().startswith("{"):
        return None
    with suppress(ValueError, RecursionError):  # a text may begin with a brace too
        found = json.loads(text)
        names = {field: [str(key), field] for field, key in predictor.columns.items()}
        held = {field: next((one for one in some if one in found), None) for field, some in names.items()}
        if any(held.values()):
            return {field: found[key] for field, key in held.items() if key is not None}
    return None


@final
class Lines:
    """Lines of a file or of stdin, one input each; how much of a file was read, for progress."""

    def __init__(self, file: Path | None, predictor: "Predictor") -> None:
        self.file = file
        self.reads = bool(predictor.fields.inputs)
        self.read = 0
        if file is not None and not file.is_file():
            problem = "is a folder." if file.is_dir() else "does not exist."
            raise DataError(f"input file {file} {problem}")
        self.zipped = file is not None and file.suffix.lower() == ".gz"
        self.size = None if file is None or self.zipped else file.stat().st_size

    def __iter__(self) -> Iterator[str]:
        """A language model that is given nothing begins from nothing."""
        number = 0
        if self.file is not None or (sys.stdin is not None and (self.reads or not at_terminal())):
            for number, line in enumerate(self._raw(), start=1):
                self.read += len(line)
                yield line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape").rstrip("\r\n")
        if not number and self.reads:
            name = self.file or "standard input"
            raise DataError(f"{name} has no text; give texts, --input FILE or lines on standard input.")
        if not number:
            yield ""

    def _raw(self) -> Iterator[bytes]:
        if self.file is None:
            yield from _as_they_come(sys.stdin.buffer)
            return
        with cast(BinaryIO, gzip.open(self.file) if self.zipped else self.file.open("rb")) as stream:
            yield from stream


def _as_they_come(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of stdin. Its buffer is passed by: a thread that waits inside of it would keep Python from ending."""
    source, rest = getattr(stream, "raw", stream), b""
    while some := source.read(_AT_ONCE):
        *lines, rest = (rest + some).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def rows_given(predictor: "Predictor", file: "InputFile") -> "Iterator[Item]":
    """The rows of a file with columns; images and videos may be beside it."""
    media = [name for name, field in predictor.inputs.items() if field.is_media]
    row = None
    for row in file.rows():
        values = row.values
        if isinstance(values, Mapping) and media:
            values = {**values, **{name: _beside(file.path, values[name]) for name in media}}
        yield cast("Input", values), row
    if row is None:
        raise DataError(f"{file.path} has no rows.")


def _beside(file: Path, name: Any) -> Any:
    """A name from the folder of the file, where a table that was written on Windows may have another slash."""
    places = [file.parent / str(name), file.parent / str(name).replace("\\", "/")]
    return next((str(found) for found in places if name and found.exists()), name)
