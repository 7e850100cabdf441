"""Features of a model, which decide on the sections of the script that it needs.

A feature is the value of a setting, such as `cell/lstm`; a setting that is true, such as `copying`;
the kind of an input or of the output, such as `input/text`; or what several of these mean together.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sixjars.recipe.sections import Recipe
from sixjars.tasks import TASKS

MARKED_WORDS = "words/marks"
"""A feature that is not in the recipe: words are spelled as in older versions."""


def features(
    recipe: Recipe, *, searches: bool, attends: bool, marked: bool = False
) -> frozenset[str]:
    """The features of a model that searches for its outputs, attends to its input, or both.

    `marked` says whether one of its tokenizers is of an older version, in which words carry marks.

    >>> from sixjars.runs.recipes import read_recipe
    >>> has = features(read_recipe("language_model/sample_rnn"), searches=True, attends=False)
    >>> [name in has for name in ("cell/rnn", "output/text", "searches", "input/text", "borrows")]
    [True, True, True, False, False]
    """
    output = TASKS[recipe.task].output.name
    flags = {"searches": searches, "attends": attends, MARKED_WORDS: marked}
    has = {name for name, value in flags.items() if value}
    for name, settings in recipe.data.fields.items():
        has.add(f"{'output' if name == output else 'input'}/{settings.kind}")
        has.update(_settings(settings.model_dump(mode="json")))
    model = recipe.model
    sections = {"encoder": model.encoder, "bridge": model.bridge, "decoder": model.decoder}
    for role, section in sections.items():
        has.add(f"{role}/{section['kind']}")
        has.update(_settings(section))
    # An output may hold words of the source: copied ones, or in place of unknown ones.
    if {"searches", "attends", "input/text", "output/text"} <= has:
        has.add("borrows")
    return frozenset(has)


def _settings(section: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _settings(value)
        elif isinstance(value, str):
            yield f"{key}/{value}"
        elif value is True:
            yield key
