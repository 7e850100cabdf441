"""Update rules, and how their rate changes over time."""

import math
from collections.abc import Iterable
from typing import final

from torch import nn, optim

from sixjars.recipe.jars import LearningSettings


def optimizer_for(parameters: Iterable[nn.Parameter], settings: LearningSettings) -> optim.Optimizer:
    """The update rule that the recipe names."""
    weights, rate, decay = list(parameters), settings.rate, settings.weight_decay
    match settings.optimizer:
        case "adam":
            return optim.Adam(weights, lr=rate, weight_decay=decay)
        case "adamw":
            return optim.AdamW(weights, lr=rate, weight_decay=decay)
        case "sgd":
            return optim.SGD(weights, lr=rate, weight_decay=decay, momentum=settings.momentum)
        case "adadelta":
            return optim.Adadelta(weights, lr=rate, weight_decay=decay)


@final
class Schedule:
    """The learning rate of each update, counted from 1.

    The rate first rises evenly for `warmup` updates. Then: constant; rate √(warmup / step) (Vaswani et al. 2017,
    https://arxiv.org/abs/1706.03762, section 5.3); half a cosine down to 0 at the last update; or, for plateau,
    halved each time validation has stalled.

    >>> schedule = Schedule(LearningSettings(rate=1.0, warmup=4, schedule="inverse_sqrt"), total=100)
    >>> [schedule.rate(step) for step in (1, 2, 4, 16)]
    [0.25, 0.5, 1.0, 0.5]
    """

    def __init__(self, settings: LearningSettings, *, total: int) -> None:
        self.settings = settings
        self.total = total

    def rate(self, step: int, *, halvings: int = 0) -> float:
        """For update number `step`, after so many halvings by plateau."""
        warmup = self.settings.warmup
        if step < warmup:
            return self.settings.rate * step / warmup
        match self.settings.schedule:
            case "inverse_sqrt":
                factor = math.sqrt(max(warmup, 1) / step)
            case "cosine":
                done = (step - warmup) / max(self.total - warmup, 1)
                factor = 0.5 * (1.0 + math.cos(math.pi * min(done, 1.0)))
            case "plateau":
                factor = 0.5**halvings
            case "constant":
                factor = 1.0
        return self.settings.rate * factor
