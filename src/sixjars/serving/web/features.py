"""Features of a model, by which sections of the script are left out that it does not need.

A feature is the value of a setting, such as `cell/lstm`; a setting that is true, such as `copying`;
the kind of an input or of the output, such as `input/text`; or what several of these mean together.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sixjars.recipe.sections import Recipe
from sixjars.tasks import TASKS

MARKED_WORDS = "words/marks"
"""A feature that the recipe does not tell: words are spelled as in older versions."""


def features(
    recipe: Recipe, *, searches: bool, attends: bool, marked: bool = False
) -> frozenset[str]:
    """Those of a model that searches for its outputs, or attends to its input, or both.

    `marked` says whether one of its tokenizers is of an older version, in which words carry marks.

    >>> from sixjars.runs.recipes import read_recipe
    >>> found = features(read_recipe("language_model/sample_rnn"), searches=True, attends=False)
    >>> [one in found for one in ("cell/rnn", "output/text", "searches", "input/text", "attends", "borrows")]
    [True, True, True, False, False, False]
    """
    task, fields = TASKS[recipe.task], recipe.data.fields
    found = {
        f"{'output' if name == task.output.name else 'input'}/{own.kind}"
        for name, own in fields.items()
    }
    sections = {
        "encoder": recipe.model.encoder,
        "bridge": recipe.model.bridge,
        "decoder": recipe.model.decoder,
    }
    found |= {f"{role}/{section['kind']}" for role, section in sections.items()}
    for section in (*sections.values(), *(own.model_dump(mode="json") for own in fields.values())):
        found |= set(_settings(section))
    found |= {
        name
        for name, has in {"searches": searches, "attends": attends, MARKED_WORDS: marked}.items()
        if has
    }
    # An output may hold words of the source: copied ones, or in place of unknown ones.
    return frozenset(
        found
        | ({"borrows"} if {"searches", "attends", "input/text", "output/text"} <= found else set())
    )


def _settings(section: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif isinstance(value, str):
            yield f"{key}/{value}"
        elif value is True:
            yield key
