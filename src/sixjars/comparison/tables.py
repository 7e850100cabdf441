"""A comparison as a file: a table as Markdown, CSV or JSON, the score by length as an image."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.comparison.result import BETTER, SIGNIFICANT, WORSE, Comparison, DifferingExample
from sixjars.drawing.matplotlib.by_length import draw_by_length
from sixjars.evaluation.baselines.result import grid_of
from sixjars.runs.output_file import check_new, check_writable
from sixjars_runtime.errors import DataError

PICTURES: Final = (".png", ".svg", ".pdf")
RUNS: Final = Path("runs/compare")
"""The folder of the runs of recipes, unless another one is named."""


@final
@dataclass(frozen=True)
class ComparisonOutput:
    """The place of a comparison: a folder for all of it, or one file."""

    path: Path

    @property
    def is_file(self) -> bool:
        """Whether the place is one file, by its ending."""
        return self.path.suffix.lower() in {*PICTURES, *TABLES}

    @property
    def runs(self) -> Path:
        """The folder of the runs of recipes."""
        return RUNS if self.is_file else self.path

    @property
    def picture(self) -> Path | None:
        """The file of the picture, if one is wanted."""
        if not self.is_file:
            return self.path / "by_length.png"
        return self.path if self.path.suffix.lower() in PICTURES else None

    @property
    def table(self) -> Path | None:
        """The file of the table, if one is wanted."""
        if not self.is_file:
            return self.path / "comparison.md"
        return self.path if self.path.suffix.lower() in TABLES else None

    def check(self) -> None:
        """Refuse a place that cannot be written, before any work; nothing is made yet."""
        if not self.is_file and self.path.suffix[1:].isalpha():
            endings = f"a table is {', '.join(TABLES)}, a picture {', '.join(PICTURES)}"
            raise DataError(
                f"{self.path} is no file that a comparison can be: {endings}; "
                "a name without an ending is a folder."
            )
        if self.path.is_file() and not self.is_file:
            remedy = f"name a folder, or a file that ends in {', '.join(TABLES)}."
            raise DataError(f"{self.path} is a file; {remedy}")
        if self.table == self.path:
            check_new(self.path)
        check_writable(self.path if self.is_file else self.path / "comparison.md", str(self.path))

    def write(self, comparison: Comparison) -> None:
        """Write the table, the picture, or both."""
        picture = comparison.picture
        if self.picture == self.path and picture is None:
            reason = "nothing has a length here; write the table to a FILE.md instead."
            raise DataError(f"{self.path} would be empty: {reason}")
        if picture is not None:
            curves = {run.name: run.buckets for run in comparison.contenders}
            metric, title, by = comparison.metric, comparison.title, comparison.by
            draw_by_length(picture, curves, metric=metric, title=title, by=by)
        if self.table is not None:
            self.table.parent.mkdir(parents=True, exist_ok=True)
            text = TABLES[self.table.suffix.lower()](comparison)
            self.table.write_text(text, encoding="utf-8")


def _markdown(comparison: Comparison) -> str:
    """The table, the significant differences, the score by length, and examples."""
    parts = [
        f"# Comparison of {', '.join(run.name for run in comparison.contenders)}\n",
        f"{comparison.title}.\n",
        _table(*comparison.table()),
        f"{legend()}\n",
        "".join(f"- {sentence}\n" for sentence in comparison.findings()),
    ]
    if comparison.baselines:
        baselines = _table(*grid_of(comparison.baselines)), f"{comparison.beside()}\n"
        parts += ["## Without a network, on the same examples\n", *baselines]
    if comparison.by:
        parts += [
            f"## {comparison.metric} by the {comparison.by}\n",
            _table(*comparison.by_length()),
            "".join(f"{note}\n\n" for note in comparison.notes()).replace("*", "\\*"),
        ]
    parts += ["## Examples where they differ most\n"] if comparison.differing else []
    for example in comparison.differing:
        parts.append("".join(f"    {line}\n" for line in example_lines(example, comparison)))
    return "\n".join(part for part in parts if part.strip())


def legend() -> str:
    """The meaning of the marks in the table."""
    marks = f"{BETTER} better, {WORSE} worse than the first run (p < {SIGNIFICANT})."
    return f"In brackets: 95 % bootstrap interval. {marks}"


def example_lines(example: DifferingExample, comparison: Comparison) -> Iterator[str]:
    """The lines of an example that two runs differ on."""
    first = comparison.contenders[0]
    metric = comparison.metric
    directions = [each.score.better for each in first.scores if each.score.name == metric]
    is_better = (example.difference > 0) == ("higher" in directions)
    notes = "better" if is_better else "worse"
    if example.times > 1:
        notes += f"; {example.times:,} examples have this input"
    yield f"{metric} {example.difference:+.3g} for {example.name} against {first.name} ({notes})"
    texts = {
        "input": example.input or None,
        "reference": " / ".join(example.references),
        first.name: example.first_output,
        example.name: example.output,
    }
    width = max(map(len, texts))
    for name, text in texts.items():
        if text is not None:
            yield f"  {name:{width}}  {' '.join(text.split())}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown; the first column is text, the others are numbers."""
    text = ""
    for line in (head, ["---", *["---:"] * (len(head) - 1)], *rows):
        cells = [cell.strip().replace("|", "\\|") for cell in line]
        text += f"| {' | '.join(cells)} |\n"
    return text


def _csv(comparison: Comparison) -> str:
    """A row for each run, every number in a column of its own."""
    rows: list[dict[str, Any]] = []
    for run in comparison.contenders:
        row: dict[str, Any] = {"run": run.name}
        for measured in run.scores:
            name, between, change = measured.score.name, measured.interval, measured.difference
            row[name] = measured.score.value
            row[f"{name} low"] = between and between.low
            row[f"{name} high"] = between and between.high
            row[f"{name} difference"] = change and change.value
            row[f"{name} p"] = change and change.p
        row["parameters"] = run.parameters
        if (cost := run.cost) is not None:
            row |= {"bytes": cost.size, "examples per second": cost.speed, "device": cost.device}
            row |= {"steps": cost.steps, "epochs": cost.epochs, "training seconds": cost.seconds}
            row["trained on"] = cost.trained_on or None
        rows.append(row)
    for baseline in comparison.baselines:
        rows.append({"run": baseline.name, "training seconds": baseline.seconds})
        rows[-1] |= {score.name: score.value for score in baseline.scores}
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(comparison: Comparison) -> str:
    return json.dumps(comparison.to_json(), ensure_ascii=False, indent=2) + "\n"


TABLES: Final = {".md": _markdown, ".csv": _csv, ".json": _json}
