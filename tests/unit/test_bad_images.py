"""Images that are refused, each with its sentence, and what is quiet about it."""

import io
import resource
import struct
import sys
import threading
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from sixjars.errors import DataError, MissingExtra
from sixjars_runtime import images
from sixjars_runtime.images import IMAGE_ENDINGS, read_image, upright

NO_IMAGE = (
    "x.jpg is not an image, or damaged from its first bytes; "
    "JPEG, PNG, WEBP, GIF, BMP, TIFF, PPM, AVIF, JPEG2000 can be read."
)


def noise(width: int = 60, height: int = 40, seed: int = 0) -> PIL.Image.Image:
    small = np.random.default_rng(seed).integers(0, 255, (8, 12, 3), dtype=np.uint8)
    return PIL.Image.fromarray(small).resize((width, height), PIL.Image.Resampling.BICUBIC)


def saved(image: PIL.Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def read(content: bytes, max_pixels: int = 10**6) -> NDArray[np.uint8]:
    return read_image(io.BytesIO(content), "x.jpg", size=16, fit="crop", max_pixels=max_pixels)


def message(content: bytes, max_pixels: int = 10**6) -> str:
    """The sentence, which is the same for both readers."""
    with pytest.raises(DataError) as caught:
        read(content, max_pixels)
    with pytest.raises(DataError) as again:
        upright(io.BytesIO(content), "x.jpg", max_pixels=max_pixels)
    assert str(caught.value) == str(again.value)
    return str(caught.value)


def headed(width: int, height: int, rows: bytes | None = None) -> bytes:
    """A PNG file that says how large it is and holds next to nothing, or these compressed rows."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", rows or zlib.compress(b"\0")), (b"IEND", b"")]
    parts = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_no_images_at_all() -> None:
    assert message(b"") == "x.jpg is empty."
    eps = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n"
    for content in (b"a,b,c\n1,2,3\n", b"\0" * 1000, b"<svg></svg>", eps):
        assert message(content) == NO_IMAGE


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {}) for kind in "JPEG PNG GIF WEBP BMP TIFF PPM AVIF JPEG2000".split()),
        ("JPEG", {"progressive": True}),
        ("WEBP", {"lossless": True}),
    ],
)
def test_an_image_that_is_cut_off_is_refused_or_whole(kind: str, options: dict[str, Any]) -> None:
    content = saved(noise(), kind, **options)
    whole_CHW = read(content)
    refused = 0
    for length in range(1, len(content), max(1, len(content) // 100)):
        try:
            got_CHW = read(content[:length])
        except DataError as error:
            assert str(error) == NO_IMAGE or str(error).startswith("x.jpg is broken or cut off: ")  # noqa: PT017
            refused += 1
        else:
            assert np.array_equal(got_CHW, whole_CHW), length
    assert refused > 95


def test_the_sentence_tells_how_it_is_cut_off() -> None:
    content = saved(noise(), "BMP")
    told = "x.jpg is broken or cut off: image file is truncated (160 bytes not processed)."
    assert message(content[:-20]) == told


def test_a_large_jpeg_that_is_cut_off() -> None:
    """It is decoded at a fraction of its size, and must not be half grey either."""
    content = saved(noise(1200, 900), "JPEG")
    assert message(content[: len(content) // 2], 10**7).startswith("x.jpg is broken or cut off: ")


def test_too_large_is_told_from_the_header() -> None:
    limit = "make it smaller or raise that."
    sentence = message(saved(noise(60, 40), "PNG"), 2399)
    assert sentence == f"x.jpg has 60 x 40 pixels, but 'max_pixels' is 2399; {limit}"
    assert read(saved(noise(60, 40), "PNG"), 2400).shape == (3, 16, 16)
    sentence = message(headed(5000, 4000))
    assert sentence == f"x.jpg has 5000 x 4000 pixels, but 'max_pixels' is 1000000; {limit}"


@pytest.mark.parametrize(("width", "height"), [(1, 49_000_000), (49_000_000, 1), (65_536, 10)])
def test_a_thread_of_pixels_is_refused_at_once_and_cheaply(width: int, height: int) -> None:
    """It has fewer pixels than are allowed; decoding it took 500 MB and ten seconds."""
    zeros, left = zlib.compressobj(1), (1 + 3 * width) * height
    sizes = [1 << 20] * (left >> 20) + [left % (1 << 20)]
    rows = b"".join(zeros.compress(bytes(size)) for size in sizes)
    whole = headed(width, height, rows + zeros.flush())
    begin, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    told = f"x.jpg has {width} x {height} pixels, but a side may have 65,535; cut it."
    assert message(whole, 50_000_000) == told
    assert time.process_time() - begin < 0.5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes
    assert read(saved(PIL.Image.new("L", (65_535, 1)), "PNG")).shape == (3, 16, 16)


def test_bombs_make_no_noise() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        sentence = message(headed(10_000, 10_000))  # Pillow warns of it
        assert sentence.startswith("x.jpg has 10000 x 10000 pixels, ")
        bomb = "x.jpg has too many pixels to be decoded safely; make it smaller."
        for side in (14_000, 60_000):  # and refuses these
            assert message(headed(side, side), 10**12) == bomb
    assert heard == []


def test_warnings_of_others_are_left_alone() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        message(headed(10_000, 10_000))
        PIL.Image.open(io.BytesIO(headed(10_000, 10_000)))
    assert [one.category for one in heard] == [PIL.Image.DecompressionBombWarning]


@pytest.mark.parametrize("kind", ["GIF", "PNG", "WEBP", "AVIF"])
def test_moving_images(kind: str) -> None:
    more = [noise(seed=1), noise(seed=2)]
    content = saved(noise(), kind, save_all=True, append_images=more, duration=100)
    assert message(content) == (
        "x.jpg moves: it has several frames. Videos belong to the video systems; an image is still."
    )
    assert read(saved(noise(), kind, save_all=True)).shape == (3, 16, 16)


def test_few_very_large_images_are_decoded_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, most, real = 0, list[int](), images.framed

    def framed(*given: Any, **how: Any) -> NDArray[np.uint8]:
        nonlocal at_once
        at_once += 1
        most.append(at_once)
        time.sleep(0.02)
        at_once -= 1
        return real(*given, **how)

    monkeypatch.setattr(images, "framed", framed)
    monkeypatch.setattr(images, "LARGE", 10)
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(read, [saved(noise(), "PNG")] * 8))) == 8
    assert max(most) <= 2


def test_very_many_scans() -> None:
    """A JPEG may go over its image again and again, in a few bytes each time."""
    content = saved(noise(), "JPEG", progressive=True)
    again = content[content.rindex(b"\xff\xda") : -2]
    assert read(content[:-2] + again * 50 + content[-2:]).shape == (3, 16, 16)
    told = "x.jpg has more than 100 scans, which would take very long to decode; save it again."
    assert message(content[:-2] + again * 200 + content[-2:]) == told


def test_good_photos_that_hold_the_marker_of_a_scan_elsewhere() -> None:
    marker, photo = b"\xff\xda", saved(noise(), "JPEG")
    want_CHW = read(photo)
    # a photo with its video
    behind = photo + np.random.default_rng(0).bytes(8_000_000) + marker * 200
    begin = time.process_time()
    assert np.array_equal(read(behind), want_CHW)
    assert time.process_time() - begin < 0.5
    # several segments
    assert np.array_equal(read(saved(noise(), "JPEG", icc_profile=marker * 90_000)), want_CHW)
    commented = photo[:2] + b"\xff\xfe\x01\x92" + marker * 200 + photo[2:]
    assert np.array_equal(read(commented), want_CHW)


def test_scans_are_counted_in_whatever_is_there() -> None:
    photo = saved(noise(400, 300), "JPEG", progressive=True)
    count = images._scans(io.BytesIO(photo))
    assert count == photo.count(b"\xff\xda") > 5
    # a marker may have more of its first byte before it
    filled = photo.replace(b"\xff\xda", b"\xff\xff\xff\xda")
    assert images._scans(io.BytesIO(filled)) == count
    for length in range(0, len(photo), 7):
        assert images._scans(io.BytesIO(photo[:length])) <= count
    random = np.random.default_rng(0).bytes(3_000_000)
    segments = (b"\xff\xda\0\0" * 600_000, b"\xff\xfe\0\2" * 600_000)
    for content in (b"\xff" * 3_000_000, *segments, random):
        assert images._scans(io.BytesIO(content)) <= 101
    # the marker lies at the border of what is read at a time
    long, scans = photo[:-2] + b"\xff\0" * 1_500_000, photo[photo.index(b"\xff\xda") :]
    for more in range(4):
        assert images._scans(io.BytesIO(long + b"\0" * more + scans)) == 2 * count


def test_pages_and_previews() -> None:
    content = saved(noise(), "TIFF", save_all=True, append_images=[noise(seed=1)])
    sentence = message(content)
    assert sentence == "x.jpg has several pages; save the one that is meant as a file of its own."
    photo = saved(noise(), "MPO", save_all=True, append_images=[noise(seed=1)])
    assert np.array_equal(read(photo), read(saved(noise(), "JPEG")))


def test_numbers_that_are_no_colours() -> None:
    sentence = "x.jpg has 32 bits for each pixel, which tells no colour; save it with 8 or 16."
    assert message(saved(PIL.Image.new("F", (9, 9), 0.5), "TIFF")) == sentence
    assert message(saved(PIL.Image.new("I", (9, 9), 70_000), "TIFF")) == sentence
    assert message(saved(PIL.Image.new("I", (9, 9), -1), "TIFF")) == sentence


def test_many_threads_stay_quiet_and_right() -> None:
    content, loud = saved(noise(), "JPEG"), headed(10_000, 10_000)
    want_CHW = read(content)
    wrong: list[str] = []

    def work() -> None:
        for _ in range(40):
            if not np.array_equal(read(content), want_CHW):
                wrong.append("another image")
            try:
                read(loud)
            except DataError as error:
                if "10000 x 10000" not in str(error):  # a warning that is an error here
                    wrong.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    filters = list(warnings.filters)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(warnings.filters) == filters


def test_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    told = r"^pillow is not installed\. Run: pip install 'sixjars\[vision\]'$"
    with pytest.raises(MissingExtra, match=told):
        read(b"x")
    with pytest.raises(MissingExtra, match=told):
        upright(io.BytesIO(b"x"), "x", max_pixels=9)


def test_every_ending_is_an_image_for_pillow() -> None:
    PIL.Image.init()
    known = PIL.Image.registered_extensions()
    kinds = {known[ending] for ending in IMAGE_ENDINGS}
    assert kinds == {"JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "AVIF", "JPEG2000"}
