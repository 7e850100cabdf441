"""The command `predict`."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, final

import typer

from sixjars.bulk import PART_ROWS
from sixjars.bulk.remote import local_path
from sixjars.cli.bulk import (
    BulkOptions,
    EngineOption,
    PartRowsOption,
    RayAddressOption,
    ResumeOption,
    ShardOption,
    WorkersOption,
)
from sixjars.cli.chat import hold_conversation
from sixjars.cli.inputs import CommandInputs, InputNotes, note_file_names
from sixjars.cli.options import (
    TABLES,
    AllowOption,
    DeviceOption,
    JsonOption,
    RunArgument,
    StrictOption,
    argument,
    check_output,
    note,
    noting,
    option,
)
from sixjars.cli.streaming import Throughput, portions
from sixjars_runtime.errors import DataError, Interrupted

if TYPE_CHECKING:
    from sixjars.learning.engine import Device
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.prediction.inputs import Item
    from sixjars.runs.prediction.outputs import PredictionOutput
    from sixjars.runs.prediction.prediction import Prediction
    from sixjars.runs.prediction.predictor import Predictor

TextsArgument = Annotated[
    list[str] | None,
    argument(
        metavar="INPUT",
        help="Texts; images and videos as files, folders, globs; "
        'or objects by column: {"body": "..."}',
    ),
]
_FILE = (
    "A file: CSV, TSV, JSON, Parquet or Excel with the columns that the run was trained on (.gz "
    "too); any other has one input a line."
)
InputOption = Annotated[Path | None, option("--input", help=_FILE)]
InputsOption = Annotated[
    str | None,
    option(
        "--input",
        metavar="PATH",
        help=f"{_FILE} Or a folder or glob of such files; "
        "also in remote storage: s3://BUCKET/FOLDER",
    ),
]
OutputOption = Annotated[
    Path | None,
    option(
        "--output",
        parser=local_path,
        metavar="PATH",
        help="Write here: of a file with columns the same rows with the answers added, else one "
        "output a line. For many files or parts, a folder.",
    ),
]
QuestionOption = Annotated[list[str] | None, option(help="A question about each image.")]
NbestOption = Annotated[int | None, option(help="Outputs for each input.", min=1)]
SearchOption = Annotated[
    Literal["greedy", "beam", "sample"] | None, option(help="How outputs are chosen.")
]
SettingOption = Annotated[
    list[str] | None, option("--set", help="A search setting: temperature=0.7")
]
PrecisionOption = Annotated[
    Literal["32", "bf16", "int8"],
    typer.Option(
        help="Bits of matrix products: int8 (CPU) and bf16 are faster, and a little less exact."
    ),
]
PicturesOption = Annotated[
    Path | None, option(help="A folder to draw the attention of each output in.")
]


def predict(
    run: RunArgument,
    texts: TextsArgument = None,
    question: QuestionOption = None,
    inputs: InputsOption = None,
    output_file: OutputOption = None,
    search: SearchOption = None,
    nbest: NbestOption = None,
    setting: SettingOption = None,
    pictures: PicturesOption = None,
    *,
    chat: Annotated[bool, option("--chat", help="Hold a conversation.")] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    precision: PrecisionOption = "32",
    allow: AllowOption = None,
    shard: ShardOption = None,
    resume: ResumeOption = False,
    part_rows: PartRowsOption = None,
    engine: EngineOption = "local",
    workers: WorkersOption = None,
    ray_address: RayAddressOption = None,
    strict: StrictOption = False,
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
    predictor = load(run, device=place, precision=precision, allow=allow or [])
    settings, _ = search_settings(predictor, search, nbest, setting)
    if bulk.is_asked:
        from sixjars.bulk.worker import WorkerSettings

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
    arguments = bool(texts)
    job = _PredictionJob(predictor, settings, pictures, as_json, arguments, strict)
    _predict_all(job, CommandInputs(texts or [], question or [], bulk.file), output_file)


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


def _predict_all(job: "_PredictionJob", inputs: CommandInputs, output: Path | None) -> None:
    """Predict the inputs, and write the outputs to a file or to standard output."""
    from sixjars.runs.prediction.outputs import PredictionLines, PredictionTable

    predictor, nbest = job.predictor, job.settings.nbest
    note_file_names(predictor, inputs.texts)
    table = inputs.table(predictor)
    lines = inputs.lines(predictor, table)
    items = inputs.items(predictor, table, lines)
    sink: PredictionOutput = PredictionLines(predictor, output, nbest=nbest, as_json=job.as_json)
    if (
        table is not None
        and output is not None
        and not job.as_json
        and output.suffix.lower() != ".txt"
    ):
        sink = PredictionTable(predictor, table, output, nbest=nbest, note=note)
    pace = Throughput(table or lines, to_terminal=output is None and sys.stdout.isatty())
    waiting = portions(items, typed=inputs.typed, slow=lines is not None and inputs.file is None)
    try:
        with noting():
            job.through(waiting, sink, InputNotes(pace, typed=inputs.typed, table=table))
    except KeyboardInterrupt:
        if inputs.file is None or output is None:
            raise
        raise Interrupted(
            f"stopped; {output} cannot be gone on with, but a folder can: "
            f"--output FOLDER --part-rows {PART_ROWS}, and after a stop the same with --resume."
        ) from None


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
    pictures: Path | None
    as_json: bool
    arguments: bool
    """Whether inputs are arguments: then it is an error where none can be used."""
    strict: bool
    """Whether the exit code is 1 where an input was skipped."""

    def through(
        self, waiting: "Iterator[list[Item]]", sink: "PredictionOutput", notes: InputNotes
    ) -> None:
        """Predict all portions; an input that cannot be used is an empty line, and noted."""
        from sixjars.runs.prediction.threads import prediction_threads

        options: dict[str, Any] = {"search": self.settings}
        options["details"] = self.as_json or self.pictures is not None
        done = 0
        drawn = set[str]()
        try:
            with prediction_threads(self.predictor) as threads:
                for items in waiting:
                    inputs = [values for values, _ in items]
                    rows = self.predictor.nbest(inputs, first=done, threads=threads, **options)
                    if self.arguments and not done and all(row[0].error for row in rows):
                        raise DataError(str(rows[0][0].error))
                    if self.pictures is not None:
                        drawn |= _draw(self.pictures, self.predictor, rows, first=done)
                    sink.take(items, rows)
                    done += len(items)
                    notes.take(rows)
        finally:
            notes.pace.clear()
            sink.close()
        if drawn:
            note_fonts(drawn)
            note(f"the pictures are in {self.pictures}")
        if notes.end(strict=self.strict):
            raise typer.Exit(1)


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
