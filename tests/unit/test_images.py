"""Images become arrays: every colour kind, every way a camera is held, every shape."""

import io
import struct
from typing import Any, get_args

import numpy as np
import PIL.Image
import pytest
from numpy.typing import NDArray

from sixjars_runtime import images
from sixjars_runtime.images import Fit, placed, read_image, upright
from tests.unit.test_bad_images import saved

FITS: tuple[Fit, ...] = get_args(Fit)
RED, BLUE, GREEN, WHITE = (255, 0, 0), (0, 0, 255), (0, 255, 0), (255, 255, 255)


def corners(width: int = 60, height: int = 40) -> PIL.Image.Image:
    """Red top left, green top right, blue bottom left, white bottom right."""
    pixels_HWC = np.zeros((height, width, 3), dtype=np.uint8)
    pixels_HWC[: height // 2, : width // 2] = RED
    pixels_HWC[: height // 2, width // 2 :] = GREEN
    pixels_HWC[height // 2 :, : width // 2] = BLUE
    pixels_HWC[height // 2 :, width // 2 :] = WHITE
    return PIL.Image.fromarray(pixels_HWC)


def read(
    content: bytes, *, size: int = 16, fit: Fit = "crop", max_pixels: int = 10**6
) -> NDArray[np.uint8]:
    return read_image(io.BytesIO(content), "x.jpg", size=size, fit=fit, max_pixels=max_pixels)


def of_one_colour(content: bytes) -> list[int]:
    """The colour of an image that has only one."""
    square_CHW = read(content)
    assert square_CHW.shape == (3, 16, 16)
    assert square_CHW.dtype == np.uint8
    assert (square_CHW.max((1, 2)).astype(int) - square_CHW.min((1, 2))).max() <= 2
    return [int(value) for value in square_CHW[:, 8, 8]]


def plain(mode: str, colour: Any) -> PIL.Image.Image:
    return PIL.Image.new(mode, (30, 20), colour)


def palette(colour: int) -> PIL.Image.Image:
    image = plain("P", colour)
    image.putpalette([10, 20, 30, 200, 100, 50])
    return image


COLOURS = {
    "colour": (saved(plain("RGB", (200, 100, 50)), "JPEG", quality=95), (200, 100, 50)),
    "grey": (saved(plain("L", 90), "JPEG", quality=95), (90, 90, 90)),
    "one bit": (saved(plain("1", 1), "PNG"), WHITE),
    "16 bits": (saved(plain("I;16", 90 * 257), "PNG"), (90, 90, 90)),
    "16 bits, full": (saved(plain("I;16", 0xFFFF), "TIFF"), WHITE),
    "16 bits in 32": (b"P5 2 2 65535\n" + struct.pack(">4H", *[90 * 257] * 4), (90, 90, 90)),
    "palette": (saved(palette(1), "PNG"), (200, 100, 50)),
    "palette, seen through": (saved(palette(1), "PNG", transparency=1), WHITE),
    "palette, not seen through": (saved(palette(1), "PNG", transparency=0), (200, 100, 50)),
    "palette of a GIF, seen through": (saved(palette(1), "GIF", transparency=1), WHITE),
    "palette, half seen through": (
        saved(palette(0), "PNG", transparency=bytes([128, 255])),
        (132, 137, 142),
    ),
    "alpha": (saved(plain("RGBA", (200, 100, 50, 51)), "PNG"), (244, 224, 214)),
    "alpha of grey": (saved(plain("LA", (100, 51)), "PNG"), (224, 224, 224)),
    "a colour seen through": (saved(plain("RGB", (9, 9, 9)), "PNG", transparency=(9, 9, 9)), WHITE),
    "a grey seen through": (saved(plain("L", 9), "PNG", transparency=9), WHITE),
    "ink": (saved(plain("CMYK", (0, 255, 255, 0)), "TIFF"), RED),
    "ink, as Adobe writes it": (saved(plain("CMYK", (255, 0, 255, 0)), "JPEG", quality=95), GREEN),
    "luminance": (saved(plain("YCbCr", (76, 85, 255)), "TIFF"), (254, 0, 0)),
    "webp": (saved(plain("RGBA", (0, 0, 255, 0)), "WEBP", lossless=True), WHITE),
    "bmp": (saved(plain("RGB", (200, 100, 50)), "BMP"), (200, 100, 50)),
}


@pytest.mark.parametrize("name", COLOURS)
def test_every_kind_of_colour_becomes_red_green_and_blue(name: str) -> None:
    content, want = COLOURS[name]
    assert ("Adobe" in name) == (b"Adobe" in content)  # its mark: the ink is written as 255 - ink
    assert of_one_colour(content) == pytest.approx(want, abs=3)
    whole_HWC = upright(io.BytesIO(content), "x", max_pixels=10**6)
    assert whole_HWC.dtype == np.uint8
    assert whole_HWC[1, 1].tolist() == pytest.approx(want, abs=3)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "AVIF"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_upright(kind: str, orientation: int) -> None:
    """The file holds the pixels as the sensor saw them; by the standard, so it was held."""
    seen_HWC = np.asarray(corners(64, 32))
    mirrored, half = seen_HWC[:, ::-1], seen_HWC[::-1, ::-1]
    held = [seen_HWC, mirrored, half, seen_HWC[::-1], seen_HWC.transpose(1, 0, 2)]
    held += [np.rot90(seen_HWC, 1), half.transpose(1, 0, 2), np.rot90(seen_HWC, -1)]
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    image = PIL.Image.fromarray(np.ascontiguousarray(held[orientation - 1]))
    content = saved(image, kind, exif=exif, quality=95)
    whole_HWC = upright(io.BytesIO(content), "x", max_pixels=10**6)
    assert whole_HWC.shape == (32, 64, 3)
    places = ((8, 16, RED), (8, 48, GREEN), (24, 16, BLUE), (24, 48, WHITE))
    for row, column, colour in places:
        assert whole_HWC[row, column].tolist() == pytest.approx(colour, abs=12)
    square_CHW = read(content, size=32, fit="stretch")
    for row, column, colour in places:
        assert square_CHW[:, row, column // 2].tolist() == pytest.approx(colour, abs=12)


# whose filters are the process's, and not ours to change
@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")
def test_damaged_exif_does_not_matter() -> None:
    content = saved(corners(), "JPEG", exif=b"Exif\0\0II*\0\xff\xff\xff\xff", quality=95)
    whole_HWC = upright(io.BytesIO(content), "x", max_pixels=10**6)
    assert whole_HWC[10, 10].tolist() == pytest.approx(RED, abs=12)


@pytest.mark.parametrize(("width", "height"), [(90, 30), (30, 90), (60, 60), (41, 640)])
@pytest.mark.parametrize("fit", FITS)
def test_the_square_shows_what_placed_tells(width: int, height: int, fit: Fit) -> None:
    """An image whose red is its column and green its row, from 0 to 255: where a pixel is from."""
    across = np.broadcast_to((np.arange(width) + 0.5) / width, (height, width))
    down = np.broadcast_to(((np.arange(height) + 0.5) / height)[:, None], (height, width))
    pixels_HWC = np.stack([across * 255, down * 255, np.zeros_like(across)], axis=2)
    image, size = PIL.Image.fromarray(pixels_HWC.astype(np.uint8)), 120
    square_CHW = read(saved(image, "PNG"), size=size, fit=fit)
    left, top, right, bottom = placed(height, width, fit)
    middles = (np.arange(size) + 0.5) / size
    x_HW, y_HW = np.meshgrid(left + (right - left) * middles, top + (bottom - top) * middles)
    slack = 1.5 * max(right - left, bottom - top) / size
    inside = np.minimum(np.minimum(x_HW, 1 - x_HW), np.minimum(y_HW, 1 - y_HW))
    assert (square_CHW[2][inside > slack] == 0).all()
    assert (square_CHW[:, inside < -slack] == 128).all()
    assert (inside < -slack).any() == (fit == "pad" and width != height)
    deep = inside > max(slack, 2 / width, 2 / height)
    assert deep.sum() > 200
    assert np.abs(square_CHW[0] - x_HW * 255)[deep].max() < 255 * slack + 1
    assert np.abs(square_CHW[1] - y_HW * 255)[deep].max() < 255 * slack + 1
    middle = square_CHW[:, 59:61, 59:61].mean((1, 2)).tolist()
    assert middle == pytest.approx([127, 127, 0], abs=2)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize(("width", "height"), [(1, 500), (500, 1), (1, 1)])
def test_the_narrowest_images(width: int, height: int, fit: Fit) -> None:
    content = saved(PIL.Image.new("RGB", (width, height), RED), "JPEG", quality=95)
    square_CHW = read(content, size=20, fit=fit)
    assert square_CHW.shape == (3, 20, 20)
    assert square_CHW[:, 9, 9].tolist() == pytest.approx(RED, abs=3)
    bars = (square_CHW == 128).all(0).sum()
    assert bars == (18 * 20 if fit == "pad" and width != height else 0)


def test_pixels_do_not_depend_on_the_version_of_pillow() -> None:
    """Noise in a tall image, as Pillow 11 makes it smaller; Pillow 13 rounds elsewhere."""
    at_HWC = np.arange(9 * 4 * 3).reshape(9, 4, 3)
    noise = PIL.Image.fromarray((at_HWC * at_HWC * 7 % 251).astype(np.uint8))
    found_CHW = read(saved(noise, "PNG"), size=3, fit="stretch")
    assert found_CHW[0].tolist() == [[25, 41, 57], [93, 116, 140], [117, 131, 145]]
    assert found_CHW[1].tolist() == [[102, 113, 109], [151, 96, 115], [142, 154, 126]]


@pytest.mark.parametrize(
    ("width", "height", "size"), [(64, 64, 32), (90, 37, 32), (90, 60, 100), (400, 400, 32)]
)
def test_other_images_become_smaller_as_pillow_makes_them(
    width: int, height: int, size: int
) -> None:
    random = np.random.default_rng(0)
    noise = PIL.Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))
    found_CHW = read(saved(noise, "PNG"), size=size, fit="stretch")
    wanted = noise.resize((size, size), PIL.Image.Resampling.BICUBIC, reducing_gap=3.0)
    assert np.array_equal(found_CHW.transpose(1, 2, 0), np.asarray(wanted))


def test_placed_by_hand() -> None:
    assert placed(200, 100, "crop") == (0.0, 0.25, 1.0, 0.75)
    assert placed(300, 100, "pad") == (-1.0, 0.0, 2.0, 1.0)
    for shape in ((300, 100, "stretch"), (7, 7, "crop"), (7, 7, "pad")):
        assert placed(*shape) == (0.0, 0.0, 1.0, 1.0)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_fine_pattern_becomes_grey_not_stripes(kind: str) -> None:
    """Columns of black and white, much finer than the square can show."""
    columns = np.tile(np.array([0, 255], dtype=np.uint8), 1000)
    content = saved(PIL.Image.fromarray(np.tile(columns, (1500, 1))), kind)
    square_CHW = read(content, size=50, max_pixels=10**7)
    assert np.abs(square_CHW.astype(int) - 127).max() <= 4


@pytest.mark.parametrize("fit", FITS)
def test_a_large_jpeg_is_decoded_small_and_looks_the_same(
    fit: Fit, monkeypatch: pytest.MonkeyPatch
) -> None:
    ramp = np.linspace(0, 255, 1600)
    planes = np.broadcast_arrays(ramp[None, :1200], ramp[:, None], 90.0)
    image = PIL.Image.fromarray(np.stack(planes, axis=2).astype(np.uint8))
    content = saved(image, "JPEG", quality=95)
    decoded: list[tuple[int, int]] = []
    framed = images.framed

    def watched(image: PIL.Image.Image, **given: Any) -> NDArray[np.uint8]:
        decoded.append(image.size)
        return framed(image, **given)

    monkeypatch.setattr(images, "framed", watched)
    got_CHW = read(content, size=100, fit=fit, max_pixels=10**7)
    # the largest that 1/2, 1/4 or 1/8 leave twice as large as used
    small = (150, 200) if fit == "pad" else (300, 400)
    assert decoded == [small]
    want_CHW = read(saved(image, "PNG"), size=100, fit=fit, max_pixels=10**7)
    assert decoded == [small, (1200, 1600)]
    # bars end within a pixel of each other
    difference = np.abs(got_CHW.astype(int) - want_CHW)[:, 3:-3, 14:-14]
    assert difference.max() <= 4


def test_upright_shrinks_and_never_grows() -> None:

    def whole(image: PIL.Image.Image, kind: str = "PNG", **more: Any) -> NDArray[np.uint8]:
        return upright(io.BytesIO(saved(image, kind)), "x", max_pixels=10**7, **more)

    large_HWC = whole(corners(2000, 500), "JPEG")
    assert large_HWC.shape == (160, 640, 3)
    assert large_HWC[20, 100].tolist() == pytest.approx(RED, abs=12)
    assert whole(corners(50, 20)).shape == (20, 50, 3)
    assert whole(corners(900, 2), longest=30).shape == (1, 30, 3)
