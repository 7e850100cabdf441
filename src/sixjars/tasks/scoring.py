"""How good a network is on a part of the data: what it writes, how probable the truth is, where it looks.

Dims: B batch, T target positions, S source positions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor

from sixjars.data.text import GO, PAD, STOP
from sixjars.evaluation.metrics import Outcome, Score, metric_named, score
from sixjars.evaluation.search import Marks, rows_per_source, search
from sixjars.flow import Batch, Hypothesis, Padded
from sixjars.loss.tokens import token_loss
from sixjars.model.network import Network
from sixjars.recipe.jars import EvaluationSettings, SearchSettings
from sixjars.tasks.corpus import Part

MARKS = Marks(go=GO, stop=STOP, banned=(PAD,))


@final
@dataclass
class _Seen:
    """What was found out about one row."""

    candidates: tuple[str, ...] = ()
    log_probability: float | None = None
    tokens: int = 0
    links: frozenset[tuple[int, int]] | None = field(default=None)


def found_by(
    network: Network, batch: Batch, settings: SearchSettings, *, prefix: Padded | None = None
) -> list[list[Hypothesis]]:
    """What search finds for each row of a batch, best first."""
    copies = rows_per_source(settings)
    with torch.inference_mode():
        encoded = network.encode(batch.inputs)
        state, carried = network.decoder.start(encoded)
        state, carried = state.spread(copies), carried.spread(copies)
        step = partial(network.decoder.step, carried=carried)
        begun = None if prefix is None else prefix.spread(copies)
        return search(step, state, settings, MARKS, prefix=begun, mask=carried.mask)


def drawn_anew(settings: SearchSettings, number: int) -> SearchSettings:
    """The settings for batch `number`: what is sampled there has a seed of its own, made from the one given."""
    if settings.kind != "sample":
        return settings
    seed = int(np.random.default_rng([settings.seed, number]).integers(2**63))
    return settings.model_copy(update={"seed": seed})


def loss_of(network: Network, part: Part, *, examples: int) -> float:
    """-log P of a token of the truth, on average."""
    total, tokens = 0.0, 0
    for batch, loss_B, count_B, _ in _taught(network, part, examples):
        del batch
        total, tokens = total + float(loss_B.sum()), tokens + int(count_B.sum())
    return total / tokens


def scores_of(network: Network, part: Part, settings: EvaluationSettings, metrics: Sequence[str]) -> list[Score]:
    """The metrics named, each with its signature, which also says how outputs were chosen.

    A metric over n best is scored on a search that finds as many; the others on the search that was asked for.
    """
    wanted = {name: max(metric_named(name).nbest, settings.search.nbest) for name in metrics}
    found: dict[str, Score] = {}
    for nbest in sorted(set(wanted.values())):
        some = [name for name in wanted if wanted[name] == nbest]
        found |= {one.name: one for one in score(outcomes_of(network, part, settings, some), some)}
    return [_with_search(found[name], settings.search) for name in wanted]


def _with_search(found: Score, settings: SearchSettings) -> Score:
    metric = metric_named(found.name)
    if "candidates" not in metric.needs:
        return found
    used = widened(settings, metric.nbest)
    chosen = used.model_dump(exclude_defaults=True, exclude={"kind", "nbest", "seed", "width"})
    told = [f"beam{used.width}" if used.kind == "beam" else used.kind, *(f"{k}:{v:g}" for k, v in chosen.items())]
    return replace(found, signature=f"{found.signature}|search:{','.join(told)}")


def outcomes_of(network: Network, part: Part, settings: EvaluationSettings, metrics: Sequence[str]) -> list[Outcome]:
    """What the metrics need to know of every example."""
    wanted = [metric_named(name) for name in metrics]
    needs = {need for metric in wanted for need in metric.needs}
    seen = [_Seen() for _ in range(len(part))]
    was_training = network.training
    network.eval()
    try:
        if needs & {"likelihood", "links"}:
            _look(network, part, settings.batch_examples, seen, links="links" in needs)
        if "candidates" in needs:
            nbest = max(metric.nbest for metric in wanted)
            _write(network, part, settings.batch_examples, widened(settings.search, nbest), seen)
    finally:
        network.train(was_training)
    return _outcomes(part, seen, group=settings.group)


def widened(settings: SearchSettings, nbest: int) -> SearchSettings:
    """Search that finds as many hypotheses as a metric wants: greedy search becomes a beam for that."""
    if nbest <= settings.nbest:
        return settings
    kind = "beam" if settings.kind == "greedy" else settings.kind
    return settings.model_copy(update={"kind": kind, "nbest": nbest, "width": max(settings.width, nbest)})


def _device(network: Network) -> torch.device:
    return next(network.parameters()).device


def _taught(network: Network, part: Part, examples: int) -> Iterator[tuple[Batch, Tensor, Tensor, Tensor | None]]:
    """For each batch: loss and tokens of each row, and the attention weights."""
    batches = part.batches()
    was_training = network.training
    network.eval()
    try:
        for rows in batches.in_order(examples):
            batch = batches.collate(rows).to(_device(network))
            with torch.inference_mode():
                taught = network(batch.inputs, batch.target)
                loss_BT = token_loss(taught.scores.float(), batch.target)
            yield batch, loss_BT.sum(1), batch.target.mask.sum(1), taught.weights
    finally:
        network.train(was_training)


def _look(network: Network, part: Part, examples: int, seen: list[_Seen], *, links: bool) -> None:
    for batch, loss_B, count_B, weights in _taught(network, part, examples):
        best_BT = None if weights is None else weights.argmax(-1).tolist()
        rows, losses, counts = batch.rows.tolist(), loss_B.tolist(), count_B.tolist()
        for at, (row, loss, count) in enumerate(zip(rows, losses, counts, strict=True)):
            seen[row].log_probability, seen[row].tokens = -loss, count
            if links and best_BT is not None:
                seen[row].links = _word_links(part, row, best_BT[at])


def _word_links(part: Part, row: int, best: list[int]) -> frozenset[tuple[int, int]]:
    """The word that each target word looks at most: argmax_j α_jt, from tokens to words."""
    source = part.tokens["source"].words_of(part.sources[row])
    target = part.tokens["target"].words_of(part.targets[row])[: part.length("target", row)]
    return frozenset((source[best[position]], word) for position, word in enumerate(target))


def _write(network: Network, part: Part, examples: int, settings: SearchSettings, seen: list[_Seen]) -> None:
    batches, tokens = part.batches(), part.tokens["target"]
    for number, rows in enumerate(batches.in_order(examples)):
        batch = batches.collate(rows).to(_device(network))
        hypotheses = found_by(network, batch, drawn_anew(settings, number))
        for row, found in zip(rows.tolist(), hypotheses, strict=True):
            seen[row].candidates = tuple(tokens.decode(hypothesis.tokens) for hypothesis in found)


def _outcomes(part: Part, seen: list[_Seen], *, group: bool) -> list[Outcome]:
    """One outcome for each row, or for each distinct input, with all its right answers."""
    together: dict[object, list[int]] = {}
    for row, source in enumerate(part.sources):
        together.setdefault(source if group else row, []).append(row)
    outcomes = []
    for rows in together.values():
        first = rows[0]
        outcomes.append(
            Outcome(
                references=tuple(dict.fromkeys(part.targets[row] for row in rows)),
                candidates=seen[first].candidates,
                log_probability=seen[first].log_probability,
                tokens=seen[first].tokens,
                links=seen[first].links,
                sure=None if part.alignments is None else part.alignments[first],
            )
        )
    return outcomes
