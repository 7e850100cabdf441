"""Rows that a field cannot use."""

from collections.abc import Mapping
from dataclasses import replace

import pyarrow

from sixjars.data.storage.cache import LINE, Examples
from sixjars.errors import DataError


def without_bad(examples: Examples, faults: Mapping[int, str], *, skip: bool) -> Examples:
    """The good rows; the first bad one is an error unless bad rows are skipped. `faults` has a sentence by row."""
    if not faults:
        return examples
    count, first = examples.table.num_rows, min(faults)
    if not skip:
        raise DataError(f"{examples.where}, {examples.unit} {examples.table.column(LINE)[first]}: {faults[first]}")
    if len(faults) == count:
        raise DataError(f"{examples.where}: no row is left of {count}; all were bad: {faults[first]}")
    table = examples.table.filter(pyarrow.array([row not in faults for row in range(count)]))
    return replace(examples, table=table, skipped=examples.skipped + len(faults))
