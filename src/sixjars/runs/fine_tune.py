"""Fine-tuning: training that starts from the weights and vocabularies of another run.

Old tokens and labels keep their numbers; new ones come after them. Their rows in the embeddings and the output layer
start as the mean of the old rows (Hewitt 2021, https://nlp.stanford.edu/~johnhew/vocab-expansion.html): the logit of a
new token is then the mean of the old logits, so the most probable output stays what it was until the first update.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, final

from torch import Tensor

from sixjars.data.dataset import Fields
from sixjars.model.build import Network, nested
from sixjars.recipe.files import RecipeLike, flat, overridden, values_from
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import Recipe
from sixjars.runs.data import Blueprint
from sixjars.runs.extension import kept_recipe
from sixjars.runs.folder import RunFolder, noted, open_run
from sixjars.runs.predict import Predictor
from sixjars.runs.recipes import read_recipe, recipe_of
from sixjars_runtime.errors import RecipeError, RunError

SAME: Final = ("kind", "tokens", "split", "lowercase", "segments", "multi_label", "dimensions")
"""Keys of a field that what was learned depends on."""
COUNTS: Final = ("vocabulary", "classes")
"""Facts of a field that may grow."""


@final
@dataclass(frozen=True)
class Origin:
    """The run that a training starts from; it is checked as `predict` checks it."""

    run: RunFolder
    predictor: Predictor

    @classmethod
    def of(cls, folder: Path, outside: Outside) -> "Origin":
        """From a run's folder."""
        run = open_run(folder, outside)
        return cls(run, Predictor(run, device="cpu"))

    def note(self) -> dict[str, str]:
        """Where the weights come from, to be kept in the new run."""
        return {"run": str(self.run.folder), "weights": fingerprint(self.run.folder)}

    def taught(self, blueprint: Blueprint) -> Blueprint:
        """The same with fields that know what those of the run learned."""
        return replace(blueprint, fields=self.run.restored(blueprint.fields))

    def hand_over(self, network: Network, blueprint: Blueprint, fields: Fields) -> str:
        """Put the weights of the run into a new network; one line about what was taken and what is new."""
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
        counts = [
            f"{fact} of {name}: {was} + {now - was} new"
            for name, fact, was, now in self._counts(fields)
        ]
        lines = [
            f"started from {self.run.folder}: {sum(one.numel() for one in old.values()):,} parameters",
            *counts,
        ]
        lines += [f"the new rows of {name} are frozen" for name in frozen]
        return "; ".join(lines) + "."

    def _counts(self, fields: Fields) -> Iterator[tuple[str, str, int, int]]:
        """What may grow: field, fact, before and now."""
        before, now = self.predictor.fields.facts(), fields.facts()
        for name, facts in now.items():
            for fact in COUNTS:
                if fact in facts and fact in before.get(name, {}):
                    yield name, fact, before[name][fact], facts[fact]

    def _unfit(self, name: str, before: Tensor | None, now: Tensor, fields: Fields) -> str:
        """Why a parameter cannot be taken, with the settings that differ."""
        was = "nothing" if before is None else tuple(before.shape)
        old = flat(
            {key: one.model_dump(mode="json") for key, one in self.run.recipe.data.fields.items()}
        )
        new = flat(
            {key: field.settings.model_dump(mode="json") for key, field in fields.all.items()}
        )
        differ = [
            key for key in old if old[key] != new.get(key, old[key]) and not key.endswith(".column")
        ]
        cause = [f"data.{key} was {old[key]!r} and is {new[key]!r}" for key in differ]
        return (
            f"the weights of {self.run.folder} do not fit: {name} is {was}, but should be {tuple(now.shape)}"
            f"{' (' + '; '.join(cause[:3]) + ')' if cause else ''}. Give the fields the settings of that run."
        )


def _fits(before: Tensor, now: Tensor) -> bool:
    """Whether a tensor can be taken as it is, or with more rows."""
    if before.dtype != now.dtype or before.dim() != now.dim():
        return False
    return before.shape == now.shape or (
        before.shape[1:] == now.shape[1:] and 0 < len(before) < len(now)
    )


def _with_vectors(blueprint: Blueprint, fields: Fields) -> Iterator[str]:
    """How the names of embeddings begin whose new words have pretrained vectors."""
    for inner in nested(blueprint.plan):
        field = fields.all.get(inner.field)
        if field is not None and getattr(field.settings, "vectors", None) is not None:
            yield f"{inner.where.removeprefix('model.')}."


def fingerprint(folder: Path) -> str:
    """Of the weights of a run."""
    try:
        with (folder / "model.safetensors").open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise RunError(
            f"{folder} has no trained weights yet (model.safetensors); train it first."
        ) from None


def read_inheriting(
    recipe: RecipeLike, overrides: Sequence[str], base: RunFolder, outside: Outside, *, check: bool
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
    """Nested values, one over the other."""
    both = {
        key: _over(below[key], value)
        if isinstance(below.get(key), Mapping) and isinstance(value, Mapping)
        else value
        for key, value in above.items()
    }
    return {**below, **both}


def _differences(values: Mapping[str, Any], base: RunFolder) -> Iterator[str]:
    """What a recipe says against the run that it starts from."""
    recipe = base.recipe
    if values.get("task", recipe.task) != recipe.task:
        yield f"task is {values['task']!r}, but {base.folder} is a model for {recipe.task}; start from another run."
        return
    was = {
        f"model.{key}": value for key, value in flat(recipe.model.model_dump(mode="json")).items()
    }
    fields = {
        f"data.{name}": one.model_dump(mode="json") for name, one in recipe.data.fields.items()
    }
    was |= {f"{name}.{key}": one[key] for name, one in fields.items() for key in SAME if key in one}
    for key, value in flat(values).items():
        if key in was and value != was[key] and not key.endswith(".dropout"):
            yield f"{key} is {value!r}, but {was[key]!r} in {base.folder}; leave it out to take that."


def recipe_and_origin(
    recipe: RecipeLike,
    overrides: Sequence[str],
    outside: Outside,
    *,
    resumed: Path | None,
    from_run: str | Path | None,
) -> tuple[Recipe, Path | None]:
    """The recipe of a training that starts from a run, or goes on with one; and where it started from, if anywhere.

    A run that goes on has all that the recipe left out, and knows where it came from.
    """
    if resumed is None:
        assert from_run is not None
        return read_inheriting(
            recipe, overrides, open_run(from_run, outside), outside, check=True
        ), Path(from_run)
    origin = noted(resumed, "from")
    if not isinstance(origin, dict):
        if from_run is not None:
            raise RunError(
                f"{resumed} was not begun from another run; leave out --from to go on with it."
            )
        try:
            return read_recipe(recipe, overrides, outside), None
        except RecipeError as error:
            *others, last = error.faults
            raise RecipeError(
                [*others, f"{last} ({kept_recipe(resumed)}.)"], values_from(recipe)[1]
            ) from None
    began, kept = Path(str(origin.get("run"))), open_run(resumed, outside)
    found = Path(from_run or began)
    goes_on = (
        kept.is_under_way and found.resolve() == began.resolve()
    )  # it has its own weights; those may have changed
    if (
        not goes_on
        and (found / "model.safetensors").is_file()
        and fingerprint(found) != origin.get("weights")
    ):
        raise RunError(
            f"{resumed} was begun from other weights than those in {found}; begin a new run with another --out."
        )
    return read_inheriting(recipe, overrides, kept, outside, check=False), found
