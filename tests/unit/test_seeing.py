"""From files to numbers: what is bad is told, nothing is opened twice, and a kill costs one block."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, final

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn

from sixjars.data import media as media_files
from sixjars.data.fields.image import LARGEST, Kept, Seeing, keep, media_of, records_of
from sixjars.data.media.files import MediaFiles
from sixjars.data.media.images import read_image
from sixjars.model.backbones import Backbone, MapShape
from sixjars.model.build import resolved, sight_of
from sixjars.progress import Reporter
from sixjars.recipe.sections import ImageSettings, MediaSettings, VideoSettings
from sixjars.tasks import TASKS
from sixjars.tasks import seeing as seeing_files

SIDE = 8
COLOURS = ("red", "green", "blue", "white", "black", "orange", "purple")


@final
class Halves(Backbone):
    """A stand-in for a network with weights: the mean of each quarter and of the whole, times a weight."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.usual_size = SIDE
        self.shape = MapShape(3, 2, 2, 3)
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        colours = pixels.float() * self.scale
        return nn.functional.adaptive_avg_pool2d(colours, 2), colours.mean((2, 3))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, cache: Path) -> Path:
    """Seven pictures of one colour each."""
    made = tmp_path / "files"
    made.mkdir()
    for name in COLOURS:
        Image.new("RGB", (20, 10), name).save(made / f"{name}.png")
    return made


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each file was unpacked."""
    count: Counter[str] = Counter()

    def counting(file: Any, name: str, **settings: Any) -> NDArray[np.uint8]:
        count[name] += 1
        return read_image(file, name, **settings)

    monkeypatch.setattr(seeing_files, "read_image", counting)
    return count


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Installs the stand-in, with a weight; the one that was loaded before is forgotten, then and afterwards."""

    def install(value: float) -> None:
        monkeypatch.setattr(seeing_files, "backbone_named", lambda name, **_: Halves(value))
        seeing_files._loaded.cache_clear()

    yield install
    seeing_files._loaded.cache_clear()


def learning(settings: MediaSettings | None = None, *, cells: bool = True) -> Seeing:
    section, _ = resolved("encoder", {}, TASKS["image_captioning"])
    return Seeing(settings or ImageSettings(size=SIDE), sight_of(section), cells, torch.device("cpu"))


def frozen(*, cells: bool = True, layer: str | None = None) -> Seeing:
    eyes = {"name": "efficientnet_lite0", "layer": layer}
    section, _ = resolved("encoder", {"backbone": eyes}, TASKS["image_captioning"])
    return Seeing(ImageSettings(size=SIDE), sight_of(section), cells, torch.device("cpu"))


def kept(names: list[str], folder: Path, seeing: Seeing | None = None) -> Kept:
    return keep(names, media_of([folder]), seeing or learning(), Reporter())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_pixels_are_those_of_the_file(folder: Path) -> None:
    seeing = learning()
    found = kept(names(folder), folder, seeing)
    assert found.faults == {}
    order = ["white.png", "red.png", "red.png"]
    numbers, lengths = records_of([found.keys[name] for name in order], seeing).take(np.arange(3))
    assert lengths.tolist() == [1, 1, 1]
    for at, name in enumerate(order):
        with (folder / name).open("rb") as file:
            wanted = read_image(file, name, size=SIDE, fit="crop", max_pixels=1000)
        np.testing.assert_array_equal(numbers[at, 0].reshape(3, SIDE, SIDE), wanted)


def test_a_side_is_as_long_as_the_backbone_s_usual_one_unless_told() -> None:
    assert learning(ImageSettings()).pixels == 64
    assert learning().pixels == SIDE
    assert (learning().kind, learning(VideoSettings()).kind) == ("image", "video")


