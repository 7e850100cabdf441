"""Rows that a field cannot use, and what is said about them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy

from sixjars.data.storage.cache import LINE, Examples
from sixjars_runtime.errors import DataError

SHOWN: Final = 5  # bad rows that a note names
_MEND: Final = " Mend or remove it, or train with data.on_bad_row=skip, which leaves such"
LEAVE_FILES_OUT: Final = f"{_MEND} files out."
LEAVE_ROWS_OUT: Final = f"{_MEND} rows out."


def remedied(error: DataError) -> DataError:
    """An error; of a bad row it says that these may be left out, unless there is other advice."""
    is_bad_row = error.skippable and "`data." not in str(error)
    return DataError(f"{error}{LEAVE_ROWS_OUT}") if is_bad_row else error


def without_bad(
    examples: Examples, faults: Mapping[int, str], *, skip: bool, advice: str = ""
) -> Examples:
    """The rows without one of the `faults`; the first is an error unless bad rows are skipped.

    A note names the first that are skipped, each file once; the `advice` follows an error.
    """
    count = examples.table.num_rows
    first = min(faults)
    lines = examples.table.column(LINE)
    if not skip:
        place = f", {examples.unit} {lines[first]}" if examples.unit else ""
        sentence = f"{examples.where}{place}: {faults[first]}{advice}"
        raise DataError(sentence) if advice else DataError.of_row(sentence)
    if len(faults) == count:
        raise DataError(
            f"{examples.where}: no row is left of {count}; all were bad: {faults[first]}"
        )
    import pyarrow

    good = numpy.ones(count, dtype=bool)
    good[list(faults)] = False
    table = examples.table.filter(pyarrow.array(good))
    once = {faults[row]: lines[row].as_py() for row in sorted(faults, reverse=True)}
    bad = sorted((line, sentence) for sentence, line in once.items())
    others = len(bad) > SHOWN
    note = note_on(bad, len(faults), name=examples.where, unit=examples.unit, others=others)
    skipped = examples.skipped + len(faults)
    return replace(examples, table=table, skipped=skipped, notes=(*examples.notes, note))


def note_on(
    bad: Sequence[tuple[int, str]], skipped: int, *, name: str, unit: str, others: bool
) -> str:
    """A note on the first bad rows, and what is wrong with each; `others` may follow.

    >>> note_on([(3, "the line is empty.")], 1, name="a.tsv", unit="line", others=False)
    'a.tsv: 1 bad row was skipped. Line 3: the line is empty.'
    """
    named = [(f"{unit} {line}: " if unit else "") + sentence for line, sentence in bad[:SHOWN]]
    reasons = " ".join(sentence[:1].upper() + sentence[1:] for sentence in named)
    rows = f"{skipped:,} bad rows were" if skipped > 1 else "1 bad row was"
    return f"{name}: {rows} skipped.{f' The first {SHOWN}:' if others else ''} {reasons}"
