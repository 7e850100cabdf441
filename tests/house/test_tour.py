"""docs/architecture.md: the stops of the tour are entered in the order of the page, and return the shapes it says.

The page has the stops, this file has none: whoever moves a function changes its row there. Each table is a part of the
tour, which begins when its first stop is entered; within it the first entry of each stop counts.
"""

import re
import sys
import threading
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, final

import pytest
from torch import Tensor

import sixjars

ROOT = Path(__file__).parents[2]
SOURCE = Path(sixjars.__file__).parent
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs" / "images" / "packages.svg").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+) \| \[`(.+?)`\]\((.+?)\) `(.+?)` \| .+ \| (.+) \|$", re.MULTILINE)
SHAPE = re.compile(r"`\(([A-Z\d](?:, [A-Z\d])*)\)`")
RECIPE = "translation/sample_attention"
SENTENCE = "I am going home"
ELSEWHERE = {"breakpoint"}
"""Names on the page that are neither files of the package nor written in its source."""
SIZES = {"E": 3, "D": 10, "C": 10, "H": 7, "A": 9, "L": 1, "1": 1, "2": 2}
"""Small and different, so that one is not taken for the other."""
LITTLE = [
    *("data.sample.size=16", "data.sample.valid=4", "data.sample.test=4"),
    *("learning.steps=2", "learning.validate_every=1", "learning.batch_examples=8"),
    *("model.encoder.size=5", "model.bridge.size=9", "model.decoder.size=7"),
    *("model.encoder.embedding.size=3", "model.decoder.embedding.size=3"),
    "evaluation.search.max_length=4",
]


@final
class Stop(NamedTuple):
    """A function of the package: its file and its qualified name."""

    file: str
    function: str


@final
@dataclass
class Visit:
    """One entry of a stop, and what it returned; of a generator, the first value."""

    stop: Stop
    returned: Any = None


def parts_of(page: str) -> list[dict[Stop, set[str]]]:
    """The stops of each table of the page in order, each with the shapes that its last cell names."""
    parts = [
        {
            Stop(file, function): set(SHAPE.findall(returned))
            for _, file, _, function, returned in ROW.findall(section)
        }
        for section in re.split(r"^##+ ", page, flags=re.MULTILINE)
    ]
    return [part for part in parts if part]


PARTS = parts_of(PAGE)
STOPS = set(chain.from_iterable(PARTS))


def shapes_in(value: Any) -> Iterator[tuple[int, ...]]:
    """The shapes of all tensors in a value, nested ones included."""
    if isinstance(value, Tensor):
        yield tuple(value.shape)
    elif isinstance(value, tuple | list):
        yield from chain.from_iterable(map(shapes_in, value))
    elif isinstance(value, dict):
        yield from shapes_in(list(value.values()))
    elif is_dataclass(value):
        yield from shapes_in([getattr(value, each.name) for each in fields(value)])


@final
class Recorder:
    """Notes the visits of stops in the order of their entry, in all threads, and everything else that is entered."""

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.entered: set[Stop] = set()
        self._open: dict[int, Visit] = {}

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        code = frame.f_code
        if event not in ("call", "return") or not code.co_filename.startswith(str(SOURCE)):
            return
        stop = Stop(Path(code.co_filename).relative_to(SOURCE).as_posix(), code.co_qualname)
        if event == "call":
            self.entered.add(stop)
            if stop in STOPS:
                self._open[id(frame)] = visit = Visit(stop)
                self.visits.append(visit)
        elif id(frame) in self._open:
            self._open.pop(id(frame)).returned = value


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """A training of two updates, and a prediction."""
    out, recorder = tmp_path_factory.mktemp("tour") / "run", Recorder()
    threading.setprofile(recorder)
    sys.setprofile(recorder)
    try:
        sixjars.train(RECIPE, LITTLE, out=out, device="cpu", baselines=False)
        sixjars.load(out, device="cpu").predict(SENTENCE)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return recorder


