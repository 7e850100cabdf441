"""Networks that see, from the model jar: what is told of a frame, who looks at its cells, which weights learn."""

from typing import Any

import pytest
import torch

from sixjars.errors import ShapeError
from sixjars.flow.values import Padded
from sixjars.model.build import Facts, Network, all_heard, build, looks_at_cells, resolved, sight_of
from sixjars.model.encoders.image import ImageQuestionEncoder
from sixjars.model.visual import VisualInput
from sixjars.recipe import ModelSettings
from sixjars.tasks import TASKS

SMALL = {"name": "small", "widths": [4, 6]}
EYES: dict[str, Any] = {"backbone": SMALL}


def jar(task: str, /, **sections: dict[str, Any]) -> ModelSettings:
    found = {role: resolved(role, sections.get(role, {}), TASKS[task]) for role in ("encoder", "bridge", "decoder")}
    assert not [faults for _, faults in found.values() if faults]
    return ModelSettings(**{role: settings for role, (settings, _) in found.items()})


def words(**vocabularies: int) -> dict[str, dict[str, Any]]:
    """What the data says of fields of text."""
    return {name: {"vocabulary": size, "vectors": None} for name, size in vocabularies.items()}


def network(task: str, /, facts: Facts, **sections: dict[str, Any]) -> Network:
    return build(jar(task, **sections), facts)


def pixels(rows: int, frames: int, *, side: int = 16) -> Padded:
    values = torch.randint(0, 256, (rows, frames, 3 * side * side), dtype=torch.uint8)
    return Padded(values, torch.ones(rows, frames, dtype=torch.bool))


def test_the_section_of_the_backbone_is_found_where_it_stands() -> None:
    alone, _ = resolved("encoder", EYES, TASKS["image_captioning"])
    inside, _ = resolved("encoder", {"image": EYES}, TASKS["image_question_answering"])
    assert sight_of(alone) == sight_of(inside)
    assert sight_of(alone)["widths"] == (4, 6)
    assert sight_of(alone)["tuned"] is False


LOOKS = {"initial": False, "every_step": False, "attention": True, "pooling": True}


@pytest.mark.parametrize("bridge", LOOKS)
def test_who_looks_at_the_cells_of_a_frame(bridge: str) -> None:
    """Of a picture whoever weighs its positions; of a film, whose positions are its frames, whoever reads clips."""
    for task in ("image_captioning", "image_question_answering"):
        assert looks_at_cells(jar(task, bridge={"kind": bridge})) == LOOKS[bridge]
    for reads, looks in {"frames": False, "clips": True, "both": True}.items():
        for task in ("video_captioning", "video_classification"):
            assert looks_at_cells(jar(task, encoder={"reads": reads}, bridge={"kind": bridge})) == looks


@pytest.mark.parametrize("bridge", ["initial", "every_step"])
def test_vectors_alone_are_enough_for_a_bridge_that_does_not_look(bridge: str) -> None:
    facts = {"image": {"pixels": 32, "cells": False, "pretrained": False}, **words(target=8)}
    eyes = {"backbone": "efficientnet_lite0"}
    whole = network("image_captioning", facts, encoder=eyes, bridge={"kind": bridge}, decoder={"size": 7})
    vectors = Padded(torch.randn(2, 1, 1280).half(), torch.ones(2, 1, dtype=torch.bool))
    assert whole({"image": vectors}, Padded.of([[4, 2], [2]])).scores.shape == (2, 2, 8)
    with pytest.raises(ShapeError, match=r"nothing to look at: an encoder of kind 'image' has no positions\."):
        network("image_captioning", facts, encoder=eyes, bridge={"kind": "attention"})


def test_only_the_named_layers_of_a_backbone_learn() -> None:
    facts = {"image": {"pixels": 16, "cells": True, "pretrained": False}, **words(target=8)}
    whole = network("image_captioning", facts, encoder={"backbone": {**SMALL, "tuned": "blocks.1"}})
    still = [name for name, weight in whole.named_parameters() if not weight.requires_grad]
    assert still
    assert all(name.startswith("encoder.backbone.backbone.blocks.0.") for name in still)


@pytest.mark.parametrize("bridge", LOOKS)
def test_a_captioner_of_any_size(bridge: str) -> None:
    facts = {"image": {"pixels": 16, "cells": True, "pretrained": False}, **words(target=8)}
    decoder = {"size": 7, "cell": "lstm"}
    whole = network("image_captioning", facts, encoder=EYES, bridge={"kind": bridge}, decoder=decoder)
    taught = whole({"image": pixels(2, 1)}, Padded.of([[4, 2], [2]]))
    assert taught.scores.shape == (2, 2, 8)
    assert (taught.weights is None) == (bridge in ("initial", "every_step"))
    if taught.weights is not None:
        assert taught.weights.shape == (2, 2, 4 * 4)


@pytest.mark.parametrize("bridge", ["initial", "every_step", "attention", "pooling"])
@pytest.mark.parametrize("summary", ["both", "question"])
def test_questions_about_pictures(bridge: str, summary: str) -> None:
    """Three sizes meet: those of the cells, of the question and of what is judged."""
    encoder = {"image": EYES, "question": {"size": 3, "embedding": {"size": 4}}, "summary": summary}
    facts = {"image": {"pixels": 16, "cells": True, "pretrained": False}, **words(question=9), "label": {"classes": 6}}
    bridges = {"kind": bridge}
    whole = network("image_question_answering", facts, encoder=encoder, bridge=bridges, decoder={"size": 7})
    assert isinstance(whole.encoder, ImageQuestionEncoder)
    assert whole.encoder.question.embedding.table.num_embeddings == 9
    assert whole.encoder.summary_size == (3 + 128 if summary == "both" else 3)
    inputs = {"image": pixels(2, 1), "question": Padded.of([[4, 5, 6], [7]])}
    assert whole(inputs, Padded.of([[3], [0]])).scores.shape == (2, 1, 6)


