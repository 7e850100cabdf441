"""Commands that measure a run: `evaluate`, `score`, `report`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli.input_notes import note_unknown
from sixjars.cli.options import (
    TABLES,
    AllowOption,
    DataOption,
    DeviceOption,
    JsonOption,
    NoBaselinesOption,
    RunArgument,
    check_output,
    note,
    notes,
    noting,
    results,
)
from sixjars.progress import ConsoleProgress
from sixjars_runtime.errors import DataError


def evaluate(
    run: RunArgument,
    data: DataOption = None,
    metrics: Annotated[
        str | None, typer.Option(help="Names with commas between.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help="Write a JSON line for each example: input, references, output, scores.",
            show_default=False,
        ),
    ] = None,
    *,
    as_json: JsonOption = False,
    no_baselines: NoBaselinesOption = False,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Score a run, on its test set or on a file of yours."""
    from sixjars.cli.show import show_baselines, show_classes, show_scores
    from sixjars.runs.evaluate import evaluate as evaluate_run

    check_output(output)
    if output is not None and output.suffix.lower() in TABLES:
        raise DataError(
            f"--output {output} gets a JSON line for each example; let its name end in .jsonl."
        )
    named = [name.strip() for name in metrics.split(",")] if metrics else None
    progress = ConsoleProgress(notes())
    found = evaluate_run(
        run,
        data=data or None,
        metrics=named,
        device=device,
        reporter=progress,
        baselines=not no_baselines,
        allow=allow or [],
    )
    if output is not None:
        with output.open("w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(example, ensure_ascii=False) + "\n" for example in found.each()
            )
    if as_json:
        results().print(json.dumps(found.to_json(), ensure_ascii=False))
        return
    show_scores(
        results(), found.scores, examples=found.examples, where=found.where, skipped=found.skipped
    )
    show_baselines(results(), found.baselines, found.beside)
    note_unknown(found.unknown)
    if found.classes:
        show_classes(results(), found.classes, found.confusion)


def score(
    run: RunArgument,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Inputs and outputs, in the run's own columns.", show_default=False
        ),
    ],
    *,
    as_json: JsonOption = False,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Print the log probability of each output of a file, one a line; with --json also that of each token."""
    from sixjars.runs.forced import score_outputs

    with noting():
        found = score_outputs(run, data, device=device, allow=allow or [])
    for one in found:
        typer.echo(
            json.dumps(one.to_json(), ensure_ascii=False)
            if as_json
            else f"{one.log_probability:.6f}"
        )


def report(
    run: RunArgument,
    data: DataOption = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    *,
    no_baselines: NoBaselinesOption = False,
    device: DeviceOption = "auto",
    allow: AllowOption = None,
) -> None:
    """Write one HTML file about a run: scores, learning curves, examples with attention, a map, how to repeat it."""
    from sixjars.reports.report import report as report_run

    progress = ConsoleProgress(notes())
    written = report_run(
        run,
        data=data or None,
        out=out,
        device=device,
        reporter=progress,
        baselines=not no_baselines,
        allow=allow or [],
    )
    note(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)")
