"""Videos become arrays: which frames are taken, at what time, and how little stays in memory."""

import io
import tracemalloc
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray

from sixjars_runtime import videos
from sixjars_runtime.images import Fit
from sixjars_runtime.videos import evenly, read_video
from tests.unit.test_video_files import written

KINDS = {
    **dict.fromkeys(("mp4", "mov", "matroska", "mpegts", "flv"), ("libx264", "yuv420p")),
    "avi": ("mpeg4", "yuv420p"),
    "webm": ("libvpx", "yuv420p"),
    "gif": ("gif", "gray"),
    "apng": ("apng", "rgb24"),
}


def grey(values: Sequence[int], height: int = 32, width: int = 48) -> NDArray[np.uint8]:
    """Frames that are told by their brightness."""
    shades = np.array(values, dtype=np.uint8)[:, None, None, None]
    return np.broadcast_to(shades, (len(values), height, width, 3))


def packed(kind: str, values: Sequence[int], times: Sequence[int] | None = None) -> io.BytesIO:
    """A video in any container; times are in tenths of a second."""
    codec, form = KINDS[kind]
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as container:
        stream: Any = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt, stream.bit_rate = 48, 32, form, 4_000_000
        for time, frame_HWC in zip(times or range(len(values)), grey(values), strict=True):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(frame_HWC), format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 10)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file


def read(
    file: Any, *, fit: Fit = "crop", frames: int = 16, rate: float | None = None, size: int = 8
) -> NDArray[np.uint8]:
    return read_video(file, "x.mp4", size=size, fit=fit, max_pixels=10**6, frames=frames, rate=rate)


def brightness(taken_FCHW: NDArray[np.uint8]) -> list[int]:
    assert taken_FCHW.shape[1:] == (3, 8, 8)
    assert taken_FCHW.dtype == np.uint8
    return [round(float(value)) for value in taken_FCHW.mean((1, 2, 3))]


