"""`draw` chooses the picture by what the source positions are, and hands it the weights."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sixjars
from sixjars.drawing import draw as module
from sixjars.drawing.draw import image_name
from sixjars.errors import DataError
from sixjars.flow.values import Layout
from sixjars.runs.prediction.prediction import Prediction

Calls = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The pictures that were drawn, with their arguments."""
    found: Calls = []
    for name in ("heat_map", "draw_overlay", "draw_frames", "draw_document", "draw_tour"):
        plain = getattr(module, name)

        def drawn(*arguments: Any, name: str = name, plain: Any = plain, **how: Any) -> None:
            found.append((name, arguments, how))
            plain(*arguments, **how)

        monkeypatch.setattr(module, name, drawn)
    return found


def predictor(backdrop: Any, *, is_media: bool = False) -> Any:
    """A predictor of one input, with what is behind its weights."""
    return SimpleNamespace(
        inputs={"x": SimpleNamespace(is_media=is_media, backdrop=lambda text: backdrop)}
    )


def drawn(path: Path, backdrop: Any, prediction: Prediction, *, is_media: bool = False) -> None:
    sixjars.draw(str(path), predictor(backdrop, is_media=is_media), prediction)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_words_are_a_heat_map(tmp_path: Path, calls: Calls) -> None:
    weights = ((0.5, 0.5), (0.1, 0.9))
    found = Prediction(
        "ja hoon", source=("I", "go"), tokens=("ja", "hoon"), weights=weights, inputs={"x": "I go"}
    )
    drawn(tmp_path / "p.png", None, found)
    how = {"source": ("I", "go"), "target": ("ja", "hoon"), "title": "I go → ja hoon", "note": ""}
    how |= {"segments": ()}
    assert calls == [("heat_map", (tmp_path / "p.png", weights), how)]


@pytest.mark.parametrize(
    ("steps", "words", "name"),
    [(1, 4, "draw_document"), (2, 60, "heat_map"), (2, 61, "draw_document")],
)
def test_segments_are_a_document_where_a_heat_map_has_no_room(
    steps: int, words: int, name: str, tmp_path: Path, calls: Calls
) -> None:
    source, segments = tuple(f"w{at}" for at in range(words)), tuple(at // 4 for at in range(words))
    weights = tuple(tuple((at + step) / words for at in range(words)) for step in range(steps))
    tokens = ("yes",) * steps
    found = Prediction(
        "yes",
        source=source,
        tokens=tokens,
        weights=weights,
        inputs={"x": "long"},
        segments=segments,
    )
    drawn(tmp_path / "p.png", None, found)
    assert [call[0] for call in calls] == [name]
    if name == "draw_document":
        how = calls[0][2]
        assert (how["words"], how["segments"], how["title"]) == (
            source,
            segments,
            "yes (probability 100%) ← long",
        )
        assert how["weights"] == pytest.approx(
            [(at + (steps - 1) / 2) / words for at in range(words)]
        )


def test_cells_are_an_overlay(tmp_path: Path, calls: Calls) -> None:
    image, box, weights = np.zeros((8, 8, 3), dtype=np.uint8), (0.0, 0.0, 0.5, 1.0), ((0.5, 0.5),)
    layout = Layout("grid", (1, 2))
    found = Prediction(
        "dog", tokens=("dog",), weights=weights, inputs={"x": "a/b.jpg"}, layout=layout
    )
    drawn(tmp_path / "p.png", (image, box), found, is_media=True)
    how = {"grid": (1, 2), "tokens": ("dog",), "box": box, "title": "b.jpg → dog"}
    assert calls == [("draw_overlay", (tmp_path / "p.png", image, weights), how)]


def test_frames_are_frames(tmp_path: Path, calls: Calls) -> None:
    frames, weights = np.zeros((2, 8, 8, 3), dtype=np.uint8), ((0.5, 0.5),)
    layout = Layout("frames", (2,))
    found = Prediction(
        "run", tokens=("run",), weights=weights, inputs={"x": "a/b.mp4"}, layout=layout
    )
    drawn(tmp_path / "p.png", frames, found, is_media=True)
    how = {"tokens": ("run",), "title": "b.mp4 → run"}
    assert calls == [("draw_frames", (tmp_path / "p.png", frames, weights), how)]


def test_points_are_a_tour(tmp_path: Path, calls: Calls) -> None:
    points, weights = [(0.0, 0.0), (1.0, 1.0)], ((0.1, 0.9), (0.9, 0.1))
    layout = Layout("points", (2,))
    found = Prediction(
        "1 0", tokens=("1", "0"), weights=weights, inputs={"x": "0,0 1,1"}, layout=layout
    )
    drawn(tmp_path / "p.png", points, found)
    title = "A closed line through all 2 points, length 2.83: 1.00 times the shortest"
    how = {"points": points, "order": [1, 0], "title": title, "weights": weights}
    assert calls == [("draw_tour", (tmp_path / "p.png",), how)]


def test_pictures_have_the_names_of_their_inputs() -> None:
    words, image = predictor(None), SimpleNamespace(inputs={"x": SimpleNamespace(is_media=True)})
    names = {
        "The dog is here.": "1-the-dog-is.png",
        "नमस्ते / दुनिया": "1-नमस्ते-दुनिया.png",
        "../../etc passwd": "1-etc-passwd.png",
        "?": "1.png",
        "x" * 500: f"1-{'x' * 60}.png",
    }
    for text, name in names.items():
        assert image_name(1, words, Prediction("", inputs={"x": text})) == name
    found = Prediction("", inputs={"x": "album/My Dog.JPG"})
    assert image_name(2, image, found) == "2-my-dog.png"
    assert image_name(2, image, found, rank=3) == "2-my-dog-3.png"
    assert image_name(1, SimpleNamespace(inputs={}), Prediction("a text out of nothing")) == "1.png"


def test_a_prediction_without_attention_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError) as told:
        sixjars.draw(tmp_path / "p.png", predictor(None), Prediction("yes", inputs={"x": "no"}))
    assert (
        str(told.value)
        == "this prediction has no attention weights to draw; its bridge has no attention."
    )


def test_a_prediction_with_an_error_is_refused_with_it(tmp_path: Path) -> None:
    with pytest.raises(DataError) as told:
        sixjars.draw(
            tmp_path / "p.png", predictor(None), Prediction("", error="input 1: it is empty.")
        )
    assert str(told.value) == "there is no output to draw. input 1: it is empty."
