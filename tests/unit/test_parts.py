"""From the model jar to a network: the right classes, the right sizes, and misfits refused in words."""

from typing import Any

import pytest
import torch

from sixjars.errors import ShapeError
from sixjars.flow.values import Padded
from sixjars.model.bridges.attention import AdditiveAttention, DotAttention, GeneralAttention
from sixjars.model.bridges.every_step import EveryStep
from sixjars.model.bridges.initial import InitialState
from sixjars.model.bridges.pooling import AttentionPooling
from sixjars.model.build import Facts, Network, build, class_of, inputs_of, resolved
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.image import ImageEncoder, ImageQuestionEncoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.model.encoders.video import VideoEncoder
from sixjars.recipe import ModelSettings
from sixjars.tasks import TASKS

TRANSLATION, LANGUAGE_MODEL = TASKS["translation"], TASKS["language_model"]
ROLES = ("encoder", "bridge", "decoder")


def jar(task: str = "translation", /, **sections: dict[str, Any]) -> ModelSettings:
    found = {role: resolved(role, sections.get(role, {}), TASKS[task]) for role in ROLES}
    assert not [faults for _, faults in found.values() if faults]
    return ModelSettings(**{role: settings for role, (settings, _) in found.items()})


def words(**vocabularies: int) -> dict[str, dict[str, Any]]:
    """What the data says of fields of text."""
    return {name: {"vocabulary": size, "vectors": None} for name, size in vocabularies.items()}


def network(task: str = "translation", /, facts: Facts | None = None, **sections: dict[str, Any]) -> Network:
    return build(jar(task, **sections), facts or words(source=9, target=7))


def test_an_empty_section_is_the_task_s_own_choice_with_all_defaults() -> None:
    encoder, faults = resolved("encoder", {}, TRANSLATION)
    assert faults == []
    assert encoder["kind"] == "text"
    assert set(encoder) == {"kind", "embedding", "cell", "size", "layers", "direction", "dropout"}
    assert resolved("bridge", {}, TRANSLATION)[0]["kind"] == "attention"
    assert resolved("bridge", {}, TRANSLATION)[0]["score"] == "additive"
    assert resolved("encoder", {}, LANGUAGE_MODEL)[0] == {"kind": "none", "size": 128}
    assert resolved("bridge", {}, LANGUAGE_MODEL)[0] == {"kind": "initial", "start": "linear"}


def test_resolving_twice_changes_nothing() -> None:
    for role in ROLES:
        once, _ = resolved(role, {}, TRANSLATION)
        assert resolved(role, once, TRANSLATION) == (once, [])


@pytest.mark.parametrize(
    ("role", "section", "kind"),
    [
        ("encoder", {"kind": "none"}, NothingEncoder),
        ("encoder", {"kind": "text"}, TextEncoder),
        ("encoder", {"kind": "image"}, ImageEncoder),
        ("encoder", {"kind": "image_question"}, ImageQuestionEncoder),
        ("encoder", {"kind": "video"}, VideoEncoder),
        ("bridge", {"kind": "initial"}, InitialState),
        ("bridge", {"kind": "every_step"}, EveryStep),
        ("bridge", {"kind": "attention", "score": "additive"}, AdditiveAttention),
        ("bridge", {"kind": "attention", "score": "dot"}, DotAttention),
        ("bridge", {"kind": "attention", "score": "general"}, GeneralAttention),
        ("bridge", {"kind": "pooling"}, AttentionPooling),
        ("decoder", {"kind": "sequence"}, SequenceDecoder),
        ("decoder", {"kind": "label"}, LabelDecoder),
    ],
)
def test_every_kind_means_a_class(role: str, section: dict[str, str], kind: type) -> None:
    assert class_of(role, section) is kind


