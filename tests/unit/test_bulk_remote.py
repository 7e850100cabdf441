"""`sixjars predict` of remote storage: the same answers as of local files. `file://` takes the road of `s3://`."""

import tempfile
from pathlib import Path

import pyarrow.parquet
import pytest

from sixjars.bulk import remote
from sixjars.bulk.remote import InputFolder, RemoteStorage
from sixjars.bulk.sources import inputs_of
from sixjars.errors import DataError

from .conftest import Call
from .predicting import WORDS, written
from .test_bulk import rows_of, there


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files, one of them with an odd name; and a place of its own for copies, which must be empty at the end."""
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    for name in ("a.parquet", "b #1%20?.csv.gz", "more/c.txt", "more/deep/a.parquet"):
        written(tmp_path / "in" / name)
    for name in ("_SUCCESS.txt", ".d.txt", "more/e.pdf"):
        written(tmp_path / "in/more/c.txt").replace(tmp_path / "in" / name)
    written(tmp_path / "in/more/c.txt")
    return tmp_path / "in"


GLOBS = ["", "/", "/*.parquet", "/**/*.parquet", "/b*", "/more/c.txt", "/m?r[e]/**", "/.d*"]


@pytest.mark.parametrize("given", GLOBS)
def test_files_are_those_of_this_machine(given: str, folder: Path, tmp_path: Path) -> None:
    here, far = (
        inputs_of(f"{start}{folder}{given}", tmp_path / "out") for start in ("", "file://")
    )
    assert (far.root, list(far.sizes.items())) == (f"file://{here.root}", list(here.sizes.items()))


def test_answers_are_those_of_local_files(
    folder: Path, call: Call, run: Path, tmp_path: Path
) -> None:
    """By two jobs, and when half-done work goes on; no copy is left."""
    here, far = tmp_path / "here", tmp_path / "far"
    local = call("predict", run, "--input", folder, "--output", here, "--part-rows", 3)
    begun = ("predict", run, "--input", f"file://{folder}/", "--output", far)
    for shard in ("1/2", "2/2"):
        said = call(*begun, "--part-rows", 3, "--shard", shard)
        assert said.code == local.code == 0
    expected = f"note: left out because of the ending: 1 file in file://{folder}/"
    assert said.err.splitlines()[0] == expected
    assert there(far) == there(here)
    (far / there(far)[0]).unlink()
    again = call(*begun, "--resume")
    counts = f"rows answered: 3; files written: 1; in {far}"
    assert (again.code, again.err.splitlines()[-1]) == (0, counts)
    assert rows_of(far) == rows_of(here)
    exact = [name for name in there(far) if not name.endswith(".gz")]  # which has the time in it
    assert len(exact) == 9
    for name in (*exact, "parts.json"):
        assert (far / name).read_bytes() == (here / name).read_bytes()
    assert not list((tmp_path / "copies").iterdir())


def test_rows_of_parquet_are_counted_without_a_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "_copy", None)
    with InputFolder(f"file://{folder}").file("a.parquet", outline=True) as (path, left_out):
        table = pyarrow.parquet.read_table(path)
        assert (table.column_names, table.num_rows) == (["id", "roman", "note"], 0)
    assert left_out == len(WORDS)


def test_what_cannot_be_read_is_a_sentence(
    folder: Path, call: Call, run: Path, tmp_path: Path
) -> None:
    def said(given: str) -> str:
        return call("predict", run, "--input", given, "--output", tmp_path / "o").sentence

    at, check = f"file://{folder}", "check its name, the credentials and the network."
    assert said(f"{at}/none.csv") == f"{at}/none.csv does not exist."
    assert said(f"{at}/*.xml") == f"no file fits --input {at}/*.xml."
    assert said(f"{at}/more/none*/") == f"no file fits --input {at}/more/none*/."
    (folder / "none").mkdir()
    assert said(f"{at}/none").startswith(
        f"folder {at}/none has no file to read: none ends in .csv, .tsv, "
    )
    assert said("foo://x/y.csv") == (
        f"foo://x/y.csv cannot be read: Unrecognized filesystem type in URI: foo://x/; {check}"
    )
    (folder / "none/bad.parquet").write_text("no table")
    bad = said(f"{at}/none")
    assert bad.startswith(f"{at}/none/bad.parquet cannot be read: ")
    assert bad.endswith(check)
    (folder / "none/bad.parquet").unlink()
    (folder / "none/no.csv").write_text("id,word\n1,ghar\n")
    expected = f"{at}/none/no.csv has no column 'roman', which this run reads; it has 'id', 'word'."
    assert said(f"{at}/none") == expected
    (folder / "none/no.csv").write_text("id,roman\n")
    assert said(f"{at}/none") == f"{at}/none/no.csv has no rows."


def test_answers_are_not_written_to_remote_storage(folder: Path, call: Call, run: Path) -> None:
    for given in (folder, folder / "more/c.txt"):
        assert call("predict", run, "--input", given, "--output", "s3://bucket/out").sentence == (
            "--output s3://bucket/out is remote storage, but answers are written to a local folder; name one."
        )


def test_a_name_that_leaves_the_folder_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object of S3 may be called so."""
    storage = RemoteStorage(f"file://{folder}")
    monkeypatch.setattr(remote, "_NO_NAMES", {"a.parquet"})
    with pytest.raises(DataError) as caught:
        storage.listed()
    assert str(caught.value).endswith("a.parquet', which cannot be the name of a file; rename it.")
