"""Synthetic images: captions, questions and answers, against pixels and a second reading."""

import io
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from sixjars.errors import DataError, MissingExtra
from sixjars.samples import Row, generate, scenes
from sixjars.samples.scenes import COLOURS, SHAPES, ColouredShape, paint, painted

IMAGE_TASKS = ["image_captioning", "image_question_answering"]
Seen = tuple[str, str, int, int, int]


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: generate(task, size=3000, valid=0, test=0)["train"] for task in IMAGE_TASKS}


def seen(name: str) -> list[Seen]:
    """What a name describes, read without the package."""
    parts = [part.split("-") for part in name.rsplit(".", 1)[0].split("_")]
    return [(colour, shape, int(x), int(y), int(size)) for colour, shape, x, y, size in parts]


def pixels(name: str) -> NDArray[np.int64]:
    return np.asarray(Image.open(io.BytesIO(paint(name))).convert("RGB")).astype(np.int64)


def coloured(name: str) -> NDArray[np.bool_]:
    """Where an image is not pale: backgrounds are, colours are not."""
    found: NDArray[np.bool_] = pixels(name).min(axis=-1) < 190
    return found


def boxes(text: str) -> list[tuple[int, list[float]]]:
    found = [place.split(":") for place in text.split()]
    return [(int(word), [64 * float(end) for end in box.split(",")]) for word, box in found]


# Files


@pytest.mark.parametrize(("ending", "kind"), [("png", "PNG"), ("jpg", "JPEG")])
def test_the_ending_is_the_format(ending: str, kind: str) -> None:
    image = Image.open(io.BytesIO(paint(f"red-circle-20-20-16.{ending}")))
    assert (image.format, image.size, image.mode) == (kind, (64, 64), "RGB")


def test_both_endings_are_frequent_in_every_split() -> None:
    for rows in generate("image_captioning", size=400, valid=400, test=400).values():
        assert 140 < sum(row["image"].endswith(".png") for row in rows) < 260


def test_an_image_has_the_same_bytes_in_every_process() -> None:
    names = ["red-circle-20-20-16_blue-square-50-44-10.png", "green-star-30-30-12.jpg"]
    code = (
        "import sys; from sixjars.samples.scenes import paint;"
        f"sys.stdout.buffer.write(b''.join(paint(name) for name in {names!r}))"
    )
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        out = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        ).stdout
        assert out == paint(names[0]) + paint(names[1])


def test_backgrounds_are_pale_and_noisy_and_differ() -> None:
    names = [f"red-circle-{x}-20-12.png" for x in range(20, 40)]
    corners = [pixels(name)[50:, :] for name in names]
    assert all(corner.min() > 200 for corner in corners)
    assert all(len(np.unique(corner[..., 0])) > 5 for corner in corners)
    assert len({tuple(corner.mean(axis=(0, 1)).round()) for corner in corners}) == len(names)


@pytest.mark.parametrize(
    "name",
    [
        *("red-circle-20-20.png", "red-circle-20-20-16.gif", "pink-circle-20-20-16.png"),
        *("red-circle-20-20-0.png", "../red-circle-20-20-16.png"),
        *("red-circle-20-20-16_.png", "red-circle-20-20-16.png\n"),
    ],
)
def test_another_name_is_refused(name: str) -> None:
    told = f"^{re.escape(repr(name))} names no synthetic image; names are like 'red-circ"
    with pytest.raises(DataError, match=told):
        paint(name)


def test_painting_without_pillow_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    told = r"^pillow is not installed\. Run: pip install 'sixjars\[vision\]'$"
    with pytest.raises(MissingExtra, match=told):
        paint("red-circle-20-20-16.png")


# What is painted


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("size", [10, 17])
def test_a_thing_fills_its_box_and_nothing_else(shape: str, size: int) -> None:
    rows, columns = np.nonzero(coloured(f"black-{shape}-31-33-{size}.png"))
    found = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
    assert found == pytest.approx(ColouredShape("black", shape, 31, 33, size).box, abs=1.1)


