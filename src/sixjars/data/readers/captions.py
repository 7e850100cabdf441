"""Captions of pictures as two well-known datasets write them down: COCO and Flickr8k.

Chen et al. 2015 (https://arxiv.org/abs/1504.00325); Hodosh, Young & Hockenmaier 2013
(https://doi.org/10.1613/jair.3994). Both give a row for each caption.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy
import pyarrow

from sixjars.data.readers.jsonl import DECODER, text_of
from sixjars.data.readers.lines import Lines, lines_of, opened
from sixjars.data.readers.rows import Asked, Block, Examples, Fault, Key, Places, check_columns, sieved
from sixjars.errors import DataError, unknown

IMAGE: Final = "image"
"""The column that names the file of a picture."""
CAPTION: Final = "caption"
"""The column of what is said about it."""


def read_coco(place: Places, asked: Asked) -> Examples:
    """One file of JSON: `images`, each with `id` and `file_name`; `annotations`, each with `image_id` and `caption`.

    The rows stand in the order of the annotations, and `line` is the number of the annotation.
    """
    if isinstance(place, Mapping):
        raise DataError(f"Format coco is one .json file, but files are given for {', '.join(place)}; name one file.")
    check_columns(asked, (IMAGE, CAPTION), place)
    images, annotations = _coco_lists(place)
    names = _coco_names(images, place)
    rows, lines, faults = [], [], []
    for number, annotation in enumerate(annotations, 1):
        try:
            rows.append(_annotated(annotation, names))
            lines.append(number)
        except ValueError as error:
            faults.append(Fault(number, str(error)))
    return sieved([_block(rows, lines, faults)], asked, name=str(place), unit="annotation")


def _block(rows: list[tuple[str | None, str | None]], lines: list[int], faults: list[Fault]) -> Block:
    columns: dict[Key, Any] = {
        key: pyarrow.array((row[at] for row in rows), pyarrow.string()) for at, key in enumerate((IMAGE, CAPTION))
    }
    return Block(columns, numpy.array(lines, dtype=numpy.int64), faults)


def _coco_lists(path: Path) -> tuple[list[Any], list[Any]]:
    with opened(path) as stream:
        content = stream.read()
    try:
        parsed = DECODER.decode(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        reason = f"is not JSON ({error.msg} at line {error.lineno}, column {error.colno})"
    except UnicodeDecodeError as error:
        reason = f"is not UTF-8 (byte {error.start + 1})"
    except RecursionError:
        reason = "is not JSON that can be read (too many brackets inside brackets)"
    else:
        found = parsed if isinstance(parsed, dict) else {}
        images, annotations = found.get("images"), found.get("annotations")
        if isinstance(images, list) and isinstance(annotations, list):
            return images, annotations
        reason = "is not in the form of COCO"
    raise DataError(f"{path} {reason}; it must be one object with the lists 'images' and 'annotations'.")


def _coco_names(images: list[Any], path: Path) -> dict[str, Any]:
    """The file of each picture, by its id; numbers are text here, as they are written."""
    names: dict[str, Any] = {}
    for image in images:
        if isinstance(image, dict) and isinstance(image.get("id"), str):
            name = image.get("file_name")
            if names.setdefault(image["id"], name) != name:
                raise DataError(f"{path}: two images have the id {image['id']}: {names[image['id']]!r} and {name!r}.")
    return names


def _annotated(annotation: Any, names: Mapping[str, Any]) -> tuple[str | None, str | None]:
    if not isinstance(annotation, dict):
        raise ValueError('is not an object like {"image_id": 1, "caption": "..."}.')
    for key in ("image_id", "caption"):
        if key not in annotation:
            raise ValueError(f"has no key {key!r}; is this a file of captions?")
    image = annotation["image_id"]
    if not isinstance(image, str) or image not in names:
        raise ValueError(f"is about image {image}, which is not in 'images'.")
    return text_of(names[image], "file_name"), text_of(annotation["caption"], "caption")


def read_flickr8k(place: Places, asked: Asked) -> Examples:
    """Lines `name.jpg#0<TAB>caption`, and optionally a file with the names of the pictures that are wanted.

    `{captions: Flickr8k.token.txt, images: Flickr_8k.trainImages.txt}`, or the file of captions alone. The rows stand
    in the order of the captions, and `line` is the line of the caption.
    """
    places = dict(place) if isinstance(place, Mapping) else {"captions": place}
    for key in places:
        if key not in ("captions", "images"):
            raise DataError(f"Format flickr8k: {unknown('file', key, ['captions', 'images'])}")
    if "captions" not in places:
        raise DataError("Format flickr8k needs the file 'captions'; 'images' only says which of them are wanted.")
    captions = places["captions"]
    check_columns(asked, (IMAGE, CAPTION), captions)
    if "images" not in places:
        return sieved((_captioned(lines, None) for lines in lines_of(captions)), asked, name=str(captions))
    asked = replace(asked, files={IMAGE: str(captions), CAPTION: str(captions)})
    blocks = _wanted_blocks(captions, places["images"])
    return sieved(blocks, asked, name=f"{captions} + {places['images']}")


def _wanted_blocks(captions: Path, images: Path) -> Iterator[Block]:
    """The captions of the pictures in a list, and then what is wrong with the list."""
    wanted: dict[str, int] = {}
    faults = []
    for lines in lines_of(images):
        for name, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
            if name.strip():
                wanted.setdefault(name.strip(), line)
        faults += [replace(fault, file=str(images)) for fault in lines.faults]
    without = dict(wanted)
    for lines in lines_of(captions):
        block = _captioned(lines, wanted)
        for name in set(block.columns[IMAGE].to_pylist()):
            without.pop(name, None)
        yield replace(block, faults=[replace(fault, file=str(captions)) for fault in block.faults])
    faults += [Fault(line, f"{name!r} has no caption in {captions}.", str(images)) for name, line in without.items()]
    yield _block([], [], faults)


def _captioned(lines: Lines, wanted: Mapping[str, int] | None) -> Block:
    rows: list[tuple[str | None, str | None]] = []
    kept: list[int] = []
    faults = list(lines.faults)
    for text, line in zip(lines.texts.to_pylist(), lines.numbers.tolist(), strict=True):
        head, tab, caption = text.partition("\t")
        name, _, number = head.rpartition("#")
        if not tab or not name or not number.isdigit():
            sentence = "is not `name.jpg#0`, a tab and a caption." if text.strip() else "the line is empty."
            faults.append(Fault(line, sentence))
        elif wanted is None or name in wanted:
            rows.append((name, caption))
            kept.append(line)
    return _block(rows, kept, faults)
