"""Synthetic videos, against what is in the frames; and the files of synthetic corpora on a disk."""

import io
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from sixjars.errors import DataError, MissingExtra
from sixjars.progress import Reporter
from sixjars.samples import SAMPLES, Row, generate, materialise, motions
from sixjars.samples.motions import frames_of, paint
from sixjars.samples.scenes import COLOURS, painted
from sixjars_runtime.videos import read_video

VIDEO_TASKS = ["video_captioning", "video_classification"]
OPPOSITES = {"left_to_right": "right_to_left", "upwards": "downwards", "growing": "shrinking"}
IMAGE, VIDEO = "red-circle-20-20-16.png", "red-circle_15-24-10_33-24-10.mp4"


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: generate(task, size=2000, valid=0, test=0)["train"] for task in VIDEO_TASKS}


def frames_in(name: str) -> NDArray[np.int64]:
    """The frames of a video file, (F, 48, 48, 3)."""
    frames = read_video(
        io.BytesIO(paint(name)), name, size=48, fit="crop", max_pixels=5000, frames=99, rate=None
    )
    return frames.transpose(0, 2, 3, 1).astype(np.int64)


def poses(frames: NDArray[np.int64]) -> NDArray[np.float64]:
    """In each frame the middle of the box around what is not pale, and its pixels, (F, 3)."""
    found = []
    for frame in frames:
        rows, columns = np.nonzero(frame.min(axis=-1) < 190)
        middles = [(places.min() + places.max()) / 2 for places in (columns, rows)]
        found.append((*middles, len(rows)))
    return np.array(found)


def action(first: NDArray[np.float64], last: NDArray[np.float64]) -> str:
    """What happened between two poses."""
    right, down, much = last - first
    if max(abs(right), abs(down)) < 2:
        return "grows" if much > 0 else "shrinks"
    if abs(right) > abs(down):
        return "moves right" if right > 0 else "moves left"
    return "moves down" if down > 0 else "moves up"


# Videos


def test_a_video_has_twelve_frames_and_the_same_bytes_each_time() -> None:
    assert frames_in(VIDEO).shape == (12, 48, 48, 3)
    files = {paint(VIDEO) for _ in range(40)}
    assert len(files) == 1
    assert files.pop()[4:8] == b"ftyp"


def test_a_thing_goes_evenly_where_its_name_says() -> None:
    found = poses(frames_in(VIDEO))
    assert found[:, 0] == pytest.approx(np.linspace(15, 33, 12) - 0.5, abs=0.7)
    assert found[:, 1] == pytest.approx(23.5, abs=0.6)
    grown = poses(frames_in("blue-circle_24-24-8_24-24-16.mp4"))[:, 2]
    assert grown == pytest.approx((2 * 0.88 * np.linspace(8, 16, 12)) ** 2, rel=0.15)


