"""Images with classes, as people have them: a folder for each class, or a table of files and labels."""

import csv
import json
import shutil
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from sixjars.runs.recipes import read_recipe
from tests.conftest import Call

CLASSES = {"cat": (200, 60, 60), "dog": (60, 60, 200)}
NAMES = ["1.jpg", "2.JPG", "3.png", "a photo.jpeg", "5.jpg", "6.jpg"]
FEW = [
    "model.encoder.backbone={name: small, widths: [4, 6]}",
    "data.image.size=16",
    "learning.steps=2",
]
FEW += ["learning.batch_examples=4", "learning.folds=null", "data.valid=0.3"]


@pytest.fixture(autouse=True)
def photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve in a folder for each class, with what systems leave beside them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    noise = np.random.default_rng(0)
    for name, shade in CLASSES.items():
        place = Path("photos") / name
        place.mkdir(parents=True)
        for file in NAMES:
            pixels = (np.array(shade) + noise.integers(0, 50, (30, 40, 3))).astype(np.uint8)
            Image.fromarray(pixels).save(place / file, "PNG" if file.endswith("png") else "JPEG")
        (place / ".DS_Store").write_bytes(b"\0")


def rows() -> list[tuple[str, str]]:
    return [(f"{name}/{file}", name) for name in CLASSES for file in NAMES]


def table(
    header: Sequence[str], found: Sequence[Sequence[object]], file: str = "photos/labels.csv"
) -> str:
    with Path(file).open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *found] if header else found)
    return file


def used(call: Call, data: str) -> dict[str, object]:
    """Everything that people do with such files; the data section of the recipe."""
    said = call("new", "new.yaml", "--task", "image_classification", "--data", data)
    assert said.code == 0, said
    trained = call("train", "new.yaml", *FEW, "--out", "run", "--device", "cpu")
    assert trained.code == 0, trained
    assert call("evaluate", "run").code == 0
    predicted = call("predict", "run", "photos/dog")
    assert predicted.code == 0, predicted
    assert len(predicted.out.splitlines()) == len(NAMES)
    assert {line.split("\t")[1] for line in predicted.out.splitlines()} <= set(CLASSES)
    read_recipe("new.yaml")
    written: dict[str, object] = yaml.safe_load(Path("new.yaml").read_text(encoding="utf-8"))[
        "data"
    ]
    return written


def test_a_folder_for_each_class(call: Call) -> None:
    data = used(call, "photos")
    assert data["format"] == "folders"
    assert data["train"] == "photos"


def test_a_zip_of_such_folders(call: Call) -> None:
    with zipfile.ZipFile("photos.zip", "w") as packed:
        for path in Path("photos").rglob("*.*"):
            packed.write(path, path.relative_to("photos"))
    assert used(call, "photos.zip")["format"] == "folders"


@pytest.mark.parametrize(
    ("header", "columns", "chosen"),
    [
        (("file", "label"), (0, 1), ("file", "label")),
        (("label", "filename"), (1, 0), ("filename", "label")),
        (("id", "image_path", "species"), (2, 0, 1), ("image_path", "species")),
        ((), (0, 1), (1, 2)),
    ],
)
def test_a_table_of_files_and_labels(
    header: tuple[str, ...],
    columns: tuple[int, ...],
    chosen: tuple[str | int, str | int],
    call: Call,
) -> None:
    found = [[(*row, number)[column] for column in columns] for number, row in enumerate(rows())]
    data = used(call, table(header, found))
    image, label = data["image"], data["label"]
    assert isinstance(image, dict)
    assert isinstance(label, dict)
    assert (image["column"], label["column"]) == chosen
    assert (data["folder"], data["train"], image["media"]) == ("photos", "labels.csv", ".")


def test_several_classes_of_an_image(call: Call) -> None:
    lines = [json.dumps({"file": file, "labels": [name, "pet"]}) for file, name in rows()]
    Path("photos/labels.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = call(
        "new", "new.yaml", "--task", "image_classification", "--data", "photos/labels.jsonl"
    )
    assert said.code == 0, said
    assert "multi_label: true" in Path("new.yaml").read_text(encoding="utf-8")


def new(call: Call, data: str, task: str = "image_classification") -> str:
    """What `new` says."""
    Path("new.yaml").unlink(missing_ok=True)
    return call("new", "new.yaml", "--task", task, "--data", data).err


