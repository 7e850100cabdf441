"""What `explain` prints is what the network computes: every line is read, evaluated with numpy, and
compared.

Dims: B batch, S source positions, T target positions.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from sixjars.flow.contracts import Bridge, Decoder, Encoder
from sixjars.flow.values import Batch, Padded
from sixjars.model.bridges.attention import Attention, TwoLevelAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.location import LocationAttention
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.build import build
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.pointer import PointerDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.bag import BagEncoder, WideDeepEncoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.pair import PairEncoder
from sixjars.model.encoders.points import PointsEncoder
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.model.reference import state_shape
from sixjars.recipe.files import packaged
from sixjars.runs.recipes import Blueprint, read_recipe

from .encoder_cases import ngrams
from .equation_models import Model, all_letters, compare
from .equation_reader import Unreadable, expanded, names_in
from .equation_values import Equations, Example
from .examples import (
    TARGETS,
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
    words,
)

pytestmark = pytest.mark.usefixtures("in_64_bits")
H, V = 4, VOCABULARY
"""Hidden size of the decoder, and its vocabulary."""
ORDERS = {"all": ([6, 4, 7, 5, 2], [4, 2], [4, 6, 5, 2]), "some": ([6, 4, 2], [4, 2], [4, 6, 2])}


def sequence(
    bridge: Callable[..., Bridge], cell: str = "gru", layers: int = 1, **settings: Any
) -> SequenceDecoder:
    """A decoder of tokens; `bridge` makes its bridge from the sizes of the initial state."""
    shape = state_shape({"size": H, "cell": cell, "layers": layers})
    made = bridge(state_size=H, state_count=shape.state_count)
    embedding = words(size=H if settings.get("tied") else 3, frozen=settings.pop("frozen", False))
    return SequenceDecoder(
        bridge=made,
        embedding=embedding,
        cell=cell,  # type: ignore[arg-type]
        size=H,
        layers=layers,
        **settings,
    )


def sized(kind: Callable[..., Bridge], encoder: Encoder, **settings: Any) -> Callable[..., Bridge]:
    """A bridge for an encoder, but for the initial state."""
    sizes = {"source_size": encoder.output_size, "summary_size": encoder.summary_size}
    taken = {
        "source_size": kind is not InitialState and kind is not EveryStep,
        "summary_size": kind is not AttentionPooling or settings.get("join_summary", False),
    }
    sizes = {name: size for name, size in sizes.items() if taken[name]}
    if kind in (AttentionPooling, TwoLevelAttention):
        sizes["segment_size"] = encoder.segment_size
    return lambda **state: kind(**sizes, **state, **settings)


def text(
    cell: str = "gru", direction: str = "both", layers: int = 1, size: int = 2, **settings: Any
) -> TextEncoder:
    embedding = words(size=3, frozen=settings.pop("frozen", False))
    return TextEncoder(
        embedding=embedding,
        cell=cell,  # type: ignore[arg-type]
        size=size,
        layers=layers,
        direction=direction,  # type: ignore[arg-type]
    )


def translation(encoder: TextEncoder, decoder: Decoder) -> Model:
    return Model(encoder, decoder, {"source": texts()}, Padded.of(list(TARGETS)))


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_cells_directions_and_layers(cell: str, direction: str, layers: int) -> None:
    encoder = text(cell, direction, layers)
    compare(translation(encoder, sequence(sized(Attention, encoder), cell, layers)))


@pytest.mark.parametrize("start", ["linear", "copy"])
@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (InitialState, {}),
        (EveryStep, {}),
        (AttentionPooling, {}),
        (AttentionPooling, {"join_summary": True}),
        (Attention, {}),
        (Attention, {"score": "dot"}),
        (Attention, {"score": "general"}),
        (LocationAttention, {}),
        (LocationAttention, {"radius": 0}),
        (LocationAttention, {"radius": 1}),
    ],
)
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_bridges_and_scores(
    kind: Callable[..., Bridge], settings: dict[str, Any], start: str, cell: str
) -> None:
    # What is copied has the size of the state, also where the summary is beside pooled states.
    encoder = text(size=1 if start == "copy" and "join_summary" in settings else 2)
    compare(translation(encoder, sequence(sized(kind, encoder, start=start, **settings), cell)))
    if kind is LocationAttention:  # which needs several steps
        return
    label = sized(kind, encoder, start=start, **settings)(state_size=H)
    for multi_label in (False, True):
        decoder = LabelDecoder(bridge=label, classes=5, size=H, multi_label=multi_label)
        compare(Model(encoder, decoder, {"source": texts()}, Padded.of([[1], [0], [4]])))


@pytest.mark.parametrize(
    "settings", [{"tied": True}, {"frozen": True}, {"frozen": True, "tied": True}]
)
def test_tied_and_frozen_embeddings(settings: dict[str, Any]) -> None:
    encoder = text(frozen=settings.get("frozen", False))
    compare(translation(encoder, sequence(sized(Attention, encoder), **settings)))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_copying(cell: str) -> None:
    """Words that are in the vocabulary, twice in the source, not in the vocabulary."""
    encoder = text(cell)
    model = translation(encoder, sequence(sized(Attention, encoder), cell, copying=True))
    copied = torch.tensor([[5, V + 1, 5, V + 1], [6, 0, 0, 0], [4, V + 1, V + 2, 0]])
    model.inputs["source"] = replace(model.inputs["source"], copy_ids=copied)
    model.target = Padded.of([[8, V + 1, 5, 2], [4, 2], [V + 2, 2]])
    compare(model)


@pytest.mark.parametrize("score", ["additive", "dot", "general"])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_conditional_decoders(cell: str, layers: int, score: str) -> None:
    encoder = text(cell)
    compare(
        translation(
            encoder,
            sequence(sized(Attention, encoder, score=score), cell, layers, conditional=True),
        )
    )


@pytest.mark.parametrize("layers", [1, 2])
def test_conditional_decoders_that_know_where_attention_was(layers: int) -> None:
    encoder = text("gru")
    compare(
        translation(
            encoder, sequence(sized(LocationAttention, encoder), "gru", layers, conditional=True)
        )
    )


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_conditional_decoders_that_copy_from_two_levels(cell: str) -> None:
    encoder = HierarchyEncoder(words=text(cell), cell=cell, size=3)  # type: ignore[arg-type]
    copied = torch.tensor([[5, 6, 7, V + 3, 4, 10], [9, 0, 0, 0, 0, 0], [4, 10, V + 2, 0, 0, 0]])
    settings = {"copying": True, "conditional": True, "tied": True}
    decoder = sequence(sized(TwoLevelAttention, encoder), cell, 2, **settings)
    source = replace(documents(1, 3), copy_ids=copied)
    compare(Model(encoder, decoder, {"source": source}, Padded.of(list(TARGETS))))


@pytest.mark.parametrize("directions", [("both", "forward"), ("backward", "both")])
@pytest.mark.parametrize("pool", ["last", "attention"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_hierarchies(cell: str, pool: str, directions: tuple[str, str]) -> None:
    below = text(cell, directions[0], 2)
    encoder = HierarchyEncoder(words=below, cell=cell, size=3, direction=directions[1], pool=pool)  # type: ignore[arg-type]
    copied = torch.tensor([[5, 6, 7, V + 3, 4, 10], [9, 0, 0, 0, 0, 0], [4, 10, V + 2, 0, 0, 0]])
    kinds: list[Callable[..., Bridge]] = [
        TwoLevelAttention,
        AttentionPooling,
        AttentionPooling,
        Attention,
        InitialState,
    ]
    for at, kind in enumerate(kinds):
        settings = {"join_summary": True} if at == 2 else {}
        copying = kind is TwoLevelAttention
        source = replace(documents(1, 3), copy_ids=copied if copying else None)
        decoder = sequence(sized(kind, encoder, **settings), cell, copying=copying)
        compare(Model(encoder, decoder, {"source": source}, Padded.of(list(TARGETS))))


@pytest.mark.parametrize("visits", ["all", "some"])
@pytest.mark.parametrize("kind", [InitialState, EveryStep, Attention, LocationAttention])
@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("gru", 2), ("lstm", 1)])
def test_pointers_to_points(
    kind: Callable[..., Bridge], visits: str, cell: str, layers: int
) -> None:
    encoder = PointsEncoder(
        dimensions=2,
        embedding=3,
        cell=cell,  # type: ignore[arg-type]
        size=2,
        direction="both",
        layers=layers,
    )
    count = state_shape({"size": H, "cell": cell, "layers": layers}).state_count
    bridge, size = sized(kind, encoder)(state_size=H, state_count=count), encoder.output_size
    decoder = PointerDecoder(
        bridge=bridge,
        source_size=size,
        cell=cell,  # type: ignore[arg-type]
        size=H,
        layers=layers,
        visits=visits,  # type: ignore[arg-type]
    )
    compare(
        Model(
            encoder, decoder, {"points": ragged(2, pixels=False)}, Padded.of(list(ORDERS[visits]))
        )
    )


@pytest.mark.parametrize("visual", [learning, features])
def test_images(visual: Callable[[], Any]) -> None:
    for kind, conditional in ((InitialState, False), (Attention, False), (Attention, True)):
        encoder = ImageEncoder(backbone=visual())
        inputs, target = {"image": images(encoder.backbone)}, Padded.of(list(TARGETS))
        compare(
            Model(
                encoder,
                sequence(sized(kind, encoder), "lstm", conditional=conditional),
                inputs,
                target,
            )
        )


def test_given_features() -> None:
    """Regions of an image, whose mean is the whole, and frames of a video."""
    for name, encoder in (
        ("image", ImageEncoder(backbone=given())),
        ("video", VideoEncoder(backbone=given(), size=3)),
    ):
        inputs = {name: frames(given(), (6, 1, 3))}
        compare(
            Model(encoder, sequence(sized(Attention, encoder)), inputs, Padded.of(list(TARGETS)))
        )


@pytest.mark.parametrize("reads", ["frames", "clips", "both"])
@pytest.mark.parametrize("direction", ["forward", "both"])
def test_videos(reads: str, direction: str) -> None:
    encoder = VideoEncoder(backbone=learning(), reads=reads, size=3, direction=direction)  # type: ignore[arg-type]
    inputs = {"video": frames(encoder.backbone, (6, 1, 3))}
    compare(Model(encoder, sequence(sized(Attention, encoder)), inputs, Padded.of(list(TARGETS))))


@pytest.mark.parametrize(
    ("summary", "kind"), [("both", InitialState), ("both", Attention), ("question", Attention)]
)
def test_questions_about_images(summary: str, kind: Callable[..., Bridge]) -> None:
    question = text("lstm", "both", 2, frozen=True)
    encoder = ImageQuestionEncoder(
        image=ImageEncoder(backbone=learning()),
        question=question,
        summary=summary,  # type: ignore[arg-type]
    )
    decoder = LabelDecoder(bridge=sized(kind, encoder)(state_size=H), classes=5, size=H)
    inputs = {"image": images(encoder.image.backbone), "question": texts()}
    compare(Model(encoder, decoder, inputs, Padded.of([[1], [2], [3]])))


@pytest.mark.parametrize("kind", [InitialState, Attention, AttentionPooling])
@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("gru", 2), ("lstm", 1)])
def test_pairs_of_sentences(kind: Callable[..., Bridge], cell: str, layers: int) -> None:
    encoder = PairEncoder(sentence=text(cell, "both", layers))
    decoder = LabelDecoder(bridge=sized(kind, encoder)(state_size=H), classes=5, size=H)
    inputs = {"sentence1": texts(), "sentence2": other_texts()}
    compare(Model(encoder, decoder, inputs, Padded.of([[1], [2], [3]])))


@pytest.mark.parametrize("counted", [False, True])
@pytest.mark.parametrize("kind", [InitialState, Attention, AttentionPooling])
@pytest.mark.parametrize(("cell", "layers"), [("rnn", 1), ("gru", 2), ("lstm", 1)])
def test_pairs_of_sentences_by_words(
    kind: Callable[..., Bridge], cell: str, layers: int, counted: bool
) -> None:
    """Words of both sentences, an unknown word in both, and sentences that have nothing in common.

    Also a sentence of unknown words alone, and a pair whose words no training sentence has.
    """
    encoder = PairEncoder(sentence=text(cell, "both", layers), compare="words")
    decoder = LabelDecoder(bridge=sized(kind, encoder)(state_size=H), classes=5, size=H)
    first = Padded.of([[5, 3, 7, 8], [9], [4, 10, 11], [5, 8], [6, 4]])
    second = Padded.of([[8, 3], [5, 6, 7], [11, 11], [3], [6]])
    inputs = {"sentence1": first, "sentence2": second}
    model = Model(encoder, decoder, inputs, Padded.of([[1], [2], [3], [4], [1]]))
    if counted:
        training = (Padded.of([[5, 9, 8], [10, 11]]), Padded.of([[8, 7], [11]]))
        texts = dict(zip(inputs, training, strict=True))
        encoder.count([Batch(texts, Padded.of([[0], [0]]), torch.arange(2))])
    compare(model)


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    "settings", [{}, {"join_summary": True}, {"join_summary": True, "scale": 20.0}]
)
@pytest.mark.parametrize("counted", [False, True])
def test_bags_of_words_and_pairs(deep: bool, settings: dict[str, Any], counted: bool) -> None:
    """Unknown words, words twice, and words that were counted in no text."""
    vectors = ngrams(counted=counted)
    encoder: Encoder = BagEncoder(embedding=words(), ngrams=vectors)
    if deep:
        encoder = WideDeepEncoder(deep=text("lstm", "both", 2), ngrams=vectors)
    source = Padded.of([[5, 6, 3, 5, 6], [11], [4, 10, 9, 3]])
    for kind, own in ((AttentionPooling, settings), (InitialState, {})):
        decoder = LabelDecoder(bridge=sized(kind, encoder, **own)(state_size=H), classes=5, size=H)
        compare(Model(encoder, decoder, {"source": source}, Padded.of([[1], [2], [3]])))


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
def test_language_models(cell: str) -> None:
    encoder = NothingEncoder(size=H)
    decoder = sequence(sized(InitialState, encoder, start="copy"), cell)
    compare(Model(encoder, decoder, {"nothing": Padded.of([[], [], []])}, Padded.of(list(TARGETS))))


# The evaluator itself: it sees what is wrong.


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        (
            "e_jt = V_attᵀ tanh(U_att s_{t-1} + W_att h_j)",
            "e_jt = V_attᵀ tanh(U_att s_t + W_att h_j)",
        ),
        ("c_t = Σ_j α_jt h_j", "c_t = Σ_j α_jt h_T"),
        ("d_0 = tanh(W_0 h_T + b_0)", "d_0 = W_0 h_T + b_0"),
    ],
)
def test_a_wrong_line_is_found(line: str, instead: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = text("lstm")
    model = translation(encoder, sequence(sized(Attention, encoder), "lstm"))
    compare(model)
    lines = model.network.decoder.bridge.equations()
    changed = [instead if one == line else one for one in lines]
    assert changed != lines
    monkeypatch.setattr(type(model.network.decoder.bridge), "equations", lambda _: changed)
    with pytest.raises((AssertionError, RecursionError, Unreadable)):
        compare(model)


@pytest.mark.parametrize(
    "line",
    [
        "the decoder looks at the source",
        "c_t = Σ_j α_jt h_j: as you like",
        "c_t = Σ_j α_jt h_j, where j is large",
        "c_t = Σ_j α_jt ? h_j",
        "c_t = (Σ_j α_jt h_j",
        "s_t: the same with dec2 for dec1, ² for ¹, and s_t for x_t",
        "s_t = h_T",
        "W_0 = h_T",
    ],
)
def test_a_line_that_cannot_be_read_is_an_error(line: str) -> None:
    encoder = text()
    model = translation(encoder, sequence(sized(Attention, encoder)))
    lines = [
        model.network.encoder.equations(),
        model.network.decoder.bridge.equations(),
        model.network.decoder.equations(),
    ]
    with pytest.raises(Unreadable):
        Equations([*lines, [line]], all_letters(model.network), model.example(0))


# Every recipe that comes with the package


@pytest.mark.parametrize("name", packaged())
def test_letters_of_recipes_mean_one_thing(name: str) -> None:
    """Every line can be read, no letter is two weights, and each weight that learns is told."""
    blueprint = Blueprint.of(read_recipe(name))
    fields = blueprint.fields.mapped(lambda field: field.assumed())
    facts = {
        field: told | ({"vocabulary": V} if "vocabulary" in told else {})
        for field, told in fields.facts().items()
    }
    network = build(blueprint.plan, facts, fresh=False)
    lines = [
        network.encoder.equations(),
        network.decoder.bridge.equations(),
        network.decoder.equations(),
    ]
    letters = all_letters(network)
    Equations(lines, letters, Example({}))
    printed = [
        name for component in lines for line in expanded(component) for name in names_in(line)
    ]
    # of features that nobody attends to
    assert set(letters) - set(printed) <= {"γ_r", "δ_r", "γ_v", "δ_v"}