VALUES = list(range(20, 220, 8))
"""25 frames, far enough from each other to be told apart after coding."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("frames", [1, 2, 4, 24, 25, 99])
def test_frames_are_taken_evenly(kind: str, frames: int) -> None:
    wanted = {
        1: [12],
        2: [0, 24],
        4: [0, 8, 16, 24],
        24: [*range(12), *range(13, 25)],  # k 24/23, rounded: the 13th step is 12.52
        25: list(range(25)),
        99: list(range(25)),
    }
    got = brightness(read(packed(kind, VALUES), frames=frames))
    assert got == pytest.approx([VALUES[at] for at in wanted[frames]], abs=3)


@pytest.mark.parametrize("count", [1, 2, 3, 10, 97, 1000])
@pytest.mark.parametrize("frames", [1, 2, 3, 7, 16, 1000])
def test_evenly_against_exact_fractions(count: int, frames: int) -> None:
    places = evenly(count, frames)
    assert len(places) == min(frames, count)
    assert places == sorted(set(places))
    if len(places) == 1:
        assert abs(places[0] - (count - 1) / 2) <= 0.5
    else:
        step = Fraction(count - 1, len(places) - 1)
        assert all(abs(place - k * step) <= Fraction(1, 2) for k, place in enumerate(places))
        assert (places[0], places[-1]) == (0, count - 1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("rate", "frames", "wanted"),
    [
        (10, 99, list(range(25))),
        (5, 99, list(range(0, 25, 2))),
        (5, 3, [0, 2, 4]),
        (1, 99, [0, 10, 20]),
        (0.5, 99, [0, 20]),
        (4, 99, [0, 2, 5, 7, 10, 12, 15, 17, 20, 22]),  # what is on the screen at 0.25 s is frame 2
        (20, 5, [0, 0, 1, 1, 2]),
        (0.01, 99, [0]),
    ],
)
def test_frames_at_a_rate(kind: str, rate: float, frames: int, wanted: list[int]) -> None:
    got = brightness(read(packed(kind, VALUES), frames=frames, rate=rate))
    assert got == pytest.approx([VALUES[at] for at in wanted], abs=3)


@pytest.mark.parametrize("rate", [24000 / 1001, 29.97, 30.0, 60.0, 100 / 3])
@pytest.mark.parametrize("kind", ["mp4", "matroska"])
def test_the_video_s_own_rate_gives_every_frame(kind: str, rate: float) -> None:
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as container:
        stream: Any = container.add_stream("libx264", rate=Fraction(rate).limit_denominator(1001))
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        for frame_HWC in grey(VALUES):
            own = np.ascontiguousarray(frame_HWC)
            container.mux(stream.encode(av.VideoFrame.from_ndarray(own, format="rgb24")))
        container.mux(stream.encode())
    assert brightness(read(file, frames=99, rate=rate)) == pytest.approx(VALUES, abs=3)


@pytest.mark.parametrize("kind", ["mp4", "matroska"])
def test_frames_of_unequal_length(kind: str) -> None:
    """Shown at 0.0, 0.1, 1.5 and 1.6 s: by number they are even, by time the second is long."""
    file = packed(kind, [20, 90, 160, 230], [0, 1, 15, 16])
    assert brightness(read(file, frames=3)) == pytest.approx([20, 160, 230], abs=3)
    assert brightness(read(file, rate=2)) == pytest.approx([20, 90, 90, 160], abs=3)


def test_a_video_that_starts_late_starts_with_its_first_frame() -> None:
    file = packed("matroska", [20, 90, 160], [50, 60, 70])
    assert brightness(read(file, frames=2, rate=1)) == pytest.approx([20, 90], abs=3)


def test_a_wrong_count_is_put_right(monkeypatch: pytest.MonkeyPatch) -> None:
    file = packed("mp4", VALUES)
    for lie in (0, 7, 26, 1000):
        monkeypatch.setattr(videos.Video, "packets", lambda _, lie=lie: lie)
        expected = [VALUES[at] for at in (0, 8, 16, 24)]
        assert brightness(read(file, frames=4)) == pytest.approx(expected, abs=3)


def test_a_header_that_lies() -> None:
    content = bytearray(packed("avi", VALUES).getvalue())
    at = content.index(b"avih") + 8 + 16  # the number of frames, in the header of the file
    assert int.from_bytes(content[at : at + 4], "little") == 25
    strh = content.index(b"strh") + 8 + 32  # and in that of the stream
    assert int.from_bytes(content[strh : strh + 4], "little") == 25
    for count in (0, 3, 5000):
        content[at : at + 4] = content[strh : strh + 4] = count.to_bytes(4, "little")
        found = brightness(read(io.BytesIO(content), frames=4))
        assert found == pytest.approx([20, 84, 148, 212], abs=3)


@pytest.mark.parametrize("rate", [None, 1.0])
def test_little_stays_in_memory(rate: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 frames that would be 75 MB in colour; only two at a time are alive."""
    alive, most, seen = 0, 0, 0
    decoded = videos.Video._decoded

    class Watched:
        def __init__(self, frame: Any) -> None:
            nonlocal alive, most, seen
            self.frame = frame
            alive, seen = alive + 1, seen + 1
            most = max(most, alive)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.frame, name)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def watched(video: Any) -> Iterator[Any]:
        yield from (Watched(frame) for frame in decoded(video))

    file = io.BytesIO(written(np.broadcast_to(np.uint8(99), (2000, 96, 128, 3))))
    monkeypatch.setattr(videos.Video, "_decoded", watched)
    tracemalloc.start()
    try:
        taken_FCHW = read(file, frames=16, rate=rate)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken_FCHW.shape == (16, 3, 8, 8)
    assert seen == (2000 if rate is None else 152)  # the frame after that of second 15 is the last
    assert most <= 3
    assert peak < 2_000_000
