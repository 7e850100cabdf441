"""What search and decoders share: a step, the tokens with a meaning, and hypotheses.

Dims: R rows open in search (B times beam width).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from torch import Tensor

from sixjars.flow.values import StepOutput
from sixjars_runtime.special_tokens import SpecialTokens as SpecialTokens

Step = Callable[[Tensor, Any], tuple[StepOutput, Any]]
"""All that search knows of a model: tokens (R,) and state (any `Rows`) in, scores and state out."""


@final
@dataclass(frozen=True)
class Hypothesis:
    """One output that search found, or the labels that were chosen.

    >>> Hypothesis(tokens=(7, 9), score=-0.5, log_probability=-1.5).finished
    True
    """

    tokens: tuple[int, ...]
    """Without `<go>` and `<stop>`; or the labels chosen, most often one."""
    score: float
    """The score by which search ranked it: higher is better."""
    log_probability: float
    """The log probability of the tokens and, if finished, of `<stop>`."""
    weights: tuple[tuple[float, ...], ...] = ()
    """One row for each token (and one for `<stop>` if finished), over the source positions."""
    finished: bool = True
    """Whether `<stop>` was reached before the limit."""
