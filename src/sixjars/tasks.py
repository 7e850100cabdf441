"""Jar 1: the systems, one declaration each. Loads no torch, so that listing them is instant."""

from dataclasses import dataclass, replace
from typing import final


@final
@dataclass(frozen=True)
class Slot:
    """A field that a task needs."""

    name: str
    """Its key in the data section; an input's is also the name of the encoder's parameter."""
    kind: str
    """The kind of field where a recipe names none."""
    letter: str
    """Its letter in the equations."""
    columns: tuple[str, ...] = ()
    """Usual names of its column; the first is used where there is no data yet."""

    def called(self, *columns: str) -> "Slot":
        """The same field with the column names of another task."""
        return replace(self, columns=columns)


SOURCE = Slot("source", "text", "x", ("source", "src", "input"))
QUESTION = Slot("question", "text", "x", ("question",))
IMAGE = Slot(
    "image", "image", "I", ("image", "file_name", "filename", "file", "path", "picture", "photo")
)
VIDEO = Slot(
    "video", "video", "I_1..I_S", ("video", "clip", "file_name", "filename", "file", "path")
)
_FIRST = "sentence1 premise text_a question1 text1 sentence_a s1 first left query"
SENTENCE1 = Slot("sentence1", "text", "x_1", tuple(_FIRST.split()))
_SECOND = "sentence2 hypothesis text_b question2 text2 sentence_b s2 second right passage"
SENTENCE2 = Slot("sentence2", "text", "x_2", tuple(_SECOND.split()))
POINTS = Slot("points", "points", "p", ("points",))
TARGET = Slot("target", "text", "y", ("target", "tgt", "trg", "output"))
CAPTIONS = TARGET.called("captions", "caption", "sentences", "description")
_LABELS = (
    "label labels class category answer activity topic topics sentiment intent emotion tag tags "
    "type rating stars"
)
LABEL = Slot("label", "label", "y", tuple(_LABELS.split()))
ORDER = Slot("order", "order", "y", ("order",))


_RELATIONS = "gold_label relation entailment judgment entailment_judgment is_duplicate paraphrase"
_DOCUMENTS = (
    "document text sentences paragraphs article review body content message comment tweet "
    "sentence post source"
)


