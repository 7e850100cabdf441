"""`sixjars predict` on files: words in files of every kind, what was answered, and the command."""

import csv
import gzip
import json
from pathlib import Path
from typing import Any, final

import pyarrow
import pyarrow.parquet

from tests.conftest import Call, Said

WORDS = ["namaste", "ghar", "kamal", "nadi", "phal", "rat", "din"]


def kind_of(path: Path) -> str:
    return path.name.lower().removesuffix(".gz").rpartition(".")[2]


def written(path: Path, words: list[str] = WORDS) -> Path:
    """The words as a file of the kind that its name ends in; a note beside each has a line break."""
    rows = [{"id": at, "roman": word, "note": f'a, "{word}"\n'} for at, word in enumerate(words)]
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind_of(path) == "parquet":
        types = {"id": pyarrow.int64(), "roman": pyarrow.string(), "note": pyarrow.string()}
        pyarrow.parquet.write_table(
            pyarrow.Table.from_pylist(rows, pyarrow.schema([*types.items()])), path
        )
        return path
    text = {
        "csv": "id,roman,note\n"
        + "".join(f'{at},{word},"a, ""{word}""\n"\n' for at, word in enumerate(words)),
        "tsv": "id\troman\n" + "".join(f"{at}\t{word}\n" for at, word in enumerate(words)),
        "jsonl": "".join(json.dumps(row) + "\n" for row in rows),
        "json": json.dumps(rows, indent=1),
        "txt": "".join(f"{word}\n" for word in words),
    }[kind_of(path)]
    content = text.encode()
    is_zipped = path.suffix.lower() == ".gz"
    path.write_bytes(gzip.compress(content) if is_zipped else b"\xef\xbb\xbf" + content)
    return path


def read(path: Path) -> list[Any]:
    """The rows of a file of answers; of a file without columns, its lines."""
    if kind_of(path) == "parquet":
        return list(pyarrow.parquet.read_table(path).to_pylist())
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.suffix.lower() == ".gz" else raw).decode("utf-8-sig")
    if kind_of(path) in ("csv", "tsv"):
        mark = "\t" if kind_of(path) == "tsv" else ","
        rows = csv.DictReader(text.splitlines(keepends=True), delimiter=mark)
        return [row | {"id": int(row["id"])} if "id" in row else row for row in rows]
    if kind_of(path) == "json":
        return list(json.loads(text))
    lines = text.split("\n")[:-1]
    return lines if kind_of(path) == "txt" else [json.loads(line) for line in lines]


@final
class Predicting:
    """`sixjars predict` on the file that was written last."""

    def __init__(self, call: Call, run: Path, folder: Path) -> None:
        self.call = call
        self.run = run
        self.folder = folder
        self.path = folder / "in.csv"
        self.out = folder / "out.csv"

    def write(self, name: str, content: str | bytes) -> Path:
        """The input."""
        self.path = self.folder / name
        self.path.write_bytes(content.encode() if isinstance(content, str) else content)
        return self.path

    def words(self, name: str, words: list[str] = WORDS) -> Path:
        """The input, made of words."""
        self.path = written(self.folder / name, words)
        return self.path

    def __call__(self, *options: object, out: str = "", of: Path | str | None = None) -> Said:
        """With answers on stdout, or in a file or folder; of another input than the last."""
        self.out = self.folder / out if out else self.out
        answers = ("--output", self.out) if out else ()
        return self.call("predict", self.run, "--input", of or self.path, *answers, *options)
