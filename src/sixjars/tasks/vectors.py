"""Pretrained word vectors for the vocabularies of a recipe."""

from collections.abc import Mapping

import numpy as np
import torch

from sixjars.data.cuts import Kept
from sixjars.data.samples import vectors as sample_vectors
from sixjars.data.text import Tokens
from sixjars.data.vectors import read_vectors
from sixjars.errors import DataError
from sixjars.recipe import Recipe
from sixjars.recipe.fields import TextSettings
from sixjars.tasks.fields import written_fields
from sixjars.tasks.misfits import embedding_of


def vectors_of(recipe: Recipe, tokens: Mapping[str, Kept]) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Pretrained vectors of the words that a recipe's vocabularies know."""
    found = {}
    for name, settings in written_fields(recipe).items():
        kept = tokens[name]
        if isinstance(settings, TextSettings) and isinstance(kept, Tokens) and settings.vectors is not None:
            words = kept.by_word()
            values, known = _vectors(recipe, settings.vectors, list(words), size=_embedding_size(recipe, name))
            rows = [(row, at) for at, word in enumerate(known) for row in words[word]]
            picked = values[[at for _, at in rows]]
            found[name] = (torch.tensor([row for row, _ in rows]), torch.from_numpy(picked))
    return found


def _embedding_size(recipe: Recipe, field: str) -> int:
    """Of the part that embeds a field."""
    size: int = embedding_of(recipe.model, field)[1]["size"]
    return size


def _vectors(recipe: Recipe, file: str, words: list[str], *, size: int) -> tuple[np.ndarray, list[str]]:
    if file == "sample":
        made = dict(sample_vectors(recipe.task, size=size))
        known = [word for word in words if word in made]
        if not known:
            raise DataError("data: the made-up vectors know none of these words; `vectors: sample` is for the source.")
        return np.array([made[word] for word in known], dtype=np.float32), known
    values, rows = read_vectors(recipe.data.path(file), {word: row for row, word in enumerate(words)}, None)
    return values, [words[row] for row in rows]
