"""What `explain` prints of training, evaluated and compared with torch."""

import math
import re
from typing import Any

import pytest
import torch

from sixjars.learning.engine import learning_rate, optimizer_for
from sixjars.recipe.sections import LearningSettings
from sixjars.runs.explanation.explain import Explanation, explain
from sixjars.runs.recipes import read_recipe

RECIPE = "translation/sample_attention"
FEW = ["data.sample.size=64", "data.sample.valid=4", "data.sample.test=12"]
STEPS = 40
ARROW = " ← "


def lines_of(explanation: Explanation, name: str) -> list[str]:
    return next(list(section.lines) for section in explanation.sections if section.name == name)


def learning_of(*overrides: str, recipe: str = RECIPE) -> list[str]:
    return lines_of(explain(recipe, [*FEW, *overrides]), "learning")


def python_of(formula: str) -> str:
    """A printed formula as Python: two factors side by side are a product."""
    text = re.sub(r"√\(", "sqrt(", formula)
    for sign, code in {"²": "**2", "^": "**", "·": "*", "‖g‖": "norm(g)", "π": "pi"}.items():
        text = text.replace(sign, code)
    return re.sub(r"(?<=[\w)]) +(?=[\wθη(])", " * ", text)


def updates_of(lines: list[str]) -> list[tuple[str, str]]:
    """The lines that change something, in their order, without what a colon explains."""
    changes = [line.partition(":")[0].split(ARROW) for line in lines if ARROW in line]
    return [(name, python_of(formula)) for name, formula in changes]


def rate_of(lines: list[str], step: int) -> float:
    """The printed rate of a step, of STEPS in all."""
    for line in lines:
        formula = re.fullmatch(r"η_k = ([^:]+?)(?: for k < (\d+))?: .*", line)
        if formula and (formula[2] is None or step < int(formula[2])):
            names = {"k": step, "K": STEPS, "pi": math.pi, "cos": math.cos, "sqrt": math.sqrt}
            return float(eval(python_of(formula[1]), names))  # noqa: S307 - a formula of ours
    raise AssertionError(lines)


UPDATES = [
    (),
    ("learning.weight_decay=0.1",),
    ("learning.optimizer=adamw", "learning.weight_decay=0.1"),
    ("learning.optimizer=sgd",),
    ("learning.optimizer=sgd", "learning.momentum=0.9", "learning.weight_decay=0.1"),
    ("learning.optimizer=adadelta", "learning.rate=1"),
    ("learning.clip=0.5",),
]


@pytest.mark.parametrize("overrides", UPDATES, ids=" ".join)
def test_the_printed_steps_are_those_of_torch(overrides: tuple[str, ...]) -> None:
    """Four steps on gradients that are clipped and gradients that are not."""
    lines = learning_of("learning.schedule=constant", *overrides)
    settings = read_recipe(RECIPE, [*overrides, "learning.schedule=constant"]).learning
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))
    optimizer = optimizer_for([weight], settings)
    zero = torch.zeros(3, dtype=torch.float64)
    names: dict[str, Any] = {
        "θ": weight.detach().clone(),
        "sqrt": torch.sqrt,
        "norm": torch.linalg.norm,
    }
    names |= {"min": lambda *values: min(float(value) for value in values), "c": settings.clip}
    names |= {"m": zero, "v": zero, "u": zero, "b": zero, "η_k": settings.rate}
    for step, size in enumerate((5.0, 0.1, 3.0, 0.2), start=1):
        gradient = size * torch.tensor([0.3, -0.7, float(step)], dtype=torch.float64)
        weight.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([weight], settings.clip or math.inf)
        optimizer.step()
        names |= {"g": gradient, "k": step}
        for name, formula in updates_of(lines):
            names[name] = eval(formula, dict(names))  # noqa: S307 - a formula of ours
        assert torch.allclose(names["θ"], weight.detach(), rtol=1e-5)


@pytest.mark.parametrize("warmup", [0, 8])
@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "cosine"])
def test_the_printed_rate_is_that_of_training(schedule: str, warmup: int) -> None:
    lines = learning_of(
        f"learning.schedule={schedule}", f"learning.warmup={warmup}", "learning.rate=0.01"
    )
    settings = LearningSettings(rate=0.01, warmup=warmup, schedule=schedule)  # type: ignore[arg-type]
    for step in range(1, STEPS + 1):
        assert rate_of(lines, step) == pytest.approx(
            learning_rate(settings, step, total=STEPS), abs=1e-12
        )


def test_a_plateau_is_told() -> None:
    lines = learning_of(
        "learning.schedule=plateau", "learning.plateau_patience=2", "learning.rate=0.01"
    )
    said = "η_k = 0.01 0.5^n: plateau schedule; n rises by 1 after 3 validations in a row without improvement"
    assert said in lines


def test_clipping_is_told_with_its_limit() -> None:
    clipped = "g ← g · min(1, c / ‖g‖): gradient-norm clipping, with c = 1 and the norm of all gradients together"
    assert clipped in learning_of()
    unlimited = learning_of("learning.clip=null")
    assert "no gradient-norm clipping" in unlimited
    assert not any("min(1" in line for line in unlimited)


