"""The inputs of `predict` and `inspect`: where they come from, and notes about those that are wrong."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, final

from sixjars.cli.options import note
from sixjars.cli.streaming import Throughput
from sixjars.data.text.files import is_gzipped
from sixjars.runs.prediction.input_warnings import (
    MUCH,
    InputCounts,
    cut_in_words,
    unknown_in_words,
)
from sixjars.runs.prediction.inputs import (
    input_of_parts,
    input_of_row,
    object_named,
    object_of,
    raw_lines,
    text_of,
)
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import SPECIAL, STOP

if TYPE_CHECKING:
    from sixjars.data.tables.table_file import TableFile
    from sixjars.runs.prediction.inputs import Item
    from sixjars.runs.prediction.prediction import Prediction
    from sixjars.runs.prediction.predictor import Predictor


_AT_ONCE = 1 << 16  # bytes of a read


def at_terminal() -> bool:
    """Whether standard input is a terminal."""
    return sys.stdin is not None and sys.stdin.isatty()


@final
@dataclass(frozen=True)
class CommandInputs:
    """The inputs of a command: texts with questions, or a file; else standard input."""

    texts: list[str]
    questions: list[str]
    file: Path | None

    @property
    def typed(self) -> bool:
        """Whether somebody types them at a terminal."""
        return not self.texts and self.file is None and at_terminal()

    def table(self, predictor: "Predictor", *, with_output: bool = False) -> "TableFile | None":
        """A file with the columns of the inputs, or of the output too; nothing for other inputs."""
        if self.file is None or not self.file.is_file():
            return None
        from sixjars.data.tables import table_file  # formats of tables load only for one

        columns = predictor.all_columns if with_output else predictor.columns
        return table_file(self.file, columns, predictor.recipe.data)

    def lines(self, predictor: "Predictor", table: "TableFile | None") -> "InputLines | None":
        """The lines of the file or of standard input; nothing where there are texts or a table."""
        return None if self.texts or table is not None else InputLines(self.file, predictor)

    def items(
        self, predictor: "Predictor", table: "TableFile | None", lines: "InputLines | None"
    ) -> "Iterator[Item]":
        """All inputs: of the table, of the lines, or else the texts."""
        if table is not None:
            return _rows_of(predictor, table)
        given = lines or _on_one_line(predictor, self.texts, self.questions)
        return _texts_of(predictor, iter(given), self.questions)


def _texts_of(
    predictor: "Predictor", given: Iterator[str], questions: Sequence[str]
) -> "Iterator[Item]":
    """Yield inputs one after the other, every question with every image."""
    first, *others = predictor.inputs
    question_field = others[0] if others and predictor.inputs[first].is_media else None
    if questions and question_field is None:
        raise DataError(
            f"--question is for images that are asked about; {predictor.recipe.task} takes none."
        )
    for text in given:
        named = object_named(predictor, text)
        if named is not None:
            yield named, None
            continue
        if not questions and question_field is not None:
            raise DataError(f"a {question_field} is needed; ask it with --question.")
        if others and not questions:
            yield input_of_parts(predictor, text), None
            continue
        for value in predictor.inputs[first].arguments(text):
            if question_field is None:
                yield value, None
            else:
                pairs = ({first: value, question_field: question} for question in questions)
                yield from ((pair, None) for pair in pairs)


def _on_one_line(
    predictor: "Predictor", texts: Sequence[str], questions: Sequence[str]
) -> list[str]:
    """Arguments as lines: the texts of one input stand after each other, with a tab between."""
    count = len(predictor.inputs)
    whole = any("\t" in text or object_named(predictor, text) is not None for text in texts)
    media = any(field.is_media for field in predictor.inputs.values())
    if count < 2 or questions or whole or media:
        return list(texts)
    if len(texts) % count:
        names = " and ".join(predictor.inputs)
        raise DataError(
            f"{predictor.recipe.task} reads {names}: give {count} texts for each input, "
            f"not {len(texts)}; or an object each: {object_of(predictor)}."
        )
    return ["\t".join(texts[at : at + count]) for at in range(0, len(texts), count)]


def note_file_names(predictor: "Predictor", texts: Sequence[str]) -> None:
    """A note where a text is the name of a file, whose content may be meant."""
    if any(field.is_media for field in predictor.inputs.values()):
        return
    # `isfile` is false, not an error, for a text that is too long
    named = next((text for text in texts if os.path.isfile(text)), None)
    if named is not None:
        note(f"note: {named} is the name of a file; to read it, say --input {named}.")


@final
class InputLines:
    """Lines of a file or of stdin, one input each; it counts the bytes read, for progress."""

    def __init__(self, file: Path | None, predictor: "Predictor") -> None:
        self.file = file
        self.reads = bool(predictor.fields.inputs)
        self.read = 0
        if file is not None and not file.is_file():
            problem = "is a folder." if file.is_dir() else "does not exist."
            raise DataError(f"input file {file} {problem}")
        self.size = None if file is None or is_gzipped(file) else file.stat().st_size

    def __iter__(self) -> Iterator[str]:
        """Yield the lines; a language model without any begins from nothing."""
        number = 0
        if self.file is not None or (sys.stdin is not None and (self.reads or not at_terminal())):
            lines = raw_lines(self.file) if self.file else _as_they_come(sys.stdin.buffer)
            for number, line in enumerate(lines, start=1):
                self.read += len(line)
                yield text_of(line, number)
        if not number and self.reads:
            name = self.file or "standard input"
            raise DataError(
                f"{name} has no text; give texts, --input FILE or lines on standard input."
            )
        if not number:
            yield ""


def _as_they_come(stream: BinaryIO) -> Iterator[bytes]:
    """The lines of stdin, past its buffer, in which a waiting thread keeps Python from ending."""
    source = getattr(stream, "raw", stream)
    rest = b""
    while block := source.read(_AT_ONCE):
        *lines, rest = (rest + block).split(b"\n")
        yield from (line + b"\n" for line in lines)
    if rest:
        yield rest


def _rows_of(predictor: "Predictor", file: "TableFile") -> "Iterator[Item]":
    row = None
    for row in file.rows():
        yield input_of_row(predictor, file.path, row)
    if row is None:
        raise DataError(f"{file.path} has no rows.")


MOST_NOTES = 3
"""Notes about single inputs that were cut; further ones are only counted."""


def note_unknown(share: float | None) -> None:
    """A note where so many tokens of the inputs are unknown that outputs may be poor."""
    if share and share > MUCH:
        note(f"note: {unknown_in_words(share)}")


def note_skipped(counts: InputCounts, empty: str = "", *, what: str = "inputs") -> None:
    """A note where inputs could not be used; `empty` are the answers left empty, if any."""
    if counts.skipped.count:
        note(f"note: {counts.skipped.in_words(counts.rows, empty, what=what)}")


def note_table(table: "TableFile | None") -> None:
    """Notes about the rows of a file with columns, after they were read."""
    for sentence in table.notes() if table is not None else []:
        note(f"note: {sentence}")


def note_unknown_target(tokens: Sequence[str]) -> None:
    """A note where tokens of an output that was given are unknown."""
    known = [token for token in tokens if token != SPECIAL[STOP]]
    unknown = [token for token in known if token.startswith("<unk")]
    if unknown:
        are = "is" if len(unknown) == 1 else "are"
        count = f"{len(unknown)} of the {len(known)} output tokens"
        note(f"note: {count} {are} unknown to the run: {', '.join(unknown)}.")


@final
@dataclass
class InputNotes:
    """Faults of inputs on stderr: the first ones that were cut, and the count of those skipped.

    Where inputs are `typed`, each fault is printed at once.
    """

    pace: Throughput
    typed: bool = False
    table: "TableFile | None" = None
    counts: InputCounts = field(default_factory=InputCounts)

    def take(self, rows: "Sequence[Sequence[Prediction]]") -> None:
        """Count the faults of one portion."""
        self.pace.went_on(len(rows))
        cut = self.counts.cut
        for number, (best, *_) in enumerate(rows, start=self.counts.rows + 1):
            cut += best.truncated
            if best.error is not None and self.typed:
                note(f"note: {best.error}")
            elif best.truncated and (cut <= MOST_NOTES or self.typed):
                self.pace.clear()
                note(f"note: {cut_in_words(f'input {number}')}")
            elif best.truncated and cut == MOST_NOTES + 1:
                note("note: further notes about single inputs are left out.")
        self.counts += InputCounts.of(rows)

    def end(self, *, strict: bool) -> bool:
        """Print the numbers; return whether no input could be used, or if `strict`, not all.

        A text that a delimiter has cut cannot be used either. Where all tokens are unknown, another
        column of the table may be meant.
        """
        self.pace.clear()
        counts, table = self.counts, self.table
        if counts.cut > MOST_NOTES:
            note(f"note: {counts.cut:,} of {counts.rows:,} inputs were cut.")
        note_table(table)
        note_unknown(counts.unknown_share)
        if counts.unknown_share == 1 and table is not None and (other := table.other_columns()):
            note(f"note: {other}")
        note_skipped(counts, "answers")
        was_cut = strict and table is not None and table.cut > 0
        return was_cut or counts.are_failure(strict=strict)