@pytest.mark.parametrize(
    ("role", "section", "told"),
    [
        ("encoder", {"kind": "txt"}, "model.encoder: kind 'txt' is unknown. Did you mean 'text'?"),
        ("encoder", {"kind": ["text"]}, "model.encoder: kind \"['text']\" is unknown. Did you mean 'text'?"),
        ("encoder", {"kind": None}, "model.encoder: kind 'None' is unknown. Did you mean 'none'?"),
        ("bridge", {"score": {}}, "model.bridge: score '{}' is unknown. Known: additive, dot, general."),
        (
            "bridge",
            {"score": "dots"},
            "model.bridge: score 'dots' is unknown. Did you mean 'dot'? Known: additive, dot, general.",
        ),
        ("bridge", {"summary_size": 3}, "model.bridge: key 'summary_size' is filled in by the toolkit; remove it."),
        ("bridge", {"source_size": 3}, "model.bridge: key 'source_size' is filled in by the toolkit; remove it."),
        ("bridge", {"kind": "initial", "score": "dot"}, "model.bridge: key 'score' is unknown. Known: start."),
        ("decoder", {"bridge": {}}, "model.decoder: key 'bridge' is filled in by the toolkit; remove it."),
        (
            "encoder",
            {"embedding": {"vocabulary": 3}},
            "model.encoder.embedding: key 'vocabulary' is filled in by the toolkit; remove it.",
        ),
        (
            "decoder",
            {"embedding": {"siz": 3}},
            "model.decoder.embedding: key 'siz' is unknown. Did you mean 'size'? Known: dropout, size, tuned.",
        ),
        (
            "decoder",
            {"embedding": {"size": 0}},
            "model.decoder.embedding.size: should be greater than or equal to 1, but is 0.",
        ),
    ],
)
def test_faults_of_a_section_read_well(role: str, section: dict[str, Any], told: str) -> None:
    settings, faults = resolved(role, section, TRANSLATION)
    assert settings == {}
    assert len(faults) == 1
    assert faults[0].startswith(told)


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    "bridge", [{"kind": "initial"}, {"kind": "every_step"}, {"kind": "attention", "score": "general"}]
)
def test_parts_of_any_size_fit_together(cell: str, layers: int, bridge: dict[str, Any]) -> None:
    encoder = {"size": 3, "direction": "both", "cell": "lstm", "embedding": {"size": 5}}
    whole = network(encoder=encoder, bridge=bridge, decoder={"size": 8, "cell": cell, "layers": layers})
    taught = whole({"source": Padded.of([[5, 6], [7]])}, Padded.of([[4, 2], [2]]))
    assert taught.scores.shape == (2, 2, 7)


def test_vocabularies_decide_the_sizes_of_both_ends() -> None:
    whole = network(facts=words(source=11, target=6))
    assert isinstance(whole.encoder, TextEncoder)
    assert isinstance(whole.decoder, SequenceDecoder)
    assert whole.encoder.embedding.table.num_embeddings == 11
    assert whole.decoder.embedding.table.num_embeddings == whole.decoder.output.out_features == 6


def test_a_language_model_needs_no_source() -> None:
    whole = network("language_model", words(target=6))
    assert isinstance(whole.encoder, NothingEncoder)
    assert whole({"source": Padded.of([[], []])}, Padded.of([[4, 2], [2]])).scores.shape == (2, 2, 6)


def test_pretrained_vectors_reach_the_field_they_belong_to() -> None:
    small = {"embedding": {"size": 2, "tuned": False}}
    facts = words(source=9, target=7)
    facts["target"]["vectors"] = (torch.tensor([4]), torch.tensor([[8.0, 9.0]]))
    whole = network(facts=facts, encoder=small, decoder=small)
    assert isinstance(whole.encoder, TextEncoder)
    assert isinstance(whole.decoder, SequenceDecoder)
    assert whole.decoder.embedding(torch.tensor(4)).tolist() == [8.0, 9.0]
    assert whole.encoder.embedding(torch.tensor(4)).tolist() != [8.0, 9.0]


def test_the_same_seed_gives_the_same_weights() -> None:
    found = []
    for seed in (3, 3, 4):
        torch.manual_seed(seed)
        found.append(network().state_dict())
    first, again, other = found
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_attention_needs_positions() -> None:
    with pytest.raises(ShapeError) as error:
        network(encoder={"kind": "none"}, bridge={"kind": "attention"})
    assert str(error.value) == (
        "attention has nothing to look at: an encoder of kind 'none' has no positions. Use initial."
    )


@pytest.mark.parametrize(
    ("sections", "told"),
    [
        (
            {"encoder": {"size": 6}, "bridge": {"score": "dot"}, "decoder": {"size": 4}},
            "score: dot needs a decoder state as large as the encoder's, but they have 4 and 6 numbers. "
            "Make them equal, or use score: general.",
        ),
        (
            {"encoder": {"size": 3, "direction": "both"}, "bridge": {"start": "copy"}, "decoder": {"size": 4}},
            "start: copy needs a summary as large as the decoder's state, but they have 6 and 4 numbers. "
            "Make them equal, or use start: linear.",
        ),
        (
            {"decoder": {"size": 4, "tied": True, "embedding": {"size": 3}}},
            "tied: true needs a state as large as the embeddings, but decoder.size is 4 and "
            "decoder.embedding.size is 3.",
        ),
    ],
)
def test_misfits_are_refused_with_both_numbers(sections: dict[str, dict[str, Any]], told: str) -> None:
    with pytest.raises(ShapeError) as error:
        network(**sections)
    assert str(error.value) == told


def test_an_encoder_s_inputs_are_the_parameters_of_its_forward() -> None:
    for task in TASKS.values():
        assert inputs_of(task.encoder) == (task.inputs or ("source",)), task.name


def test_pooling_needs_positions() -> None:
    with pytest.raises(ShapeError, match=r"nothing to look at: an encoder of kind 'none' has no positions\."):
        network(encoder={"kind": "none"}, bridge={"kind": "pooling"})
