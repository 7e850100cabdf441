"""Files by name, from folders and zips: found, read by many at once, known by their content."""

import hashlib
import os
import sqlite3
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from unittest.mock import Mock

import pytest

from sixjars.data.media import files as media_files
from sixjars.data.media.files import MediaFiles
from sixjars.errors import DataError
from sixjars.progress import Reporter

CAT, DOG = b"a cat " * 1000, os.urandom(5000)


def packed(path: Path, files: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def laid_out(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def content(found: MediaFiles, name: str) -> bytes:
    with found.open(name) as file:
        return file.read()


def key(found: MediaFiles, name: str) -> str:
    """The key of one file; a sentence about it is an error."""
    keys, faults = found.keys([name])
    if faults:
        raise DataError(faults[name])
    return keys[name]


def message(call: Callable[..., object], *given: object) -> str:
    with pytest.raises(DataError) as caught:
        call(*given)
    return str(caught.value)


@pytest.mark.parametrize("how", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("limit", [1 << 26, 10])
def test_a_zip_is_read_in_place(
    how: int, limit: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # beyond it, members go to a temporary file
    monkeypatch.setattr(media_files, "_IN_MEMORY", limit)
    path = packed(tmp_path / "all.zip", {"a/cat.jpg": CAT, "dog.jpg": DOG}, how)
    found = MediaFiles([path], memory=tmp_path / "memory")
    assert content(found, "a/cat.jpg") == CAT
    with found.open("dog.jpg") as file:
        assert file.seekable()
        assert file.seek(-7, 2) == len(DOG) - 7
        assert file.read() == DOG[-7:]
        file.seek(3)
        assert file.read(4) == DOG[3:7]
        assert file.tell() == 7
    assert sorted(one.name for one in tmp_path.iterdir()) == ["all.zip"]


def test_names_of_all_sorts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = laid_out(tmp_path / "folder", {"a/cat.jpg": CAT})
    path = packed(
        tmp_path / "all.zip", {"deep/down/dog.jpg": DOG, "one/x.jpg": CAT, "two/x.jpg": DOG}
    )
    found = MediaFiles([folder, path], memory=tmp_path / "memory")
    assert content(found, "a/cat.jpg") == CAT
    assert content(found, str(folder / "a" / "cat.jpg")) == CAT
    for name in ("dog.jpg", "down/dog.jpg", "deep/down/dog.jpg"):
        assert content(found, name) == DOG
    assert content(found, "two/x.jpg") == DOG
    monkeypatch.chdir(tmp_path)
    assert content(MediaFiles([Path("folder")], memory=Path("memory")), "a/cat.jpg") == CAT
    assert content(MediaFiles([], memory=tmp_path), str(folder / "a" / "cat.jpg")) == CAT
    there = ["a/cat.jpg", "down/dog.jpg", "one/x.jpg", "x.jpg", str(folder / "a" / "cat.jpg")]
    missing = ["cat.jpg", "own/dog.jpg", "og.jpg", "a", "deep", "/no/such.jpg"]
    missing += ["", "y" * 300, "a\0b", str(folder)]
    assert [name for name in [*there, *missing] if found.has(name)] == there


def test_the_first_place_counts_and_whole_names_before_ends(tmp_path: Path) -> None:
    one = packed(tmp_path / "one.zip", {"deep/x.jpg": b"1"})
    two = packed(tmp_path / "two.zip", {"x.jpg": b"2"})
    three = laid_out(tmp_path / "three", {"x.jpg": b"3"})
    assert content(MediaFiles([one, two, three], memory=tmp_path), "x.jpg") == b"2"
    assert content(MediaFiles([one, three, two], memory=tmp_path), "x.jpg") == b"3"


def test_what_is_not_found_is_told(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "folder", {"a/cat.jpg": CAT})
    path = packed(tmp_path / "all.zip", {"one/x.jpg": CAT, "two/x.jpg": DOG})
    found = MediaFiles([folder, path], memory=tmp_path / "memory")
    hint = "'media' names the folders and .zip files to look in."
    for call in (found.open, partial(key, found)):
        assert message(call, "b.jpg") == f"There is no file 'b.jpg' in {folder}, {path}; {hint}"
        assert message(call, "") == f"There is no file '' in {folder}, {path}; {hint}"
        assert message(call, "/no/b.jpg") == "/no/b.jpg does not exist."
        assert message(call, "a") == f"a is a folder in {folder}, not a file."
        assert message(call, "two/") == f"two/ is a folder in {path}, not a file."
        assert message(call, str(folder)) == f"{folder} is a folder, not a file."
        several = f"one/x.jpg in {path}, two/x.jpg in {path}"
        told = f"x.jpg is the end of several names: {several}; write the whole name."
        assert message(call, "x.jpg") == told
    told = f"There is no file 'b.jpg' in no place at all; {hint}"
    assert message(MediaFiles([], memory=tmp_path).open, "b.jpg") == told


def test_places_that_are_none(tmp_path: Path) -> None:
    missing, text = tmp_path / "missing", tmp_path / "notes.txt"
    text.write_text("not a zip")
    hint = "'media' names the folders and .zip files to look in."
    sentence = message(lambda: MediaFiles([missing], memory=tmp_path))
    assert sentence == f"{missing} does not exist; {hint}"
    sentence = message(lambda: MediaFiles([text], memory=tmp_path))
    assert sentence == f"{text} is neither a folder nor a .zip file."
    whole = packed(tmp_path / "all.zip", {"cat.jpg": CAT}).read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(whole[:-30])
    told = f"{cut} is not a .zip file or is damaged: File is not a zip file."
    assert message(lambda: MediaFiles([cut], memory=tmp_path)) == told
    other = tmp_path / "all.data"
    other.write_bytes(whole)
    assert content(MediaFiles([other], memory=tmp_path), "cat.jpg") == CAT


def test_damaged_and_locked_members(tmp_path: Path) -> None:
    path = packed(tmp_path / "all.zip", {"cat.jpg": b"x" * 9, "dog.jpg": DOG}, zipfile.ZIP_STORED)
    whole = bytearray(path.read_bytes())
    whole[whole.index(DOG)] ^= 1
    path.write_bytes(whole)
    found = MediaFiles([path], memory=tmp_path)
    sentence = f"dog.jpg in {path} is damaged: Bad CRC-32 for file 'dog.jpg'."
    assert message(found.open, "dog.jpg") == message(key, found, "dog.jpg") == sentence
    assert content(found, "cat.jpg") == b"x" * 9
    packed(path, {"cat.jpg": CAT})
    whole = bytearray(path.read_bytes())
    whole[40:60] = bytes(20)
    path.write_bytes(whole)
    told = f"cat.jpg in {path} is damaged: Error -3 while decompressing data"
    assert message(MediaFiles([path], memory=tmp_path).open, "cat.jpg").startswith(told)
    # the bit that says so, beside the file and in the list
    for at in (6, whole.index(b"PK\x01\x02") + 8):
        whole[at] |= 1
    path.write_bytes(whole)
    told = f"cat.jpg in {path} is locked with a password; pack it again without one."
    assert message(MediaFiles([path], memory=tmp_path).open, "cat.jpg") == told


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = MediaFiles([laid_out(tmp_path / "folder", {"cat.jpg": CAT})], memory=tmp_path)

    def refuse(*_: object) -> BinaryIO:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    for call in (found.open, partial(key, found)):
        assert message(call, "cat.jpg") == "cat.jpg cannot be read: Permission denied."


def test_the_key_is_the_content(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "folder", {"cat.jpg": CAT, "same.png": CAT, "dog.jpg": DOG})
    path = packed(tmp_path / "all.zip", {"packed/cat.jpg": CAT})
    found = MediaFiles([folder, path], memory=tmp_path / "deep" / "memory")
    want = hashlib.blake2b(CAT, digest_size=16).hexdigest()
    assert len(want) == 32
    for _ in range(2):
        names = ["cat.jpg", "same.png", "packed/cat.jpg", str(folder / "cat.jpg")]
        assert [key(found, name) for name in names] == [want] * 4
        assert key(found, "dog.jpg") != want
    (folder / "cat.jpg").write_bytes(CAT + b"!")
    assert key(found, "cat.jpg") == hashlib.blake2b(CAT + b"!", digest_size=16).hexdigest()
    (folder / "dog.jpg").write_bytes(DOG[::-1])
    os.utime(folder / "dog.jpg", ns=(1, 1))
    assert key(found, "dog.jpg") == hashlib.blake2b(DOG[::-1], digest_size=16).hexdigest()


def test_the_next_run_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = laid_out(tmp_path / "folder", {"cat.jpg": CAT})
    path = packed(tmp_path / "all.zip", {"dog.jpg": DOG})
    keys = [
        key(MediaFiles([folder, path], memory=tmp_path), name) for name in ("cat.jpg", "dog.jpg")
    ]
    monkeypatch.setattr(media_files, "_hash", lambda _: pytest.fail("read again"))
    monkeypatch.chdir(tmp_path)
    again = MediaFiles([Path("folder"), Path("all.zip")], memory=tmp_path)
    assert [key(again, name) for name in ("cat.jpg", "dog.jpg")] == keys


def test_a_memory_that_cannot_be_used_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = laid_out(tmp_path / "folder", {"cat.jpg": CAT})
    want = hashlib.blake2b(CAT, digest_size=16).hexdigest()
    # a file where the folder should be
    assert key(MediaFiles([folder], memory=folder / "cat.jpg"), "cat.jpg") == want
    broken = tmp_path / "contents.sqlite"
    broken.write_bytes(b"no database " * 100)
    found = MediaFiles([folder], memory=tmp_path)
    assert key(found, "cat.jpg") == key(found, "cat.jpg") == want
    with closing(sqlite3.connect(broken)) as connection:
        assert connection.execute("SELECT key FROM contents").fetchall() == [(want,)]
        connection.execute("BEGIN EXCLUSIVE")
        connect: Any = sqlite3.connect
        monkeypatch.setattr(
            sqlite3, "connect", lambda path, timeout: connect(path, timeout=timeout / 1000)
        )
        assert key(found, "cat.jpg") == want


KEYS = """
import sys
from pathlib import Path
from sixjars.data.media.files import MediaFiles
found = MediaFiles([Path(sys.argv[1], "folder"), Path(sys.argv[1], "all.zip")], memory=Path(sys.argv[1], "memory"))
names = [f"{n}.jpg" for n in range(80)]
keys, _ = found.keys(names)
print(*[keys[name] for name in names])
"""


def test_two_processes_share_a_memory(tmp_path: Path) -> None:
    laid_out(tmp_path / "folder", {f"{n}.jpg": bytes([n]) for n in range(40)})
    packed(tmp_path / "all.zip", {f"{n}.jpg": bytes([n]) for n in range(40, 80)})
    command = [sys.executable, "-c", KEYS, str(tmp_path)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate(timeout=60)[0].split() for process in both]
    want = [hashlib.blake2b(bytes([n]), digest_size=16).hexdigest() for n in range(80)]
    assert said == [want, want]
    with closing(sqlite3.connect(tmp_path / "memory" / "contents.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM contents").fetchone() == (80,)


def test_many_threads_read_one_zip(tmp_path: Path) -> None:
    files = {f"{n}.jpg": bytes([n]) * 50_000 + os.urandom(100) for n in range(20)}
    found = MediaFiles([packed(tmp_path / "all.zip", files)], memory=tmp_path)
    wrong: list[str] = []

    def work(start: int) -> None:
        for n in range(100):
            name = f"{(start * 3 + n) % 20}.jpg"
            if content(found, name) != files[name]:
                wrong.append(name)

    threads = [threading.Thread(target=work, args=(start,)) for start in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_fork_reads_with_a_handle_of_its_own(tmp_path: Path) -> None:
    found = MediaFiles(
        [packed(tmp_path / "all.zip", {"cat.jpg": CAT}, zipfile.ZIP_STORED)], memory=tmp_path
    )
    archive: Any = found._places[0]
    before = archive._zip.fp
    archive._process = -1  # as if this were the child
    assert content(found, "cat.jpg") == CAT
    assert archive._zip.fp is not before
    assert content(found, "cat.jpg") == CAT


def test_hashing_tells_how_far_it_is_and_many_files_share_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 3 * media_files.HASHED_AT_ONCE + 5
    names = [f"{number}.jpg" for number in range(count)]
    folder = laid_out(tmp_path / "folder", {name: name.encode() for name in names})
    connect: Any = sqlite3.connect
    opened: list[Path] = []

    def counted(path: Path, **more: Any) -> Any:
        opened.append(path)
        return connect(path, **more)

    monkeypatch.setattr(sqlite3, "connect", counted)
    progress, again = Mock(spec=Reporter), Mock(spec=Reporter)
    keys, faults = MediaFiles([folder], memory=tmp_path).keys(
        [*names, "gone.jpg", "0.jpg"], progress
    )
    told = [("hashing media files", {"done": done, "total": count}) for done in range(1, count + 1)]
    assert [(call.args[0], call.kwargs) for call in progress.preparing.call_args_list] == told
    assert list(faults) == ["gone.jpg"]
    assert keys == {
        name: hashlib.blake2b(name.encode(), digest_size=16).hexdigest() for name in names
    }
    assert len(opened) == 4  # to remember: once for each 64
    opened.clear()
    assert MediaFiles([folder], memory=tmp_path).keys(names, again)[0] == keys
    assert again.preparing.call_args_list == []
    assert len(opened) == 1


def test_a_folder_where_the_memory_should_be_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = laid_out(tmp_path / "folder", {"cat.jpg": CAT})
    laid_out(tmp_path / "memory" / "contents.sqlite", {"mine.txt": b"of value"})
    want = key(MediaFiles([folder], memory=tmp_path / "memory"), "cat.jpg")
    [aside] = (tmp_path / "memory").glob(".aside-*-contents.sqlite")
    assert (aside / "mine.txt").read_bytes() == b"of value"
    monkeypatch.setattr(media_files, "_hash", lambda _: pytest.fail("read again"))
    assert key(MediaFiles([folder], memory=tmp_path / "memory"), "cat.jpg") == want
