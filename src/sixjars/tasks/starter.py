"""A commented starter recipe, its sizes chosen from the user's data."""

import csv
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import final

import yaml

from sixjars.data.readers import Examples, read
from sixjars.errors import DataError, RecipeError, unknown
from sixjars.recipe.fields import Column
from sixjars.recipe.jars import DataSettings
from sixjars.tasks.table import TASKS, Task

LARGE_VOCABULARY = 15_000
"""With more distinct words than this, pieces of words serve better."""
MOST_TOKENS = 400
"""A longer text is cut there: a recurrent network reads one token after the other."""


@final
@dataclass(frozen=True)
class Sizes:
    """What the data suggests."""

    rows: int
    words: int
    """Distinct words of the target (and of the source, whichever has more)."""
    longest: int
    """Words of all but the longest hundredth of the texts."""

    @property
    def state(self) -> int:
        """Size of the recurrent states."""
        return 128 if self.rows < 5_000 else 256 if self.rows < 50_000 else 512

    @property
    def epochs(self) -> int:
        """Passes over the data: more over little; early stopping ends them sooner."""
        return min(200, max(10, 200_000 // self.rows))

    @property
    def batch_tokens(self) -> int:
        """Small batches where there is little data, so that there are enough updates."""
        return 250 if self.rows < 500 else 1_000 if self.rows < 5_000 else 2_500 if self.rows < 50_000 else 6_000

    @property
    def dropout(self) -> float:
        """More where there is little data."""
        return 0.3 if self.rows < 50_000 else 0.1


ASSUMED = Sizes(rows=10_000, words=8_000, longest=50)


def write_starter(file: Path, *, task: str, data: Path | None = None) -> None:
    """Write the recipe; an existing file is never overwritten."""
    if task not in TASKS:
        raise RecipeError([unknown("task", task, list(TASKS))], "the command line")
    if file.exists():
        raise DataError(f"{file} exists already; choose another name.")
    columns = _columns(TASKS[task], data)
    sizes = ASSUMED if data is None else _sizes(_examples(data, columns))
    text = _text(TASKS[task], data, columns, sizes, file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def _columns(task: Task, data: Path | None) -> dict[str, Column]:
    """The task's usual names where the file has them; else its first columns, by name or by number."""
    usual = dict(zip(task.fields, task.columns, strict=True))
    found = {} if data is None else _first_row(data)
    if data is None or set(usual.values()) <= set(found):
        return dict(usual)
    if not _has_names(data) or len(found) < len(usual):
        return {field: number for number, field in enumerate(usual, start=1)}
    known = {field: name for field, name in usual.items() if name in found}
    rest = [name for name in found if name not in known.values()]
    if known:  # the other column is most likely the one with the most text
        rest.sort(key=lambda name: -len(found[name]))
    return {field: known[field] if field in known else rest.pop(0) for field in usual}


def _kind(data: Path) -> str:
    return data.with_suffix("").suffix if data.suffix == ".gz" else data.suffix


def _has_names(data: Path) -> bool:
    """Whether the format itself names its columns."""
    return _kind(data) in {".jsonl", ".json", ".parquet"}


def _first_row(data: Path) -> dict[str, str]:
    """What the columns seem to be called, and their first texts; columns that are not text are left out."""
    if not data.is_file():
        raise DataError(f"data file {data} does not exist.")
    if _kind(data) == ".parquet":
        return {name: value for name, value in _first_parquet_row(data).items() if isinstance(value, str)}
    try:
        with (
            gzip.open(data, "rt", encoding="utf-8-sig")
            if data.suffix == ".gz"
            else data.open(encoding="utf-8-sig") as lines
        ):
            first = next(lines, "").rstrip("\r\n")
        if _has_names(data):
            return {name: value for name, value in dict(json.loads(first)).items() if isinstance(value, str)}
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, ValueError, TypeError) as error:
        raise DataError(f"{data}, line 1 cannot be read: {error}.") from None
    return dict.fromkeys(next(csv.reader([first])) if _kind(data) == ".csv" else first.split("\t"), "")


def _first_parquet_row(data: Path) -> dict[str, object]:
    """That row alone: the file may be large."""
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(data) as file:
            batch = next(file.iter_batches(batch_size=1), None)
    except (pyarrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{data} is not a Parquet file or is damaged: {reason}.") from error
    if not batch:
        raise DataError(f"{data} has no rows.")
    return dict(batch.to_pylist()[0])


def _examples(data: Path, columns: dict[str, Column]) -> Examples:
    return read(str(data), columns, settings=DataSettings(train=str(data), on_bad_row="skip"))


def _sizes(examples: Examples) -> Sizes:
    distinct, longest = 0, 0
    for field in examples.table.column_names:
        if field == "line":
            continue
        seen: set[str] = set()
        lengths = []
        for text in examples.table.column(field).to_pylist():
            words = text.split()
            seen.update(words)
            lengths.append(len(words))
        distinct = max(distinct, len(seen))
        longest = max(longest, sorted(lengths)[len(lengths) * 99 // 100])
    return Sizes(examples.table.num_rows, distinct, longest)


TEMPLATE = """\
# {task.name}: {task.title}.
# Run     sixjars train {file}
# Sizes   {chosen}; change any of them, here or on the command line: learning.rate=5e-4
task: {task.name}
data:
  # .tsv .csv .jsonl .parquet, also .gz; or {{en: a.txt, de: b.txt}} for parallel lines
  train: {train}
  # a file, or the fraction of the training file to hold out
  valid: 0.05
  # what a malformed row does: error or skip
  on_bad_row: error
  # a column is its name in the file's first line, or its number from 1 where that is an example already
{fields}
model:
  encoder: {encoder}
  bridge: {bridge}
  decoder: {{kind: sequence, cell: gru, size: {size}, dropout: {dropout}, embedding: {{size: {half}}}}}
loss: {{kind: cross_entropy, smoothing: {smoothing}}}
learning: {{optimizer: adam, rate: 1.0e-3, batch_tokens: {batch}, epochs: {epochs}, patience: 8}}
evaluation: {{search: {search}, metrics: [{metrics}]}}
"""
READING = "{{kind: text, cell: gru, size: {half}, direction: both, dropout: {dropout}, embedding: {{size: {half}}}}}"
ATTENDING = "{kind: attention, score: additive} # or {kind: initial}, or {kind: every_step}"


def _yaml(value: str | int) -> str:
    """A name as YAML, in quotes only where it would be read as something else without them.

    >>> _yaml("en"), _yaml(2), _yaml("no"), _yaml("a: b")
    ('en', '2', '"no"', '"a: b"')
    """
    plain = str(value)
    try:
        inside = yaml.safe_load(f"{{one: {plain}, two: 2}}") == {"one": value, "two": 2}
        if inside and yaml.safe_load(f"one: {plain}") == {"one": value} and plain.isprintable():
            return plain
    except (yaml.YAMLError, ValueError):
        pass
    return str(yaml.safe_dump(value, default_style='"', allow_unicode=True, width=float("inf"))).rstrip("\n")


def _text(task: Task, data: Path | None, columns: dict[str, Column], sizes: Sizes, file: Path) -> str:
    tokens = task.tokens if task.tokens == "characters" else "bpe" if sizes.words > LARGE_VOCABULARY else "words"
    most = {"characters": 1_000, "bpe": 8_000, "words": 20_000}[tokens]
    longest = min(MOST_TOKENS, max(50, sizes.longest * (12 if tokens == "characters" else 2)))
    how = f"tokens: {tokens}, size: {most}, max_length: {longest}"
    half = sizes.state // 2
    reading = READING.format(half=half, dropout=sizes.dropout)
    return TEMPLATE.format(
        task=task,
        file=file,
        train=_yaml(str(data or "train.tsv")),
        chosen=f"chosen for {sizes.rows:,} rows" if data else "guesses until you give your data",
        fields="\n".join(f"  {field}: {{column: {_yaml(column)}, {how}}}" for field, column in columns.items()),
        encoder=reading if task.inputs else f"{{kind: none, size: {sizes.state}}} # s_0 is learned",
        bridge=ATTENDING if task.inputs else "{kind: initial}",
        size=sizes.state,
        half=half,
        dropout=sizes.dropout,
        smoothing=0.1 if task.inputs else 0.0,
        batch=sizes.batch_tokens,
        epochs=sizes.epochs,
        search="{kind: beam, width: 5}" if task.inputs else "{kind: sample, temperature: 0.8}",
        metrics=", ".join(task.metrics),
    )
