"""Every encoder in every make, each with what it reads."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Literal, get_args

from sixjars.flow.contracts import Encoder
from sixjars.flow.values import Padded
from sixjars.model.encoders.hierarchy import HierarchyEncoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.model.recurrent import CellName, Direction
from sixjars.model.visual import VisualInput

from .promises import LENGTHS, documents, films, texts, words

Inputs = dict[str, Padded]
Reads = Literal["frames", "clips", "both"]
PIXELS, CELLS = 8, 4
"""Of each side; and the cells that two halvings leave."""
LATE = ("backbone.backbone.vector.", "backbone.backbone.even.")
"""What the small backbone does after its maps."""


@dataclass(frozen=True)
class Case:
    """An encoder, and three rows of what it reads."""

    make: Callable[[], Encoder]
    inputs: Callable[[], Inputs]
    looks_at: str | int = 0
    """The input whose positions the memory has, or how many positions it has whatever is read."""
    summarises: bool = True
    """Whether all its weights are heard in the summary."""
    unheard: tuple[str, ...] = ()
    """Segments inside it whose weights this make of it has no use for, so that they never learn."""


def _learning(*, tuned: bool | str = False) -> VisualInput:
    return VisualInput(pixels=PIXELS, widths=(4, 6), tuned=tuned)


def _features() -> VisualInput:
    return VisualInput(pixels=32, name="efficientnet_lite0")


def _vectors() -> VisualInput:
    return VisualInput(pixels=32, name="efficientnet_lite0", cells=False)


def _films(sight: Callable[[], VisualInput] = _learning, lengths: tuple[int, ...] = LENGTHS) -> Padded:
    eyes = sight()
    learns = eyes.backbone is not None
    return films(3 * eyes.pixels**2 if learns else eyes.shape.numbers, pixels=learns, lengths=lengths)


def _pictures(sight: Callable[[], VisualInput] = _learning) -> Padded:
    return _films(sight, lengths=(1, 1, 1))


def of_text(make: Callable[[], Encoder]) -> Case:
    """An encoder of words that has a position for each."""
    return Case(make, lambda: {"source": texts()}, "source")


def _text(cell: CellName, direction: Direction, layers: int) -> Case:
    return of_text(
        lambda: TextEncoder(embedding=words(), cell=cell, size=3, layers=layers, direction=direction, dropout=0.2)
    )


def _hierarchy(
    cell: CellName, directions: tuple[Direction, Direction], pool: Literal["last", "attention"], *widths: int
) -> Case:
    """The directions of words and of parts, and the widths of the rectangles; as many layers, to save cases."""
    layers = len(widths)

    def make() -> Encoder:
        below = TextEncoder(embedding=words(), cell=cell, size=3, layers=layers, direction=directions[0], dropout=0.2)
        return HierarchyEncoder(
            words=below, cell=cell, size=2, layers=layers, direction=directions[1], dropout=0.2, pool=pool
        )

    return Case(make, lambda: {"source": documents(*widths)}, "source")


def _points(cell: CellName, direction: Direction, layers: int) -> Case:
    def make() -> Encoder:
        return PointsEncoder(numbers=2, embedding=4, cell=cell, size=3, layers=layers, direction=direction, dropout=0.2)

    return Case(make, lambda: {"points": films(2, pixels=False)}, "points")


def _video(reads: Reads, cell: CellName, direction: Direction, layers: int = 1) -> Case:
    def make() -> Encoder:
        sight = _learning()
        return VideoEncoder(
            backbone=sight, reads=reads, cell=cell, size=3, layers=layers, direction=direction, dropout=0.2
        )

    unheard = LATE if reads == "clips" else ()  # clips are seen in the maps alone
    return Case(make, lambda: {"video": _films()}, "video", unheard=unheard)


def _asked(summary: Literal["both", "question"], sight: Callable[[], VisualInput]) -> ImageQuestionEncoder:
    question = TextEncoder(embedding=words(), size=3, direction="both")
    return ImageQuestionEncoder(image=ImageEncoder(backbone=sight()), question=question, summary=summary)


def _questions(sight: Callable[[], VisualInput] = _learning) -> Inputs:
    return {"image": _pictures(sight), "question": texts()}


EVERY_TEXT = {
    f"text-{cell}-{direction}-{layers}": _text(cell, direction, layers)
    for cell, direction, layers in product(get_args(CellName), get_args(Direction), (1, 2))
}
HIERARCHIES = {
    "hierarchy-rnn-last": _hierarchy("rnn", ("forward", "forward"), "last", 3),
    "hierarchy-gru-last": _hierarchy("gru", ("both", "backward"), "last", 1, 3),
    "hierarchy-lstm-last": _hierarchy("lstm", ("backward", "both"), "last", 2, 4),
    "hierarchy-gru-attention": _hierarchy("gru", ("both", "both"), "attention", 4),
    "hierarchy-lstm-attention": _hierarchy("lstm", ("forward", "forward"), "attention", 1, 2, 3),
}
EVERY_VIDEO = {
    f"video-{reads}-{cell}-{direction}": _video(reads, cell, direction)
    for reads, cell, direction in product(get_args(Reads), get_args(CellName), get_args(Direction))
}

CASES: dict[str, Case] = {
    "none": Case(lambda: NothingEncoder(size=6), lambda: {"source": texts()}),
    "text-frozen-vectors": of_text(lambda: TextEncoder(embedding=words(frozen=True), size=3, direction="both")),
    **EVERY_TEXT,
    **HIERARCHIES,
    "image": Case(
        lambda: ImageEncoder(backbone=_learning(), dropout=0.2),
        lambda: {"image": _pictures()},
        CELLS,
        summarises=False,
    ),
    "image-tuned-from-a-layer-on": Case(
        lambda: ImageEncoder(backbone=_learning(tuned="blocks.1")),
        lambda: {"image": _pictures()},
        CELLS,
        summarises=False,
    ),
    "image-features": Case(
        lambda: ImageEncoder(backbone=_features(), dropout=0.2),
        lambda: {"image": _pictures(_features)},
        CELLS,
        summarises=False,
    ),
    "image-vectors": Case(
        lambda: ImageEncoder(backbone=_vectors(), dropout=0.2),
        lambda: {"image": _pictures(_vectors)},
        unheard=("cells.",),
    ),
    "image-question-both": Case(lambda: _asked("both", _learning), _questions, CELLS, summarises=False),
    "image-question-asks": Case(
        lambda: _asked("question", _learning),
        _questions,
        CELLS,
        summarises=False,
        unheard=("image.whole.", *(f"image.{name}" for name in LATE)),
    ),
    "image-question-features": Case(
        lambda: _asked("both", _features), lambda: _questions(_features), CELLS, summarises=False
    ),
    "image-question-vectors": Case(
        lambda: _asked("both", _vectors), lambda: _questions(_vectors), unheard=("image.cells.",)
    ),
    "points-rnn": _points("rnn", "forward", 1),
    "points-gru": _points("gru", "both", 2),
    "points-lstm": _points("lstm", "backward", 2),
    **EVERY_VIDEO,
    "video-stacked": _video("both", "lstm", "both", layers=2),
    "video-features": Case(
        lambda: VideoEncoder(backbone=_features(), reads="both", size=3, dropout=0.2),
        lambda: {"video": _films(_features)},
        "video",
    ),
    "video-vectors": Case(
        lambda: VideoEncoder(backbone=_vectors(), size=3, dropout=0.2), lambda: {"video": _films(_vectors)}, "video"
    ),
}
