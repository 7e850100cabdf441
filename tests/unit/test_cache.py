"""Encoded data in the cache: tokenized once, mapped, safe against kills, damage and company."""

import errno
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from sixjars.data import flat
from sixjars.data.fields.text import TextSettings
from sixjars.data.storage import cache
from sixjars.data.storage.cache import Examples, ExampleTable, cached, encoded
from sixjars.data.text.tokenizer import TextEncoding, TextTokenizer
from sixjars.errors import DataError

from .conftest import wait_for

SOURCES = ["a b c d e", "b", "c a ❤", "e e e e e e e e"]
TARGETS = ["x y", "y y y", "z", "x"]
LIMITS = {"source": 4, "target": 9}


def words(texts: list[str]) -> TextTokenizer:
    return TextTokenizer.trained(texts, TextSettings(), "data.source")


TOKENS = {"source": words(SOURCES), "target": words(TARGETS)}


def examples(sources: list[str] = SOURCES) -> Examples:
    links = [f"{row}-0" if row else "" for row in range(len(sources))]
    columns = {"source": sources, "target": TARGETS[: len(sources)], "alignment": links}
    return Examples.of(columns, where="a test")


def made(
    folder: Path,
    rows: Examples | None = None,
    *,
    tokens: dict[str, TextTokenizer] = TOKENS,
    limits: dict[str, int] = LIMITS,
) -> ExampleTable:
    return cached(rows or examples(), encoders(tokens, limits), folder=folder)


def encoders(tokens: dict[str, TextTokenizer], limits: dict[str, int]) -> dict[str, TextEncoding]:
    return {
        name: TextEncoding(name, one, limits[name], "none", False) for name, one in tokens.items()
    }


def entries(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def row_ids(table: ExampleTable, field: str) -> list[list[int]]:
    flat, offsets = table.ids(field)
    return [flat[offsets[row] : offsets[row + 1]].tolist() for row in range(len(table))]


@pytest.mark.parametrize("rows", [1, 2, 4096])
def test_ids_and_texts(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flat, "MOST_ROWS", rows)
    table = made(tmp_path)
    assert len(table) == 4
    assert row_ids(table, "source") == [TOKENS["source"].encode(text)[:4] for text in SOURCES]
    assert row_ids(table, "target") == [TOKENS["target"].encode(text) for text in TARGETS]
    assert table.texts("source") == SOURCES
    assert table.texts("target", [3, 0]) == [TARGETS[3], TARGETS[0]]
    for some in (range(1, 3), range(0, 4, 2), range(3, 0, -1), range(2, 2)):
        assert table.texts("target", some) == [TARGETS[row] for row in some]
    assert table.texts("alignment") == ["", "1-0", "2-0", "3-0"]
    assert [table.line(row) for row in range(4)] == [1, 2, 3, 4]
    assert table.has("alignment")
    assert not table.has("line")
    assert not table.has("links")
    # as for a prediction: in memory, by the same road
    own = encoded(examples(), encoders(TOKENS, LIMITS))
    assert [row_ids(own, name) for name in LIMITS] == [row_ids(table, name) for name in LIMITS]
    assert own.texts("alignment") == table.texts("alignment")


def test_ids_are_mapped_not_copied(tmp_path: Path) -> None:
    long = Examples.of({"target": ["w" * 10] * 50_000}, where="a test")
    tokens = TextTokenizer.trained(["w"], TextSettings(tokens="characters"), "data.target")
    how = encoders({"target": tokens}, {"target": 99})
    cached(long, how, folder=tmp_path)
    before = pyarrow.total_allocated_bytes()
    table = cached(long, how, folder=tmp_path)
    flat, offsets = table.ids("target")
    assert (flat.dtype.name, offsets.dtype.name) == ("int32", "int64")
    assert (len(flat), len(offsets)) == (500_000, 50_001)
    assert not flat.flags.owndata
    assert not flat.flags.writeable
    assert flat.ctypes.data == table.ids("target")[0].ctypes.data
    assert pyarrow.total_allocated_bytes() - before < 100_000  # the ids alone are 2 MB
    mapped = [
        [int(end, 16) for end in line.split()[0].split("-")]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if str(tmp_path) in line
    ]
    assert any(low <= flat.ctypes.data < high for low, high in mapped)


def test_tokenized_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    monkeypatch.setattr(TextTokenizer, "encode_flat", lambda *_: pytest.fail("tokenized again"))
    assert made(tmp_path).texts("source") == SOURCES
    assert len(entries(tmp_path)) == 1


def test_chunks_do_not_change_the_key(tmp_path: Path) -> None:
    made(tmp_path)
    whole = examples()
    parts = pyarrow.concat_tables(
        [whole.table.slice(0, 1), whole.table.slice(1, 0), whole.table.slice(1)]
    )
    table = made(tmp_path, Examples(parts, 0, "a test"))
    assert len(entries(tmp_path)) == 1
    assert table.texts("source") == SOURCES


def test_every_input_changes_the_key(tmp_path: Path) -> None:
    tables = [
        made(tmp_path),
        made(tmp_path, examples([*SOURCES[:3], "a"])),
        made(tmp_path, examples([SOURCES[0] + SOURCES[1][:1], " ", *SOURCES[2:]])),
        made(tmp_path, tokens=TOKENS | {"source": words(["a b"])}),
        made(tmp_path, tokens={"target": TOKENS["target"]}),
        made(tmp_path, limits=LIMITS | {"source": 3}),
    ]
    assert len(entries(tmp_path)) == len(tables)
    renamed = examples().table.rename_columns(["source", "target", "links", "line"])
    made(tmp_path, Examples(renamed, 0, "a test"))
    later = examples().table.set_column(3, "line", pyarrow.array([5, 6, 7, 8]))
    assert made(tmp_path, Examples(later, 0, "a test")).line(0) == 5
    assert len(entries(tmp_path)) == len(tables) + 2


def test_a_new_form_is_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path)
    monkeypatch.setattr(cache, "FORMAT", cache.FORMAT + 1)
    made(tmp_path)
    assert len(entries(tmp_path)) == 2


