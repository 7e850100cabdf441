"""A folder for each label: on the disk or in a .zip."""

import os
import zipfile
from pathlib import Path

import pytest

from sixjars.recipe.data import Column
from sixjars_runtime.images import IMAGE_ENDINGS
from sixjars_runtime.videos import VIDEO_ENDINGS

from .rows import readers, with_lines

IMAGES: dict[str, Column] = {"image": "image", "label": "label"}
VIDEOS: dict[str, Column] = {"video": "video", "label": "label"}
NAMES = [
    "cat/2.JPG",
    "cat/10.png",
    "cat/more/3.webp",
    "a cat/1.jpeg",
    "dog/moves.gif",
    "dog/walk.mp4",
    "dog/notes.txt",
    "dog/.hidden.jpg",
    ".cache/x.jpg",
    "__MACOSX/cat/2.jpg",
    "read me.txt",
]
WANTED = [
    ("a cat/1.jpeg", "a cat", "1"),
    ("cat/10.png", "cat", "2"),
    ("cat/2.JPG", "cat", "3"),
    ("cat/more/3.webp", "cat", "4"),
    ("dog/moves.gif", "dog", "5"),
]
VIDEO_ROWS = [("dog/moves.gif", "dog", "1"), ("dog/walk.mp4", "dog", "2")]


reading, message = readers(IMAGES, format="folders")


def laid_out(folder: Path, place: str, names: list[str]) -> Path:
    """Empty files with these names, in a folder or in a .zip."""
    path = folder / place
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as packed:
            for name in names:
                packed.writestr(name, b"")
        return path
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).touch()
    return path


@pytest.mark.parametrize("place", ["train", "train.zip"])
def test_a_folder_for_each_label(place: str, tmp_path: Path) -> None:
    path = laid_out(tmp_path, place, NAMES)
    found = reading(tmp_path, place)
    assert (with_lines(found), found.skipped, found.where) == (WANTED, 0, str(path))
    assert with_lines(reading(tmp_path, place, VIDEOS)) == VIDEO_ROWS
    assert with_lines(reading(tmp_path, place, filter={"label": "cat"})) == WANTED[1:4]
    labels = with_lines(reading(tmp_path, place, {"label": "label"}))
    assert [label for label, _ in labels] == ["a cat", "cat", "cat", "cat", "dog", "dog"]


def test_a_label_may_be_a_link(tmp_path: Path) -> None:
    elsewhere = laid_out(tmp_path, "elsewhere", ["1.jpg", "deep/2.jpg"])
    path = laid_out(tmp_path, "train", ["cat/1.jpg"])
    (path / "dog").symlink_to(elsewhere)
    (elsewhere / "round").symlink_to(path)
    assert [row[0] for row in with_lines(reading(tmp_path, "train"))] == [
        "cat/1.jpg",
        "dog/1.jpg",
        "dog/deep/2.jpg",
    ]


@pytest.mark.parametrize("place", ["train", "train.zip"])
def test_a_file_without_a_label(place: str, tmp_path: Path) -> None:
    path = laid_out(tmp_path, place, ["cat/1.jpg", "cover.jpg", "dog/1.jpg"])
    expected = f"{path}, file 2: 'cover.jpg' lies in no folder, so it has no label."
    assert message(tmp_path, place) == expected
    found = reading(tmp_path, place, on_bad_row="skip")
    assert (with_lines(found), found.skipped) == (
        [("cat/1.jpg", "cat", "1"), ("dog/1.jpg", "dog", "3")],
        1,
    )


def test_a_name_that_is_no_text(tmp_path: Path) -> None:
    path = laid_out(tmp_path, "train", ["cat/1.jpg"])
    try:
        (path / "cat" / os.fsdecode(b"2\xff.jpg")).touch()
    except OSError:
        pytest.skip("this disk refuses such names")
    expected = f"{path}, file 2: the name 'cat/2\\udcff.jpg' is not UTF-8; rename the file."
    assert message(tmp_path, "train") == expected
    found = reading(tmp_path, "train", on_bad_row="skip")
    assert (with_lines(found), found.skipped) == ([("cat/1.jpg", "cat", "1")], 1)


HELP = "put the files of each label into a folder with its name."


@pytest.mark.parametrize("place", ["train", "train.zip"])
def test_nothing_that_counts(place: str, tmp_path: Path) -> None:
    path = laid_out(tmp_path, place, ["cat/notes.txt", "cat/walk.mp4"])
    assert (
        message(tmp_path, place)
        == f"{path} has no images ({' '.join(sorted(IMAGE_ENDINGS))}); {HELP}"
    )
    path = laid_out(tmp_path / "other" if place == "train" else tmp_path, place, ["cat/1.jpg"])
    assert (
        message(path.parent, place, VIDEOS)
        == f"{path} has no videos ({' '.join(sorted(VIDEO_ENDINGS))}); {HELP}"
    )
    path = laid_out(tmp_path, "empty" + Path(place).suffix, [])
    path.touch() if path.suffix else path.mkdir()
    both = " ".join(sorted(IMAGE_ENDINGS | VIDEO_ENDINGS))
    told = message(tmp_path, path.name, {"label": "label"})
    assert told == f"{path} has no images or videos ({both}); {HELP}"


@pytest.mark.parametrize("place", ["train", "train.zip"])
def test_one_folder_around_all(place: str, tmp_path: Path) -> None:
    path = laid_out(tmp_path, place, ["UCF/cat/1.jpg", "UCF/dog/2.jpg"])
    assert message(tmp_path, place) == (
        f"{path} has one folder, 'UCF', and all files are in folders below it; "
        "the folders of the labels must be at the top."
    )


def test_folders_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = laid_out(tmp_path, "train", ["cat/1.jpg"])
    assert (
        message(tmp_path, "trian") == f"{tmp_path / 'trian'} does not exist. Did you mean 'train'?"
    )
    (tmp_path / "a.tsv").touch()
    assert message(tmp_path, "a.tsv") == (
        f"{tmp_path / 'a.tsv'} is a file; format folders needs a folder or a .zip with one folder for each label."
    )
    (tmp_path / "a.zip").write_bytes(b"no zip")
    expected = f"{tmp_path / 'a.zip'} is not a .zip file or is damaged: File is not a zip file."
    assert message(tmp_path, "a.zip") == expected
    assert message(tmp_path, {"a": "train", "b": "train"}) == (
        "Format folders is one folder (or .zip), but a, b are given; name one folder."
    )
    assert message(tmp_path, "train", {"target": "caption"}) == (
        f"{path}: column 'caption' is unknown. Known: image, label, video."
    )

    def refuse(given: object, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(given))

    monkeypatch.setattr(os, "scandir", refuse)
    assert message(tmp_path, "train") == f"{path / 'cat'} cannot be read: Permission denied."
    monkeypatch.setattr(Path, "iterdir", refuse)
    assert message(tmp_path, "train") == f"{path} cannot be read: Permission denied."
    laid_out(tmp_path, "b.zip", ["cat/1.jpg"])
    monkeypatch.setattr(zipfile, "ZipFile", refuse)
    assert message(tmp_path, "b.zip") == f"{tmp_path / 'b.zip'} cannot be read: Permission denied."
