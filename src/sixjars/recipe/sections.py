"""The six sections of a recipe as settings (the six jars), with a sentence under each key.

Each kind of field has settings of its own (`data/fields`); of a component, its signature is the schema (`schema.py`).
"""

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictStr,
    model_serializer,
)

from sixjars.flow.limits import AboveZero, Count, NotNegative, Number, Positive, Seed, Share, Size
from sixjars.recipe.schema import Misfit, Settings

Column = Annotated[StrictStr | Positive, Field(union_mode="left_to_right")]
FilePath = StrictStr
Files = FilePath | dict[str, FilePath]
Written = Annotated[str, BeforeValidator(lambda value: json.dumps(value) if isinstance(value, int | float) else value)]
"""A value as files have it: `true`, not `True`."""


class FieldSettings(Settings):
    """One field of the examples; each kind of field adds its own keys."""

    kind: str
    """What the field is: `text`, `label`, `order`, `points`, `image`, `video`, or a class of yours."""
    column: Column
    """Its name in the header, or its number from 1 (then the file has no header). `a.b` reaches into a structure."""


class SampleSettings(Settings):
    """A synthetic corpus from the package's own generators, instead of files."""

    size: Size = 4000
    """Training examples."""
    valid: Size = 200
    """Validation examples, none of them in the training set."""
    test: Size = 200
    """Test examples, none of them in the other sets."""
    longest: Size | None = None
    """Most words (or characters, sentences, turns, points) of an input; the generator's own limit when absent."""
    seed: Seed = 0
    """Another seed, another corpus."""
    kind: str | None = None
    """Which of the synthetic corpora of the task, where it has several; its first when absent."""


class SplitSettings(Settings):
    """A column that says which split a row belongs to; rows with other values are left out."""

    column: Column = "split"
    """Its name in the header, or its number from 1."""
    train: str = "train"
    """Its value in training rows."""
    valid: str = "valid"
    """Its value in validation rows."""
    test: str | None = None
    """Its value in test rows; the validation set is scored when there is none."""

    def misfits(self) -> Iterator[Misfit]:
        """No row may be in two splits."""
        values = [value for value in (self.train, self.valid, self.test) if value is not None]
        if len(set(values)) < len(values):
            yield ("train", "valid", "test"), f"the splits must have different values, but have {values}."