def test_whatever_is_damaged_is_made_again(tmp_path: Path) -> None:
    want = row_ids(made(tmp_path), "source")
    (entry,) = entries(tmp_path)
    parts = {path.name: path.read_bytes() for path in entry.iterdir()}
    assert set(parts) == {"index.json", "texts.arrow", "0.ids", "0.npy", "1.ids", "1.npy"}
    other = made(tmp_path / "other", limits=LIMITS | {"source": 1})
    assert row_ids(other, "source") != want
    (another,) = entries(tmp_path / "other")
    for name, whole in parts.items():
        middle = len(whole) // 2
        changed = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
        (entry / name).unlink()  # what is mapped from it stays as it is
        parts_of_it = whole[:middle], whole[:-1], changed
        for content in (b"", b"[]", b"{}", *parts_of_it, (another / name).read_bytes()):
            (entry / name).write_bytes(content)
            table = made(tmp_path)
            assert row_ids(table, "source") == want, name
            assert table.texts("source") == SOURCES
        (entry / name).unlink()
        assert row_ids(made(tmp_path), "source") == want
    assert {path.name: path.read_bytes() for path in entry.iterdir()} == parts


def test_what_is_no_entry_is_set_aside(tmp_path: Path) -> None:
    """A file where the folder of an entry should be; a folder where a file of it should be."""
    want = row_ids(made(tmp_path), "source")
    (entry,) = entries(tmp_path)
    (entry / "0.ids").unlink()
    (entry / "0.ids" / "inside").mkdir(parents=True)
    assert row_ids(made(tmp_path), "source") == want
    assert (entry / "0.ids").is_file()
    entry.rename(tmp_path / "moved")
    entry.write_text("mine")
    assert row_ids(made(tmp_path), "source") == want
    assert entry.is_dir()
    assert [aside.read_text() for aside in tmp_path.glob(".aside-*")] == ["mine"]


