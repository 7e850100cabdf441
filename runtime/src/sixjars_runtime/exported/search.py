"""Search for outputs, greedily, by sampling or by a beam: the toolkit's own search, in numpy.

Every kind makes the open beginnings of all sources one token longer, until none is left. The kinds
differ in the tokens that they choose, and in what ends a beginning.

Dims: B sources, K rows of each, R = B * K rows open in search, V vocabulary, C = 2K candidates,
      N hypotheses of a source, X of all sources, S source positions, t tokens output so far,
      T steps, P tokens of a prefix.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.errors import DataError
from sixjars_runtime.exported.search_options import SearchOptions
from sixjars_runtime.exported.token_choice import (
    FREE,
    NEVER,
    Bools,
    Floats,
    Ints,
    allowed,
    best_tokens,
    drawn,
    highest,
    row_seeds,
)
from sixjars_runtime.special_tokens import SpecialTokens

Tensors = Mapping[str, NDArray[Any]]
"""Tensors by name, each with the rows as its first dimension."""
Step = Callable[[Ints, Tensors, Tensors], tuple[Floats, Floats | None, Tensors]]
"""A token for each row, (R,), a state and what is prepared to log probabilities (which are then
overwritten), attention and a new state."""
Column = tuple[Ints, Ints, Ints, Floats | None]
"""Of one step: which of all rows its rows are, the token of each, the row that it continues, and
the attention before rows moved."""
FEWER: Final = 0.75
"""Sources that are done leave when at most this share of them goes on."""
ENDS: Final = np.dtype(
    [
        ("score", "f4"),  # -inf is an empty place
        ("log_probability", "f4"),
        ("row", "i8"),  # of all rows, the one that its last token before `<stop>` was output in
        ("count", "i8"),  # of its tokens, `<stop>` not counted
        ("finished", "?"),  # whether `<stop>` came after them
    ],
    align=True,
)
"""Where a hypothesis ended."""
Ends = NDArray[Any]
"""A table of `ENDS`, (B, N)."""


@final
@dataclass(frozen=True)
class SearchOutput:
    """One output that search found, or the labels that were chosen."""

    tokens: tuple[int, ...]
    """Without `<go>` and `<stop>`; or the labels chosen, most often one."""
    score: float
    """What search ranked it by: higher is better."""
    log_probability: float
    """Of these tokens and, if finished, of `<stop>`."""
    weights: Floats | None = None
    """A row for each token (and one for `<stop>` if finished), over the source positions."""
    finished: bool = True
    """Whether `<stop>` was reached before the limit."""


def picked(tensors: Tensors, rows: Ints) -> Tensors:
    """Return some rows of each tensor."""
    return {name: tensor[rows] for name, tensor in tensors.items()}


def search(  # noqa: PLR0913 - what search knows of a model, and what a caller may add
    step: Step,
    state: Tensors,
    prepared: Tensors,
    settings: SearchOptions,
    special: SpecialTokens,
    *,
    mask: Bools,
    longest: int | None = None,
    prefix: tuple[Ints, Bools] | None = None,
    seeds: Sequence[int] | None = None,
) -> list[list[SearchOutput]]:
    """Search for at least one output of each source, and return the best first.

    State, what is prepared, mask (B, S) and prefix have a row for each source. `longest` replaces
    `max_length` where the source decides. What is drawn for a source depends on its own seed, and
    on nothing else in the batch.
    """
    sources = len(mask)
    if not sources:
        return []
    values, real = prefix or (np.zeros((sources, 0), dtype=np.int64), True)
    rows = np.repeat(np.arange(sources), settings.rows)
    known = {
        **picked(prepared, rows),
        "place": np.arange(len(rows)),
        "seed": row_seeds(settings.seed, range(sources) if seeds is None else seeds, settings.rows),
        "mask": mask[rows],
        "prefix": np.where(real, values, FREE)[rows],
    }
    kind = Beam if settings.kind == "beam" else RowByRow
    searching = kind(settings, special, longest or settings.max_length, known)
    return searching.run(step, picked(state, rows))


class Searching(ABC):
    """The rows that are open between two steps, and what ended before."""

    moves: ClassVar[bool]
    """Whether a row may go on from another one, so that states are copied."""

    def __init__(
        self, settings: SearchOptions, special: SpecialTokens, longest: int, known: Tensors
    ) -> None:
        self.settings, self.special = settings, special
        self.longest = longest
        """Most tokens of an output, `<stop>` included."""
        self.known = known
        """What is known of each row before the first step, every tensor (R, …): its `place` among
        all rows, its `seed`, the `mask` of its source, the tokens of its `prefix` with `FREE`
        behind them, and what is prepared."""
        self.covered: Any = np.float32(0)
        """The sum of its attention so far, (R, S), where a penalty asks for it."""
        self.sources = np.arange(len(known["place"]) // settings.rows)
        """Which of all sources are open, (B,)."""
        self.alive = np.zeros((len(self.sources), settings.rows), dtype=np.float32)
        """The log probability of each beginning, (B, K); -inf where there is none to go on with."""
        self.last = np.zeros(self.alive.shape, ENDS)
        """The last beginnings of every source."""
        self.last["row"] = known["place"].reshape(self.alive.shape)

    @abstractmethod
    def advance(
        self, allowed_RV: Floats, penalty_R: Floats | None, steps: int
    ) -> tuple[Ints, Ints]:
        """Make each beginning a token longer; return the tokens and the rows they continue."""

    @abstractmethod
    def ends(self) -> Ends:
        """Return where the hypotheses of every source ended, the best first."""

    def run(self, step: Step, state: Tensors) -> list[list[SearchOutput]]:
        """Make all steps, and return what they found."""
        settings, columns = self.settings, list[Column]()
        token_R = np.full(len(self.known["place"]), self.special.go)
        output_Rt = np.zeros((len(token_R), 0), dtype=np.int64)
        for steps in range(self.longest):
            place_R = self.known["place"]
            scores_RV, weights_RS, state = step(token_R, state, self.known)
            prefix_RP = self.known["prefix"]
            scores_RV = allowed(scores_RV, output_Rt, prefix_RP, steps, settings, self.special)
            penalty_R = self._penalty(weights_RS) if settings.coverage_penalty else None
            token_R, row_R = self.advance(scores_RV, penalty_R, steps)
            columns.append((place_R, token_R, place_R[row_R], weights_RS))
            going_B = np.any(self.alive > NEVER, axis=1)
            if not going_B.any():
                break
            if going_B.sum() <= FEWER * len(going_B):  # the other sources leave
                kept = np.arange(len(token_R)).reshape(self.alive.shape)[going_B].ravel()
                self.sources, self.alive = self.sources[going_B], self.alive[going_B]
                self.known = picked(self.known, kept)
                row_R, token_R = row_R[kept], token_R[kept]
            if settings.no_repeat_ngram:  # to copy all of it at every step takes long
                output_Rt = np.concatenate([output_Rt[row_R], token_R[:, None]], 1)
            if settings.coverage_penalty:
                self.covered = self.covered[row_R]
            if self.moves or len(row_R) < len(place_R):
                state = picked(state, row_R)
        return _traced(self.ends(), columns)

    def _penalty(self, weights_RS: Floats | None) -> Floats:
        """Return β Σ_j log min(Σ_t α_tj, 1) of each row, (R,), over its real positions."""
        if weights_RS is None:
            raise DataError(
                "coverage_penalty needs attention weights, but this model gives none; set it to 0."
            )
        self.covered = self.covered + weights_RS
        terms_RS = np.log(np.clip(self.covered, np.finfo(np.float32).tiny, 1.0))
        sums_R = np.where(self.known["mask"], terms_RS, 0).sum(1)
        return self.settings.coverage_penalty * np.asarray(sums_R, dtype=np.float32)

    def score(self, log_probability: Floats, length: Any, penalty: Floats | None) -> Floats:
        """Return log P / |y|^α + β Σ_j log min(Σ_t α_tj, 1), what hypotheses are compared by."""
        share = log_probability / np.float32(length) ** np.float32(self.settings.length_penalty)
        return share if penalty is None else share + penalty


@final
class RowByRow(Searching):
    """Greedy search and sampling: the rows of a source have nothing to do with each other.

    A row ends with `<stop>`, at the limit, or where no token may follow; only the first is
    finished. Of draws the most probable comes first; two may be the same.
    """

    moves = False

    def advance(
        self, allowed_RV: Floats, penalty_R: Floats | None, steps: int
    ) -> tuple[Ints, Ints]:
        """Take the most probable token of each row, or draw one."""
        if self.settings.kind == "sample":
            token_R = drawn(allowed_RV, self.known["seed"], steps, self.settings)
        else:
            token_R = best_tokens(allowed_RV, 1)[1][:, 0]
        rows = np.arange(len(token_R))
        total_R = self.alive.ravel() + allowed_RV[rows, token_R]
        stops_R = token_R == self.special.stop
        goes_R = total_R > NEVER
        last = self.last.reshape(-1)  # the same table, flat
        place = self.known["place"][goes_R]
        # Of arrays, whose powers may differ from those of numbers in the last bit.
        last["score"][place] = self.score(total_R, np.full_like(rows, steps + 1), penalty_R)[goes_R]
        last["log_probability"][place] = total_R[goes_R]
        last["count"][place] = steps + ~stops_R[goes_R]
        last["finished"][place] = stops_R[goes_R]
        self.alive = np.where(goes_R & ~stops_R, total_R, NEVER).reshape(self.alive.shape)
        return token_R, rows

    def ends(self) -> Ends:
        """Return the end of each row."""
        order = (-self.last["log_probability"]).argsort(1, kind="stable")
        return np.take_along_axis(self.last, order, 1)


@final
class Beam(Searching):
    """Beam search: at every step the K best beginnings of each source.

    Beginnings of one length are compared by log P, ended ones by their score. Twice the width are
    compared, so that `width` go on even if as many output `<stop>`; a `<stop>` counts only among
    the best `width`. A beginning is dropped when nothing it could become would be among the
    `nbest`.
    """

    moves = True

    def __init__(
        self, settings: SearchOptions, special: SpecialTokens, longest: int, known: Tensors
    ) -> None:
        super().__init__(settings, special, longest, known)
        self.alive[:, 1:] = NEVER  # equal beginnings would all go on in the same way
        self.last["score"] = self.last["log_probability"] = self.alive
        self.pool = np.zeros((len(self.sources), settings.nbest), ENDS)
        """The best of every source that ended with `<stop>`."""
        self.pool["score"] = self.pool["log_probability"] = NEVER

    def advance(
        self, allowed_RV: Floats, penalty_R: Floats | None, steps: int
    ) -> tuple[Ints, Ints]:
        """Keep the best beginnings that go on, and the best hypotheses that ended."""
        width, place_R = self.settings.width, self.known["place"]
        log_BC, token_BC, row_BC = self._grown(allowed_RV)
        penalty_BC = None if penalty_R is None else penalty_R[row_BC]
        grown = np.zeros(log_BC.shape, ENDS)
        grown["score"] = self.score(log_BC, steps + 1, penalty_BC)
        grown["log_probability"] = log_BC
        grown["row"] = place_R[row_BC]
        grown["count"] = steps
        grown["finished"] = token_BC == self.special.stop
        ended = grown[:, :width].copy()
        ended["score"] = np.where(ended["finished"], ended["score"], NEVER)
        pool = np.concatenate([self.pool[self.sources], ended], 1)
        pool = np.take_along_axis(pool, highest(pool["score"], self.settings.nbest)[1], 1)
        self.pool[self.sources] = pool
        worst_B1 = pool["score"][:, -1:]
        log_BK, at_BK = highest(np.where(grown["finished"], NEVER, log_BC), width)
        last = np.take_along_axis(grown, at_BK, 1)
        last["score"] = np.where(log_BK > NEVER, last["score"], NEVER)
        last["log_probability"] = log_BK
        last["row"] = place_R.reshape(log_BK.shape)
        last["count"] = steps + 1
        last["finished"] = False
        lives_B = (log_BK > NEVER).any(1)
        self.last[self.sources[lives_B]] = last[lives_B]
        # log P only falls, the greatest length divides it by most, and the penalty is at most 0.
        bound_BK = log_BK / np.float32(self.longest**self.settings.length_penalty)
        self.alive = np.where(bound_BK <= worst_B1, NEVER, log_BK)
        token_BK, row_BK = (np.take_along_axis(each, at_BK, 1) for each in (token_BC, row_BC))
        return token_BK.ravel(), row_BK.ravel()

    def _grown(self, allowed_RV: Floats) -> tuple[Floats, Ints, Ints]:
        """Return log P, token and row, (B, C), of the best 2K beginnings a token longer."""
        (sources, width), size = self.alive.shape, allowed_RV.shape[1]
        # No row can have more of the best.
        log_RC, token_RC = best_tokens(allowed_RV, min(2 * width, size))
        log_BKC = self.alive[:, :, None] + log_RC.reshape(sources, width, -1)
        log_BC, place_BC = highest(log_BKC.reshape(sources, -1), min(2 * width, width * size))
        token_BC = np.take_along_axis(token_RC.reshape(sources, -1), place_BC, 1)
        first_B1 = np.arange(0, sources * width, width)[:, None]
        return log_BC, token_BC, first_B1 + place_BC // log_RC.shape[1]

    def ends(self) -> Ends:
        """Return what ended with `<stop>`, then beginnings as long as allowed, the best first.

        A source without any hypothesis gets its last living beginnings instead, so that it is not
        left with nothing.
        """
        last = self.last.copy()
        counts_BK = (last["count"] == self.longest) | (self.pool["score"][:, :1] == NEVER)
        last["score"] = np.where(counts_BK, last["score"], NEVER)
        last = np.take_along_axis(last, highest(last["score"], self.settings.width)[1], 1)
        whole = np.concatenate([self.pool, last], 1)
        first_BN = (whole["score"] == NEVER).argsort(1, kind="stable")[:, : self.settings.nbest]
        return np.take_along_axis(whole, first_BN, 1)


def _traced(ends: Ends, columns: Sequence[Column]) -> list[list[SearchOutput]]:
    """Follow the hypotheses of each source backwards from the rows that they ended in.

    So a step costs the same however long the hypotheses are, and attention is never reordered.
    """
    flat = ends.ravel()
    row_X = flat["row"]
    tokens: list[Ints] = []
    weights: list[Floats] = []
    for steps in reversed(range(len(columns))):
        place_R, token_R, parent_R, weights_RS = columns[steps]
        # Of a row that has left, any other is taken: its hypothesis had ended before this step.
        at_X = np.minimum(np.searchsorted(place_R, row_X), len(place_R) - 1)
        tokens.append(token_R[at_X])
        # A hypothesis of `count` tokens was in its row before step `count`: only earlier steps
        # moved it there.
        row_X = np.where(steps < flat["count"], parent_R[at_X], row_X)
        if weights_RS is not None:
            at_X = np.minimum(np.searchsorted(place_R, row_X), len(place_R) - 1)
            weights.append(weights_RS[at_X])
    weights_XTS = np.stack(weights[::-1], axis=1) if weights else None
    return outputs_of(np.stack(tokens[::-1], axis=1), flat, weights_XTS, ends.shape[1])


def outputs_of(
    tokens: Ints, ends: Mapping[str, Any] | Ends, weights: Floats | None, each: int
) -> list[list[SearchOutput]]:
    """Return the outputs of arrays with one in each row, `each` of them for a source.

    `ends` are those of the rows, by the names of `ENDS`. Those with a score of -inf are left out.
    """
    names = ("score", "log_probability", "count", "finished")
    columns = [column.tolist() for column in (tokens, *(ends[name] for name in names))]
    outputs: list[list[SearchOutput]] = [[] for _ in range(0, len(tokens), each)]
    for row, (output, score, total, count, finished) in enumerate(zip(*columns, strict=True)):
        if score > NEVER:
            attended = None if weights is None else weights[row, : count + finished]
            found = SearchOutput(tuple(output[:count]), score, total, attended, finished)
            outputs[row // each].append(found)
    return outputs
