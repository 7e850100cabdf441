"""The kept tables: every measured figure of the documentation, with what it comes from.

python benchmarks/kept.py            check all tables, and list them
python benchmarks/kept.py multi30k   print the tables of a topic as the pages have them

A topic is a file, benchmarks/results/TOPIC.yaml. Whoever repeats a benchmark changes the row there and runs
`make docs`, which writes the tables of the pages; tests/house/test_numbers.py names each sentence that has another
figure. `TOPIC/TABLE` names a table, `TOPIC/TABLE/ROW` a row.
"""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, final

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

RESULTS = Path(__file__).parent / "results"
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
FIGURE_CELL = re.compile(r"[*(-]*\d|–?$")
"""A cell that is aligned to the right: a number and what follows it, or nothing."""
NONE = "–"
SAME = "the scored set: optimistic"
"""What stands in the column of the split that chose, where it is the one that was scored."""
SHOWN = ("seeds", "machine", "date")
"""Facts under a table, or, where its rows differ in them, in a column."""


class Facts(BaseModel):
    """Where a figure comes from. A topic gives what its tables share, and a table what its rows share."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: str | None = None
    """What prints the figure; capitals stand for files and runs."""
    source: str | None = None
    """In place of a command: where a figure of others was published."""
    machine: str | None = None
    """Device, and what else that matters: threads, other work, torch."""
    date: Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")] | None = None
    """When it was measured, or else when it was written down."""
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")] | None = None
    """The commit that it was measured with, or else the one that wrote it down."""
    seeds: str | None = None
    chosen: str | None = None
    """The split by which the checkpoint was chosen, and the settings, if that was another one."""
    scored: str | None = None
    """The split that the figure is of."""
    note: str | None = None
    """What else one must know; it is printed under the table."""


@final
class Row(Facts):
    """A line of a table."""

    cells: tuple[str, ...]


def _row(value: Any) -> Any:
    return {"cells": value} if isinstance(value, list) else value


@final
class Table(Facts):
    """Rows with the same columns. The first columns, as many as `names`, name a row."""

    kind: Literal["score", "cost"]
    """A score is of a split and says which one chose; a cost is of a machine."""
    columns: tuple[str, ...]
    names: Annotated[int, Field(ge=1)] = 1
    rows: tuple[Annotated[Row, BeforeValidator(_row)], ...]

    def name(self, row: Row) -> str:
        """What a reference calls a row: the text of its first cells, without marks and links."""
        text = " ".join(cell for cell in row.cells[: self.names] if cell)
        return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*", "")


@final
class Topic(Facts):
    """A file of kept tables."""

    tables: dict[str, Table]

    def facts(self, table: Table, row: Row) -> Facts:
        """Those of a row, with what its table and its topic say where it is silent."""
        # What others published has not our command, and was not on our machine.
        levels = (self, table, row) if row.source is None else (row,)
        facts: dict[str, Any] = {}
        for level in levels:
            facts |= level.model_dump(include=set(Facts.model_fields), exclude_none=True)
        return Facts.model_validate(facts)

    @model_validator(mode="after")
    def _whole(self) -> "Topic":
        faults = [
            f"{name}: {fault}"
            for name, table in self.tables.items()
            for fault in self._faults(table)
        ]
        if faults:
            raise ValueError("; ".join(faults))
        return self

    def _faults(self, table: Table) -> Iterator[str]:
        names = [table.name(row) for row in table.rows]
        yield from (
            f"{name!r} names two rows"
            for name in sorted({name for name in names if names.count(name) > 1})
        )
        for name, row in zip(names, table.rows, strict=True):
            if len(row.cells) != len(table.columns):
                yield f"{name!r} has {len(row.cells)} cells, but there are {len(table.columns)} columns"
            facts = self.facts(table, row)
            if facts.source is not None:
                continue
            needed = [
                "command",
                "machine",
                *(["seeds", "chosen", "scored"] if table.kind == "score" else []),
            ]
            missing = [fact for fact in needed if getattr(facts, fact) is None]
            if missing:
                yield f"{name!r} does not say its {', '.join(missing)}"


def read(text: str) -> Topic:
    """A topic from YAML. Every value stays the text that was written: 23.0 is not 23."""
    return Topic.model_validate(yaml.load(text, Loader=yaml.BaseLoader))


def topics(folder: Path = RESULTS) -> dict[str, Topic]:
    """All of them, by name."""
    return {
        path.stem: read(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.yaml"))
    }


def figures(text: str) -> set[str]:
    """The numbers of a text, without the commas of thousands.

    >>> sorted(figures("**35.2** (33.6–36.8) of 1,014"))
    ['1014', '33.6', '35.2', '36.8']
    """
    return {number.replace(",", "") for number in NUMBER.findall(text)}


def figures_of(kept: dict[str, Topic], reference: str) -> set[str]:
    """The numbers of a table, or of one row of it, and of what is noted there; KeyError where there is none."""
    topic_name, table_name, *row_name = reference.split("/", maxsplit=2)
    topic = kept[topic_name]
    table = topic.tables[table_name]
    rows = [row for row in table.rows if not row_name or table.name(row) == row_name[0]]
    if not rows:
        raise KeyError(reference)
    texts = [text for row in rows for text in (*row.cells, topic.facts(table, row).note or "")]
    texts += [] if row_name else table.columns
    return set().union(*(figures(text) for text in texts))


def markdown(topic: Topic, table: Table) -> str:
    """The table as a page has it: facts that all rows share stand below, the others in columns."""
    facts = [topic.facts(table, row) for row in table.rows]
    ours = [fact for fact in facts if fact.source is None]
    splits = [_splits(fact) for fact in facts] if table.kind == "score" else [{}]
    split_columns = [name for name in splits[0] if len({split[name] for split in splits}) > 1]
    differing = [name for name in SHOWN if len({getattr(fact, name) for fact in ours}) > 1]
    head = [*table.columns, *split_columns, *differing]
    columns = zip(*(row.cells for row in table.rows), strict=True)
    numeric = [
        at >= table.names and all(map(FIGURE_CELL.match, cells)) for at, cells in enumerate(columns)
    ]
    right = [*numeric, *[False] * (len(head) - len(numeric))]
    lines = [head, ["---:" if is_number else "---" for is_number in right]]
    for row, fact in zip(table.rows, facts, strict=True):
        row_splits = [_splits(fact)[name] for name in split_columns]
        lines.append(
            [*row.cells, *row_splits, *(getattr(fact, name) or NONE for name in differing)]
        )
    body = "".join(
        f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in line)}|\n" for line in lines
    )
    shared = {name: split for name, split in splits[0].items() if name not in split_columns}
    below = [_below(ours, differing), _splits_in_words(shared)]
    notes = [note for note in dict.fromkeys(fact.note for fact in ours) if note]
    return f"{body}\n{' '.join(text for text in [*below, *notes] if text)}\n"


def _splits(fact: Facts) -> dict[str, str]:
    """The split that chose, and the one that was scored."""
    is_same = fact.chosen is not None and fact.chosen == fact.scored
    return {
        "chosen by": SAME if is_same else fact.chosen or NONE,
        "scored": fact.scored or NONE,
    }


def _splits_in_words(shared: dict[str, str]) -> str:
    """Those of the two that all rows share."""
    known = {name: split for name, split in shared.items() if split != NONE}
    if known.get("chosen by") == SAME and "scored" in known:
        return f"Chosen by and scored on {known['scored']}: optimistic."
    verbs = {"chosen by": "Chosen by", "scored": "Scored on"}
    return " ".join(f"{verbs[name]} {split}." for name, split in known.items())


def _below(ours: list[Facts], differing: list[str]) -> str:
    """Seeds, machine, date and command, where all rows share them."""

    def shared(name: str) -> str:
        values = {getattr(fact, name) for fact in ours} - {None}
        return values.pop() if len(values) == 1 and name not in differing else ""

    seeds = shared("seeds")
    seed_text = f"seed{'s' if ',' in seeds else ''} {seeds}" if seeds and seeds != NONE else ""
    date = " ".join(
        text
        for text in (shared("date"), f"({shared('commit')})" if shared("commit") else "")
        if text
    )
    command = shared(
        "command"
    )  # those of `sixjars` stand in blocks of the page, where other tests check them
    command = f"`{command}`" if command and not command.startswith("sixjars ") else ""
    sentence = "; ".join(text for text in (seed_text, shared("machine"), date, command) if text)
    return f"{sentence[:1].upper()}{sentence[1:]}." if sentence else ""


def main() -> None:
    """Check, and list or print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("topic", nargs="?", help="print the tables of this topic")
    asked = parser.parse_args().topic
    for name, topic in topics().items():
        for key, table in topic.tables.items():
            if asked == name:
                print(f"{name}/{key}\n\n{markdown(topic, table)}")
            elif asked is None:
                print(f"{name}/{key}: {len(table.rows)} rows")


if __name__ == "__main__":
    main()
