"""Parallel files as the data of a starter recipe: a file of lines for each field of the task."""

import re
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path

from sixjars.data.tables import read
from sixjars.data.text.files import ending_of
from sixjars.progress import number_of
from sixjars.recipe.data import Column
from sixjars.recipe.sections import DataSettings
from sixjars.starter.choose_columns import guess, option_for
from sixjars.starter.data_facts import DataFacts, is_media
from sixjars.starter.first_rows import ColumnProfile
from sixjars.tasks import Slot, Task
from sixjars_runtime.errors import DataError, unknown

Data = Path | Mapping[str, Path]
"""The user's data: a file or a folder, or parallel files by the names of their columns."""
TABLES = (".csv", ".tsv", ".json", ".jsonl", ".parquet", ".xlsx", ".zip")
"""Endings of files that have several columns."""


def named(data: object) -> Data | None:
    """The data that a user names: a file, several, or several by name; one alone is a file as well.

    >>> named(["c.en", "c.de"]) == {"en": Path("c.en"), "de": Path("c.de")}
    True
    """
    if data is None or isinstance(data, str | PathLike):
        return None if data is None else Path(data)
    files: list[object] = []
    if isinstance(data, Mapping | list | tuple):
        files = [*data.values()] if isinstance(data, Mapping) else [*data]
    paths = [Path(file) for file in files if isinstance(file, str | PathLike)]
    if not files or len(paths) < len(files):
        raise DataError(
            "data must be a file, a folder or several files, but is of type "
            f"{type(data).__name__}; give a table in memory to sixjars.train with a recipe as a "
            "dict, or save it as a .csv file first."
        )
    if len(paths) == 1:
        return paths[0]
    names = [*map(str, data)] if isinstance(data, Mapping) else _names(paths)
    return dict(zip(names, paths, strict=True))


def _names(files: Sequence[Path]) -> list[str]:
    """The names of the columns: the last part of the files' names in which all differ.

    >>> _names([Path("a/x.en.gz"), Path("a/x.de.gz")]), _names([Path("en.txt"), Path("de.txt")])
    (['en', 'de'], ['en', 'de'])
    """
    parts = [re.split(r"[./\\]", str(file).removesuffix(".gz"))[::-1] for file in files]
    for names in zip(*parts, strict=False):
        if len({*names}) == len(files) and all(names):
            return [*names]
    if same := [str(file) for file in files if files.count(file) > 1]:
        rule = "each parallel file has the lines of another column."
        raise DataError(f"{same[0]} is named twice; {rule}")
    return [str(file) for file in files]


def found_in_files(
    task: Task, files: Mapping[str, Path], named: Mapping[str, Column] | None = None
) -> DataFacts:
    """The facts of parallel files; `named` has the files that the user gives to fields."""
    _check(task, files)
    columns = _columns(task, files, named or {})
    places = {name: str(file) for name, file in files.items()}
    settings = DataSettings.model_validate({"train": places, "on_bad_row": "skip"})
    examples = read(places, columns, settings=settings)
    texts = {name: examples.table.column(name).to_pylist() for name in columns}
    guesses = {}
    for slot in task.slots:
        guesses[slot.name] = _guess(slot, files[str(columns[slot.name])], texts[slot.name])
    why = "as you say" if named else "in the order of the files"
    return DataFacts(
        columns,
        rows=examples.table.num_rows,
        media=(),
        settings=guesses,
        texts=texts,
        skipped=examples.skipped,
        notes=examples.notes,
        chosen=_chosen(task, files, columns, why),
    )


def _check(task: Task, files: Mapping[str, Path]) -> None:
    """Refuse files that cannot be the columns of a task."""
    fields = ", ".join(slot.name for slot in task.slots)
    for file in files.values():
        if ending_of(file) in TABLES or file.is_dir():
            kind = "a folder" if file.is_dir() else "a table of its own"
            raise DataError(
                f"several files are parallel lines, a file for each of {fields}, but {file} is "
                f"{kind}; give one to --data, and name files of other splits in the recipe "
                "(valid: FILE, test: FILE)."
            )
    if any(map(is_media, task.slots)):
        table = "its data is one table with both in each row; name one file."
        raise DataError(f"{task.role()}, so {table}")
    if len(files) != len(task.slots):
        need = f"{number_of(len(task.slots), 'file')} with a line for each row"
        raise DataError(f"{task.role()}, which is {need}, but {len(files)} are named.")


def _columns(
    task: Task, files: Mapping[str, Path], named: Mapping[str, Column]
) -> dict[str, Column]:
    """The name of the file of each field: as the user says, else in the order of the fields."""
    names, fields = list(files), [slot.name for slot in task.slots]
    chosen: dict[str, str] = {}
    for field, key in named.items():
        if field not in fields:
            raise DataError(f"{unknown('field', field, fields)} That is what {task.name} has.")
        number = str(key) not in names and str(key).isdecimal() and 0 < int(key) <= len(names)
        name = chosen[field] = names[int(key) - 1] if number else str(key)
        if name not in names:
            raise DataError(f"Parallel files: {unknown('column', key, names)}")
        if [*chosen.values()].count(name) > 1:
            owners = " and ".join(chosen)
            raise DataError(f"{files[name]} is named for {owners}; each has a file of its own.")
    left = iter(name for name in names if name not in chosen.values())
    return {field: chosen.get(field) or next(left) for field in fields}


def _guess(slot: Slot, file: Path, values: list[str]) -> dict[str, object]:
    settings = guess(slot, ColumnProfile(1, None, values))
    if settings is None:
        raise DataError(f"{file} cannot be the {slot.name}; it holds other values.")
    return settings


def _chosen(task: Task, files: Mapping[str, Path], columns: Mapping[str, Column], why: str) -> str:
    """The file of each field, and how to turn the files round."""
    files_of = ", ".join(f"{name} = {key!r} ({files[str(key)]})" for name, key in columns.items())
    turned = " ".join(map(option_for, columns, [*columns.values()][::-1]))
    alike = len(columns) == 2 and len({slot.kind for slot in task.slots}) == 1
    return f"{files_of}, {why}" + (f"; the other way round: {turned}." if alike else ".")
