"""Objects with values by name: JSON lines, or one list of objects."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.lines import decoded_lines
from sixjars.data.tables.rows import Fault, Key, Record, Wanted, decoded, escaped, value_of
from sixjars.data.tables.table_file import Cell, LineWriter, Row, TableFile, row_of
from sixjars.data.text.files import blocks_of, ending_of, lines_of
from sixjars.recipe.data import TableSettings
from sixjars_runtime.errors import DataError

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""
_NO_OBJECT: Final = 'is JSON, but not an object; each line is one object, like {"text": "..."}.'
_SPACE: Final = re.compile(r"\s*")
Blocks = Iterator[tuple[int, bytes]]


@final
class JsonFile(TableFile):
    """Objects, one on each line or in one list; rows are the same objects with members added."""

    def __init__(
        self, path: Path, columns: Mapping[str, Key], settings: TableSettings | None = None
    ) -> None:
        super().__init__(path, columns, settings)
        self.listed = False

    @property
    def unit(self) -> str:
        """Rows where a list has all of them on one line, else lines."""
        return json_unit(self.path)

    def records(self, wanted: Wanted) -> Iterator[Record]:
        """All objects, with the line that each begins on; or as `json_unit` says."""
        check_named(self.path, wanted.keys)
        return json_records(self.path)

    def rows(self) -> Iterator[Row]:
        """All objects; a line that is none is an input that cannot be read."""
        blocks = _list_in(self.path)
        self.listed = blocks is not None
        if blocks is not None:
            for line, text, value in _members(self.path, self._counted(blocks), escape=True):
                yield self._row(line, text, value)
            return
        for line, raw in self._counted(lines_of(self.path)):
            checked = decoded(line, raw)
            fault = checked if isinstance(checked, Fault) else None
            text = escaped(raw) if isinstance(checked, Fault) else checked
            try:
                value = _parsed(text) if text.strip() else {}
            except ValueError as error:
                yield Row(Fault(line, str(error)), text)
            else:
                yield self._row(line, text, value, fault)

    def _row(self, line: int, text: str, value: Any, fault: Fault | None = None) -> Row:
        """The values of an object; or where one text is read, a text or list alone is its value."""
        if len(self.columns) == 1 and text.lstrip()[:1] in ("[", '"'):
            [name] = self.columns
            return Row({name: value}, f"{{{json.dumps(name)}: {text.strip()}}}")
        if not isinstance(value, dict):
            return Row(Fault(line, _NO_OBJECT), text)
        if value and not self.used:
            self.names = list(value)
            self.used = {field: self._column(field, self.names) for field in self.columns}
        values = {field: _plain(_member(value, key)) for field, key in self.used.items()}
        return row_of(values or dict.fromkeys(self.columns, ""), text, fault)

    def writer(self, path: Path, added: Mapping[str, type]) -> "JsonWriter":
        """Lines or a list, as the file is."""
        return JsonWriter(path, added, listed=self.listed)


@final
class JsonWriter(LineWriter):
    """JSON lines, or one list."""

    def __init__(self, path: Path, added: Iterable[str], *, listed: bool) -> None:
        super().__init__(path, "[" if listed else "", "\n]\n" if listed else "")
        self.added = list(added)
        self.between = "\n" if listed else ""
        self.listed = listed

    def append(self, rows: Sequence[Row], cells: Sequence[Sequence[Cell]]) -> None:
        """Append the objects with the new members behind their own."""
        lines = []
        for row, values in zip(rows, cells, strict=True):
            added = json.dumps(dict(zip(self.added, values, strict=True)), ensure_ascii=False)
            body = "" if isinstance(row.values, Fault) else row.whole.strip()
            inside = body[1:-1].strip()
            lines.append(f"{{{inside}, {added[1:]}" if inside else added)
        if self.listed:
            self.put(self.between + ",\n".join(lines) if lines else "")
            self.between = ",\n"
        else:
            self.put("".join(f"{line}\n" for line in lines))


def _member(record: Mapping[str, Any], key: str) -> Any:
    try:
        return value_of(record, key)
    except ValueError:  # an object may leave a member out
        return ""


def _plain(value: object) -> Any:
    """A cell as an input: truth values as text, none as the empty text, others unchanged."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | list) else str(value)


def check_named(path: Path, keys: Iterable[Key]) -> None:
    """Refuse a column that is given by number."""
    for key in keys:
        if isinstance(key, int):
            raise DataError(
                f"{path}: JSON lines have names, not numbers, so column {key} is not there; give "
                "its name."
            )


def json_records(path: Path) -> Iterator[Record]:
    """Each object with the line that it begins on; or as `json_unit` says."""
    blocks = _list_in(path)
    if blocks is not None:
        by_row = json_unit(path) == "row"
        for row, (line, _, value) in enumerate(_members(path, blocks, escape=False), 1):
            number = row if by_row else line
            fault = Fault(number, "is no object; a list holds objects here.")
            yield number, value if isinstance(value, dict) else fault
        return
    for number, text in decoded_lines(path):
        try:
            yield number, text if isinstance(text, Fault) else _object(text)
        except ValueError as error:
            yield number, Fault(number, str(error))


def json_unit(path: Path) -> str:
    """The unit of a JSON file: `line`, or `row` where a list has all records on one line."""
    if not _may_be_list(path):
        return "line"
    lines = _first_lines(path)
    return "row" if len(lines) == 1 and lines[0].startswith((b"[", b"{")) else "line"


def _may_be_list(path: Path) -> bool:
    return ending_of(path) == ".json"


