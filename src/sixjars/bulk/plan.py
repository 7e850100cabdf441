"""The plan of a large prediction: the rows of each part, and the file that it is written to.

It follows from the inputs alone, so that all jobs that share the work make the same one. It is kept
beside the parts: who comes later knows that these are parts of the same work, and need not count
the rows again.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

from sixjars.bulk.remote import InputFolder
from sixjars.bulk.sources import InputFiles, rows_in, table_in
from sixjars.data.tables.table_file import TableFile
from sixjars.data.text.files import ending_of, is_gzipped, stem_and_ending
from sixjars.runs.prediction.predictor import Predictor
from sixjars_runtime.errors import DataError, shown
from sixjars_runtime.small_files import read_limited

PLAN: Final = "parts.json"


@final
@dataclass(frozen=True)
class Shard:
    """The share of one of several jobs: every part whose number leaves the same remainder."""

    number: int = 1
    """From 1."""
    count: int = 1

    @classmethod
    def of(cls, text: str) -> "Shard":
        """Read the value of `--shard`.

        >>> Shard.of("2/8")
        Shard(number=2, count=8)
        """
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        number, count = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= count:
            expected = "the number of a job and how many there are, from 1/8 to 8/8"
            raise DataError(f"--shard is {expected}, not {shown(text)}.")
        return cls(number, count)


@final
@dataclass(frozen=True)
class SourceFile:
    """A file that is read."""

    name: str
    """Its name in the folder of all files."""
    bytes: int
    rows: int
    target: str
    """The file of its answers; the number of a part, if there are several, is before the ending."""


@final
@dataclass(frozen=True)
class FilePart:
    """Some rows of a file, which are answered together."""

    source: str
    first: int
    """The number of rows before it."""
    rows: int
    target: str


@final
@dataclass(frozen=True)
class BulkPlan:
    """All parts of a prediction, in the order of the rows."""

    facts: Mapping[str, Any]
    """The facts that the answers depend on besides the inputs."""
    part_rows: int
    sources: tuple[SourceFile, ...]

    @cached_property
    def parts(self) -> list[FilePart]:
        """The parts of all files."""
        return [part for source in self.sources for part in _cut(source, self.part_rows)]

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they are kept."""
        sources = [asdict(source) for source in self.sources]
        return {**self.facts, "part_rows": self.part_rows, "inputs": sources}


def _cut(source: SourceFile, size: int) -> Iterator[FilePart]:
    """The parts of one file.

    >>> [part.target for part in _cut(SourceFile("a/b.tsv", 90, 25, "a/b.tsv"), 10)]
    ['a/b-00001-of-00003.tsv', 'a/b-00002-of-00003.tsv', 'a/b-00003-of-00003.tsv']
    """
    count = -(-source.rows // size)
    stem, ending = stem_and_ending(source.target)
    for at in range(count):
        number = f"-{at + 1:05}-of-{count:05}" if count > 1 else ""
        first = at * size
        target = f"{stem}{number}{ending}"
        yield FilePart(source.name, first, min(size, source.rows - first), target)


def planned(
    facts: Mapping[str, Any], part_rows: int, inputs: InputFiles, predictor: Predictor
) -> BulkPlan:
    """The plan for some files; each is read once to its end, to count its rows."""
    sources = []
    place = InputFolder(inputs.root)
    for name, size in inputs.sizes.items():
        with place.named(), place.file(name, outline=True) as (path, left_out):
            table = table_in(path, predictor)
            target = f"{name}.jsonl" if facts["json"] else _target(name, table)
            sources.append(SourceFile(name, size, rows_in(path, table) + left_out, target))
    plan = BulkPlan(facts, part_rows, tuple(sources))
    if not plan.parts:
        none = f"none of the {len(sources)} files has rows."
        alone = f"{inputs.root}/{sources[0].name} has no rows."
        raise DataError(alone if len(sources) == 1 else none)
    by_target: dict[str, FilePart] = {}
    for part in plan.parts:
        other = by_target.setdefault(part.target, part)
        if other is not part:
            both = f"{other.source} and {part.source} would both be written to {part.target}"
            raise DataError(f"{both}; rename one of them.")
    return plan


def _target(name: str, table: TableFile | None) -> str:
    """The file of the answers: its name is kept, except for Excel files and gzipped lines."""
    if table is None:
        return name[: -len(".gz")] if is_gzipped(Path(name)) else name
    if ending_of(Path(name)) == table.output_ending:
        return name
    return f"{stem_and_ending(name)[0]}{table.output_ending}"


def kept_plan(
    folder: Path, facts: Mapping[str, Any], part_rows: int | None, inputs: InputFiles
) -> BulkPlan | None:
    """The plan that a folder keeps; None where there is none. Other work is refused."""
    try:
        kept = json.loads(read_limited(folder / PLAN))
        sources = tuple(SourceFile(**values) for values in kept["inputs"])
        plan = BulkPlan({name: kept[name] for name in facts}, int(kept["part_rows"]), sources)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        damaged = f"{folder / PLAN} is damaged; choose another folder for --output."
        raise DataError(damaged) from None
    same = {name: plan.facts[name] == fact for name, fact in facts.items()}
    same["inputs"] = inputs.sizes == {source.name: source.bytes for source in sources}
    same["part_rows"] = part_rows in (None, plan.part_rows)
    other = [name for name, is_same in same.items() if not is_same]
    if other:
        changed = f"its {PLAN} has other {' and '.join(other)}"
        raise DataError(f"--output {folder} holds other work: {changed}. Choose another folder.")
    return plan


def keep_plan(folder: Path, plan: BulkPlan) -> None:
    """Write a plan for others; where several jobs begin at once, that of the first stays."""
    beside = folder / f".{PLAN}.{secrets.token_hex(4)}"
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(plan.to_json(), indent=1, ensure_ascii=False) + "\n"
    try:
        beside.write_text(text, encoding="utf-8")
        os.link(beside, folder / PLAN)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(beside, folder / PLAN)
    finally:
        beside.unlink(missing_ok=True)
