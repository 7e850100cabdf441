"""The six sections of a recipe (the six jars), but settings of fields and of components."""

from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import yaml
from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    StrictBool,
    field_validator,
    model_serializer,
    model_validator,
)

from sixjars.flow.limits import AboveZero, Count, NotNegative, Number, Positive, Seed, Share, Size
from sixjars.recipe.data import (
    LEARN,
    Column,
    FieldSettings,
    FilePath,
    Files,
    Links,
    SampleSettings,
    SplitSettings,
    TableSettings,
    TrainingFile,
    TrainingFiles,
    Written,
)
from sixjars.recipe.schema import Misfit, Misfits, Settings
from sixjars_runtime import search_requests

DEFAULT_EPOCHS: Final = 10
_TEMPERATURES: Final = Field(
    ge=search_requests.LEAST_TEMPERATURE, le=search_requests.MOST_TEMPERATURE
)


class RecipeSection(Settings):
    """Settings with keys that must fit each other."""

    def misfits(self) -> Iterable[Misfit]:
        """The keys that do not fit each other, a sentence each."""
        return ()

    def model_post_init(self, _: Any) -> None:
        """Refuse misfits."""
        if misfits := tuple(self.misfits()):
            raise Misfits(misfits)


class DataSettings(RecipeSection, TableSettings):
    """Jar 2: the examples. Each field of the task is a key too: `source`, `image`, `label`."""

    sample: SampleSettings | None = None
    """The task's synthetic corpus; then no files are named."""
    folder: FilePath = "."
    """The folder where relative file names start."""
    format: Literal["table", "coco", "flickr8k", "folders", "dialogs"] = "table"
    """Rows of a file; captions as COCO or Flickr8k have them; a folder for each label; or whole
    conversations (JSON lines, each a list of turns), of which every turn but the first is an
    example."""
    train: Files | TrainingFiles | None = None
    """A file (.tsv .csv .jsonl .json .txt .gz .parquet .xlsx), `hf:NAME[@CONFIG][:SPLIT]`, or
    parallel `{column: file}`; or a list of files, some with a weight: `[{file: a.tsv, weight: 2},
    b.tsv]`."""
    valid: Files | Number | None = None
    """A file, or the fraction of the training inputs to hold out. When absent, 0.05 of them, but at
    least 20 and 2 of each label, and at most a third. Labels are held out in proportion, and rows
    with equal inputs together."""
    test: Files | Number | None = None
    """A file or a fraction; the validation set is scored when there is none."""
    seed: Seed = 0
    """Random seed of the choice of held-out rows."""
    fold: Annotated[str, Field(pattern=r"^[1-9]\d*/[1-9]\d*$")] | None = None
    """One model of a cross-validation (`learning.folds` trains them all): `2/5` holds out the
    second of five parts."""
    split: SplitSettings | None = None
    """Or all splits in the training file, with a column that names the split."""
    fields: dict[str, SerializeAsAny[FieldSettings]] = Field(default={}, exclude=True)
    """What each field of the task is, inputs first; in a recipe each stands beside the other keys
    of `data`."""
    speakers: Column | None = None
    """For `format: dialogs`, a list of who speaks each turn; two speakers in turn when absent."""
    alignment: Links = None
    """True links `0-0 1-2` (source word, target word, from 0): a column, files `{test: FILE}`;
    `learn` aligns words."""
    boxes: Column | None = None
    """A column of true regions, `2:0.1,0.1,0.4,0.3 ...`: target word counted from 0; left, top,
    right and bottom as fractions of what the network gets of the image."""
    rationale: Column | None = None
    """A column of the true evidence, `2 5`: the sentence that decides and its word, both counted
    from 0."""
    filter: dict[str, Written] = {}
    """Keep only the rows whose column (by name, or by number in quotes) has this value."""
    on_bad_row: Literal["error", "skip"] = "error"
    """Whether a malformed or empty row is an error, or left out."""

    @field_validator("alignment", mode="before")
    @classmethod
    def _learned(cls, links: Any) -> Any:
        """Take `learn` alone for the links of the training set."""
        return {"train": LEARN} if links == LEARN else links

    def misfits(self) -> Iterator[Misfit]:
        """Examples come from one place, each split has some, no two fields are one column."""
        if (self.sample is None) == (self.train is None):
            needs = "needs either 'train' (a file) or 'sample' (a synthetic corpus), not both."
            yield ("sample", "train"), needs
        if self.train == ():
            yield ("train",), "'train' is an empty list; name a file."
        has_splits = (self.valid, self.test) != (None, None)
        if self.split is not None and (self.sample or has_splits):
            message = (
                "'split' finds all splits in the training file; name no 'valid', 'test' or "
                "'sample' beside it."
            )
            yield ("split", "sample", "valid", "test"), message
        if self.fold is not None and (self.sample or self.split or has_splits):
            names = "name no 'valid', 'test', 'split' or 'sample'."
            yield ("fold",), f"'fold' is a part of the training file; {names}"
        yield from self._fractions()
        if self.speakers is not None and self.format != "dialogs":
            wrong = f"'speakers' belongs to `format: dialogs`, but the format is {self.format}."
            yield ("speakers",), wrong
        if self.train is not None and self.format != "dialogs":
            yield from self._twice()

    def _fractions(self) -> Iterator[Misfit]:
        for name, share in (("valid", self.valid), ("test", self.test)):
            if isinstance(share, float) and not 0.0 < share < 1.0:
                yield (name,), f"{name!r} as a fraction must lie between 0 and 1, but is {share}."

    def _twice(self) -> Iterator[Misfit]:
        for (name, field), (other, second) in combinations(self.fields.items(), 2):
            if (column := field.column) == second.column:
                wrong = f"{name!r} and {other!r} are both column {column!r}; name two columns."
                yield (name, other), wrong

    @model_serializer(mode="wrap")
    def _beside_the_fields(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Write fields beside the other keys."""
        keys: dict[str, Any] = plain(self)
        for name, settings in self.fields.items():
            keys[name] = settings.model_dump(mode="json")
        return keys

    @property
    def training_files(self) -> tuple[TrainingFile, ...]:
        """The files of the training set, each with its weight."""
        if isinstance(self.train, tuple) or self.train is None:
            return self.train or ()
        return (TrainingFile(file=self.train),)

    def path(self, name: FilePath) -> Path:
        """The path of a file of this section."""
        return Path(self.folder).expanduser() / name


class LossSettings(Settings):
    """Jar 4: what training minimizes."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    """-Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens."""
    smoothing: Share = 0.0
    """Label smoothing: how much of the probability of the truth is spread evenly over the
    vocabulary."""
    class_weights: Literal["balanced"] | dict[str, AboveZero] | None = None
    """Of labels: how much the loss of an example counts, by its label: `{spam: 5}`, others 1; or
    `balanced`, which is N / (C n_ℓ), so that every label has the same weight in total."""
    guide: NotNegative = 0.0
    """Guided attention: weight of the cross entropy between true and predicted attention; needs
    `data.alignment`."""
    coverage: NotNegative = 0.0
    """Coverage loss: weight of Σ_j min(α_jt, Σ_{τ<t} α_jτ), which punishes attending twice; needs
    attention."""


class LearningSettings(RecipeSection):
    """Jar 5: the optimizer and its hyperparameters."""

    freeze: Annotated[
        tuple[str, ...],
        BeforeValidator(lambda names: (names,) if isinstance(names, str) else names),
    ] = ()
    """Parts that training leaves as they are, by name: `encoder`, `bridge`, `decoder.embedding`, or
    any beginning of a name that `explain` prints."""
    rates: dict[str, AboveZero] = {}
    """Factors of the learning rate by part, `{encoder: 0.1}`; the longest name that fits counts,
    other parts have 1."""
    optimizer: Literal["adam", "adamw", "sgd", "adadelta"] = "adam"
    """The update rule."""
    rate: AboveZero = 1e-3
    """Peak learning rate."""
    weight_decay: NotNegative = 0.0
    """Weight decay."""
    momentum: Share = 0.0
    """Momentum; only SGD has it."""
    epsilon: AboveZero = 1e-8
    """What Adam adds to the root of its second moments. Weights whose gradients are smaller, as
    those of rare words, take smaller steps: 1e-4 suits encoders that are bags of words."""
    clip: AboveZero | None = 1.0
    """Gradient-norm clipping: the largest norm; `null` for no limit."""
    schedule: Literal["constant", "inverse_sqrt", "plateau", "cosine"] = "constant"
    """How the rate changes: after `warmup` steps as 1/√step, halved when validation stalls, or down
    to 0 at the end."""
    warmup: Count = 0
    """Steps in which the rate rises from 0 to its peak (any schedule)."""
    plateau_patience: Count = 1
    """Validations without improvement before `plateau` halves the rate."""
    batch_tokens: Positive | None = None
    """Batch size in tokens: the most of a batch, padding counted, source and target together."""
    batch_examples: Positive | None = None
    """Or the batch size in examples (64 when neither is given)."""
    accumulate: Positive = 1
    """Gradient accumulation: batches for one step."""
    epochs: Positive | None = None
    """Passes over the training data; 10 when neither this nor `steps` is given."""
    steps: Positive | None = None
    """Most steps (updates), in as many passes as that takes; where `epochs` is given too, what
    comes sooner ends."""
    validate_every: Positive | None = None
    """Steps between validations; once an epoch when absent."""
    metric: str | None = None
    """What the best checkpoint is chosen by on the validation set: any metric, or `loss`; when
    absent, the first metric of the evaluation."""
    folds: Annotated[Positive, Field(ge=2)] | None = None
    """k-fold cross-validation, for small sets: as many models, each validated on another part of
    the training set. The scores are their means; the model that is kept learns from all rows, for
    as many epochs as were best on average."""
    patience: Positive | None = None
    """Early stopping: validations without a better score (or an equal one and a lower loss) before
    training stops."""
    average: Positive = 1
    """How many of the best checkpoints the final weights are the mean of."""
    save_seconds: NotNegative = 60.0
    """Seconds between saves for `--resume`, besides those after each validation; never changes the
    result."""
    precision: Annotated[Literal["32", "bf16", "fp16", "auto"], BeforeValidator(str)] = "32"
    """Precision of the forward and backward pass; weights stay 32-bit. `auto` is bf16 on a CUDA
    device, else 32."""
    fast: bool = True
    """The fast path: the backward pass of recurrences by hand, and on CUDA whole steps as graphs;
    `false` computes step by step as the equations are written, with the same result up to
    rounding."""
    loggers: tuple[Literal["tensorboard", "csv", "wandb", "mlflow"], ...] = ()
    """Where losses and scores are logged too, besides `log.jsonl`."""
    seed: Seed = 0
    """Random seed of the initial weights, the order of batches and dropout."""

    @model_validator(mode="before")
    @classmethod
    def _with_an_end(cls, section: Any) -> Any:
        """Train for ten epochs where neither epochs nor steps are given."""
        if not isinstance(section, dict):
            return section
        endless = section.get("epochs") is None and section.get("steps") is None
        return {**section, "epochs": DEFAULT_EPOCHS} if endless else section

    def updates(self, per_epoch: int) -> int:
        """The most updates, when an epoch has `per_epoch`.

        >>> LearningSettings().updates(7), LearningSettings(steps=99).updates(7)
        (70, 99)
        >>> LearningSettings(epochs=2).updates(7)
        14
        """
        ends = [self.steps] if self.steps is not None else []
        return min([*ends, per_epoch * self.epochs] if self.epochs is not None else ends)

    @property
    def is_adam(self) -> bool:
        """Whether the optimizer is Adam, with weight decay of either kind."""
        return self.optimizer in {"adam", "adamw"}

    def misfits(self) -> Iterator[Misfit]:
        """The keys that exclude each other."""
        if self.batch_tokens is not None and self.batch_examples is not None:
            message = "give 'batch_tokens' or 'batch_examples', not both."
            yield ("batch_tokens", "batch_examples"), message
        if self.momentum and self.optimizer != "sgd":
            message = f"'momentum' belongs to sgd, but the optimizer is {self.optimizer}."
            yield ("momentum", "optimizer"), message
        if self.epsilon != type(self).model_fields["epsilon"].default and not self.is_adam:
            message = (
                f"'epsilon' belongs to adam and adamw, but the optimizer is {self.optimizer}; "
                "take learning.epsilon=1e-8, the default."
            )
            yield ("epsilon", "optimizer"), message


class SearchSettings(RecipeSection):
    """How an output is chosen.

    >>> SearchSettings(kind="beam", width=4).nbest
    1
    """

    kind: Literal["greedy", "sample", "beam"] = "greedy"
    """Greedy search, sampling, or beam search."""
    width: Annotated[Size, Field(le=search_requests.MOST_ROWS)] = 5
    """Beam width."""
    nbest: Annotated[Size, Field(le=search_requests.MOST_ROWS)] = 1
    """Hypotheses returned by beam search or sampling."""
    max_length: Annotated[Positive, Field(le=search_requests.MOST_TOKENS)] = 100
    """Most tokens of an output, `<stop>` included."""
    min_length: Count = 0
    """Fewest tokens before `<stop>`."""
    length_penalty: Annotated[NotNegative, Field(le=search_requests.MOST_LENGTH_PENALTY)] = 1.0
    """α: a hypothesis is ranked by log P / length^α."""
    coverage_penalty: Annotated[NotNegative, Field(le=search_requests.MOST_COVERAGE_PENALTY)] = 0.0
    """β: adds β Σ_j log min(Σ_t α_tj, 1), so that no source word is left out."""
    no_repeat_ngram: Count = 0
    """No n-gram of this length twice; 0 for no such rule."""
    unknown: Literal["ban", "allow", "replace"] = "ban"
    """Whether `<unk>` may be output: never; as it is; or replaced by the source word with the most
    attention."""
    temperature: Annotated[Number, _TEMPERATURES] = 1.0
    """Below 1 sampling favours likely tokens, above 1 unlikely ones."""
    top_k: Count = 0
    """Sample from the k most probable tokens; 0 for all."""
    top_p: Annotated[Number, Field(ge=search_requests.LEAST_TOP_P, le=1.0)] = 1.0
    """Sample from the fewest tokens whose probabilities sum to this (nucleus sampling)."""
    seed: Seed = 0
    """Random seed of sampling."""

    def misfits(self) -> Iterator[Misfit]:
        """Limits that leave no output."""
        if self.kind == "beam" and self.nbest > self.width:
            message = f"'nbest' is {self.nbest}, but a beam of width {self.width} holds fewer."
            yield ("nbest", "width"), message
        if self.min_length >= self.max_length:
            message = f"'min_length' is {self.min_length}, but 'max_length' is {self.max_length}."
            yield ("min_length",), message


class EvaluationSettings(Settings):
    """Jar 6: how outputs are found and scored."""

    search: SearchSettings = SearchSettings()
    """How outputs are chosen when they are scored, and by `predict` unless it is given another
    search."""
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
    """How the decoder is conditioned on the encoder: by its initial state, at every step, or by
    attention."""
    decoder: dict[str, Any]
    """Produces the output: a text, a label, or positions of the input."""


PLAIN_SECTIONS: dict[str, type[Settings]] = {
    "loss": LossSettings,
    "learning": LearningSettings,
    "evaluation": EvaluationSettings,
}
"""Sections whose keys do not depend on the task."""


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
        """The recipe as YAML, with all defaults filled in."""
        values = self.model_dump(mode="json")
        return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)