@pytest.mark.parametrize("bridge", ["initial", "every_step", "attention", "pooling"])
@pytest.mark.parametrize("task", ["video_captioning", "video_classification"])
def test_films(bridge: str, task: str) -> None:
    facts = {"video": {"pixels": 16, "cells": True, "pretrained": False}, **words(target=8), "label": {"classes": 6}}
    facts.pop("label" if task == "video_captioning" else "target")
    whole = network(
        task, facts, encoder={**EYES, "size": 5, "reads": "both", "direction": "both"}, bridge={"kind": bridge}
    )
    films = pixels(2, 3)
    taught = whole({"video": films}, Padded.of([[3], [0]]))
    assert taught.scores.shape == (2, 1, 8 if task == "video_captioning" else 6)
    assert whole.encoder.output_size == 10


MAKES: list[tuple[str, dict[str, Any]]] = [
    *(("image_captioning", {"backbone": eyes}) for eyes in (SMALL, {"name": "efficientnet_lite0"})),
    *(("image_question_answering", {"image": EYES, "summary": summary}) for summary in ("both", "question")),
    *(("video_classification", {"backbone": SMALL, "reads": reads}) for reads in ("frames", "clips", "both")),
    ("video_captioning", {"backbone": {"name": "efficientnet_lite0"}, "reads": "clips"}),
    ("video_captioning", {"backbone": {"name": "efficientnet_lite0", "tuned": "block9"}, "reads": "frames"}),
]


@pytest.mark.parametrize("bridge", LOOKS)
@pytest.mark.parametrize(("task", "encoder"), MAKES)
def test_whether_all_weights_are_heard(task: str, encoder: dict[str, Any], bridge: str) -> None:
    """Compared with the gradients: several processes must know beforehand whether some never arrive."""
    model = jar(task, encoder=encoder, bridge={"kind": bridge}, decoder={"size": 7})
    eyes = {"pixels": 32, "cells": looks_at_cells(model), "pretrained": False}
    facts = {"image": eyes, "video": eyes, **words(question=9, target=8), "label": {"classes": 6}}
    unused = ("target",) if TASKS[task].output == "label" else ("label",)
    whole = build(model, {name: told for name, told in facts.items() if name not in unused})
    frames = pixels(2, 3 if "video" in task else 1, side=32)
    sight = whole.encoder.image.backbone if isinstance(whole.encoder, ImageQuestionEncoder) else whole.encoder.backbone
    assert isinstance(sight, VisualInput)
    if sight.backbone is None:
        frames = Padded(torch.randn(*frames.mask.shape, sight.shape.numbers).half(), frames.mask)
    given = {"image": frames, "video": frames, "question": Padded.of([[4, 5], [6]])}
    taught = whole({name: given[name] for name in TASKS[task].inputs}, Padded.of([[3], [0]]))
    taught.scores.sum().backward()
    silent = [name for name, weight in whole.named_parameters() if weight.requires_grad and weight.grad is None]
    assert all_heard(model) == (not silent), silent


def test_of_another_library_s_network_nobody_knows() -> None:
    eyes = {"name": "torchvision/resnet18", "tuned": True}
    model = jar("image_captioning", encoder={"backbone": eyes}, bridge={"kind": "attention"})
    assert not all_heard(model)
    assert all_heard(jar("image_captioning", encoder={"backbone": {**eyes, "tuned": False}}))


def test_features_made_beforehand_need_no_backbone_in_the_network() -> None:
    facts = {"image": {"pixels": 64, "cells": True, "pretrained": False}, **words(target=8)}
    encoder = {"backbone": "efficientnet_lite0"}
    whole = network("image_captioning", facts, encoder=encoder, bridge={"kind": "initial"})
    assert [name for name, _ in whole.encoder.named_parameters()] == [
        "cells.weight",
        "cells.bias",
        "whole.weight",
        "whole.bias",
    ]


@pytest.mark.parametrize(
    ("section", "told"),
    [
        ({"backbone": {"pixels": 3}}, "model.encoder.backbone: key 'pixels' is filled in by the toolkit; remove it."),
        ({"backbone": {"widht": 3}}, "model.encoder.backbone: key 'widht' is unknown. Did you mean 'widths'?"),
        ({"backbone": {"widths": [0]}}, "model.encoder.backbone.widths.0: should be greater than or equal to 1"),
        ({"backbone": {"tuned": [1]}}, "model.encoder.backbone.tuned: should be a valid boolean, but is [1]."),
        ({"backbone": {"cells": False}}, "model.encoder.backbone: key 'cells' is filled in by the toolkit; remove it."),
        ({"reads": "frame"}, "model.encoder.reads: should be 'frames', 'clips' or 'both', but is 'frame'."),
    ],
)
def test_faults_of_eyes_read_well(section: dict[str, Any], told: str) -> None:
    settings, faults = resolved("encoder", section, TASKS["video_classification"])
    assert settings == {}
    assert len(faults) == 1
    assert faults[0].startswith(told)
