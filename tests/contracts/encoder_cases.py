"""Every encoder in every make, each with its inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from sixjars.flow.backend import Backend
from sixjars.flow.contracts import Encoder
from sixjars.flow.values import Padded
from sixjars.model.encoders.bag import BagEncoder, NgramVectors, WideDeepEncoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.pair import PairEncoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.model.recurrent import Direction
from sixjars.model.reference import REFERENCE, CellName
from sixjars.model.visual import VisualInput

from .examples import (
    CELLS,
    VOCABULARY,
    documents,
    features,
    frames,
    given,
    images,
    learning,
    other_texts,
    ragged,
    texts,
    vectors,
    words,
)
from .pairwise import named

Inputs = dict[str, Padded]
Reads = Literal["frames", "clips", "both"]
Visual = Callable[[], VisualInput]
LATE = ("backbone.backbone.vector.", "backbone.backbone.even.")
"""What the small backbone computes after its maps."""


@dataclass(frozen=True)
class Case:
    """An encoder, and three rows of its inputs."""

    make: Callable[..., Encoder]
    """Makes it; those with a recurrence compute by a backend, the reference by default."""
    inputs: Callable[[], Inputs]
    positions: str | int = 0
    """The input whose positions the memory has, or how many positions it has whatever the input."""
    summarises: bool = True
    """Whether the summary depends on all its weights."""
    unused: tuple[str, ...] = ()
    """Modules inside it whose weights this make of it has no use for, so that they never learn."""


def of_text(make: Callable[..., Encoder]) -> Case:
    """An encoder of words that has a position for each."""
    return Case(make, lambda: {"source": texts()}, "source")


def _text(cell: CellName, direction: Direction, layers: int) -> Case:
    settings: dict[str, Any] = {"cell": cell, "size": 3, "layers": layers, "direction": direction}

    def make(backend: Backend = REFERENCE) -> Encoder:
        return TextEncoder(embedding=words(), dropout=0.2, backend=backend, **settings)

    return of_text(make)


def ngrams(*, counted: bool = False) -> NgramVectors:
    """Evidence of words and pairs, whose weights are all 1 unless they were counted."""
    vectors = NgramVectors(vocabulary=VOCABULARY, size=3, buckets=16, dropout=0.2)
    if counted:
        vectors.count([(each, Padded.of([[0]] * each.rows)) for each in (texts(), other_texts())])
    return vectors


def _bag(*, counted: bool) -> Case:
    return Case(
        lambda: BagEncoder(embedding=words(), ngrams=ngrams(counted=counted)),
        lambda: {"source": texts()},
        "source",
        summarises=False,
    )


def _wide_deep(cell: CellName, direction: Direction) -> Case:
    def make(backend: Backend = REFERENCE) -> Encoder:
        settings: dict[str, Any] = {"cell": cell, "size": 3, "direction": direction}
        deep = TextEncoder(embedding=words(), dropout=0.2, backend=backend, **settings)
        return WideDeepEncoder(deep=deep, ngrams=ngrams(counted=True))

    return of_text(make)


def _hierarchy(
    cell: CellName,
    directions: tuple[Direction, Direction],
    pool: Literal["last", "attention"],
    *widths: int,
) -> Case:
    """The directions of words and segments, and the widths of the rectangles; as many layers."""
    layers = len(widths)

    def make(backend: Backend = REFERENCE) -> Encoder:
        below = TextEncoder(
            embedding=words(),
            backend=backend,
            cell=cell,
            size=3,
            layers=layers,
            direction=directions[0],
            dropout=0.2,
        )
        return HierarchyEncoder(
            words=below,
            cell=cell,
            size=2,
            layers=layers,
            direction=directions[1],
            dropout=0.2,
            pool=pool,
        )

    return Case(make, lambda: {"source": documents(*widths)}, "source")


def _pair(
    cell: CellName, direction: Direction, compare: Literal["summaries", "words"] = "summaries"
) -> Case:
    """Sentences of different lengths, the second with padding where the first has none."""

    def make(backend: Backend = REFERENCE) -> Encoder:
        settings: dict[str, Any] = {"cell": cell, "size": 3, "direction": direction}
        sentence = TextEncoder(embedding=words(), dropout=0.2, backend=backend, **settings)
        return PairEncoder(sentence=sentence, compare=compare)

    def inputs() -> Inputs:
        return {"sentence1": texts(), "sentence2": other_texts()}

    return Case(make, inputs, "sentence2")


def _points(cell: CellName, direction: Direction, layers: int) -> Case:
    def make(backend: Backend = REFERENCE) -> Encoder:
        sizes: dict[str, Any] = {"dimensions": 2, "embedding": 4, "size": 3, "layers": layers}
        sizes["backend"] = backend
        return PointsEncoder(cell=cell, direction=direction, dropout=0.2, **sizes)

    return Case(make, lambda: {"points": ragged(2, pixels=False)}, "points")


def _video(reads: Reads, cell: CellName, direction: Direction, layers: int = 1) -> Case:
    def make(backend: Backend = REFERENCE) -> Encoder:
        return VideoEncoder(
            backbone=learning(),
            backend=backend,
            reads=reads,
            cell=cell,
            size=3,
            layers=layers,
            direction=direction,
            dropout=0.2,
        )

    unused = LATE if reads == "clips" else ()  # clips are made of the maps alone
    return Case(make, lambda: {"video": frames(learning())}, "video", unused=unused)


def _image(visual: Visual, positions: int, *, unused: tuple[str, ...] = ()) -> Case:
    def make() -> Encoder:
        return ImageEncoder(backbone=visual(), dropout=0.2)

    return Case(
        make,
        lambda: {"image": images(visual())},
        positions,
        summarises=positions == 0,
        unused=unused,
    )


def _question(
    summary: Literal["both", "question"],
    visual: Visual,
    positions: int,
    *,
    unused: tuple[str, ...] = (),
) -> Case:
    def make(backend: Backend = REFERENCE) -> Encoder:
        question = TextEncoder(embedding=words(), size=3, direction="both", backend=backend)
        return ImageQuestionEncoder(
            image=ImageEncoder(backbone=visual()), question=question, summary=summary
        )

    def inputs() -> Inputs:
        return {"image": images(visual()), "question": texts()}

    return Case(make, inputs, positions, summarises=positions == 0, unused=unused)


TEXTS, RARE_TEXTS = named(
    _text, "text", cell=get_args(CellName), direction=get_args(Direction), layers=(1, 2)
)
VIDEOS, RARE_VIDEOS = named(
    _video, "video", reads=get_args(Reads), cell=get_args(CellName), direction=get_args(Direction)
)
RARE = RARE_TEXTS | RARE_VIDEOS
HIERARCHIES = {
    "hierarchy-rnn-last": _hierarchy("rnn", ("forward", "forward"), "last", 3),
    "hierarchy-gru-last": _hierarchy("gru", ("both", "backward"), "last", 1, 3),
    "hierarchy-lstm-last": _hierarchy("lstm", ("backward", "both"), "last", 2, 4),
    "hierarchy-gru-attention": _hierarchy("gru", ("both", "both"), "attention", 4),
    "hierarchy-lstm-attention": _hierarchy("lstm", ("forward", "forward"), "attention", 1, 2, 3),
}

CASES: dict[str, Case] = {
    "none": Case(lambda: NothingEncoder(size=6), lambda: {"nothing": Padded.of([[], [], []])}),
    "text-frozen-vectors": of_text(
        lambda backend=REFERENCE: TextEncoder(
            embedding=words(frozen=True), size=3, direction="both", backend=backend
        )
    ),
    **TEXTS,
    **HIERARCHIES,
    "pair-gru": _pair("gru", "both"),
    "pair-lstm": _pair("lstm", "forward"),
    "pair-words-gru": _pair("gru", "both", "words"),
    "pair-words-lstm": _pair("lstm", "forward", "words"),
    "bag": _bag(counted=False),
    "bag-counted": _bag(counted=True),
    "wide-deep-gru": _wide_deep("gru", "both"),
    "wide-deep-lstm": _wide_deep("lstm", "forward"),
    "image": _image(learning, CELLS),
    "image-trained-from-a-layer-on": _image(lambda: learning("blocks.1"), CELLS),
    "image-features": _image(features, CELLS),
    "image-vectors": _image(vectors, 0, unused=("cells.",)),
    "image-given": Case(
        lambda: ImageEncoder(backbone=given(), dropout=0.2),
        lambda: {"image": frames(given())},
        "image",
        summarises=False,
    ),
    "image-question-both": _question("both", learning, CELLS),
    "image-question-alone": _question(
        "question", learning, CELLS, unused=("image.whole.", *(f"image.{name}" for name in LATE))
    ),
    "image-question-features": _question("both", features, CELLS),
    "image-question-vectors": _question("both", vectors, 0, unused=("image.cells.",)),
    "points-rnn": _points("rnn", "forward", 1),
    "points-gru": _points("gru", "both", 2),
    "points-lstm": _points("lstm", "backward", 2),
    **VIDEOS,
    "video-stacked": _video("both", "lstm", "both", layers=2),
    "video-features": Case(
        lambda backend=REFERENCE: VideoEncoder(
            backbone=features(), reads="both", size=3, dropout=0.2, backend=backend
        ),
        lambda: {"video": frames(features())},
        "video",
    ),
    "video-vectors": Case(
        lambda backend=REFERENCE: VideoEncoder(
            backbone=vectors(), size=3, dropout=0.2, backend=backend
        ),
        lambda: {"video": frames(vectors())},
        "video",
    ),
    "video-given": Case(
        lambda backend=REFERENCE: VideoEncoder(
            backbone=given(), size=3, dropout=0.2, backend=backend
        ),
        lambda: {"video": frames(given())},
        "video",
    ),
}
EXPORTED = ("text-gru-both-2", "hierarchy-rnn-last", "points-rnn", "bag-counted", "pair-words-gru")
"""Those whose export is tried in every run of the tests; it takes seconds."""
