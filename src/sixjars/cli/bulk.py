"""`predict` for very many rows: the options of parts, shards and Ray, and the loop over the parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from sixjars.bulk import PART_ROWS
from sixjars.bulk.remote import is_remote
from sixjars.cli.input_notes import is_failure, note_unknown
from sixjars.cli.options import note, noting
from sixjars.cli.streaming import Pace
from sixjars.runs.given import is_many
from sixjars_runtime.errors import DataError, Interrupted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sixjars.bulk.work import Answered, Order
    from sixjars.runs.predict import Predictor

Engine = Literal["local", "ray"]
EngineOption = Annotated[
    Engine,
    typer.Option(help="Who answers the parts of large inputs: this process, or workers of Ray."),
]
PartRowsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help=f"Rows of each part that a large file is cut into; else {PART_ROWS:,}.",
        show_default=False,
    ),
]
RayAddressOption = Annotated[
    str | None,
    typer.Option(help="A Ray cluster: auto, or HOST:PORT; else this machine.", show_default=False),
]
ResumeOption = Annotated[
    bool,
    typer.Option("--resume", help="Go on with a half-done --output folder.", show_default=False),
]
ShardOption = Annotated[
    str | None,
    typer.Option(
        metavar="I/N", help="Answer the share of job I of N, counted from 1.", show_default=False
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Workers of Ray; else one for each GPU, or each CPU but one.",
        show_default=False,
    ),
]

MOST_NOTES = 20
"""Notes about files; further ones are left out."""


@final
@dataclass(frozen=True)
class Bulk:
    """What the command line says about parts."""

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
        """What is read, where it is local."""
        return None if self.input is None else Path(self.input)

    @property
    def is_asked(self) -> bool:
        """Whether the output is a folder of parts: several files or remote ones are read, or an option says so."""
        many = self.input is not None and (is_remote(self.input) or is_many(Path(self.input)))
        asked = self.shard or self.resume or self.part_rows or self.workers or self.ray_address
        return many or bool(asked) or self.engine == "ray"

    def check(self, *, alone: bool) -> None:
        """Refuse what does not go together; `alone` if no option asks for something else than files of answers."""
        if self.input is None:
            raise DataError(
                "give --input, a file, a folder or a glob, and with --output a folder for the answers."
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

    def through(self, order: "Order", predictor: "Predictor", *, strict: bool) -> None:
        """Answer all parts that are not there yet; rows that cannot be used are blank, and counted in a note."""
        from sixjars.bulk.job import answered_here, job_of
        from sixjars.bulk.plan import Shard

        assert self.input is not None
        shard = Shard.of(self.shard) if self.shard else Shard()
        with noting():
            job = job_of(
                order,
                predictor,
                self.input,
                shard=shard,
                part_rows=self.part_rows,
                resume=self.resume,
            )
        if len(job.left) < len(job.parts):
            note(
                f"{len(job.parts) - len(job.left):,} of {len(job.parts):,} parts are there already"
            )
        answers = answered_here(job, predictor)
        if self.engine == "ray" and job.left:
            from sixjars.bulk.on_ray import answered_on_ray

            answers = answered_on_ray(job, workers=self.workers, address=self.ray_address)
        told = _Told(job.rows)
        try:
            for answered, said in answers:
                told.take(answered, said)
        except KeyboardInterrupt:
            raise Interrupted("stopped; the same command with --resume goes on.") from None
        finally:
            told.pace.clear()
        job.order.clean(job.parts)
        told.end(Path(order.output), len(job.left), strict=strict)


@final
class _Told:
    """Progress and notes on stderr."""

    def __init__(self, rows: int) -> None:
        from sixjars.bulk.work import Answered

        self.all = Answered()
        self.read = 0
        self.size: int | None = rows
        self.notes: set[str] = set()
        self.pace = Pace(self, to_terminal=False)

    def take(self, answered: "Answered", notes: "Iterable[str]") -> None:
        """A part was written."""
        self.all += answered
        self.read = self.all.rows
        self.pace.went_on(answered.rows)
        for sentence in notes:
            if sentence not in self.notes and len(self.notes) < MOST_NOTES:
                self.pace.clear()
                note(sentence)
                self.notes.add(sentence)

    def end(self, output: Path, parts: int, *, strict: bool) -> None:
        """The numbers, and the exit code."""
        found = self.all
        if found.cut:
            cut = f"{found.cut:,} of {found.rows:,} inputs were cut"
            note(f"note: {cut}, because they are longer than the run reads.")
        note_unknown(found.unknown / found.tokens if found.tokens else None)
        if found.failed:
            note(f"note: {found.skipped.in_words(found.rows, 'answers')}")
        note(f"rows answered: {found.rows:,}; files written: {parts:,}; in {output}")
        if is_failure(found.failed, found.rows, strict=strict):
            raise typer.Exit(1)