def _first_lines(path: Path) -> list[bytes]:
    """The first two lines that are not blank, without white space before them."""
    stripped = (line.lstrip() for _, line in lines_of(path))
    return list(islice(filter(None, stripped), 2))


def _list_in(path: Path) -> Blocks | None:
    """The blocks of a file that is a list, or of the one list in an object; none for lines."""
    first = _first_lines(path) if _may_be_list(path) else []
    if first and first[0].startswith(b"["):
        return blocks_of(path, whole_lines=False)
    text = wrapped_list(path)
    return iter([(1, text.encode())]) if text else None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def wrapped_list(path: Path) -> str:
    """The list of objects in a `.json` file with an object around it, `{"data": [...]}`.

    Empty lines stand for what is before it, so that errors name the right line.
    """
    first = _first_lines(path)
    lines = not _may_be_list(path) or (len(first) > 1 and _is_json(first[0]))
    if lines or not first or not first[0].startswith(b"{"):
        return ""
    text = _whole(path)
    lists: dict[str, str] = {}
    try:
        at = _skip(text, _skip(text, 0) + 1)
        while text[at : at + 1] == '"':
            name, at = DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)  # behind the colon
            value, end = DECODER.raw_decode(text, at)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                lists[name] = "\n" * text.count("\n", 0, at) + text[at:end]
            at = _skip(text, end)
            at = _skip(text, at + 1) if text[at : at + 1] == "," else at
    except (ValueError, RecursionError):  # lines, maybe
        return ""
    if len(lists) > 1:
        names = ", ".join(lists)
        raise DataError(
            f"{path} is an object with several lists ({names}); save the one that is meant as a "
            "file."
        )
    return next(iter(lists.values()), "")


def _whole(path: Path) -> str:
    content = b"".join(line for _, line in lines_of(path))
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: is not UTF-8; save the file as UTF-8.") from None


@final
class _Text:
    """The text of a file, of which no more is in memory than is needed."""

    def __init__(self, path: Path, blocks: Blocks, *, escape: bool) -> None:
        self.path = path
        self.blocks = blocks
        errors = "surrogateescape" if escape else "strict"
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")(errors)
        self.text = ""
        self.at = 0
        self.line, self.counted = 1, 0
        """The line of a place in the text, up to which line breaks were counted."""
        self.column = 0
        """Characters before the text on its first line."""

    def mark(self) -> str:
        """The next character that is no white space; nothing at the end."""
        while True:
            self.at = _skip(self.text, self.at)
            if self.at < len(self.text) or not self._read_on():
                return self.text[self.at : self.at + 1]

    def value(self) -> tuple[str, Any]:
        """The value that begins here, as text too."""
        while True:
            fault = value = None
            end = len(self.text)
            try:
                value, end = DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                line, column = self._place(error.pos)
                fault = f"line {line}: is not JSON: {error.msg} at column {column}"
            except RecursionError:
                fault = f"line {self.line_here()}: has too many brackets inside brackets"
            if end == len(self.text) and self._read_on():  # a number might go on, for one
                continue
            if fault:
                raise DataError(f"{self.path}, {fault}.")
            begin, self.at = self.at, end
            return self.text[begin:end], value

    def line_here(self) -> int:
        """The line that is read."""
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        return self.line

    def _place(self, at: int) -> tuple[int, int]:
        """The line and the column of a place in the text."""
        line = self.line_here() + self.text.count("\n", self.at, at)
        before = self.text.rfind("\n", 0, at)
        return line, at - before if before >= 0 else self.column + at + 1

    def _read_on(self) -> bool:
        """Read at least as much as is there, so that a long value is not parsed again and again."""
        rest = self.text[self.at :]
        pieces = list[str]()
        missing = len(rest)
        while missing >= 0 and (block := next(self.blocks, None)) is not None:
            pieces.append(self._decoded(*block))
            missing -= len(pieces[-1])
        if pieces:
            line, column = self._place(self.at)
            self.text = "".join([rest, *pieces])
            self.line, self.column = line, column - 1
            self.at = self.counted = 0
        return bool(pieces)

    def _decoded(self, number: int, block: bytes) -> str:
        try:
            return self.decoder.decode(block)
        except UnicodeDecodeError as error:
            line = number + error.object.count(b"\n", 0, error.start)
            raise DataError(
                f"{self.path}, line {line}: is not UTF-8; save the file as UTF-8."
            ) from None


def _members(path: Path, blocks: Blocks, *, escape: bool) -> Iterator[tuple[int, str, Any]]:
    """The members of a list: the line on which each begins, its text, and its value."""
    text = _Text(path, blocks, escape=escape)
    text.mark()
    text.at += 1  # behind the bracket
    while text.mark() != "]":
        line = text.line_here()
        yield line, *text.value()
        mark = text.mark()
        if mark == ",":
            text.at += 1
        elif mark != "]":
            raise DataError(
                f"{path}, line {text.line_here()}: is not JSON: a comma or the end of the list is "
                "missing."
            )


def _skip(text: str, at: int) -> int:
    """The place of the next character that is no white space."""
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]  # it fits everywhere


def _object(text: str) -> dict[str, Any]:
    """The object of a line."""
    if not text or text.isspace():
        raise ValueError("the line is empty.")
    parsed = _parsed(text)
    if not isinstance(parsed, dict):
        raise ValueError(_NO_OBJECT)
    return parsed


def _parsed(text: str) -> Any:
    """The value of a line; ValueError with a sentence where it is none."""
    try:
        return DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"is not JSON: {error.msg} at column {error.colno}; each line is one object."
        ) from error
    except RecursionError as error:
        raise ValueError(
            "is not JSON that can be read: too many brackets inside brackets."
        ) from error
