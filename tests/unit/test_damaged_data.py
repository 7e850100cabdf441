"""`sixjars new` on data that is damaged: one sentence each, never a traceback."""

import gzip
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow
import pyarrow.parquet
import pytest

from sixjars.errors import DataError
from sixjars.starter.facts import facts_of
from sixjars.tasks import TASKS

RANDOM = Random(0)
ROWS = "".join(f"{RANDOM.random()}\t{RANDOM.random()}\n" for _ in range(400)).encode()


def flipped(content: bytes) -> bytes:
    """The first byte of the packed data is another one: zlib then has an error of its own."""
    return content[:10] + bytes([content[10] ^ 255]) + content[11:]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "a wrong byte": flipped,
    "cut": lambda content: content[:15],
    "not packed at all": gzip.decompress,
    "a wrong head": lambda content: b"\x1f\x8b\x09" + content[3:],
}


def test_a_wrong_byte_is_an_error_of_zlib() -> None:
    with pytest.raises(zlib.error):
        gzip.decompress(flipped(gzip.compress(ROWS)))


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("name", ["rows.tsv.gz", "rows.csv.gz", "rows.jsonl.gz"])
def test_a_damaged_gzip_file(damage: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(DAMAGE[damage](gzip.compress(ROWS)))
    with pytest.raises(DataError) as caught:
        facts_of(TASKS["translation"], path)
    assert str(caught.value).startswith(f"{path}")
    assert len(str(caught.value).splitlines()) == 1


def broken_text(data: bytes) -> pyarrow.Array:
    """Three values of four bytes that are called text, whatever they are."""
    buffers = [
        None,
        pyarrow.py_buffer(array("i", [0, 4, 8, 12]).tobytes()),
        pyarrow.py_buffer(data),
    ]
    return pyarrow.Array.from_buffers(pyarrow.string(), 3, buffers)


def test_parquet_that_is_not_utf8_in_its_first_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"source": broken_text(b"\xe9vilgoodfine"), "target": ["a", "b", "c"]}), path
    )
    with pytest.raises(DataError) as caught:
        facts_of(TASKS["translation"], path)
    assert str(caught.value).startswith(f"{path} is not a Parquet file or is damaged: ")


def test_parquet_that_is_not_utf8_in_another_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(
        pyarrow.table({"source": broken_text(b"good\xe9vilfine"), "target": ["a", "b", "c"]}), path
    )
    found = facts_of(TASKS["translation"], path)
    assert (found.rows, found.texts["source"]) == (2, ["good", "fine"])
