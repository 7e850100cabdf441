"""Short videos of one coloured shape that moves, grows or shrinks, with captions or classes.

A video's name describes all that is in it: `red-circle_12-24-8_36-24-8.mp4` has a red circle of
size 8 that moves at constant speed from (12, 24) to (36, 24).

Only the order of the frames distinguishes a class from its opposite: a video of growing played
backwards is a video of shrinking, frame by frame the same, and both are drawn as often.
"""

import io
import re
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from zlib import crc32

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.scenes import COLOURS, ColouredShape, painted, reach
from sixjars_runtime.errors import DataError

SHAPES = ("circle", "triangle", "star")
"""Shapes that differ clearly in a small video; a square in motion is much like a circle."""
SIDE = 48
"""Pixels of each side of a frame."""
FRAMES = 12
"""Frames of a video."""
RATE = 6.0
"""Frames per second."""
MOVING, GROWING = (10, 12), (8, 16)
"""Smallest and greatest size of a thing that moves, and of one that grows or shrinks."""
WAY, GROWTH = (10, 22), (5, 8)
"""The least and greatest way of a thing that moves, and change of one that grows."""

Pose = tuple[int, int, int]
"""The middle of a thing (x, y), and its size."""

ACTIONS = {
    "moves left": (-1, 0, 0),
    "moves right": (1, 0, 0),
    "moves up": (0, -1, 0),
    "moves down": (0, 1, 0),
    "grows": (0, 0, 1),
    "shrinks": (0, 0, -1),
}
"""The direction in which a pose changes."""
CLASSES = {
    "left_to_right": "moves right",
    "right_to_left": "moves left",
    "upwards": "moves up",
    "downwards": "moves down",
    "growing": "grows",
    "shrinking": "shrinks",
}

_POSE = r"(\d{1,2})-(\d{1,2})-([1-9]\d?)"
_NAME = re.compile(rf"({'|'.join(COLOURS)})-({'|'.join(SHAPES)})((?:_{_POSE}){{2}})\.mp4")


def name_of(colour: str, shape: str, poses: Sequence[Pose]) -> str:
    """The file name of a video.

    >>> name_of("red", "circle", [(12, 24, 8), (36, 24, 8)])
    'red-circle_12-24-8_36-24-8.mp4'
    """
    return f"{colour}-{shape}_{'_'.join('-'.join(map(str, pose)) for pose in poses)}.mp4"


def frames_of(name: str) -> list[ColouredShape]:
    """The thing as it is in each frame, read from a video's name.

    >>> [thing.x for thing in frames_of("red-circle_12-24-8_34-24-8.mp4")]
    [12.0, 14.0, 16.0, 18.0, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0, 34.0]
    """
    match = _NAME.fullmatch(name)
    if not match:
        raise DataError(
            f"{name!r} names no synthetic video; names are like 'red-circle_12-24-8_36-24-8.mp4'."
        )
    first, last = ([int(number) for number in pose] for pose in re.findall(_POSE, match[3]))
    return [
        ColouredShape(match[1], match[2], *_between(first, last, number))
        for number in range(FRAMES)
    ]


def paint(name: str) -> bytes:
    """The bytes of the video file of this name."""
    from sixjars.samples.video_files import write_video

    things = frames_of(name)
    file = io.BytesIO()
    frames = painted([[thing] for thing in things], SIDE, background_of(things))
    write_video(file, frames, rate=RATE)
    return file.getvalue()


def background_of(things: Sequence[ColouredShape]) -> int:
    """A seed for the background that is the same when a video is played backwards."""
    return crc32(repr(sorted((thing.x, thing.y, thing.size) for thing in things)).encode())


def _between(first: Sequence[int], last: Sequence[int], number: int) -> tuple[float, float, float]:
    """The pose in a frame; rounded, so that the opposite video has the very same poses."""
    share = number / (FRAMES - 1)
    x, y, size = (round(a + (b - a) * share, 6) for a, b in zip(first, last, strict=True))
    return x, y, size


def _path(rng: Random, shape: str, action: str) -> list[Pose]:
    """The first and the last pose of an action inside the border; of its opposite alike."""
    while True:
        steps = _steps(rng, action)
        halves = [ColouredShape("", shape, 0, 0, size).half for *_, size in steps]
        across = _starts([half[0] for half in halves], [step[0] for step in steps])
        down = _starts([half[1] for half in halves], [step[1] for step in steps])
        if across and down:
            x, y = rng.choice(across), rng.choice(down)
            return [(x + right, y + below, size) for right, below, size in steps]


def _steps(rng: Random, action: str) -> list[Pose]:
    """The two poses relative to the position of the first one."""
    right, below, growth = ACTIONS[action]
    least, most = GROWING if growth else MOVING
    while True:
        far, much, size = rng.randint(*WAY), rng.randint(*GROWTH), rng.randint(least, most)
        if least <= size + growth * much <= most:
            return [(0, 0, size), (right * far, below * far, size + growth * much)]


def _starts(halves: Sequence[float], steps: Sequence[int]) -> range:
    """The places of the first pose along one side, so that all stay inside the border."""
    reaches = [reach(half, SIDE) for half in halves]
    low = max(start - step for (start, _), step in zip(reaches, steps, strict=True))
    high = min(end - step for (_, end), step in zip(reaches, steps, strict=True))
    return range(low, high + 1)


def _video(rng: Random, classes: Mapping[str, str]) -> tuple[str, str, str, str]:
    """The name of a random video, its colour, its shape, and its class of those with an action."""
    colour, shape, label = rng.choice(list(COLOURS)), rng.choice(SHAPES), rng.choice(list(classes))
    return name_of(colour, shape, _path(rng, shape, classes[label])), colour, shape, label


@partial(Corpus, "video_captioning", ["video"], "caption", media="video", paint=paint)
def captioned(rng: Random, _longest: int) -> Row:
    """Videos of a coloured shape that moves, grows or shrinks; the caption describes its action."""
    name, colour, shape, action = _video(rng, {action: action for action in ACTIONS})
    return {"video": name, "caption": f"a {colour} {shape} {action}"}


@partial(Corpus, "video_classification", ["video"], "label", media="video", paint=paint)
def classified(rng: Random, _longest: int) -> Row:
    """Videos of a shape that moves, grows or shrinks; classes differ in the order of frames."""
    name, _, _, label = _video(rng, CLASSES)
    return {"video": name, "label": label}
