"""The command `predict`."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, final

import typer

from sixjars.bulk import PART_ROWS
from sixjars.bulk.remote import local_path
from sixjars.cli.bulk import (
    Bulk,
    EngineOption,
    PartRowsOption,
    RayAddressOption,
    ResumeOption,
    ShardOption,
    WorkersOption,
)
from sixjars.cli.chat import hold_conversation
from sixjars.cli.input_notes import Notes
from sixjars.cli.inputs import (
    Lines,
    at_terminal,
    note_file_names,
    on_one_line,
    rows_given,
    texts_given,
)
from sixjars.cli.options import (
    TABLES,
    AllowOption,
    DeviceOption,
    JsonOption,
    RunArgument,
    StrictOption,
    check_output,
    note,
    noting,
)
from sixjars.cli.streaming import Pace, portions
from sixjars.errors import DataError, Interrupted

if TYPE_CHECKING:
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.given import Item
    from sixjars.runs.input_file import InputFile
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction
    from sixjars.runs.sinks import Sink

TextsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT",
        help='Texts; images and videos as files, folders, globs; or objects by column: {"body": "..."}',
        show_default=False,
    ),
]
_FILE = (
    "A file: CSV, TSV, JSON, Parquet or Excel with the columns that the run was trained on (.gz too); any other has "
    "one input a line."
)
InputOption = Annotated[Path | None, typer.Option("--input", help=_FILE, show_default=False)]
InputsOption = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="PATH",
        help=f"{_FILE} Or a folder or glob of such files; also in remote storage: s3://BUCKET/FOLDER",
        show_default=False,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        parser=local_path,
        metavar="PATH",
        help="Write here: of a file with columns the same rows with the answers added, else one output a line. For "
        "many files or parts, a folder.",
        show_default=False,
    ),
]
QuestionOption = Annotated[
    list[str] | None, typer.Option(help="A question about each image.", show_default=False)
]
NbestOption = Annotated[
    int | None, typer.Option(help="Outputs for each input.", min=1, show_default=False)
]
SearchOption = Annotated[
    Literal["greedy", "beam", "sample"] | None,
    typer.Option(help="How outputs are chosen.", show_default=False),
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A search setting: temperature=0.7", show_default=False),
]
PrecisionOption = Annotated[
    Literal["32", "bf16", "int8"],
    typer.Option(
        help="Bits of matrix products: int8 (CPU) and bf16 are faster, and a little less exact."
    ),
]
PicturesOption = Annotated[
    Path | None,
    typer.Option(help="A folder to draw the attention of each output in.", show_default=False),
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
    chat: Annotated[
        bool, typer.Option("--chat", help="Hold a conversation.", show_default=False)
    ] = False,
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
    """Use a run on texts, images or videos from the command line, a file or stdin; one output a line."""
    from sixjars.runs.predict import load

    check_one_source(texts, inputs)
    bulk = Bulk(inputs, output_file, shard, resume, part_rows, engine, workers, ray_address)
    if bulk.is_asked:
        bulk.check(alone=not (texts or question or pictures or chat))
    else:
        _check_files(bulk.file, output_file, pictures, as_json=as_json)
    predictor = load(
        run, device="cpu" if engine == "ray" else device, precision=precision, allow=allow or []
    )
    settings, _ = search_settings(predictor, search, nbest, setting)
    if bulk.is_asked:
        from sixjars.bulk.work import Order

        order = Order(
            str(run), "", str(output_file), settings, device, precision, tuple(allow or []), as_json
        )
        bulk.through(order, predictor, strict=strict)
        return
    if pictures is not None and not predictor.has_attention:
        raise DataError(
            f"--pictures draws attention, but {run} has none; {with_attention(predictor)}"
        )
    if chat:
        if texts or inputs or output_file or pictures or as_json:
            raise DataError(
                "--chat reads and writes a conversation; give it no texts, files, pictures or --json."
            )
        hold_conversation(predictor, settings)
        return
    work = _Work(
        predictor, settings, pictures, as_json=as_json, arguments=bool(texts), strict=strict
    )
    _answer(work, _Asked(texts or [], question or [], bulk.file, output_file), as_json=as_json)


def check_one_source(texts: list[str] | None, file: Path | str | None) -> None:
    """Inputs are arguments or in a file."""
    if texts and file:
        raise DataError("give texts or --input, not both.")


def search_settings(
    predictor: "Predictor", search: str | None, nbest: int | None, setting: list[str] | None
) -> "tuple[SearchSettings, set[str]]":
    """The run's own search settings, with those of the command line; and the names of those."""
    from sixjars.recipe.files import overridden
    from sixjars.runs.requests import search_of

    given = overridden({}, setting or []) | ({} if nbest is None else {"nbest": nbest})
    own = predictor.recipe.evaluation.search
    return search_of(own, search, given, predictor.ability, "the command line"), set(given)


