"""`predict` for very many rows: the options of parts, shards and Ray, and the loop over the parts."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from sixjars.cli.answers import MOST_NOTES
from sixjars.cli.options import note
from sixjars.cli.streaming import Pace
from sixjars.errors import DataError
from sixjars.runs.given import is_many

if TYPE_CHECKING:
    from sixjars.runs.bulk.work import Order
    from sixjars.runs.predict import Predictor

Engine = Literal["local", "ray"]
EngineOption = Annotated[
    Engine, typer.Option(help="Who answers the parts of large inputs: this process, or workers of Ray.")
]
PartRowsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Rows of each output file of large inputs: 10,000 at most.", show_default=False),
]
RayAddressOption = Annotated[
    str | None, typer.Option(help="A Ray cluster: auto, or HOST:PORT; else this machine.", show_default=False)
]
ResumeOption = Annotated[
    bool, typer.Option("--resume", help="Go on with a half-done --output folder.", show_default=False)
]
ShardOption = Annotated[
    str | None,
    typer.Option(metavar="I/N", help="Answer the share of job I of N, counted from 1.", show_default=False),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(min=1, help="Workers of Ray; else one for each GPU, or each CPU but one.", show_default=False),
]


@final
@dataclass(frozen=True)
class Bulk:
    """What the command line says about parts."""

    input: Path | None
    output: Path | None
    shard: str | None
    resume: bool
    part_rows: int | None
    engine: Engine
    workers: int | None
    ray_address: str | None

    @property
    def is_asked(self) -> bool:
        """Whether the output is a folder of parts: several files are read, or an option says so."""
        many = self.input is not None and is_many(self.input)
        asked = self.shard or self.resume or self.part_rows or self.workers or self.ray_address
        return many or bool(asked) or self.engine == "ray"

    def check(self, *, alone: bool) -> None:
        """Refuse what does not go together; `alone` if no option asks for something else than files of answers."""
        if self.input is None or self.output is None:
            raise DataError("give --input, a file, a folder or a glob, and with --output a folder for the answers.")
        if not alone:
            raise DataError("answers in a folder go without texts, --question, --pictures and --chat.")
        if self.engine != "ray" and (self.workers or self.ray_address):
            raise DataError("--workers and --ray-address are for --engine ray.")

    def through(self, order: "Order", predictor: "Predictor") -> None:
        """Answer all parts that are not there yet; rows that cannot be used are blank, a note, and exit code 1."""
        from sixjars.runs.bulk.job import answered_here, job_of
        from sixjars.runs.bulk.plan import Shard

        assert self.input is not None
        shard = Shard.of(self.shard) if self.shard else Shard()
        job = job_of(order, predictor, self.input, shard=shard, part_rows=self.part_rows, resume=self.resume)
        if len(job.left) < len(job.parts):
            note(f"{len(job.parts) - len(job.left):,} of {len(job.parts):,} parts are there already")
        answers = answered_here(job, predictor)
        if self.engine == "ray" and job.left:
            from sixjars.runs.bulk.on_ray import answered_on_ray

            answers = answered_on_ray(job, workers=self.workers, address=self.ray_address)
        told = _Told(job.rows)
        try:
            for answered in answers:
                told.take(answered.rows, answered.failed, answered.cut, answered.notes)
        finally:
            told.pace.clear()
        job.order.clean(job.parts)
        told.end(Path(order.output), len(job.left))


@final
class _Told:
    """Progress and notes on stderr."""

    def __init__(self, rows: int) -> None:
        self.read = 0
        self.size: int | None = rows
        self.failed = self.cut = 0
        self.notes: set[str] = set()
        self.pace = Pace(self, to_terminal=False)

    def take(self, rows: int, failed: int, cut: int, notes: tuple[str, ...]) -> None:
        """A part was written."""
        self.read, self.failed, self.cut = self.read + rows, self.failed + failed, self.cut + cut
        self.pace.went_on(rows)
        for sentence in notes:
            if sentence not in self.notes and len(self.notes) < MOST_NOTES:
                self.pace.clear()
                note(sentence)
                self.notes.add(sentence)

    def end(self, output: Path, parts: int) -> None:
        """The numbers."""
        if self.cut:
            note(f"note: {self.cut} of {self.read} inputs were cut, because they are longer than the run reads.")
        if self.failed:
            note(f"note: {self.failed} of {self.read} inputs could not be used; their answers are empty.")
        note(f"rows answered: {self.read:,}; files written: {parts:,}; in {output}")
        if self.failed:
            raise typer.Exit(1)
