"""A whole search in stages that torch can export: how it begins, one step of it, and what it found.

Dims: B sources, K rows of each (the width of a beam), R = B * K rows, N hypotheses, V vocabulary, S source positions,
      T steps made, n length of n-grams.

The search is the toolkit's own, so its rules are too. Between two stages the rows of a source have a dimension of their
own, (B, K, …), for torch takes R and B for two sizes that have nothing to do with each other.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast, final

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812 - its name everywhere

from sixjars.data.dataset import NOTHING
from sixjars.decoding import KINDS, Searcher, beam_rows, ranking_of, row_ends
from sixjars.decoding.beam import BeamRunning, best_ends, row_before
from sixjars.decoding.problem import Problem
from sixjars.decoding.scores import NEVER
from sixjars.flow.contracts import Generator
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Encoded, Padded, Prepared, Rows, StepOutput
from sixjars.model.build import Network
from sixjars.recipe.sections import SearchSettings
from sixjars_runtime.errors import RunError
from sixjars_runtime.exported.settings import PREFIX
from sixjars_runtime.special_tokens import PAD

Value = Mapping[str, Any]
FORCED = "forced"
"""How the output of a model without input begins, with a place behind it where all may come."""


@final
@dataclass(frozen=True)
class Stages:
    """Those of one network and one search."""

    network: Network
    settings: SearchSettings
    extractors: Mapping[str, Any]
    """By the names of the inputs whose features a frozen backbone computes."""

    @property
    def generator(self) -> Generator:
        """The decoder."""
        return cast(Generator, self.network.decoder)

    def searched(self, given: Mapping[str, Padded]) -> list[list[Hypothesis]]:
        """What torch finds."""
        return self.generator.answer(
            self._encoded(given), Searcher(self.settings), given.get(PREFIX)
        )

    def forced(self, given: Mapping[str, Padded], outputs: Padded) -> list[Hypothesis]:
        """One output for each source as torch finds it probable; `<stop>` is given too where it was reached."""
        greedy = Searcher(self.settings.model_copy(update={"kind": "greedy", "nbest": 1}))
        return [one for [one] in self.generator.answer(self._encoded(given), greedy, outputs)]

    def begin(self, given: Mapping[str, Padded]) -> Value:
        """From the inputs to what is running before the first step, and what every step is given."""
        prefix, encoded = given.get(PREFIX), self._encoded(given)
        if prefix is not None:
            prefix = Padded(F.pad(prefix.values, (0, 1)), F.pad(prefix.mask, (0, 1)))
        state, prepared = self.generator.start(encoded)
        most = self.generator.longest(encoded)
        longest = (
            torch.tensor(self.settings.max_length)
            if most is None
            else torch.ones(most).long().sum()
        )
        known = {
            "prepared": prepared,
            "mask": encoded.mask.clone(),
            "longest": longest,
            FORCED: prefix,
        }
        running = KINDS[self.settings.kind].begun(
            self._problem(known, state.repeat(beam_rows(self.settings)))
        )
        if running.output is not None:
            running = replace(running, output=self._nothing_output(running.token))
        if isinstance(running, BeamRunning) and self.settings.coverage_penalty:
            nothing_BS = torch.zeros_like(encoded.mask, dtype=torch.float32)
            running = replace(
                running, covered=nothing_BS.repeat_interleave(beam_rows(self.settings), dim=0)
            )
        return {**known, "running": self._split(running)}

    def step(self, value: Value) -> Value:
        """What `made` steps left running to what is running after one more, what it made, whether another follows."""
        running = self._joined(value["running"])
        problem = self._problem(value, running.state)
        after, column = KINDS[self.settings.kind].advanced(problem, running, value["made"])
        return {
            "after": self._split(after),
            "column": column.mapped(self._by_source),
            "goes": after.going().any(),
        }

    def greedy(self, value: Value) -> Value:
        """What greedy search found, from what all steps made, (T, B, 1, …)."""
        running, column = (
            self._joined(value["running"]),
            value["column"].mapped(lambda one: one[:, :, 0].transpose(0, 1)),
        )
        problem = self._problem(value, running.state)
        found = row_ends(problem, column.token, column.gained, running.total, column.weights)
        tokens, *others = (one.unsqueeze(1) for one in found)
        return _found(
            tokens, others, None if column.weights is None else column.weights.unsqueeze(1)
        )

    def ends(self, value: Value) -> Value:
        """Where the hypotheses of a beam ended, the best first, and how many steps there were."""
        running = value["running"]
        ended = best_ends(self._problem(value, running.state), running.pool, running.last)
        steps = torch.ones(value["column"].token.shape[0]).long().sum()
        return {"ended": ended, "row": ended.row.clone(), "steps": steps}

    def back(self, value: Value) -> Value:
        """One step backwards, after `made` of them: what each hypothesis output, and its row before that."""
        column, row_BN = value["column"], value["row"]
        step_1 = (column.token.shape[0] - 1 - value["made"]).reshape(1)
        token_R, parent_R = (
            one.index_select(0, step_1).flatten() for one in (column.token, column.parent)
        )
        before_BN = row_before(step_1, parent_R, row_BN, value["ended"].count)
        return {"after": before_BN, "trace": {"token": token_R[row_BN], "row": before_BN.clone()}}

    def beam(self, value: Value) -> Value:
        """What beam search found, from what all steps backwards made, (T, B, N)."""
        ended, weights_BNTS = value["ended"], None
        tokens_BNT, rows_BNT = (
            value["trace"][name].flip(0).permute(1, 2, 0) for name in ("token", "row")
        )
        if value["column"].weights is not None:
            weights_TRS = value["column"].weights.flatten(1, 2)
            weights_BNTS = weights_TRS[torch.arange(weights_TRS.shape[0]), rows_BNT]
        own = (ended.score, ended.log_probability, ended.count, ended.finished)
        return _found(tokens_BNT, own, weights_BNTS)

    def _encoded(self, given: Mapping[str, Padded]) -> Encoded:
        if PREFIX in given:
            return self.network.encode(
                {NOTHING: given[PREFIX].mapped(lambda tensor: tensor[:, :0])}
            )
        return self.network.encode({name: self._seen(name, one) for name, one in given.items()})

    def _seen(self, name: str, given: Padded) -> Padded:
        """With features in place of pixels, where a frozen backbone computes them."""
        if name not in self.extractors:
            return given
        side, (rows, frames, _) = self.extractors[name].pixels, given.values.shape
        features = self.extractors[name].features(given.values.reshape(-1, 3, side, side))
        return replace(given, values=features.reshape(rows, frames, features.shape[1]))

    def _problem(self, value: Value, state: Rows) -> Problem:
        """What a stage knows of the search; the state has R rows."""
        rows, settings, prepared = beam_rows(self.settings), self.settings, value.get("prepared")
        prefix: Padded | None = value.get(FORCED)
        return Problem(
            step=self._scored,
            state=state,
            prepared=prepared
            if prepared is None or self.generator.grouped
            else prepared.repeat(rows),
            longest=value.get("longest"),  # type: ignore[arg-type] # a tensor, since a graph is for any
            rows=rows,
            settings=settings,
            special=self.generator.special,
            ranking=ranking_of(settings, value.get("mask"), rows),
            prefix=None if prefix is None else prefix.repeat(rows),
        )

    def _scored(self, token: Tensor, state: Rows, prepared: Prepared) -> tuple[StepOutput, Rows]:
        """A step; with as many tokens as a beam compares, where their number depends on the source."""
        output, state = self.generator.step(token, state, prepared)
        if self.settings.kind == "beam" and not isinstance(output.scores.shape[1], int):
            more = F.pad(output.log_probabilities, (0, 2 * self.settings.width), value=NEVER)
            output = replace(output, scores=more, are_logits=False)
        return output, state

    def _nothing_output(self, token_R: Tensor) -> Tensor:
        """Tokens (R, n) that no rule meets: two that are never output, so that no n-gram of them can come again."""
        special = self.generator.special
        never = sorted({special.go, *special.banned} - {special.stop})
        if len(never) < 2:
            raise RunError(
                "no_repeat_ngram cannot be in a graph of this decoder, which may output all tokens; set it to 0."
            )
        columns = [never[0], *[never[1]] * (self.settings.no_repeat_ngram - 1)]
        return torch.tensor(columns).expand(token_R.shape[0], -1)

    def _by_source(self, tensor: Tensor) -> Tensor:
        return torch.unflatten(tensor, 0, (-1, beam_rows(self.settings)))

    def _split(self, running: Any) -> Any:
        """With the rows of a source as a dimension of their own."""
        return _of_rows(running, self._by_source)

    def _joined(self, running: Any) -> Any:
        """With all rows in one dimension."""
        return _of_rows(running, lambda tensor: tensor.flatten(0, 1))


def _of_rows(running: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """With what there is for each row changed; a beam also knows something of each source."""
    if not isinstance(running, BeamRunning):
        return running.mapped(change)
    covered, output = (
        None if one is None else change(one) for one in (running.covered, running.output)
    )
    state = running.state.mapped(change)
    return replace(
        running, token=change(running.token), state=state, covered=covered, output=output
    )


def _found(tokens_BNT: Tensor, ends_BN: Iterable[Tensor], weights_BNTS: Tensor | None) -> Value:
    """Hypotheses as the graph gives them, with `<pad>` behind their ends."""
    score_BN, log_BN, count_BN, finished_BN = (one.clone() for one in ends_BN)
    own_BNT = torch.arange(tokens_BNT.shape[2]) < count_BN.unsqueeze(2)
    found = {
        "tokens": torch.where(own_BNT, tokens_BNT, PAD),
        "length": count_BN,
        "log_probability": log_BN,
    }
    weights = {} if weights_BNTS is None else {"weights": weights_BNTS}
    return {**found, "score": score_BN, "finished": finished_BN, **weights}
