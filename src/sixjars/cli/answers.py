"""Where the answers of `predict` go: lines, or a file with columns like the one that was read."""

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, final

from sixjars.cli.options import note
from sixjars.cli.streaming import Pace
from sixjars.cli.unknown import UnknownTokens
from sixjars.errors import DataError

if TYPE_CHECKING:
    from sixjars.cli.inputs import Item
    from sixjars.runs.answer_files import Answers, Cell
    from sixjars.runs.files import InputFile
    from sixjars.runs.predict import Predictor
    from sixjars.runs.prediction import Prediction

MOST_NOTES = 20
"""Notes about single inputs; further ones are only counted."""


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
    """A line for each output; an input that cannot be used has as many empty ones."""

    def __init__(self, predictor: "Predictor", file: Path | None, *, nbest: int, as_json: bool) -> None:
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
        times = [self.nbest if some[0].error is not None else 1 for some in found]
        lines = [self._line(one) for some, count in zip(found, times, strict=True) for one in [*some] * count]
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

    def __init__(self, predictor: "Predictor", source: "InputFile", file: Path, *, nbest: int) -> None:
        self.source = source
        self.file = file
        self.nbest = nbest
        self.label = not predictor.network.decoder.searches
        self.name = output_column(predictor)
        self.answers: Answers | None = None
        wanted, own = source.answer_ending, Path(source.path.name.lower().removesuffix(".gz")).suffix
        if Path(file.name.lower().removesuffix(".gz")).suffix != wanted:
            why = f"as {source.path} does, for it" if own == wanted else f"which answers to {own} files are kept as; it"
            raise DataError(
                f"--output {file} should end in {wanted}, {why} gets the same columns and one more; or in .txt, for "
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
            names |= {f"{self.name}{rank}": str} | ({f"probability{rank}": float} if self.label else {})
        taken = [name for name in names if name in self.source.names]
        if not taken:
            return names
        note(f"note: {self.source.path} has a column {taken[0]!r} already; the new columns begin with 'predicted_'.")
        return {f"predicted_{name}": kind for name, kind in names.items()}

    def _cells(self, found: "Sequence[Prediction]") -> "list[Cell]":
        cells: list[Cell] = []
        for rank in range(self.nbest):
            one = found[rank] if rank < len(found) else None
            good = one is not None and one.error is None
            cells.append(one.text if one is not None else "")
            cells += [round(one.probability, 6) if one is not None and good else None] if self.label else []
        return cells

    def close(self) -> None:
        """With what ends such a file."""
        if self.answers is not None:
            self.answers.close()


@final
class Notes:
    """What is wrong with inputs, on stderr: the first ones each, all of them in numbers."""

    def __init__(self, pace: Pace) -> None:
        self.pace = pace
        self.done = self.failed = self.cut = self.told = 0
        self.unknown = UnknownTokens()

    def take(self, found: "Sequence[Sequence[Prediction]]") -> None:
        """One portion."""
        self.pace.went_on(len(found))
        for some in found:
            self.done += 1
            self.unknown.add(some[0])
            if some[0].error is not None:
                self.failed += 1
                self._tell(f"note: {some[0].error}")
            elif some[0].truncated:
                self.cut += 1
                self._tell(f"note: input {self.done} was cut, because it is longer than the run reads (max_length).")

    def _tell(self, sentence: str) -> None:
        self.told += 1
        if self.told <= MOST_NOTES:
            self.pace.clear()
            note(sentence)
        elif self.told == MOST_NOTES + 1:
            note("note: further notes about single inputs are left out.")

    def end(self) -> bool:
        """The numbers; whether an input could not be used."""
        self.pace.clear()
        if self.told > MOST_NOTES and self.cut:
            note(f"note: {self.cut} of {self.done} inputs were cut.")
        self.unknown.note()
        if self.failed:
            note(f"note: {self.failed} of {self.done} inputs could not be used; their lines are empty.")
        return self.failed > 0
