"""Pretrained word vectors of a recipe: those of a file, or synthetic ones."""

import numpy as np
from numpy.typing import NDArray

from sixjars.data.text.vectors import read_vectors
from sixjars.errors import DataError
from sixjars.recipe.sections import Recipe
from sixjars.samples import vectors


def word_vectors(recipe: Recipe, file: str, words: list[str], *, size: int) -> tuple[NDArray[np.float32], list[str]]:
    """The vectors of those words that have one, and these words; `file` is `sample` for synthetic ones of this size."""
    if file == "sample":
        made = dict(vectors(recipe.task, size=size))
        known = [word for word in words if word in made]
        if not known:
            raise DataError(
                "data: the synthetic vectors know none of these words; `vectors: sample` is for the source."
            )
        return np.array([made[word] for word in known], dtype=np.float32), known
    values, rows = read_vectors(recipe.data.path(file), {word: row for row, word in enumerate(words)})
    return values, [words[row] for row in rows]
