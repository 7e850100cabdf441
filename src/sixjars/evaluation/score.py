"""The scores of a network on a dataset: outputs, probabilities of the truth, attention.

Dims: B batch, T target positions, S source positions.
"""

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, final

import torch
from torch import Tensor

from sixjars.data.annotations import Links
from sixjars.data.batches import Batches
from sixjars.data.dataset import Dataset
from sixjars.decoding import Searcher
from sixjars.decoding.problem import Tell
from sixjars.evaluation.metrics import (
    Metric,
    Outcome,
    RationaleWeight,
    Score,
    focus_of,
    rationale_weight,
    score,
)
from sixjars.evaluation.metrics.attention import Box, boxes_of, linked, rationale_of
from sixjars.evaluation.metrics.table import value_alone, widened
from sixjars.evaluation.posterior import posterior_of
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Batch, Encoded, Padded
from sixjars.loss import truth_loss
from sixjars.model.build import Network
from sixjars.progress import counted
from sixjars.recipe.sections import EvaluationSettings, SearchSettings


def encoded_batches(
    network: Network, batches: Batches, *, examples: int, rows: Sequence[int] | None = None
) -> Iterator[tuple[Batch, Encoded]]:
    """Yield batches of all rows (or of `rows`), longest first, with their encodings.

    The network is in evaluation mode meanwhile; threads may share one that is in it already.
    """
    was_training = network.training
    if was_training:
        network.eval()
    try:
        for chosen in batches.in_order(examples, rows):
            yield encoded_batch(network, batches.collate(chosen))
    finally:
        if was_training:
            network.train()


def encoded_batch(network: Network, batch: Batch) -> tuple[Batch, Encoded]:
    """Return a batch on the device of a network in evaluation mode, and its encoding."""
    encode: Callable[..., Encoded] = network.encode
    if network.device.type == "cuda":
        from sixjars.evaluation.encoding import captured

        encode = captured(network)
    # the numbers of the rows stay on the CPU: reading them waits for no device
    moved = replace(batch.to(network.device), numbers=batch.numbers)
    with torch.inference_mode():
        return moved, encode(moved.inputs)


