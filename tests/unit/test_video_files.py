"""Video files as written and read: shapes, sides up, transparency; and what is refused."""

import io
import struct
import sys
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from sixjars.data.media.files import MediaFiles
from sixjars.errors import DataError, MissingExtra, ShapeError
from sixjars.samples.video_files import write_video
from sixjars_runtime.images import Fit, read_image
from sixjars_runtime.videos import VIDEO_ENDINGS, Video, read_video

NO_VIDEO = "x.mp4 is not a video, or is cut off or damaged from its first bytes."


def corners(count: int, height: int = 32, width: int = 64) -> NDArray[np.uint8]:
    """Bright top left, grey top right, dark below."""
    frames_FHWC = np.full((count, height, width, 3), 30, dtype=np.uint8)
    frames_FHWC[:, : height // 2] = 120
    frames_FHWC[:, : height // 2, : width // 2] = 220
    return frames_FHWC


def written(frames: NDArray[np.uint8], rate: float = 10) -> bytes:
    file = io.BytesIO()
    write_video(file, frames, rate=rate)
    return file.getvalue()


def coded(kind: str, codec: str, count: int = 30, options: dict[str, str] | None = None) -> bytes:
    """A video of noise in any container, so that its end is damaged when the file is."""
    noise = np.random.default_rng(0).integers(0, 255, (count, 32, 48, 3), dtype=np.uint8)
    file = io.BytesIO()
    with av.open(file, "w", format=kind, container_options=options or {}) as container:
        stream: Any = container.add_stream(codec, rate=10)
        stream.width = 48
        stream.height = 32
        stream.pix_fmt = "yuvj420p" if codec == "mjpeg" else "yuv420p"
        for frame_HWC in noise:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame_HWC, format="rgb24")))
        container.mux(stream.encode())
    return file.getvalue()


def sound(kind: str, codec: str, cover: bytes | None = None) -> bytes:
    file = io.BytesIO()
    with av.open(file, "w", format=kind) as container:
        stream: Any = container.add_stream(codec, rate=44100, layout="mono")
        image: Any = container.add_stream("mjpeg", rate=1) if cover else None
        if image:
            image.width, image.height, image.pix_fmt = 32, 32, "yuvj420p"
            image.disposition = av.stream.Disposition.attached_pic
        silence = np.zeros((1, 4608), dtype=np.int16)
        quiet = av.AudioFrame.from_ndarray(silence, format="s16", layout="mono")
        quiet.rate = 44100
        packets = stream.encode(quiet) + stream.encode()
        if image:
            packet = av.Packet(cover)
            packet.stream, packet.pts, packet.dts, packet.time_base = image, 0, 0, Fraction(1)
            container.mux(packet)
        container.mux(packets)
    return file.getvalue()


def read(
    content: bytes, *, size: int = 16, fit: Fit = "crop", max_pixels: int = 10**6, **more: Any
) -> NDArray[np.uint8]:
    given = {"frames": 8, "rate": None, "max_pixels": max_pixels, **more}
    return read_video(io.BytesIO(content), "x.mp4", size=size, fit=fit, **given)


def message(content: bytes, **more: Any) -> str:
    with pytest.raises(DataError) as caught:
        read(content, **more)
    return str(caught.value)


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
def test_a_frame_is_framed_like_an_image(fit: Fit) -> None:
    frames_FHWC = corners(3)
    still = io.BytesIO()
    PIL.Image.fromarray(frames_FHWC[0]).save(still, "PNG")
    want_CHW = read_image(still, "x.png", size=32, fit=fit, max_pixels=10**6)
    got_FCHW = read(written(frames_FHWC), size=32, fit=fit)
    assert got_FCHW.shape == (3, 3, 32, 32)
    assert np.abs(got_FCHW.astype(int) - want_CHW).mean() < 3


def test_colours_survive() -> None:
    colours = [(200, 40, 40), (40, 200, 40), (40, 40, 200), (255, 255, 255), (0, 0, 0)]
    frames_FHWC = np.array(colours, dtype=np.uint8)[:, None, None, :].repeat(32, 1).repeat(32, 2)
    got = read(written(frames_FHWC)).mean((2, 3))
    assert np.abs(got - np.array(colours)).max() < 4


