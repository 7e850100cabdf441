"""The command `predict`."""

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, final

import typer

from sixjars.bulk import PART_ROWS
from sixjars.bulk.remote import local_path
from sixjars.cli import options
from sixjars.cli.bulk import BulkOptions, Engine
from sixjars.cli.chat import hold_conversation
from sixjars.cli.inputs import CommandInputs, InputNotes, note_file_names
from sixjars.cli.options import TABLES, check_output, note, noting, option
from sixjars.cli.streaming import Throughput, portions
from sixjars_runtime.errors import DataError, Interrupted

if TYPE_CHECKING:
    from sixjars.kernels.backends import Device
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.prediction.inputs import Item
    from sixjars.runs.prediction.outputs import PredictionOutput
    from sixjars.runs.prediction.prediction import Prediction
    from sixjars.runs.prediction.predictor import Predictor


def predict(
    run: options.Run,
    texts: options.Texts = None,
    question: options.Question = None,
    inputs: Annotated[
        str | None,
        option(
            "--input",
            metavar="PATH",
            help=f"{options.FILE} Or a folder or glob of such files; "
            "also in remote storage: s3://BUCKET/FOLDER",
        ),
    ] = None,
    output_file: Annotated[
        Path | None,
        option(
            "--output",
            parser=local_path,
            metavar="PATH",
            help="Write here: of a file with columns the same rows with the answers added, else "
            "one output a line. For many files or parts, a folder.",
        ),
    ] = None,
    search: options.Search = None,
    nbest: options.Nbest = None,
    setting: options.Setting = None,
    pictures: Annotated[
        Path | None, option(help="A folder to draw the attention of each output in.")
    ] = None,
    *,
    chat: Annotated[bool, option("--chat", help="Hold a conversation.")] = False,
    as_json: options.Json = False,
    device: options.Device = "auto",
    precision: options.Precision = "32",
    allow: options.Allow = None,
    shard: Annotated[
        str | None, option(metavar="I/N", help="Answer the share of job I of N, counted from 1.")
    ] = None,
    resume: Annotated[
        bool, option("--resume", help="Go on with a half-done --output folder.")
    ] = False,
    part_rows: Annotated[
        int | None,
        option(min=1, help=f"Rows of each part that a large file is cut into; else {PART_ROWS:,}."),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="Who answers the parts of large inputs: this process, or workers of Ray."
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        option(min=1, help="Workers of Ray; else one for each GPU, or each CPU but one."),
    ] = None,
    ray_address: Annotated[
        str | None, option(help="A Ray cluster: auto, or HOST:PORT; else this machine.")
    ] = None,
    strict: options.Strict = False,
) -> None:
    """Use a run on texts, images or videos from the command line, a file or stdin; one output a
    line.
    """  # noqa: D205 - one sentence of --help
    from sixjars.runs.prediction.predictor import load

    check_one_source(texts, inputs)
    bulk = BulkOptions(inputs, output_file, shard, resume, part_rows, engine, workers, ray_address)
    if bulk.is_asked:
        bulk.check(alone=not (texts or question or pictures or chat))
    else:
        _check_files(bulk.file, output_file, pictures, as_json=as_json)
    place: Device = "cpu" if engine == "ray" else device
    if bulk.is_asked and engine != "ray":
        from sixjars.kernels.backends import compile_ahead, device_named

        compile_ahead(device_named(place).type)
    predictor = load(run, device=place, precision=precision, allow=allow or [])
    settings, _ = search_settings(predictor, search, nbest, setting)
    if bulk.is_asked:
        from sixjars.bulk.job import WorkerSettings

        allowed = tuple(allow or [])
        paths = str(run), "", str(output_file)
        order = WorkerSettings(*paths, settings, device, precision, allowed, as_json)
        bulk.through(order, predictor, strict=strict)
        return
    if pictures is not None and not predictor.has_attention:
        raise DataError(
            f"--pictures draws attention, but {run} has none; {with_attention(predictor)}"
        )
    if chat:
        if texts or inputs or output_file or pictures or as_json:
            raise DataError(
                "--chat reads and writes a conversation; "
                "give it no texts, files, pictures or --json."
            )
        hold_conversation(predictor, settings)
        return
    inputs_of_all = CommandInputs(texts or [], question or [], bulk.file)
    _PredictionJob(predictor, settings, output_file, pictures, as_json, strict).run(inputs_of_all)


def check_one_source(texts: list[str] | None, file: Path | str | None) -> None:
    """Refuse inputs both as arguments and in a file."""
    if texts and file:
        raise DataError("give texts or --input, not both.")


def search_settings(
    predictor: "Predictor", search: str | None, nbest: int | None, setting: list[str] | None
) -> "tuple[SearchSettings, set[str]]":
    """The run's own search settings, with those of the command line; and the names of those."""
    from sixjars.recipe.files import overridden
    from sixjars.runs.prediction.requests import search_of

    given = overridden({}, setting or []) | ({} if nbest is None else {"nbest": nbest})
    base = predictor.recipe.evaluation.search
    return search_of(base, search, given, predictor.ability, "the command line"), set(given)


