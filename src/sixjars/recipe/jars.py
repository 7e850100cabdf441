"""The settings that build nothing: data, loss, learning, search and evaluation, a sentence under each.

The model's settings are not here: the signature of each part is their schema (see `schema.py`).
"""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool

from sixjars.recipe.fields import (
    Column,
    FilePath,
    Files,
    ImageSettings,
    LabelSettings,
    MediaSettings,
    OrderSettings,
    PointsSettings,
    Settings,
    TextSettings,
    VideoSettings,
)
from sixjars.recipe.ranges import AboveZero, Count, NotNegative, Number, Positive, Seed, Share

FieldSettings = TextSettings | MediaSettings | LabelSettings | PointsSettings | OrderSettings


class SampleSettings(Settings):
    """A made-up corpus from the package's own generators, instead of files."""

    size: Positive = 4000
    """Training examples."""
    valid: Positive = 200
    """Validation examples, none of them in the training part."""
    test: Positive = 200
    """Test examples, none of them in the other parts."""
    longest: Positive | None = None
    """Most words (or characters, sentences, turns, points: as the corpus has them) of an input; the generator's own
    limit when absent."""
    seed: Seed = 0
    """Another seed, another corpus."""
    kind: str | None = None
    """Which of the made-up corpora of the task, where it has several; its first when absent."""


class SplitSettings(Settings):
    """A column that says which part a row belongs to; rows with other values are left out."""

    column: Column = "split"
    """Its name in the header, or its number from 1."""
    train: str = "train"
    """Its value in rows to train on."""
    valid: str = "valid"
    """Its value in rows to validate on."""
    test: str | None = None
    """Its value in rows to test on; the validation part is scored when there is none."""

    def misfits(self) -> list[str]:
        """No row may be in two parts."""
        values = [value for value in (self.train, self.valid, self.test) if value is not None]
        return [] if len(set(values)) == len(values) else [f"the parts must have different values, but have {values}."]


class DataSettings(Settings):
    """Jar 2: where the examples are."""

    sample: SampleSettings | None = None
    """The task's made-up corpus; then no files are named."""
    folder: FilePath = "."
    """Where relative file names start."""
    format: Literal["table", "coco", "flickr8k", "folders", "dialogs"] = "table"
    """How examples are written down: rows of a file, captions as COCO or Flickr8k have them, a folder for each label,
    or whole conversations (JSON lines, each a list of turns), of which every turn but the first is an example."""
    train: Files | None = None
    """A file (.tsv .csv .jsonl .txt, also .gz; .parquet), `hf:NAME[@CONFIG][:SPLIT]`, or parallel `{column: file}`."""
    valid: Files | float = 0.05
    """The same, or the fraction of the training file to hold out."""
    test: Files | float | None = None
    """The same; the validation part is scored when there is none."""
    split: SplitSettings | None = None
    """Or all parts in the training file, told apart by a column."""
    source: TextSettings | None = None
    """The text that the encoder reads."""
    image: ImageSettings | None = None
    """The picture that the encoder reads."""
    video: VideoSettings | None = None
    """The film that the encoder reads."""
    question: TextSettings | None = None
    """The question about the picture."""
    points: PointsSettings | None = None
    """The points that the encoder reads."""
    target: TextSettings | None = None
    """The text that the decoder writes. A list in JSON lines is several right texts."""
    label: LabelSettings | None = None
    """The label that the decoder chooses."""
    order: OrderSettings | None = None
    """The points that the decoder points at, one after the other."""
    speakers: Column | None = None
    """For `format: dialogs`, a list of who speaks each turn; two who take turns when absent."""
    alignment: Column | None = None
    """A column of true links, `0-0 1-2`: source word, target word, both counted from 0."""
    boxes: Column | None = None
    """A column of true places, `2:0.1,0.1,0.4,0.3 ...`: target word counted from 0, then left, top, right and bottom
    as shares of what the network sees of the picture."""
    keys: Column | None = None
    """A column of true places to look at, `2 5`: the sentence that matters and its word, both counted from 0."""
    where: dict[str, Annotated[str, BeforeValidator(str)]] = {}
    """Keep only the rows whose column (by name, or by number in quotes) has this value."""
    on_bad_row: Literal["error", "skip"] = "error"
    """What a malformed or empty row does."""

    def misfits(self) -> list[str]:
        """Examples must come from one place, and each part of them must have some."""
        faults = []
        if (self.sample is None) == (self.train is None):
            faults.append("needs either 'train' (a file) or 'sample' (a made-up corpus), not both.")
        usual = type(self).model_fields["valid"].default
        if self.split is not None and (self.sample or self.test is not None or self.valid != usual):
            faults.append(
                "'split' finds all parts in the training file; name no 'valid', 'test' or 'sample' beside it."
            )
        for name in ("valid", "test"):
            part = getattr(self, name)
            if isinstance(part, float) and not 0.0 < part < 1.0:
                faults.append(f"{name!r} as a fraction must lie between 0 and 1, but is {part}.")
        if self.speakers is not None and self.format != "dialogs":
            faults.append(f"'speakers' belongs to `format: dialogs`, but the format is {self.format}.")
        if self.train is not None and self.format != "dialogs":
            faults += self._twice()
        return faults

    def _twice(self) -> list[str]:
        """Fields that are the same column."""
        fields = {name: settings.column for name, settings in self.fields().items()}
        names = list(fields)
        return [
            f"{one!r} and {other!r} are both column {fields[one]!r}; name two columns."
            for at, one in enumerate(names)
            for other in names[at + 1 :]
            if fields[one] == fields[other]
        ]

    def fields(self) -> dict[str, FieldSettings]:
        """What is named of the examples: inputs in the order of the keys here, then the output."""
        names = ("source", "image", "video", "question", "points", "target", "label", "order")
        found = {name: getattr(self, name) for name in names}
        return {name: settings for name, settings in found.items() if settings is not None}

    def path(self, name: FilePath) -> Path:
        """A file of this jar, as the machine finds it."""
        return Path(self.folder).expanduser() / name