def test_bad_files_are_told_and_the_others_seen(folder: Path) -> None:
    (folder / "text.png").write_bytes(b"no picture")
    (folder / "empty.png").write_bytes(b"")
    (folder / "cut.png").write_bytes((folder / "red.png").read_bytes()[:40])
    found = kept([*names(folder), "gone.png"], folder)
    assert sorted(found.keys) == sorted(f"{name}.png" for name in COLOURS)
    assert found.faults["text.png"].startswith("text.png is not a picture, or damaged from its first bytes")
    assert found.faults["empty.png"] == "empty.png is empty."
    assert found.faults["cut.png"].startswith("cut.png is ")
    assert found.faults["gone.png"].startswith(f"There is no file 'gone.png' in {folder}")
    assert set(found.faults) == {"text.png", "empty.png", "cut.png", "gone.png"}


def test_copies_of_a_bad_file_are_bad(folder: Path, opened: Counter[str]) -> None:
    for name in ("one.png", "two.png", "three.png"):
        (folder / name).write_bytes(b"no picture")
    found = kept(names(folder), folder)
    assert set(found.faults) == {"one.png", "two.png", "three.png"}
    assert sum(opened[name] for name in found.faults) == 1
    assert set(found.keys) == {f"{name}.png" for name in COLOURS}


def test_nothing_is_unpacked_twice(folder: Path, opened: Counter[str]) -> None:
    shutil.copy(folder / "red.png", folder / "copy of red.png")
    found = kept(["red.png", "copy of red.png", "blue.png", "red.png"], folder)
    assert found.keys["red.png"] == found.keys["copy of red.png"] != found.keys["blue.png"]
    assert opened == {"red.png": 1, "blue.png": 1}
    kept(["blue.png", "green.png", "copy of red.png"], folder)
    assert opened == {"red.png": 1, "blue.png": 1, "green.png": 1}


def test_a_second_run_opens_no_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept(names(folder), folder)

    def refuse(*_: object) -> None:
        raise AssertionError("a file was opened")

    monkeypatch.setattr(media_files._Folder, "open", refuse)
    assert kept(names(folder), folder) == before


def test_a_changed_file_is_seen_anew(folder: Path, opened: Counter[str]) -> None:
    before = kept(["red.png"], folder).keys["red.png"]
    Image.new("RGB", (20, 12), "yellow").save(folder / "red.png")
    assert kept(["red.png"], folder).keys["red.png"] != before
    assert opened == {"red.png": 2}


@final
class Killer:
    """Tells how far it is, and dies after so many blocks."""

    def __init__(self, after: int) -> None:
        self.told: list[tuple[str, int, int]] = []
        self.after = after
        quiet = Reporter()
        self.begin, self.stepped, self.validated, self.end = quiet.begin, quiet.stepped, quiet.validated, quiet.end

    def prepared(self, what: str, *, done: int, total: int) -> None:
        self.told.append((what, done, total))
        if len(self.told) == self.after:
            raise KeyboardInterrupt


