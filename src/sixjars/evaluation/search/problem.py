"""What every kind of search is given.

Dims: R rows open in search, V vocabulary, S source positions, t tokens written so far.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.evaluation.search.ranking import Ranking
from sixjars.evaluation.search.rules import Rule
from sixjars.flow import State, Step
from sixjars.recipe.jars import SearchSettings


@final
@dataclass(frozen=True)
class Marks:
    """The token ids that mean something to search."""

    go: int
    """What the first step is told; never written (unless `<stop>` is the same token)."""
    stop: int
    """What ends a hypothesis."""
    banned: tuple[int, ...] = ()
    """What else is never written: `<pad>`, and `<unk>` if it should not appear."""


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: Step
    state: State
    settings: SearchSettings
    marks: Marks
    rule: Rule
    ranking: Ranking

    @property
    def rows(self) -> int:
        """R."""
        return self.state.hidden.shape[0]

    @property
    def device(self) -> torch.device:
        """Where the rows live."""
        return self.state.hidden.device

    def first(self) -> tuple[Tensor, Tensor]:
        """Before the first step: `<go>` in every row, (R,), and nothing written, (R, 0)."""
        tokens_R = torch.full((self.rows,), self.marks.go, dtype=torch.long, device=self.device)
        return tokens_R, tokens_R.new_empty(self.rows, 0)

    def look(self, token: Tensor, state: State, written: Tensor) -> tuple[Tensor, Tensor | None, State]:
        """One step: the log probability of what may be written next (R, V), the weights (R, S), the state."""
        scored, state = self.step(token, state)
        model_RV = scored.log_probabilities
        model_RV = model_RV.to(torch.promote_types(model_RV.dtype, torch.float32))
        return self.rule(model_RV, written), scored.weights, state