class LossSettings(Settings):
    """Jar 4: what training makes small."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    """-Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens."""
    smoothing: Share = 0.0
    """How much of the truth is spread evenly over the vocabulary."""
    guide: NotNegative = 0.0
    """Weight of the cross entropy between true and predicted attention; needs `data.alignment`."""
    coverage: NotNegative = 0.0
    """Weight of Σ_j min(α_jt, Σ_{τ<t} α_jτ), which punishes looking twice at the same place; needs attention."""


class LearningSettings(Settings):
    """Jar 5: how the weights move."""

    optimizer: Literal["adam", "adamw", "sgd", "adadelta"] = "adam"
    """The update rule."""
    rate: AboveZero = 1e-3
    """Peak learning rate."""
    weight_decay: NotNegative = 0.0
    """Pull of each weight towards zero."""
    momentum: Share = 0.0
    """Only SGD has it."""
    clip: AboveZero | None = 1.0
    """Longest gradient; `null` for no limit."""
    schedule: Literal["constant", "inverse_sqrt", "plateau", "cosine"] = "constant"
    """How the rate changes: after `warmup` steps as 1/√step, halved when validation stalls, or down to 0 at the end."""
    warmup: Count = 0
    """Steps in which the rate rises from 0 to its peak (any schedule)."""
    plateau_patience: Count = 1
    """Validations without improvement before `plateau` halves the rate."""
    batch_tokens: Positive | None = None
    """Most tokens of a batch, padding counted, source and target together."""
    batch_examples: Positive | None = None
    """Or most examples of a batch (64 when neither is given)."""
    accumulate: Positive = 1
    """Batches whose gradients are added up for one update."""
    epochs: Positive = 10
    """Passes over the training data."""
    steps: Positive | None = None
    """Most updates, when that comes sooner."""
    validate_every: Positive | None = None
    """Updates between validations; once an epoch when absent."""
    metric: str = "loss"
    """What tells the best checkpoint: `loss` or any metric."""
    patience: Positive | None = None
    """Validations without improvement before training stops."""
    average: Positive = 1
    """How many of the best checkpoints the final weights are the mean of."""
    save_seconds: NotNegative = 60.0
    """Seconds between saves for `--resume`, besides those after each validation; never changes the result."""
    precision: Annotated[Literal["32", "bf16", "fp16"], BeforeValidator(str)] = "32"
    """Numbers in the forward and backward pass; weights stay 32-bit."""
    seed: Seed = 0
    """Of the first weights, the order of batches and dropout."""

    def misfits(self) -> list[str]:
        """Keys that exclude each other."""
        faults = []
        if self.batch_tokens is not None and self.batch_examples is not None:
            faults.append("give 'batch_tokens' or 'batch_examples', not both.")
        if self.momentum and self.optimizer != "sgd":
            faults.append(f"'momentum' belongs to sgd, but the optimizer is {self.optimizer}.")
        return faults


class SearchSettings(Settings):
    """How an output is chosen."""

    kind: Literal["greedy", "sample", "beam"] = "greedy"
    """The most probable token, a draw from the distribution, or a beam."""
    width: Positive = 5
    """Hypotheses kept by beam search."""
    nbest: Positive = 1
    """Hypotheses returned by beam search or sampling."""
    max_length: Positive = 100
    """Most tokens written, `<stop>` included."""
    min_length: Count = 0
    """Fewest tokens before `<stop>`."""
    length_penalty: NotNegative = 1.0
    """α: a hypothesis is ranked by log P / length^α."""
    coverage_penalty: NotNegative = 0.0
    """β: adds β Σ_j log min(Σ_t α_tj, 1), so that no source word is forgotten."""
    no_repeat_ngram: Count = 0
    """No n-gram of this length twice; 0 for no such rule."""
    temperature: AboveZero = 1.0
    """Below 1 sampling is bolder about likely tokens, above 1 about unlikely ones."""
    top_k: Count = 0
    """Sample from the k most probable tokens; 0 for all."""
    top_p: Annotated[Number, Field(gt=0.0, le=1.0)] = 1.0
    """Sample from the fewest tokens whose probabilities add up to this."""
    seed: Seed = 0
    """Of sampling."""

    def misfits(self) -> list[str]:
        """Limits that leave nothing to find."""
        faults = []
        if self.kind == "beam" and self.nbest > self.width:
            faults.append(f"'nbest' is {self.nbest}, but a beam of width {self.width} holds fewer.")
        if self.min_length >= self.max_length:
            faults.append(f"'min_length' is {self.min_length}, but 'max_length' is {self.max_length}.")
        return faults


class EvaluationSettings(Settings):
    """Jar 6: how good it is."""

    search: SearchSettings = SearchSettings()
    """How outputs are chosen when they are scored, and by `predict` unless told otherwise."""
    metrics: tuple[str, ...] = ()
    """Names of metrics; the task's own when empty."""
    group: StrictBool = False
    """Whether rows with the same input are one example with several right answers."""
    batch_examples: Positive = 128
    """Examples searched at once."""