FORCING = (
    "teacher forcing: in training, step t is given the true y_{t-1}; in use, its own output ŷ_{t-1}"
)


def test_what_is_regularized_is_told() -> None:
    lines = learning_of(
        *("loss.smoothing=0.1", "data.source.word_dropout=0.2"),
        *("model.encoder.dropout=0.4", "model.decoder.embedding.dropout=0.5"),
    )
    assert [line for line in lines if "dropout" in line or "smoothing" in line] == [
        "label smoothing 0.1, as in the loss above",
        "dropout: 0.4 in encoder, 0.5 in decoder.embedding; in training each number is 0 with "
        "this probability p, "
        "else times 1 / (1 - p)",
        "word dropout: in training each token of the source is <unk> with probability 0.2",
    ]
    assert not any("dropout" in line or "smoothing" in line for line in learning_of())


def test_which_weights_are_kept_is_told() -> None:
    assert "the best by loss on the validation set is kept" in learning_of()
    averaged = learning_of("learning.average=3", "learning.patience=1")
    assert "the mean of the weights of the 3 best by loss on the validation set is kept" in averaged
    assert "stops after 1 validation without improvement" in averaged
    [folds] = [line for line in learning_of("learning.folds=5") if "folds" in line]
    told = "5 folds: as many models, each validated by loss on another part of the training set; "
    assert folds.startswith(told)


GENERATING = [
    "language_model/sample_gru",
    "translation/sample_attention",
    "pointing/sample_sorting",
]
LABELLING = ["document_classification/sample_attention", "image_classification/sample_plain"]


def test_teacher_forcing_is_told_where_there_are_steps() -> None:
    for name in GENERATING:
        assert FORCING in lines_of(explain(name), "learning")
    for name in LABELLING:
        assert not any("teacher" in line for line in lines_of(explain(name), "learning"))


def test_a_language_model_has_no_encoder() -> None:
    explanation = explain("language_model/sample_gru")
    encoder = lines_of(explanation, "model: encoder")
    assert encoder == ["h_T = z: no encoder, for there is no input; z is a learned vector"]
    learning = lines_of(explanation, "learning")
    assert not any("encoder" in line for line in learning)
    descent = "gradient descent with backpropagation through time, into the learned h_T: g is the gradient of L"
    assert descent in learning


def test_how_far_gradients_go_is_told() -> None:
    """Time only where something recurs; and not into what is frozen."""
    image = lines_of(explain("image_classification/sample_plain"), "learning")
    descent = "gradient descent with {}, {}: g is the gradient of L"
    assert descent.format("backpropagation", "all the way into the encoder") in image
    frozen = "but not into the encoder, whose weights are frozen"
    assert descent.format("backpropagation through time", frozen) in learning_of(
        "learning.freeze=encoder"
    )


def test_precision_and_accumulation_are_told() -> None:
    lines = learning_of("learning.precision=bf16", "learning.accumulate=2")
    assert "precision of the forward and backward pass: bf16; weights have 32 bits" in lines
    assert "batches of 64 examples, the gradients of 2 added up for a step" in lines


def test_the_rules_of_search_are_told() -> None:
    def searched(*overrides: str, recipe: str = RECIPE) -> list[str]:
        settings = [f"evaluation.search.{each}" for each in overrides]
        return lines_of(explain(recipe, [*FEW, *settings]), "evaluation")

    assert searched("max_length=7")[:2] == [
        "ŷ_t = argmax P(y_t | ŷ_1..ŷ_{t-1}, x), until <stop>, at most 7 tokens",
        "<unk> is never output",
    ]
    assert searched("kind=sample", "temperature=0.5", "top_k=3", "top_p=0.9", "unknown=allow")[
        0
    ] == (
        "ŷ_t ~ P(y_t | ŷ_1..ŷ_{t-1}, x)^(1/0.5), normalised, of the 3 most probable, of the "
        "fewest with 0.9 of the "
        "probability, until <stop>, at most 60 tokens"
    )
    beam = searched(
        "kind=beam", "unknown=replace", "min_length=2", "no_repeat_ngram=3", "coverage_penalty=0.2"
    )
    assert beam[:5] == [
        "beam of 5, ranked by log P / length^1, until <stop>, at most 60 tokens",
        "<unk> is replaced by the source word with the most attention",
        "no <stop> before 2 tokens",
        "no 3 tokens in a row twice",
        "+ 0.2 Σ_j log min(Σ_t α_jt, 1): coverage penalty of the beam",
    ]
    told = "beam of 5, ranked by log P / length^1, until <stop>"
    assert searched("kind=beam", recipe="pointing/sample_tours")[0] == told


def test_files_and_labels_that_are_not_here_are_told() -> None:
    data = lines_of(explain("translation/multi30k_attention"), "data")
    assert data[0] == "train: train.en.gz (en) and train.de.gz (de)"
    assumed = ", so sizes are assumed: each vocabulary is as large as the recipe allows, labels are as many as it says, or 2"
    assert data[-1].endswith(assumed)
    labels = lines_of(explain("sentence_pair/sick"), "data")
    assert "y, the label: one of 2" in labels