def test_work_that_was_killed_goes_on(folder: Path, opened: Counter[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeing_files, "BLOCK", {"image": 3})
    with pytest.raises(KeyboardInterrupt):
        keep(names(folder), media_of([folder]), learning(), Killer(after=1))
    assert opened.total() == 3
    told = Killer(after=99)
    found = keep(names(folder), media_of([folder]), learning(), told)
    assert told.told == [("seeing image files", 3, 4), ("seeing image files", 4, 4)]
    assert len(found.keys) == 7
    assert opened == {name: 1 for name in names(folder)}


def test_features_are_those_of_the_backbone(
    folder: Path, scale: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many go in at once; maps first, then the vector, rounded to 16 bits."""
    scale(0.37)
    monkeypatch.setattr(seeing_files, "FRAMES", 2)
    seeing, told = frozen(), Killer(after=99)
    found = keep(names(folder), media_of([folder]), seeing, told)
    assert told.told == [("efficientnet_lite0 features", 7, 7)]
    numbers, _ = records_of([found.keys[name] for name in names(folder)], seeing).take(np.arange(7))
    assert numbers.dtype == np.float16
    for at, name in enumerate(names(folder)):
        with (folder / name).open("rb") as file:
            pixels = read_image(file, name, size=SIDE, fit="crop", max_pixels=1000)
        colour = torch.from_numpy(pixels).float().mean((1, 2)) * 0.37
        wanted = torch.cat([colour.repeat_interleave(4), colour])  # a picture of one colour is that colour everywhere
        torch.testing.assert_close(torch.from_numpy(numbers[at, 0]).float(), wanted, rtol=2e-3, atol=1e-3)


def test_films_of_different_lengths_keep_their_own_features(
    scale: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    scale(1.0)
    monkeypatch.setattr(seeing_files, "FRAMES", 3)
    noise = np.random.default_rng(0)
    films = [noise.integers(0, 256, (length, 3, SIDE, SIDE)).astype(np.uint8) for length in (4, 1, 3)]
    for film, found in zip(films, frozen().numbers(films), strict=True):
        maps, vector = Halves(1.0)(torch.from_numpy(film))
        wanted = torch.cat([maps.flatten(1), vector], 1).half()
        np.testing.assert_array_equal(found, wanted.detach().numpy())


def test_the_vector_alone_where_nobody_looks_at_cells(folder: Path, scale: Callable[[float], None]) -> None:
    scale(0.37)
    numbers = {}
    for cells in (True, False):
        seeing = frozen(cells=cells)
        found = kept(["red.png", "orange.png"], folder, seeing)
        numbers[cells], _ = records_of(list(found.keys.values()), seeing).take(np.arange(2))
    assert numbers[True].shape == (2, 1, 3 * 2 * 2 + 3)
    np.testing.assert_array_equal(numbers[False], numbers[True][..., -3:])


def test_which_cells_are_taken_matters_only_where_they_are(cache: Path, scale: Callable[[float], None]) -> None:
    """One store holds the vectors, whatever layer the cells of others come from; pixels have no cells yet."""
    scale(0.5)

    def place(*, cells: bool, layer: str | None = None) -> Path:
        return frozen(cells=cells, layer=layer).store.folder

    assert len({place(cells=True), place(cells=True, layer="head"), place(cells=False)}) == 3
    assert place(cells=False, layer="head") == place(cells=False)
    assert learning(cells=False).store.folder == learning().store.folder
    assert (learning().frozen, learning().weights) == (None, None)


def test_features_too_large_for_16_bits_stay_numbers(folder: Path, scale: Callable[[float], None]) -> None:
    scale(1e9)
    seeing = frozen()
    found = kept(["white.png"], folder, seeing)
    numbers, _ = records_of(list(found.keys.values()), seeing).take(np.array([0]))
    assert numbers.max() == LARGEST


def test_other_weights_are_another_store(folder: Path, scale: Callable[[float], None], opened: Counter[str]) -> None:
    scale(0.5)
    first = frozen()
    kept(["red.png"], folder, first)
    again = frozen()
    kept(["red.png"], folder, again)
    assert opened == {"red.png": 1}
    assert first.weights == again.weights
    scale(0.51)
    other = frozen()
    kept(["red.png"], folder, other)
    assert opened == {"red.png": 2}
    assert other.weights != first.weights
    assert other.store.folder != first.store.folder == again.store.folder


def test_whatever_numbers_depend_on_makes_another_store(cache: Path) -> None:
    pictures = [ImageSettings(size=SIDE), ImageSettings(size=9), ImageSettings(size=SIDE, fit="pad")]
    films = [VideoSettings(size=SIDE, **more) for more in ({}, {"frames": 3}, {"rate": 2.0})]
    places = {learning(settings).store.folder for settings in (*pictures, *films)}
    assert len(places) == 6


def test_what_numbers_do_not_depend_on_makes_none(cache: Path) -> None:
    settings = ImageSettings(size=SIDE, column="picture", media="elsewhere", max_pixels=7)
    assert learning(settings).store.folder == learning().store.folder


def test_names_lead_to_files_in_folders_and_zips(folder: Path) -> None:
    shutil.make_archive(str(folder.parent / "packed"), "zip", folder)
    packed = media_of([folder.parent / "packed.zip"])
    assert isinstance(packed, MediaFiles)
    found = keep(["red.png", "blue.png"], packed, learning(), Reporter())
    assert found == kept(["red.png", "blue.png"], folder)
