"""Files that a table names as another system writes them."""

from pathlib import Path
from unicodedata import normalize

import pytest

from sixjars.data.media.files import MediaFiles
from sixjars.errors import DataError

NAME = "Ürlaub 2024/Mädchen & Hund.png"


@pytest.mark.parametrize(("stored", "written"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_an_umlaut_is_one_character_or_two(stored: str, written: str, tmp_path: Path) -> None:
    """They look the same, so a sentence that there is no such file would help nobody."""
    path = tmp_path / normalize(stored, NAME)  # type: ignore[arg-type]
    path.parent.mkdir()
    path.write_bytes(b"here")
    found, name = MediaFiles([tmp_path], memory=None), normalize(written, NAME)  # type: ignore[arg-type]
    for one in (name, name.replace("/", "\\"), str(tmp_path / name)):
        assert found.has(one)
        with found.open(one) as file:
            assert file.read() == b"here"


@pytest.mark.parametrize("name", ["summer/img 1.JPG", "SUMMER/IMG 1.jpg", "summer\\IMG 1.jpg"])
def test_a_name_in_another_case_is_told_of(name: str, tmp_path: Path) -> None:
    (tmp_path / "Summer").mkdir()
    (tmp_path / "Summer" / "IMG 1.jpg").write_bytes(b"here")
    if (tmp_path / "SUMMER").exists():
        pytest.skip("is for file systems that tell upper from lower case")
    files = MediaFiles([tmp_path], memory=None)
    with pytest.raises(DataError) as caught:
        files.open(name)
    assert str(caught.value) == (
        f"There is no file {name!r} in {tmp_path}, but 'Summer/IMG 1.jpg' is there; is that one "
        "meant?"
    )
    told = r"; 'media' names the folders and \.zip files to look in\.$"
    with pytest.raises(DataError, match=told):
        files.open("summer/img 2.jpg")


def test_a_folder_that_may_not_be_listed_is_no_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> list[str]:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.listdir", refused)
    told = r"^There is no file 'a\.jpg' in .*; 'media' names the folders"
    with pytest.raises(DataError, match=told):
        MediaFiles([tmp_path], memory=None).open("a.jpg")