class DataSettings(Settings):
    """Jar 2: where the examples are. Each field of the task is a key too, such as `source`, `image` or `label`."""

    sample: SampleSettings | None = None
    """The task's synthetic corpus; then no files are named."""
    folder: FilePath = "."
    """Where relative file names start."""
    format: Literal["table", "coco", "flickr8k", "folders", "dialogs"] = "table"
    """Rows of a file; captions as COCO or Flickr8k have them; a folder for each label; or whole conversations (JSON
    lines, each a list of turns), of which every turn but the first is an example."""
    train: Files | None = None
    """A file (.tsv .csv .jsonl .txt, also .gz; .parquet), `hf:NAME[@CONFIG][:SPLIT]`, or parallel `{column: file}`."""
    valid: Files | Number = 0.05
    """The same, or the fraction of the training file to hold out."""
    test: Files | Number | None = None
    """The same; the validation set is scored when there is none."""
    split: SplitSettings | None = None
    """Or all splits in the training file, with a column that names the split."""
    fields: dict[str, SerializeAsAny[FieldSettings]] = Field(default={}, exclude=True)
    """What each field of the task is, inputs first; in a recipe each stands beside the other keys of `data`."""
    speakers: Column | None = None
    """For `format: dialogs`, a list of who speaks each turn; two speakers in turn when absent."""
    alignment: Column | None = None
    """A column of true links, `0-0 1-2`: source word, target word, both counted from 0."""
    boxes: Column | None = None
    """A column of true regions, `2:0.1,0.1,0.4,0.3 ...`: target word counted from 0; left, top, right and bottom as
    fractions of what the network gets of the image."""
    rationale: Column | None = None
    """A column of the true evidence, `2 5`: the sentence that decides and its word, both counted from 0."""
    filter: dict[str, Written] = {}
    """Keep only the rows whose column (by name, or by number in quotes) has this value."""
    on_bad_row: Literal["error", "skip"] = "error"
    """What a malformed or empty row does."""

    def misfits(self) -> Iterator[Misfit]:
        """Examples must come from one place, each split must have some, and no two fields may be one column."""
        if (self.sample is None) == (self.train is None):
            yield ("sample", "train"), "needs either 'train' (a file) or 'sample' (a synthetic corpus), not both."
        usual = type(self).model_fields["valid"].default
        if self.split is not None and (self.sample or self.test is not None or self.valid != usual):
            message = "'split' finds all splits in the training file; name no 'valid', 'test' or 'sample' beside it."
            yield ("split", "sample", "valid", "test"), message
        for name, share in (("valid", self.valid), ("test", self.test)):
            if isinstance(share, float) and not 0.0 < share < 1.0:
                yield (name,), f"{name!r} as a fraction must lie between 0 and 1, but is {share}."
        if self.speakers is not None and self.format != "dialogs":
            yield ("speakers",), f"'speakers' belongs to `format: dialogs`, but the format is {self.format}."
        if self.train is not None and self.format != "dialogs":
            yield from self._twice()

    def _twice(self) -> Iterator[Misfit]:
        for (one, first), (other, second) in combinations(self.fields.items(), 2):
            if first.column == second.column:
                yield (one, other), f"{one!r} and {other!r} are both column {first.column!r}; name two columns."

    @model_serializer(mode="wrap")
    def _beside_the_fields(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Fields stand beside the other keys."""
        own: dict[str, Any] = plain(self)
        return own | {name: settings.model_dump(mode="json") for name, settings in self.fields.items()}

    def path(self, name: FilePath) -> Path:
        """A file of this section, as the machine finds it."""
        return Path(self.folder).expanduser() / name


class LossSettings(Settings):
    """Jar 4: what training minimizes."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    """-Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens."""
    smoothing: Share = 0.0
    """Label smoothing: how much of the probability of the truth is spread evenly over the vocabulary."""
    guide: NotNegative = 0.0
    """Guided attention: weight of the cross entropy between true and predicted attention; needs `data.alignment`."""
    coverage: NotNegative = 0.0
    """Coverage loss: weight of Σ_j min(α_jt, Σ_{τ<t} α_jτ), which punishes attending twice; needs attention."""


class LearningSettings(Settings):
    """Jar 5: the optimizer and its hyperparameters."""

    optimizer: Literal["adam", "adamw", "sgd", "adadelta"] = "adam"
    """The update rule."""
    rate: AboveZero = 1e-3
    """Peak learning rate."""
    weight_decay: NotNegative = 0.0
    """Weight decay."""
    momentum: Share = 0.0
    """Momentum; only SGD has it."""
    clip: AboveZero | None = 1.0
    """Gradient-norm clipping: the largest norm; `null` for no limit."""
    schedule: Literal["constant", "inverse_sqrt", "plateau", "cosine"] = "constant"
    """How the rate changes: after `warmup` steps as 1/√step, halved when validation stalls, or down to 0 at the end."""
    warmup: Count = 0
    """Steps in which the rate rises from 0 to its peak (any schedule)."""
    plateau_patience: Count = 1
    """Validations without improvement before `plateau` halves the rate."""
    batch_tokens: Positive | None = None
    """Batch size in tokens: the most of a batch, padding counted, source and target together."""
    batch_examples: Positive | None = None
    """Or the batch size in examples (64 when neither is given)."""
    accumulate: Positive = 1
    """Gradient accumulation: batches for one update."""
    epochs: Positive = 10
    """Passes over the training data."""
    steps: Positive | None = None
    """Most updates, when that comes sooner."""
    validate_every: Positive | None = None
    """Updates between validations; once an epoch when absent."""
    metric: str = "loss"
    """What the best checkpoint is chosen by: `loss` or any metric, on the validation set."""
    patience: Positive | None = None
    """Early stopping: validations without improvement before training stops."""
    average: Positive = 1
    """How many of the best checkpoints the final weights are the mean of."""
    save_seconds: NotNegative = 60.0
    """Seconds between saves for `--resume`, besides those after each validation; never changes the result."""
    precision: Annotated[Literal["32", "bf16", "fp16"], BeforeValidator(str)] = "32"
    """Precision of the forward and backward pass; weights stay 32-bit."""
    seed: Seed = 0
    """Of the initial weights, the order of batches and dropout."""

    def misfits(self) -> Iterator[Misfit]:
        """Keys that exclude each other."""
        if self.batch_tokens is not None and self.batch_examples is not None:
            yield ("batch_tokens", "batch_examples"), "give 'batch_tokens' or 'batch_examples', not both."
        if self.momentum and self.optimizer != "sgd":
            yield ("momentum", "optimizer"), f"'momentum' belongs to sgd, but the optimizer is {self.optimizer}."


class SearchSettings(Settings):
    """How an output is chosen.

    >>> SearchSettings(kind="beam", width=4).nbest
    1
    """

    kind: Literal["greedy", "sample", "beam"] = "greedy"
    """Greedy search, sampling, or beam search."""
    width: Size = 5
    """Beam width."""
    nbest: Size = 1
    """Hypotheses returned by beam search or sampling."""
    max_length: Size = 100
    """Most tokens of an output, `<stop>` included."""
    min_length: Count = 0
    """Fewest tokens before `<stop>`."""
    length_penalty: NotNegative = 1.0
    """α: a hypothesis is ranked by log P / length^α."""
    coverage_penalty: NotNegative = 0.0
    """β: adds β Σ_j log min(Σ_t α_tj, 1), so that no source word is left out."""
    no_repeat_ngram: Count = 0
    """No n-gram of this length twice; 0 for no such rule."""
    unknown: Literal["ban", "allow", "replace"] = "ban"
    """Whether `<unk>` may be output: never; as it is; or replaced by the source word with the most attention."""
    temperature: AboveZero = 1.0
    """Below 1 sampling favours likely tokens, above 1 unlikely ones."""
    top_k: Count = 0
    """Sample from the k most probable tokens; 0 for all."""
    top_p: Annotated[Number, Field(gt=0.0, le=1.0)] = 1.0
    """Sample from the fewest tokens whose probabilities sum to this (nucleus sampling)."""
    seed: Seed = 0
    """Of sampling."""

    def misfits(self) -> Iterator[Misfit]:
        """Limits that leave nothing to find."""
        if self.kind == "beam" and self.nbest > self.width:
            yield ("nbest", "width"), f"'nbest' is {self.nbest}, but a beam of width {self.width} holds fewer."
        if self.min_length >= self.max_length:
            yield ("min_length",), f"'min_length' is {self.min_length}, but 'max_length' is {self.max_length}."


class EvaluationSettings(Settings):
    """Jar 6: how outputs are found and scored."""

    search: SearchSettings = SearchSettings()
    """How outputs are chosen when they are scored, and by `predict` unless it is given another search."""
    metrics: tuple[str, ...] = ()
    """Names of metrics; the task's own when empty."""
    group: StrictBool = False
    """Whether rows with the same input are one example with several references."""
    batch_examples: Positive = 128
    """Batch size of search."""


class ModelSettings(Settings):
    """Jar 3: which components; the keys of each are the parameters of its constructor."""

    encoder: dict[str, Any]
    """Turns the input into annotation vectors and a summary vector."""
    bridge: dict[str, Any]
    """How the decoder is conditioned on the encoder: by its initial state, at every step, or by attention."""
    decoder: dict[str, Any]
    """Produces the output: a text, a label, or positions of the input."""


class Recipe(Settings):
    """A whole run in six sections: the six jars.

    >>> from sixjars import read_recipe
    >>> recipe = read_recipe("translation/sample_attention", ["learning.epochs=3"])
    >>> recipe.task, recipe.learning.epochs, recipe.model.bridge["kind"]
    ('translation', 3, 'attention')
    """

    task: str
    """Jar 1: the system."""
    data: DataSettings
    model: ModelSettings
    loss: LossSettings = LossSettings()
    learning: LearningSettings = LearningSettings()
    evaluation: EvaluationSettings = EvaluationSettings()
    expect: dict[str, Number] = {}
    """The floor (or ceiling, where lower is better) that a metric reaches on the test set."""

    def to_yaml(self) -> str:
        """Everything filled in, ready to be read again."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120)
