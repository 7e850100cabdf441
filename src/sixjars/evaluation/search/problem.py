"""What every kind of search has in common: what is searched, how hypotheses are ranked, and the loop over steps.

Dims: B sources, N rows of each, R = B * N rows open in search, V vocabulary, S source positions, t tokens output so
      far, G chunks of the vocabulary, W tokens of a chunk, C tokens that are wanted, X those that are compared for it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, final

import torch
from torch import Tensor

from sixjars.errors import RecipeError
from sixjars.evaluation.search.rules import NEVER, Rule, rule_of
from sixjars.flow.contracts import SpecialTokens
from sixjars.flow.values import Hypothesis, Padded, Prepared, Rows, StepOutput
from sixjars.recipe.sections import SearchSettings

ModelStep = Callable[[Tensor, Any, Any], tuple[StepOutput, Any]]
"""A token for each row, (R,), a state and what is prepared to log probabilities and a new state."""
CHUNK = 64
"""Scores of a row that are compared together."""


@final
@dataclass(frozen=True)
class Ranking:
    r"""The score that hypotheses are compared by.

    .. math:: \frac{\log P(y | x)}{|y|^{\alpha}} + \beta \sum_j \log \min\left(\sum_t \alpha_{tj}, 1\right)

    The length |y| counts `<stop>`. The second term is the coverage penalty of Wu et al. 2016, section 7
    (https://arxiv.org/abs/1609.08144): it falls with every source position that was hardly attended to.
    Two differences from there. The length enters as it is, not as (5 + |y|) / 6. A position that got no
    weight at all counts as the smallest positive number instead of 0, so that every score is finite.
    """

    length_penalty: float
    """α."""
    coverage_penalty: float
    """β."""
    mask: Tensor | None = None
    """True where a source position is real, (R, S); absent when all are."""

    def covered(self, before: Tensor | None, weights: Tensor | None, live: Tensor | None = None) -> Tensor | None:
        """The weights of all steps so far summed, (R, S); nothing where no penalty asks for them.

        `live`, (R,), leaves out the rows that have ended.
        """
        if self.coverage_penalty == 0.0:
            return None
        if weights is None:
            raise RecipeError(
                [
                    f"search.coverage_penalty is {self.coverage_penalty}, but this model gives no attention "
                    "weights. Set it to 0, or use an attention bridge."
                ]
            )
        new_RS = weights.to(torch.promote_types(weights.dtype, torch.float32))
        if live is not None:
            new_RS = new_RS * live.unsqueeze(1)
        return new_RS if before is None else before + new_RS

    def penalty(self, covered: Tensor | None, rows: Tensor | None = None) -> Tensor | None:
        """The second term, (R,), or that of the given rows in their shape; nothing where β is 0."""
        if covered is None:
            return None
        terms_RS = covered.clamp(torch.finfo(covered.dtype).tiny, 1.0).log()
        if self.mask is not None:
            terms_RS = terms_RS.masked_fill(~self.mask, 0.0)
        penalty_R = self.coverage_penalty * terms_RS.sum(dim=1)
        return penalty_R if rows is None else penalty_R[rows]

    def score(self, log_probability: Tensor, length: int | Tensor, penalty: Tensor | None) -> Tensor:
        """The score of hypotheses that are all of the same length, which is at least 1."""
        share = log_probability / length**self.length_penalty
        return share if penalty is None else share + penalty

    def scores(self, log_probability: Tensor, lengths: Tensor, penalty: Tensor | None) -> Tensor:
        """The same where each has its own length; an empty one scores 0."""
        share = log_probability / lengths.clamp(min=1).to(log_probability.dtype) ** self.length_penalty
        score = share if penalty is None else share + penalty
        return score.masked_fill(lengths == 0, 0.0)

    def bound(self, log_probability: Tensor, max_length: int) -> Tensor:
        """The most that a running hypothesis may still score.

        log P only falls from here, the greatest length divides it by most, the coverage term is at most 0.
        """
        return log_probability / math.pow(max_length, self.length_penalty)


@final
@dataclass(frozen=True)
class Problem:
    """One batch to search."""

    step: ModelStep
    state: Rows
    prepared: Prepared | None
    """What `step` is given of the sources, for each of them or for each row; absent where it knows them by itself."""
    longest: int
    """Most tokens of an output, `<stop>` included."""
    rows: int
    """N, how many rows each source has."""
    settings: SearchSettings
    special: SpecialTokens
    ranking: Ranking
    real: int | None = None
    """How many of the sources are searched; those behind them, if any, are empty. All where it is absent."""
    keeps_weights: bool = True
    """Whether hypotheses have attention weights, where the model has any."""
    seeds: Tensor | None = None
    """Of sampling, one for each row, (R,)."""
    prefix: Padded | None = None
    """What each row must begin with."""

    def on_device(self) -> "Problem":
        """The same with all of it where the state is."""
        device = self.state.device
        return replace(
            self,
            seeds=None if self.seeds is None else self.seeds.to(device),
            prefix=None if self.prefix is None else self.prefix.to(device),
        )

    @cached_property
    def rule(self) -> Rule:
        """What may not be output next."""
        return rule_of(self.settings, self.special, prefix=self.prefix, device=self.state.device)

    @property
    def reads_output(self) -> bool:
        """Whether a rule reads what was output, and not only how long it is."""
        return self.settings.no_repeat_ngram > 0

    def first(self) -> Tensor:
        """Before the first step: `<go>` in every row, (R,)."""
        return torch.full((self.state.rows,), self.special.go, dtype=torch.long, device=self.state.device)

    def step_on(
        self, token: Tensor, state: Rows, output: Tensor | None, made: int | Tensor
    ) -> tuple[Tensor, Tensor | None, Rows]:
        """One step: the log probability of what may come next (R, V), the weights (R, S), the state.

        `output` is what `made` steps output, (R, t), where a rule reads it.
        """
        scored, state = self.step(token, state, self.prepared)
        keeps = self.keeps_weights or self.ranking.coverage_penalty
        model_RV = scored.log_probabilities
        model_RV = model_RV.to(torch.promote_types(model_RV.dtype, torch.float32))
        if output is None:  # only its width counts; a captured step has no rule that counts
            output = token.unsqueeze(1).expand(-1, made if isinstance(made, int) else 1)
        return self.rule(model_RV, output), scored.weights if keeps else None, state

    def is_real(self) -> Tensor:
        """Which rows are those of sources that are searched, (R,)."""
        rows_R = torch.arange(self.state.rows, device=self.state.device)
        return rows_R < (self.state.rows if self.real is None else self.real * self.rows)

    def rows_of(self, sources: Tensor) -> Tensor:
        """The rows of some sources, (B,) -> (R,)."""
        each_N = torch.arange(self.rows, device=sources.device)
        return (sources.unsqueeze(1) * self.rows + each_N).flatten()

    def pick(self, sources: Tensor) -> "Problem":
        """The same for some of its sources only; of the state the search itself keeps some."""
        assert self.prepared is not None
        rows, mask = self.rows_of(sources), self.ranking.mask
        return replace(
            self,
            prepared=self.prepared.pick(sources if self.prepared.rows * self.rows == self.state.rows else rows),
            state=self.state.pick(rows),
            seeds=None if self.seeds is None else self.seeds.index_select(0, rows),
            prefix=None if self.prefix is None else self.prefix.pick(rows),
            ranking=replace(self.ranking, mask=None if mask is None else mask.index_select(0, rows)),
        )


def best_tokens(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The highest `count` scores of each row and their tokens, (R, count) each, the best first.

    A long row is compared in chunks: the best tokens are in the chunks with the highest maxima, and maxima take a
    fraction of the time of `topk` or `argmax`.
    """
    size = scores.shape[1]
    chunks = size // CHUNK
    if chunks < 2 * count:
        values, tokens = scores.topk(count, dim=1)
        return values, tokens
    chunked_RGW = torch.unflatten(scores[:, : chunks * CHUNK], 1, (chunks, CHUNK))
    chunk_RC = chunked_RGW.amax(2).topk(count, dim=1).indices
    few_RX = chunked_RGW.gather(1, chunk_RC.unsqueeze(2).expand(-1, -1, CHUNK)).flatten(1)
    token_RX = (chunk_RC.unsqueeze(2) * CHUNK + torch.arange(CHUNK, device=scores.device)).flatten(1)
    if size % CHUNK:
        rest_X = torch.arange(chunks * CHUNK, size, device=scores.device)
        few_RX = torch.cat([few_RX, scores[:, chunks * CHUNK :]], dim=1)
        token_RX = torch.cat([token_RX, rest_X.expand(len(scores), -1)], dim=1)
    values, places = few_RX.topk(count, dim=1)
    return values, token_RX.gather(1, places)


@final
@dataclass(frozen=True)
class Column(Rows):
    """What one step made."""

    token: Tensor
    """What each row output, (R,)."""
    parent: Tensor | None = None
    """Which row of the step before it goes on from, (R,), where rows move."""
    weights: Tensor | None = None
    """Attention as it was before the rows moved, (R, S)."""


class Running(Protocol):
    """The rows that are open, and all that a kind of search knows of them between two steps."""

    def going(self) -> Tensor:
        """Which sources are not done, (B,)."""
        ...

    def kept(self, sources: Tensor, rows: Tensor) -> Self:
        """Some sources only, (B,), and their rows, (R,)."""
        ...


Advance = Callable[[Problem, Any, int | Tensor], tuple[Any, Column]]
"""One step: what is running after so many steps to what is running after it, and what it made."""


@final
@dataclass(frozen=True)
class Part:
    """Some steps in a row that were made with the same sources."""

    places: Tensor
    """Which of all rows each of its rows is, (R,)."""
    columns: list[Column]
    running: Any
    """What was running at the end of it."""

    def own(self, places: Tensor) -> Tensor:
        """Which of its rows the given ones of all rows are; the first where it has none."""
        return torch.searchsorted(self.places, places).clamp(max=len(self.places) - 1)


Walk = Callable[[Problem, Any, Advance], list[Part]]
"""How all steps are made."""


def walked(problem: Problem, running: Running, advance: Advance) -> list[Part]:
    """All steps until nothing is left to do. Sources that are done leave once that saves more than it costs.

    To know it, something must be copied from the device. On a CPU that costs nothing.
    """
    often, share = (1, 0.75) if problem.state.device.type == "cpu" else (8, 0.5)
    parts = [Part(torch.arange(problem.state.rows, device=problem.state.device), [], running)]
    for made in range(problem.longest):
        running, column = advance(problem, running, made)
        parts[-1].columns.append(column)
        if (made + 1) % often:
            continue
        going_B = running.going()
        left = int(going_B.sum())
        if left == 0:
            break
        if problem.prepared is not None and left <= share * len(going_B):
            parts[-1] = replace(parts[-1], running=running)
            sources = going_B.nonzero().squeeze(1)
            rows = problem.rows_of(sources)
            problem, running = problem.pick(sources), running.kept(sources, rows)
            parts.append(Part(parts[-1].places.index_select(0, rows), [], running))
    parts[-1] = replace(parts[-1], running=running)
    return parts


def hypotheses_of(
    tokens: Tensor,
    score: Tensor,
    log_probability: Tensor,
    count: Tensor,
    finished: Tensor,
    weights: Tensor | None,
    places: int,
) -> list[list[Hypothesis]]:
    """Plain values of tensors with a hypothesis in each row, `places` for each source; -inf scores are left out."""
    columns = [tensor.tolist() for tensor in (tokens, score, log_probability, count, finished)]
    attention = [[]] * len(tokens) if weights is None else weights.tolist()
    found = [
        Hypothesis(tuple(output[:length]), worth, total, tuple(map(tuple, rows[: length + ends])), ends)
        for output, worth, total, length, ends, rows in zip(*columns, attention, strict=True)
    ]
    return [[one for one in found[at : at + places] if one.score > NEVER] for at in range(0, len(found), places)]
