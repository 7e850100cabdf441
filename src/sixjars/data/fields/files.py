"""What all fields share whose values are names of files: where the files are, and which names are meant."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from glob import glob, has_magic
from os.path import isdir, isfile
from pathlib import Path
from typing import Any, ClassVar, Self

from sixjars.data.field import Equipment, Field
from sixjars.data.media.files import MediaFiles, is_hidden
from sixjars.data.storage.cache import cache_folder
from sixjars.errors import DataError
from sixjars.recipe.data import FieldSettings, FilePath


class FileSettings(FieldSettings):
    """One column of file names."""

    media: FilePath | tuple[FilePath, ...] = "."
    """Where the files are: a folder, a `.zip` that is read in place, or a list of those."""


class FileField(Field):
    """Files by their names."""

    is_media = True
    endings: ClassVar[frozenset[str]]
    """How the names of such files end, lowercased."""

    def equipped(self, equipment: Equipment) -> Self:
        """With files and a store of its own."""
        made = super().equipped(equipment)
        for name in ("files", "store"):
            made.__dict__.pop(name, None)
        return made

    @cached_property
    def files(self) -> MediaFiles:
        """Where names are looked up."""
        return MediaFiles(self.equipment.places, memory=cache_folder())

    @property
    def key_column(self) -> str:
        """The column with the keys of the content of the files."""
        return f"{self.name} key"

    def arguments(self, given: str) -> list[Any]:
        """The files that a path, a folder or a glob means; in folders and globs only those of a known ending."""
        if isfile(given) or not (isdir(given) or has_magic(given)):
            return [given]
        found = glob(_any_case(given, self.endings), recursive=True)
        if isdir(given):
            below = (file for file in Path(given).rglob("*") if not is_hidden(file.relative_to(given)))
            found = [str(file) for file in below]
        kept = sorted(file for file in found if Path(file).suffix.lower() in self.endings and isfile(file))
        if not kept:
            endings = " ".join(sorted(self.endings))
            raise DataError(f"{given} holds no {self.kind} file (known endings: {endings}).")
        return list(kept)

    def check(self, text: str, row: Mapping[str, str]) -> None:
        """The file must be there."""
        super().check(text, row)
        if not self.files.has(text):
            wrong = "is a folder" if isdir(text) else "does not exist"
            raise ValueError(f"the {self.name} file {text[:300]} {wrong}.")

    @classmethod
    def guess(cls, values: Sequence[object]) -> dict[str, Any] | None:
        """Names of files of a known ending."""
        return {} if all_end(values, cls.endings) else None


def _any_case(pattern: str, endings: Collection[str]) -> str:
    """A pattern whose ending is taken in whatever case, as cameras write it.

    >>> _any_case("new/*.jpg", [".jpg"]), _any_case("new/*", [".jpg"])
    ('new/*.[jJ][pP][gG]', 'new/*')
    """
    ending = Path(pattern).suffix
    if ending.lower() not in endings:
        return pattern
    letters = "".join(f"[{one.lower()}{one.upper()}]" if one.isalpha() else one for one in ending)
    return pattern.removesuffix(ending) + letters


def all_end(values: Sequence[object], endings: Collection[str]) -> bool:
    """Whether all values are names that end so, in whatever case.

    >>> all_end(["dog.jpg", "beach.PNG"], [".jpg", ".png"])
    True
    """
    return all(isinstance(value, str) and value.lower().endswith(tuple(endings)) for value in values)
