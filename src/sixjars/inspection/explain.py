"""A recipe or a run told as six jars: equations with their letters, every parameter with its letter and shape."""

from dataclasses import asdict, dataclass
from typing import Any, final

from sixjars.flow import Chooser, Part
from sixjars.model.network import Network
from sixjars.recipe import Recipe


@final
@dataclass(frozen=True)
class Weight:
    """One parameter."""

    name: str
    letter: str
    shape: tuple[int, ...]
    count: int
    learned: bool


@final
@dataclass(frozen=True)
class Jar:
    """One of the six, as lines to read and weights to count."""

    name: str
    lines: tuple[str, ...]
    weights: tuple[Weight, ...] = ()


@final
@dataclass(frozen=True)
class Explanation:
    """All six."""

    title: str
    jars: tuple[Jar, ...]

    @property
    def count(self) -> int:
        """Numbers that are learned."""
        return sum(weight.count for jar in self.jars for weight in jar.weights if weight.learned)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return {"title": self.title, "parameters": self.count, "jars": [asdict(jar) for jar in self.jars]}


def explanation_of(recipe: Recipe, network: Network, *, title: str, data: list[str]) -> Explanation:
    """The six jars of a recipe and the network it makes; `title` and `data` are the task's words."""
    bridge, chooses = network.decoder.bridge, isinstance(network.decoder, Chooser)
    model = [
        _part("model: encoder", network.encoder, "encoder."),
        _part("model: bridge", bridge, "decoder.bridge."),
        _part("model: decoder", network.decoder, "decoder.", leave_out="bridge."),
    ]
    jars = [
        Jar("task", (title,)),
        Jar("data", tuple(data)),
        *model,
        Jar("loss", tuple(_loss(recipe, chooses=chooses))),
        Jar("learning", tuple(_learning(recipe))),
        Jar("evaluation", tuple(_evaluation(recipe, chooses=chooses))),
    ]
    return Explanation(recipe.task, tuple(jars))


def _part(name: str, part: Part, prefix: str, *, leave_out: str = "\0") -> Jar:
    learned = {name for name, _ in part.named_parameters()}
    weights = tuple(
        Weight(prefix + own, letter_of(part, own), tuple(tensor.shape), tensor.numel(), own in learned)
        for own, tensor in part.state_dict().items()
        if not own.startswith(leave_out)
    )
    return Jar(name, tuple(part.equations()), weights)


def letter_of(part: Part, name: str) -> str:
    """The lecture's letter for a parameter; a dash where the lecture has none."""
    return next((letter for ending, letter in part.letters.items() if ending in name), "–")


def _loss(recipe: Recipe, *, chooses: bool) -> list[str]:
    writes = "L = -Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), over the number of tokens"
    sets = "L = -Σ_c [c ∈ ℓ] log P(y_c | x) + [c ∉ ℓ] log(1 - P(y_c | x))"
    chosen = sets if _several(recipe) else "L = -log P(y = ℓ | x)"
    loss, lines = recipe.loss, [chosen if chooses else writes]
    if loss.smoothing:
        truth, others = ("ℓ", "labels") if chooses else ("ℓ_t", "vocabulary")
        lines.append(f"truth smoothed: {1 - loss.smoothing:g} at {truth}, {loss.smoothing:g} spread over the {others}")
    if loss.guide:
        lines.append(f"+ {loss.guide:g} L(α_true, α_pred), L = -Σ_j α_true_jt log α_pred_jt: guided attention")
    if loss.coverage:
        lines.append(f"+ {loss.coverage:g} Σ_t Σ_j min(α_jt, Σ_τ<t α_jτ): looking twice costs")
    return lines


def _several(recipe: Recipe) -> bool:
    return recipe.data.label is not None and recipe.data.label.several


def _learning(recipe: Recipe) -> list[str]:
    learning = recipe.learning
    size = f"{learning.batch_tokens} tokens" if learning.batch_tokens else f"{learning.batch_examples or 64} examples"
    lines = [
        "gradient descent with backpropagation through time, all the way into the encoder",
        f"{learning.optimizer}, rate {learning.rate:g}, {learning.schedule} schedule after {learning.warmup} updates",
        f"batches of {size}" + (f", {learning.accumulate} added up" if learning.accumulate > 1 else ""),
        f"at most {learning.epochs} epochs" + (f", {learning.steps} updates" if learning.steps else ""),
        f"the best by {learning.metric} is kept",
    ]
    if learning.patience:
        lines.append(f"stops after {learning.patience} validations without improvement")
    return lines


def _evaluation(recipe: Recipe, *, chooses: bool) -> list[str]:
    search = recipe.evaluation.search
    how = {
        "greedy": "ŷ_t = argmax P(y_t | ŷ_1..ŷ_{t-1}, x), until <stop>",
        "sample": f"ŷ_t drawn from P(y_t | ŷ_1..ŷ_{{t-1}}, x), temperature {search.temperature:g}",
        "beam": f"beam of {search.width}, ranked by log P / length^{search.length_penalty:g}",
    }
    expected = [f"expected: {name} {value:g}" for name, value in recipe.expect.items()]
    named = [f"metrics: {', '.join(recipe.evaluation.metrics)}"] if recipe.evaluation.metrics else []
    chosen = (
        "ŷ: all labels with P(y_c | x) ≥ 1/2, the most probable in any case"
        if _several(recipe)
        else "ŷ = argmax P(y | x)"
    )
    return [chosen if chooses else how[search.kind], *named, *expected]
