"""Rank correlation of attention weights with the importance of positions, with intervals.

Dims: T steps of an output, S source positions, N examples, R resamples.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, final

import numpy as np
import torch
from torch import Tensor

RESAMPLES: Final = 1000
FEWEST: Final = 6
"""Examples for a claim about random weights: fewer go one way by chance once in twenty times."""
WEAK, STRONG = 0.3, 0.6
"""From these on a correlation is called partial, and large."""
NO_MORE: Final = "no more than random weights do"


def kendall_tau(first: Tensor, other: Tensor) -> Tensor:
    r"""Kendall's :math:`\tau_b` of each row of two (T, S), from -1 (opposite order) to 1; (T,).

    .. math:: \tau_b = \frac{\sum_{i<j} \mathrm{sgn}(a_i - a_j) \, \mathrm{sgn}(b_i - b_j)}
              {\sqrt{|\{i<j : a_i \ne a_j\}| \; |\{i<j : b_i \ne b_j\}|}}

    Kendall 1945 (https://doi.org/10.1093/biomet/33.3.239), with ties. Not a number where a row is
    all one tie.

    >>> kendall_tau(torch.tensor([[0.1, 0.2, 0.7]]), torch.tensor([[1.0, 3.0, 2.0]]))
    tensor([0.3333], dtype=torch.float64)
    """
    taus = []
    for a_S, b_S in zip(first.double(), other.double(), strict=True):
        a_SS, b_SS = (torch.sign(row.unsqueeze(1) - row) for row in (a_S, b_S))
        taus.append((a_SS * b_SS).sum() / (a_SS.abs().sum() * b_SS.abs().sum()).sqrt())
    return torch.stack(taus) if taus else first.new_zeros(0).double()


@final
@dataclass(frozen=True)
class ExampleAgreement:
    """How the weights of one example agree with one importance, averaged over its steps."""

    tau: float
    random: float
    """Kendall's τ of the same weights in a random order."""
    first: float
    """The share of steps at which the position with the largest weight is the most important."""
    chance: float
    """The same for uniform weights, or any choice: one over the number of positions."""
    steps: int


def agreement(
    weights: Tensor, importance: Tensor, random: np.random.Generator
) -> ExampleAgreement | None:
    """Agreement of weights and importances (T, S), over the steps at which both have an order.

    >>> weights = torch.tensor([[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    >>> agreement(weights, weights ** 2, np.random.default_rng(0)).tau
    1.0
    """
    tau_T = kendall_tau(weights, importance)
    places = random.permuted(np.tile(np.arange(weights.shape[1]), (weights.shape[0], 1)), axis=1)
    shuffled = weights.gather(1, torch.from_numpy(places).to(weights.device))
    known_T = ~tau_T.isnan()
    if not known_T.any():
        return None
    same_T = weights.argmax(1) == importance.argmax(1)
    return ExampleAgreement(
        tau=float(tau_T[known_T].mean()),
        random=float(kendall_tau(shuffled, importance)[known_T].mean()),
        first=float(same_T[known_T].double().mean()),
        chance=1 / weights.shape[1],
        steps=int(known_T.sum()),
    )


@final
@dataclass(frozen=True)
class MeanEstimate:
    """A mean over examples, and its 95 % interval, as far as the choice of examples goes."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "MeanEstimate":
        """Estimate by the percentile bootstrap (Efron 1979, https://doi.org/10.1214/aos/1176344552).

        >>> MeanEstimate.of([0.5, 0.5, 0.5])
        MeanEstimate(mean=0.5, low=0.5, high=0.5)
        """
        values_N = np.asarray(values)
        random = np.random.default_rng(0)
        means_R = [
            float(values_N[random.integers(len(values_N), size=len(values_N))].mean())
            for _ in range(RESAMPLES)
        ]
        low, high = np.quantile(means_R, [0.025, 0.975])
        return cls(float(values_N.mean()), float(low), float(high))


@final
@dataclass(frozen=True)
class AttentionAgreement:
    """The agreement of the weights of all examples with one importance; each example counts once.

    >>> measured = AttentionAgreement("erasing a position", (ExampleAgreement(0.5, 0.0, 1.0, 0.25, steps=3),))
    >>> measured.tau.mean, measured.first.mean
    (0.5, 1.0)
    """

    name: str
    """The importance that the weights are compared with."""
    examples: tuple[ExampleAgreement, ...]

    @cached_property
    def tau(self) -> MeanEstimate:
        """Kendall's τ of the weights."""
        return MeanEstimate.of([example.tau for example in self.examples])

    @cached_property
    def random(self) -> MeanEstimate:
        """That of the same weights in a random order: 0 but for chance."""
        return MeanEstimate.of([example.random for example in self.examples])

    @cached_property
    def first(self) -> MeanEstimate:
        """How often the largest weight is on the most important position."""
        return MeanEstimate.of([example.first for example in self.examples])

    @property
    def chance(self) -> float:
        """The same for uniform weights."""
        return float(np.mean([example.chance for example in self.examples]))

    @property
    def steps(self) -> int:
        """Steps of all examples."""
        return sum(example.steps for example in self.examples)

    @property
    def sentence(self) -> str:
        """A sentence on the correlation, and on how often the most important position is found."""
        # paired: weights and random weights of the same examples
        gain = MeanEstimate.of([example.tau - example.random for example in self.examples])
        alike = f"eights and {self.name} order the input"
        joined = "and"
        if len(self.examples) < FEWEST:
            alike = f"Fewer than {FEWEST} examples do not say whether w{alike} alike"
        elif gain.low > 0:
            levels = {WEAK: "weakly", STRONG: "in part"}
            far = next((word for most, word in levels.items() if self.tau.mean < most), None)
            alike = f"W{alike} alike {far or 'to a large part'}, more than random weights do"
        else:
            opposite = gain.high < 0
            alike = f"W{alike} {'in opposite ways' if opposite else 'alike ' + NO_MORE}"
            joined = "but" if self.first.low > self.chance else joined
        often = f"the largest weight is on the most important position at {self.first.mean:.0%}"
        return f"{alike}; {joined} {often} of the steps (uniform weights: {self.chance:.0%})."

    def to_json(self) -> dict[str, Any]:
        """Plain values, those of each example too."""
        return {
            "compared_with": self.name,
            "steps": self.steps,
            "tau": asdict(self.tau),
            "tau_random": asdict(self.random),
            "tau_uniform": 0.0,
            "same_first": asdict(self.first),
            "same_first_uniform": self.chance,
            "examples": [asdict(example) for example in self.examples],
        }