@final
@dataclass(frozen=True)
class _Asked:
    """What is answered, and where to."""

    texts: list[str]
    questions: list[str]
    input: Path | None
    output: Path | None


def _answer(work: "_Work", asked: _Asked, *, as_json: bool) -> None:
    from sixjars.runs.sinks import LineSink, TableSink

    predictor, settings, output = work.predictor, work.settings, asked.output
    note_file_names(predictor, asked.texts)
    table = None if asked.texts else table_of(asked.input, predictor)
    typed = not asked.texts and asked.input is None and at_terminal()
    lines = Lines(asked.input, predictor) if table is None and not asked.texts else None
    given = lines or on_one_line(predictor, asked.texts, asked.questions)
    items = texts_given(predictor, iter(given), asked.questions)
    if table is not None:
        items = rows_given(predictor, table)
    sink: Sink = LineSink(predictor, output, nbest=settings.nbest, as_json=as_json)
    if table is not None and output is not None and not as_json and output.suffix.lower() != ".txt":
        sink = TableSink(predictor, table, output, nbest=settings.nbest, note=note)
    pace = Pace(table or lines, to_terminal=output is None and sys.stdout.isatty())
    waiting = portions(items, typed=typed, slow=lines is not None and asked.input is None)
    try:
        with noting():
            work.through(waiting, sink, Notes(pace, typed=typed, table=table))
    except KeyboardInterrupt:
        if asked.input is None or output is None:
            raise
        raise Interrupted(
            f"stopped; {output} cannot be gone on with, but a folder can: "
            f"--output FOLDER --part-rows {PART_ROWS}, and after a stop the same with --resume."
        ) from None


def with_attention(predictor: "Predictor") -> str:
    """What to train so that there is attention to draw."""
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
            f"--json writes JSON lines, but --output is {written}; name it .jsonl, or leave out --json."
        )
    check_output(written)
    if pictures is not None and pictures.is_file():
        raise DataError(f"--pictures {pictures} is a file; name a folder.")


def table_of(
    file: Path | None, predictor: "Predictor", *, with_output: bool = False
) -> "InputFile | None":
    """A file with columns, those of the inputs or of the output too; nothing where it has one input a line."""
    from sixjars.runs.files import input_file

    if file is None or not file.is_file():
        return None
    columns = predictor.all_columns if with_output else predictor.columns
    return input_file(file, columns, predictor.recipe.data)


@final
@dataclass(frozen=True)
class _Work:
    """All that is done with each portion of the inputs."""

    predictor: "Predictor"
    settings: "SearchSettings"
    pictures: Path | None
    as_json: bool
    arguments: bool
    """Whether inputs are arguments: then it is an error, and nothing is written, where none can be used."""
    strict: bool
    """Whether the exit code is 1 where an input was skipped."""

    def through(self, waiting: "Iterator[list[Item]]", sink: "Sink", notes: Notes) -> None:
        """Answer portion after portion; an input that cannot be used is an empty line, and counted in a note."""
        from sixjars.runs.computing import computing

        done, drawn = 0, set[str]()
        try:
            with computing(self.predictor) as threads:
                for items in waiting:
                    found = self.predictor.nbest(
                        [one for one, _ in items],
                        search=self.settings,
                        first=done,
                        details=self.as_json or self.pictures is not None,
                        threads=threads,
                    )
                    if (
                        self.arguments
                        and not done
                        and all(some[0].error is not None for some in found)
                    ):
                        raise DataError(str(found[0][0].error))
                    if self.pictures is not None:
                        drawn |= _draw(self.pictures, self.predictor, found, first=done)
                    sink.take(items, found)
                    done += len(items)
                    notes.take(found)
        finally:
            notes.pace.clear()
            sink.close()
        if drawn:
            note_fonts(drawn)
            note(f"the pictures are in {self.pictures}")
        if notes.end(strict=self.strict):
            raise typer.Exit(1)


def _draw(
    folder: Path, predictor: "Predictor", found: "list[list[Prediction]]", *, first: int
) -> set[str]:
    """A picture of each output; what is written in them."""
    from sixjars.drawing.draw import draw, picture_name

    texts: set[str] = set()
    for number, some in enumerate(found, start=first + 1):
        for rank, prediction in enumerate(some, start=1):
            if prediction.error is None:
                name = picture_name(
                    number, predictor, prediction, rank=rank if len(some) > 1 else None
                )
                draw(folder / name, predictor, prediction)
                texts.update(prediction.source, prediction.tokens)
    return texts


def note_fonts(texts: set[str]) -> None:
    """What to install where the machine has no font with the letters of the pictures."""
    from sixjars.drawing.fonts import missing_font

    if missing := missing_font(texts):
        note(f"note: {missing} The pictures have numbers in their place, and a legend.")
