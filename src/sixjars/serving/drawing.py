"""What a prediction attended to, as a picture: a heat map, the lit picture, or a strip of frames."""

from pathlib import Path

from sixjars.data.pictures import placed, upright
from sixjars.inspection.filmstrip import draw_frames
from sixjars.inspection.heatmap import draw
from sixjars.inspection.overlay import draw_regions
from sixjars.serving.predictor import Prediction, Predictor
from sixjars.tasks.seeing import media_of


def draw_attention(path: Path, predictor: Predictor, prediction: Prediction) -> None:
    """One picture file for one prediction; what it shows depends on what the positions are."""
    told = [Path(text).name if name in predictor.seeing else text for name, text in prediction.inputs.items()]
    title = f"{' · '.join(told)} → {prediction.text}"
    if prediction.layout.kind == "grid":
        _draw_picture(path, predictor, prediction, title)
    elif prediction.layout.kind == "frames":
        frames = predictor.seeing["video"].unpacked(media_of([Path()]), prediction.inputs["video"])
        draw_frames(path, frames.transpose(0, 2, 3, 1), prediction.weights, words=prediction.pieces, title=title)
    else:
        draw(path, prediction.weights, source=prediction.source, target=prediction.pieces, title=title)


def _draw_picture(path: Path, predictor: Predictor, prediction: Prediction, title: str) -> None:
    settings, name = predictor.seeing["image"].settings, prediction.inputs["image"]
    with media_of([Path()]).open(name) as file:
        picture = upright(file, name, max_pixels=settings.max_pixels)
    height, width = prediction.layout.shape
    seen = placed(picture.shape[0], picture.shape[1], settings.fit)
    draw_regions(
        path, picture, prediction.weights, grid=(height, width), words=prediction.pieces, seen=seen, title=title
    )
