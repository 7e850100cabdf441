"""Captions of images as others write them down: COCO and Flickr8k."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from sixjars.recipe.data import Column, Files

from .rows import readers, with_lines

CAPTIONS: dict[str, Column] = {"image": "image", "target": "caption"}


reading, message = readers(CAPTIONS, format="coco")
of_flickr, refused_flickr = readers(CAPTIONS, format="flickr8k")


# COCO


IMAGES = [{"id": 7, "file_name": "seven.jpg", "width": 9}, {"id": 5, "file_name": "five ❤.jpg"}]
ANNOTATIONS = [
    {"image_id": 5, "id": 1, "caption": "a five"},
    {"image_id": 7, "id": 2, "caption": "a 7"},
    {"image_id": 5, "id": 3, "caption": "five again"},
]


def coco(
    folder: Path, images: Any = IMAGES, annotations: Any = ANNOTATIONS, name: str = "a.json"
) -> Path:
    whole = {"info": {"year": 2014}, "images": images, "annotations": annotations}
    content = json.dumps(whole, ensure_ascii=False).encode()
    (folder / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return folder / name


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_coco(name: str, tmp_path: Path) -> None:
    path = coco(tmp_path, name=name)
    found = reading(tmp_path, name)
    wanted = [
        ("five ❤.jpg", "a five", "1"),
        ("seven.jpg", "a 7", "2"),
        ("five ❤.jpg", "five again", "3"),
    ]
    assert (with_lines(found), found.skipped, found.where) == (wanted, 0, str(path))
    assert with_lines(reading(tmp_path, name, filter={"image": "seven.jpg"})) == wanted[1:2]
    assert with_lines(reading(tmp_path, name, {"target": "caption"}))[2] == ("five again", "3")


def test_coco_agrees_with_its_own_library(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    library = pytest.importorskip("pycocotools.coco")
    images = [{"id": number * 3, "file_name": f"{number}.jpg"} for number in range(20)]
    annotations = [
        {"image_id": n * n % 20 * 3, "id": n, "caption": f"caption {n}"} for n in range(50)
    ]
    path = coco(tmp_path, images, annotations)
    theirs = library.COCO(str(path))
    capsys.readouterr()
    wanted = [
        (theirs.loadImgs(one["image_id"])[0]["file_name"], one["caption"])
        for one in theirs.loadAnns(theirs.getAnnIds())
    ]
    assert [row[:2] for row in with_lines(reading(tmp_path, "a.json"))] == wanted


BAD_ANNOTATIONS: dict[str, tuple[Any, str]] = {
    "no object": ("text", 'is not an object like {"image_id": 1, "caption": "..."}.'),
    "no caption": ({"image_id": 5}, "has no key 'caption'; is this a file of captions?"),
    "no image": ({"caption": "x"}, "has no key 'image_id'; is this a file of captions?"),
    "unknown image": (
        {"image_id": 6, "caption": "x"},
        "is about image 6, which is not in 'images'.",
    ),
    "image in a list": (
        {"image_id": ["5"], "caption": "x"},
        "is about image ['5'], which is not in 'images'.",
    ),
    "caption in a list": (
        {"image_id": 5, "caption": ["x"]},
        "column 'caption' holds a list, not text.",
    ),
    "empty caption": ({"image_id": 5, "caption": " "}, "column 'caption' is empty."),
    "null": ({"image_id": 5, "caption": None}, "column 'caption' has no value."),
    "image without a file": ({"image_id": 8, "caption": "x"}, "column 'image' has no value."),
    "image with two files": (
        {"image_id": 9, "caption": "x"},
        "column 'file_name' holds a list, not text.",
    ),
}


@pytest.mark.parametrize(("annotation", "sentence"), BAD_ANNOTATIONS.values(), ids=BAD_ANNOTATIONS)
def test_bad_annotations(annotation: Any, sentence: str, tmp_path: Path) -> None:
    images = [
        *IMAGES,
        {"id": 8},
        "x",
        {"file_name": "no id.jpg"},
        {"id": 9, "file_name": ["a", "b"]},
    ]
    path = coco(tmp_path, images, [ANNOTATIONS[0], annotation, ANNOTATIONS[2]])
    assert message(tmp_path, "a.json") == f"{path}, annotation 2: {sentence}"
    found = reading(tmp_path, "a.json", on_bad_row="skip")
    assert ([row[2] for row in with_lines(found)], found.skipped) == (["1", "3"], 1)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "is not JSON (Expecting value at line 1, column 1)"),
        (b'{"image": 1}\n{"image": 2}\n', "is not JSON (Extra data at line 2, column 1)"),
        (b"[" * 200_000, "is not JSON that can be read (too many brackets inside brackets)"),
        (b'{"images": "\xff"}', "is not UTF-8 (byte 13)"),
        (b"[]", "is not in the form of COCO"),
        (b'{"images": []}', "is not in the form of COCO"),
        (b'{"images": [], "annotations": {}}', "is not in the form of COCO"),
    ],
)
def test_what_is_not_coco(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    assert message(tmp_path, "a.json", on_bad_row="skip") == (
        f"{path} {reason}; it must be one object with the lists 'images' and 'annotations'."
    )


def test_coco_errors(tmp_path: Path) -> None:
    path = coco(tmp_path, [*IMAGES, {"id": 5, "file_name": "other.jpg"}])
    assert (
        message(tmp_path, "a.json")
        == f"{path}: two images have the id 5: 'five ❤.jpg' and 'other.jpg'."
    )
    assert message(tmp_path, {"captions": "a", "images": "b"}) == (
        "Format coco is one .json file, but files are given for captions, images; name one file."
    )
    assert message(tmp_path, "a.json", {"target": "captoin"}) == (
        f"{path}: column 'captoin' is unknown. Did you mean 'caption'? Known: caption, image."
    )
    assert "column 'split' is unknown" in message(tmp_path, "a.json", filter={"split": "train"})
    assert "column '1' is unknown" in message(tmp_path, "a.json", {"target": 1})
    assert message(tmp_path, "b.json") == f"{tmp_path / 'b.json'} does not exist."
    coco(tmp_path, annotations=[])
    assert message(tmp_path, "a.json") == f"{path} has no rows."


# Flickr8k


TOKENS = "b.jpg#0\tA b .\nb.jpg#1\tStill b .\na.jpg#0\tAn a\twith a tab\nc#1.jpg#4\tC\n"
PAIR: Files = {"captions": "tokens.txt", "images": "train.txt"}


def flickr(
    folder: Path, tokens: str = TOKENS, images: str = "c#1.jpg\n\nb.jpg \nb.jpg\n"
) -> tuple[Path, Path]:
    (folder / "tokens.txt").write_text(tokens)
    (folder / "train.txt").write_text(images)
    return folder / "tokens.txt", folder / "train.txt"


def test_flickr8k(tmp_path: Path) -> None:
    captions, images = flickr(tmp_path)
    wanted = [
        ("b.jpg", "A b .", "1"),
        ("b.jpg", "Still b .", "2"),
        ("a.jpg", "An a\twith a tab", "3"),
        ("c#1.jpg", "C", "4"),
    ]
    alone = of_flickr(tmp_path, "tokens.txt")
    assert (with_lines(alone), alone.where) == (wanted, str(captions))
    assert with_lines(of_flickr(tmp_path, {"captions": "tokens.txt"})) == wanted
    some = of_flickr(tmp_path, PAIR)
    assert (with_lines(some), some.skipped) == ([wanted[0], wanted[1], wanted[3]], 0)
    assert some.where == f"{captions} + {images}"
    assert with_lines(of_flickr(tmp_path, PAIR, filter={"image": "c#1.jpg"})) == wanted[3:]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("b.jpg#1 no tab", "is not `name.jpg#0`, a tab and a caption."),
        ("b.jpg\tno number", "is not `name.jpg#0`, a tab and a caption."),
        ("#1\tno name", "is not `name.jpg#0`, a tab and a caption."),
        ("", "the line is empty."),
        ("b.jpg#1\t", "column 'caption' is empty."),
    ],
)
@pytest.mark.parametrize("files", ["tokens.txt", PAIR], ids=["alone", "pair"])
def test_bad_captions(line: str, sentence: str, files: Files, tmp_path: Path) -> None:
    captions, _ = flickr(tmp_path, f"b.jpg#0\tB\n{line}\nb.jpg#2\tB\n", "b.jpg\n")
    assert refused_flickr(tmp_path, files) == f"{captions}, line 2: {sentence}"
    found = of_flickr(tmp_path, files, on_bad_row="skip")
    assert ([row[2] for row in with_lines(found)], found.skipped) == (["1", "3"], 1)


def test_images_without_captions(tmp_path: Path) -> None:
    captions, images = flickr(
        tmp_path, "b.jpg#0\tB\nwrong\nd.jpg#0\t\n", "b.jpg\nlost.jpg\nd.jpg\n"
    )
    images.write_bytes(images.read_bytes() + b"\xff.jpg\n")
    found = of_flickr(tmp_path, PAIR, on_bad_row="skip")
    assert (with_lines(found), found.skipped) == (
        [("b.jpg", "B", "1")],
        4,
    )  # line 2 of both files is bad
    captions.write_text("b.jpg#0\tB\nd.jpg#0\tD\n")
    assert (
        refused_flickr(tmp_path, PAIR)
        == f"{images}, line 2: 'lost.jpg' has no caption in {captions}."
    )
    images.write_bytes(b"b.jpg\n\xff.jpg\n")
    assert refused_flickr(tmp_path, PAIR) == (
        f"{images}, line 2: byte 1 of the line (0xff) is not UTF-8; save the file as UTF-8."
    )


def test_flickr8k_errors(tmp_path: Path) -> None:
    captions, _ = flickr(tmp_path)
    assert refused_flickr(tmp_path, {"captions": "tokens.txt", "image": "train.txt"}) == (
        "Format flickr8k: file 'image' is unknown. Did you mean 'images'? Known: captions, images."
    )
    assert refused_flickr(tmp_path, {"images": "train.txt"}) == (
        "Format flickr8k needs the file 'captions'; 'images' only says which of them are wanted."
    )
    assert refused_flickr(tmp_path, PAIR, {"target": "text"}) == (
        f"{captions}: column 'text' is unknown. Known: caption, image."
    )
