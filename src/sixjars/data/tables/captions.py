"""Captions of images in the formats of two well-known datasets, COCO and Flickr8k.

Chen et al. 2015 (https://arxiv.org/abs/1504.00325); Hodosh, Young & Hockenmaier 2013
(https://doi.org/10.1613/jair.3994). Both give a row for each caption.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from sixjars.data.storage.cache import Examples
from sixjars.data.tables.delimited import decoded_lines
from sixjars.data.tables.json_objects import DECODER
from sixjars.data.tables.rows import (
    Places,
    ReadSettings,
    Record,
    RowFault,
    check_columns,
    kept,
    text_of,
)
from sixjars.data.text.files import opened
from sixjars_runtime.errors import DataError, shown, unknown

IMAGE: Final = "image"  # the column that names the file of an image
CAPTION: Final = "caption"  # the column with its caption


def read_coco(place: Path, wanted: ReadSettings) -> Examples:
    """Read JSON: `images` have `id` and `file_name`, `annotations` `image_id` and `caption`.

    The rows stand in the order of the annotations, and `line` is the number of the annotation.
    """
    check_columns(wanted, (IMAGE, CAPTION), place)
    images, annotations = _coco_lists(place)
    names = _coco_names(images, place)
    numbered = enumerate(annotations, 1)
    records = ((number, _annotated(number, annotation, names)) for number, annotation in numbered)
    return kept(records, wanted, name=str(place), unit="annotation")


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
        lists = parsed if isinstance(parsed, dict) else {}
        images, annotations = lists.get("images"), lists.get("annotations")
        if isinstance(images, list) and isinstance(annotations, list):
            return images, annotations
        reason = "is not in the form of COCO"
    raise DataError(
        f"{path} {reason}; it must be one object with the lists 'images' and 'annotations'."
    )


def _coco_names(images: list[Any], path: Path) -> dict[str, Any]:
    """The file name of each image, by its id, which is text here."""
    names: dict[str, Any] = {}
    for image in images:
        if isinstance(image, dict) and isinstance(image.get("id"), str):
            name = image.get("file_name")
            if names.setdefault(image["id"], name) != name:
                raise DataError(
                    f"{path}: two images have the id {image['id']}: {shown(names[image['id']])} "
                    f"and {shown(name)}."
                )
    return names


def _annotated(
    number: int, annotation: Any, names: Mapping[str, Any]
) -> Mapping[str, Any] | RowFault:
    if not isinstance(annotation, dict):
        return RowFault(number, 'is not an object like {"image_id": 1, "caption": "..."}.')
    for key in ("image_id", "caption"):
        if key not in annotation:
            return RowFault(number, f"has no key {key!r}; is this a file of captions?")
    image = annotation["image_id"]
    if not isinstance(image, str) or image not in names:
        return RowFault(number, f"is about image {str(image)[:80]}, which is not in 'images'.")
    try:
        name = text_of(names[image], "file_name")
        return {IMAGE: name, CAPTION: text_of(annotation["caption"], "caption")}
    except ValueError as error:
        return RowFault(number, str(error))


def read_flickr8k(place: Places, wanted: ReadSettings) -> Examples:
    """Read lines `name.jpg#0<TAB>caption`, for all images or for those in a list.

    `{captions: Flickr8k.token.txt, images: Flickr_8k.trainImages.txt}`, or the file of captions
    alone. The rows stand in the order of the captions, and `line` is the line of the caption.
    """
    places = dict(place) if isinstance(place, Mapping) else {"captions": place}
    for key in places:
        if key not in ("captions", "images"):
            raise DataError(f"Format flickr8k: {unknown('file', key, ['captions', 'images'])}")
    if "captions" not in places:
        raise DataError(
            "Format flickr8k needs the file 'captions'; 'images' only says which of them are "
            "wanted."
        )
    captions = places["captions"]
    check_columns(wanted, (IMAGE, CAPTION), captions)
    name = str(captions)
    if "images" in places:
        wanted = replace(wanted, files={IMAGE: name, CAPTION: name})
        name = f"{captions} + {places['images']}"
    return kept(_captions(captions, places.get("images")), wanted, name=name)


def _captions(captions: Path, images: Path | None) -> Iterator[Record]:
    """The captions of the images in a list, and then what is wrong with the list."""
    listed: dict[str, int] = {}
    for line, text in decoded_lines(images) if images is not None else ():
        if isinstance(text, RowFault):
            yield line, replace(text, file=str(images))
        elif text.strip():
            listed.setdefault(text.strip(), line)
    without = dict(listed)
    for line, text in decoded_lines(captions):
        record = text if isinstance(text, RowFault) else _captioned(line, text)
        if isinstance(record, RowFault):
            yield line, replace(record, file=str(captions))
        elif images is None or record[IMAGE] in listed:
            without.pop(record[IMAGE], None)
            yield line, record
    for name, line in without.items():
        yield line, RowFault(line, f"{shown(name)} has no caption in {captions}.", str(images))


def _captioned(line: int, text: str) -> dict[str, str] | RowFault:
    head, tab, caption = text.partition("\t")
    name, _, number = head.rpartition("#")
    if tab and name and number.isdigit():
        return {IMAGE: name, CAPTION: caption}
    wrong = "is not `name.jpg#0`, a tab and a caption." if text.strip() else "the line is empty."
    return RowFault(line, wrong)
