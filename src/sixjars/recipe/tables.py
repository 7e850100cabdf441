"""How the lines of a table become columns: keys of the data section."""

from typing import Literal

from pydantic import StrictBool, StrictStr

from sixjars.recipe.schema import Settings


class TableSettings(Settings):
    """How a `.csv`, `.tsv`, `.txt` or `.xlsx` file is written, where its ending does not say it."""

    delimiter: Literal[",", ";", "|", "\t"] | None = None
    """What stands between columns; when absent a comma in `.csv`, a tab in `.tsv`, and a line of `.txt` is one text."""
    quotes: StrictBool | None = None
    """Whether quotation marks may enclose a field; when absent, yes unless the delimiter is a tab."""
    header: StrictBool | None = None
    """Whether the first line has the names of the columns; when absent, yes if columns are given by name."""
    sheet: StrictStr | None = None
    """The sheet of an `.xlsx` workbook that has the rows; when absent the first one."""
