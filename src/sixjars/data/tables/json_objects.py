"""Objects with values by name: JSON lines, or one list of objects."""

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.tables.rows import (
    ESCAPED,
    Key,
    ReadSettings,
    Record,
    RowFault,
    decoded,
    escaped,
    value_of,
)
from sixjars.data.tables.table_file import Cell, LineWriter, TableFile, TableRow, row_of
from sixjars.data.text.files import blocks_of, ending_of, lines_of
from sixjars_runtime.errors import DataError

DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str)
"""Reads JSON in which numbers stay as they are written."""
_NO_OBJECT: Final = 'is JSON, but not an object; each line is one object, like {"text": "..."}.'
_NO_UTF8: Final = "is not UTF-8; save the file as UTF-8."
_SPACE: Final = re.compile(r"\s*")
Blocks = Iterator[tuple[int, bytes]]


@final
class JsonFile(TableFile):
    """Objects, one on each line or in one list; rows are the same objects with members added."""

    listed = False
    """Whether it is one list."""

    def records(self, wanted: ReadSettings) -> Iterator[Record]:
        """All objects, with the line that each begins on; or as `json_unit` says."""
        check_named(self.path, wanted.keys)
        self.unit = json_unit(self.path)
        return json_records(self.path)

    def rows(self) -> Iterator[TableRow]:
        """All objects; a line that is none is an input that cannot be read."""
        members = _list_in(self.path)
        self.listed = members is not None
        blocks = self._counted(members or lines_of(self.path))
        for entry in _entries(self.path, blocks, listed=self.listed):
            yield self._row(*entry)

    def _row(self, line: int, text: str, value: Any, fault: RowFault | None) -> TableRow:
        """The values of an object; or where one text is read, a text or list alone is its value."""
        if fault is not None and value is None:
            return TableRow(fault, text)
        if len(self.columns) == 1 and text.lstrip()[:1] in ("[", '"'):
            [name] = self.columns
            return TableRow({name: value}, f"{{{json.dumps(name)}: {text.strip()}}}")
        if not isinstance(value, dict):
            return TableRow(RowFault(line, _NO_OBJECT), text)
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

    def append(self, rows: Sequence[TableRow], cells: Sequence[Sequence[Cell]]) -> None:
        """Append the objects with the new members behind their own."""
        lines = []
        for row, values in zip(rows, cells, strict=True):
            added = json.dumps(dict(zip(self.added, values, strict=True)), ensure_ascii=False)
            body = "" if isinstance(row.values, RowFault) else row.whole.strip()
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
    members = _list_in(path)
    by_row = members is not None and json_unit(path) == "row"
    no_object = _NO_OBJECT if members is None else "is no object; a list holds objects here."
    entries = _entries(path, members or lines_of(path), listed=members is not None)
    for row, (line, text, value, fault) in enumerate(entries, 1):
        number = row if by_row else line
        if fault is not None:
            yield number, fault
        elif not value and not text.strip():
            yield number, RowFault(number, "the line is empty.")
        else:
            yield number, value if isinstance(value, dict) else RowFault(number, no_object)


def _entries(
    path: Path, blocks: Blocks, *, listed: bool
) -> Iterator[tuple[int, str, Any, RowFault | None]]:
    """The line, the text and the value of each member of a list or each line, and its fault."""
    if listed:
        for line, text, value in _members(path, blocks):
            bad = not text.isascii() and ESCAPED.search(text)
            yield line, text, value, RowFault(line, _NO_UTF8) if bad else None
        return
    for line, raw in blocks:
        checked = decoded(line, raw)
        fault = checked if isinstance(checked, RowFault) else None
        text = escaped(raw) if isinstance(checked, RowFault) else checked
        value = None
        try:
            value = DECODER.decode(text) if text and not text.isspace() else {}
        except json.JSONDecodeError as error:
            wrong = f"is not JSON: {error.msg} at column {error.colno}; each line is one object."
            fault = fault or RowFault(line, wrong)
        except RecursionError:
            fault = RowFault(
                line, "is not JSON that can be read: too many brackets inside brackets."
            )
        yield line, text, value, fault


