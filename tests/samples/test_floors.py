"""Each sample recipe, trained whole, reaches the floor written in it. Slow: `make test-all`."""

import json
from pathlib import Path

import pytest
from tests.grammars import log_probability, true_perplexity

import sixjars
from sixjars.recipe.files import packaged
from sixjars.runs.recipes import read_recipe

SAMPLES = [name for name in packaged() if "/sample" in name]
FOR_A_GPU = {"pointing/sample_tours_large"}
"""Too much for a CPU: hundreds of thousands of examples. Its own command checks it."""


def test_recipes_for_a_gpu_say_so() -> None:
    first = {name: packaged()[name].read_text(encoding="utf-8").splitlines()[0] for name in SAMPLES}
    assert {name for name, line in first.items() if "for a GPU" in line} == FOR_A_GPU


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in SAMPLES if name not in FOR_A_GPU])
def test_it_reaches_its_floor(name: str, tmp_path: Path) -> None:
    trained = sixjars.train(name, out=tmp_path / "run")
    assert not trained.missed, trained.missed


@pytest.mark.slow
def test_attention_survives_long_inputs_and_the_options_do_not(tmp_path: Path) -> None:
    """Claim 1, by the command that the README gives."""
    from sixjars.comparison.compare import compare

    names = [f"translation/sample_long_{how}" for how in ("initial", "every_step", "attention")]
    found = compare(names, out=tmp_path, metric="exact_match", device="cpu")
    initial, every_step, attention = (
        contender.buckets[-1].value or 0.0 for contender in found.contenders
    )
    assert attention > max(initial, every_step) + 0.5


def test_attention_on_the_right_object_is_expected(tmp_path: Path) -> None:
    """Claim 4: recipes that caption with attention expect it, far above an untrained network."""
    floors = {name: read_recipe(name).expect.get("object_focus", 0.0) for name in SAMPLES}
    captioning = {
        name: floor
        for name, floor in floors.items()
        if name.startswith("image_captioning/sample_attention")
    }
    assert len(captioning) >= 3
    assert min(captioning.values()) >= 2.0
    unlearned = [
        "data.sample.size=40",
        "data.sample.valid=4",
        "data.sample.test=60",
        "learning.rate=1e-9",
    ]
    trained = sixjars.train(
        "image_captioning/sample_attention", [*unlearned, "learning.steps=1"], out=tmp_path / "run"
    )
    scores = {score.name: score.value for score in trained.scores}
    assert scores["object_focus"] == pytest.approx(1.0, abs=0.4)
    assert any("object_focus" in sentence for sentence in trained.missed)


def test_attention_on_the_right_sentence_is_expected(tmp_path: Path) -> None:
    """Far above an untrained network: as much weight on one sentence as on any other."""
    floors = {name: read_recipe(name).expect.get("rationale_sentence", 0.0) for name in SAMPLES}
    finding = {name for name, floor in floors.items() if floor >= 0.8}
    kinds = ("attention", "bag", "flat_attention")
    assert finding == {f"document_classification/sample_{kind}" for kind in kinds}
    unlearned = [
        "data.sample.size=40",
        "data.sample.valid=4",
        "data.sample.test=100",
        "learning.rate=1e-9",
    ]
    name = "document_classification/sample_attention"
    trained = sixjars.train(name, [*unlearned, "learning.steps=1"], out=tmp_path / "run")
    scores = {score.name: score.value for score in trained.scores}
    assert scores["rationale_sentence"] == pytest.approx(1 / 7, abs=0.05)  # there are 4 to 10
    assert any("rationale_sentence" in sentence for sentence in trained.missed)


def test_a_small_model_learns_to_transliterate(learned: Path) -> None:
    """It must learn, not just run."""
    scores = json.loads((learned / "scores.json").read_text())["scores"]
    assert scores["exact_match"]["value"] > 0.8
    log = [json.loads(line) for line in (learned / "log.jsonl").read_text().splitlines()]
    assert log[-1]["loss"] < log[0]["loss"] / 3


def test_no_model_can_beat_the_grammar() -> None:
    """The language-model sample has a floor: a perplexity below it would be a bug of the metric."""
    from sixjars.samples import generate

    sentences = [
        row["text"] for row in generate("language_model", size=1, valid=1, test=4000)["test"]
    ]
    tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    import math

    drawn = math.exp(-sum(log_probability(sentence) for sentence in sentences) / tokens)
    assert drawn == pytest.approx(true_perplexity(), rel=0.03)
