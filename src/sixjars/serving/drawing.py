"""What a prediction attended to, as a picture: a heat map, a lit picture, a strip of frames, a shaded text, a tour."""

from pathlib import Path

from sixjars.data.pictures import placed, upright
from sixjars.data.pointing import points_of
from sixjars.inspection.document import draw_document
from sixjars.inspection.filmstrip import draw_frames
from sixjars.inspection.heatmap import draw
from sixjars.inspection.overlay import draw_regions
from sixjars.inspection.tour import draw_tour
from sixjars.serving.predictor import Prediction, Predictor
from sixjars.tasks.seeing import media_of

WIDEST = 60
"""Words of a text in parts that a heat map has room for; a longer text is drawn with its words shaded."""


def draw_attention(path: Path, predictor: Predictor, prediction: Prediction) -> None:
    """One picture file for one prediction; what it shows depends on what the positions are."""
    told = [Path(text).name if name in predictor.seeing else text for name, text in prediction.inputs.items()]
    title = f"{' · '.join(told)} → {prediction.text}"
    if "points" in prediction.inputs:
        _draw_order(path, prediction)
    elif prediction.parts and (predictor.task.output == "label" or len(prediction.source) > WIDEST):
        _draw_text(path, prediction)
    elif prediction.layout.kind == "grid":
        _draw_picture(path, predictor, prediction, title)
    elif prediction.layout.kind == "frames":
        frames = predictor.seeing["video"].unpacked(media_of([Path()]), prediction.inputs["video"])
        draw_frames(path, frames.transpose(0, 2, 3, 1), prediction.weights, words=prediction.pieces, title=title)
    else:
        draw(path, prediction.weights, source=prediction.source, target=prediction.pieces, title=title)


def _draw_order(path: Path, prediction: Prediction) -> None:
    points = points_of(prediction.inputs["points"])
    order = [int(place) for place in prediction.text.split()]
    draw_tour(path, points=points, order=order, title=prediction.text, weights=prediction.weights)


def _draw_text(path: Path, prediction: Prediction) -> None:
    """The text with the weights of all that was written, on average."""
    count = len(prediction.source)
    steps = max(len(prediction.weights), 1)
    weights = [sum(row[at] for row in prediction.weights) / steps for at in range(count)]
    draw_document(path, words=prediction.source, parts=prediction.parts, weights=weights, title=prediction.text)


def _draw_picture(path: Path, predictor: Predictor, prediction: Prediction, title: str) -> None:
    settings, name = predictor.seeing["image"].settings, prediction.inputs["image"]
    with media_of([Path()]).open(name) as file:
        picture = upright(file, name, max_pixels=settings.max_pixels)
    height, width = prediction.layout.shape
    seen = placed(picture.shape[0], picture.shape[1], settings.fit)
    draw_regions(
        path, picture, prediction.weights, grid=(height, width), words=prediction.pieces, seen=seen, title=title
    )