def json_unit(path: Path) -> str:
    """The unit of a JSON file: `line`, or `row` where a list has all records on one line."""
    if ending_of(path) != ".json":
        return "line"
    stripped = (line.lstrip() for _, line in lines_of(path))
    lines = list(islice(filter(None, stripped), 2))
    return "row" if len(lines) == 1 and lines[0].startswith((b"[", b"{")) else "line"


def _list_in(path: Path) -> Blocks | None:
    """The blocks of a file that is a list, or of the one list in an object; none for lines."""
    if ending_of(path) != ".json":
        return None
    text = _Text(path, blocks_of(path, whole_lines=False))
    mark = text.mark()
    if mark == "[":
        return blocks_of(path, whole_lines=False)
    lists = _lists_in(text) if mark == "{" else {}
    if len(lists) > 1:
        names = ", ".join(lists)
        raise DataError(
            f"{path} is an object with several lists ({names}); save the one that is meant as a "
            "file."
        )
    written = "".join(lists.values())
    return iter([(1, written.encode("utf-8", "surrogateescape"))]) if written else None


def _lists_in(text: "_Text") -> dict[str, str]:
    """The lists of objects in an object, `{"data": [...]}`, by name; none where lines follow it.

    Empty lines stand for what is before a list, so that errors name the right line.
    """
    lists = dict[str, str]()
    try:
        text.skip()
        while text.mark() == '"':
            _, name = text.value()
            text.mark()
            text.skip()  # the colon
            text.mark()
            before = text.line - 1
            written, value = text.value()
            if isinstance(value, list) and value and isinstance(value[0], dict):
                lists[name] = "\n" * before + written
            if text.mark() == ",":
                text.skip()
        text.skip()
    except DataError:
        return {}
    return {} if text.mark() else lists


def _members(path: Path, blocks: Blocks) -> Iterator[tuple[int, str, Any]]:
    """The members of a list: the line on which each begins, its text, and its value."""
    text = _Text(path, blocks)
    text.mark()
    text.skip()
    while text.mark() != "]":
        line = text.line
        yield line, *text.value()
        mark = text.mark()
        if mark == ",":
            text.skip()
        elif mark != "]":
            raise DataError(
                f"{path}, line {text.line}: is not JSON: a comma or the end of the list is missing."
            )


@final
class _Text:
    """The text of a file of JSON, of which no more is in memory than is needed."""

    def __init__(self, path: Path, blocks: Blocks) -> None:
        self.path = path
        self.blocks = blocks
        self.decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        self.text = ""
        self.at = 0
        self.line = self.column = 1
        """The place in the file that is read."""

    def mark(self) -> str:
        """The next character that is no white space; nothing at the end."""
        while True:
            self._pass(_SPACE.match(self.text, self.at).end())  # type: ignore[union-attr]  # it fits everywhere
            if self.at < len(self.text) or not self._read_on():
                return self.text[self.at : self.at + 1]

    def skip(self) -> None:
        """Pass over a mark that was read."""
        self._pass(self.at + 1)

    def value(self) -> tuple[str, Any]:
        """The value that begins here, as text too."""
        while True:
            fault = value = None
            end = len(self.text)
            try:
                value, end = DECODER.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                line, column = self._place(error.pos)
                fault = f"line {line}: is not JSON: {error.msg} at column {column}."
            except RecursionError:
                fault = f"line {self.line}: has too many brackets inside brackets."
            if end == len(self.text) and self._read_on():  # a number might go on, for one
                continue
            if fault:
                raise DataError(f"{self.path}, {fault}")
            text = self.text[self.at : end]
            self._pass(end)
            return text, value

    def _place(self, at: int) -> tuple[int, int]:
        """The line and the column of a place further on in the text."""
        passed = self.text[self.at : at]
        breaks = passed.count("\n")
        return self.line + breaks, len(passed) - (passed.rfind("\n") if breaks else -self.column)

    def _pass(self, at: int) -> None:
        if at > self.at:
            self.line, self.column = self._place(at)
            self.at = at

    def _read_on(self) -> bool:
        """Read at least as much as is there, so that a long value is not parsed again and again."""
        pieces = [self.text[self.at :]]
        missing = len(pieces[0])
        while missing >= 0 and (block := next(self.blocks, None)) is not None:
            pieces.append(self.decoder.decode(block[1]))
            missing -= len(pieces[-1])
        if len(pieces) == 1:
            return False
        self.text = "".join(pieces)
        self.at = 0
        return True
