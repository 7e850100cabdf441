"""The six sections of a recipe (the six jars); settings of a field are in `data/fields`, of a component in `model`."""

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
    model_serializer,
    model_validator,
)

from sixjars.flow.limits import AboveZero, Count, NotNegative, Number, Positive, Seed, Share, Size
from sixjars.recipe.data import (
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
from sixjars_runtime.search_ranges import (
    LEAST_TEMPERATURE,
    LEAST_TOP_P,
    MOST_COVERAGE_PENALTY,
    MOST_LENGTH_PENALTY,
    MOST_ROWS,
    MOST_TEMPERATURE,
    MOST_TOKENS,
)

DEFAULT_EPOCHS: Final = 10


class Section(Settings):
    """Settings with keys that must fit each other."""

    def misfits(self) -> Iterable[Misfit]:
        """Keys that do not, a sentence each."""
        return ()

    def model_post_init(self, _: Any) -> None:
        """Refuse them."""
        if found := tuple(self.misfits()):
            raise Misfits(found)


class DataSettings(Section, TableSettings):
    """Jar 2: where the examples are. Each field of the task is a key too, such as `source`, `image` or `label`."""

    sample: SampleSettings | None = None
    """The task's synthetic corpus; then no files are named."""
    folder: FilePath = "."
    """Where relative file names start."""
    format: Literal["table", "coco", "flickr8k", "folders", "dialogs"] = "table"
    """Rows of a file; captions as COCO or Flickr8k have them; a folder for each label; or whole conversations (JSON
    lines, each a list of turns), of which every turn but the first is an example."""
    train: Files | TrainingFiles | None = None
    """A file (.tsv .csv .jsonl .json .txt .gz .parquet .xlsx), `hf:NAME[@CONFIG][:SPLIT]`, or parallel
    `{column: file}`; or a list of files, some with a weight: `[{file: a.tsv, weight: 2}, b.tsv]`."""
    valid: Files | Number | None = None
    """A file, or the fraction of the training inputs to hold out. When absent, 0.05 of them, but at least 20 and 2 of
    each label, and at most a third. Labels are held out in proportion, and rows with equal inputs together."""
    test: Files | Number | None = None
    """A file or a fraction; the validation set is scored when there is none."""
    seed: Seed = 0
    """Of which rows are held out."""
    fold: Annotated[str, Field(pattern=r"^[1-9]\d*/[1-9]\d*$")] | None = None
    """One model of a cross-validation (`learning.folds` trains them all): `2/5` holds out the second of five parts."""
    split: SplitSettings | None = None
    """Or all splits in the training file, with a column that names the split."""
    fields: dict[str, SerializeAsAny[FieldSettings]] = Field(default={}, exclude=True)
    """What each field of the task is, inputs first; in a recipe each stands beside the other keys of `data`."""
    speakers: Column | None = None
    """For `format: dialogs`, a list of who speaks each turn; two speakers in turn when absent."""
    alignment: Links = None
    """True links `0-0 1-2` (source word, target word, from 0): a column, files `{test: FILE}`; `learn` aligns words."""
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
            yield (
                ("sample", "train"),
                "needs either 'train' (a file) or 'sample' (a synthetic corpus), not both.",
            )
        if self.train == ():
            yield ("train",), "'train' is an empty list; name a file."
        if self.split is not None and (
            self.sample or self.test is not None or self.valid is not None
        ):
            message = "'split' finds all splits in the training file; name no 'valid', 'test' or 'sample' beside it."
            yield ("split", "sample", "valid", "test"), message
        if self.fold is not None and (
            self.sample or self.split or (self.valid, self.test) != (None, None)
        ):
            yield (
                ("fold",),
                "'fold' is a part of the training file; name no 'valid', 'test', 'split' or 'sample'.",
            )
        yield from self._fractions()
        if self.speakers is not None and self.format != "dialogs":
            yield (
                ("speakers",),
                f"'speakers' belongs to `format: dialogs`, but the format is {self.format}.",
            )
        if self.train is not None and self.format != "dialogs":
            yield from self._twice()

    def _fractions(self) -> Iterator[Misfit]:
        for name, share in (("valid", self.valid), ("test", self.test)):
            if isinstance(share, float) and not 0.0 < share < 1.0:
                yield (name,), f"{name!r} as a fraction must lie between 0 and 1, but is {share}."

    def _twice(self) -> Iterator[Misfit]:
        for (one, first), (other, second) in combinations(self.fields.items(), 2):
            if first.column == second.column:
                yield (
                    (one, other),
                    f"{one!r} and {other!r} are both column {first.column!r}; name two columns.",
                )

    @model_serializer(mode="wrap")
    def _beside_the_fields(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Fields stand beside the other keys."""
        own: dict[str, Any] = plain(self)
        return own | {
            name: settings.model_dump(mode="json") for name, settings in self.fields.items()
        }

    @property
    def training_files(self) -> tuple[TrainingFile, ...]:
        """The files of the training set, each with its weight."""
        if isinstance(self.train, tuple) or self.train is None:
            return self.train or ()
        return (TrainingFile(file=self.train),)

    def path(self, name: FilePath) -> Path:
        """A file of this section, as the machine finds it."""
        return Path(self.folder).expanduser() / name


class LossSettings(Settings):
    """Jar 4: what training minimizes."""

    kind: Literal["cross_entropy"] = "cross_entropy"
    """-Σ_t log P(y_t = ℓ_t | y_1..y_{t-1}, x), divided by the number of tokens."""
    smoothing: Share = 0.0
    """Label smoothing: how much of the probability of the truth is spread evenly over the vocabulary."""
    class_weights: Literal["balanced"] | dict[str, AboveZero] | None = None
    """Of labels: how much the loss of an example counts, by its label: `{spam: 5}`, others 1; or `balanced`, which is
    N / (C n_ℓ), so that every label has the same weight in total."""
    guide: NotNegative = 0.0
    """Guided attention: weight of the cross entropy between true and predicted attention; needs `data.alignment`."""
    coverage: NotNegative = 0.0
    """Coverage loss: weight of Σ_j min(α_jt, Σ_{τ<t} α_jτ), which punishes attending twice; needs attention."""


class LearningSettings(Section):
    """Jar 5: the optimizer and its hyperparameters."""

    freeze: Annotated[
        tuple[str, ...], BeforeValidator(lambda one: (one,) if isinstance(one, str) else one)
    ] = ()
    """Parts that training leaves as they are, by name: `encoder`, `bridge`, `decoder.embedding`, or any beginning of a
    name that `explain` prints."""
    rates: dict[str, AboveZero] = {}
    """Factors of the learning rate by part, `{encoder: 0.1}`; the longest name that fits counts, other parts have 1."""
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
    """Gradient accumulation: batches for one step."""
    epochs: Positive | None = None
    """Passes over the training data; 10 when neither this nor `steps` is given."""
    steps: Positive | None = None
    """Most steps (updates), in as many passes as that takes; where `epochs` is given too, what comes sooner ends."""
    validate_every: Positive | None = None
    """Steps between validations; once an epoch when absent."""
    metric: str | None = None
    """What the best checkpoint is chosen by on the validation set: any metric, or `loss`; when absent, the first metric
    of the evaluation."""
    folds: Annotated[Positive, Field(ge=2)] | None = None
    """k-fold cross-validation, for small sets: as many models, each validated on another part of the training set. The
    scores are their means; the model that is kept learns from all rows, for as many epochs as were best on average."""
    patience: Positive | None = None
    """Early stopping: validations without a better score (or an equal one and a lower loss) before training stops."""
    average: Positive = 1
    """How many of the best checkpoints the final weights are the mean of."""
    save_seconds: NotNegative = 60.0
    """Seconds between saves for `--resume`, besides those after each validation; never changes the result."""
    precision: Annotated[Literal["32", "bf16", "fp16", "auto"], BeforeValidator(str)] = "32"
    """Precision of the forward and backward pass; weights stay 32-bit. `auto` is bf16 on a CUDA device, else 32."""
    fast: bool = True
    """The fast path: the backward pass of recurrences by hand, and on CUDA whole steps as graphs; `false` computes
    step by step as the equations are written, with the same result up to rounding."""
    loggers: tuple[Literal["tensorboard", "csv", "wandb", "mlflow"], ...] = ()
    """Where losses and scores are logged too, besides `log.jsonl`."""
    seed: Seed = 0
    """Of the initial weights, the order of batches and dropout."""

    @model_validator(mode="before")
    @classmethod
    def _with_an_end(cls, section: Any) -> Any:
        """Where nobody says when training ends, it is after ten epochs."""
        endless = (
            isinstance(section, dict)
            and section.get("epochs") is None
            and section.get("steps") is None
        )
        return {**section, "epochs": DEFAULT_EPOCHS} if endless else section

    def updates(self, per_epoch: int) -> int:
        """The most that are made, when an epoch has so many.

        >>> LearningSettings().updates(7), LearningSettings(steps=99).updates(7), LearningSettings(epochs=2).updates(7)
        (70, 99, 14)
        """
        ends = [self.steps] if self.steps is not None else []
        return min([*ends, per_epoch * self.epochs] if self.epochs is not None else ends)

    def misfits(self) -> Iterator[Misfit]:
        """Keys that exclude each other."""
        if self.batch_tokens is not None and self.batch_examples is not None:
            yield (
                ("batch_tokens", "batch_examples"),
                "give 'batch_tokens' or 'batch_examples', not both.",
            )
        if self.momentum and self.optimizer != "sgd":
            yield (
                ("momentum", "optimizer"),
                f"'momentum' belongs to sgd, but the optimizer is {self.optimizer}.",
            )


class SearchSettings(Section):
    """How an output is chosen.

    >>> SearchSettings(kind="beam", width=4).nbest
    1
    """

    kind: Literal["greedy", "sample", "beam"] = "greedy"
    """Greedy search, sampling, or beam search."""
    width: Annotated[Size, Field(le=MOST_ROWS)] = 5
    """Beam width."""
    nbest: Annotated[Size, Field(le=MOST_ROWS)] = 1
    """Hypotheses returned by beam search or sampling."""
    max_length: Annotated[Positive, Field(le=MOST_TOKENS)] = 100
    """Most tokens of an output, `<stop>` included."""
    min_length: Count = 0
    """Fewest tokens before `<stop>`."""
    length_penalty: Annotated[NotNegative, Field(le=MOST_LENGTH_PENALTY)] = 1.0
    """α: a hypothesis is ranked by log P / length^α."""
    coverage_penalty: Annotated[NotNegative, Field(le=MOST_COVERAGE_PENALTY)] = 0.0
    """β: adds β Σ_j log min(Σ_t α_tj, 1), so that no source word is left out."""
    no_repeat_ngram: Count = 0
    """No n-gram of this length twice; 0 for no such rule."""
    unknown: Literal["ban", "allow", "replace"] = "ban"
    """Whether `<unk>` may be output: never; as it is; or replaced by the source word with the most attention."""
    temperature: Annotated[Number, Field(ge=LEAST_TEMPERATURE, le=MOST_TEMPERATURE)] = 1.0
    """Below 1 sampling favours likely tokens, above 1 unlikely ones."""
    top_k: Count = 0
    """Sample from the k most probable tokens; 0 for all."""
    top_p: Annotated[Number, Field(ge=LEAST_TOP_P, le=1.0)] = 1.0
    """Sample from the fewest tokens whose probabilities sum to this (nucleus sampling)."""
    seed: Seed = 0
    """Of sampling."""

    def misfits(self) -> Iterator[Misfit]:
        """Limits that leave nothing to find."""
        if self.kind == "beam" and self.nbest > self.width:
            yield (
                ("nbest", "width"),
                f"'nbest' is {self.nbest}, but a beam of width {self.width} holds fewer.",
            )
        if self.min_length >= self.max_length:
            yield (
                ("min_length",),
                f"'min_length' is {self.min_length}, but 'max_length' is {self.max_length}.",
            )


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


PLAIN_SECTIONS: dict[str, type[Settings]]
PLAIN_SECTIONS = {
    "loss": LossSettings,
    "learning": LearningSettings,
    "evaluation": EvaluationSettings,
}
"""Those whose keys do not depend on the task."""


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
        return yaml.safe_dump(
            self.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=120
        )
