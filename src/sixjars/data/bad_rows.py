"""Rows that a field cannot use."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

import numpy
import pyarrow

from sixjars.data.storage.cache import LINE, Examples
from sixjars_runtime.errors import DataError

SHOWN: Final = 5
"""Bad rows that a note names."""
LEAVE_FILES_OUT: Final = (
    " Mend or remove it, or train with data.on_bad_row=skip, which leaves such files out."
)
"""What to do about a file of a data set that cannot be used."""
LEAVE_ROWS_OUT: Final = (
    " Mend or remove it, or train with data.on_bad_row=skip, which leaves such rows out."
)
"""What to do about a row that cannot be used."""


@contextmanager
def remedied() -> Iterator[None]:
    """An error about a bad row says that such rows may be left out, unless it has other advice."""
    try:
        yield
    except DataError as error:
        if not error.skippable or "`data." in str(error):
            raise
        raise DataError(f"{error}{LEAVE_ROWS_OUT}") from None


def without_bad(
    examples: Examples, faults: Mapping[int, str], *, skip: bool, advice: str = ""
) -> Examples:
    """The good rows; the first bad one is an error unless bad rows are skipped. `faults` has a sentence by row.

    A note names the first that are skipped, each file once; the `advice` follows an error.
    """
    count, first = examples.table.num_rows, min(faults)
    lines = examples.table.column(LINE)
    if not skip:
        place = f", {examples.unit} {lines[first]}" if examples.unit else ""
        sentence = f"{examples.where}{place}: {faults[first]}{advice}"
        raise DataError(sentence) if advice else DataError.of_row(sentence)
    if len(faults) == count:
        raise DataError(
            f"{examples.where}: no row is left of {count}; all were bad: {faults[first]}"
        )
    good = numpy.ones(count, dtype=bool)
    good[list(faults)] = False
    table = examples.table.filter(pyarrow.array(good))
    once = {faults[row]: lines[row].as_py() for row in sorted(faults, reverse=True)}
    bad = sorted((line, sentence) for sentence, line in once.items())
    note = told(bad, len(faults), name=examples.where, unit=examples.unit, more=len(bad) > SHOWN)
    return replace(
        examples, table=table, skipped=examples.skipped + len(faults), notes=(*examples.notes, note)
    )


def told(bad: Sequence[tuple[int, str]], skipped: int, *, name: str, unit: str, more: bool) -> str:
    """Where the first bad rows are, and what is wrong with each, in one note; `more` are not named.

    >>> told([(3, "the line is empty.")], 1, name="a.tsv", unit="line", more=False)
    'a.tsv: 1 bad row was skipped. Line 3: the line is empty.'
    """
    named = [(f"{unit} {line}: " if unit else "") + sentence for line, sentence in bad[:SHOWN]]
    reasons = " ".join(one[:1].upper() + one[1:] for one in named)
    rows = f"{skipped:,} bad rows were" if skipped > 1 else "1 bad row was"
    return f"{name}: {rows} skipped.{f' The first {SHOWN}:' if more else ''} {reasons}"
