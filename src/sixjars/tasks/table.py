"""One declaration for each system. Loads no torch, so that listing them is instant."""

from dataclasses import dataclass
from typing import final


@final
@dataclass(frozen=True)
class Task:
    """A system: what it reads, what it writes, how it is scored when a recipe does not say."""

    name: str
    """In recipes and on the command line."""
    number: str
    """In the table of systems."""
    title: str
    """One line for a person."""
    metrics: tuple[str, ...]
    """Used where a recipe names none."""
    encoder: str = "text"
    """The kind of encoder where a recipe names none."""
    bridge: str = "attention"
    """The kind of bridge where a recipe names none."""
    columns: tuple[str, str] = ("source", "target")
    """What the input and the output are called in a starter recipe."""
    tokens: str = "words"
    """What a token is in a starter recipe."""

    @property
    def reads(self) -> bool:
        """Whether there is an input at all."""
        return self.encoder != "none"


TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="language_model",
            number="S1",
            title="a sentence from nothing, or the rest of one that you begin",
            metrics=("perplexity",),
            encoder="none",
            bridge="initial",
            columns=("", "text"),
        ),
        Task(
            name="entailment",
            number="S3",
            title="a premise in, a sentence that follows from it out",
            metrics=("bleu", "rougeL", "exact_match"),
            columns=("premise", "hypothesis"),
        ),
        Task(
            name="translation",
            number="S4",
            title="a sentence of one language in, of another out",
            metrics=("bleu", "chrf"),
        ),
        Task(
            name="transliteration",
            number="S5",
            title="a word of one script in, of another out, character by character",
            metrics=("exact_match", "character_error_rate"),
            tokens="characters",
        ),
        Task(
            name="summarization",
            number="S7",
            title="a document in, a headline or summary out",
            metrics=("rouge1", "rouge2", "rougeL"),
            columns=("document", "summary"),
        ),
        Task(
            name="dialog",
            number="S10",
            title="an utterance in, a response out",
            metrics=("bleu", "distinct1", "distinct2"),
            columns=("utterance", "response"),
        ),
    )
}
