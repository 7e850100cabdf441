"""`predict` for very many rows: options of parts, shards and Ray, and the loop over the parts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, final

import typer

from sixjars.bulk.remote import is_remote
from sixjars.cli.inputs import note_skipped, note_unknown
from sixjars.cli.options import note, noting
from sixjars.cli.streaming import Throughput
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.inputs import is_many
from sixjars_runtime.errors import DataError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from sixjars.bulk.job import WorkerSettings
    from sixjars.runs.prediction.predictor import Predictor

Engine = Literal["local", "ray"]
MOST_NOTES = 20
"""Notes about files; further ones are left out."""


@final
@dataclass(frozen=True)
class BulkOptions:
    """The options of the command line on parts."""

    input: str | None
    """A path or, of remote storage, a URI."""
    output: Path | None
    shard: str | None
    resume: bool
    part_rows: int | None
    engine: Engine
    workers: int | None
    ray_address: str | None

    @property
    def file(self) -> Path | None:
        """The input file, where it is local."""
        return None if self.input is None else Path(self.input)

    @property
    def is_asked(self) -> bool:
        """Whether the output is a folder of parts: by several or remote inputs, or by an option."""
        many = self.input is not None and (is_remote(self.input) or is_many(Path(self.input)))
        options = self.shard or self.resume or self.part_rows or self.workers or self.ray_address
        return many or bool(options) or self.engine == "ray"

    def check(self, *, alone: bool) -> None:
        """Refuse options that contradict each other; `alone` if there are none besides parts."""
        if self.input is None:
            raise DataError(
                "give --input, a file, a folder or a glob, "
                "and with --output a folder for the answers."
            )
        if self.output is None:
            raise DataError(
                f"answers to --input {self.input} are files: give --output, a folder for them."
            )
        if not alone:
            raise DataError(
                "answers in a folder go without texts, --question, --pictures and --chat."
            )
        if self.engine != "ray" and (self.workers or self.ray_address):
            raise DataError("--workers and --ray-address are for --engine ray.")

    def through(self, order: "WorkerSettings", predictor: "Predictor", *, strict: bool) -> None:
        """Predict all parts that are missing; rows that cannot be used are blank, and counted."""
        from sixjars.bulk.job import job_of, predicted_here
        from sixjars.bulk.plan import Shard

        assert self.input is not None
        shard = Shard.of(self.shard) if self.shard else Shard()
        options: dict[str, Any] = {"part_rows": self.part_rows, "resume": self.resume}
        with noting():
            job = job_of(order, predictor, self.input, shard=shard, **options)
        count = len(job.parts)
        if len(job.left) < count:
            note(f"{count - len(job.left):,} of {count:,} parts are there already")
        chunks = predicted_here(job, predictor)
        if self.engine == "ray" and job.left:
            from sixjars.bulk.on_ray import predicted_on_ray

            chunks = predicted_on_ray(job, workers=self.workers, address=self.ray_address)
        rows = _Rows(job.rows)
        pace = Throughput(rows, to_terminal=False)
        try:
            for written, notes in chunks:
                rows.counts += written
                pace.went_on(written.rows)
                for sentence in rows.unseen(notes):
                    pace.clear()
                    note(sentence)
        except KeyboardInterrupt:
            raise Interrupted("stopped; the same command with --resume goes on.") from None
        finally:
            pace.clear()
        job.order.clean(job.parts)
        counts = rows.counts
        if counts.cut:
            cut = f"{counts.cut:,} of {counts.rows:,} inputs were cut"
            note(f"note: {cut}, because they are longer than the run reads.")
        note_unknown(counts.unknown_share)
        note_skipped(counts, "answers")
        note(f"rows answered: {counts.rows:,}; files written: {len(job.left):,}; in {order.output}")
        if counts.are_failure(strict=strict):
            raise typer.Exit(1)


@final
@dataclass
class _Rows:
    """The rows that were answered so far, and the notes on them."""

    size: int | None
    counts: InputCounts = field(default_factory=InputCounts)
    notes: set[str] = field(default_factory=set)

    @property
    def read(self) -> int:
        """How many."""
        return self.counts.rows

    def unseen(self, notes: "Iterable[str]") -> "Iterator[str]":
        """The notes that were not seen yet, unless there are very many."""
        for sentence in notes:
            if sentence not in self.notes and len(self.notes) < MOST_NOTES:
                self.notes.add(sentence)
                yield sentence
