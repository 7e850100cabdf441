"""The recipes that race against a starter recipe: a few changes that suit its kind of data."""

from typing import Any, Final

from sixjars.model.bridges import BRIDGES
from sixjars.recipe.files import flat
from sixjars.recipe.sections import Recipe
from sixjars.tasks import Task

STARTER: Final = "starter"
SIZES: Final = {"size", "embedding", "attention"}
"""Keys of a component that are sizes, where they are integers."""
SMALLEST: Final = 16
"""Below this, half of a size is no longer a model to try."""
STRONG: Final = 0.5
"""Dropout that suits few rows; where a recipe has little, a middling one is tried first."""
MIDDLING, WEAK = 0.3, 0.2


def candidates(task: Task, recipe: Recipe) -> dict[str, dict[str, Any]]:
    """The candidates by name: values of keys that replace those of the starter recipe.

    The first is the starter recipe itself. Whatever no recipe takes is left out by the race.

    >>> from sixjars import read_recipe
    >>> from sixjars.tasks import TASKS
    >>> list(candidates(TASKS["translation"], read_recipe("translation/sample_attention")))
    ['starter', 'half the size', 'twice the size', 'bridge initial', 'bridge every_step']
    """
    if "ngrams" in recipe.model.encoder:
        return {STARTER: {}, **_beside_a_bag(recipe), **_dropout(recipe)}
    changes = _sizes(task, recipe) | _dropout(recipe) | _bridges(task, recipe)
    return {STARTER: {}, **changes}


def _beside_a_bag(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """A recurrent encoder in place of word vectors alone, and the evidence of n-grams alone."""
    encoder = recipe.model.encoder
    embedding, ngrams = encoder["embedding"], encoder["ngrams"]
    size = embedding["size"] // 4
    deep = {"size": size, "direction": "both", "dropout": MIDDLING, "embedding": embedding}
    wide_deep = {"kind": "wide_deep", "deep": deep, "ngrams": ngrams}
    # Its summary has the last state of both directions besides the evidence, and attention pools
    # the same again.
    with_states = {
        "model.encoder": wide_deep,
        "model.bridge.scale": 1.0,
        "model.decoder.size": 4 * size + ngrams["size"],
        "learning.freeze": [],
    }
    bridge = {"kind": "initial", "start": "copy"}
    alone = {
        "model.encoder.standardize": False,
        "model.bridge": bridge,
        "model.decoder.size": ngrams["size"],
        "learning.freeze": [],
    }
    return {"a recurrent encoder beside it": with_states, "words and pairs alone": alone}


def _model(recipe: Recipe) -> dict[str, Any]:
    """The keys of the model, without those of a pretrained network."""
    values = flat({"model": recipe.model.model_dump(mode="json")})
    return {key: value for key, value in values.items() if "backbone" not in key.split(".")}


def _sizes(task: Task, recipe: Recipe) -> dict[str, dict[str, Any]]:
    """Half and twice all sizes, but for embeddings that have the size of pretrained vectors."""
    fields = recipe.data.fields.items()
    with_vectors = [name for name, field in fields if getattr(field, "vectors", None)]
    fixed = {"decoder" if name == task.output.name else "encoder" for name in with_vectors}
    sizes = {}
    for key, value in _model(recipe).items():
        _, role, *parts = key.split(".")
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        is_size = is_integer and key.rpartition(".")[2] in SIZES
        if is_size and not (role in fixed and "embedding" in parts):
            sizes[key] = value
    if not sizes:
        return {}
    larger = {"twice the size": {key: 2 * value for key, value in sizes.items()}}
    if min(sizes.values()) < 2 * SMALLEST:
        return larger
    return {"half the size": {key: value // 2 for key, value in sizes.items()}} | larger


def _dropout(recipe: Recipe) -> dict[str, dict[str, Any]]:
    """More dropout than the recipe has, or less where it has much."""
    values = _model(recipe).items()
    rates = {key: value for key, value in values if key.endswith(".dropout") and value}
    if not rates:
        return {}
    most = max(rates.values())
    more = STRONG if most >= MIDDLING else MIDDLING
    other = WEAK if most >= STRONG else more
    return {f"dropout {other:g}": dict.fromkeys(rates, other)}


def _bridges(task: Task, recipe: Recipe) -> dict[str, dict[str, Any]]:
    """The other bridges of a task; a conditional decoder needs attention that follows it."""
    changes: dict[str, dict[str, Any]] = {}
    for kind in task.bridges:
        if kind == recipe.model.bridge["kind"]:
            continue
        change: dict[str, Any] = {"model.bridge": {"kind": kind}}
        changes[f"bridge {kind}"] = change
        if recipe.model.decoder.get("conditional") and not BRIDGES[kind].follows_state:
            change["model.decoder.conditional"] = False
    return changes
