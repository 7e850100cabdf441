"""From the names of picture and film files to the numbers that an encoder reads, computed once and kept.

Dims: F frames of a file, X frames of several files, C colours or channels, H and W pixels or cells,
      K numbers of a frame's vector, N all numbers of a frame.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.data.cache import cache_folder
from sixjars.data.films import read_film
from sixjars.data.media import Media
from sixjars.data.pictures import read_picture
from sixjars.data.store import Records, Store
from sixjars.errors import DataError
from sixjars.learning.progress import Reporter
from sixjars.model.backbones import Backbone, backbone_named, fingerprint, usual_size_of
from sixjars.model.sight import learns
from sixjars.recipe.fields import MediaSettings, VideoSettings

FORMAT = 1
"""Changes when the same file gives other numbers, so that none of the old are used."""
READERS = 8
"""Threads that unpack files while the backbone computes."""
BLOCK = {"image": 256, "video": 16}
"""Files between two saves: what a kill can cost."""
FRAMES = 32
"""Frames that the backbone sees at once."""
LARGEST = 65504.0
"""Of a 16-bit number."""
Pixels = NDArray[np.uint8]


@final
@dataclass(frozen=True)
class Seeing:
    """How the files of one field become numbers: pixels for a backbone that learns, features of one that does not."""

    settings: MediaSettings
    sight: Mapping[str, Any]
    """The resolved section of the recipe that says which backbone sees them."""
    cells: bool
    """Whether the cells of a frame are wanted, or its vector alone."""
    device: torch.device

    @property
    def pixels(self) -> int:
        """Of each side, as the network sees them."""
        return self.settings.size or usual_size_of(self.sight["name"])

    @property
    def kind(self) -> str:
        """What the files are, for people."""
        return "video" if isinstance(self.settings, VideoSettings) else "image"

    @cached_property
    def frozen(self) -> Backbone | None:
        """The backbone that computes features; nothing where the network has it."""
        if learns(self.sight["name"], tuned=self.sight["tuned"]):
            return None
        return _loaded(self.sight["name"], self.sight["layer"], self.pixels)[0].to(self.device)

    @cached_property
    def store(self) -> Store:
        """Where the numbers are kept: all that they depend on is its plan."""
        plan: dict[str, Any] = {"format": FORMAT, "pixels": self.pixels, "fit": self.settings.fit}
        if isinstance(self.settings, VideoSettings):
            plan |= {"frames": self.settings.frames, "rate": self.settings.rate}
        if self.frozen is not None:
            plan |= {"backbone": self.sight["name"], "weights": self.weights}
            plan |= {"layer": self.sight["layer"]} if self.cells else {"vector": "alone"}
        return Store(cache_folder() / "frames", plan)

    @cached_property
    def weights(self) -> str | None:
        """A number that changes with the weights of a backbone that does not learn."""
        if learns(self.sight["name"], tuned=self.sight["tuned"]):
            return None
        return _loaded(self.sight["name"], self.sight["layer"], self.pixels)[1]

    def unpacked(self, media: Media, name: str) -> Pixels:
        """One file as frames, (F, 3, H, W)."""
        settings = self.settings
        fit, size, limit = settings.fit, self.pixels, settings.max_pixels
        with media.open(name) as file:
            if isinstance(settings, VideoSettings):
                frames, rate = settings.frames, settings.rate
                return read_film(file, name, size=size, fit=fit, max_pixels=limit, frames=frames, rate=rate)
            return read_picture(file, name, size=size, fit=fit, max_pixels=limit)[None]

    def numbers(self, films: Sequence[Pixels]) -> list[NDArray[Any]]:
        """What is kept of each file, (F, N)."""
        if self.frozen is None:
            return [film.reshape(len(film), -1) for film in films]
        pixels_XCHW = torch.from_numpy(np.concatenate(films))
        features_XN = torch.cat([self._features(some) for some in torch.split(pixels_XCHW, FRAMES)]).numpy()
        ends = np.cumsum([len(film) for film in films])
        return np.split(features_XN, ends[:-1])

    def _features(self, pixels: Tensor) -> Tensor:
        assert self.frozen is not None
        with torch.inference_mode():
            maps_XCHW, vector_XK = self.frozen(pixels.to(self.device))
            both_XN = torch.cat([maps_XCHW.flatten(1), vector_XK], dim=1) if self.cells else vector_XK
        return both_XN.clamp(-LARGEST, LARGEST).half().cpu()


@lru_cache(maxsize=1)
def _loaded(name: str, layer: str | None, size: int) -> tuple[Backbone, str]:
    """A backbone that does not learn, and the fingerprint of its weights: loaded once for all that ask."""
    backbone = backbone_named(name, layer=layer, size=size).eval()
    return backbone, fingerprint(backbone)


@final
@dataclass(frozen=True)
class Kept:
    """What became of some files."""

    keys: Mapping[str, str]
    """File -> the key of its content."""
    faults: Mapping[str, str]
    """File -> what is wrong with it."""


def keep(names: Sequence[str], media: Media, seeing: Seeing, reporter: Reporter) -> Kept:
    """See to it that the numbers of all these files are in the store; those that were there are not opened again."""
    keys: dict[str, str] = {}
    faults: dict[str, str] = {}
    distinct = list(dict.fromkeys(names))
    for name in distinct:
        try:
            keys[name] = media.key(name)
        except DataError as error:
            faults[name] = str(error)
    missing = set(seeing.store.missing(list(keys.values())))
    wanted = list({keys[name]: name for name in reversed(keys) if keys[name] in missing}.values())[::-1]
    what = f"seeing {seeing.kind} files" if seeing.frozen is None else f"{seeing.sight['name']} features"
    for begin in range(0, len(wanted), BLOCK[seeing.kind]):
        block = wanted[begin : begin + BLOCK[seeing.kind]]
        seen = dict(_unpacked(block, media, seeing, faults))
        if seen:
            seeing.store.add([keys[name] for name in seen], seeing.numbers(list(seen.values())))
        reporter.prepared(what, done=begin + len(block), total=len(wanted))
    broken = {keys[name]: sentence for name, sentence in faults.items() if name in keys}
    faults |= {name: broken[key] for name, key in keys.items() if key in broken}  # copies of a bad file
    return Kept({name: key for name, key in keys.items() if name not in faults}, faults)


def _unpacked(
    names: Sequence[str], media: Media, seeing: Seeing, faults: dict[str, str]
) -> Iterator[tuple[str, Pixels]]:
    """Files in order, several unpacked at once; what is wrong with a bad one goes to `faults`."""

    def tried(name: str) -> Pixels | str:
        try:
            return seeing.unpacked(media, name)
        except DataError as error:
            return str(error)

    with ThreadPoolExecutor(READERS) as pool:
        for name, found in zip(names, pool.map(tried, names), strict=True):
            if isinstance(found, str):
                faults[name] = found
            else:
                yield name, found


def records_of(keys: Sequence[str], seeing: Seeing) -> Records:
    """The kept numbers of files, by the keys of their content."""
    return seeing.store.view(keys)


def media_of(places: Sequence[Path]) -> Media:
    """Files in folders and zips."""
    return Media(places, memory=cache_folder())
