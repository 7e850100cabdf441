"""`predict` for very many rows: options of parts, shards and Ray, and the loop over the parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import typer

from sixjars.bulk import PART_ROWS
from sixjars.bulk.remote import is_remote
from sixjars.cli.inputs import is_failure, note_unknown
from sixjars.cli.options import note, noting, option
from sixjars.cli.streaming import Throughput
from sixjars.runs.prediction.inputs import is_many
from sixjars_runtime.errors import DataError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sixjars.bulk.worker import WorkerSettings, WrittenRows
    from sixjars.runs.prediction.predictor import Predictor

Engine = Literal["local", "ray"]
EngineOption = Annotated[
    Engine,
    typer.Option(help="Who answers the parts of large inputs: this process, or workers of Ray."),
]
PartRowsOption = Annotated[
    int | None,
    option(min=1, help=f"Rows of each part that a large file is cut into; else {PART_ROWS:,}."),
]
RayAddressOption = Annotated[
    str | None, option(help="A Ray cluster: auto, or HOST:PORT; else this machine.")
]
ResumeOption = Annotated[bool, option("--resume", help="Go on with a half-done --output folder.")]
ShardOption = Annotated[
    str | None, option(metavar="I/N", help="Answer the share of job I of N, counted from 1.")
]
WorkersOption = Annotated[
    int | None, option(min=1, help="Workers of Ray; else one for each GPU, or each CPU but one.")
]

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
        progress = _Progress(job.rows)
        try:
            for written, notes in chunks:
                progress.take(written, notes)
        except KeyboardInterrupt:
            raise Interrupted("stopped; the same command with --resume goes on.") from None
        finally:
            progress.pace.clear()
        job.order.clean(job.parts)
        progress.end(Path(order.output), len(job.left), strict=strict)


@final
class _Progress:
    """Progress and notes on stderr."""

    def __init__(self, rows: int) -> None:
        from sixjars.bulk.worker import WrittenRows

        self.all = WrittenRows()
        self.read = 0
        self.size: int | None = rows
        self.notes: set[str] = set()
        self.pace = Throughput(self, to_terminal=False)

    def take(self, written: "WrittenRows", notes: "Iterable[str]") -> None:
        """Count a part that was written."""
        self.all += written
        self.read = self.all.rows
        self.pace.went_on(written.rows)
        for sentence in notes:
            if sentence not in self.notes and len(self.notes) < MOST_NOTES:
                self.pace.clear()
                note(sentence)
                self.notes.add(sentence)

    def end(self, output: Path, parts: int, *, strict: bool) -> None:
        total = self.all
        if total.cut:
            cut = f"{total.cut:,} of {total.rows:,} inputs were cut"
            note(f"note: {cut}, because they are longer than the run reads.")
        note_unknown(total.unknown / total.tokens if total.tokens else None)
        if total.failed:
            note(f"note: {total.skipped.in_words(total.rows, 'answers')}")
        note(f"rows answered: {total.rows:,}; files written: {parts:,}; in {output}")
        if is_failure(total.failed, total.rows, strict=strict):
            raise typer.Exit(1)
