"""The six sections of a recipe as settings (the six jars), with a sentence under each key.

Each kind of field has settings of its own (`data/fields`); of a component, its signature is the schema (`schema.py`).
"""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, StrictBool

from sixjars.flow.limits import AboveZero, Count, NotNegative, Number, Positive, Seed, Share, Size
from sixjars.recipe.data import DataSettings
from sixjars.recipe.schema import Misfit, Settings
from sixjars.recipe.tuning import TuningSettings


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


class LearningSettings(TuningSettings):
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
    """Gradient accumulation: batches for one step."""
    epochs: Positive = 10
    """Passes over the training data."""
    steps: Positive | None = None
    """Most steps, when that comes sooner."""
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
    precision: Annotated[Literal["32", "bf16", "fp16"], BeforeValidator(str)] = "32"
    """Precision of the forward and backward pass; weights stay 32-bit."""
    fast: bool = True
    """The fast path: the backward pass of recurrences by hand, and on CUDA whole steps as graphs; `false` computes
    step by step as the equations are written, with the same result up to rounding."""
    loggers: tuple[Literal["tensorboard", "csv", "wandb", "mlflow"], ...] = ()
    """Where losses and scores are logged too, besides `log.jsonl`."""
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
