"""Fine-tuning: training that starts from the weights and vocabularies of another run.

Old tokens and labels keep their numbers; new ones come after them. Their rows in the embeddings and
the output layer start as the mean of the old rows (Hewitt 2021,
https://nlp.stanford.edu/~johnhew/vocab-expansion.html): the logit of a new token is then the mean
of the old logits, so the most probable output stays what it was until the first update.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

from torch import Tensor

from sixjars.data.dataset import Fields
from sixjars.model.build import Network, nested
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.files import RecipeLike, flat, overridden, values_from
from sixjars.recipe.sections import Recipe
from sixjars.runs.folder.run_folder import RunFolder, noted, open_run
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.recipes import Blueprint, read_recipe, recipe_of
from sixjars.runs.training.resume import kept_recipe
from sixjars_runtime.errors import RecipeError, RunError

SAME: Final = ("kind", "tokens", "split", "lowercase", "segments", "multi_label", "dimensions")
"""Keys of a field that what was learned depends on."""
COUNTS: Final = ("vocabulary", "classes")
"""Facts of a field that may grow."""


@final
@dataclass(frozen=True)
class StartingRun:
    """The run that a training starts from; it is checked as `predict` checks it."""

    run: RunFolder
    predictor: Predictor

    @classmethod
    def of(cls, folder: Path, outside: AllowedCode) -> "StartingRun":
        """From a run's folder."""
        run = open_run(folder, outside)
        return cls(run, Predictor(run, device="cpu"))

    def note(self) -> dict[str, str]:
        """The origin of the weights, to be kept in the new run."""
        return {"run": str(self.run.folder), "weights": fingerprint(self.run.folder)}

    def taught(self, blueprint: Blueprint) -> Blueprint:
        """The blueprint with fields that know what those of the run learned."""
        return replace(blueprint, fields=self.run.restored(blueprint.fields))

    def hand_over(self, network: Network, blueprint: Blueprint, fields: Fields) -> str:
        """Put the run's weights into a new network, and say in a line what was taken and is new."""
        old, new = self.predictor.network.state_dict(), network.state_dict()
        trained = {name: weight.requires_grad for name, weight in network.named_parameters()}
        own_vectors = tuple(_with_vectors(blueprint, fields))
        frozen = []
        for name, tensor in new.items():
            before = old.get(name)
            if before is None or not _fits(before, tensor):
                raise RunError(self._unfit(name, before, tensor, fields))
            rows = len(before) if before.dim() else 0
            if name.endswith(network.encoder.counted):
                before = before.where(before != 0, tensor[:rows])
            if before.shape == tensor.shape:
                tensor.copy_(before)
                continue
            tensor[:rows] = before
            if name in trained and not name.startswith(own_vectors):
                tensor[rows:] = before.mean(0)
            frozen += [] if trained.get(name, True) else [name]
        count = sum(weight.numel() for weight in old.values())
        lines = [f"started from {self.run.folder}: {count:,} parameters"]
        for name, fact, was, now in self._counts(fields):
            lines.append(f"{fact} of {name}: {was} + {now - was} new")
        lines += [f"the new rows of {name} are frozen" for name in frozen]
        return "; ".join(lines) + "."

    def _counts(self, fields: Fields) -> Iterator[tuple[str, str, int, int]]:
        """The facts that may grow: field, fact, before and now."""
        before, now = self.predictor.fields.facts(), fields.facts()
        for name, facts in now.items():
            for fact in COUNTS:
                if fact in facts and fact in before.get(name, {}):
                    yield name, fact, before[name][fact], facts[fact]

    def _unfit(self, name: str, before: Tensor | None, now: Tensor, fields: Fields) -> str:
        """Why a parameter cannot be taken, with the settings that differ."""
        was = "nothing" if before is None else tuple(before.shape)
        was_set = self.run.recipe.data.fields
        old = flat({key: was_set[key].model_dump(mode="json") for key in was_set})
        new = flat({key: each.settings.model_dump(mode="json") for key, each in fields.all.items()})
        cause = []
        for key in old:
            if old[key] != new.get(key, old[key]) and not key.endswith(".column"):
                cause.append(f"data.{key} was {old[key]!r} and is {new[key]!r}")
        causes = f" ({'; '.join(cause[:3])})" if cause else ""
        return (
            f"the weights of {self.run.folder} do not fit: {name} is {was}, but should be "
            f"{tuple(now.shape)}{causes}. Give the fields the settings of that run."
        )


