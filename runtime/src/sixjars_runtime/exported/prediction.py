"""One output of a model: its text, how probable it is, and what it attended to."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
from numpy.typing import NDArray


def _nothing() -> NDArray[np.float32]:
    return np.zeros((0, 0), dtype=np.float32)


@final
@dataclass(frozen=True)
class Prediction:
    """One output of a model, and how it came about; or why there is none."""

    text: str
    score: float = 0.0
    """log P / length^α, with the coverage penalty if there is one: what a beam ranks by. Of a
    label, log P."""
    log_probability: float = 0.0
    source: tuple[str, ...] = ()
    """What stands at each position that is attended to; nothing for an image."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included when it was reached; or the label."""
    weights: NDArray[np.float32] = field(default_factory=_nothing)
    """Attention: a row for each token of the output, over the positions of the source; empty
    without attention."""
    finished: bool = True
    """Whether the model stopped by itself."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What was given."""
    layout: tuple[Any, ...] = ("words",)
    """What the positions are; of the cells of an image also their rows and columns."""
    segments: tuple[int, ...] = ()
    """Of a text in segments, the sentence or turn that each position belongs to."""
    error: str | None = None
    """Why this input has no answer; then the text is empty."""

    @property
    def probability(self) -> float:
        """The probability of the whole output; not a number where there is none."""
        return math.exp(self.log_probability) if self.error is None else math.nan
