"""Pretrained vectors of a recipe: those of a file or of an installed package, or synthetic ones."""

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

    The field is a text with `vectors`; `where` is the embedding that they are for, as a recipe names it.
    """
    source: str = field.settings.vectors
    if source == "sample":
        return _synthetic(recipe, field, size)
    ids, values = _of_package(field) if source == NAME else _of_file(recipe, field, source)
    return ids, _fitting(values, field, size, where)


def _fitting(values: Vectors, field: Any, size: int, where: str) -> Vectors:
    """Vectors of as many numbers as the embedding has."""
    width = values.shape[1]
    if size == width:
        return values
    if size < width and field.settings.project_vectors:
        return projected(values, size)
    setting = f"data.{field.name}.project_vectors"
    smaller = (
        f", or {setting}: true to keep their first {size} principal components"
        if size < width
        else ""
    )
    raise DataError(
        f"{where}.size is {size}, but the vectors of data.{field.name}.vectors have {width} numbers; "
        f"say {where}.size: {width}{smaller}."
    )


def _synthetic(recipe: Recipe, field: Any, size: int) -> tuple[list[int], Vectors]:
    """Of the words of a synthetic corpus."""
    known = dict(vectors(recipe.task, size=size))
    words = {word: ids for word, ids in field.tokenizer.by_word().items() if word in known}
    if not words:
        raise DataError(
            "data: the synthetic vectors know none of these words; `vectors: sample` is for the source."
        )
    pairs = [(number, known[word]) for word, ids in words.items() for number in ids]
    return [number for number, _ in pairs], np.array(
        [vector for _, vector in pairs], dtype=np.float32
    )


def _of_file(recipe: Recipe, field: Any, file: str) -> tuple[list[int], Vectors]:
    """Of the words that a file has; where a word is two tokens, with a blank before it and without, both have it."""
    words = field.tokenizer.by_word()
    every = list(words)
    values, rows = read_vectors(
        recipe.data.path(file), {word: row for row, word in enumerate(every)}
    )
    pairs = [(number, at) for at, row in enumerate(rows) for number in words[every[row]]]
    return [number for number, _ in pairs], values[[at for _, at in pairs]]


def _of_package(field: Any) -> tuple[list[int], Vectors]:
    """Of all tokens that the package knows by their pieces."""
    every = range(len(SPECIAL), field.tokenizer.size)
    values, places = piece_vectors().of_tokens(field.tokenizer.tokens(every))
    if not places:
        raise DataError(
            f"data.{field.name}.vectors: {NAME} knows none of the {len(every)} tokens of the vocabulary."
        )
    return [every[place] for place in places], values
