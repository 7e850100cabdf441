"""`draw` chooses the picture by what the source positions are, and hands it the weights."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import sixjars
from sixjars.drawing import draw as module
from sixjars.drawing.draw import image_name
from sixjars.drawing.view import View
from sixjars.errors import DataError
from sixjars.flow.values import Layout
from sixjars.runs.prediction.prediction import Prediction

Calls = list[tuple[str, View]]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The kinds of pictures that were drawn, and of what."""
    found: Calls = []

    def noting(name: str, plain: Any) -> Any:
        def drawn(path: Path, view: View) -> None:
            found.append((name, view))
            plain(path, view)

        return drawn

    images = {name: noting(name, plain) for name, plain in module.IMAGES.items()}
    monkeypatch.setattr(module, "IMAGES", images)
    return found


def predictor(backdrop: Any, *, is_media: bool = False) -> Any:
    """A predictor of one input, with what is behind its weights."""
    return SimpleNamespace(
        inputs={"x": SimpleNamespace(is_media=is_media, backdrop=lambda text: backdrop)}
    )


SPREAD = ((0.5, 0.5),)
PIXELS = np.zeros((2, 8, 8, 3), dtype=np.uint8)
GO = {"source": ("I", "go"), "tokens": ("ja", "hoon"), "weights": ((0.5, 0.5), (0.1, 0.9))}
TOUR = {"tokens": ("1", "0"), "weights": ((0.1, 0.9), (0.9, 0.1)), "layout": Layout("points", (2,))}


@pytest.mark.parametrize(
    ("text", "given", "backdrop", "values", "kind", "title"),
    [
        ("ja hoon", "I go", None, GO, "heatmap", "I go → ja hoon"),
        ("dog", "a/b.jpg", (PIXELS[0], (0.0, 0.0, 0.5, 1.0)),
         {"tokens": ("dog",), "weights": SPREAD, "layout": Layout("grid", (1, 2))}, "image", "b.jpg → dog"),
        ("run", "a/b.mp4", PIXELS,
         {"tokens": ("run",), "weights": SPREAD, "layout": Layout("frames", (2,))}, "frames", "b.mp4 → run"),
        ("1 0", "0,0 1,1", [(0.0, 0.0), (1.0, 1.0)], TOUR, "tour", "0,0 1,1 → 1 0"),
    ],
)  # fmt: skip
def test_the_positions_choose_the_picture(
    text: str,
    given: str,
    backdrop: Any,
    values: dict[str, Any],
    kind: str,
    title: str,
    tmp_path: Path,
    calls: Calls,
) -> None:
    found = Prediction(text, inputs={"x": given}, **values)
    is_media = given.startswith("a/")
    sixjars.draw(str(tmp_path / "p.png"), predictor(backdrop, is_media=is_media), found)
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    [(name, view)] = calls
    assert (name, view.title, view.outputs[0].weights) == (kind, title, values["weights"])
    assert view.backdrop is backdrop


@pytest.mark.parametrize(
    ("steps", "words", "name"),
    [(1, 4, "document"), (2, 60, "heatmap"), (2, 61, "document")],
)
def test_segments_are_a_document_where_a_heat_map_has_no_room(
    steps: int, words: int, name: str, tmp_path: Path, calls: Calls
) -> None:
    source, segments = tuple(f"w{at}" for at in range(words)), tuple(at // 4 for at in range(words))
    weights = tuple(tuple((at + step) / words for at in range(words)) for step in range(steps))
    found = {"source": source, "tokens": ("yes",) * steps, "weights": weights, "segments": segments}
    prediction = Prediction("yes", inputs={"x": "long"}, **found)  # type: ignore[arg-type]
    sixjars.draw(tmp_path / "p.png", predictor(None), prediction)
    [(drawn, view)] = calls
    assert (drawn, view.source, view.segments) == (name, source, segments)
    mean = [(at + (steps - 1) / 2) / words for at in range(words)]
    assert view.outputs[0].mean == pytest.approx(mean)


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


NO_WEIGHTS = "this prediction has no attention weights to draw; its bridge has no attention."


@pytest.mark.parametrize(
    ("prediction", "sentence"),
    [
        (Prediction("yes", inputs={"x": "no"}), NO_WEIGHTS),
        (Prediction("", error="input 1: it is empty."), "there is no output to draw. input 1: it is empty."),
    ],
)  # fmt: skip
def test_a_prediction_without_attention_or_output_is_refused(
    prediction: Prediction, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError) as told:
        sixjars.draw(tmp_path / "p.png", predictor(None), prediction)
    assert str(told.value) == sentence
