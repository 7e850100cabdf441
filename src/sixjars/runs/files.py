"""Files of inputs with columns: CSV, TSV, JSON lines, a JSON list, Parquet, Excel.

A row is read when it is needed, and answers are written into a file of the same kind, some whole
rows at a time.
"""

import codecs
import csv
import io
import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, final

from sixjars.data.bad_rows import SHOWN
from sixjars.data.tables.delimited import DELIMITERS as MARKS
from sixjars.data.tables.delimited import header_names
from sixjars.data.tables.dialect import encloses
from sixjars.data.tables.excel import is_blank, sheet_names, sheet_rows
from sixjars.data.tables.records import DECODER, opened_parquet, wrapped_list
from sixjars.data.tables.rows import Fault, Key, value_of
from sixjars.data.text.files import MARK, UTF16, ending_of, is_windows, lines_of, opened
from sixjars.progress import number_of
from sixjars.recipe.data import TableSettings
from sixjars.runs.answer_files import Answers, DelimitedAnswers, JsonAnswers, ParquetAnswers, Row
from sixjars.runs.input_file import InputFile
from sixjars.runs.requests import Unreadable
from sixjars_runtime.errors import DataError, shown

DELIMITERS: Final = {".csv": ",;|\t", ".tsv": "\t"}
"""The delimiters of a file by its ending; the first that fits is taken."""
_GAP: Final = re.compile(r"[\s,]*")
_AT_ONCE: Final = 1 << 20  # bytes of a JSON list
_ROWS: Final = 1024  # of a Parquet file


class Cells(InputFile):
    """Rows of cells; where the columns are numbers there is no header."""

    def __init__(
        self, path: Path, wanted: Mapping[str, Key], *, header: bool | None = None
    ) -> None:
        super().__init__(path, wanted)
        numbered = all(isinstance(key, int) for key in wanted.values())
        self.header = not numbered if header is None else header
        self.delimiter = ","
        self.quotes = True
        """Whether quotation marks enclose cells."""
        self.mark = ""
        """The beginning of answers: a byte order mark, or nothing."""
        self.line_end = "\n"
        """The end of each row of answers."""
        self.has_lines = False
        """Whether a row is a line: under a header of one name, all of the line belongs to it."""
        self._rows = self._wide = 0
        self._wide_rows: list[int] = []
        self._first: list[str] = []

    @abstractmethod
    def records(self) -> Iterator[list[str]]:
        """The cells of each row, the header too."""

    def rows(self) -> Iterator[Row]:
        """A row that is too short has empty cells, one that is too long is cut: columns stay.

        Where lines have one column, what is too long is that column.
        """
        number = 0
        places = dict[str, int]()
        self._rows, self._wide, self._wide_rows, self.cut = 0, 0, [], 0
        try:
            for record in self.records():
                number += 1
                if not places:
                    places, self._first = self._places(record), record
                    self.used = {field: self.names[place] for field, place in places.items()}
                    if self.header:
                        continue
                self._rows += 1
                if self.header and any(map(str.strip, record[len(self.names) :])):
                    self._wide += 1
                    self._wide_rows += [self._rows] if self._wide <= SHOWN else []
                    if self._has_whole_lines:
                        record = [self.delimiter.join(record)]
                    else:
                        self.cut += 1
                cells = (record + [""] * (len(self.names) - len(record)))[: len(self.names)]
                yield self._row_of({field: cells[place] for field, place in places.items()}, cells)
        except csv.Error as error:
            raise DataError(f"{self.path}, row {number + 1}: is not CSV: {error}.") from None

    def notes(self) -> list[str]:
        """A sentence where rows have more values than the header: a text may have been cut."""
        if not self._wide:
            return []
        have = "rows has" if self._wide == 1 else "rows have"
        places = ", ".join(map(str, self._wide_rows)) + (", ..." if self._wide > SHOWN else "")
        if self._has_whole_lines:
            read = "it is read as one text" if self._wide == 1 else "each is read as one text"
            return [
                f"{self.path}: {self._wide:,} of {self._rows:,} {have} more values than the header, which has 1 name "
                f'(input {places}): {read}. If that is right, enclose such texts in quotation marks (").'
            ]
        return [
            f"{self.path}: {self._wide:,} of {self._rows:,} {have} more values than the header, "
            f"which has {number_of(len(self.names), 'name')} (input {places}), so values may be in "
            "the wrong columns, and those beyond are left out: a delimiter inside a text ends it. "
            'Enclose such texts in quotation marks (").'
        ]

    @property
    def _has_whole_lines(self) -> bool:
        return self.has_lines and len(self.names) == 1

    def _called(self, name: str) -> str:
        """A column without a header is called by its number, and by its value in the first row."""
        if self.header:
            return super()._called(name)
        return f"column {name} ({shown(self._first[int(name) - 1])})"

    def _places(self, first: list[str]) -> dict[str, int]:
        self.names = first if self.header else [str(at) for at in range(1, len(first) + 1)]
        keys = {field: str(key) for field, key in self.wanted.items()}
        if not self.header or all(isinstance(key, int) for key in self.wanted.values()):
            for key in keys.values():
                if not key.isdigit() or int(key) > len(first):
                    lacks = f"has no column {key}, which this run reads; it has {len(first)}."
                    raise DataError(f"{self.path} {lacks}")
            return {field: int(key) - 1 for field, key in keys.items()}
        names = header_names(first, keys.values())
        used = {field: self._key(field, names) for field in keys}
        for name in used.values():
            if names.count(name) > 1:
                raise DataError(f"{self.path}: column {name!r} is in the header twice; rename one.")
        return {field: names.index(name) for field, name in used.items()}

    def answers(self, path: Path, columns: Mapping[str, type]) -> Answers:
        """They begin with the header, and with the mark without which Excel misreads umlauts."""
        answers = DelimitedAnswers(
            path, self.delimiter, self.mark, quotes=self.quotes, line_end=self.line_end
        )
        if self.header:
            answers.put_rows([[*self.names, *columns]])
        return answers


