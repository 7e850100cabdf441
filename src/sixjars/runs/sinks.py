"""Where answers go: lines, or a file with columns like the one that was read."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, final

from sixjars.data.text.files import ending_of
from sixjars_runtime.errors import DataError

if TYPE_CHECKING:
    from sixjars.runs.answer_files import Answers, Cell
    from sixjars.runs.given import Item
    from sixjars.runs.input_file import InputFile
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction


class Sink(ABC):
    """Takes portion after portion; what it took is on disk. Nothing is opened before the first."""

    @abstractmethod
    def take(self, items: "Sequence[Item]", found: "Sequence[Sequence[Prediction]]") -> None:
        """Write one portion."""

    @abstractmethod
    def close(self) -> None:
        """After the last portion, or where work is stopped."""


@final
class LineSink(Sink):
    """A line for each output; an input that cannot be used has as many empty ones, or in JSON one with its error."""

    def __init__(
        self, predictor: "Predictor", file: Path | None, *, nbest: int, as_json: bool
    ) -> None:
        self.predictor = predictor
        self.file = file
        self.nbest = nbest
        self.as_json = as_json
        self.stream: IO[str] | None = None if file else sys.stdout

    def take(self, items: "Sequence[Item]", found: "Sequence[Sequence[Prediction]]") -> None:
        """In one write."""
        if self.stream is None:
            assert self.file is not None
            self.stream = self.file.open("w", encoding="utf-8", errors="backslashreplace")
        times = [
            self.nbest if some[0].error is not None and not self.as_json else 1 for some in found
        ]
        lines = [
            self._line(one)
            for some, count in zip(found, times, strict=True)
            for one in [*some] * count
        ]
        self.stream.write("".join(f"{line}\n" for line in lines))
        self.stream.flush()

    def _line(self, prediction: "Prediction") -> str:
        """A text alone; for a file its name before it; for a label its probability behind it."""
        given = prediction.inputs
        if self.as_json:
            inputs = next(iter(given.values()), "") if len(given) < 2 else dict(given)
            return json.dumps({"input": inputs, **prediction.to_json()}, ensure_ascii=False)
        media = any(field.is_media for field in self.predictor.inputs.values())
        cells = [*given.values(), prediction.text] if media else [prediction.text]
        label = not self.predictor.network.decoder.searches and prediction.error is None
        return "\t".join([*cells, f"{prediction.probability:.3f}"] if label else cells)

    def close(self) -> None:
        """Stdout stays open."""
        if self.file is not None and self.stream is not None:
            self.stream.close()


def output_column(predictor: "Predictor") -> str:
    """What the user calls the output: the column that the run was trained on, or the field where that has no name."""
    data, name = predictor.recipe.data, predictor.fields.output.name
    own = data.fields[name].column
    named = data.sample is None and isinstance(own, str) and "." not in own
    return str(own) if named else name


@final
class TableSink(Sink):
    """The rows that were read, each with its answers: a column for each output, and for labels their probability."""

    def __init__(
        self,
        predictor: "Predictor",
        source: "InputFile",
        file: Path,
        *,
        nbest: int,
        note: Callable[[str], object] = str,
    ) -> None:
        self.note = note
        self.source = source
        self.file = file
        self.nbest = nbest
        self.label = not predictor.network.decoder.searches
        self.name = output_column(predictor)
        self.answers: Answers | None = None
        wanted, own = source.answer_ending, ending_of(source.path)
        if ending_of(file) != wanted:
            why = (
                f"as {source.path} does, for it"
                if own == wanted
                else f"which answers to {own} files are kept as; it"
            )
            raise DataError(
                f"--output {file} should end in {wanted}, {why} gets the same columns and the answers; or in .txt, for "
                "one answer a line."
            )

    def take(self, items: "Sequence[Item]", found: "Sequence[Sequence[Prediction]]") -> None:
        """In one write, so that the file has whole rows."""
        if self.answers is None:
            self.answers = self.source.answers(self.file, self._columns())
        rows = [row for _, row in items if row is not None]
        self.answers.write(rows, [self._cells(some) for some in found])

    def _columns(self) -> dict[str, type]:
        """The user's name for the output, with a number behind it from the second on; never one that is taken.

        Answers are texts, probabilities are numbers.
        """
        names: dict[str, type] = {}
        for rank in ["", *(f"_{rank}" for rank in range(2, self.nbest + 1))]:
            names |= {f"{self.name}{rank}": str} | (
                {f"probability{rank}": float} if self.label else {}
            )
        taken = [name for name in names if name in self.source.names]
        if not taken:
            return names
        self.note(
            f"note: {self.source.path} has a column {taken[0]!r} already; the new columns begin with 'predicted_'."
        )
        return {f"predicted_{name}": kind for name, kind in names.items()}

    def _cells(self, found: "Sequence[Prediction]") -> "list[Cell]":
        cells: list[Cell] = []
        for rank in range(self.nbest):
            one = found[rank] if rank < len(found) else None
            good = one is not None and one.error is None
            cells.append(one.text if one is not None else "")
            cells += (
                [round(one.probability, 6) if one is not None and good else None]
                if self.label
                else []
            )
        return cells

    def close(self) -> None:
        """With what ends such a file."""
        if self.answers is not None:
            self.answers.close()