def _fits(before: Tensor, now: Tensor) -> bool:
    """Whether a tensor can be taken as it is, or with more rows."""
    if before.dtype != now.dtype or before.dim() != now.dim():
        return False
    has_more_rows = before.shape[1:] == now.shape[1:] and 0 < len(before) < len(now)
    return before.shape == now.shape or has_more_rows


def _with_vectors(blueprint: Blueprint, fields: Fields) -> Iterator[str]:
    """The beginnings of the names of embeddings whose new words have pretrained vectors."""
    for inner in nested(blueprint.plan):
        field = fields.all.get(inner.field)
        if field is not None and field.has_vectors:
            yield f"{inner.where.removeprefix('model.')}."


def fingerprint(folder: Path) -> str:
    """A number for the weights of a run."""
    try:
        with (folder / "model.safetensors").open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        untrained = "has no trained weights yet (model.safetensors); train it first."
        raise RunError(f"{folder} {untrained}") from None


def read_inheriting(
    recipe: RecipeLike,
    overrides: Sequence[str],
    base: RunFolder,
    outside: AllowedCode,
    *,
    check: bool,
) -> Recipe:
    """A recipe that takes what it leaves out of the model and of the fields of the data from a run.

    With `check`, what it does say must be what the run has; dropout aside.
    """
    plain, name = values_from(recipe)
    values = overridden(plain, overrides)
    faults = list(_differences(values, base)) if check else []
    if faults:
        raise RecipeError(faults, name)
    return recipe_of(inherited(values, base.recipe), name, outside)


def inherited(values: Mapping[str, Any], base: Recipe) -> dict[str, Any]:
    """The values of a recipe, over the task, the model and the fields of another."""
    fields = {name: settings.model_dump(mode="json") for name, settings in base.data.fields.items()}
    below = {"task": base.task, "model": base.model.model_dump(mode="json"), "data": fields}
    return _over(below, values)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**below}
    for key, value in above.items():
        inner = below.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            value = _over(inner, value)
        merged[key] = value
    return merged


def _differences(values: Mapping[str, Any], base: RunFolder) -> Iterator[str]:
    """The keys in which a recipe differs from the run that it starts from."""
    recipe = base.recipe
    if values.get("task", recipe.task) != recipe.task:
        is_for = f"{base.folder} is a model for {recipe.task}; start from another run."
        yield f"task is {values['task']!r}, but {is_for}"
        return
    was = {
        f"model.{key}": value for key, value in flat(recipe.model.model_dump(mode="json")).items()
    }
    for name, field in recipe.data.fields.items():
        settings = field.model_dump(mode="json")
        was |= {f"data.{name}.{key}": settings[key] for key in SAME if key in settings}
    for key, value in flat(values).items():
        if key in was and value != was[key] and not key.endswith(".dropout"):
            is_in = f"{was[key]!r} in {base.folder}; leave it out to take that."
            yield f"{key} is {value!r}, but {is_in}"


def recipe_and_origin(
    recipe: RecipeLike,
    overrides: Sequence[str],
    outside: AllowedCode,
    *,
    resumed: Path | None,
    from_run: str | Path | None,
) -> tuple[Recipe, Path | None]:
    """The recipe of a training that starts from a run or goes on with one, and that run, if any.

    A run that goes on has all that the recipe left out, and knows where it came from.
    """
    if resumed is None:
        assert from_run is not None
        base = open_run(from_run, outside)
        inherits = read_inheriting(recipe, overrides, base, outside, check=True)
        return inherits, Path(from_run)
    origin = noted(resumed, "from")
    if not isinstance(origin, dict):
        if from_run is not None:
            remedy = "leave out --from to go on with it."
            raise RunError(f"{resumed} was not begun from another run; {remedy}")
        try:
            return read_recipe(recipe, overrides, outside), None
        except RecipeError as error:
            *others, last = error.faults
            faults = [*others, f"{last} ({kept_recipe(resumed)}.)"]
            raise RecipeError(faults, values_from(recipe)[1]) from None
    began = Path(str(origin.get("run")))
    kept = open_run(resumed, outside)
    start = Path(from_run or began)
    # A run under way has weights of its own; those it began with may have changed since.
    goes_on = kept.is_under_way and start.resolve() == began.resolve()
    has_weights = (start / "model.safetensors").is_file()
    if not goes_on and has_weights and fingerprint(start) != origin.get("weights"):
        others_in = f"was begun from other weights than those in {start}"
        raise RunError(f"{resumed} {others_in}; begin a new run with another --out.")
    return read_inheriting(recipe, overrides, kept, outside, check=False), start