@pytest.mark.parametrize("turns", [0, 1, 2, 3])
def test_a_video_from_a_camera_that_was_turned(turns: int) -> None:
    """The matrix of the track header says how to turn a stored frame to see it upright."""
    seen_HWC = corners(1)[0]
    stored_HWC = np.rot90(seen_HWC, turns)
    content = written(np.ascontiguousarray(np.stack([stored_HWC] * 3)))
    one, minus = 0x10000, 0xFFFF0000
    halves = ((one, 0, 0, one), (0, one, minus, 0), (minus, 0, 0, minus), (0, minus, one, 0))
    a, b, c, d = halves[turns]
    straight = struct.pack(">9I", one, 0, 0, 0, one, 0, 0, 0, 0x40000000)
    at = content.index(straight, content.index(b"tkhd"))
    matrix = struct.pack(">9I", a, b, 0, c, d, 0, 0, 0, 0x40000000)
    turned = content[:at] + matrix + content[at + 36 :]
    got_CHW = read(turned, size=32, fit="stretch")[1]
    for row, column, value in ((8, 8, 220), (8, 24, 120), (24, 8, 30), (24, 24, 30)):
        assert got_CHW[:, row, column].tolist() == pytest.approx([value] * 3, abs=8)


def test_what_can_be_seen_through_lies_on_white() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="apng") as container:
        stream: Any = container.add_stream("apng", rate=10)
        stream.width, stream.height, stream.pix_fmt = 20, 20, "rgba"
        for alpha in (0, 51, 255):
            frame_HWC = np.zeros((20, 20, 4), dtype=np.uint8)
            frame_HWC[..., 3] = alpha
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame_HWC, format="rgba")))
        container.mux(stream.encode())
    assert read(file.getvalue()).mean((1, 2, 3)).tolist() == pytest.approx([255, 204, 0], abs=1)


def test_writing_is_the_same_each_time_and_anywhere(tmp_path: Path) -> None:
    frames_FHWC = np.random.default_rng(0).integers(0, 255, (12, 256, 40, 3), dtype=np.uint8)
    content = written(frames_FHWC, 12.5)
    for path in (tmp_path / "a.mp4", str(tmp_path / "b.mp4")):
        write_video(path, frames_FHWC, rate=12.5)
        assert Path(path).read_bytes() == content
    assert b" threads=1 " in content  # x264 notes how it worked; more threads are other bytes
    with av.open(io.BytesIO(content)) as container:
        stream = container.streams.video[0]
        expected = ("h264", Fraction(25, 2), 12)
        assert (stream.codec_context.name, stream.average_rate, stream.frames) == expected
        assert (stream.width, stream.height) == (40, 256)


@pytest.mark.parametrize("shape", [(1, 1, 1, 3), (2, 33, 47, 3), (3, 2, 5, 3)])
def test_odd_sides_are_written_too(shape: tuple[int, ...]) -> None:
    content = written(np.full(shape, 77, dtype=np.uint8))
    with av.open(io.BytesIO(content)) as container:
        stream = container.streams.video[0]
        assert (stream.height, stream.width) == (shape[1] + shape[1] % 2, shape[2] + shape[2] % 2)
    got_FCHW = read(content)
    assert len(got_FCHW) == shape[0]
    assert np.abs(got_FCHW.astype(int) - 77).max() <= 3


