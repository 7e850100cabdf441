"""A whole search in stages that torch can export: its beginning, one step, and its results.

Dims: B sources, K rows of each (the width of a beam), R = B * K rows, N hypotheses, V vocabulary,
      S source positions, T steps made, n length of n-grams.

The search is the toolkit's own, so its rules are too. Between two stages the rows of a source have
a dimension of their own, (B, K, …), for torch takes R and B for two sizes that have nothing to do
with each other.
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
from sixjars.decoding.problem import SearchProblem
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
class NetworkStages:
    """The stages of one network and one search."""

    network: Network
    settings: SearchSettings
    extractors: Mapping[str, Any]
    """Frozen backbones by the names of the inputs whose features they compute."""

    @property
    def generator(self) -> Generator:
        """The decoder."""
        return cast(Generator, self.network.decoder)

    def searched(self, given: Mapping[str, Padded]) -> list[list[Hypothesis]]:
        """The hypotheses that torch finds."""
        searcher = Searcher(self.settings)
        return self.generator.answer(self._encoded(given), searcher, given.get(PREFIX))

    def forced(self, given: Mapping[str, Padded], outputs: Padded) -> list[Hypothesis]:
        """A given output for each source with torch's probability; its `<stop>` is given too."""
        greedy = Searcher(self.settings.model_copy(update={"kind": "greedy", "nbest": 1}))
        answers = self.generator.answer(self._encoded(given), greedy, outputs)
        return [hypothesis for [hypothesis] in answers]

    def begin(self, given: Mapping[str, Padded]) -> Value:
        """From the inputs to the state before the first step, and the values of every step."""
        prefix = given.get(PREFIX)
        encoded = self._encoded(given)
        if prefix is not None:
            prefix = Padded(F.pad(prefix.values, (0, 1)), F.pad(prefix.mask, (0, 1)))
        state, prepared = self.generator.start(encoded)
        most = self.generator.longest(encoded)
        count = beam_rows(self.settings)
        longest = torch.tensor(self.settings.max_length)
        if most is not None:  # a sum of ones, which stays symbolic
            longest = torch.ones(most).long().sum()
        known = {"prepared": prepared, "mask": encoded.mask.clone()}
        known |= {"longest": longest, FORCED: prefix}
        problem = self._problem(known, state.repeat(count))
        running = KINDS[self.settings.kind].begun(problem)
        if running.output is not None:
            running = replace(running, output=self._nothing_output(running.token))
        if isinstance(running, BeamRunning) and self.settings.coverage_penalty:
            nothing_BS = torch.zeros_like(encoded.mask, dtype=torch.float32)
            running = replace(running, covered=nothing_BS.repeat_interleave(count, dim=0))
        return {**known, "running": self._split(running)}

    def step(self, value: Value) -> Value:
        """From the state after `made` steps to that after one more, with its column."""
        running = self._joined(value["running"])
        problem = self._problem(value, running.state)
        after, column = KINDS[self.settings.kind].advanced(problem, running, value["made"])
        columns = column.mapped(self._by_source)
        return {"after": self._split(after), "column": columns, "goes": after.going().any()}

    def greedy(self, value: Value) -> Value:
        """The hypotheses of greedy search, from the columns of all steps, (T, B, 1, …)."""
        running = self._joined(value["running"])
        column = value["column"].mapped(lambda tensor: tensor[:, :, 0].transpose(0, 1))
        problem = self._problem(value, running.state)
        ends = row_ends(problem, column.token, column.gained, running.total, column.weights)
        tokens, *others = (tensor.unsqueeze(1) for tensor in ends)
        weights = None if column.weights is None else column.weights.unsqueeze(1)
        return _found(tokens, others, weights)

    def ends(self, value: Value) -> Value:
        """The ends of the hypotheses of a beam, the best first, and the number of steps."""
        running = value["running"]
        ended = best_ends(self._problem(value, running.state), running.pool, running.last)
        steps = torch.ones(value["column"].token.shape[0]).long().sum()
        return {"ended": ended, "row": ended.row.clone(), "steps": steps}

    def back(self, value: Value) -> Value:
        """One step backwards after `made`: the token of each hypothesis, and its row before it."""
        column, row_BN = value["column"], value["row"]
        step_1 = (column.token.shape[0] - 1 - value["made"]).reshape(1)
        token_R = column.token.index_select(0, step_1).flatten()
        parent_R = column.parent.index_select(0, step_1).flatten()
        before_BN = row_before(step_1, parent_R, row_BN, value["ended"].count)
        return {"after": before_BN, "trace": {"token": token_R[row_BN], "row": before_BN.clone()}}

    def beam(self, value: Value) -> Value:
        """The hypotheses of beam search, from all steps backwards, (T, B, N)."""
        ended = value["ended"]
        weights_BNTS = None
        tokens_BNT = value["trace"]["token"].flip(0).permute(1, 2, 0)
        rows_BNT = value["trace"]["row"].flip(0).permute(1, 2, 0)
        if value["column"].weights is not None:
            weights_TRS = value["column"].weights.flatten(1, 2)
            weights_BNTS = weights_TRS[torch.arange(weights_TRS.shape[0]), rows_BNT]
        ends = ended.score, ended.log_probability, ended.count, ended.finished
        return _found(tokens_BNT, ends, weights_BNTS)

    def _encoded(self, given: Mapping[str, Padded]) -> Encoded:
        if PREFIX in given:
            return self.network.encode(
                {NOTHING: given[PREFIX].mapped(lambda tensor: tensor[:, :0])}
            )
        inputs = {name: self._seen(name, padded) for name, padded in given.items()}
        return self.network.encode(inputs)

    def _seen(self, name: str, given: Padded) -> Padded:
        """The input of an encoder: features where a frozen backbone computes them from pixels."""
        if name not in self.extractors:
            return given
        side = self.extractors[name].pixels
        (rows, frames, _) = given.values.shape
        features = self.extractors[name].features(given.values.reshape(-1, 3, side, side))
        return replace(given, values=features.reshape(rows, frames, features.shape[1]))

    def _problem(self, value: Value, state: Rows) -> SearchProblem:
        """The problem of a search from the values of a stage; the state has R rows."""
        rows = beam_rows(self.settings)
        settings = self.settings
        prepared = value.get("prepared")
        if prepared is not None and not self.generator.grouped:
            prepared = prepared.repeat(rows)
        prefix: Padded | None = value.get(FORCED)
        return SearchProblem(
            step=self._scored,
            state=state,
            prepared=prepared,
            longest=value.get("longest"),  # type: ignore[arg-type] # a tensor, since a graph is for any
            rows=rows,
            settings=settings,
            special=self.generator.special,
            ranking=ranking_of(settings, value.get("mask"), rows),
            prefix=None if prefix is None else prefix.repeat(rows),
        )

    def _scored(self, token: Tensor, state: Rows, prepared: Prepared) -> tuple[StepOutput, Rows]:
        """A step; where the vocabulary depends on the source, padded for a beam's comparisons."""
        output, state = self.generator.step(token, state, prepared)
        if self.settings.kind == "beam" and not isinstance(output.scores.shape[1], int):
            more = F.pad(output.log_probabilities, (0, 2 * self.settings.width), value=NEVER)
            output = replace(output, scores=more, are_logits=False)
        return output, state

    def _nothing_output(self, token_R: Tensor) -> Tensor:
        """Tokens (R, n) without a repeated n-gram of outputs: two that are never output."""
        special = self.generator.special
        never = sorted({special.go, *special.banned} - {special.stop})
        if len(never) < 2:
            raise RunError(
                "no_repeat_ngram cannot be in a graph of this decoder, "
                "which may output all tokens; set it to 0."
            )
        columns = [never[0], *[never[1]] * (self.settings.no_repeat_ngram - 1)]
        return torch.tensor(columns).expand(token_R.shape[0], -1)

    def _by_source(self, tensor: Tensor) -> Tensor:
        return torch.unflatten(tensor, 0, (-1, beam_rows(self.settings)))

    def _split(self, running: Any) -> Any:
        """The state with the rows of a source as a dimension of their own."""
        return _of_rows(running, self._by_source)

    def _joined(self, running: Any) -> Any:
        """The state with all rows in one dimension."""
        return _of_rows(running, lambda tensor: tensor.flatten(0, 1))


def _of_rows(running: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Change the tensors with a row for each hypothesis; a beam has some for each source too."""
    if not isinstance(running, BeamRunning):
        return running.mapped(change)
    changed: dict[str, Any] = {
        name: None if getattr(running, name) is None else change(getattr(running, name))
        for name in ("token", "covered", "output")
    }
    return replace(running, state=running.state.mapped(change), **changed)


def _found(tokens_BNT: Tensor, ends_BN: Iterable[Tensor], weights_BNTS: Tensor | None) -> Value:
    """Hypotheses as the graph gives them, with `<pad>` behind their ends."""
    score_BN, log_BN, count_BN, finished_BN = (tensor.clone() for tensor in ends_BN)
    real_BNT = torch.arange(tokens_BNT.shape[2]) < count_BN.unsqueeze(2)
    tokens = {"tokens": torch.where(real_BNT, tokens_BNT, PAD), "length": count_BN}
    scores = {"log_probability": log_BN, "score": score_BN, "finished": finished_BN}
    return {**tokens, **scores, **({} if weights_BNTS is None else {"weights": weights_BNTS})}
