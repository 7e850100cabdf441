"""Frames of videos with their attention weights, read back from the files that were drawn."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sixjars import Layout
from sixjars.drawing.matplotlib.frames import draw_frames
from sixjars.errors import ShapeError

from .pages import Pixels, one_hot, read, red, runs, view_of, written_texts

written = pytest.fixture(written_texts)


def draw(path: Path, frames: Any, weights: Any, tokens: Any) -> Pixels:
    draw_frames(path, view_of("out", tokens, weights, layout=Layout("frames"), backdrop=frames))
    return read(path)


def video(count: int, high: int = 20, wide: int = 20) -> Any:
    return np.stack([red(high, wide)] * count)


def test_each_token_has_its_bar_under_its_frame(tmp_path: Path) -> None:
    page = draw(tmp_path / "f.png", video(4, 30, 40), one_hot(4), "abcd")
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
    tokens = ["incomprehensibility" * 4]
    page = draw(tmp_path / "f.png", video(3, 30, 40), [[0.6, 0.3, 0.1]], tokens)
    blue, is_red = page[:, :, 2] - page[:, :, 0] > 0.15, page[:, :, 0] - page[:, :, 1] > 0.5
    high = [int(blue[:, left + 3].sum()) for left, _ in runs(is_red, 1)]
    assert high[0] > 30
    assert [h / high[0] for h in high] == pytest.approx([1.0, 0.5, 1 / 6], abs=0.05)


@pytest.mark.parametrize(("frames", "shown"), [(1, 1), (16, 16), (17, 16), (100, 16)])
def test_at_most_sixteen_frames_and_no_weight_is_lost(
    frames: int, shown: int, tmp_path: Path, written: list[str]
) -> None:
    weights = np.zeros(frames)
    weights[-1] = 0.97
    page = draw(tmp_path / "f.png", video(frames), [weights.tolist()], ["x"])
    assert len(runs(page[:, :, 0] - page[:, :, 1] > 0.5, 1)) == shown
    numbers, (token, largest, *caption) = written[1 : shown + 1], written[shown + 1 :]
    assert (token, largest) == ("x", "0.97")
    ends = [number.split("–") for number in numbers]
    assert (ends[0][0], ends[-1][-1]) == ("1", str(frames))
    assert all(int(after[0]) == int(before[-1]) + 1 for before, after in pairwise(ends))
    assert ("the weights of those between are added" in " ".join(caption)) == (frames > 16)


def test_neighbouring_frames_add_up(tmp_path: Path, written: list[str]) -> None:
    weights = [0.4, 0.2] + [0.0125] * 32
    draw(tmp_path / "f.png", video(34), [weights], ["[x]"])
    # 34 frames: the first of the sixteen groups has three
    assert written[:3] == ["in → out", "1–3", "4–5"]
    assert written[17:] == [
        "[x]",
        "0.61",
        "Height: the attention weight, from 0 to 0.61. 16 of 34 frames; "
        "the weights of those between are added to theirs.",
    ]


def test_videos_without_tokens_or_weight(tmp_path: Path, written: list[str]) -> None:
    none = draw(tmp_path / "p.png", video(2), [], [])
    assert written[-1] == "The output is empty."
    zero = draw(tmp_path / "p.png", video(2), [[0.0, 0.0]] * 40, ["w"] * 40)
    assert zero.shape[0] > 5 * none.shape[0]
    assert not (zero[:, :, 2] - zero[:, :, 0] > 0.3).any()


@pytest.mark.parametrize(
    ("frames", "weights", "tokens", "sentence"),
    [
        (video(2)[0], [[1.0]], "a", "frames must be (number, height, width, 3), but are (20, 20, 3)."),
        (video(2), [[0.5, 0.5]], "",
         "0 output tokens and 2 frames need 0 rows of 2 attention weights, but the rows have [2]."),
        (video(2), [[0.5, 0.5], [0.1, 0.2, 0.7]], "ab",
         "2 output tokens and 2 frames need 2 rows of 2 attention weights, but the rows have [2, 3]."),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(
    frames: Any, weights: Any, tokens: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(ShapeError) as told:
        draw(tmp_path / "p.png", frames, weights, tokens)
    assert str(told.value) == sentence
    assert not (tmp_path / "p.png").exists()
