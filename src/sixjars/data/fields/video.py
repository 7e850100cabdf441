"""Videos, by the names of their files.

Dims: F frames, H and W pixels, C the colours red, green and blue.
"""

from collections.abc import Sequence
from typing import Any, final

from sixjars.data.field import Positions
from sixjars.data.fields.image import MediaField, MediaSettings, Pixels
from sixjars.data.storage.cache import ExampleTable
from sixjars.flow.limits import AboveZero, Positive
from sixjars.recipe.data import Column as ColumnName
from sixjars_runtime.videos import VIDEO_ENDINGS, read_video


class VideoSettings(MediaSettings):
    """One column of video files."""

    kind: str = "video"
    column: ColumnName = "video"
    frames: Positive = 16
    """Frames taken of each video, evenly from its beginning to its end; with `rate` the most that
    are taken."""
    rate: AboveZero | None = None
    """Frames taken of each second instead."""


@final
class VideoField(MediaField):
    """A video: some of its frames.

    >>> VideoField.guess(["goal.mp4"]), VideoField.guess(["goal.jpg"])
    ({}, None)
    """

    kind = "video"
    settings_class = VideoSettings
    endings = VIDEO_ENDINGS
    block = 16
    read = staticmethod(read_video)
    taken = ("frames", "rate")

    def positions(self, table: ExampleTable, row: int, count: int) -> Positions:
        """The numbers of the frames, from 1."""
        return Positions(tuple(str(number) for number in range(1, count + 1)))

    def backdrop(self, text: str) -> Pixels:
        """The frames, (F, H, W, 3)."""
        return self.unpacked(text).transpose(0, 2, 3, 1)

    @classmethod
    def suggest(cls, texts: Sequence[str], *, tokens: str, long: bool) -> dict[str, Any]:
        """The number of frames."""
        return {"frames": 16}