def with_attention(predictor: "Predictor") -> str:
    """A sentence on training a run that has attention to draw."""
    from sixjars.model.bridges import BRIDGES
    from sixjars.tasks import TASKS

    kinds = [kind for kind in TASKS[predictor.recipe.task].bridges if BRIDGES[kind].has_attention]
    if not kinds:
        return f"no model of {predictor.recipe.task} has attention."
    return f"its bridge is of another kind: train again with 'model.bridge={{kind: {kinds[0]}}}'."


def _check_files(
    read: Path | None, written: Path | None, pictures: Path | None, *, as_json: bool
) -> None:
    if read and written and written.exists() and written.resolve() == read.resolve():
        raise DataError(
            f"--input and --output are the same file, {read}; name another one to write."
        )
    if as_json and written and written.suffix.lower() in TABLES:
        raise DataError(
            f"--json writes JSON lines, but --output is {written}; "
            "name it .jsonl, or leave out --json."
        )
    check_output(written)
    if pictures is not None and pictures.is_file():
        raise DataError(f"--pictures {pictures} is a file; name a folder.")


@final
@dataclass(frozen=True)
class _PredictionJob:
    """The settings of `predict`, and the work on portions of its inputs."""

    predictor: "Predictor"
    settings: "SearchSettings"
    output: Path | None
    pictures: Path | None
    as_json: bool
    strict: bool
    """Whether the exit code is 1 where an input was skipped."""

    def run(self, inputs: CommandInputs) -> None:
        """Predict the inputs, and write the outputs to a file or to standard output."""
        from sixjars.runs.prediction.outputs import output_of

        predictor, output = self.predictor, self.output
        note_file_names(predictor, inputs.texts)
        table = inputs.table(predictor)
        lines = inputs.lines(predictor, table)
        items = inputs.items(predictor, table, lines)
        nbest = self.settings.nbest
        sink = output_of(predictor, table, output, nbest=nbest, as_json=self.as_json, note=note)
        pace = Throughput(table or lines, to_terminal=output is None and sys.stdout.isatty())
        slow = lines is not None and inputs.file is None
        notes = InputNotes(pace, typed=inputs.typed, table=table)
        try:
            with noting(), closing(sink):
                waiting = portions(items, typed=inputs.typed, slow=slow)
                drawn = self._written(waiting, sink, notes, arguments=bool(inputs.texts))
        except KeyboardInterrupt:
            if inputs.file is None or output is None:
                raise
            raise Interrupted(
                f"stopped; {output} cannot be gone on with, but a folder can: "
                f"--output FOLDER --part-rows {PART_ROWS}, and after a stop the same with --resume."
            ) from None
        finally:
            pace.clear()
        if drawn:
            note_fonts(drawn)
            note(f"the pictures are in {self.pictures}")
        if notes.end(strict=self.strict):
            raise typer.Exit(1)

    def _written(
        self,
        waiting: "Iterator[list[Item]]",
        sink: "PredictionOutput",
        notes: InputNotes,
        *,
        arguments: bool,
    ) -> set[str]:
        """Write all portions; an input that cannot be used is an empty line. The texts drawn."""
        from sixjars.runs.prediction.threads import prediction_threads

        drawn = set[str]()
        with prediction_threads(self.predictor) as threads:
            for items in waiting:
                done = notes.counts.rows
                rows = self.predictor.nbest(
                    [values for values, _ in items],
                    search=self.settings,
                    first=done,
                    details=self.as_json or self.pictures is not None,
                    threads=threads,
                )
                # of arguments, it is an error where none can be used
                if arguments and not done and all(row[0].error for row in rows):
                    raise DataError(str(rows[0][0].error))
                if self.pictures is not None:
                    drawn |= _draw(self.pictures, self.predictor, rows, first=done)
                sink.take(items, rows)
                notes.take(rows)
        return drawn


def _draw(
    folder: Path, predictor: "Predictor", rows: "list[list[Prediction]]", *, first: int
) -> set[str]:
    """Draw a picture of each output; return the texts in them."""
    from sixjars.drawing.draw import draw, image_name

    texts: set[str] = set()
    for number, row in enumerate(rows, start=first + 1):
        for rank, prediction in enumerate(row, start=1):
            if prediction.error is None:
                place = rank if len(row) > 1 else None
                name = image_name(number, predictor, prediction, rank=place)
                draw(folder / name, predictor, prediction)
                texts.update(prediction.source, prediction.tokens)
    return texts


def note_fonts(texts: set[str]) -> None:
    """A note on fonts to install where the machine has none with the letters of pictures."""
    from sixjars.drawing.matplotlib.fonts import missing_font

    if missing := missing_font(texts):
        note(f"note: {missing} The pictures have numbers in their place, and a legend.")
