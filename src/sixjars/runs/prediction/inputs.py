"""The inputs of predictions: one from each line of text, or from each row of a file."""

import glob
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sixjars.data.text.files import is_empty, lines_of

if TYPE_CHECKING:
    from sixjars.data.tables.table_file import TableRow
    from sixjars.runs.prediction.predictor import Predictor
    from sixjars.runs.prediction.requests import Input

    Item = tuple[Input, TableRow | None]
    """One input, and the row that it comes from where that is in a file with columns."""


def is_many(path: Path) -> bool:
    """Whether this means several files: it is a folder, or a glob."""
    return path.is_dir() or (glob.has_magic(str(path)) and not path.exists())


def raw_lines(file: Path) -> Iterator[bytes]:
    """The lines of a file, plain or gzipped, in UTF-8; none of an empty one."""
    if not is_empty(file):
        yield from (line for _, line in lines_of(file))


def text_of(line: bytes, number: int) -> str:
    """A line as text; the first, number 1, may begin with a byte order mark."""
    return line.decode("utf-8-sig" if number == 1 else "utf-8", "surrogateescape").rstrip("\r\n")


def object_named(predictor: "Predictor", text: str) -> "Mapping[str, Any] | None":
    """The input that a JSON object gives by names of columns or fields; None for another text."""
    if not text.lstrip().startswith("{"):
        return None
    with suppress(ValueError, RecursionError):  # a text may begin with a brace too
        record = json.loads(text)
        values = {}
        for field, column in predictor.columns.items():
            key = next((key for key in (str(column), field) if key in record), None)
            if key is not None:
                values[field] = record[key]
        if values:
            return values
    return None


def object_of(predictor: "Predictor") -> str:
    """The JSON object that gives an input by the names of its columns."""
    columns = {
        field: field if isinstance(key, int) else key for field, key in predictor.columns.items()
    }
    return json.dumps(dict.fromkeys(columns.values(), "..."), ensure_ascii=False)


def input_of_parts(predictor: "Predictor", line: str) -> "Input":
    """The texts of a line with tabs between them."""
    from sixjars.runs.prediction.requests import UnreadableInput

    names, texts = list(predictor.inputs), line.split("\t")
    if len(texts) != len(names):
        parts = f"{' and '.join(names)} with a tab between them"
        return UnreadableInput(f"must be {parts}, or {object_of(predictor)}.")
    return dict(zip(names, texts, strict=True))


def input_of_line(predictor: "Predictor", line: str) -> "Input":
    """The input of one line: an object, several texts with tabs between them, or one text."""
    named = object_named(predictor, line)
    if named is not None:
        return named
    return input_of_parts(predictor, line) if len(predictor.inputs) > 1 else line


def input_of_row(predictor: "Predictor", file: Path, row: "TableRow") -> "Item":
    """The input of one row of a file; images and videos may be beside the file."""
    from sixjars.runs.prediction.requests import UnreadableInput

    values = row.values
    if not isinstance(values, Mapping):
        return UnreadableInput(values.sentence), row
    media = [name for name, field in predictor.inputs.items() if field.is_media]
    return {**values, **{name: _beside(file, values[name]) for name in media}}, row


def _beside(file: Path, name: Any) -> Any:
    """A name, or its path from the file's folder; Windows may have written another slash."""
    places = [file.parent / str(name), file.parent / str(name).replace("\\", "/")]
    return next((str(place) for place in places if name and place.exists()), name)