@final
class Delimited(Cells):
    """CSV or TSV, read as the data of the run is where that has settings, else as it is written."""

    def __init__(
        self, path: Path, wanted: Mapping[str, Key], delimiters: str, table: TableSettings
    ) -> None:
        super().__init__(path, wanted, header=table.header)
        self.has_lines = True
        if own := table.delimiter:
            delimiters = own + delimiters.replace(own, "")
        with opened(path) as stream:
            is_marked = is_windows(stream) or stream.read(3).startswith((MARK, *UTF16))
        self.mark = "\ufeff" if is_marked else ""
        first = next((line for _, line in lines_of(path)), b"").decode(errors="replace")
        self.line_end = "\r\n" if first.endswith("\r\n") else "\n"
        first = first.rstrip("\r\n")
        names = [{key, field} for field, key in wanted.items() if not isinstance(key, int)]
        if names:  # which tell the right delimiter from any
            delimiters += "".join(mark for mark in MARKS if mark not in delimiters)
        fits = []
        for mark in delimiters:
            cells = next(csv.reader([first], delimiter=mark), [])
            spelled = {*cells, *map(str.strip, cells)}
            if names:
                fit = all(name & spelled for name in names)
            else:
                fit = mark in first or (
                    mark == own and len(cells) >= max(map(int, wanted.values()))
                )
            if fit:
                fits.append(mark)
        self.delimiter = fits[0] if fits else delimiters[0]
        self.quotes = encloses(path, self.delimiter, table.quotes)

    def records(self) -> Iterator[list[str]]:
        """The cells of each line, as it is read."""

        def lines() -> Iterator[str]:
            for number, raw in lines_of(self.path):
                self.read += len(raw)
                yield self._text(number, raw)

        if not self.quotes:
            return (line.rstrip("\r\n").split(self.delimiter) for line in lines())
        return csv.reader(lines(), delimiter=self.delimiter, strict=True)


@final
class ExcelFile(Cells):
    """A sheet of a workbook; answers go to a CSV file: a workbook that is cut short cannot open."""

    def __init__(
        self,
        path: Path,
        wanted: Mapping[str, Key],
        *,
        header: bool | None = None,
        sheet: str | None = None,
    ) -> None:
        super().__init__(path, wanted, header=header)
        # The only sheet is meant, whatever it is called.
        self.sheet = None if sheet is not None and len(sheet_names(path)) == 1 else sheet
        self.size = None
        self.answer_ending = ".csv"
        self.mark = "\ufeff"  # what was made with Excel is opened with Excel
        self.blank = is_blank(path, self.sheet)

    def records(self) -> Iterator[list[str]]:
        """The cells of each row with a value."""
        rows = sheet_rows(self.path, self.sheet)
        return (cells for _, cells in rows if not isinstance(cells, Fault))


