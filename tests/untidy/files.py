"""Made-up files as people have them: each with its task, and the columns that a person would choose, or a question."""

import csv
import gzip
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sixjars.tasks import TASKS, own_name

Column = str | int
Table = Sequence[Sequence[object]]
ANIMALS = "cat dog horse bird cow sheep goat duck".split()
TIERE = "Katze Hund Pferd Vogel Kuh Schaf Ziege Ente".split()
PLACES = "house garden street field".split()
ORTE = "Haus Garten Straße Feld".split()


@dataclass(frozen=True)
class Case:
    """A file, and what `new` should make of it."""

    name: str
    content: bytes
    task: str
    chosen: Sequence[Column] = ()
    """The right columns, in the order of the fields; nothing where `new` should ask or refuse."""
    asks: tuple[str, ...] = ()
    """What the sentence that refuses must have in it."""
    keys: Mapping[str, object] = field(default_factory=dict)
    """Keys of the data section that the recipe must have."""
    options: tuple[str, ...] = ()
    """Of `new`."""
    says: tuple[str, ...] = ()
    """What `new` tells."""
    file: str = "data.csv"

    @property
    def columns(self) -> dict[str, Column]:
        """The right column of each field."""
        names = [slot.name for slot in TASKS[own_name(self.task)].slots]
        return dict(zip(names, self.chosen, strict=False))


def of(task: str) -> Callable[..., Case]:
    """Cases of a task, with the right columns behind their content, between commas."""

    def case(name: str, content: bytes, chosen: str = "", **more: Any) -> Case:
        columns = [int(key) if key.isdecimal() else key for key in chosen.split(",") if chosen]
        return Case(name, content, task, columns, **more)

    return case


mt, summed, doc = of("translation"), of("summarization"), of("document_classification")
lm, dialog, translit = of("language_model"), of("dialog"), of("transliteration")
entail, pair = of("entailment"), of("sentence_pair")


def english(n: int) -> str:
    """A sentence."""
    return f"the {ANIMALS[n % 8]} is in the {PLACES[n // 8 % 4]}" + (" today" if n % 3 else " now")


def german(n: int) -> str:
    """The same."""
    return f"{TIERE[n % 8]} ist {'heute' if n % 3 else 'jetzt'} in {ORTE[n // 8 % 4]}"


def french(n: int) -> str:
    """A third text."""
    return f"animal {n % 8} est dans le lieu {n // 8 % 4} " + ("encore" if n % 3 else "maintenant")


def review(n: int) -> str:
    """A text with a label."""
    good = ("good", "fine", "lovely")[n % 3] if n % 2 else ("bad", "dull", "awful")[n % 3]
    return f"this film about a {ANIMALS[n % 8]} was {good}, and the {PLACES[n // 8 % 4]} too"


def sentiment(n: int) -> str:
    """Its label."""
    return "pos" if n % 2 else "neg"


def article(n: int) -> str:
    """A longer text."""
    return f"On day {n} the {ANIMALS[n % 8]} left the {PLACES[n % 4]}. It was seen by many people there. Nobody knows why."


def headline(n: int) -> str:
    """A short one."""
    return f"{ANIMALS[n % 8]} leaves {PLACES[n % 4]}"


def rows(count: int, *makers: object) -> list[list[object]]:
    """A row for each number; what is no function is a constant."""
    return [[make(n) if callable(make) else make for make in makers] for n in range(count)]


def written(
    rows: Table, mark: str = ",", *, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n"
) -> bytes:
    """Rows as the csv module writes them."""
    out = io.StringIO()
    csv.writer(out, delimiter=mark, quoting=quoting, lineterminator=end).writerows(rows)  # type: ignore[arg-type]
    return out.getvalue().encode()


def tabs(table: Table) -> bytes:
    """A table with tabs and no quotes."""
    return "".join("\t".join(map(str, row)) + "\n" for row in table).encode()


def lines(names: str, table: Table) -> bytes:
    """JSON lines."""
    return "".join(
        json.dumps(dict(zip(names.split(), row, strict=True))) + "\n" for row in table
    ).encode()


def array(names: str, table: Table, indent: int | None = None) -> bytes:
    """A JSON list."""
    return json.dumps(
        [dict(zip(names.split(), row, strict=True)) for row in table], indent=indent
    ).encode()


def packed(content: bytes) -> bytes:
    """With gzip."""
    return gzip.compress(content)


def headed(names: str, rows: Table) -> list[Sequence[object]]:
    """Rows below their header."""
    return [names.split(","), *rows]


def table(
    names: str, rows: Table, mark: str = ",", *, quoting: int = csv.QUOTE_MINIMAL, end: str = "\n"
) -> bytes:
    """Rows below their header as the csv module writes them."""
    return written(headed(names, rows), mark, quoting=quoting, end=end)


N = 24
PAIRS = rows(N, english, german)
REVIEWS = rows(N, review, sentiment)
NEWS = rows(N, article, headline)


def date_of(n: int) -> str:
    """A date."""
    return f"2024-0{1 + n % 9}-1{n % 9}"


def code_of(n: int) -> str:
    """An id."""
    return f"tt{1000 + 7 * n}"
