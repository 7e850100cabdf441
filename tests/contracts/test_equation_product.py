"""All encoders, bridges and decoders that fit: what `explain` prints is what they compute."""

from collections.abc import Callable
from inspect import signature
from itertools import product
from typing import Any

import pytest

from sixjars.flow.contracts import Decoder, Encoder
from sixjars.flow.values import Padded
from sixjars.model.bridges import BRIDGES
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.model.encoders.bag import BagEncoder, WideDeepEncoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.pair import PairEncoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.encoders.video import VideoEncoder

from .encoder_cases import ngrams
from .equation_models import Model, compare
from .examples import (
    TARGETS,
    documents,
    frames,
    images,
    learning,
    other_texts,
    ragged,
    texts,
    words,
)

pytestmark = pytest.mark.usefixtures("in_64_bits")
STATE = 4
Inputs = dict[str, Padded]


def _words() -> TextEncoder:
    return TextEncoder(embedding=words(size=3), cell="lstm", size=2, direction="both")


MADE: dict[str, tuple[Callable[[], Encoder], Callable[[], Inputs]]] = {
    "none": (lambda: NothingEncoder(size=3), lambda: {"nothing": Padded.of([[], [], []])}),
    "text": (_words, lambda: {"source": texts()}),
    "hierarchy": (
        lambda: HierarchyEncoder(words=_words(), size=3, pool="attention"),
        lambda: {"source": documents(1, 3)},
    ),
    "bag": (
        lambda: BagEncoder(embedding=words(), ngrams=ngrams(counted=True)),
        lambda: {"source": texts()},
    ),
    "wide_deep": (
        lambda: WideDeepEncoder(deep=_words(), ngrams=ngrams(counted=True)),
        lambda: {"source": texts()},
    ),
    "pair": (
        lambda: PairEncoder(sentence=_words()),
        lambda: {"sentence1": other_texts(), "sentence2": texts()},
    ),
    "image": (lambda: ImageEncoder(backbone=learning()), lambda: {"image": images(learning())}),
    "image_question": (
        lambda: ImageQuestionEncoder(image=ImageEncoder(backbone=learning()), question=_words()),
        lambda: {"image": images(learning()), "question": texts()},
    ),
    "video": (
        lambda: VideoEncoder(backbone=learning(), reads="both", size=3),
        lambda: {"video": frames(learning(), (3, 1, 3))},
    ),
    "points": (
        lambda: PointsEncoder(dimensions=2, embedding=3, cell="rnn", size=3),
        lambda: {"points": ragged(2, pixels=False)},
    ),
}
GIVEN: dict[str, tuple[dict[str, Any], list[list[int]]]] = {
    "sequence": ({"cell": "lstm", "layers": 2}, list(TARGETS)),
    "label": ({"classes": 5}, [[1], [0], [4]]),
    "pointer": (
        {"cell": "lstm", "layers": 1, "attention": 3, "visits": "some"},
        [[6, 4, 2], [4, 2], [4, 6, 2]],
    ),
}
"""The settings of each decoder, and targets for it."""


def decoder_for(encoder: Encoder, bridge: str, decoder: str) -> Decoder:
    """A decoder on a bridge whose sizes fit the encoder."""
    settings = {"size": STATE, **GIVEN[decoder][0]}
    shape = DECODERS[decoder].state_shape(settings)
    sizes = {
        "source_size": encoder.output_size,
        "summary_size": encoder.summary_size,
        "segment_size": encoder.segment_size,
        "state_size": shape.state_size,
        "state_count": shape.state_count,
    }
    made: Any = BRIDGES[bridge]
    settings["bridge"] = made(
        **{name: size for name, size in sizes.items() if name in signature(made).parameters}
    )
    given = {"embedding": words(size=3), "source_size": encoder.output_size}
    kind: Any = DECODERS[decoder]
    found: Decoder = kind(
        **settings,
        **{name: one for name, one in given.items() if name in signature(kind).parameters},
    )
    return found


def fits(encoder: str, bridge: str, decoder: str) -> bool:
    """Whether there is something to attend or to point to."""
    if BRIDGES[bridge].has_attention or decoder == "pointer":
        return encoder != "none" and (bridge != "two_level" or encoder == "hierarchy")
    return True


def test_every_kind_is_tried() -> None:
    assert MADE.keys() == ENCODERS.keys()
    assert GIVEN.keys() == DECODERS.keys()


@pytest.mark.parametrize(
    ("encoder", "bridge", "decoder"),
    [kinds for kinds in product(ENCODERS, BRIDGES, DECODERS) if fits(*kinds)],
)
def test_of_all_that_fit(encoder: str, bridge: str, decoder: str) -> None:
    make, inputs = MADE[encoder]
    source = make()
    compare(
        Model(source, decoder_for(source, bridge, decoder), inputs(), Padded.of(GIVEN[decoder][1]))
    )