@final
class JsonFile(InputFile):
    """Objects, one on each line or in one list; answers are the same objects with members added."""

    def __init__(self, path: Path, wanted: Mapping[str, Key]) -> None:
        super().__init__(path, wanted)
        self.keys: dict[str, str] = {}
        self.listed = False
        self.inner = ""
        """The list as text, where it is a member of an object."""

    def rows(self) -> Iterator[Row]:
        """The object of each line; a line that is none is an input that cannot be read."""
        first = next((line for _, line in lines_of(self.path) if line.strip()), b"")
        self.listed = ".jsonl" not in self.path.name.lower() and first.lstrip().startswith(b"[")
        self.inner = "" if self.listed else wrapped_list(self.path)
        self.listed = self.listed or bool(self.inner)
        for text in self._objects() if self.listed else self._lines():
            yield self._row(text)

    def _row(self, text: str) -> Row:
        try:
            record = DECODER.decode(text) if text.strip() else {}
        except (ValueError, RecursionError) as error:
            reason = getattr(error, "msg", "too many brackets")
            return Row(Unreadable(f"is not JSON: {reason}."), text)
        if len(self.wanted) == 1 and text.lstrip()[:1] in ("[", '"'):
            [name] = self.wanted
            return Row({name: record}, f"{{{json.dumps(name)}: {text.strip()}}}")
        if not isinstance(record, dict):
            return Row(Unreadable('is JSON, but not an object like {"text": "..."}.'), text)
        if record and not self.keys:
            self.names = list(record)
            self.keys = self.used = {field: self._key(field, self.names) for field in self.wanted}
        values = {field: plain(_member(record, key)) for field, key in self.keys.items()}
        return self._row_of(values or dict.fromkeys(self.wanted, ""), text)

    def _lines(self) -> Iterator[str]:
        for number, raw in lines_of(self.path):
            self.read += len(raw)
            yield self._text(number, raw).rstrip("\r\n")

    def _objects(self) -> Iterator[str]:
        """The text of each member of a list; the file is read in pieces, never whole."""
        text, at, ended, begun = "", 0, False, False
        decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
        with io.BytesIO(self.inner.encode()) if self.inner else opened(self.path) as stream:
            while True:
                at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # it fits everywhere
                if not begun and text[at : at + 1] == "[":
                    at, begun = at + 1, True
                    continue
                if text[at : at + 1] == "]":
                    return
                try:
                    end = DECODER.raw_decode(text, at)[1]
                    if end < len(text):  # or a number might go on
                        yield text[at:end]
                        at = end
                        continue
                except (ValueError, RecursionError):
                    pass
                if ended:
                    raise DataError(f"{self.path} is not a JSON list to its end; is it cut short?")
                raw = stream.read(_AT_ONCE)
                self.read += len(raw)
                text, at, ended = text[at:] + decoder.decode(raw, final=not raw), 0, not raw

    def answers(self, path: Path, columns: Mapping[str, type]) -> Answers:
        """Lines or a list, as the file is."""
        return JsonAnswers(path, columns, listed=self.listed)


def _member(record: Mapping[str, Any], key: str) -> Any:
    try:
        return value_of(record, key)
    except ValueError:  # an object may leave a member out
        return ""


@final
class ParquetFile(InputFile):
    """Row groups; a column may also be given by its number. A file cut short cannot be opened."""

    def rows(self) -> Iterator[Row]:
        """The rows, of which `_ROWS` are decoded together."""
        with opened_parquet(self.path) as file:
            self.schema, self.names = file.schema_arrow, file.schema_arrow.names
            self.size = self.count = file.metadata.num_rows
            for field, key in self.wanted.items():
                self.used[field] = self._named(key) or self._key(field, self.names)
            for batch in file.iter_batches(_ROWS):
                for at, record in enumerate(batch.to_pylist()):
                    self.read += 1
                    values = {name: plain(_member(record, key)) for name, key in self.used.items()}
                    yield Row(values, batch.slice(at, 1))

    def _named(self, key: Key) -> str:
        return "".join(self.names[key - 1 : key]) if isinstance(key, int) else ""

    def answers(self, path: Path, columns: Mapping[str, type]) -> Answers:
        """The same schema with columns added."""
        return ParquetAnswers(path, self.schema, columns)


def plain(value: object) -> Any:
    """A cell as an input: numbers and dates as text, none as the empty text, others unchanged."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str | list) else str(value)


def input_file(
    path: Path, wanted: Mapping[str, Key], table: TableSettings | None = None
) -> InputFile | None:
    """A file with columns, by its ending, gzipped or not; None where it has one input a line.

    `table` says how the data of the run is written.
    """
    table = table or TableSettings()
    name, ending = path.name.lower(), ending_of(path)
    if ending in DELIMITERS:
        return Delimited(path, wanted, DELIMITERS[ending], table)
    if ending in (".json", ".jsonl"):
        return JsonFile(path, wanted)
    if name.endswith(".xlsx"):
        return ExcelFile(path, wanted, header=table.header, sheet=table.sheet)
    return ParquetFile(path, wanted) if name.endswith(".parquet") else None
