"""Commands that use a run: `predict`, `evaluate`."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Literal

import typer

from sixjars.cli.options import DeviceOption, JsonOption, RunArgument, results
from sixjars.errors import DataError, RecipeError

if TYPE_CHECKING:
    from sixjars.recipe.jars import SearchSettings
    from sixjars.serving.predictor import Predictor

AT_ONCE = 1024


def predict(
    run: RunArgument,
    texts: Annotated[
        list[str] | None, typer.Argument(metavar="[TEXT]...", help="What to read.", show_default=False)
    ] = None,
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
    *,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
) -> None:
    """Ask a run: texts from the command line, a file or stdin, one output a line."""
    from sixjars.serving.predictor import load

    if texts and input_file:
        raise DataError("give texts or --input, not both.")
    predictor = load(run, device=device)
    settings = _search_settings(predictor, search, nbest, setting or [])
    asked = iter(texts) if texts else _lines(input_file, predictor)
    opened: IO[str] | nullcontext[IO[str]] = nullcontext(sys.stdout)
    if output_file is not None:
        opened = output_file.open("w", encoding="utf-8")
    with opened as output:
        while some := list(islice(asked, AT_ONCE)):
            for text, found in zip(some, predictor.nbest(some, search=settings), strict=True):
                for prediction in found:
                    line = json.dumps({"input": text, **prediction.to_json()}, ensure_ascii=False)
                    output.write((line if as_json else prediction.text) + "\n")
            output.flush()


def _search_settings(
    predictor: "Predictor", kind: str | None, nbest: int | None, others: list[str]
) -> "SearchSettings":
    """The run's own search with the options of this call; several outputs need a beam or sampling."""
    from sixjars.recipe.jars import SearchSettings
    from sixjars.recipe.reading import overridden
    from sixjars.recipe.schema import checked

    values = overridden(predictor.recipe.evaluation.search.model_dump(), others)
    if kind is not None:
        values["kind"] = kind
    if nbest is not None:
        values["nbest"] = nbest
        if values["kind"] == "greedy":
            values["kind"] = "beam"
        values["width"] = max(values["width"], nbest)
    settings, faults = checked(SearchSettings, values, "search")
    if settings is None:
        raise RecipeError(faults, "the command line")
    return settings


def _lines(file: Path | None, predictor: "Predictor") -> Iterator[str]:
    """Lines of a file or of stdin; a language model asked nothing at a terminal begins from nothing."""
    from sixjars.tasks.table import TASKS

    if file is None and sys.stdin.isatty() and not TASKS[predictor.recipe.task].reads:
        yield ""
        return
    if file is not None and not file.is_file():
        raise DataError(f"input file {file} does not exist.")
    name = "standard input" if file is None else str(file)
    with sys.stdin.buffer if file is None else file.open("rb") as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(f"{name}, line {number}: byte {error.start + 1} is not UTF-8 text.") from None


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

    found = evaluated(run, data=data, metrics=metrics.split(",") if metrics else None, device=device)
    if as_json:
        results().print(json.dumps(found.to_json(), ensure_ascii=False))
    else:
        show_scores(results(), found.scores, examples=found.examples, where=found.where, skipped=found.skipped)
