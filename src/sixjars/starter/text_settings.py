"""The texts of a starter recipe: tokens, lengths and pretrained vectors.

Each choice is one of `benchmarks/starters.py`, whose table is kept in
`benchmarks/results/starters.yaml`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from sixjars.data.fields import FIELDS
from sixjars.data.text.statistics import MOST_TOKENS_IN_BAG, are_latin, are_mixed, longest_of
from sixjars.data.text.wordllama import EXTRA, NAME, is_installed
from sixjars.model.decoders import DECODERS
from sixjars.model.encoders import ENCODERS
from sixjars.starter.data_facts import DataFacts
from sixjars.tasks import Slot, Task

WORDS: Final = 30_000
"""Words of an input's vocabulary: rarer ones come so seldom that they teach nothing."""
EXTRA_WORDS: Final = 20_000
"""Words that training does not have, but the vectors: a model meets them sooner or later."""
WORD_DROPOUT: Final = 0.1
"""The share of input tokens that training drops: <unk> is learned, and no word alone decides."""
MISSING: Final = (
    f"pretrained word vectors would help here: pip install 'sixjars[{EXTRA}]', and run "
    "`sixjars new` again. Without them the words learn their vectors from your rows alone."
)


@final
@dataclass(frozen=True)
class TextChoice:
    """The settings that the texts of all fields have in common."""

    vectors: bool = False
    """Whether the words of the inputs start from pretrained vectors."""
    tied: bool = False
    """Whether the output is a text, whose embedding and output layer are one matrix."""
    note: str = ""
    """A note for a person, or nothing."""


def choice_for(task: Task, facts: DataFacts) -> TextChoice:
    """The choice for a task and its data; without data there are no vectors."""
    texts = [text for slot in _of_words(task) for text in facts.texts.get(slot.name, ())]
    fits = are_latin(texts) and not _in_segments(task)
    tied = FIELDS[task.output.kind].holds == "tokens"
    if fits and not is_installed():
        return TextChoice(tied=tied, note=MISSING)
    return TextChoice(vectors=fits, tied=tied)


def _of_words(task: Task) -> Iterator[Slot]:
    """The inputs that are made of words."""
    if task.tokens == "words":
        yield from (slot for slot in task.inputs if FIELDS[slot.kind].holds == "tokens")


def _in_segments(task: Task) -> bool:
    """Whether the encoder reads segments, for which vectors were not measured."""
    return ENCODERS[task.starter or task.encoder].has_segments


def text_settings(
    task: Task, slot: Slot, suggested: dict[str, Any], texts: Sequence[str], choice: TextChoice
) -> dict[str, Any]:
    """The settings of a text field: by its statistics, and by measurements of its task."""
    if task.tokens != "words" or "tokens" not in suggested or slot is task.output:
        return suggested
    bag = not ENCODERS[task.starter or task.encoder].recurs
    if suggested["tokens"] == "characters" or are_mixed(texts):
        if bag:
            suggested["max_length"] = longest_of(texts, 2, MOST_TOKENS_IN_BAG, words=False)
        return suggested
    labels = not DECODERS[task.decoder].searches
    if labels or choice.vectors:
        # Subwords of few rows are pieces of words that were met once; whole words have pretrained
        # vectors, and a class hangs on a word more than on its letters.
        suggested |= {"tokens": "words", "size": WORDS, "lowercase": True}
    if choice.vectors:
        suggested["vectors"] = NAME
        # Measured for translation and for bags of words, not for pairs of texts.
        suggested |= {} if labels and not bag else {"extra_words": EXTRA_WORDS}
    if suggested["tokens"] == "words":
        suggested["word_dropout"] = WORD_DROPOUT
    if bag:
        suggested["max_length"] = longest_of(texts, 2, MOST_TOKENS_IN_BAG)
        # Nothing else keeps a bag of words from learning rows by heart.
        suggested["word_dropout"] = 2 * WORD_DROPOUT
    return suggested
