"""From the model section of a recipe to a network: classes, sizes, and what does not fit."""

import re
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

import sixjars
from sixjars.errors import RecipeError, ShapeError
from sixjars.flow.contracts import Bridge, Decoder, Encoder, Holds, ModelPlan
from sixjars.flow.values import Padded
from sixjars.model.bridges import BRIDGES
from sixjars.model.build import BASES, TABLES, Facts, Network, build, class_of, resolved
from sixjars.model.decoders import DECODERS
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders import ENCODERS
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.text import TextEncoder
from sixjars.recipe.allowed_code import NOTHING
from sixjars.recipe.files import loaded, overridden

from .faults import entries

ROLES = ("encoder", "bridge", "decoder")
KINDS = {"encoder": "text", "bridge": "attention", "decoder": "sequence"}
TOLD = "vocabulary vectors classes multi_label dimensions pixels cells pretrained".split()
"""What the fields of the data fill in."""


@dataclass
class Output:
    """All that components know of a field."""

    name: str = "target"
    holds: ClassVar[Holds] = "tokens"
    in_segments: bool = False
    multi_label: bool = False
    has_vectors: bool = False

    def copy_misfits(self, source: Any) -> list[str]:
        return []

    def vocabulary_misfits(self, other: Any) -> list[str]:
        return []


