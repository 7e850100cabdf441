"""The six sections of a recipe or a run: words, equations, and each parameter's letter and shape."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeGuard, final

from sixjars.data.dataset import Fields
from sixjars.flow.contracts import Component, Generator
from sixjars.learning.parameters import freeze_named
from sixjars.model.build import Network, build, freeze_unused
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.data import are_learned
from sixjars.recipe.files import RecipeLike, find, packaged
from sixjars.recipe.sections import DataSettings, Recipe, SearchSettings
from sixjars.runs.data.splits import raw_examples
from sixjars.runs.explanation.learning_equations import learning_lines
from sixjars.runs.folder.archive import is_packed
from sixjars.runs.folder.run_folder import has_run, open_run
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars.runs.training.network import blank_batch
from sixjars.tasks import TASKS
from sixjars_runtime.errors import DataError, RecipeError, hint, shown


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


def explain(
    what: RecipeLike,
    overrides: Sequence[str] = (),
    *,
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Explanation:
    """The six sections of a recipe (file, name or dict), with overrides, or of a run's folder.

    Missing data is not needed.

    >>> import sixjars
    >>> print(sixjars.explain("translation/sample_initial").sections[3].lines[0])
    s_0 = tanh(W_0 h_T + b_0)
    """
    outside = AllowedCode(tuple(allow), tuple(components))
    if is_run(what):
        if overrides:
            fault = "a run is explained as it is; only a recipe takes KEY=VALUE."
            raise RecipeError([fault], "the command line")
        run = open_run(Path(os.fspath(what)), outside)
        blueprint = Blueprint.of(run.recipe, outside)
        note = ""
        fields = run.restored(blueprint.fields)
        run.check_sizes(blueprint, fields)
    else:
        blueprint = Blueprint.of(recipe_or_run(what, overrides, outside), outside)
        fields, note = _learned(blueprint)
    recipe, task = blueprint.recipe, TASKS[blueprint.recipe.task]
    network = build(blueprint.plan, fields.facts(), fresh=False)
    freeze_unused(network, blank_batch(fields))
    freeze_named(network, recipe.learning.freeze)
    letters = ", ".join(slot.letter for slot in task.inputs)
    title = f"{task.number} {task.name}: {task.title}"
    data = _data(recipe, fields, note)
    return explanation_of(recipe, network, title=title, data=data, letters=letters)


def is_run(what: RecipeLike) -> TypeGuard[str | os.PathLike[str]]:
    """Whether this names a run, by its folder or the one file of a packed run; else a recipe."""
    return isinstance(what, str | os.PathLike) and (Path(what).is_dir() or is_packed(Path(what)))


def recipe_or_run(what: RecipeLike, overrides: Sequence[str], outside: AllowedCode) -> Recipe:
    """A recipe, where a run might be named too; for a name that is neither, the nearest one."""
    if isinstance(what, str | os.PathLike) and what and Path(what).suffix not in {".yaml", ".yml"}:
        name = os.fspath(what)
        try:
            find(name)
        except DataError:
            near = _near(Path(name)) or hint(name, list(packaged()))
            near = near or " `sixjars tasks` lists the recipes."
            raise DataError(f"there is neither a run nor a recipe {shown(name)}.{near}") from None
    return read_recipe(what, overrides, outside)


def _near(wrong: Path) -> str:
    """A sentence with the run that a wrong name probably means, among those in its folder."""
    places = sorted(wrong.parent.glob("*"))
    beside = {path.name: path for path in places if has_run(path) or is_packed(path)}
    near = get_close_matches(wrong.name, beside, n=1, cutoff=0.7)
    return f" Did you mean {str(beside[near[0]])!r}?" if near else ""


def _learned(blueprint: Blueprint) -> tuple[Fields, str]:
    """The fields with what the data teaches; without data, with as much as the recipe allows."""
    fields = blueprint.fields
    if not any(field.learns for field in fields.all.values()):
        return fields, ""
    try:
        return fields.learned(raw_examples(blueprint.recipe, fields)["train"]), ""
    except DataError as error:
        sizes = "each vocabulary is as large as the recipe allows, labels are as many as it says"
        note = f"the data is not here ({error}), so sizes are assumed: {sizes}, or 2"
        return fields.mapped(lambda field: field.assumed()), note


def _data(recipe: Recipe, fields: Fields, note: str) -> list[str]:
    sample = recipe.data.sample
    task = TASKS[recipe.task]
    if sample:
        counts = f"{sample.size} training, {sample.valid} validation and {sample.test} test"
        lines = [f"synthetic: {counts} examples"]
    else:
        lines = [f"train: {_named(recipe.data)}"]
    for slot in task.slots:
        lines.append(f"{slot.letter}, the {slot.name}: {fields.all[slot.name].describe()}")
    if are_learned(recipe.data.alignment):
        links = "links between words that are learned from the training set; they may be wrong"
        lines.append(f"alignment: {links}")
    return [*lines, note] if note else lines


def _named(data: DataSettings) -> str:
    """The training files, with weights other than 1; of parallel files also their columns."""
    named = []
    for part in data.training_files:
        columns = part.file if isinstance(part.file, Mapping) else {}
        apart = " and ".join(f"{name} ({column})" for column, name in columns.items())
        weight = "" if part.weight == 1 else f" × {part.weight:g}"
        named.append((apart or str(part.file)) + weight)
    return ", ".join(named)


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
