"""Pretrained vectors of a recipe: from a file or an installed package, or synthetic ones."""

from typing import Any

import numpy as np

from sixjars.data.text.vectors import Vectors, projected, read_vectors
from sixjars.data.text.wordllama import NAME, piece_vectors
from sixjars.recipe.sections import Recipe
from sixjars.samples import vectors
from sixjars_runtime.errors import DataError
from sixjars_runtime.special_tokens import SPECIAL


def token_vectors(
    recipe: Recipe, field: Any, *, size: int, where: str
) -> tuple[list[int], Vectors]:
    """The ids of a vocabulary that have a pretrained vector, and these vectors, of `size` numbers.

    The field is a text with `vectors`; `where` is the embedding that they are for, as a recipe
    names it.
    """
    source: str = field.settings.vectors
    if source == "sample":
        return _synthetic(recipe, field, size)
    ids, values = _of_package(field) if source == NAME else _of_file(recipe, field, source)
    return ids, _fitting(values, field, size, where)


def _fitting(values: Vectors, field: Any, size: int, where: str) -> Vectors:
    width = values.shape[1]
    if size == width:
        return values
    if size < width and field.settings.project_vectors:
        return projected(values, size)
    setting = f"data.{field.name}.project_vectors"
    smaller = f", or {setting}: true to keep their first {size} principal components"
    raise DataError(
        f"{where}.size is {size}, but the vectors of data.{field.name}.vectors have {width} "
        f"numbers; say {where}.size: {width}{smaller if size < width else ''}."
    )


def _synthetic(recipe: Recipe, field: Any, size: int) -> tuple[list[int], Vectors]:
    known = dict(vectors(recipe.task, size=size))
    words = {word: ids for word, ids in field.tokenizer.by_word().items() if word in known}
    if not words:
        lack = (
            "the synthetic vectors know none of these words; `vectors: sample` is for the source."
        )
        raise DataError(f"data: {lack}")
    pairs = [(number, known[word]) for word, ids in words.items() for number in ids]
    values = np.array([vector for _, vector in pairs], dtype=np.float32)
    return [number for number, _ in pairs], values


def _of_file(recipe: Recipe, field: Any, file: str) -> tuple[list[int], Vectors]:
    """The vectors of a file; a word that is two tokens, with and without a blank, has both."""
    words = field.tokenizer.by_word()
    every = list(words)
    numbers = {word: row for row, word in enumerate(every)}
    values, rows = read_vectors(recipe.data.path(file), numbers)
    pairs = [(number, at) for at, row in enumerate(rows) for number in words[every[row]]]
    return [number for number, _ in pairs], values[[at for _, at in pairs]]


def _of_package(field: Any) -> tuple[list[int], Vectors]:
    """The vectors of all tokens that the package knows by their pieces."""
    every = range(len(SPECIAL), field.tokenizer.size)
    values, places = piece_vectors().of_tokens(field.tokenizer.tokens(every))
    if not places:
        lack = f"{NAME} knows none of the {len(every)} tokens of the vocabulary."
        raise DataError(f"data.{field.name}.vectors: {lack}")

    return [every[place] for place in places], values
