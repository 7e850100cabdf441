"""The plan of a large prediction: which rows of which file make a part, and the file that each part is written to.

It follows from the inputs alone, so that all jobs that share the work make the same one. It is kept beside the parts:
who comes later knows that these are parts of the same work, and need not count the rows again.
"""

import hashlib
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, final

from sixjars.bulk.remote import Place
from sixjars.bulk.sources import Inputs, rows_in, table_in
from sixjars.data.text.files import is_gzipped
from sixjars.runs.input_file import InputFile
from sixjars.runs.predict import Predictor
from sixjars_runtime.errors import DataError, shown
from sixjars_runtime.small_files import read_limited

PLAN: Final = "parts.json"


@final
@dataclass(frozen=True)
class Shard:
    """The share of one of several jobs: every part whose number leaves the same rest."""

    number: int = 1
    """From 1."""
    count: int = 1

    @classmethod
    def of(cls, text: str) -> "Shard":
        """What `--shard` says.

        >>> Shard.of("2/8")
        Shard(number=2, count=8)
        """
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise DataError(
                f"--shard is the number of a job and how many there are, from 1/8 to 8/8, not {shown(text)}."
            )
        return cls(number, count)


@final
@dataclass(frozen=True)
class Source:
    """A file that is read."""

    name: str
    """In the folder that all of them are in."""
    bytes: int
    rows: int
    target: str
    """The file for its answers; where it has several parts, their numbers stand before the ending."""


@final
@dataclass(frozen=True)
class Part:
    """Some rows of a file, which are answered together."""

    source: str
    first: int
    """How many rows come before."""
    rows: int
    target: str


@final
@dataclass(frozen=True)
class Plan:
    """All parts, in the order of the rows."""

    facts: Mapping[str, Any]
    """What the answers depend on besides the inputs."""
    part_rows: int
    sources: tuple[Source, ...]

    @cached_property
    def parts(self) -> list[Part]:
        """Of all files."""
        return [part for source in self.sources for part in _cut(source, self.part_rows)]

    def share(self, shard: Shard) -> list[Part]:
        """The parts of one job."""
        return self.parts[shard.number - 1 :: shard.count]

    def to_json(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            **self.facts,
            "part_rows": self.part_rows,
            "inputs": [asdict(one) for one in self.sources],
        }


def _cut(source: Source, size: int) -> Iterator[Part]:
    """The parts of one file.

    >>> [part.target for part in _cut(Source("a/b.tsv", 90, 25, "a/b.tsv"), 10)]
    ['a/b-00001-of-00003.tsv', 'a/b-00002-of-00003.tsv', 'a/b-00003-of-00003.tsv']
    """
    count = -(-source.rows // size)
    plain = source.target.removesuffix(".gz")
    stem = plain[: len(plain) - len(Path(plain).suffix)]
    for at in range(count):
        number = f"-{at + 1:05}-of-{count:05}" if count > 1 else ""
        first = at * size
        yield Part(
            source.name,
            first,
            min(size, source.rows - first),
            f"{stem}{number}{source.target[len(stem) :]}",
        )


def facts_of(
    predictor: Predictor, search: Mapping[str, Any], precision: str, *, as_json: bool
) -> dict[str, Any]:
    """What answers depend on: the weights, the search, the precision; and whether they are JSON."""
    with (predictor.folder / "model.safetensors").open("rb") as file:
        weights = hashlib.file_digest(file, "sha256").hexdigest()
    return {"weights": weights, "search": dict(search), "precision": precision, "json": as_json}


def planned(facts: Mapping[str, Any], part_rows: int, inputs: Inputs, predictor: Predictor) -> Plan:
    """The plan for some files; each is read once to its end, to count its rows."""
    sources, place = [], Place(inputs.root)
    for name, size in inputs.sizes.items():
        with place.named(), place.file(name, outline=True) as (path, left_out):
            table = table_in(path, predictor)
            target = f"{name}.jsonl" if facts["json"] else _target(name, table)
            sources.append(Source(name, size, rows_in(path, table) + left_out, target))
    plan = Plan(facts, part_rows, tuple(sources))
    if not plan.parts:
        alone = f"{inputs.root}/{sources[0].name} has no rows."
        raise DataError(
            alone if len(sources) == 1 else f"none of the {len(sources)} files has rows."
        )
    by_target: dict[str, str] = {}
    for part in plan.parts:
        other = by_target.setdefault(part.target, f"{part.source} {part.first}")
        if other != f"{part.source} {part.first}":
            one = other.rpartition(" ")[0]
            raise DataError(
                f"{one} and {part.source} would both be written to {part.target}; rename one of them."
            )
    return plan


def _target(name: str, table: InputFile | None) -> str:
    """The file for the answers: of the same name, but for an Excel file and gzipped lines, which are not written."""
    plain = name[: -len(".gz")] if is_gzipped(Path(name)) else name
    if table is None:
        return plain
    suffix = Path(plain).suffix
    return (
        name
        if suffix.lower() == table.answer_ending
        else f"{plain.removesuffix(suffix)}{table.answer_ending}"
    )


def kept_plan(
    folder: Path, facts: Mapping[str, Any], part_rows: int | None, inputs: Inputs
) -> Plan | None:
    """The plan of work that was begun in a folder; nothing where there is none. Other work is refused."""
    try:
        kept = json.loads(read_limited(folder / PLAN))
        sources = tuple(Source(**one) for one in kept["inputs"])
        plan = Plan({name: kept[name] for name in facts}, int(kept["part_rows"]), sources)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise DataError(
            f"{folder / PLAN} is damaged; choose another folder for --output."
        ) from None
    same = {name: plan.facts[name] == fact for name, fact in facts.items()}
    same["inputs"] = inputs.sizes == {source.name: source.bytes for source in sources}
    same["part_rows"] = part_rows in (None, plan.part_rows)
    other = [name for name, is_same in same.items() if not is_same]
    if other:
        raise DataError(
            f"--output {folder} holds other work: its {PLAN} has other {' and '.join(other)}. Choose another folder."
        )
    return plan


def keep_plan(folder: Path, plan: Plan) -> None:
    """Write it for others; where several jobs begin at once, that of the first stays."""
    beside = folder / f".{PLAN}.{secrets.token_hex(4)}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        beside.write_text(
            json.dumps(plan.to_json(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
        )
        os.link(beside, folder / PLAN)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        os.replace(beside, folder / PLAN)
    finally:
        beside.unlink(missing_ok=True)