@final
@dataclass(frozen=True)
class Task:
    """A system: inputs, output, and the components and metrics of a recipe that names none."""

    name: str
    """Its name in recipes and on the command line."""
    number: str
    """Its number in the table of systems."""
    title: str
    """One line for a person."""
    inputs: tuple[Slot, ...]
    output: Slot
    encoder: str
    bridge: str
    decoder: str
    metrics: tuple[str, ...]
    bridges: tuple[str, ...] = ("attention", "initial", "every_step")
    """The bridges that a starter recipe offers, the best first."""
    tokens: str = "words"
    """The tokens of a starter recipe."""
    segments: str = "none"
    """The segments of the source in a starter recipe."""
    flat: str = ""
    """The encoder of a starter recipe where sources have few segments and are read as one."""
    starter: str = ""
    """The encoder of a starter recipe where another than `encoder` learns more from few rows."""
    longer_source: bool = False
    """Whether the source is longer than the target."""
    conversation: bool = False
    """Whether rows may be whole conversations, of which every turn but the first is an example."""
    also: tuple[str, ...] = ()
    """Other names that people type for it; recipes and commands understand them."""
    captioned: bool = False
    """Whether data may come in the formats of collections of captioned images: coco, flickr8k."""
    pipeline: str = ""
    """Its name on model hubs, if it has one there."""
    slots: tuple[Slot, ...] = ()
    """All fields of an example, the output last."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "slots", (*self.inputs, self.output))

    def role(self) -> str:
        """The inputs and the output in words, for messages."""
        reads = " and ".join(slot.name for slot in self.inputs) or "no input"
        article = "an" if self.output.name[0] in "aeiou" else "a"
        return f"{self.name} reads {reads} and outputs {article} {self.output.name}"


_TEXT = ("text", "attention", "sequence")
_CAPTION_METRICS = ("bleu4", "cider_d", "rougeL_coco")

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            "language_model",
            "S1",
            "a sentence from nothing, or the continuation of a prefix",
            (),
            TARGET.called("text", "sentence", "target", "content"),
            *("none", "initial", "sequence"),
            metrics=("perplexity",),
            bridges=("initial",),
            pipeline="text-generation",
        ),
        Task(
            "image_captioning",
            "S2",
            "an image in, a sentence about it out",
            (IMAGE,),
            CAPTIONS,
            *("image", "attention", "sequence"),
            metrics=_CAPTION_METRICS,
            captioned=True,
            pipeline="image-to-text",
        ),
        Task(
            "entailment",
            "S3",
            "writes a hypothesis that follows from a premise (to label two sentences: "
            "sentence_pair)",
            (SOURCE.called("premise", "sentence1"),),
            TARGET.called("hypothesis", "sentence2"),
            *_TEXT,
            metrics=("bleu", "rougeL", "exact_match"),
        ),
        Task(
            "translation",
            "S4",
            "a sentence of one language in, of another out",
            (SOURCE,),
            TARGET,
            *_TEXT,
            metrics=("bleu", "chrf"),
            pipeline="translation",
        ),
        Task(
            "transliteration",
            "S5",
            "a word of one script in, of another out, character by character",
            (SOURCE,),
            TARGET,
            *_TEXT,
            metrics=("exact_match", "character_error_rate"),
            tokens="characters",
        ),
        Task(
            "image_question_answering",
            "S6",
            "an image and a question in, the answer out",
            (IMAGE, QUESTION),
            LABEL.called("answer", *LABEL.columns),
            *("image_question", "initial", "label"),
            metrics=("accuracy@1", "accuracy@3", "macro_f1"),
            bridges=("attention", "initial"),
            pipeline="visual-question-answering",
        ),
        Task(
            "summarization",
            "S7",
            "a document in, a headline or summary out",
            (SOURCE.called("document", "article", "text", "body", "content", "story", "source"),),
            TARGET.called("summary", "headline", "highlights", "title", "abstract", "target"),
            *_TEXT,
            metrics=("rouge1", "rouge2", "rougeL"),
            longer_source=True,
            pipeline="summarization",
        ),
        Task(
            "video_captioning",
            "S8",
            "a video in, a sentence about it out",
            (VIDEO,),
            CAPTIONS,
            *("video", "attention", "sequence"),
            metrics=_CAPTION_METRICS,
        ),
        Task(
            "video_classification",
            "S9",
            "a video in, its activity out",
            (VIDEO,),
            LABEL,
            *("video", "initial", "label"),
            metrics=("accuracy@1", "macro_f1"),
            bridges=("pooling", "initial"),
            pipeline="video-classification",
        ),
        Task(
            "dialog",
            "S10",
            "an utterance in, a response out",
            (SOURCE.called("utterance", "question", "prompt", "message", "input", "source"),),
            TARGET.called("response", "answer", "reply", "output", "target"),
            *_TEXT,
            metrics=("bleu", "distinct1", "distinct2"),
            pipeline="text-generation",
        ),
        Task(
            "conversation",
            "S11",
            "a conversation so far in, a response out",
            (SOURCE.called("turns", "context", "history", "dialog", "dialogue", "utterances"),),
            TARGET.called("response", "responses", "reply"),
            *("hierarchy", "two_level", "sequence"),
            metrics=("bleu", "distinct1", "distinct2", "perplexity"),
            bridges=("two_level", "initial", "attention"),
            segments="turns",
            conversation=True,
            pipeline="text-generation",
        ),
        Task(
            "document_classification",
            "S12",
            "a document in, its class out",
            (SOURCE.called(*_DOCUMENTS.split()),),
            LABEL,
            *("hierarchy", "pooling", "label"),
            metrics=("accuracy@1", "macro_f1"),
            bridges=("pooling", "initial"),
            segments="sentences",
            flat="text",
            starter="bag",
            also=("text_classification",),
            pipeline="text-classification",
        ),
        Task(
            "pointing",
            "S13",
            "points in, some of them in the right order out: sorting, convex hulls, tours",
            (POINTS,),
            ORDER,
            *("points", "initial", "pointer"),
            metrics=("exact_match",),
            bridges=("initial", "attention"),
        ),
        Task(
            "sentence_pair",
            "S14",
            "two sentences in, their relation out: entailment, paraphrase, duplicate",
            (SENTENCE1, SENTENCE2),
            LABEL.called(*LABEL.columns, *_RELATIONS.split()),
            *("pair", "attention", "label"),
            metrics=("accuracy@1", "macro_f1"),
            bridges=("attention", "initial"),
            pipeline="text-classification",
        ),
        Task(
            "image_classification",
            "S15",
            "an image in, its class out",
            (IMAGE,),
            LABEL,
            *("image", "initial", "label"),
            metrics=("accuracy@1", "macro_f1"),
            bridges=("initial", "pooling"),
            pipeline="image-classification",
        ),
    )
}
TASK_NAMED = TASKS | {other: task for task in TASKS.values() for other in task.also}
"""Tasks by all names that people type for them."""


def own_name(name: str) -> str:
    """The own name of a task, or of a recipe or corpus of it, for another name of the task.

    >>> own_name("text_classification"), own_name("text_classification/imdb_flat")
    ('document_classification', 'document_classification/imdb_flat')
    >>> own_name("dialog")
    'dialog'
    """
    task, slash, rest = name.partition("/")
    return f"{TASK_NAMED[task].name if task in TASK_NAMED else task}{slash}{rest}"
