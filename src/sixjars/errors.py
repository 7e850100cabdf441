"""Everything this toolkit raises on purpose, each a sentence for a person.

SixJarsError
|-- RecipeError    the recipe asks for something that cannot be built; carries every fault found
|-- DataError      a file or an example is missing or malformed
|-- ShapeError     two components do not fit together
|-- RunError       a run folder is missing, damaged, or does not belong to this recipe
|-- LearningError  training diverged
|-- MissingExtra   an optional library is not installed
`-- Interrupted    the user stopped the work; what was saved is usable

`assert` is kept for what cannot happen.
"""

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from reprlib import Repr
from typing import Final, final


class SixJarsError(Exception):
    """Anything that deserves a sentence instead of a traceback.

    >>> raise SixJarsError("The jar is empty.")
    Traceback (most recent call last):
        ...
    sixjars.errors.SixJarsError: The jar is empty.
    """

    exit_code = 2


@final
class RecipeError(SixJarsError):
    """A recipe that cannot be built, with every fault found in it.

    >>> print(RecipeError(["the lid is missing.", "the jar leaks."], "jam.yaml"))
    2 faults in jam.yaml:
      - the lid is missing.
      - the jar leaks.
    """

    def __init__(self, faults: Sequence[str], where: str = "this recipe") -> None:
        self.faults = tuple(faults)
        if len(self.faults) == 1:
            super().__init__(f"{where}: {self.faults[0]}")
        else:
            more = [f"and {len(self.faults) - 50} more."] if len(self.faults) > 50 else []
            lines = "".join(f"\n  - {fault}" for fault in [*self.faults[:50], *more])
            super().__init__(f"{len(self.faults)} faults in {where}:{lines}")


@final
class DataError(SixJarsError):
    """A file or an example is missing or malformed.

    >>> raise DataError("pairs.tsv, line 3: has 1 column, but 2 are needed.")
    Traceback (most recent call last):
        ...
    sixjars.errors.DataError: pairs.tsv, line 3: has 1 column, but 2 are needed.
    """


@final
class ShapeError(SixJarsError):
    """Two components do not fit together; the sentence has both numbers.

    >>> import sixjars, torch
    >>> sixjars.Encoded(memory=torch.zeros(2, 3, 4), mask=torch.ones(2, 5), summary=torch.zeros(2, 4))
    Traceback (most recent call last):
        ...
    sixjars.errors.ShapeError: memory (2, 3, 4) and mask (2, 5) must agree on (B, S).
    """


@final
class RunError(SixJarsError):
    """A run folder is missing, damaged, or made by another recipe.

    >>> import sixjars
    >>> sixjars.load("runs/never-made")
    Traceback (most recent call last):
        ...
    sixjars.errors.RunError: run folder runs/never-made does not exist.
    """


@final
class LearningError(SixJarsError):
    """Learning cannot go on: the loss is no longer a number.

    >>> issubclass(LearningError, SixJarsError), LearningError.exit_code
    (True, 2)
    """


@final
class MissingExtra(SixJarsError):
    """An optional library is needed and not installed.

    >>> print(MissingExtra("datasets", "hub"))
    datasets is not installed. Run: pip install 'sixjars[hub]'
    """

    def __init__(self, library: str, extra: str) -> None:
        super().__init__(f"{library} is not installed. Run: pip install 'sixjars[{extra}]'")


@final
class Interrupted(SixJarsError):
    """The user stopped the work.

    >>> Interrupted.exit_code
    130
    """

    exit_code = 130


_SHORT: Final = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80
ALIASES: Final = dict(
    pair.split("=")
    for pair in """
    lr=rate learning_rate=rate batch_size=batch_examples num_epochs=epochs max_epochs=epochs max_steps=steps
    hidden_size=size hidden_dim=size embedding_dim=size vocab_size=size max_vocab=size num_layers=layers n_layers=layers
    bidirectional=direction num_beams=width beam_size=width max_len=max_length label_smoothing=smoothing
    gradient_clip=clip grad_clip=clip where=filter several=multi_label parts=segments tuned=frozen keys=rationale
    numbers=dimensions text_classification=document_classification classification=document_classification
    sentiment_analysis=document_classification machine_translation=translation seq2seq=translation
    captioning=image_captioning vqa=image_question_answering visual_question_answering=image_question_answering
    chatbot=conversation dialogue=dialog language_modeling=language_model language_modelling=language_model
    pointer_network=pointing summarisation=summarization
    """.split()
)
"""Names that people know from elsewhere, or from an earlier version -> ours."""


def shown(value: object) -> str:
    """A value as a message quotes it: its beginning will do.

    >>> shown("jam"), len(shown("j" * 100_000))
    ("'jam'", 80)
    """
    return _SHORT.repr(value)


def hint(got: object, known: Collection[str]) -> str:
    """The right name that a wrong one may stand for, as a sentence; nothing where none is near.

    >>> hint("hiden", ["hidden", "layers"]), hint("lr", ["rate"])
    (" Did you mean 'hidden'?", " Did you mean 'rate'?")
    """
    name = str(got)[:200]
    near = [ALIASES[name]] if ALIASES.get(name) in known else get_close_matches(name, known, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def unknown(what: str, got: object, known: Collection[str]) -> str:
    """One sentence for a name nobody knows: what it is, what was given, what would be right.

    >>> unknown("key", "hiden", ["hidden", "layers"])
    "key 'hiden' is unknown. Did you mean 'hidden'? Known: hidden, layers."
    """
    return f"{what} {shown(str(got))} is unknown.{hint(got, known)} Known: {', '.join(sorted(known))}."