def test_every_thing_has_its_colour_and_its_smooth_edge() -> None:
    for colour, shade in COLOURS.items():
        image = pixels(f"{colour}-circle-32-32-16.png")
        assert image[28:36, 28:36].mean(axis=(0, 1)) == pytest.approx(shade, abs=10.5)
        nearest = min(
            COLOURS, key=lambda other: float(np.abs(image[32, 32] - COLOURS[other]).sum())
        )
        assert nearest == colour
        lightness = image[32].sum(axis=-1)
        assert len(np.unique(lightness)) > 10


def test_each_shape_covers_its_area() -> None:
    # A star is ten triangles from its middle, of sides 1 and 1/2 and 36°; it is 2 cos 18° wide
    # and 1 + cos 36° high, and is then stretched to its box.
    triangle = 0.5 * 0.5 * np.sin(np.pi / 5)
    star = 10 * triangle * 4 / (2 * np.cos(np.pi / 10) * (1 + np.cos(np.pi / 5)))
    shares = {"circle": np.pi, "square": 4.0, "triangle": 2.0, "star": star}
    for shape, (wide, high) in SHAPES.items():
        image = pixels(f"black-{shape}-32-32-20.png").sum(axis=-1)
        ground, inside = np.median(image), image[32, 32]
        covered = np.clip((ground - image) / (ground - inside), 0, 1).sum()
        assert covered == pytest.approx(400 * shares[shape] * wide * high, rel=0.06)


def test_the_thing_named_first_is_larger_in_extent_and_in_area() -> None:
    for large in SHAPES:
        for small in SHAPES:
            most = coloured(f"black-{small}-32-32-{scenes.SMALL[1]}.png").sum()
            assert coloured(f"black-{large}-32-32-{scenes.LARGE[0]}.png").sum() > most


def test_the_same_shade_in_every_frame() -> None:
    frames = painted([[ColouredShape("red", "square", x, 20.0, 10.0)] for x in (15.0, 25.5)], 48, 3)
    assert frames.shape == (2, 48, 48, 3)
    assert (frames[0, 20, 15] == frames[1, 20, 25]).all()
    assert (frames[0, 40] == frames[1, 40]).all()


# Captions


def caption(name: str) -> str:
    """The one right caption, by the rules of the corpus written a second time."""
    things = sorted(seen(name), key=lambda thing: -thing[4])
    phrases = [f"a {colour} {shape}" for colour, shape, *_ in things]
    if len(things) == 1:
        return phrases[0]
    right, down = things[0][2] - things[1][2], things[0][3] - things[1][3]
    across = ("left of", "right of")[right > 0]
    return f" {across if abs(right) > abs(down) else ('above', 'below')[down > 0]} ".join(phrases)


def test_captions_follow_from_the_images(corpora: dict[str, list[Row]]) -> None:
    assert all(row["caption"] == caption(row["image"]) for row in corpora["image_captioning"])


