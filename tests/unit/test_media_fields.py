"""From image files to numbers: bad ones are told, none is decoded twice, a kill costs a block."""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from sixjars.data.field import Equipment, FeatureExtractor
from sixjars.data.fields.image import ImageField, ImageSettings, MediaField
from sixjars.data.fields.video import VideoField, VideoSettings
from sixjars.data.media import files as media_files
from sixjars.data.storage.cache import Examples, ExampleTable, encoded
from sixjars.errors import DataError
from sixjars.model.visual import Pixels
from sixjars.progress import Reporter
from sixjars_runtime.images import read_image

SIDE = 8
COLOURS = ("red", "green", "blue", "white", "black", "orange", "purple")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Seven images of one colour each."""
    made = tmp_path / "files"
    made.mkdir()
    for name in COLOURS:
        Image.new("RGB", (20, 10), name).save(made / f"{name}.png")
    return made


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was decoded."""
    count: Counter[str] = Counter()
    read = ImageField.read

    def counting(file: Any, name: str, **settings: Any) -> NDArray[np.uint8]:
        count[name] += 1
        return read(file, name, **settings)

    monkeypatch.setattr(ImageField, "read", staticmethod(counting))
    return count


def field(
    *places: Path,
    settings: ImageSettings | None = None,
    extractor: FeatureExtractor | None = None,
    reporter: Reporter | None = None,
) -> ImageField:
    """A new field, as another run would make it."""
    kit = Equipment(places, extractor or Pixels(SIDE), stored=True, reporter=reporter or Reporter())
    return ImageField("image", settings or ImageSettings()).equipped(kit)


def admitted(names: list[str], own: MediaField, *, skip: bool = False) -> Examples:
    return own.admit(Examples.of({own.name: names}, where="a test"), skip=skip)


def keys(names: list[str], own: MediaField) -> dict[str, str]:
    table = admitted(names, own).table
    return dict(
        zip(
            table.column(own.name).to_pylist(),
            table.column(own.key_column).to_pylist(),
            strict=True,
        )
    )


def table(examples: Examples) -> ExampleTable:
    return encoded(examples, {})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def pixels(path: Path) -> NDArray[np.uint8]:
    with path.open("rb") as file:
        return read_image(file, path.name, size=SIDE, fit="crop", max_pixels=1000)


def test_pixels_are_those_of_the_file(folder: Path) -> None:
    own, order = field(folder), ["white.png", "red.png", "red.png"]
    padded = own.column(table(admitted(order, own))).padded(np.arange(3))
    assert padded.mask.tolist() == [[True]] * 3
    for at, name in enumerate(order):
        np.testing.assert_array_equal(
            padded.values[at, 0].numpy().reshape(3, SIDE, SIDE), pixels(folder / name)
        )


@pytest.mark.parametrize("stored", [True, False])
def test_bad_files_are_told_and_the_others_used(folder: Path, stored: bool) -> None:
    (folder / "text.png").write_bytes(b"no image")
    (folder / "empty.png").write_bytes(b"")
    (folder / "cut.png").write_bytes((folder / "red.png").read_bytes()[:40])
    bad = {
        "text.png": "a test, line 1: the image: text.png is not an image, or damaged from its first bytes",
        "empty.png": "a test, line 1: the image: empty.png is empty.",
        "cut.png": "a test, line 1: the image: cut.png is ",
        "gone.png": f"a test, line 1: the image: There is no file 'gone.png' in {folder}",
    }
    own = field(folder)
    own = own.equipped(Equipment((folder,), Pixels(SIDE), stored=stored))
    for name, told in bad.items():
        with pytest.raises(DataError) as error:
            admitted([name, "red.png"], own)
        assert str(error.value).startswith(told)
    left = admitted([*names(folder), "gone.png"], own, skip=True)
    assert left.skipped == 4
    assert left.table.column("image").to_pylist() == sorted(f"{name}.png" for name in COLOURS)
    sentence = r"^a test: no row is left of 2; all were bad: the image: text\.png is not an "
    with pytest.raises(DataError, match=sentence):
        admitted(["text.png", "gone.png"], own, skip=True)


def test_what_cannot_be_a_file_is_refused_before_anything_is_read(folder: Path) -> None:
    own = field(folder)
    own.check("red.png", {})
    with pytest.raises(ValueError, match=r"^the image file gone\.png does not exist\.$"):
        own.check("gone.png", {})
    with pytest.raises(ValueError, match=f"^the image file {folder} is a folder\\.$"):
        own.check(str(folder), {})
    assert own.arguments(str(folder)) == sorted(str(folder / f"{name}.png") for name in COLOURS)
    assert own.arguments(str(folder / "re*.png")) == [str(folder / "red.png")]
    assert own.arguments("gone.png") == ["gone.png"]
    with pytest.raises(DataError, match=r" holds no image file \(known endings: \.avif \.bmp "):
        own.arguments(str(folder / "*.txt"))


def test_copies_of_a_bad_file_are_bad(folder: Path, decoded: Counter[str]) -> None:
    copies = ("one.png", "two.png", "three.png")
    for name in copies:
        (folder / name).write_bytes(b"no image")
    left = admitted(names(folder), field(folder), skip=True)
    assert left.skipped == 3
    assert sum(decoded[name] for name in copies) == 1


