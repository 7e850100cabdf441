"""One declaration for each system. Loads no torch, so that listing them is instant."""

from dataclasses import dataclass
from typing import Literal, final


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
    inputs: tuple[str, ...] = ("source",)
    """The keys of the data jar that the encoder reads; also the names of its parameters."""
    output: Literal["target", "label", "order"] = "target"
    """The key of the data jar that the decoder says."""
    encoder: str = "text"
    """The kind of encoder where a recipe names none."""
    bridge: str = "attention"
    """The kind of bridge where a recipe names none."""
    columns: tuple[str, ...] = ("source", "target")
    """What the inputs and the output are called in a starter recipe."""
    tokens: str = "words"
    """What a token is in a starter recipe."""

    @property
    def decoder(self) -> str:
        """The kind of decoder: what it says decides."""
        return {"target": "sequence", "label": "label", "order": "pointer"}[self.output]

    @property
    def fields(self) -> tuple[str, ...]:
        """All keys of the data jar that an example needs."""
        return (*self.inputs, self.output)

    @property
    def media(self) -> tuple[str, ...]:
        """Those that are files of pictures or films."""
        return tuple(name for name in self.inputs if name in ("image", "video"))


OF_SETS = ("labels_micro_f1", "labels_macro_f1", "labels_exact")
"""Metrics where an example may have several labels and a recipe names none."""
LOOKING = ("attention", "pooling", "two_level")
"""The kinds of bridge that look at positions."""
FOLLOWING = ("attention", "two_level")
"""Those that look again at every step."""

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="language_model",
            number="S1",
            title="a sentence from nothing, or the rest of one that you begin",
            metrics=("perplexity",),
            inputs=(),
            encoder="none",
            bridge="initial",
            columns=("text",),
        ),
        Task(
            name="image_captioning",
            number="S2",
            title="a picture in, a sentence about it out",
            metrics=("bleu4", "cider_d", "rougeL_coco"),
            inputs=("image",),
            encoder="image",
            columns=("image", "captions"),
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
            name="image_question_answering",
            number="S6",
            title="a picture and a question in, the answer out",
            metrics=("accuracy@1", "accuracy@3", "macro_f1"),
            inputs=("image", "question"),
            output="label",
            encoder="image_question",
            bridge="initial",
            columns=("image", "question", "answer"),
        ),
        Task(
            name="summarization",
            number="S7",
            title="a document in, a headline or summary out",
            metrics=("rouge1", "rouge2", "rougeL"),
            columns=("document", "summary"),
        ),
        Task(
            name="video_captioning",
            number="S8",
            title="a film in, a sentence about it out",
            metrics=("bleu4", "cider_d", "rougeL_coco"),
            inputs=("video",),
            encoder="video",
            columns=("video", "captions"),
        ),
        Task(
            name="video_classification",
            number="S9",
            title="a film in, what happens in it out",
            metrics=("accuracy@1", "macro_f1"),
            inputs=("video",),
            output="label",
            encoder="video",
            bridge="initial",
            columns=("video", "label"),
        ),
        Task(
            name="dialog",
            number="S10",
            title="an utterance in, a response out",
            metrics=("bleu", "distinct1", "distinct2"),
            columns=("utterance", "response"),
        ),
        Task(
            name="conversation",
            number="S11",
            title="a conversation so far in, a response out",
            metrics=("bleu", "distinct1", "distinct2", "perplexity"),
            encoder="hierarchy",
            bridge="two_level",
            columns=("turns", "response"),
        ),
        Task(
            name="document_classification",
            number="S12",
            title="a document in, its class out",
            metrics=("accuracy@1", "macro_f1"),
            output="label",
            encoder="hierarchy",
            bridge="pooling",
            columns=("document", "label"),
        ),
        Task(
            name="pointing",
            number="S13",
            title="points in, some of them in the right order out: sorting, convex hulls, tours",
            metrics=("exact_match",),
            inputs=("points",),
            output="order",
            encoder="points",
            bridge="initial",
            columns=("points", "order"),
        ),
    )
}