def test_no_caption_is_ambiguous(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["image_captioning"]:
        things = seen(row["image"])
        if len(things) == 2:
            one, other = things
            assert one[4] >= 1.3 * other[4]
            assert one[:2] != other[:2]
            near, far = sorted((abs(one[2] - other[2]), abs(one[3] - other[3])))
            assert far >= 2 * near


@pytest.mark.parametrize("task", IMAGE_TASKS)
def test_things_stay_inside_and_apart(task: str, corpora: dict[str, list[Row]]) -> None:
    for row in corpora[task]:
        found = [ColouredShape(*thing).box for thing in seen(row["image"])]
        assert all(min(box[:2]) >= 1 and max(box[2:]) <= 63 for box in found)
        for one, other in combinations(found, 2):
            gaps = [
                max(one[axis] - other[axis + 2], other[axis] - one[axis + 2]) for axis in (0, 1)
            ]
            assert max(gaps) >= 2 - 1e-9


def test_the_places_of_colours_and_shapes_are_theirs(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["image_captioning"][:300]:
        words, image = row["caption"].split(), pixels(row["image"])
        places = boxes(row["boxes"])
        assert [words[word] for word, _ in places] == [
            word for word in words if word in (*COLOURS, *SHAPES)
        ]
        for word, (left, top, right, bottom) in places:
            if words[word] in COLOURS:
                inside = image[round((top + bottom) / 2), round((left + right) / 2)]
                assert np.abs(inside - COLOURS[words[word]]).max() < 25
        outside = coloured(row["image"])
        for _, (left, top, right, bottom) in places:
            outside[int(top) - 1 : round(bottom) + 1, int(left) - 1 : round(right) + 1] = False
        assert not outside.any()


def test_every_word_is_frequent(corpora: dict[str, list[Row]]) -> None:
    rows = corpora["image_captioning"]
    words = Counter(word for row in rows for word in row["caption"].split())
    assert set(words) == {"a", *COLOURS, *SHAPES, "above", "below", "left", "right", "of"}
    assert all(
        words[place] == pytest.approx(0.85 * len(rows) / 4, rel=0.15)
        for place in ("above", "below", "left")
    )
    assert min(words.values()) > 0.15 * len(rows)
    assert len({row["caption"] for row in rows}) > 1200


# Questions


def answer(question: str, things: list[Seen]) -> tuple[str, Seen | None]:
    """The one right answer and the thing that is its evidence, by patterns of the question."""
    if found := re.fullmatch(r"what colour is the (\w+)\?", question):
        (thing,) = (thing for thing in things if thing[1] == found[1])
        return thing[0], thing
    if found := re.fullmatch(r"what shape is (\w+)\?", question):
        (thing,) = (thing for thing in things if thing[0] == found[1])
        return thing[1], thing
    if found := re.fullmatch(r"is there a (\w+) (\w+)\?", question):
        there = [thing for thing in things if thing[:2] == (found[1], found[2])]
        return ("yes", there[0]) if there else ("no", None)
    found = re.fullmatch(r"is the (\w+) (?:on|at) the (\w+) or (?:on|at) the (\w+)\?", question)
    assert found
    (thing,) = (thing for thing in things if thing[1] == found[1])
    place = thing[2] if found[2] == "left" else thing[3]
    assert abs(place - 32) > 8
    return found[2] if place < 32 else found[3], thing


def test_answers_follow_from_the_images(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["image_question_answering"]:
        right, evidence = answer(row["question"], seen(row["image"]))
        assert row["answer"] == right
        assert [box for _, box in boxes(row["boxes"])] == (
            [] if evidence is None else [pytest.approx(ColouredShape(*evidence).box, abs=0.04)]
        )


def test_a_question_alone_hardly_predicts_its_answer() -> None:
    asked: dict[str, Counter[str]] = defaultdict(Counter)
    rows = generate("image_question_answering", size=12_000, valid=0, test=0)["train"]
    for row in rows:
        asked[row["question"]][row["answer"]] += 1
    assert sum(max(answers.values()) for answers in asked.values()) < 0.5 * len(rows)
    assert all(max(answers.values()) < 0.7 * answers.total() for answers in asked.values())


def test_an_image_has_several_questions_all_in_one_split() -> None:
    splits = generate("image_question_answering", size=900, valid=90, test=90)
    images = [{row["image"] for row in rows} for rows in splits.values()]
    assert all(not one & other for one, other in combinations(images, 2))
    assert all(
        2 < len(rows) / len(names) <= 3 for rows, names in zip(splits.values(), images, strict=True)
    )
    pairs = {(row["image"], row["question"]) for rows in splits.values() for row in rows}
    assert len(pairs) == 1080


def test_the_same_things_are_the_same_name(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["image_question_answering"]:
        places = [thing[2:4] for thing in seen(row["image"])]
        assert places == sorted(places)


@pytest.mark.parametrize(
    ("right", "down", "relation"),
    [(20, 10, "left of"), (-20, 10, "right of"), (10, 20, "above"), (-10, -20, "below")],
)
def test_a_relation_is_told_where_one_way_is_twice_the_other(
    right: int, down: int, relation: str
) -> None:
    thing = ColouredShape("red", "circle", 30, 30, 8)
    other = ColouredShape("blue", "star", 30 + right, 30 + down, 8)
    assert scenes.relation(thing, other) == relation
    assert scenes.relation(thing, ColouredShape("blue", "star", 45, 44, 8)) is None
