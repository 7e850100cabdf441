"""Answering one part after the other: each is written beside its place, and put there when it is whole."""

import glob
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, fields
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, final

from sixjars.bulk.plan import Part
from sixjars.bulk.remote import Place
from sixjars.bulk.sources import table_in
from sixjars.learning.engine import Device
from sixjars.model.precision import Precision
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.given import line_given, raw_lines, row_given, text_of
from sixjars.runs.input_file import InputFile
from sixjars.runs.predict import Predictor, load
from sixjars.runs.prediction import Prediction
from sixjars.runs.sinks import LineSink, Sink, TableSink
from sixjars.runs.skipped import Skipped
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.given import Item

AT_ONCE: Final = 4096
"""Rows that are in memory together, and sorted by length."""

NUMBERS: Final = ("rows", "cut", "tokens", "unknown")
"""What is counted of the rows that were answered."""


@final
@dataclass(frozen=True)
class Order:
    """All that a worker must know, wherever it is; its folders have the same names there."""

    run: str
    root: str
    """The folder that the names of the inputs begin in, or its URI."""
    output: str
    search: SearchSettings
    device: Device = "auto"
    precision: Precision = "32"
    allow: tuple[str, ...] = ()
    as_json: bool = False

    def worker(self) -> "Worker":
        """A new one, with the run in memory."""
        return Worker(
            self, load(self.run, device=self.device, precision=self.precision, allow=self.allow)
        )

    def is_done(self, part: Part) -> bool:
        """Whether its file is there, and so it is whole."""
        return (Path(self.output) / part.target).is_file()

    def tries(self, part: Part) -> int:
        """How many workers are writing it, or were killed while they did."""
        return len(self._left_of(part))

    def clean(self, parts: Sequence[Part]) -> None:
        """Remove what workers left that were killed while they wrote these parts."""
        for part in parts:
            for left in self._left_of(part):
                left.unlink(missing_ok=True)

    def _left_of(self, part: Part) -> list[Path]:
        place = Path(self.output) / part.target
        return list(place.parent.glob(f".{glob.escape(place.name)}.*"))


@final
@dataclass(frozen=True)
class Answered:
    """Rows that were written."""

    rows: int = 0
    skipped: Skipped = field(default_factory=Skipped)
    """Those that could not be used."""
    cut: int = 0
    """Those that are longer than the run reads."""
    tokens: int = 0
    unknown: int = 0
    """Tokens of the inputs that the run does not know."""

    def __add__(self, more: "Answered") -> "Answered":
        """All together."""
        return Answered(
            *(getattr(self, one.name) + getattr(more, one.name) for one in fields(self))
        )

    def to_row(self) -> dict[str, Any]:
        """Numbers and a text, as a row of Ray Data holds them."""
        return {
            **{name: getattr(self, name) for name in NUMBERS},
            "skipped": self.skipped.to_json(),
        }

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Answered":
        """From what `to_row` gave."""
        return cls(
            skipped=Skipped.from_json(str(row["skipped"])),
            **{name: int(row[name]) for name in NUMBERS},
        )

    @property
    def failed(self) -> int:
        """How many could not be used."""
        return self.skipped.count

    @classmethod
    def of(cls, found: "Sequence[Sequence[Prediction]]", file: str = "") -> "Answered":
        """What the answers to some rows of a file say."""
        best = [some[0] for some in found]
        return cls(
            len(best),
            Skipped.of(found, file),
            sum(one.truncated for one in best),
            sum(one.tokens_read for one in best),
            sum(one.unknown_tokens for one in best),
        )


@final
class Reader:
    """The rows of a file from some row on. The next part of the same file is read on, not from the start.

    The file stays open, so it may be removed meanwhile.
    """

    def __init__(self, path: Path, predictor: Predictor) -> None:
        self.path = path
        self.at = 0
        self.table: InputFile | None = table_in(path, predictor)
        items = self._rows(predictor) if self.table is not None else self._lines(predictor)
        self.items = chain(list(islice(items, 1)), items)

    def _rows(self, predictor: Predictor) -> "Iterator[Item]":
        assert self.table is not None
        return (row_given(predictor, self.path, row) for row in self.table.rows())

    def _lines(self, predictor: Predictor) -> "Iterator[Item]":
        for number, line in enumerate(raw_lines(self.path), start=1):
            yield line_given(predictor, text_of(line, number)), None

    def take(self, first: int, count: int) -> "list[Item]":
        """So many rows, from number `first` on."""
        for _ in islice(self.items, first - self.at):
            pass
        found = list(islice(self.items, count))
        self.at = first + len(found)
        return found


@final
class Worker:
    """A run in memory that answers parts."""

    def __init__(self, order: Order, predictor: Predictor) -> None:
        self.order = order
        self.predictor = predictor
        self.place = Place(order.root)
        self.reader: Reader | None = None
        self.reading = ""

    def answer(self, part: Part, threads: Executor | None = None) -> tuple[Answered, list[str]]:
        """Write one part; the same rows always give the same file, so it does no harm if two do it. And notes."""
        target = Path(self.order.output) / part.target
        target.parent.mkdir(parents=True, exist_ok=True)
        beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}{_suffixes(target)}")
        beside.touch()
        notes: list[str] = []
        try:
            with self.place.named():
                sink = self._sink(self._reader(part), beside, notes)
                try:
                    answered = self._answered(part, sink, notes, threads)
                finally:
                    sink.close()
            _to_disk(beside)
            os.replace(beside, target)
        finally:
            beside.unlink(missing_ok=True)
        return answered, notes

    def _answered(
        self, part: Part, sink: Sink, notes: list[str], threads: Executor | None
    ) -> Answered:
        reader, done = self._reader(part), Answered()
        while done.rows < part.rows:
            first = part.first + done.rows
            items = reader.take(first, min(AT_ONCE, part.rows - done.rows))
            if not items:
                raise DataError(f"{reader.path} has fewer rows than when the work was begun.")
            found = self._found(items, first, threads)
            sink.take(items, found)
            done += Answered.of(found, part.source)
        return done

    def _reader(self, part: Part) -> Reader:
        if self.reader is None or self.reading != part.source or self.reader.at > part.first:
            self.reader, self.reading = None, part.source
            with self.place.file(part.source) as (path, _):
                self.reader = Reader(path, self.predictor)
        return self.reader

    def _sink(self, reader: Reader, file: Path, notes: list[str]) -> Sink:
        nbest = self.order.search.nbest
        if reader.table is None or self.order.as_json:
            return LineSink(self.predictor, file, nbest=nbest, as_json=self.order.as_json)
        return TableSink(self.predictor, reader.table, file, nbest=nbest, note=notes.append)

    def _found(
        self, items: "list[Item]", first: int, threads: Executor | None
    ) -> list[list[Prediction]]:
        given: list[Any] = [one for one, _ in items]
        return self.predictor.nbest(
            given,
            search=self.order.search,
            first=first,
            details=self.order.as_json,
            threads=threads,
        )


def _suffixes(target: Path) -> str:
    """Its ending, which says how a file is written."""
    plain = target.name.removesuffix(".gz")
    return f"{Path(plain).suffix}{target.name[len(plain) :]}"


def _to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
