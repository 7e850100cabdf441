"""A comparison as a file: a table as Markdown, CSV or JSON, the score by length as a picture."""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

from sixjars.comparison.result import BETTER, SIGNIFICANT, WORSE, Comparison, Differing
from sixjars.drawing.page import draw_by_length
from sixjars.evaluation.baselines.result import grid_of
from sixjars.runs.output_file import check_new, check_writable
from sixjars_runtime.errors import DataError

PICTURES: Final = (".png", ".svg", ".pdf")
RUNS: Final = Path("runs/compare")
"""Where recipes are trained, unless another folder is named."""


@final
@dataclass(frozen=True)
class Target:
    """Where a comparison goes: a folder for all of it, or one file."""

    path: Path

    @property
    def is_file(self) -> bool:
        """Whether it is one file, by its ending."""
        return self.path.suffix.lower() in {*PICTURES, *TABLES}

    @property
    def runs(self) -> Path:
        """Where recipes are trained."""
        return RUNS if self.is_file else self.path

    @property
    def picture(self) -> Path | None:
        """Where the picture goes, if one is wanted."""
        if not self.is_file:
            return self.path / "by_length.png"
        return self.path if self.path.suffix.lower() in PICTURES else None

    @property
    def table(self) -> Path | None:
        """Where the table goes, if one is wanted."""
        if not self.is_file:
            return self.path / "comparison.md"
        return self.path if self.path.suffix.lower() in TABLES else None

    def check(self) -> None:
        """Refuse what cannot be written, before any work; nothing is made yet."""
        if not self.is_file and self.path.suffix[1:].isalpha():
            raise DataError(
                f"{self.path} is no file that a comparison can be: a table is {', '.join(TABLES)}, a picture "
                f"{', '.join(PICTURES)}; a name without an ending is a folder."
            )
        if self.path.is_file() and not self.is_file:
            raise DataError(
                f"{self.path} is a file; name a folder, or a file that ends in {', '.join(TABLES)}."
            )
        if self.table == self.path:
            check_new(self.path)
        check_writable(self.path if self.is_file else self.path / "comparison.md", str(self.path))

    def write(self, found: Comparison) -> None:
        """The table, the picture, or both."""
        if self.picture == self.path and found.picture is None:
            raise DataError(
                f"{self.path} would be empty: nothing has a length here; write the table to a FILE.md instead."
            )
        if found.picture is not None:
            curves = {one.name: one.buckets for one in found.contenders}
            draw_by_length(
                found.picture, curves, metric=found.metric, title=found.title, by=found.by
            )
        if self.table is not None:
            self.table.parent.mkdir(parents=True, exist_ok=True)
            self.table.write_text(TABLES[self.table.suffix.lower()](found), encoding="utf-8")


def _markdown(found: Comparison) -> str:
    """The table, what is significant, score by length, and examples."""
    parts = [
        f"# Comparison of {', '.join(one.name for one in found.contenders)}\n",
        f"{found.title}.\n",
        _table(*found.table()),
        f"{legend()}\n",
    ]
    parts.append("".join(f"- {sentence}\n" for sentence in found.findings()))
    if found.baselines:
        parts += [
            "## Without a network, on the same examples\n",
            _table(*grid_of(found.baselines)),
            f"{found.beside()}\n",
        ]
    if found.by:
        parts += [
            f"## {found.metric} by the {found.by}\n",
            _table(*found.by_length()),
            "".join(f"{note}\n\n" for note in found.notes()).replace("*", "\\*"),
        ]
    parts += ["## Examples where they differ most\n"] if found.differing else []
    for one in found.differing:
        parts.append("\n".join(f"    {line}" for line in example_lines(one, found)) + "\n")
    return "\n".join(part for part in parts if part.strip())


def legend() -> str:
    """What the marks in the table mean."""
    return f"In brackets: 95 % bootstrap interval. {BETTER} better, {WORSE} worse than the first run (p < {SIGNIFICANT})."


def example_lines(one: Differing, found: Comparison) -> Iterator[str]:
    """An example that two runs differ on."""
    first = found.contenders[0].name
    better = [
        measured.score.better
        for measured in found.contenders[0].scores
        if measured.score.name == found.metric
    ]
    how = "better" if (one.difference > 0) == ("higher" in better) else "worse"
    times = f"; {one.times:,} examples have this input" if one.times > 1 else ""
    yield f"{found.metric} {one.difference:+.3g} for {one.name} against {first} ({how}{times})"
    names = {
        "input": one.input or None,
        "reference": " / ".join(one.references),
        first: one.first_output,
        one.name: one.output,
    }
    width = max(map(len, names))
    yield from (
        f"  {name:{width}}  {' '.join((text or '').split())}"
        for name, text in names.items()
        if text is not None
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """As Markdown; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(
        f"| {' | '.join(cell.strip().replace('|', chr(92) + '|') for cell in line)} |\n"
        for line in lines
    )


def _csv(found: Comparison) -> str:
    """A row for each run, every number in a column of its own."""
    rows: list[dict[str, Any]] = []
    for one in found.contenders:
        row: dict[str, Any] = {"run": one.name}
        for measured in one.scores:
            name, between, change = measured.score.name, measured.interval, measured.difference
            row |= {name: measured.score.value, f"{name} low": between and between.low}
            row |= {
                f"{name} high": between and between.high,
                f"{name} difference": change and change.value,
            }
            row[f"{name} p"] = change and change.p
        row["parameters"] = one.parameters
        if (cost := one.cost) is not None:
            row |= {"bytes": cost.size, "examples per second": cost.speed, "device": cost.device}
            row |= {"steps": cost.steps, "epochs": cost.epochs, "training seconds": cost.seconds}
            row["trained on"] = cost.trained_on or None
        rows.append(row)
    for baseline in found.baselines:
        rows.append({"run": baseline.name, "training seconds": baseline.seconds})
        rows[-1] |= {score.name: score.value for score in baseline.scores}
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _json(found: Comparison) -> str:
    return json.dumps(found.to_json(), ensure_ascii=False, indent=2) + "\n"


TABLES: Final = {".md": _markdown, ".csv": _csv, ".json": _json}
