"""Word lists are data: one file in `words/` for each sample that has some, read when it is first needed."""

from functools import cached_property
from importlib.resources import files
from typing import final

Lists = dict[str, tuple[str, ...]]


@final
class Lexicon:
    """The word lists of one sample by name.

    In the file a text on one line is a list of words, a block of lines is a list of lines, and a table has such lists
    by name.

    >>> Lexicon("dialog")["sizes"], Lexicon("dialog").table("kept")["by the door"]
    (('big', 'small', 'old', 'new'), ('umbrella', 'bag', 'key'))
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: str) -> tuple[str, ...]:
        return self.tables[""][key]

    def table(self, key: str) -> Lists:
        """The lists of one table."""
        return self.tables[key]

    @cached_property
    def tables(self) -> dict[str, Lists]:
        """All tables; the one without a name has the lists that are in no table."""
        import yaml

        text = (files("sixjars.samples") / "words" / f"{self.name}.yaml").read_text(encoding="utf-8")
        # Everything is text to the base loader; to the others `no` and `on` are truth values.
        entries = yaml.load(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        plain = {key: value for key, value in entries.items() if isinstance(value, str)}
        tables = {"": plain} | {key: value for key, value in entries.items() if key not in plain}
        return {name: {key: _listed(value) for key, value in table.items()} for name, table in tables.items()}


def _listed(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines() if "\n" in text else text.split())
