"""One job of a large prediction: its parts, and the worker that answers them one after the other.

Each part is written beside its place, and moved when whole: what is there is done.
"""

import glob
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

from sixjars.bulk import PART_ROWS
from sixjars.bulk.plan import PLAN, BulkPlan, FilePart, Shard, keep_plan, kept_plan, planned
from sixjars.bulk.remote import InputFolder
from sixjars.bulk.sources import inputs_of, table_in
from sixjars.data.tables import FORMATS
from sixjars.data.tables.table_file import TableFile
from sixjars.data.text.files import ending_of
from sixjars.kernels.backends import Device
from sixjars.kernels.products import Precision
from sixjars.progress import number_of, tell
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.fine_tune import fingerprint
from sixjars.runs.output_file import written_whole
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.inputs import input_of_line, input_of_row, raw_lines, text_of
from sixjars.runs.prediction.outputs import PredictionOutput, output_of
from sixjars.runs.prediction.predictor import Predictor, load
from sixjars.runs.prediction.threads import prediction_threads
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.prediction.inputs import Item

MOST_NAMES: Final = 5
"""Files without rows that are named; others are only counted."""
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


@final
@dataclass(frozen=True)
class BulkJob:
    """The parts of one job."""

    order: WorkerSettings
    parts: list[FilePart]
    left: list[FilePart]
    """The parts that are not there yet."""

    @property
    def rows(self) -> int:
        """How many rows are left to answer."""
        return sum(part.rows for part in self.left)


def job_of(
    order: WorkerSettings,
    predictor: Predictor,
    given: str | Path,
    *,
    shard: Shard,
    part_rows: int | None = None,
    resume: bool = False,
) -> BulkJob:
    """The parts of one of several jobs. `order` need not know yet where the inputs are."""
    output = Path(order.output)
    _check(output)
    inputs = inputs_of(str(given), output)
    facts = {
        "weights": fingerprint(predictor.folder),
        "search": order.search.model_dump(mode="json"),
        "precision": order.precision,
        "json": order.as_json,
    }
    plan = kept_plan(output, facts, part_rows, inputs)
    if plan is None:
        plan = planned(facts, part_rows or PART_ROWS, inputs, predictor)
        there = next((part.target for part in plan.parts if (output / part.target).exists()), None)
        if there is not None and not (output / PLAN).exists():
            elsewhere = f"--output {output} holds {there} already, from elsewhere"
            raise DataError(f"{elsewhere}; choose another folder.")
        keep_plan(output, plan)
        kept_plan(output, facts, part_rows, inputs)  # another job may have been quicker
    _tell_empty(plan)
    order = replace(order, root=inputs.root)
    parts = plan.parts[shard.number - 1 :: shard.count]
    left = [part for part in parts if not order.is_done(part)]
    if len(left) < len(parts) and not resume:
        there = f"holds {len(parts) - len(left)} of its {len(parts)} parts already"
        remedy = "go on with --resume, or choose another folder."
        raise DataError(f"--output {output} {there}; {remedy}")
    return BulkJob(order, parts, left)


def _check(output: Path) -> None:
    """Refuse a file, and a new folder with a name like that of a file."""
    if output.is_dir():
        return
    if output.exists():
        raise DataError(
            f"--output {output} is a file, but these answers need a folder, and work in one file "
            "cannot go on; begin again with --output FOLDER."
        )
    if ending_of(output) in FORMATS:
        reason = "would be a folder, because these answers are files"
        raise DataError(f"--output {output} {reason}; name it without ending.")


def _tell_empty(plan: BulkPlan) -> None:
    empty = [source.name for source in plan.sources if not source.rows]
    if empty:
        names = ", ".join(empty[:MOST_NAMES]) + (", …" if len(empty) > MOST_NAMES else "")
        tell(f"left out because there are no rows: {number_of(len(empty), 'file')}, {names}")


def predicted_here(job: BulkJob, predictor: Predictor) -> Iterator[tuple[InputCounts, list[str]]]:
    """Answer one part after the other, with all cores; yield each with its notes."""
    worker = Worker(job.order, predictor)
    with prediction_threads(predictor) as threads:
        for part in job.left:
            yield worker.predict(part, threads)