def settings_of(role: str, section: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    return resolved(role, {"kind": KINDS[role], **section}, TOLD, NOTHING)


def plan_of(**sections: dict[str, Any]) -> ModelPlan:
    found = {role: settings_of(role, sections.get(role, {})) for role in ROLES}
    assert not [faults for _, faults in found.values() if faults]
    settings = {role: section for role, (section, _) in found.items()}
    kinds: dict[str, Any] = {
        role: class_of(role, section, NOTHING) for role, section in settings.items()
    }
    inputs = {name: Output(name) for name in kinds["encoder"].inputs()}
    return ModelPlan(**kinds, settings=settings, inputs=inputs, output=Output())


def words(**vocabularies: int) -> dict[str, dict[str, Any]]:
    """What fields of text tell."""
    return {name: {"vocabulary": size, "vectors": None} for name, size in vocabularies.items()}


def network(facts: Facts | None = None, **sections: dict[str, Any]) -> Network:
    return build(plan_of(**sections), facts or words(source=9, target=7))


def test_a_section_has_every_default() -> None:
    encoder, faults = settings_of("encoder", {})
    assert faults == []
    assert set(encoder) == {"kind", "embedding", "cell", "size", "layers", "direction", "dropout"}
    expected = {"kind": "attention", "score": "additive", "size": None, "start": "linear"}
    assert settings_of("bridge", {})[0] == expected
    assert settings_of("encoder", {"kind": "none"})[0] == {"kind": "none", "size": 128}


@pytest.mark.parametrize("role", ROLES)
def test_resolving_twice_changes_nothing(role: str) -> None:
    once, _ = settings_of(role, {})
    assert settings_of(role, once) == (once, [])


def test_every_kind_means_a_class_of_its_role() -> None:
    assert {"encoder": ENCODERS, "bridge": BRIDGES, "decoder": DECODERS} == TABLES
    assert {"encoder": Encoder, "bridge": Bridge, "decoder": Decoder} == BASES
    for role, table in TABLES.items():
        for kind, made in table.items():
            assert class_of(role, {"kind": kind}, NOTHING) is made
            assert issubclass(made, BASES[role])


FAULTS = """
encoder {kind: txt}
    model.encoder: kind 'txt' is unknown. Did you mean 'text'? Known: bag, hierarchy, image,
    image_question, none, pair, points, text, video, wide_deep.
bridge {score: {}}
    model.bridge.score: should be 'additive', 'dot' or 'general', but is {}.
bridge {score: dots}
    model.bridge.score: should be 'additive', 'dot' or 'general', but is 'dots'. Did you mean
    'dot'?
bridge {summary_size: 3}
    model.bridge: key 'summary_size' is filled in by the toolkit; remove it.
bridge {source_size: 3}
    model.bridge: key 'source_size' is filled in by the toolkit; remove it.
bridge {kind: initial, score: dot}
    model.bridge: key 'score' is one of kind attention, but the kind is initial; remove it, or
    replace the section: 'model.bridge={kind: initial}'.
encoder {kind: bag, size: 8}
    model.encoder: key 'size' is one of kind none or text or hierarchy or video or points, but
    the kind is bag, which has embedding.size and ngrams.size; remove it, or replace the
    section: 'model.encoder={kind: bag}'.
decoder {bridge: {}}
    model.decoder: key 'bridge' is filled in by the toolkit; remove it.
encoder {embedding: {vocabulary: 3}}
    model.encoder.embedding: key 'vocabulary' is filled in by the toolkit; remove it.
decoder {embedding: {siz: 3}}
    model.decoder.embedding: key 'siz' is unknown. Did you mean 'size'? Known: dropout, frozen,
    size.
decoder {embedding: {size: 0}}
    model.decoder.embedding.size: should be greater than or equal to 1, but is 0.
"""


@pytest.mark.parametrize(("asked", "sentence"), entries(FAULTS))
def test_faults_of_a_section_are_sentences(asked: str, sentence: str) -> None:
    role, _, section = asked.partition(" ")
    settings, faults = settings_of(role, loaded(section))
    assert (settings, faults) == ({}, [sentence])


BIG = [
    ("size", 10**18, 1_000_000),
    ("layers", 10**6, 100),
    ("layers", 101, 100),
    ("size", 1_000_001, 1_000_000),
]


@pytest.mark.parametrize(("key", "value", "limit"), BIG)
@pytest.mark.parametrize("kind", ["text", "hierarchy", "points", "video"])
def test_sizes_and_layers_have_limits(kind: str, key: str, value: int, limit: int) -> None:
    for role, section in (
        ("encoder", {"kind": kind}),
        ("decoder", {}),
        ("decoder", {"kind": "pointer"}),
    ):
        _, faults = settings_of(role, {**section, key: value})
        assert faults == [
            f"model.{role}.{key}: should be less than or equal to {limit}, but is {value}."
        ]


def test_every_size_of_a_component_has_a_limit() -> None:
    """Whatever is a whole number in a recipe is refused at 10^18, in inner sections too."""
    for role, table in TABLES.items():
        for kind in table:
            for path in whole_numbers(settings_of(role, {"kind": kind})[0]):
                section: dict[str, Any] = {"kind": kind}
                inner = section
                for key in path[:-1]:
                    inner = inner.setdefault(key, {})
                inner[path[-1]] = 10**18
                assert "should be less than or equal to" in " ".join(
                    settings_of(role, section)[1]
                ), (kind, path)


def whole_numbers(section: dict[str, Any], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in section.items():
        if isinstance(value, dict):
            found += whole_numbers(value, (*above, key))
        elif isinstance(value, int) and not isinstance(value, bool):
            found.append((*above, key))
    return found


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize(
    "bridge",
    [{"kind": "initial"}, {"kind": "every_step"}, {"kind": "attention", "score": "general"}],
)
def test_components_of_any_size_fit_together(
    cell: str, layers: int, bridge: dict[str, Any]
) -> None:
    encoder = {"size": 3, "direction": "both", "cell": "lstm", "embedding": {"size": 5}}
    whole = network(
        encoder=encoder, bridge=bridge, decoder={"size": 8, "cell": cell, "layers": layers}
    )
    output = whole({"source": Padded.of([[5, 6], [7]])}, Padded.of([[4, 2], [2]]))
    assert output.logits.shape == (2, 2, 7)


def test_vocabularies_decide_the_sizes_of_both_ends() -> None:
    whole = network(words(source=11, target=6))
    assert isinstance(whole.encoder, TextEncoder)
    assert isinstance(whole.decoder, SequenceDecoder)
    assert whole.encoder.embedding.table.num_embeddings == 11
    assert whole.decoder.embedding.table.num_embeddings == whole.decoder.output.out_features == 6


def test_a_language_model_needs_no_source() -> None:
    whole = network(words(target=6), encoder={"kind": "none"}, bridge={"kind": "initial"})
    assert isinstance(whole.encoder, NothingEncoder)
    assert whole({"nothing": Padded.of([[], []])}, Padded.of([[4, 2], [2]])).logits.shape == (
        2,
        2,
        6,
    )


def test_pretrained_vectors_reach_the_field_they_belong_to() -> None:
    small = {"embedding": {"size": 2, "frozen": True}}
    facts = words(source=9, target=7)
    facts["target"]["vectors"] = (torch.tensor([4]), torch.tensor([[8.0, 9.0]]))
    whole = network(facts, encoder=small, decoder=small)
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


@pytest.mark.parametrize("bridge", ["attention", "pooling"])
def test_attention_needs_positions(bridge: str) -> None:
    plan = plan_of(encoder={"kind": "none"}, bridge={"kind": bridge})
    sentence = (
        f"model.bridge: {bridge} has nothing to attend to: model.encoder is none. Use initial."
    )
    assert plan.bridge.misfits(plan) == [sentence]
    told = r"^attention has nothing to attend to: an encoder of kind 'none' has no pos"
    with pytest.raises(ShapeError, match=told):
        build(plan, words(target=7))


MISFITS = """
encoder={size: 6} bridge={score: dot} decoder={size: 4}
    score: dot needs equal hidden sizes of decoder and encoder, but they are 4 and 6. Make them
    equal, or use score: general.
encoder={size: 3, direction: both} bridge={start: copy} decoder={size: 4}
    start: copy needs a summary of the decoder's hidden size, but they have 6 and 4 numbers. Make
    them equal, or use start: linear.
decoder={size: 4, tied: true, embedding: {size: 3}}
    tied: true needs embeddings of the hidden size, but decoder.size is 4 and
    decoder.embedding.size is 3. Make them equal, or use tied: false.
"""


@pytest.mark.parametrize(("sections", "sentence"), entries(MISFITS))
def test_sizes_that_do_not_fit_are_refused_with_both_numbers(sections: str, sentence: str) -> None:
    with pytest.raises(ShapeError) as error:
        network(**overridden({}, re.split(" (?=bridge|decoder)", sections)))
    assert str(error.value) == sentence


@pytest.mark.parametrize("score", ["dot", "general"])
def test_hidden_units_belong_to_the_additive_score(score: str) -> None:
    plan = plan_of(bridge={"score": score, "size": 64})
    sentence = f"model.bridge.size: belongs to score: additive, but score is {score}; remove it."
    assert plan.bridge.misfits(plan) == [sentence]
    told = f"size: belongs to score: additive, but score is {score}; remove it"
    with pytest.raises(RecipeError, match=told):
        sixjars.read_recipe(f"translation/sample_{score}", ["model.bridge.size=64"])
    fitting = plan_of(bridge={"score": "additive", "size": 64})
    assert fitting.bridge.misfits(fitting) == []
    assert plan.bridge.misfits(plan_of(bridge={"score": score})) == []