def test_nothing_is_decoded_twice(folder: Path, decoded: Counter[str]) -> None:
    shutil.copy(folder / "red.png", folder / "copy of red.png")
    found = keys(["red.png", "copy of red.png", "blue.png", "red.png"], field(folder))
    assert found["red.png"] == found["copy of red.png"] != found["blue.png"]
    assert decoded == {"red.png": 1, "blue.png": 1}
    keys(["blue.png", "green.png", "copy of red.png"], field(folder))
    assert decoded == {"red.png": 1, "blue.png": 1, "green.png": 1}


def test_a_second_run_opens_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = keys(names(folder), field(folder))

    def refuse(*_: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(media_files._Folder, "open", refuse)
    assert keys(names(folder), field(folder)) == before


def test_a_changed_file_is_decoded_anew(folder: Path, decoded: Counter[str]) -> None:
    before = keys(["red.png"], field(folder))["red.png"]
    Image.new("RGB", (20, 12), "yellow").save(folder / "red.png")
    assert keys(["red.png"], field(folder))["red.png"] != before
    assert decoded == {"red.png": 2}


@final
class Killer(Reporter):
    """Notes how far it is, and dies after so many blocks."""

    def __init__(self, after: int) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.after = after

    def preparing(self, what: str, *, done: int, total: int) -> None:
        if what != "hashing media files":
            self.told.append((what, done, total))
        if len(self.told) == self.after:
            raise KeyboardInterrupt


def test_work_that_was_killed_goes_on(
    folder: Path, decoded: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageField, "block", 3)
    with pytest.raises(KeyboardInterrupt):
        admitted(names(folder), field(folder, reporter=Killer(after=1)))
    assert decoded.total() == 3
    progress = Killer(after=99)
    assert len(keys(names(folder), field(folder, reporter=progress))) == 7
    assert progress.told == [("pixels of image files", 3, 4), ("pixels of image files", 4, 4)]
    assert decoded == {name: 1 for name in names(folder)}


def test_whatever_numbers_depend_on_makes_another_store() -> None:
    images = [(ImageSettings(), SIDE), (ImageSettings(), 9), (ImageSettings(fit="pad"), SIDE)]
    videos = [VideoSettings(), VideoSettings(frames=3), VideoSettings(rate=2.0)]
    own = [
        ImageField("image", settings).equipped(Equipment((), Pixels(size), True))
        for settings, size in images
    ]
    more = [
        VideoField("video", settings).equipped(Equipment((), Pixels(SIDE), True))
        for settings in videos
    ]
    assert len({one.store.folder for one in (*own, *more)}) == 6  # type: ignore[union-attr]


def test_what_numbers_do_not_depend_on_makes_none(folder: Path) -> None:
    other = ImageSettings(column="picture", media="elsewhere", max_pixels=7)
    assert field(settings=other).store.folder == field(folder).store.folder  # type: ignore[union-attr]


def test_names_lead_to_files_in_folders_and_zips(folder: Path) -> None:
    shutil.make_archive(str(folder.parent / "packed"), "zip", folder)
    wanted = ["red.png", "blue.png"]
    assert keys(wanted, field(folder.parent / "packed.zip")) == keys(wanted, field(folder))


def test_a_prediction_keeps_nothing(folder: Path, cache: Path) -> None:
    """Its files are decoded each time, and nothing of them is left on the disk or in the field."""
    kit = Equipment((folder,), Pixels(SIDE), stored=False)
    own = ImageField("image", ImageSettings()).equipped(kit)
    padded = own.column(table(admitted(["red.png"], own))).padded(np.array([0]))
    np.testing.assert_array_equal(
        padded.values[0, 0].numpy().reshape(3, SIDE, SIDE), pixels(folder / "red.png")
    )
    assert not (cache / "frames").exists()
    assert own.equipped(kit).store is not own.store


def test_what_a_picture_of_attention_is_drawn_on(folder: Path) -> None:
    image_HWC, box = field(folder).backdrop("red.png")
    assert image_HWC.shape == (10, 20, 3)
    assert box == (0.25, 0.0, 0.75, 1.0)
    blank = field(folder).blank()
    assert (blank.values.shape, blank.values.dtype) == ((1, 1, 3 * SIDE * SIDE), torch.uint8)


def test_only_what_is_hidden_inside_a_folder_is_left_out(folder: Path, tmp_path: Path) -> None:
    hidden = shutil.copytree(folder, tmp_path / ".files")
    shutil.copytree(folder, hidden / "__MACOSX" / "deep")
    field = ImageField("image", ImageSettings())
    assert field.arguments(str(hidden)) == sorted(str(hidden / f"{name}.png") for name in COLOURS)


def test_a_name_that_no_system_can_have_is_a_bad_value() -> None:
    with pytest.raises(ValueError, match=r"^the image file x{300} does not exist\.$"):
        ImageField("image", ImageSettings()).check("x" * 5000, {})


def test_one_name_of_ten_may_be_mistyped() -> None:
    names = [f"{number}.jpg" for number in range(9)]
    assert ImageField.guess([*names, "a dog"]) == {}
    assert ImageField.guess([*names, "a dog", "a cow"]) is None
