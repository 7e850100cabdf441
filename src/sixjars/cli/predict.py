"""Commands that use a run: `predict`, `evaluate`."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal

import typer

from sixjars.cli.chat import hold_conversation
from sixjars.cli.inputs import at_terminal, inputs_of, lines_of
from sixjars.cli.options import AllowOption, DeviceOption, JsonOption, RunArgument, note, notes, results
from sixjars.errors import DataError, RecipeError

if TYPE_CHECKING:
    from sixjars.recipe.sections import SearchSettings
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction

AT_ONCE = 1024


def predict(
    run: RunArgument,
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="INPUT", help="Texts; or files, folders, globs.", show_default=False),
    ] = None,
    question: Annotated[list[str] | None, typer.Option(help="A question about each image.", show_default=False)] = None,
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
    allow: AllowOption = None,
) -> None:
    """Use a run on texts, images or videos from the command line, a file or stdin; one output a line."""
    from sixjars.runs.predict import load

    if texts and input_file:
        raise DataError("give texts or --input, not both.")
    _check_files(input_file, output_file)
    predictor = load(run, device=device, allow=allow or [])
    settings = _search_settings(predictor, search, nbest, setting or [])
    if pictures is not None and not predictor.has_attention:
        raise DataError(f"--pictures draws attention, but {run} has none; its bridge is of another kind.")
    if chat:
        if texts or input_file or output_file or pictures or as_json:
            raise DataError("--chat reads and writes a conversation; give it no texts, files, pictures or --json.")
        hold_conversation(predictor, settings)
        return
    given = iter(texts) if texts else lines_of(input_file, predictor)
    typed = not texts and input_file is None and at_terminal()
    inputs = inputs_of(predictor, given, question or [])
    answers = _answers(predictor, inputs, settings, at_once=1 if typed else AT_ONCE)
    _write(answers, predictor, output_file, pictures, as_json=as_json)


def _check_files(read: Path | None, written: Path | None) -> None:
    if read and written and written.exists() and written.resolve() == read.resolve():
        raise DataError(f"--input and --output are the same file, {read}; name another one to write.")


def _answers(
    predictor: "Predictor", inputs: Iterator[Any], settings: "SearchSettings", *, at_once: int
) -> "Iterator[list[list[Prediction]]]":
    """The predictions for one portion of the inputs after the other; an error where the first has no good input."""
    done = 0
    while some := list(islice(inputs, at_once)):
        found = predictor.nbest(some, search=settings, first=done)
        if not done and at_once > 1 and all(one[0].error is not None for one in found):
            raise DataError(str(found[0][0].error))  # somebody who types goes on with the next line
        yield found
        done += len(some)


def _write(
    answers: "Iterator[list[list[Prediction]]]",
    predictor: "Predictor",
    file: Path | None,
    pictures: Path | None,
    *,
    as_json: bool,
) -> None:
    """One line for each output as it comes; an input that cannot be used is an empty line, a note, and exit code 1."""
    from sixjars.inspection.draw import draw

    done = failed = 0
    first = next(answers)  # before a file is opened: a fault in the input leaves an older output as it is
    opened: IO[str] | nullcontext[IO[str]] = nullcontext(sys.stdout)
    if file is not None:
        opened = file.open("w", encoding="utf-8", errors="backslashreplace")
    with opened as output:
        for portion in chain([first], answers):
            for found in portion:
                done += 1
                failed += _noted(found[0])
                for rank, prediction in enumerate(found, start=1):
                    if pictures is not None and prediction.error is None:
                        draw(pictures / f"{done}{f'-{rank}' if len(found) > 1 else ''}.png", predictor, prediction)
                    output.write(f"{_line(predictor, prediction, as_json=as_json)}\n")
            output.flush()
    if failed:
        note(f"note: {failed} of {done} inputs could not be used; their lines are empty.")
        raise typer.Exit(1)


def _noted(prediction: "Prediction") -> bool:
    """Tell what is wrong with an input; whether something is."""
    if prediction.error is not None:
        note(f"note: {prediction.error}")
    elif prediction.truncated:
        note("note: an input was cut, because it is longer than the run reads (max_length).")
    return prediction.error is not None


def _line(predictor: "Predictor", prediction: "Prediction", *, as_json: bool) -> str:
    """A text alone; for a file its name before it; for a label its probability behind it."""
    given = prediction.inputs
    if as_json:
        inputs = next(iter(given.values()), "") if len(given) < 2 else dict(given)
        return json.dumps({"input": inputs, **prediction.to_json()}, ensure_ascii=False)
    media = any(field.is_media for field in predictor.inputs.values())
    cells = [*given.values(), prediction.text] if media else [prediction.text]
    label = not predictor.network.decoder.searches and prediction.error is None
    return "\t".join([*cells, f"{prediction.probability:.3f}"] if label else cells)


def _search_settings(
    predictor: "Predictor", kind: str | None, nbest: int | None, others: list[str]
) -> "SearchSettings":
    """The run's own search with the options of this call; several outputs need a beam or sampling."""
    from sixjars.recipe.files import overridden
    from sixjars.recipe.schema import checked
    from sixjars.recipe.sections import SearchSettings

    own = predictor.recipe.evaluation.search
    if not predictor.network.decoder.searches:
        if kind is not None or others:
            raise DataError(
                "this run chooses a label; there is nothing to search. --nbest K gives the K most probable."
            )
        if nbest is not None and predictor.fields.output.multi_label:
            raise DataError("this run chooses all labels that apply to an input, so --nbest has nothing to count.")
        return own.model_copy(update={"nbest": nbest or own.nbest})
    values = own.model_dump() | ({} if kind is None else {"kind": kind})
    if nbest is not None:
        if kind == "greedy" and nbest > 1:
            raise DataError(f"greedy search finds one output, but --nbest is {nbest}; use --search beam or sample.")
        several = "beam" if values["kind"] == "greedy" and nbest > 1 else values["kind"]
        values |= {"nbest": nbest, "kind": several, "width": max(own.width, nbest)}
    settings, faults = checked(SearchSettings, overridden(values, others), "search")
    if settings is None:
        raise RecipeError(faults, "the command line")
    if settings.unknown == "replace" and not predictor.has_attention:
        raise DataError("unknown=replace needs attention, but this run has none; its bridge is of another kind.")
    return settings


def evaluate(
    run: RunArgument,
    data: Annotated[Path | None, typer.Option(help="Another file with the same columns.", show_default=False)] = None,
    metrics: Annotated[str | None, typer.Option(help="Names with commas between.", show_default=False)] = None,
    *,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Score a run, on its test set or on a file of yours."""
    from sixjars.cli.show import show_classes, show_scores
    from sixjars.progress import ConsoleProgress
    from sixjars.runs.evaluate import evaluate as evaluate_run

    named = [name.strip() for name in metrics.split(",")] if metrics else None
    progress = ConsoleProgress(notes())
    found = evaluate_run(run, data=data, metrics=named, device=device, reporter=progress, allow=allow or [])
    if as_json:
        results().print(json.dumps(found.to_json(), ensure_ascii=False))
        return
    show_scores(results(), found.scores, examples=found.examples, where=found.where, skipped=found.skipped)
    if found.classes:
        show_classes(results(), found.classes, found.confusion)
