"""Answering one part after the other: each is written beside its place, and moved when whole."""

import glob
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from sixjars.bulk.plan import FilePart
from sixjars.bulk.remote import InputFolder
from sixjars.bulk.sources import table_in
from sixjars.data.tables.table_file import TableFile
from sixjars.learning.engine import Device
from sixjars.model.precision import Precision
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.output_file import written_whole
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.inputs import input_of_line, input_of_row, raw_lines, text_of
from sixjars.runs.prediction.outputs import PredictionOutput, output_of
from sixjars.runs.prediction.predictor import Predictor, load
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.prediction.inputs import Item

AT_ONCE: Final = 4096
"""Rows that are in memory together, and sorted by length."""


@final
@dataclass(frozen=True)
class WorkerSettings:
    """The orders of a worker, wherever it is; its folders have the same names there."""

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
        """A new worker, with the run in memory."""
        run = load(self.run, device=self.device, precision=self.precision, allow=self.allow)
        return Worker(self, run)

    def is_done(self, part: FilePart) -> bool:
        """Whether the file of a part is there, and so it is whole."""
        return (Path(self.output) / part.target).is_file()

    def tries(self, part: FilePart) -> int:
        """How many workers are writing a part, or were killed while they did."""
        return len(self._left_of(part))

    def clean(self, parts: Sequence[FilePart]) -> None:
        """Remove the files of workers that were killed while they wrote these parts."""
        for part in parts:
            for left in self._left_of(part):
                left.unlink(missing_ok=True)

    def _left_of(self, part: FilePart) -> list[Path]:
        place = Path(self.output) / part.target
        return list(place.parent.glob(f".{glob.escape(place.name)}.*"))


@final
class RowReader:
    """The rows of a file from some row on; the next part of the same file is read on from there.

    The file stays open, so it may be removed meanwhile.
    """

    def __init__(self, path: Path, predictor: Predictor) -> None:
        self.path = path
        self.at = 0
        self.table: TableFile | None = table_in(path, predictor)
        items: Iterator[Item]
        if self.table is not None:
            items = (input_of_row(predictor, path, row) for row in self.table.rows())
        else:
            lines = (text_of(line, at) for at, line in enumerate(raw_lines(path), start=1))
            items = ((input_of_line(predictor, line), None) for line in lines)
        self.items = chain(list(islice(items, 1)), items)

    def take(self, first: int, count: int) -> "list[Item]":
        """The items of so many rows, from number `first` on."""
        for _ in islice(self.items, first - self.at):
            pass
        items = list(islice(self.items, count))
        self.at = first + len(items)
        return items


@final
class Worker:
    """A run in memory that answers parts."""

    def __init__(self, order: WorkerSettings, predictor: Predictor) -> None:
        self.order = order
        self.predictor = predictor
        self.place = InputFolder(order.root)
        self.reader: RowReader | None = None
        self.reading = ""

    def predict(
        self, part: FilePart, threads: Executor | None = None
    ) -> tuple[InputCounts, list[str]]:
        """Write one part; return its counts, and notes. Two workers would write the same file."""
        target = Path(self.order.output) / part.target
        notes: list[str] = []
        nbest, as_json = self.order.search.nbest, self.order.as_json
        with written_whole(target) as beside, self.place.named():
            beside.touch()
            reader = self._reader(part)
            output = output_of(
                self.predictor,
                reader.table,
                beside,
                nbest=nbest,
                as_json=as_json,
                note=notes.append,
            )
            try:
                counts = self._predicted(part, reader, output, threads)
            finally:
                output.close()
            with beside.open("rb") as file:
                os.fsync(file.fileno())
        return counts, notes

    def _predicted(
        self,
        part: FilePart,
        reader: RowReader,
        output: PredictionOutput,
        threads: Executor | None,
    ) -> InputCounts:
        counts = InputCounts()
        while counts.rows < part.rows:
            first = part.first + counts.rows
            items = reader.take(first, min(AT_ONCE, part.rows - counts.rows))
            if not items:
                raise DataError(f"{reader.path} has fewer rows than when the work was begun.")
            predictions = self.predictor.nbest(
                [value for value, _ in items],
                search=self.order.search,
                first=first,
                details=self.order.as_json,
                threads=threads,
            )
            output.take(items, predictions)
            counts += InputCounts.of(predictions, part.source)
        return counts

    def _reader(self, part: FilePart) -> RowReader:
        if self.reader is None or self.reading != part.source or self.reader.at > part.first:
            self.reader = None
            self.reading = part.source
            with self.place.file(part.source) as (path, _):
                self.reader = RowReader(path, self.predictor)
        return self.reader
