"""The six sections of a recipe or a run: equations, and each parameter's letter and shape."""

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, final

from sixjars.flow.contracts import Component, Generator
from sixjars.model.build import Network
from sixjars.recipe.data import are_learned
from sixjars.recipe.sections import Recipe, SearchSettings
from sixjars.runs.explanation.learning_equations import learning_lines


@final
@dataclass(frozen=True)
class ExplainedWeight:
    """One parameter."""

    name: str
    letter: str
    shape: tuple[int, ...]
    count: int
    trainable: bool


@final
@dataclass(frozen=True)
class ExplainedSection:
    """One of the six, as lines to read and weights to count."""

    name: str
    lines: tuple[str, ...]
    weights: tuple[ExplainedWeight, ...] = ()


@final
@dataclass(frozen=True)
class Explanation:
    """The six sections; the model in three of its own.

    >>> weight = ExplainedWeight("decoder.output.bias", "b_out", (9,), 9, trainable=True)
    >>> Explanation("translation", (ExplainedSection("model: decoder", (), (weight,)),)).count
    9
    """

    title: str
    sections: tuple[ExplainedSection, ...]

    @property
    def count(self) -> int:
        """Trainable parameters."""
        return sum(weight.count for weight in self._weights if weight.trainable)

    @property
    def frozen(self) -> int:
        """Parameters that training leaves as they are."""
        return sum(weight.count for weight in self._weights if not weight.trainable)

    @property
    def _weights(self) -> list[ExplainedWeight]:
        return [weight for section in self.sections for weight in section.weights]

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        sections = [asdict(section) for section in self.sections]
        counts = {"trainable_parameters": self.count, "frozen_parameters": self.frozen}
        return {"title": self.title, **counts, "sections": sections}


def explanation_of(
    recipe: Recipe, network: Network, *, title: str, data: list[str], letters: str = "x"
) -> Explanation:
    """The sections of a recipe and its network; `letters` are those of the inputs."""
    decoder = network.decoder
    sections = [
        ExplainedSection("task", (title,)),
        ExplainedSection("data", tuple(data)),
        _component("model: encoder", network.encoder, "encoder."),
        _component("model: bridge", decoder.bridge, "decoder.bridge."),
        _component("model: decoder", decoder, "decoder.", leave_out="bridge."),
        ExplainedSection("loss", tuple(_loss(recipe, network))),
        ExplainedSection("learning", tuple(learning_lines(recipe, network))),
        ExplainedSection("evaluation", tuple(_evaluation(recipe, network))),
    ]
    return Explanation(recipe.task, tuple(_conditioned(section, letters) for section in sections))


def _conditioned(section: ExplainedSection, letters: str) -> ExplainedSection:
    """The lines of a section with the letters of the inputs; without an input, unconditioned."""
    condition = rf"\g<1>{letters})" if letters else ")"
    lines = tuple(re.sub(r"(, | \| )x\)", condition, line) for line in section.lines)
    return ExplainedSection(section.name, lines, section.weights)


def _component(
    name: str, component: Component, prefix: str, *, leave_out: str = "\0"
) -> ExplainedSection:
    trainable = {name for name, weight in component.named_parameters() if weight.requires_grad}
    weights = []
    for key, tensor in component.state_dict().items():
        if not key.startswith(leave_out):
            shape, letter = tuple(tensor.shape), component.letter(key)
            weights.append(
                ExplainedWeight(prefix + key, letter, shape, tensor.numel(), key in trainable)
            )
    return ExplainedSection(name, tuple(component.equations()), tuple(weights))


def _loss(recipe: Recipe, network: Network) -> list[str]:
    loss = recipe.loss
    lines = [network.decoder.loss_equation()]
    if loss.smoothing:
        truth, others = ("ℓ_t", "vocabulary") if network.decoder.searches else ("ℓ", "labels")
        spread = f"{1 - loss.smoothing:g} at {truth}, {loss.smoothing:g} over all {others}"
        lines.append(f"label smoothing: the truth is {spread}")
    if loss.class_weights == "balanced":
        counts = "with N examples, C labels and n_ℓ examples of label ℓ"
        lines.append(f"class weights: each times N / (C n_ℓ), {counts}")
    elif loss.class_weights:
        pairs = loss.class_weights.items()
        weights = ", ".join(f"{weight:g} for {label}" for label, weight in pairs)
        lines.append(f"class weights: each times {weights}, 1 for others")
    if loss.guide:
        what = "is the true attention"
        if are_learned(recipe.data.alignment):
            what = "has the links that are learned (data.alignment)"
        lines.append(f"- {loss.guide:g} Σ_t Σ_j α*_jt log α_jt: guided attention, where α* {what}")
    if loss.coverage:
        lines.append(f"+ {loss.coverage:g} Σ_t Σ_j min(α_jt, Σ_{{τ<t}} α_jτ): coverage")
    return lines


def _evaluation(recipe: Recipe, network: Network) -> list[str]:
    expected = [f"expected: {name} {value:g}" for name, value in recipe.expect.items()]
    metrics = recipe.evaluation.metrics
    named = [f"metrics: {', '.join(metrics)}"] if metrics else []
    answer = network.decoder.answer_equation()
    search = [answer] if answer else _search(recipe.evaluation.search, network)
    return [*search, *named, *expected]


def _search(search: SearchSettings, network: Network) -> list[str]:
    # A pointer ends when its positions do, and has no <unk>.
    decoder = network.decoder
    in_tokens = isinstance(decoder, Generator) and decoder.special.unknown is not None
    end = f"until <stop>, at most {search.max_length} tokens" if in_tokens else "until <stop>"
    chance = "P(y_t | ŷ_1..ŷ_{t-1}, x)"
    first = {
        "greedy": f"ŷ_t = argmax {chance}, {end}",
        "sample": f"ŷ_t ~ {chance}{_tempered(search)}, {end}",
        "beam": f"beam of {search.width}, "
        f"ranked by log P / length^{search.length_penalty:g}, {end}",
    }[search.kind]
    return [first, *_rules(search, in_tokens=in_tokens)]


def _tempered(search: SearchSettings) -> str:
    """The change of the distribution before a sample is drawn."""
    top_k = f", of the {search.top_k} most probable" if search.top_k else ""
    top_p = f", of the fewest with {search.top_p:g} of the probability" if search.top_p < 1 else ""
    sharper = "" if search.temperature == 1 else f"^(1/{search.temperature:g}), normalised"
    return sharper + top_k + top_p


def _rules(search: SearchSettings, *, in_tokens: bool) -> Iterator[str]:
    """The tokens that search excludes or ranks lower."""
    if in_tokens and search.unknown == "ban":
        yield "<unk> is never output"
    if in_tokens and search.unknown == "replace":
        yield "<unk> is replaced by the source word with the most attention"
    if search.min_length:
        yield f"no <stop> before {search.min_length} tokens"
    if search.no_repeat_ngram:
        yield f"no {search.no_repeat_ngram} tokens in a row twice"
    if search.coverage_penalty and search.kind == "beam":
        penalty = f"{search.coverage_penalty:g} Σ_j log min(Σ_t α_jt, 1)"
        yield f"+ {penalty}: coverage penalty of the beam"
