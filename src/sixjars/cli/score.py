"""Commands that measure a run: `evaluate`, `score`, `report`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from sixjars.cli import options
from sixjars.cli.inputs import note_unknown
from sixjars.cli.options import (
    TABLES,
    argument,
    check_output,
    note,
    notes,
    noting,
    option,
    print_json,
    results,
)
from sixjars.progress import ConsoleProgress
from sixjars_runtime.errors import DataError


def evaluate(
    run: options.Run,
    data: options.Data = None,
    metrics: Annotated[str | None, option(help="Names with commas between.")] = None,
    output: Annotated[
        Path | None,
        option(help="Write a JSON line for each example: input, references, output, scores."),
    ] = None,
    *,
    as_json: options.Json = False,
    no_baselines: options.NoBaselines = False,
    device: options.Device = "auto",
    allow: options.Allow = None,
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
    evaluation = evaluate_run(
        run,
        data=data or None,
        metrics=named,
        device=device,
        reporter=ConsoleProgress(notes()),
        baselines=not no_baselines,
        allow=allow or [],
    )
    if output is not None:
        with output.open("w", encoding="utf-8") as file:
            for example in evaluation.each():
                file.write(json.dumps(example, ensure_ascii=False) + "\n")
    if as_json:
        print_json(evaluation.to_json())
        return
    show_scores(
        results(),
        evaluation.scores,
        examples=evaluation.examples,
        where=evaluation.where,
        skipped=evaluation.skipped,
    )
    show_baselines(results(), evaluation.baselines, evaluation.beside)
    note_unknown(evaluation.unknown)
    if evaluation.classes:
        show_classes(results(), evaluation.classes, evaluation.confusion)


def score(
    run: options.Run,
    data: Annotated[
        Path, argument(metavar="FILE", help="Inputs and outputs, in the run's own columns.")
    ],
    *,
    as_json: options.Json = False,
    device: options.Device = "auto",
    allow: options.Allow = None,
) -> None:
    """Print the log probability of each output of a file, one a line; with --json also that of each
    token.
    """  # noqa: D205 - one sentence of --help
    from sixjars.runs.prediction.teacher_forcing import score_outputs

    with noting():
        outputs = score_outputs(run, data, device=device, allow=allow or [])
    for output in outputs:
        if as_json:
            typer.echo(json.dumps(output.to_json(), ensure_ascii=False))
        else:
            typer.echo(f"{output.log_probability:.6f}")


def report(
    run: options.Run,
    data: options.Data = None,
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("report.html"),
    *,
    no_baselines: options.NoBaselines = False,
    device: options.Device = "auto",
    allow: options.Allow = None,
) -> None:
    """Write one HTML file about a run: scores, learning curves, examples with attention, a map, how
    to repeat it.
    """  # noqa: D205 - one sentence of --help
    from sixjars.reports.report import report as report_run

    written = report_run(
        run,
        data=data or None,
        out=out,
        device=device,
        reporter=ConsoleProgress(notes()),
        baselines=not no_baselines,
        allow=allow or [],
    )
    note(f"wrote {written} ({written.stat().st_size / 1e6:.1f} MB)")
