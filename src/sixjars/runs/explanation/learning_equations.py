"""The learning section as lines that `explain` prints and that a test evaluates against torch.

θ are the trainable parameters, g their gradient, η_k the learning rate of step k, counted from 1,
of K steps in all.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from sixjars.kernels.compiling import hindrance
from sixjars.model.build import Network, path_of
from sixjars.model.recurrent import Recurrent
from sixjars.progress import number_of
from sixjars.recipe.sections import LearningSettings, Recipe

ADAM = (
    "m ← 0.9 m + 0.1 g",
    "v ← 0.999 v + 0.001 g²",
    "θ ← θ - η_k (m / (1 - 0.9^k)) / (√(v / (1 - 0.999^k)) + ε)",
)
"""Kingma & Ba 2015, algorithm 1, with the constants of torch."""
RULES: Mapping[str, tuple[str, ...]] = {
    "adam": ADAM,
    "adamw": ADAM,
    "sgd": ("θ ← θ - η_k g",),
    "adadelta": (
        "v ← 0.9 v + 0.1 g²",
        "d ← √(u + 1e-6) / √(v + 1e-6) g",
        "u ← 0.9 u + 0.1 d²",
        "θ ← θ - η_k d",
    ),
}
STATES = {"adam": "m = v = 0", "adamw": "m = v = 0", "adadelta": "u = v = 0"}
"""The state of an optimizer before the first step."""


def learning_lines(recipe: Recipe, network: Network) -> list[str]:
    """The lines on gradients, steps, rates, regularization, and the end of training."""
    learning = recipe.learning
    return [
        *_gradients(network),
        *_step(learning),
        *_rate(learning),
        *_regularization(recipe),
        *_course(learning),
        *_execution(learning, network),
    ]


def _gradients(network: Network) -> Iterator[str]:
    if network.decoder.searches:
        in_use = "in use, its own output ŷ_{t-1}"
        yield f"teacher forcing: in training, step t is given the true y_{{t-1}}; {in_use}"
    through_time = any(isinstance(module, Recurrent) for module in network.modules())
    if not network.encoder.inputs():
        reach = "into the learned h_T"
    elif any(weight.requires_grad for weight in network.encoder.parameters()):
        reach = "all the way into the encoder"
    else:
        reach = "but not into the encoder, whose weights are frozen"
    name = "backpropagation through time" if through_time else "backpropagation"
    yield f"gradient descent with {name}, {reach}: g is the gradient of L"


def _step(learning: LearningSettings) -> Iterator[str]:
    if learning.clip is None:
        yield "no gradient-norm clipping"
    else:
        norm = f"with c = {learning.clip:g} and the norm of all gradients together"
        yield f"g ← g · min(1, c / ‖g‖): gradient-norm clipping, {norm}"
    decay = learning.weight_decay
    state = "b = 0" if learning.momentum else STATES.get(learning.optimizer)
    yield f"{learning.optimizer}, in step k" + (f"; {state} before the first:" if state else ":")
    if decay and learning.optimizer == "adamw":
        yield f"θ ← θ - η_k {decay:g} θ: decoupled weight decay"
    elif decay:
        yield f"g ← g + {decay:g} θ: weight decay"
    if learning.momentum:
        yield from (f"b ← {learning.momentum:g} b + g: momentum", "θ ← θ - η_k b")
    else:
        epsilon = f"{learning.epsilon:g}".replace("e-0", "e-")
        yield from (line.replace("ε", epsilon) for line in RULES[learning.optimizer])


def _rate(learning: LearningSettings) -> Iterator[str]:
    rate, warmup = f"{learning.rate:g}", learning.warmup
    if warmup:
        yield f"η_k = {rate} k / {warmup} for k < {warmup}: warm-up"
    done = f"(k - {warmup}) / (K - {warmup})" if warmup else "k / K"
    stalled = number_of(learning.plateau_patience + 1, "validation")
    yield {
        "constant": f"η_k = {rate}: constant schedule",
        "inverse_sqrt": f"η_k = {rate} √({max(warmup, 1)} / k): inverse_sqrt schedule",
        "cosine": f"η_k = {rate} (1 + cos(π {done})) / 2: cosine schedule, of K steps in all",
        "plateau": f"η_k = {rate} 0.5^n: plateau schedule; n rises by 1 after {stalled} in a row "
        "without improvement",
    }[learning.schedule]
    if learning.rates:
        parts = ", ".join(f"{factor:g} of it for {part}" for part, factor in learning.rates.items())
        yield f"rates: {parts}"


def _regularization(recipe: Recipe) -> Iterator[str]:
    if recipe.loss.smoothing:
        yield f"label smoothing {recipe.loss.smoothing:g}, as in the loss above"
    shares = dict(_dropouts(recipe.model.model_dump()))
    if shares:
        each = ", ".join(f"{share:g} in {where}" for where, share in shares.items())
        zero = "in training each number is 0 with this probability p, else times 1 / (1 - p)"
        yield f"dropout: {each}; {zero}"
    for name, field in recipe.data.fields.items():
        if share := getattr(field, "word_dropout", 0.0):
            unknown = f"each token of the {name} is <unk> with probability {share:g}"
            yield f"word dropout: in training {unknown}"


def _dropouts(section: Mapping[str, Any], where: str = "") -> Iterator[tuple[str, float]]:
    """Every `dropout` above 0, by the name of its component."""
    for key, value in section.items():
        if isinstance(value, Mapping):
            yield from _dropouts(value, f"{where}.{key}" if where else key)
        elif key == "dropout" and value:
            yield where, value


def _course(learning: LearningSettings) -> Iterator[str]:
    examples = number_of(learning.batch_examples or 64, "example")
    size = f"{learning.batch_tokens} tokens" if learning.batch_tokens else examples
    several = f", the gradients of {learning.accumulate} added up for a step"
    yield f"batches of {size}" + (several if learning.accumulate > 1 else "")
    ends = (learning.epochs, "epoch"), (learning.steps, "step")
    limits = [number_of(count, noun) for count, noun in ends if count is not None]
    yield f"at most {', '.join(limits)}"
    if learning.folds:
        yield (
            f"{learning.folds} folds: as many models, each validated by {learning.metric} on "
            "another part of the training set; the model that is kept learns from all rows, for as "
            "many epochs as were best on average"
        )
    elif learning.average > 1:
        best = f"the {learning.average} best by {learning.metric} on the validation set"
        yield f"the mean of the weights of {best} is kept"
    else:
        yield f"the best by {learning.metric} on the validation set is kept"
    if learning.patience:
        yield f"stops after {number_of(learning.patience, 'validation')} without improvement"


def _execution(learning: LearningSettings, network: Network) -> Iterator[str]:
    if learning.freeze:
        yield f"frozen: {', '.join(learning.freeze)}"
    if learning.precision != "32":
        automatic = "bf16 on a CUDA device that has it, else 32 bits"
        bits = automatic if learning.precision == "auto" else learning.precision
        yield f"precision of the forward and backward pass: {bits}; weights have 32 bits"
    if path := path_of(network, fast=learning.fast):
        yield f"path: {path}{_means(learning.precision) if learning.fast else ''}"


def _means(precision: str) -> str:
    why = hindrance(precision)
    kernels = "kernels that the first training compiles on a CPU"
    if why:
        kernels = f"no compiled kernels on a CPU: {why}"
    return f"; steps as graphs on a CUDA device, {kernels}"
