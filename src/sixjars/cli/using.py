"""Commands that use a run: `predict`, `evaluate`."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from sixjars.cli.options import DeviceOption, JsonOption, RunArgument, results
from sixjars.errors import DataError, RecipeError

if TYPE_CHECKING:
    from sixjars.recipe.jars import SearchSettings
    from sixjars.serving.predictor import Prediction, Predictor

AT_ONCE = 1024


def predict(
    run: RunArgument,
    texts: Annotated[list[str] | None, typer.Argument(metavar="TEXT", help="What to read.", show_default=False)] = None,
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
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Ask a run: texts from the command line, a file or stdin, one output a line."""
    from sixjars.serving.predictor import load

    if texts and input_file:
        raise DataError("give texts or --input, not both.")
    if input_file and output_file and output_file.exists() and output_file.resolve() == input_file.resolve():
        raise DataError(f"--input and --output are the same file, {input_file}; name another one to write.")
    predictor = load(run, device=device)
    settings = _search_settings(predictor, search, nbest, setting or [])
    if pictures is not None and predictor.recipe.model.bridge["kind"] != "attention":
        raise DataError(f"--pictures draws attention, but {run} has none; its bridge is of another kind.")
    asked = iter(texts) if texts else _lines(input_file, predictor)
    answers = _answers(predictor, asked, settings, pictures=pictures, as_json=as_json)
    first = next(answers)  # before a file is opened: a fault in the input leaves an older output as it is
    opened: IO[str] | nullcontext[IO[str]] = nullcontext(sys.stdout)
    if output_file is not None:
        opened = output_file.open("w", encoding="utf-8")
    with opened as output:
        for lines in chain([first], answers):
            output.write(lines)
            output.flush()


def _answers(
    predictor: "Predictor", asked: Iterator[str], settings: "SearchSettings", *, pictures: Path | None, as_json: bool
) -> Iterator[str]:
    """The lines to print, for one portion of the inputs after the other."""
    done, at_once = 0, 1 if sys.stdin is not None and sys.stdin.isatty() else AT_ONCE
    while some := list(islice(asked, at_once)):
        lines = []
        for text, found in zip(some, predictor.nbest(some, search=settings, first=done), strict=True):
            done += 1
            for rank, prediction in enumerate(found, start=1):
                if pictures is not None:
                    _draw(pictures / f"{done}{f'-{rank}' if len(found) > 1 else ''}.png", text, prediction)
                told = {"input": text, **prediction.to_json()}
                lines.append(json.dumps(told, ensure_ascii=False) if as_json else prediction.text)
        yield "".join(f"{line}\n" for line in lines)


def _draw(path: Path, text: str, prediction: "Prediction") -> None:
    from sixjars.inspection.heatmap import draw

    title = f"{text} → {prediction.text}"
    draw(path, prediction.weights, source=prediction.source, target=prediction.pieces, title=title)


def _search_settings(
    predictor: "Predictor", kind: str | None, nbest: int | None, others: list[str]
) -> "SearchSettings":
    """The run's own search with the options of this call; several outputs need a beam or sampling."""
    from sixjars.recipe.jars import SearchSettings
    from sixjars.recipe.reading import overridden
    from sixjars.recipe.schema import checked

    own = predictor.recipe.evaluation.search
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
    from sixjars.tasks.table import TASKS

    reads, name, number = TASKS[predictor.recipe.task].reads, str(file or "standard input"), 0
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
    from sixjars.cli.show import show_scores
    from sixjars.tasks.evaluating import evaluated

    found = evaluated(
        run, data=data, metrics=[name.strip() for name in metrics.split(",")] if metrics else None, device=device
    )
    if as_json:
        results().print(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        show_scores(results(), found.scores, examples=found.examples, where=found.where, skipped=found.skipped)
