"""Squares of bytes from video files: frames taken evenly, or at a steady rate.

A video is decoded as a stream: whatever its length, only the frames that are taken stay in memory,
at their final size.

Dims: F frames, C the colours red, green and blue, H rows, W columns.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import DataError, need
from sixjars_runtime.images import Fit, check_size, decoding, framed, in_colour, need_pillow

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

VIDEO_ENDINGS: Final = frozenset(
    ".3gp .asf .avi .flv .gif .m2ts .m4v .mkv .mov .mp4 .mpeg .mpg .mts .ogv .ts .vob .webm "
    ".wmv".split()
)
"""How the names of videos end, lowercased."""
_CONTAINERS: Final = (
    "aac,aiff,apng,asf,avi,dv,flac,flv,gif,h264,hevc,ivf,m4v,matroska,mov,mp3,mp4,mpeg,mpegts,mpegvideo,mxf,nut,ogg,"
    "rm,swf,wav,webm,yuv4mpegpipe"
)
"""What is read; FFmpeg knows more, but some of it opens other files and addresses that a file
names."""
need_av: Final = partial(need, "av", "video")
"""Refuses to go on without PyAV."""
_ROUNDING: Final = Fraction(1, 1000)
"""Some containers tell the time of a frame in thousandths of a second."""
_USUAL: Final = Fraction(1, 25)
"""Seconds that a frame lasts when the video does not tell."""


def read_video(
    file: BinaryIO, name: str, *, frames: int, rate: float | None = None, **how: Any
) -> NDArray[np.uint8]:
    """Read frames of a video as a network takes them: red, green and blue, (F, 3, size, size).

    Without `rate`, F = min(frames, N) of the video's N frames are taken, where `evenly` says. With
    it, what is on the screen every 1/rate seconds from the first frame on, at most `frames` times.
    A video that is found to be damaged on the way is refused; a Matroska file or a GIF that was cut
    off looks like a shorter video. The others are those of `Video`.
    """
    return Video(file, name, **how).frames(frames, rate)


def evenly(count: int, frames: int) -> list[int]:
    """Return which of `count` frames are taken: round(k (count - 1) / (F - 1)), k from 0 to F - 1.

    F is the smaller of `frames` and `count`; a single frame is the middle one.

    >>> evenly(10, 4), evenly(3, 16), evenly(9, 1)
    ([0, 3, 6, 9], [0, 1, 2], [4])
    """
    steps = min(frames, count) - 1
    if steps < 1:
        return [(count - 1) // 2] if count else []
    return [(2 * k * (count - 1) + steps) // (2 * steps) for k in range(steps + 1)]


@final
@dataclass(frozen=True)
class Video:
    """A video file, and what becomes of its frames."""

    file: BinaryIO
    name: str
    size: int
    fit: Fit
    max_pixels: int
    check: Callable[[], None] = lambda: None
    """Called for each packet and frame; what it raises ends it."""

    def frames(self, most: int, rate: float | None) -> NDArray[np.uint8]:
        """Return the frames that `read_video` takes."""
        need_pillow()
        need_av()
        if rate is not None:
            return np.stack(list(self.every(1 / Fraction(rate), most)))
        count = self.packets()
        taken, decoded = self.take(evenly(count, most))
        if decoded != count:  # some packets hold no frame, or two
            taken, _ = self.take(evenly(decoded, most))
        return np.stack(taken)

    def packets(self) -> int:
        """Count the frames that the video seems to have, without decoding any."""
        import av

        with self._opened() as (container, stream):
            count = 0
            with suppress(av.FFmpegError):  # decoding will meet it too, and tell where
                for packet in container.demux(stream):
                    self.check()
                    count += packet.size > 0
            return count

    def take(self, places: Collection[int]) -> tuple[list[NDArray[np.uint8]], int]:
        """Return the frames at these places, and how many frames there are."""
        taken, count = list[NDArray[np.uint8]](), 0
        places = frozenset(places)
        for count, frame in enumerate(self._decoded(), start=1):
            if count - 1 in places:
                taken.append(self._square(frame))
        return taken, count

    def every(self, seconds: Fraction, most: int) -> Iterator[NDArray[np.uint8]]:
        """Yield what is on the screen every so many seconds from the first frame on."""
        taken, early = 0, min(_ROUNDING, seconds / 2)
        for frame, until in self._shown():
            square: NDArray[np.uint8] | None = None
            while taken < most and (not taken or taken * seconds + early < until):
                square = self._square(frame) if square is None else square
                yield square
                taken += 1
            if taken == most:
                return

    def _shown(self) -> Iterator[tuple["VideoFrame", Fraction]]:
        """Yield each frame, and when the next replaces it or the video ends, counted from 0."""
        shown: VideoFrame | None = None
        first = end = Fraction(0)
        for frame in self._decoded():
            base = frame.time_base or Fraction(1)
            now = end if frame.pts is None else frame.pts * base
            if shown is None:
                first = now
            else:
                yield shown, now - first
            shown, end = frame, now + (frame.duration * base if frame.duration else _USUAL)
        if shown is not None:
            yield shown, end - first

    def _decoded(self) -> Iterator["VideoFrame"]:
        import av

        count = 0
        with self._opened() as (container, stream), decoding(stream.width, stream.height):
            check_size(self.name, stream.width, stream.height, self.max_pixels)
            try:
                for packet in container.demux(stream):
                    if packet.is_corrupt:
                        raise self._damaged(count)
                    for frame in packet.decode():
                        self.check()
                        if frame.is_corrupt:
                            raise self._damaged(count)
                        check_size(self.name, frame.width, frame.height, self.max_pixels)
                        yield frame
                        count += 1
            except av.FFmpegError as error:
                raise self._damaged(count) from error
        if not count:
            raise DataError(f"{self.name} has a video stream, but no frame is in it.")

    def _damaged(self, count: int) -> DataError:
        reason = "is damaged: not even its first frame can be decoded"
        if count:
            reason = f"is damaged after frame {count}; convert it again or leave it out"
        return DataError(f"{self.name} {reason}.")

    def _no_video(self) -> DataError:
        return DataError(
            f"{self.name} is not a video, or is cut off or damaged from its first bytes."
        )

    @contextmanager
    def _opened(self) -> Iterator[tuple["InputContainer", "VideoStream"]]:
        try:
            self.file.seek(0)
            if not self.file.read(1):
                raise DataError(f"{self.name} is empty.")
            self.file.seek(0)
            with self._container() as container:
                yield container, self._stream(container)
        except OSError as error:
            raise DataError(f"{self.name} cannot be read: {error.strerror or error}.") from error

    def _container(self) -> "InputContainer":
        import av

        options = {"format_whitelist": _CONTAINERS}
        try:
            # Titles that are not UTF-8 are no fault; PyAV before 19 needs this option, and later
            # ones have none.
            with suppress(TypeError):
                return av.open(self.file, "r", container_options=options, metadata_errors="replace")
            return av.open(self.file, "r", container_options=options)
        except (av.FFmpegError, ValueError) as error:
            raise self._no_video() from error

    def _stream(self, container: "InputContainer") -> "VideoStream":
        """Return the first video stream; the cover of a song is none."""
        from av.stream import Disposition

        videos = container.streams.video
        streams = [each for each in videos if not each.disposition & Disposition.attached_pic]
        if not streams and container.streams.audio:
            raise DataError(f"{self.name} has no video stream, only sound.")
        if not streams:
            raise self._no_video()
        if streams[0].codec_context is None:
            raise DataError(
                f"{self.name} is coded in a way that FFmpeg cannot read here; convert it to H.264."
            )
        return streams[0]

    def _square(self, frame: "VideoFrame") -> NDArray[np.uint8]:
        import PIL.Image

        has_alpha = any(component.is_alpha for component in frame.format.components)
        pixels_HWC = frame.to_ndarray(format="rgba" if has_alpha else "rgb24")
        # Both count against the clock.
        turned_HWC = np.rot90(pixels_HWC, round(frame.rotation / 90))
        image = PIL.Image.fromarray(np.ascontiguousarray(turned_HWC))
        return framed(in_colour(image, self.name), size=self.size, fit=self.fit)