def test_captions_describe_what_is_seen(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["video_captioning"][:60]:
        frames = frames_in(row["video"])
        found = poses(frames)
        _, colour, shape, rest = row["caption"].split(" ", 3)
        middle = frames[0, round(found[0, 1]), round(found[0, 0])]
        assert (
            min(COLOURS, key=lambda other: float(np.abs(middle - COLOURS[other]).sum())) == colour
        )
        assert row["video"].startswith(f"{colour}-{shape}_")
        assert action(found[0], found[-1]) == rest


def test_one_video_has_one_caption_and_every_word_is_frequent(
    corpora: dict[str, list[Row]],
) -> None:
    rows = corpora["video_captioning"]
    assert len({row["video"] for row in rows}) == len(rows)
    words = Counter(word for row in rows for word in row["caption"].split())
    actions = "moves left right up down grows shrinks".split()
    assert set(words) == {"a", *COLOURS, *motions.SHAPES, *actions}
    assert min(words.values()) > 0.1 * len(rows)


def test_the_class_is_what_is_seen(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["video_classification"][:60]:
        found = poses(frames_in(row["video"]))
        assert action(found[0], found[-1]) == motions.CLASSES[row["label"]]


def test_backwards_a_video_is_the_opposite_class_frame_by_frame(
    corpora: dict[str, list[Row]],
) -> None:
    opposite = OPPOSITES | {other: one for one, other in OPPOSITES.items()}
    for row in corpora["video_classification"][:200]:
        look, first, last = row["video"].removesuffix(".mp4").split("_")
        back = f"{look}_{last}_{first}.mp4"
        shown, returned = pixels_of(row["video"]), pixels_of(back)
        assert np.array_equal(shown[::-1], returned)
        found = poses(returned)
        assert action(found[0], found[-1]) == motions.CLASSES[opposite[row["label"]]]


def pixels_of(name: str) -> NDArray[np.int64]:
    """The frames before they are made a file."""
    things = frames_of(name)
    return painted([[thing] for thing in things], 48, motions.background_of(things)).astype(
        np.int64
    )


def test_no_pose_and_no_appearance_tells_a_class_from_its_opposite() -> None:
    rows = generate("video_classification", size=20_000, valid=0, test=0)["train"]
    seen = {label: Counter[str]() for label in motions.CLASSES}
    for row in rows:
        look, *ends = row["video"].removesuffix(".mp4").split("_")
        for end in ends:
            x, y, size = (int(number) for number in end.split("-"))
            seen[row["label"]].update(
                [look.split("-")[0], look.split("-")[1], f"x{x // 6}", f"y{y // 6}", f"s{size}"]
            )
    for one, other in OPPOSITES.items():
        for what in seen[one] | seen[other]:
            count, twin = seen[one][what], seen[other][what]
            # five deviations; a row counts twice
            assert abs(count - twin) < 5 * np.sqrt(2 * (count + twin)) + 5
    labels = Counter(row["label"] for row in rows)
    assert all(count == pytest.approx(len(rows) / 6, rel=0.1) for count in labels.values())


def test_things_stay_inside_the_frame(corpora: dict[str, list[Row]]) -> None:
    for task in VIDEO_TASKS:
        for row in corpora[task]:
            for thing in frames_of(row["video"]):
                assert min(thing.box[:2]) >= 1
                assert max(thing.box[2:]) <= 47


@pytest.mark.parametrize(
    "name",
    ["red-circle_15-24-10.mp4", "red-circle_15-24-10_33-24-10_15-24-10.mp4", f"../{VIDEO}", IMAGE],
)
def test_another_name_is_refused(name: str) -> None:
    told = f"^{re.escape(repr(name))} names no synthetic video; names are like 'red-circle_12"
    with pytest.raises(DataError, match=told):
        paint(name)


def test_painting_without_av_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    told = r"^av is not installed\. Run: pip install 'sixjars\[video\]'$"
    with pytest.raises(MissingExtra, match=told):
        paint(VIDEO)


# Files on a disk


@pytest.mark.parametrize("task", [task for task, sample in SAMPLES.items() if sample.media])
def test_files_are_what_paint_gives(task: str, tmp_path: Path) -> None:
    folder, painter = tmp_path / "new" / "folder", SAMPLES[task].paint
    name = generate(task, size=1, valid=0, test=0)["train"][0][SAMPLES[task].inputs[0]]
    materialise(task, [name], folder)
    assert painter is not None
    assert [path.name for path in folder.iterdir()] == [name]
    assert (folder / name).read_bytes() == painter(name)


def test_what_is_there_stays_and_progress_is_reported(tmp_path: Path) -> None:
    names = [f"red-circle-{x}-20-16.png" for x in (20, 21, 22)]
    (tmp_path / names[1]).write_bytes(b"mine")
    reported: list[tuple[int, int]] = []

    class Recorder(Reporter):
        def preparing(self, what: str, *, done: int, total: int) -> None:
            reported.append((done, total))

    materialise("image_captioning", [*names, *names], tmp_path, Recorder())
    assert reported == [(1, 2), (2, 2)]
    assert (tmp_path / names[1]).read_bytes() == b"mine"
    assert {path.name for path in tmp_path.iterdir()} == set(names)
    materialise("image_captioning", names, tmp_path, Recorder())
    assert len(reported) == 2


def test_two_processes_paint_the_same_files(tmp_path: Path) -> None:
    names = [f"red-circle-{x}-{y}-16.png" for x in range(18, 30) for y in range(18, 28)]
    code = (
        "import pathlib; from sixjars.samples import materialise;"
        f"materialise('image_captioning', {names!r}, pathlib.Path({str(tmp_path)!r}))"
    )
    for process in [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]:
        assert process.wait() == 0
    painter = SAMPLES["image_captioning"].paint
    assert painter is not None
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        name: painter(name) for name in names
    }


def test_a_half_painted_file_is_never_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[set[str]] = []
    whole = Path.write_bytes

    def slow(path: Path, content: bytes) -> int:
        half = whole(path, content[:50])
        seen.append({found.name for found in tmp_path.iterdir() if found.is_file()})
        return half + whole(path, content)

    monkeypatch.setattr(Path, "write_bytes", slow)
    materialise("image_captioning", [IMAGE], tmp_path)
    assert seen == [set()]
    assert (tmp_path / IMAGE).exists()


def test_a_task_of_text_has_no_files(tmp_path: Path) -> None:
    told = r"^The dialog sample has no images or videos to paint; its rows are all there is"
    with pytest.raises(DataError, match=told):
        materialise("dialog", [IMAGE], tmp_path)
    with pytest.raises(DataError, match=r"^sample 'dialogue' is unknown\. Did you mean 'dialog'\?"):
        materialise("dialogue", [IMAGE], tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    told = f"^Synthetic files cannot be written to {re.escape(str(file))}: File exists; make r"
    with pytest.raises(DataError, match=told):
        materialise("image_captioning", [IMAGE], file)


def test_a_file_is_never_written_outside_its_folder(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="names no synthetic image"):
        materialise("image_captioning", [f"../{IMAGE}"], tmp_path / "inner")
    assert not (tmp_path / IMAGE).exists()
