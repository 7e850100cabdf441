"""Teacher forcing of given outputs with a trained run: how probable each token is, and what the model attends to.

Dims: B batch, T target positions, S source positions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import torch

from sixjars.data.dataset import Dataset
from sixjars.evaluation.posterior import posterior_of
from sixjars.evaluation.score import encoded_batches
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Layout
from sixjars.learning.engine import Device, device_named
from sixjars.loss import truth_loss
from sixjars.model.build import Network
from sixjars.progress import number_of, tell
from sixjars.recipe.outside import Outside
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.data import Blueprint
from sixjars.runs.folder import open_run
from sixjars.runs.predict import Predictor
from sixjars.runs.prediction import Prediction
from sixjars.runs.requests import EncodedRequests, Found, Input, Request
from sixjars.runs.scored_files import file_dataset
from sixjars_runtime.errors import SixJarsError, hint, shown, unknown
from sixjars_runtime.special_tokens import SPECIAL, STOP, UNK

MOST_LABELS = 50
"""Labels that a message lists."""


@final
@dataclass(frozen=True)
class Taught:
    """What teacher forcing of one output gives."""

    ids: tuple[int, ...]
    """Of the output, without `<stop>`; empty where the run has no number for it, as for a label that is not known."""
    finished: bool
    """Whether it ends in `<stop>`."""
    log_probabilities: tuple[float, ...]
    """Of each token, given those before it; that of `<stop>` too."""
    weights: tuple[tuple[float, ...], ...]
    """A row for each token; empty without attention."""
    length: int
    """Positions of the source."""
    layout: Layout


def taught(
    network: Network, dataset: Dataset, *, examples: int, posterior: bool = False
) -> Iterator[tuple[int, Taught]]:
    """Each row of a dataset that has its outputs, in batches of so many examples and not in their order.

    With `posterior`, weights are those after each token was seen (`evaluation.posterior`).
    """
    for batch, encoded in encoded_batches(network, dataset.batches(), examples=examples):
        with torch.inference_mode():
            output = network.decoder.teach(encoded, batch.target)
            losses = truth_loss(output, batch.target).tolist()
            seen_BTS = posterior_of(network.decoder, encoded, batch.target) if posterior else None
            seen_BTS = output.weights if seen_BTS is None else seen_BTS
        weights = [[]] * len(losses) if seen_BTS is None else seen_BTS.tolist()
        counts, lengths = batch.target.mask.sum(1).tolist(), encoded.mask.sum(1).tolist()
        targets = batch.target.values.tolist()
        for at, row in enumerate(batch.numbers.tolist()):
            count, length = counts[at], lengths[at]
            ends = network.decoder.searches and count > 0 and targets[at][count - 1] == STOP
            yield (
                row,
                Taught(
                    ids=tuple(targets[at][: count - ends]),
                    finished=ends or not network.decoder.searches,
                    log_probabilities=tuple(-loss for loss in losses[at][:count]),
                    weights=tuple(tuple(step[:length]) for step in weights[at][:count]),
                    length=length,
                    layout=encoded.layout,
                ),
            )


def forced(
    predictor: Predictor,
    inputs: Iterable[Input],
    outputs: Sequence[str],
    *,
    first: int = 0,
    posterior: bool = False,
) -> list[Prediction]:
    """A prediction for each input whose output is the given one.

    `first` is how many came before, `posterior` that of `taught`.
    """
    requests = [
        with_output(predictor, one, output, first + at)
        for at, (one, output) in enumerate(zip(inputs, outputs, strict=True))
    ]
    found = {
        at: _failed(predictor, request, request.error)
        for at, request in enumerate(requests)
        if request.error
    }
    good = [at for at in range(len(requests)) if at not in found]
    encoded, bad = predictor.encode([requests[at] for at in good]) if good else (None, {})
    found |= {
        good[at]: _failed(predictor, requests[good[at]], sentence) for at, sentence in bad.items()
    }
    if encoded is not None:
        rows = [row for at, row in enumerate(good) if at not in bad]
        found |= zip(rows, _predictions(predictor, encoded, posterior=posterior), strict=True)
    return [found[at] for at in range(len(requests))]


def with_output(predictor: Predictor, one: Input, output: str, number: int = 0) -> Request:
    """An input with its output, checked."""
    request, field = predictor.prepare(one, number=number), predictor.fields.output
    if request.error is not None:
        return request
    texts = {**request.texts, field.name: output}
    try:
        field.check(output, texts)
    except (ValueError, SixJarsError) as error:
        return replace(request, error=f"input {number + 1}: {error}")
    return replace(request, texts=texts)


def _failed(predictor: Predictor, request: Request, sentence: str | None) -> Prediction:
    inputs = {name: text for name, text in request.texts.items() if name in predictor.inputs}
    return Prediction("", inputs=inputs, error=sentence)


def _predictions(
    predictor: Predictor, encoded: EncodedRequests, *, posterior: bool
) -> Iterator[Prediction]:
    """In the order of the requests."""
    examples, name = predictor.recipe.evaluation.batch_examples, predictor.fields.output.name
    rows = dict(taught(predictor.network, encoded.dataset, examples=examples, posterior=posterior))
    found = [_found(rows[row]) for row in range(len(encoded.requests))]
    made = predictor.finish(encoded, found, SearchSettings())
    for at, (request, [one], row) in enumerate(zip(encoded.requests, made, found, strict=True)):
        if row.hypotheses[0].tokens:
            yield replace(
                one, text=request.texts[name], tokens=_named(one.tokens, encoded.dataset, at)
            )
        else:
            yield _failed(
                predictor,
                request,
                f"input {request.number + 1}: {_unknown(predictor, request.texts[name])}",
            )


def _named(tokens: tuple[str, ...], dataset: Dataset, row: int) -> tuple[str, ...]:
    """The tokens of a given output, an unknown one with its word."""
    if SPECIAL[UNK] not in tokens:
        return tokens
    own = dataset.fields.output.positions(dataset.table, row, len(tokens)).tokens
    return tuple(
        own[at] if token == SPECIAL[UNK] and at < len(own) else token
        for at, token in enumerate(tokens)
    )


def _unknown(predictor: Predictor, given: str) -> str:
    """A sentence about an output that the run has no number for: a label, and those that it knows."""
    name, known = predictor.fields.output.name, list(getattr(predictor.fields.output, "names", ()))
    if len(known) <= MOST_LABELS:
        return unknown(f"the {name}", given, known)
    return (
        f"the {name} {shown(given)} is unknown.{hint(given, known)} The run knows {len(known):,}."
    )


def _found(row: Taught) -> Found:
    """A hypothesis as search would have found it."""
    total = sum(row.log_probabilities)
    return Found(
        [Hypothesis(row.ids, total, total, row.weights, row.finished)], row.length, row.layout
    )


@final
@dataclass(frozen=True)
class ScoredOutput:
    """One given output, and how probable it is."""

    inputs: dict[str, str]
    output: str
    log_probability: float
    """Natural log of P(output | input), `<stop>` included."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included; or the label."""
    token_log_probabilities: tuple[float, ...] = ()
    """Of each token, given those before it."""
    line: int = 0
    """Where it was in its file, counted from 1."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        given = next(iter(self.inputs.values()), "") if len(self.inputs) < 2 else self.inputs
        return {
            "input": given,
            "output": self.output,
            "log_probability": self.log_probability,
            "tokens": list(self.tokens),
            "token_log_probabilities": list(self.token_log_probabilities),
            "line": self.line,
        }


def score_outputs(
    folder: str | Path,
    data: str | Path,
    *,
    device: Device = "auto",
    allow: Iterable[str] = (),
) -> list[ScoredOutput]:
    """The log probability of each output of a file that has the columns of the run, in the order of its rows.

    A label that the run did not learn has no number, so its log probability is -inf.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     _ = Path(f"{folder}/pairs.jsonl").write_text('{"roman": "ghar", "devanagari": "घर"}')
    ...     [found] = score_outputs(run.folder, f"{folder}/pairs.jsonl")
    >>> len(found.tokens), found.log_probability < 0
    (3, True)
    """
    run = open_run(Path(folder), Outside(tuple(allow)))
    blueprint = Blueprint.of(run.recipe, run.outside, device=device_named(device))
    run.check_backbones(blueprint.fingerprints)
    fields = run.restored(blueprint.fields)
    network = run.network(blueprint, fields).to(device_named(device))
    dataset = file_dataset(run, fields, data)
    if dataset.skipped:
        rows = number_of(dataset.skipped, "bad row")
        tell(f"left out: {rows} of {data}; --json has the line of each of the others.")
    found = dict(_scored(network, dataset, examples=run.recipe.evaluation.batch_examples))
    return [found[row] for row in range(len(dataset))]


def _scored(
    network: Network, dataset: Dataset, *, examples: int
) -> Iterator[tuple[int, ScoredOutput]]:
    output, texts = dataset.fields.output, dataset.table.texts(dataset.fields.output.name)
    for row, found in taught(network, dataset, examples=examples):
        each = found.log_probabilities
        total = sum(each) if each else float("-inf")
        stop = ["<stop>"] if found.finished and network.decoder.searches else []
        tokens = (*output.tokens(found.ids, dataset.source_words(row)), *stop)
        yield (
            row,
            ScoredOutput(
                dataset.raw(row), texts[row], total, tokens, each, dataset.table.line(row)
            ),
        )
