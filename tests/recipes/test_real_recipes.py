"""Every recipe on real data runs on a stand-in for it, and is explained where there is none."""

from pathlib import Path
from typing import Any

import pytest

import sixjars
from sixjars.recipe.files import packaged
from sixjars.runs.explanation.explain import explain
from sixjars.runs.recipes import read_recipe

from .stand_ins import TEXTUAL, VISUAL, stand_in
from .using import SECTIONS, check_use

REAL = [name for name in packaged() if "/sample" not in name]


def has_vectors(name: str) -> bool:
    """Whether the recipe starts from pretrained vectors of words."""
    fields = read_recipe(name).data.fields.values()
    return any(getattr(field, "vectors", None) for field in fields)


def smaller(name: str) -> list[str]:
    """What makes a run quick: small words, few pixels."""
    recipe = read_recipe(name)
    media = [key for key in recipe.data.fields if key in ("image", "video")]
    if media:
        frames = [f"data.{key}.frames=3" for key in media if key == "video"]
        return [f"data.{key}.size=64" for key in media] + frames
    if has_vectors(name):  # whose size is that of the embeddings
        return ["model.encoder.ngrams.buckets=64"] if "ngrams" in recipe.model.encoder else []
    for inside in ("words", "sentence"):
        if inside in recipe.model.encoder:
            return [f"model.encoder.{inside}.embedding.size=16"]
    flat = recipe.model.decoder["kind"] == "label"  # its state is a copy of both directions
    small = ["model.encoder.size=16", f"model.decoder.size={32 if flat else 16}"]
    return (
        [*small, "model.decoder.embedding.size=16"] if recipe.model.decoder.get("tied") else small
    )


def test_every_stand_in_is_needed() -> None:
    folders = {Path(read_recipe(name).data.folder).name for name in REAL}
    assert folders == {*VISUAL, *TEXTUAL, "multi30k", "dakshina"}


def params() -> list[Any]:
    """All recipes; later ones of the same data are left to `make test-all`."""
    first = {(name.split("/")[1].split("_")[0], has_vectors(name)): name for name in reversed(REAL)}
    return [
        pytest.param(name, marks=() if name in first.values() else pytest.mark.slow)
        for name in REAL
    ]


@pytest.mark.parametrize("name", params())
def test_it_runs_on_a_stand_in_for_its_data(name: str, tmp_path: Path) -> None:
    """The files that the recipe names, with a few synthetic rows in the right columns.

    Rows that belong to no split of the recipe name images that are nowhere; they are not even
    looked for.
    """
    recipe = read_recipe(name)
    stand_in(recipe, tmp_path / "data")
    few = [
        f"data.folder={tmp_path / 'data'}",
        "learning.steps=2",
        "evaluation.search.max_length=6",
        *smaller(name),
    ]
    trained = sixjars.train(name, few, out=tmp_path / "run")
    assert {score.name for score in trained.scores} >= {*recipe.expect, *recipe.evaluation.metrics}
    assert trained.skipped == (20 if "reuters" in name else 0)
    assert (recipe.data.split is None) or " set of " in trained.where
    check_use(trained, tmp_path)


@pytest.mark.parametrize("name", REAL)
def test_it_is_explained_without_its_data(name: str) -> None:
    told = explain(name)
    assert [section.name for section in told.sections] == SECTIONS
    assert any(
        "the data is not here" in line for section in told.sections for line in section.lines
    )
    assert told.count > 10_000