def test_images_that_cannot_be_read_are_named_before_training(call: Call) -> None:
    Path("photos/cat/note.jpg").write_text("not an image")
    assert (
        "1 of 13 files cannot be used, so the recipe says `on_bad_row: skip` "
        "(error stops there, skip leaves them out). cat/note.jpg is not an image, or damaged from its first bytes; "
    ) in new(call, "photos")
    whole = Path("photos/dog/1.jpg").read_bytes()
    Path("photos/dog/1.jpg").write_bytes(whole[: len(whole) // 2])
    told = new(call, "photos")
    assert "2 of 13 files cannot be used, so the recipe says `on_bad_row: error` (" in told
    assert "dog/1.jpg is broken or cut off: " in told
    assert "on_bad_row: error\n" in Path("new.yaml").read_text(encoding="utf-8")


def test_files_that_are_not_there_are_named_before_training(call: Call) -> None:
    """With another ending they may be."""
    for number in range(4):
        np.save(f"photos/p{number}.npy", np.zeros(4, np.float32))
    found = [(f"p{number}.jpg", "cat" if number % 2 else "dog") for number in range(4)]
    told = new(call, table(("file", "label"), found))
    assert "4 of 4 files cannot be used" in told
    assert "There is no file 'p0.jpg' in photos, but 'p0.npy' is there; is that one meant? " in told
    assert told.count("is that one meant?") == 3
    assert " ...\n" in told
    trained = call("train", "new.yaml", *FEW, "--device", "cpu")
    assert (
        "line 2: the image: There is no file 'p0.jpg' in photos, but 'p0.npy' is there; is that one"
        in trained.err
    )


def test_paths_of_windows(call: Call) -> None:
    used(call, table(("file", "label"), [(file.replace("/", "\\"), name) for file, name in rows()]))
    said = call("predict", "run", "--input", "photos/labels.csv")
    assert said.code == 0, said
    assert len(said.out.splitlines()) == len(rows())


def test_endings_in_capitals(call: Call) -> None:
    used(call, "photos")
    assert len(call("predict", "run", "photos/dog/*.jpg").out.splitlines()) == 4
    said = call("predict", "run", "photos/dog/1.jpg", "--pictures", "drawn")
    assert said.sentence == (
        "--pictures draws attention, but run has none; its bridge is of another kind: "
        "train again with 'model.bridge={kind: pooling}'."
    )
    assert (
        call(
            "train",
            "new.yaml",
            *FEW,
            "model.bridge={kind: pooling}",
            "--out",
            "seen",
            "--device",
            "cpu",
        ).code
        == 0
    )
    assert call("predict", "seen", "photos/dog/1.jpg", "--pictures", "drawn").code == 0


def test_photographs_without_labels_or_captions(call: Call) -> None:
    assert new(call, "photos", "image_captioning") == (
        "sixjars: photos is a folder; image_captioning needs a file with image, captions in each row.\n"
    )
    assert new(call, "photos/dog") == (
        "sixjars: photos/dog has no folders, so its files have no labels; put the files of each label into a folder "
        "with its name, or give a table that names each file and its label.\n"
    )


def test_a_file_name_without_its_ending_among_others(call: Call) -> None:
    """One that was mistyped does not make the column one of texts."""
    photo = next(
        path
        for path in sorted(Path("photos").rglob("*.*"))
        if path.suffix.lower() in {".jpg", ".png"}
    )
    names = [f"IMG_{at}{photo.suffix}" for at in range(14)]
    for name in names:
        shutil.copy(photo, Path("photos") / name)
    lines = [
        f"{name};a photo of number {at} in the garden"
        for at, name in enumerate(["IMG_0", *names[1:]])
    ]
    Path("photos/captions.csv").write_text(
        "\n".join(["Dateiname;Beschreibung", *lines]) + "\n", encoding="utf-8"
    )
    said = call(
        "new", "captions.yaml", "--task", "image_captioning", "--data", "photos/captions.csv"
    )
    assert said.code == 0, said
    assert (
        f"There is no file 'IMG_0' in photos, but '{names[0]}' is there; is that one meant?"
        in said.err + said.out
    )
    found = yaml.safe_load(Path("captions.yaml").read_text(encoding="utf-8"))["data"]
    assert found["image"]["column"] == "Dateiname"
