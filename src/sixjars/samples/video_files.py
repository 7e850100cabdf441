"""Video files of synthetic frames.

Dims: F frames, C the colours red, green and blue, H rows, W columns.
"""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import ShapeError
from sixjars_runtime.videos import need_av

if TYPE_CHECKING:
    from av.video.stream import VideoStream


def write_video(target: str | Path | BinaryIO, frames: NDArray[np.uint8], *, rate: float) -> None:
    """Write frames, (F, H, W, 3), as an .mp4 video of `rate` frames a second.

    H.264 where FFmpeg has it, else MPEG-4. Both need even sides, so an odd one gets its last row or
    column twice. The same frames are the same bytes, as long as the libraries stay the same.
    """
    need_av()
    import av

    if frames.ndim != 4 or frames.shape[3] != 3 or 0 in frames.shape or frames.dtype != np.uint8:
        raise ShapeError(
            f"A video is made of (F, H, W, 3) uint8, but this is {frames.shape} {frames.dtype}."
        )
    height, width = frames.shape[1:3]
    codec, options = "libx264", {"crf": "18", "x264-params": "cpu-independent=1"}
    if codec not in av.codecs_available:
        codec, options = "mpeg4", {"qscale": "2"}
    place = str(target) if isinstance(target, str | Path) else target
    with av.open(place, "w", format="mp4", options={"fflags": "+bitexact"}) as container:
        exact = Fraction(rate).limit_denominator(1001)
        stream = cast("VideoStream", container.add_stream(codec, rate=exact, options=options))
        stream.width, stream.height = width + width % 2, height + height % 2
        stream.pix_fmt = "yuv420p"
        # More threads would cut the work, and the bytes, by the machine's cores.
        stream.codec_context.thread_count = 1
        for frame_HWC in frames:
            even_HWC = np.pad(frame_HWC, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
            container.mux(stream.encode(av.VideoFrame.from_ndarray(even_HWC, format="rgb24")))
        container.mux(stream.encode())