BUILD = """
import sys, time
from pathlib import Path
from sixjars.data.fields.text import TextSettings
from sixjars.data.storage.cache import Examples, cached
from sixjars.data.text.tokenizer import TextEncoding
from sixjars.data.text.tokenizer import TextTokenizer
texts = [f"text number {n} of many" for n in range(20000)]
tokens = {"target": TextTokenizer.trained(texts, TextSettings(), "data.target")}
found = Examples.of({"target": texts}, where="a test")
Path(sys.argv[1], sys.argv[2]).touch()
while not Path(sys.argv[1], "go").exists():
    time.sleep(0.001)
how = {"target": TextEncoding("target", tokens["target"], 50, "none", False)}
table = cached(found, how, folder=Path(sys.argv[1], "cache"))
flat, offsets = table.ids("target")
row = 12345
print(len(table), tokens["target"].decode(flat[offsets[row] : offsets[row + 1]].tolist()))
"""


def test_two_processes_at_once(tmp_path: Path, warm_python: str) -> None:
    both = [
        subprocess.Popen(
            [warm_python, "-c", BUILD, str(tmp_path), name], stdout=subprocess.PIPE, text=True
        )
        for name in ("one", "two")
    ]
    for name in ("one", "two"):
        wait_for(tmp_path / name)
    (tmp_path / "go").touch()
    for process in both:
        said, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert said == "20000 text number 12345 of many\n"
    assert len(entries(tmp_path / "cache")) == 1


SLOW = """
import sys, time
from pathlib import Path
from sixjars.data.fields.text import TextSettings
from sixjars.data.storage import cache
from sixjars.data.text.tokenizer import TextEncoding
from sixjars.data.text.tokenizer import TextTokenizer
texts = ["a b"] * 10
tokens = {"target": TextTokenizer.trained(texts, TextSettings(), "data.target")}
def stuck(batch):
    Path(sys.argv[1], "writing").touch()
    time.sleep(60)
cache._sum = stuck
found = cache.Examples.of({"target": texts}, where="a test")
how = {"target": TextEncoding("target", tokens["target"], 5, "none", False)}
cache.cached(found, how, folder=Path(sys.argv[1], "c"))
"""


def test_a_kill_leaves_no_half_file(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(tmp_path)])
    wait_for(tmp_path / "writing")
    process.kill()
    process.wait()
    left = entries(tmp_path / "c")
    assert [path.is_dir() and path.name.startswith(".making-") for path in left] == [True]
    other = tmp_path / "c" / ".making-elsewhere"
    other.mkdir()
    made(tmp_path / "c")
    assert not left[0].exists()  # whoever was at work there has ended
    assert other.exists()  # of another machine, so that is not known
    os.utime(other, (time.time() - 2 * 24 * 3600,) * 2)
    made(tmp_path / "c", limits=LIMITS | {"source": 1})
    assert not other.exists()
    assert all(len(path.name) == 64 and path.is_dir() for path in entries(tmp_path / "c"))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (
            errno.ENOSPC,
            "there is no space left; make room (sixjars cache --prune GB) or point SIXJARS_CACHE "
            "elsewhere.",
        ),
        (errno.EROFS, "Read-only file system; set SIXJARS_CACHE to a folder that can be written."),
    ],
)
def test_trouble_with_the_disk(
    number: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(DataError) as caught:
        made(tmp_path)
    assert str(caught.value) == f"Encoded data cannot be kept in {tmp_path}: {reason}"
    assert entries(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
@pytest.mark.parametrize("name", ["0.ids", "1.npy", "texts.arrow"])
def test_a_disk_that_is_really_full(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Path.mkdir

    def with_a_full_file(folder: Path, *more: Any, **others: Any) -> None:
        whole(folder, *more, **others)
        if folder.parent.name.startswith(".making-"):
            (folder / name).symlink_to("/dev/full")

    monkeypatch.setattr(Path, "mkdir", with_a_full_file)
    with pytest.raises(DataError, match="there is no space left"):
        made(tmp_path)
    assert entries(tmp_path) == []


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    """The cache folder itself is somebody's choice, so what is there is not set aside."""
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match=r"cannot be kept in .*file: .*; set SIXJARS_CACHE"):
        made(tmp_path / "file")
    assert (tmp_path / "file").is_file()


def test_a_disk_that_forgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_opened", lambda *_: None)
    with pytest.raises(DataError) as caught:
        made(tmp_path)
    told = f"The cache in {tmp_path} cannot be read back; is the disk damaged? Set SIXJARS_CACHE."
    assert str(caught.value) == told