def visits_of(recorder: Recorder) -> list[dict[Stop, Visit]]:
    """The first visit of each stop of each part, in the order of entry."""
    first_visits: list[dict[Stop, Visit]] = []
    begin = 0
    order = [visit.stop for visit in recorder.visits]
    for part in PARTS:
        first = next(iter(part))
        begin = order.index(first, begin) if first in order[begin:] else len(order)
        visits: dict[Stop, Visit] = {}
        for visit in recorder.visits[begin:]:
            if visit.stop in part:
                visits.setdefault(visit.stop, visit)
        first_visits.append(visits)
    return first_visits


def moved(stop: Stop, entered: Iterable[Stop]) -> str:
    """Where a stop that is not entered may be now: functions of the same name that are."""
    name = stop.function.rpartition(".")[2]
    places = sorted(" ".join(at) for at in entered if at.function.rpartition(".")[2] == name)
    return f"{stop.file} {stop.function} is not entered here; entered is: {places}"


def test_the_page_has_stops() -> None:
    numbers = [int(number) for number, *_ in ROW.findall(PAGE)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(PARTS) == 4
    assert sum(map(len, PARTS)) == len(numbers), "a stop stands twice in one table"
    for _, file, link, _, _ in ROW.findall(PAGE):
        assert link == f"../src/sixjars/{file}"
    assert sum(map(len, chain.from_iterable(part.values() for part in PARTS))) > 25


def test_the_stops_are_entered_in_the_order_of_the_page(recorded: Recorder) -> None:
    for part, visits in zip(PARTS, visits_of(recorded), strict=True):
        assert [moved(stop, recorded.entered) for stop in part if stop not in visits] == []
        assert [" ".join(stop) for stop in visits] == [" ".join(stop) for stop in part]


def test_the_stops_return_the_shapes_of_the_page(recorded: Recorder) -> None:
    setup, update, _, prediction = visits_of(recorded)
    returned = {stop.function: visit.returned for stop, visit in (setup | update).items()}
    rows, source_width = returned["Batches.collate"].inputs["source"].values.shape
    _, target_width = returned["Batches.collate"].target.values.shape
    vocabulary = returned["build"].decoder.output.out_features
    in_training = {"B": rows, "S": source_width, "T": target_width}
    in_search = {"B": 1, "R": 1, "S": len(SENTENCE.split()), "V": vocabulary}
    assert misshapen(PARTS[1], update, SIZES | in_training) == []
    assert misshapen(PARTS[3], prediction, SIZES | in_search) == []


def misshapen(
    part: dict[Stop, set[str]], visits: dict[Stop, Visit], sizes: dict[str, int]
) -> list[str]:
    """The shapes of a table that its stops did not return."""
    shapes = {stop: set(shapes_in(visit.returned)) for stop, visit in visits.items()}
    return [
        f"{stop.function} returns no ({letters}): {sorted(shapes[stop])}"
        for stop, named in part.items()
        for letters in named
        if tuple(sizes[letter] for letter in letters.split(", ")) not in shapes[stop]
    ]


def test_the_packages_are_those_of_the_layers() -> None:
    """The table in the order of the layers, and the picture."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    [layers] = [each["layers"] for each in contracts if each.get("containers") == ["sixjars"]]
    names = [name.strip() for layer in layers for name in layer.split("|")]
    section = PAGE.partition("## The packages")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == names
    assert sorted(re.findall(r'class="package"[^>]*>(\w+)<', PICTURE)) == sorted(names)


def test_the_first_hour_has_ten_files() -> None:
    section = PAGE.partition("## A first hour")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (\d+) \| \[`(.+?)`\]\(\.\./src/sixjars/(.+?)\)", section, re.MULTILINE)
    assert [int(number) for number, *_ in rows] == list(range(1, 11))
    for _, name, link in rows:
        assert name == link


def test_names_of_the_page_are_there() -> None:
    """Somewhere in the source; test_docs looks for the files."""
    written = set(re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", PAGE))
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    words = set(re.findall(r"\w+", source))
    files = {name for name in written if (SOURCE / name).is_file()}
    missing = {name for name in written - files if name.rpartition(".")[2] not in words}
    assert missing <= ELSEWHERE
    assert len(written) > 60