def test_without_h264(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(av, "codecs_available", av.codecs_available - {"libx264"})
    content = written(corners(3))
    with av.open(io.BytesIO(content)) as container:
        assert container.streams.video[0].codec_context.name == "mpeg4"
    found = read(content, size=32, fit="stretch")[0, :, 8, 8].tolist()
    assert found == pytest.approx([220] * 3, abs=8)


@pytest.mark.parametrize("shape", [(3, 4, 4), (3, 4, 4, 4), (0, 4, 4, 3), (3, 0, 4, 3)])
def test_what_is_no_video_is_not_written(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError) as caught:
        written(np.zeros(shape, dtype=np.uint8))
    assert str(caught.value) == f"A video is made of (F, H, W, 3) uint8, but this is {shape} uint8."
    wrong: Any = np.zeros((2, 4, 4, 3))
    with pytest.raises(ShapeError, match=r"but this is \(2, 4, 4, 3\) float64\.$"):
        written(wrong)


def test_a_video_in_a_zip(tmp_path: Path) -> None:
    content = written(corners(5))
    with zipfile.ZipFile(tmp_path / "all.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("videos/x.mp4", content)
    with MediaFiles([tmp_path / "all.zip"], memory=tmp_path).open("x.mp4") as file:
        got_FCHW = read_video(file, "x.mp4", size=16, fit="crop", max_pixels=10**6, frames=3)
    assert np.array_equal(got_FCHW, read(content, frames=3))


def test_no_videos_at_all() -> None:
    still = io.BytesIO()
    PIL.Image.new("RGB", (50, 50)).save(still, "PNG")
    assert message(b"") == "x.mp4 is empty."
    playlist = b"#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:1,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
    others = (playlist, b"ffconcat version 1.0\nfile x.mp4\n")
    for content in (b"hello world\n" * 99, b"\0" * 5000, still.getvalue(), *others):
        assert message(content) == message(content, rate=1) == NO_VIDEO


def test_sound_alone() -> None:
    assert message(sound("wav", "pcm_s16le")) == "x.mp4 has no video stream, only sound."
    cover = io.BytesIO()
    PIL.Image.new("RGB", (32, 32)).save(cover, "JPEG")
    song = sound("mp3", "mp3", cover.getvalue())
    with av.open(io.BytesIO(song)) as container:
        assert len(container.streams.video) == 1
    assert message(song) == "x.mp4 has no video stream, only sound."


@pytest.mark.parametrize("rate", [None, 10.0])
def test_videos_that_are_cut_off(rate: float | None) -> None:
    plain = coded("mp4", "libx264")
    # what it holds is told at its end
    assert message(plain[: len(plain) // 2], rate=rate, frames=99) == NO_VIDEO
    for kind, codec, options in (
        ("mp4", "libx264", {"movflags": "frag_keyframe+empty_moov"}),
        ("flv", "libx264", {}),
        ("mpegts", "libx264", {}),
        ("avi", "mjpeg", {}),
    ):
        content = coded(kind, codec, options=options)
        assert len(read(content, rate=rate, frames=99)) == 30
        early = message(content[: int(len(content) * 0.3)], rate=rate, frames=99)
        assert early.startswith("x.mp4 is damaged after frame ")
        sentence = message(content[: int(len(content) * 0.6)], rate=rate, frames=99)
        start, end = "x.mp4 is damaged after frame ", "; convert it again or leave it out."
        assert sentence.startswith(start)
        assert sentence.endswith(end)
        assert 10 <= int(sentence.removeprefix(start).removesuffix(end)) <= 18


def test_a_video_whose_frames_are_all_damaged() -> None:
    content = bytearray(coded("avi", "mjpeg", count=3))
    at = content.index(b"movi") + 4
    while content[at : at + 4] == b"00dc":
        length = int.from_bytes(content[at + 4 : at + 8], "little")
        content[at + 8 : at + 8 + length] = bytes(length)
        at += 8 + length + length % 2
    assert content[at : at + 4] == b"idx1"
    assert message(bytes(content)) == "x.mp4 is damaged: not even its first frame can be decoded."


def test_a_video_without_frames() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="avi") as container:
        stream: Any = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 48, 32, "yuv420p"
        container.start_encoding()
    for rate in (None, 2.0):
        sentence = message(file.getvalue(), rate=rate)
        assert sentence == "x.mp4 has a video stream, but no frame is in it."


def test_a_video_that_nobody_can_decode() -> None:
    content = written(corners(3)).replace(b"avc1", b"zzzz")
    sentence = message(content)
    assert sentence == "x.mp4 is coded in a way that FFmpeg cannot read here; convert it to H.264."


def test_a_frame_that_is_too_large() -> None:
    content = written(corners(3))
    limit = "make it smaller or raise that."
    sentence = message(content, max_pixels=2047)
    assert sentence == f"x.mp4 has 64 x 32 pixels, but 'max_pixels' is 2047; {limit}"
    assert read(content, max_pixels=2048).shape == (3, 3, 16, 16)


@pytest.mark.parametrize("rate", [None, 5.0])
def test_decoding_can_be_ended(rate: float | None) -> None:
    left = iter(range(15))

    def check() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    content = written(corners(40))
    video = Video(io.BytesIO(content), "x.mp4", 16, "crop", 10**6, check)
    with pytest.raises(KeyboardInterrupt):
        video.frames(8, rate)


def test_a_disk_that_fails() -> None:
    class Failing(io.BytesIO):
        def read(self, count: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(DataError) as caught:
        read_video(Failing(b"x"), "x.mp4", size=16, fit="crop", max_pixels=10**6, frames=2)
    assert str(caught.value) == "x.mp4 cannot be read: Input/output error."


@pytest.mark.parametrize(("library", "extra"), [("av", "video"), ("PIL.Image", "vision")])
def test_without_the_libraries(library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = written(corners(1))
    monkeypatch.setitem(sys.modules, library, None)
    name = {"av": "av", "PIL.Image": "pillow"}[library]
    with pytest.raises(MissingExtra) as caught:
        read(content)
    assert str(caught.value) == f"{name} is not installed. Run: pip install 'sixjars[{extra}]'"


def test_endings() -> None:
    assert {".mp4", ".avi", ".mkv", ".webm", ".gif", ".mov"} <= VIDEO_ENDINGS
    assert all(ending == ending.lower() and ending.startswith(".") for ending in VIDEO_ENDINGS)


def test_titles_that_are_not_utf_8_are_no_fault() -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="avi") as container:
        container.metadata["title"] = "Stra__e"
        stream: Any = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 16
        frame = av.VideoFrame.from_ndarray(corners(1, 16, 16)[0], format="rgb24")
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    titled = file.getvalue().replace(b"Stra__e", b"Stra\xdf e")
    assert b"\xdf" in titled
    np.testing.assert_array_equal(read(titled), read(file.getvalue()))
