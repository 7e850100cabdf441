"""Frames of videos with their attention weights, read back from the files that were drawn."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes

from sixjars.drawing.matplotlib.frames import draw_frames
from sixjars.errors import ShapeError

from .pages import one_hot, read, red, runs


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every text that is put on a page, in order."""
    texts: list[str] = []
    plain = Axes.text

    def text(self: Axes, x: float, y: float, s: str, *arguments: object, **how: object) -> object:
        texts.append(s)
        return plain(self, x, y, s, *arguments, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(Axes, "text", text)
    return texts


def test_each_token_has_its_bar_under_its_frame(tmp_path: Path) -> None:
    draw_frames(
        tmp_path / "f.png",
        np.stack([red(30, 40)] * 4),
        one_hot(4),
        tokens=list("abcd"),
        title="four",
    )
    page = read(tmp_path / "f.png")
    frames = runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)
    blue = page[:, :, 2] - page[:, :, 0] > 0.3
    bars = [(top, runs(blue[top:bottom], 1)) for top, bottom in runs(blue, 0)]
    assert len(frames) == len(bars) == 4
    for frame, (_, found) in zip(frames, bars, strict=True):
        assert len(found) == 1
        assert max(abs(a - b) for a, b in zip(frame, found[0], strict=True)) <= 1
    steps = [after - before for (before, _), (after, _) in pairwise(bars)]
    assert max(steps) - min(steps) <= 1


def test_bars_are_as_high_as_the_weights(tmp_path: Path) -> None:
    draw_frames(
        tmp_path / "f.png",
        np.stack([red(30, 40)] * 3),
        [[0.6, 0.3, 0.1]],
        tokens=["incomprehensibility" * 4],
    )
    page = read(tmp_path / "f.png")
    blue = page[:, :, 2] - page[:, :, 0] > 0.15
    high = [
        int(blue[:, left + 3].sum()) for left, _ in runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)
    ]
    assert high[0] > 30
    assert [h / high[0] for h in high] == pytest.approx([1.0, 0.5, 1 / 6], abs=0.05)


@pytest.mark.parametrize(("frames", "shown"), [(1, 1), (16, 16), (17, 16), (100, 16)])
def test_at_most_sixteen_frames_and_no_weight_is_lost(
    frames: int, shown: int, tmp_path: Path, written: list[str]
) -> None:
    weights = np.zeros(frames)
    weights[-1] = 0.97
    draw_frames(
        tmp_path / "f.png", np.stack([red(20, 20)] * frames), [weights.tolist()], tokens=["x"]
    )
    page = read(tmp_path / "f.png")
    assert len(runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)) == shown
    numbers, (token, largest, *caption) = written[:shown], written[shown:]
    assert (token, largest) == ("x", "0.97")
    ends = [number.split("–") for number in numbers]
    assert (ends[0][0], ends[-1][-1]) == ("1", str(frames))
    assert all(int(after[0]) == int(before[-1]) + 1 for before, after in pairwise(ends))
    assert ("the weights of those between are added" in " ".join(caption)) == (frames > 16)


def test_neighbouring_frames_add_up(tmp_path: Path, written: list[str]) -> None:
    weights = [0.4, 0.2] + [0.0125] * 32
    draw_frames(
        tmp_path / "f.png", np.stack([red(20, 20)] * 34), [weights], tokens=["[x]"], title="$t_{"
    )
    assert written[:3] == [
        "$t_{",
        "1–3",
        "4–5",
    ]  # 34 frames: the first of the sixteen groups has three
    assert written[17:] == [
        "[x]",
        "0.61",
        "Height: the attention weight, from 0 to 0.61. 16 of 34 frames; "
        "the weights of those between are added to theirs.",
    ]


def test_videos_without_tokens_or_weight(tmp_path: Path, written: list[str]) -> None:
    video = np.stack([red(20, 20)] * 2)
    draw_frames(tmp_path / "none.png", video, [], tokens=[])
    assert written[-1] == "The output is empty."
    draw_frames(tmp_path / "zero.png", video, [[0.0, 0.0]] * 40, tokens=["w"] * 40)
    none, zero = (read(tmp_path / f"{name}.png") for name in ("none", "zero"))
    assert zero.shape[0] > 5 * none.shape[0]
    assert not (zero[:, :, 2] - zero[:, :, 0] > 0.3).any()


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    path, video = tmp_path / "p.png", np.stack([red(9, 9)] * 2)
    with pytest.raises(
        ShapeError, match=r"^frames must be \(number, height, width, 3\), but are \(9, 9, 3\)\.$"
    ):
        draw_frames(path, video[0], [[1.0]], tokens=["a"])
    with pytest.raises(ShapeError) as told:
        draw_frames(path, video, [[0.5, 0.5]], tokens=[])
    assert (
        str(told.value)
        == "0 output tokens and 2 frames need 0 rows of 2 attention weights, but the rows have [2]."
    )
    with pytest.raises(ShapeError) as told:
        draw_frames(path, video, [[0.5, 0.5], [0.1, 0.2, 0.7]], tokens=["a", "b"])
    assert str(told.value) == (
        "2 output tokens and 2 frames need 2 rows of 2 attention weights, but the rows have [2, 3]."
    )
    assert not path.exists()
