"""How good a network is on a part of the data: what it writes, how probable the truth is, where it looks.

Dims: B batch, T target positions, S source positions.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import final

import torch
from torch import Tensor

from sixjars.evaluation.metrics import KeyWeight, Outcome, Score, focus_of, key_weight, metric_named, score
from sixjars.flow import Layout, Writer
from sixjars.loss.objective import truth_loss
from sixjars.model.network import Network
from sixjars.recipe.jars import EvaluationSettings, SearchSettings
from sixjars.tasks.answering import drawn_anew, found_by
from sixjars.tasks.part import Part


@final
@dataclass
class _Seen:
    """What was found out about one row."""

    candidates: tuple[str, ...] = ()
    log_probability: float | None = None
    tokens: int = 0
    links: frozenset[tuple[int, int]] | None = field(default=None)
    focus: float | None = None
    key: KeyWeight | None = None


def loss_of(network: Network, part: Part, *, examples: int) -> float:
    """-log P of a token of the truth, on average."""
    total, tokens = 0.0, 0
    for looked in _taught(network, part, examples):
        total, tokens = total + float(looked.loss_B.sum()), tokens + int(looked.count_B.sum())
    return total / max(tokens, 1)


def scores_of(
    network: Network,
    part: Part,
    settings: EvaluationSettings,
    metrics: Sequence[str],
    *,
    training: Part | None = None,
) -> list[Score]:
    """The metrics named, each with its signature, which also says how outputs were chosen.

    A metric over n best is scored on a search that finds as many; the others on the search that was asked for.
    """
    wanted = {name: max(metric_named(name).nbest, settings.search.nbest) for name in metrics}
    found: dict[str, Score] = {}
    for nbest in sorted(set(wanted.values())):
        some = [name for name in wanted if wanted[name] == nbest]
        found |= {one.name: one for one in score(outcomes_of(network, part, settings, some, training=training), some)}
    searched = isinstance(network.decoder, Writer)
    return [_with_search(found[name], settings.search) if searched else found[name] for name in wanted]


def _with_search(found: Score, settings: SearchSettings) -> Score:
    metric = metric_named(found.name)
    if "candidates" not in metric.needs:
        return found
    used = widened(settings, metric.nbest)
    chosen = used.model_dump(exclude_defaults=True, exclude={"kind", "nbest", "seed", "width"})
    told = [f"beam{used.width}" if used.kind == "beam" else used.kind, *(f"{k}:{v:g}" for k, v in chosen.items())]
    return replace(found, signature=f"{found.signature}|search:{','.join(told)}")


def outcomes_of(
    network: Network,
    part: Part,
    settings: EvaluationSettings,
    metrics: Sequence[str],
    *,
    training: Part | None = None,
) -> list[Outcome]:
    """What the metrics need to know of every example."""
    wanted = [metric_named(name) for name in metrics]
    needs = {need for metric in wanted for need in metric.needs}
    seen = [_Seen() for _ in range(len(part))]
    together = _together(part, group=settings.group)
    was_training = network.training
    network.eval()
    try:
        if needs & {"likelihood", "links", "focus", "key"}:
            _look(network, part, settings.batch_examples, seen, needs)
        if "candidates" in needs:
            nbest = max(metric.nbest for metric in wanted)
            first = {rows[0] for rows in together}
            _write(network, part, settings.batch_examples, widened(settings.search, nbest), seen, first)
    finally:
        network.train(was_training)
    familiar = frozenset(training.targets) if training is not None and "familiar" in needs else None
    return _outcomes(part, seen, together, familiar)


def widened(settings: SearchSettings, nbest: int) -> SearchSettings:
    """Search that finds as many hypotheses as a metric wants: greedy search becomes a beam for that."""
    if nbest <= settings.nbest:
        return settings
    kind = "beam" if settings.kind == "greedy" else settings.kind
    return settings.model_copy(update={"kind": kind, "nbest": nbest, "width": max(settings.width, nbest)})


def _device(network: Network) -> torch.device:
    return next(network.parameters()).device


@final
@dataclass(frozen=True)
class _Looked:
    """One batch of the truth: how surprising each row is, and where the network looked."""

    numbers: list[int]
    loss_B: Tensor
    count_B: Tensor
    weights_BTS: Tensor | None
    layout: Layout
    of_BS: Tensor | None
    """Which part of the source each position belongs to, where it has parts."""


def _taught(network: Network, part: Part, examples: int) -> Iterator[_Looked]:
    """The whole part, batch by batch."""
    batches = part.batches()
    was_training = network.training
    network.eval()
    try:
        for rows in batches.in_order(examples):
            batch = batches.collate(rows).to(_device(network))
            with torch.inference_mode():
                encoded = network.encode(batch.inputs)
                taught = network.decoder.teach(encoded, batch.target)
                loss_BT = truth_loss(taught, batch.target)
            parts = batch.inputs["source"].parts if "source" in batch.inputs else None
            of_BS = None if parts is None else parts.of
            counts_B = batch.target.mask.sum(1)
            yield _Looked(rows.tolist(), loss_BT.sum(1), counts_B, taught.weights, encoded.layout, of_BS)
    finally:
        network.train(was_training)


def _look(network: Network, part: Part, examples: int, seen: list[_Seen], needs: Collection[str]) -> None:
    for looked in _taught(network, part, examples):
        losses, counts = looked.loss_B.tolist(), looked.count_B.tolist()
        for at, row in enumerate(looked.numbers):
            seen[row].log_probability, seen[row].tokens = -losses[at], counts[at]
            if looked.weights_BTS is None:
                continue
            if "links" in needs:
                seen[row].links = _word_links(part, row, looked.weights_BTS[at].argmax(-1).tolist())
            if "key" in needs:
                seen[row].key = _key_of(part, row, looked, at)
            if "focus" in needs and part.boxes is not None and looked.layout.kind == "grid":
                height, width = looked.layout.shape
                weights = _of_words(part, row, looked.weights_BTS[at].tolist())
                boxes = [box for box in part.boxes[row] if box[0] < len(weights)]  # not those of words cut off
                seen[row].focus = focus_of(weights, (height, width), boxes)


def _key_of(part: Part, row: int, looked: _Looked, at: int) -> KeyWeight | None:
    """How much of the attention of a row lies where it should, where that is known."""
    key = part.keys[row] if part.keys is not None else None
    if key is None or looked.weights_BTS is None or looked.of_BS is None:
        return None
    count, (sentence, word) = part.length("source", row), key
    weights, of = looked.weights_BTS[at].mean(0)[:count].tolist(), looked.of_BS[at, :count].tolist()
    return key_weight(weights, of, sentence, word) if word < of.count(sentence) else None  # it may be cut off


def _of_words(part: Part, row: int, weights: list[list[float]]) -> list[list[float]]:
    """The weights of each word of the output: those of its first token. A label is one word."""
    if part.task.output == "label":
        return weights
    words = part.text("target").words_of(part.targets[row])[: part.length("target", row)]
    return [weights[words.index(word)] for word in dict.fromkeys(words)]


def _word_links(part: Part, row: int, best: list[int]) -> frozenset[tuple[int, int]]:
    """The word that each target word looks at most: argmax_j α_jt, from tokens to words."""
    source = part.text("source").words_of(part.inputs[row]["source"])
    target = part.text("target").words_of(part.targets[row])[: part.length("target", row)]
    return frozenset((source[best[position]], word) for position, word in enumerate(target))


def _write(
    network: Network, part: Part, examples: int, settings: SearchSettings, seen: list[_Seen], wanted: Collection[int]
) -> None:
    """What the network says of the wanted rows."""
    batches, output = part.batches(), part.task.output
    ordered = [row for rows in batches.in_order(examples) for row in rows.tolist() if row in wanted]
    for number, begin in enumerate(range(0, len(ordered), examples)):
        rows = ordered[begin : begin + examples]
        batch = batches.collate(torch.tensor(rows)).to(_device(network))
        with torch.inference_mode():
            hypotheses = found_by(network, network.encode(batch.inputs), drawn_anew(settings, number))
        for row, found in zip(rows, hypotheses, strict=True):
            beyond = part.fields.beyond(part.inputs[row], limited=True)
            seen[row].candidates = tuple(part.fields.text_of(output, said.tokens, beyond) for said in found)


def _together(part: Part, *, group: bool) -> list[list[int]]:
    """The rows of each example: one, or all that have the same input."""
    if not group:
        return [[row] for row in range(len(part))]
    found: dict[tuple[str, ...], list[int]] = {}
    for row, given in enumerate(part.inputs):
        found.setdefault(tuple(given.values()), []).append(row)
    return list(found.values())


def _outcomes(
    part: Part, seen: list[_Seen], together: list[list[int]], familiar: Collection[str] | None
) -> list[Outcome]:
    """One outcome for each example, with all its right answers."""
    outcomes = []
    for rows in together:
        first = rows[0]
        said = seen[first].candidates
        outcomes.append(
            Outcome(
                references=tuple(dict.fromkeys(part.targets[row] for row in rows)),
                candidates=said,
                log_probability=seen[first].log_probability,
                tokens=seen[first].tokens,
                links=seen[first].links,
                sure=None if part.alignments is None else part.alignments[first],
                focus=seen[first].focus,
                key=seen[first].key,
                given=next(iter(part.inputs[first].values()), None),
                familiar=None if familiar is None or not said else said[0] in familiar,
            )
        )
    return outcomes