def hypotheses_of(
    network: Network,
    encoded: Encoded,
    search: SearchSettings,
    *,
    seeds: Sequence[int],
    prefix: Padded | None = None,
    attention: bool = True,
    tell: Tell | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses for each row of an encoded batch, best first.

    `seeds`, one for each row, are those of sampling. Without `attention` weights are left out,
    unless `unknown: replace` needs them. `tell` is called with the results of each step of search.
    """
    begun = None if prefix is None else prefix.to(network.device)
    # fewer bits than the encoder's, where that is wanted
    dtype = next(network.decoder.parameters()).dtype
    with torch.inference_mode():
        encoded = encoded.mapped(lambda x: x.to(dtype) if x.is_floating_point() else x)
        attention = attention or search.unknown == "replace"
        options: dict[str, Any] = {"attention": attention, "tell": tell}
        searcher = Searcher(search, seeds, backend=network.backend, **options)
        if encoded.device.type == "cuda" and begun is None and network.decoder.searches:
            from sixjars.decoding.capture import bucketed

            wider = bucketed(encoded)
            padding = [0] * (wider.rows - encoded.rows)
            searcher = replace(searcher, seeds=[*seeds, *padding], sources=encoded.rows)
            encoded = wider
        return network.decoder.answer(encoded, searcher, begun)


def spelled(
    dataset: Dataset, row: int, hypothesis: Hypothesis, search: SearchSettings
) -> tuple[Sequence[int], list[str]]:
    """Return the ids of a hypothesis, and the words of its source that ids may copy.

    With `unknown: replace`, `<unk>` becomes a copy of the source position with the most attention.
    """
    source = next(iter(dataset.fields.inputs.values()), None)
    if search.unknown != "replace" or source is None or not hypothesis.weights:
        return hypothesis.tokens, dataset.source_words(row)
    text = dataset.raw(row)[source.name]
    return dataset.fields.output.replacing_unknown(
        hypothesis.tokens, hypothesis.weights, source, text
    )


OF_TRUTH = frozenset({"likelihood", "links", "focus", "rationale"})
"""Needs that are computed by teacher forcing with the true output."""


@final
@dataclass(frozen=True)
class JudgedOutputs:
    """All that metrics need to know of a network on a dataset, computed in one pass."""

    loss: float
    """Mean -log P of a token of the truth; 0 where no metric needs it."""
    outcomes: dict[int, list[Outcome]]
    """One outcome for each example, by the number of outputs that a metric compares."""
    settings: EvaluationSettings
    searches: bool
    """Whether outputs were found by search."""
    given: Callable[[int], str | None]
    """The input of an example, by its place."""
    rows: Sequence[int]
    """The row of the dataset that each example is, or the first of those with its input."""

    def compared(self, metric: Metric) -> list[Outcome]:
        """The outcomes with as many candidates as a metric compares."""
        return self.outcomes[nbest_of(metric, self.settings)]

    @property
    def fingerprint(self) -> str:
        """A hash of all outputs and likelihoods, equal for networks that behave alike."""
        digest = hashlib.sha256()
        for outcome in chain.from_iterable(self.outcomes[count] for count in sorted(self.outcomes)):
            likelihood = round(outcome.log_probability or 0.0, 1)
            digest.update(repr((outcome.candidates, likelihood)).encode())
        return digest.hexdigest()[:16]

    def scores(self, metrics: Sequence[Metric]) -> list[Score]:
        """Compute the metrics; each signature also says how outputs were searched for."""
        scores = [score(self.compared(metric), [metric])[0] for metric in metrics]
        if not self.searches:
            return scores
        return [
            _with_search(value, widened(self.settings.search, metric.nbest))
            if "candidates" in metric.needs
            else value
            for metric, value in zip(metrics, scores, strict=True)
        ]

    def each(self, metrics: Sequence[Metric]) -> Iterator[dict[str, Any]]:
        """Yield each example: its input, references, output, and the scores it has by itself."""
        single = [metric for metric in metrics if metric.per_example]
        counts = {metric.name: nbest_of(metric, self.settings) for metric in single}
        for at, first in enumerate(self.outcomes[min(self.outcomes)]):
            yield {
                "input": self.given(at),
                "references": list(first.references),
                "output": first.candidates[0] if first.candidates else None,
                "scores": {
                    metric.name: value_alone(metric, self.outcomes[counts[metric.name]][at])
                    for metric in single
                },
            }


def nbest_of(metric: Metric, settings: EvaluationSettings) -> int:
    """How many outputs a metric compares: as many as it needs, or as the settings ask for."""
    return max(metric.nbest, settings.search.nbest)


def _with_search(value: Score, search: SearchSettings) -> Score:
    chosen = search.model_dump(exclude_defaults=True, exclude={"kind", "nbest", "seed", "width"})
    words = [f"beam{search.width}" if search.kind == "beam" else search.kind]
    for key, setting in chosen.items():
        words.append(f"{key}:{setting if isinstance(setting, str) else f'{setting:g}'}")
    return replace(value, signature=f"{value.signature}|search:{','.join(words)}")


def judged(
    network: Network,
    dataset: Dataset,
    settings: EvaluationSettings,
    metrics: Sequence[Metric],
    *,
    training: Dataset | None = None,
    with_loss: bool = False,
    progress: str = "",
) -> JudgedOutputs:
    """Compute all that the metrics need of every example; `progress` is the name it is shown by."""
    needs: set[str] = {need for metric in metrics for need in metric.needs}
    if with_loss:
        needs.add("likelihood")
    counts = sorted({nbest_of(metric, settings) for metric in metrics})
    searches = network.decoder.searches
    # Labels are not searched for: the widest list has all the others as its beginnings.
    used = {count: widened(settings.search, count if searches else counts[-1]) for count in counts}
    groups = groups_of(dataset, group=settings.group)
    rows = tuple(group[0] for group in groups)
    judge = _Judge(network, dataset, needs, set(rows), progress)
    chosen = set(used.values()) if "candidates" in needs else set()
    loss = judge.read(chosen, examples=settings.batch_examples)
    familiar = frozenset(training.targets) if training is not None and "familiar" in needs else None
    outcomes = {
        count: [judge.outcome(group, search, count, familiar) for group in groups]
        for count, search in used.items()
    }
    return JudgedOutputs(
        loss, outcomes, settings, searches, lambda at: given_of(dataset, rows[at]), rows
    )


def given_of(dataset: Dataset, row: int) -> str | None:
    """The text of the first input of a row."""
    return next(iter(dataset.inputs[row].values()), None)


def groups_of(dataset: Dataset, *, group: bool) -> list[list[int]]:
    """The rows of each example: one, or all that have the same input."""
    if not group:
        return [[row] for row in range(len(dataset))]
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, inputs in enumerate(dataset.inputs):
        groups.setdefault(tuple(inputs.values()), []).append(row)
    return list(groups.values())


def references_of(dataset: Dataset, group: Sequence[int]) -> tuple[str, ...]:
    """The right outputs of an example, each once."""
    return tuple(dict.fromkeys(dataset.targets[row] for row in group))


def true_boxes(dataset: Dataset) -> list[tuple[Box, ...]] | None:
    """True regions of words of the output, where the data has them."""
    name = dataset.fields.output.name
    return dataset.annotated(
        "boxes", lambda row, text: boxes_of(text, dataset.target_words_index[row][-1] + 1, name)
    )


def true_rationales(dataset: Dataset) -> list[tuple[int, int] | None] | None:
    """The sentence that decides each row, and its word, from 0, where the data has them."""
    return dataset.annotated(
        "rationale",
        lambda row, text: rationale_of(text, len(dataset.inputs[row]["source"].splitlines())),
    )


@final
class _Judge:
    """Runs a network over a dataset, and keeps the outputs and facts of each row."""

    def __init__(
        self, network: Network, dataset: Dataset, needs: set[str], firsts: set[int], progress: str
    ) -> None:
        self.network, self.dataset, self.needs, self.progress = network, dataset, needs, progress
        self.firsts = firsts
        """Rows to search outputs for: of those with the same input, the first."""
        self.found: dict[tuple[int, SearchSettings], tuple[str, ...]] = {}
        self.boxes = true_boxes(dataset) if "focus" in needs else None
        self.rationales = true_rationales(dataset) if "rationale" in needs else None
        self.facts: dict[int, dict[str, Any]] = {}
        """The fields of outcomes that teacher forcing computes, by row."""

    def read(self, searches: Collection[SearchSettings], *, examples: int) -> float:
        """Run the network over all batches; return the mean loss of a token."""
        of_truth = bool(OF_TRUTH & set(self.needs))
        total, tokens = 0.0, 0
        if not of_truth and not searches:
            return 0.0
        chosen = range(len(self.dataset)) if of_truth else sorted(self.firsts)
        batches = encoded_batches(
            self.network, self.dataset.batches(), examples=examples, rows=chosen
        )
        for batch, encoded in counted(
            batches, self.progress, rows=lambda pair: len(pair[0].numbers), total=len(chosen)
        ):
            if of_truth:
                loss_B, count_B = self._truth(batch, encoded)
                total, tokens = total + float(loss_B.sum()), tokens + int(count_B.sum())
            if searches:
                self._search(batch.numbers.tolist(), encoded, searches)
        return total / max(tokens, 1)

    def _search(
        self, rows: Sequence[int], encoded: Encoded, searches: Collection[SearchSettings]
    ) -> None:
        places = [at for at, row in enumerate(rows) if row in self.firsts]
        if len(places) < len(rows):
            encoded = encoded.pick(torch.tensor(places, dtype=torch.long, device=encoded.device))
        seeds = [rows[at] for at in places]
        for search in searches if places else ():
            outputs = hypotheses_of(self.network, encoded, search, seeds=seeds, attention=False)
            decode = self.dataset.fields.output.decode
            for row, hypotheses in zip(seeds, outputs, strict=True):
                self.found[row, search] = tuple(
                    decode(*spelled(self.dataset, row, each, search)) for each in hypotheses
                )

    def _truth(self, batch: Batch, encoded: Encoded) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            output = self.network.decoder.teach(encoded, batch.target)
            loss_B, count_B = truth_loss(output, batch.target).sum(1), batch.target.mask.sum(1)
            seen_BTS = None
            if "links" in self.needs:
                seen_BTS = posterior_of(self.network.decoder, encoded, batch.target)
        rows = zip(batch.numbers.tolist(), loss_B.tolist(), count_B.tolist(), strict=True)
        for at, (row, loss, count) in enumerate(rows):
            attention = dict[str, Any]()
            if output.weights is not None:
                attention = self._attention(row, output.weights[at], encoded, batch, at)
            if seen_BTS is not None:
                attention["explained"] = self._linked(row, seen_BTS[at])
            self.facts[row] = {"log_probability": -loss, "tokens": count, **attention}
        return loss_B, count_B

    def _attention(
        self, row: int, weights_TS: Tensor, encoded: Encoded, batch: Batch, at: int
    ) -> dict[str, Any]:
        """Compare the weights of a row with its true links, boxes and rationale."""
        facts = dict[str, Any]()
        if "links" in self.needs:
            facts["links"] = self._linked(row, weights_TS)
        if "rationale" in self.needs and self.rationales is not None:
            facts["rationale"] = _rationale(
                self.rationales[row], weights_TS, next(iter(batch.inputs.values())), at
            )
        if "focus" in self.needs and self.boxes is not None and encoded.layout.kind == "grid":
            height, width = encoded.layout.shape
            words, weights = self.dataset.target_words_index[row], weights_TS.tolist()
            # the weights of the first token of each word
            by_word = [weights[words.index(word)] for word in dict.fromkeys(words)]
            facts["focus"] = focus_of(by_word, (height, width), self.boxes[row])
        return facts

    def _linked(self, row: int, weights_TS: Tensor) -> Links:
        return linked(
            weights_TS.tolist(),
            self.dataset.source_words_index[row],
            self.dataset.target_words_index[row],
        )

    def outcome(
        self,
        group: Sequence[int],
        search: SearchSettings,
        count: int,
        familiar: Collection[str] | None,
    ) -> Outcome:
        dataset = self.dataset
        first = group[0]
        candidates = self.found.get((first, search), ())[:count]
        alignments = dataset.alignments if "links" in self.needs else None
        known = alignments[first] if alignments is not None else None
        return Outcome(
            references=references_of(dataset, group),
            candidates=candidates,
            sure=known and known.sure,
            possible=known and known.possible,
            given=given_of(dataset, first) if "given" in self.needs else None,
            familiar=None if familiar is None or not candidates else candidates[0] in familiar,
            **self.facts.get(first, {}),
        )


def _rationale(
    known: tuple[int, int] | None, weights_TS: Tensor, source: Padded, at: int
) -> RationaleWeight | None:
    """The attention of a row on its rationale, where that is known."""
    if known is None or source.segments is None:
        return None
    count = int(source.mask[at].sum())
    (sentence, word) = known
    sentences = source.segments.segment_of[at, :count].tolist()
    return rationale_weight(weights_TS.mean(0)[:count].tolist(), sentences, sentence, word)
