"""The output of predictions: lines, or a file with columns like the one that was read."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, final

from sixjars.data.text.files import ending_of
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.data.tables.table_file import Cell, RowWriter, TableFile
    from sixjars.runs.prediction.inputs import Item
    from sixjars.runs.prediction.prediction import Prediction
    from sixjars.runs.prediction.predictor import Predictor


class PredictionOutput(ABC):
    """Takes portion after portion, which are then on disk; opens nothing before the first."""

    @abstractmethod
    def take(self, items: "Sequence[Item]", predictions: "Sequence[Sequence[Prediction]]") -> None:
        """Write one portion."""

    @abstractmethod
    def close(self) -> None:
        """Close what was opened, after the last portion or where work is stopped."""


@final
@dataclass
class PredictionLines(PredictionOutput):
    """A line for each output; an input with an error has empty lines, or in JSON its error."""

    predictor: "Predictor"
    file: Path | None
    nbest: int
    as_json: bool
    stream: IO[str] | None = None

    def take(self, items: "Sequence[Item]", predictions: "Sequence[Sequence[Prediction]]") -> None:
        """Write one portion at once."""
        if self.stream is None and self.file is not None:
            self.stream = self.file.open("w", encoding="utf-8", errors="backslashreplace")
        stream = self.stream or sys.stdout
        lines = []
        for outputs in predictions:
            is_empty = outputs[0].error is not None and not self.as_json
            lines += [self._line(output) for output in outputs] * (self.nbest if is_empty else 1)
        stream.write("".join(f"{line}\n" for line in lines))
        stream.flush()

    def _line(self, prediction: "Prediction") -> str:
        """The text; for a file its name before it; for a label its probability behind it."""
        values = prediction.inputs
        if self.as_json:
            inputs = next(iter(values.values()), "") if len(values) < 2 else dict(values)
            return json.dumps({"input": inputs, **prediction.to_json()}, ensure_ascii=False)
        media = any(field.is_media for field in self.predictor.inputs.values())
        cells = [*values.values(), prediction.text] if media else [prediction.text]
        label = not self.predictor.network.decoder.searches and prediction.error is None
        return "\t".join([*cells, f"{prediction.probability:.3f}"] if label else cells)

    def close(self) -> None:
        """Close a file; stdout stays open."""
        if self.stream is not None:
            self.stream.close()


def output_column(predictor: "Predictor") -> str:
    """The user's name of the output: its column in training, or the field's name without one."""
    data, name = predictor.recipe.data, predictor.fields.output.name
    column = data.fields[name].column
    is_name = data.sample is None and isinstance(column, str) and "." not in column
    return str(column) if is_name else name


@final
@dataclass
class PredictionTable(PredictionOutput):
    """The rows that were read, with a column for each output, and for labels their probability."""

    predictor: "Predictor"
    source: "TableFile"
    file: Path
    nbest: int
    note: Callable[[str], object]
    writer: "RowWriter | None" = None

    def __post_init__(self) -> None:
        source, file = self.source, self.file
        self.label = not self.predictor.network.decoder.searches
        ending, source_ending = source.output_ending, ending_of(source.path)
        if ending_of(file) != ending:
            why = f"as {source.path} does, for it"
            if source_ending != ending:
                why = f"which answers to {source_ending} files are kept as; it"
            raise DataError(
                f"--output {file} should end in {ending}, {why} gets the same columns and the "
                "answers; or in .txt, for one answer a line."
            )

    def take(self, items: "Sequence[Item]", predictions: "Sequence[Sequence[Prediction]]") -> None:
        """Write one portion at once, so that the file has whole rows."""
        if self.writer is None:
            self.writer = self.source.writer(self.file, self._columns())
        rows = [row for _, row in items if row is not None]
        self.writer.append(rows, [self._cells(outputs) for outputs in predictions])

    def _columns(self) -> dict[str, type]:
        """The user's name of the output, numbered from the second on; never one that is taken.

        Answers are texts, probabilities are numbers.
        """
        name = output_column(self.predictor)
        names: dict[str, type] = {}
        for rank in ["", *(f"_{rank}" for rank in range(2, self.nbest + 1))]:
            names[f"{name}{rank}"] = str
            if self.label:
                names[f"probability{rank}"] = float
        taken = [name for name in names if name in self.source.names]
        if not taken:
            return names
        has = f"note: {self.source.path} has a column {taken[0]!r} already"
        self.note(f"{has}; the new columns begin with 'predicted_'.")
        return {f"predicted_{name}": kind for name, kind in names.items()}

    def _cells(self, outputs: "Sequence[Prediction]") -> "list[Cell]":
        cells: list[Cell] = []
        for rank in range(self.nbest):
            output = outputs[rank] if rank < len(outputs) else None
            has_answer = output is not None and output.error is None
            cells.append(output.text if output is not None else "")
            if self.label:
                cells.append(round(output.probability, 6) if output and has_answer else None)
        return cells

    def close(self) -> None:
        """Write what ends such a file, and close it."""
        if self.writer is not None:
            self.writer.close()


def output_of(
    predictor: "Predictor",
    table: "TableFile | None",
    file: Path | None,
    *,
    nbest: int,
    as_json: bool,
    note: Callable[[str], object],
) -> PredictionOutput:
    """Rows with columns, of a file that has some and unless that is to be text; else lines."""
    if table is None or file is None or as_json or file.suffix.lower() == ".txt":
        return PredictionLines(predictor, file, nbest=nbest, as_json=as_json)
    return PredictionTable(predictor, table, file, nbest=nbest, note=note)
