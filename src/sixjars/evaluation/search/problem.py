"""What every kind of search is given.

Dims: R rows open in search, V vocabulary, S source positions, t tokens written so far.
"""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from sixjars.evaluation.search.ranking import Ranking
from sixjars.evaluation.search.rules import Rule
from sixjars.flow import Marks, Rows, Step
from sixjars.recipe.jars import SearchSettings


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: Step
    state: Rows
    settings: SearchSettings
    marks: Marks
    rule: Rule
    ranking: Ranking

    @property
    def rows(self) -> int:
        """R."""
        return self.state.rows

    @property
    def device(self) -> torch.device:
        """Where the rows live."""
        return self.state.device

    def first(self) -> tuple[Tensor, Tensor]:
        """Before the first step: `<go>` in every row, (R,), and nothing written, (R, 0)."""
        tokens_R = torch.full((self.rows,), self.marks.go, dtype=torch.long, device=self.device)
        return tokens_R, tokens_R.new_empty(self.rows, 0)

    def look(self, token: Tensor, state: Rows, written: Tensor) -> tuple[Tensor, Tensor | None, Rows]:
        """One step: the log probability of what may be written next (R, V), the weights (R, S), the state."""
        scored, state = self.step(token, state)
        model_RV = scored.log_probabilities
        model_RV = model_RV.to(torch.promote_types(model_RV.dtype, torch.float32))
        return self.rule(model_RV, written), scored.weights, state
