"""Commands that use a run: `predict`, `evaluate`."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from sixjars.cli.asking import asked_of
from sixjars.cli.chatting import hold_conversation
from sixjars.cli.options import DeviceOption, JsonOption, RunArgument, results, talk
from sixjars.errors import DataError, RecipeError

if TYPE_CHECKING:
    from sixjars.recipe.jars import SearchSettings
    from sixjars.serving.predictor import Asked, Prediction, Predictor

AT_ONCE = 1024


def predict(
    run: RunArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Texts; or files, folders, globs.", show_default=False),
    ] = None,
    question: Annotated[list[str] | None, typer.Option(help="What to ask of each picture.", show_default=False)] = None,
    input_file: Annotated[Path | None, typer.Option("--input", help="One input a line.", show_default=False)] = None,
    output_file: Annotated[Path | None, typer.Option("--output", help="Write here.", show_default=False)] = None,
    search: Annotated[
        Literal["greedy", "beam", "sample"] | None,
        typer.Option(help="How outputs are chosen.", show_default=False),
    ] = None,
    nbest: Annotated[int | None, typer.Option(help="Outputs for each input.", min=1, show_default=False)] = None,
    setting: Annotated[
        list[str] | None, typer.Option("--set", help="A search setting: temperature=0.7", show_default=False)
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="A folder to draw the attention of each output in.", show_default=False)
    ] = None,
    *,
    chat: Annotated[bool, typer.Option("--chat", help="Hold a conversation.", show_default=False)] = False,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Ask a run: texts, pictures or films from the command line, a file or stdin; one output a line."""
    from sixjars.serving.predictor import load

    if texts and input_file:
        raise DataError("give texts or --input, not both.")
    _check_files(input_file, output_file)
    predictor = load(run, device=device)
    settings = _search_settings(predictor, search, nbest, setting or [])
    if pictures is not None and not predictor.looks:
        raise DataError(f"--pictures draws attention, but {run} has none; its bridge is of another kind.")
    if chat:
        if texts or input_file or output_file or pictures or as_json:
            raise DataError("--chat reads and writes a conversation; give it no texts, files, pictures or --json.")
        hold_conversation(predictor, settings)
        return
    asked = asked_of(predictor, iter(texts) if texts else _lines(input_file, predictor), question or [])
    answers = _answers(predictor, asked, settings, pictures=pictures, as_json=as_json)
    first = next(answers)  # before a file is opened: a fault in the input leaves an older output as it is
    opened: IO[str] | nullcontext[IO[str]] = nullcontext(sys.stdout)
    if output_file is not None:
        opened = output_file.open("w", encoding="utf-8")
    with opened as output:
        for lines in chain([first], answers):
            output.write(lines)
            output.flush()


def _check_files(read: Path | None, written: Path | None) -> None:
    if read and written and written.exists() and written.resolve() == read.resolve():
        raise DataError(f"--input and --output are the same file, {read}; name another one to write.")


def _answers(
    predictor: "Predictor",
    asked: "Iterator[Asked]",
    settings: "SearchSettings",
    *,
    pictures: Path | None,
    as_json: bool,
) -> Iterator[str]:
    """The lines to print, for one portion of the inputs after the other."""
    from sixjars.serving.drawing import draw_attention

    done, at_once = 0, 1 if sys.stdin is not None and sys.stdin.isatty() else AT_ONCE
    while some := list(islice(asked, at_once)):
        lines = []
        for found in predictor.nbest(some, search=settings, first=done):
            done += 1
            for rank, prediction in enumerate(found, start=1):
                if pictures is not None:
                    path = pictures / f"{done}{f'-{rank}' if len(found) > 1 else ''}.png"
                    draw_attention(path, predictor, prediction)
                lines.append(_told(predictor, prediction, as_json=as_json))
        yield "".join(f"{line}\n" for line in lines)


def _told(predictor: "Predictor", prediction: "Prediction", *, as_json: bool) -> str:
    """One line: a text alone; for a file its name before it; for a label how probable it is behind it."""
    given = prediction.inputs
    if as_json:
        asked = next(iter(given.values())) if len(given) == 1 else dict(given)
        return json.dumps({"input": asked, **prediction.to_json()}, ensure_ascii=False)
    told = [given[name] for name in given if predictor.seeing] + [prediction.text]
    return "\t".join(told + ([f"{prediction.probability:.3f}"] if predictor.task.output == "label" else []))


def _search_settings(
    predictor: "Predictor", kind: str | None, nbest: int | None, others: list[str]
) -> "SearchSettings":
    """The run's own search with the options of this call; several outputs need a beam or sampling."""
    from sixjars.recipe.jars import SearchSettings
    from sixjars.recipe.reading import overridden
    from sixjars.recipe.schema import checked

    own = predictor.recipe.evaluation.search
    if predictor.task.output == "label":
        if kind is not None or others:
            raise DataError(
                "this run chooses a label; there is nothing to search. --nbest K tells the K most probable."
            )
        label = predictor.recipe.data.label
        if nbest is not None and label is not None and label.several:
            raise DataError("this run chooses all labels that fit an input, so --nbest has nothing to count.")
        return own.model_copy(update={"nbest": nbest or own.nbest})
    values = own.model_dump() | ({} if kind is None else {"kind": kind})
    if nbest is not None:
        if kind == "greedy" and nbest > 1:
            raise DataError(f"greedy search finds one output, but --nbest is {nbest}; use --search beam or sample.")
        several = "beam" if values["kind"] == "greedy" and nbest > 1 else values["kind"]
        values |= {"nbest": nbest, "kind": several, "width": max(own.width, nbest)}
    values = overridden(values, others)
    settings, faults = checked(SearchSettings, values, "search")
    if settings is None:
        raise RecipeError(faults, "the command line")
    return settings


def _lines(file: Path | None, predictor: "Predictor") -> Iterator[str]:
    """Lines of a file or of stdin; a language model that is asked nothing begins from nothing."""
    reads, name, number = bool(predictor.task.inputs), str(file or "standard input"), 0
    if file is not None and not file.is_file():
        raise DataError(f"input file {file} is a folder." if file.is_dir() else f"input file {file} does not exist.")
    if file is not None or (sys.stdin is not None and (reads or not sys.stdin.isatty())):
        with sys.stdin.buffer if file is None else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise DataError(f"{name}, line {number}: byte {error.start + 1} is not UTF-8 text.") from None
                if reads and not text.strip():
                    raise DataError(f"{name}, line {number} is empty; a {predictor.recipe.task} model needs some text.")
                yield text
    if not number and reads:
        raise DataError(f"{name} has no text; give texts, --input FILE or lines on standard input.")
    if not number:
        yield ""


def evaluate(
    run: RunArgument,
    data: Annotated[Path | None, typer.Option(help="Another file with the same columns.", show_default=False)] = None,
    metrics: Annotated[str | None, typer.Option(help="Names with commas between.", show_default=False)] = None,
    *,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Score a run, on the data of its recipe or on a file of yours."""
    from sixjars.cli.show import show_classes, show_scores
    from sixjars.learning.progress import OnConsole
    from sixjars.tasks.evaluating import evaluated

    named = [name.strip() for name in metrics.split(",")] if metrics else None
    found = evaluated(run, data=data, metrics=named, device=device, reporter=OnConsole(talk()))
    if as_json:
        results().print(json.dumps(found.to_json(), ensure_ascii=False))
        return
    show_scores(results(), found.scores, examples=found.examples, where=found.where, skipped=found.skipped)
    if found.classes:
        show_classes(results(), found.classes, found.confusion)
