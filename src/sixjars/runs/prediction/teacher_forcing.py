"""Teacher forcing of given outputs with a trained run: token probabilities, and attention.

Dims: B batch, T target positions, S source positions.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, final

import torch

from sixjars.data.dataset import Dataset
from sixjars.evaluation.posterior import posterior_of
from sixjars.evaluation.score import encoded_batches
from sixjars.flow.searching import Hypothesis
from sixjars.kernels.backends import Device, device_named
from sixjars.loss import truth_loss
from sixjars.model.build import Network
from sixjars.progress import number_of, tell
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.data.scored_files import file_dataset
from sixjars.runs.folder.run_folder import open_run
from sixjars.runs.prediction.prediction import Prediction
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.requests import (
    EncodedRequests,
    Input,
    Request,
    SearchResult,
    encoded_usable,
)
from sixjars_runtime.errors import SixJarsError, hint, shown, unknown
from sixjars_runtime.special_tokens import SPECIAL, STOP, UNK

MOST_LABELS = 50
"""Labels that a message lists."""


def teacher_forced(
    network: Network, dataset: Dataset, *, examples: int, posterior: bool = False
) -> Iterator[tuple[int, SearchResult, tuple[float, ...]]]:
    """Teacher forcing of a dataset: each row, by batches and so not in the order of the rows.

    With it comes its output as search would have found it, without tokens for an unknown label, and
    the log probability of each token, given those before it; that of `<stop>` too. With
    `posterior`, weights are those after each token was seen (`evaluation.posterior`).
    """
    searches = network.decoder.searches
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
            ends = searches and count > 0 and targets[at][count - 1] == STOP
            each = tuple(-loss for loss in losses[at][:count])
            hypothesis = Hypothesis(
                tuple(targets[at][: count - ends]),
                score=sum(each),
                log_probability=sum(each),
                weights=tuple(tuple(step[:length]) for step in weights[at][:count]),
                finished=ends or not searches,
            )
            yield row, SearchResult([hypothesis], length, encoded.layout), each


def forced_predictions(
    predictor: Predictor,
    inputs: Iterable[Input],
    outputs: Sequence[str],
    *,
    first: int = 0,
    posterior: bool = False,
) -> list[Prediction]:
    """A prediction for each input whose output is the given one.

    `first` is how many came before, `posterior` that of `teacher_forced`.
    """
    requests = [
        with_output(predictor, value, output, number)
        for number, (value, output) in enumerate(zip(inputs, outputs, strict=True), start=first)
    ]
    encoded, good, wrong = encoded_usable(predictor.encode, requests)
    predictions = {at: _failed(predictor, requests[at], wrong[at]) for at in wrong}
    if encoded is not None:
        predictions |= zip(good, _predictions(predictor, encoded, posterior=posterior), strict=True)
    return [predictions[at] for at in range(len(requests))]


def with_output(predictor: Predictor, one: Input, output: str, number: int = 0) -> Request:
    """An input with its output, checked."""
    request = predictor.prepare(one, number=number)
    field = predictor.fields.output
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
    examples, name = predictor.recipe.evaluation.batch_examples, predictor.fields.output.name
    forced = teacher_forced(
        predictor.network, encoded.dataset, examples=examples, posterior=posterior
    )
    by_row = {row: result for row, result, _ in forced}
    results = [by_row[row] for row in range(len(encoded.requests))]
    finished = predictor.finish(encoded, results, SearchSettings())
    for at, (request, [best]) in enumerate(zip(encoded.requests, finished, strict=True)):
        if results[at].hypotheses[0].tokens:
            tokens = _named(best.tokens, encoded.dataset, at)
            yield replace(best, text=request.texts[name], tokens=tokens)
        else:
            reason = _unknown(predictor, request.texts[name])
            yield _failed(predictor, request, f"input {request.number + 1}: {reason}")


def _named(tokens: tuple[str, ...], dataset: Dataset, row: int) -> tuple[str, ...]:
    """The tokens of a given output, an unknown one with its word."""
    if SPECIAL[UNK] not in tokens:
        return tokens
    words = dataset.fields.output.positions(dataset.table, row, len(tokens)).tokens
    named = list(tokens)
    for at, word in enumerate(words[: len(named)]):
        if named[at] == SPECIAL[UNK]:
            named[at] = word
    return tuple(named)


def _unknown(predictor: Predictor, output: str) -> str:
    """A sentence about an output that the run has no number for, with labels that it knows."""
    name = predictor.fields.output.name
    known = list(getattr(predictor.fields.output, "names", ()))
    if len(known) <= MOST_LABELS:
        return unknown(f"the {name}", output, known)
    similar = hint(output, known)
    return f"the {name} {shown(output)} is unknown.{similar} The run knows {len(known):,}."


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
    """The log probability of each token, given those before it."""
    line: int = 0
    """The line in its file, counted from 1."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        values = asdict(self)
        inputs = values.pop("inputs")
        return {"input": next(iter(inputs.values()), "") if len(inputs) < 2 else inputs} | values


def score_outputs(
    folder: str | Path, data: str | Path, *, device: Device = "auto", allow: Iterable[str] = ()
) -> list[ScoredOutput]:
    """The log probability of each output of a file with the columns of the run, in its order.

    A label that the run did not learn has no number, so its log probability is -inf.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     _ = Path(f"{folder}/pairs.jsonl").write_text('{"roman": "ghar", "devanagari": "घर"}')
    ...     [scored] = score_outputs(run.folder, f"{folder}/pairs.jsonl")
    >>> len(scored.tokens), scored.log_probability < 0
    (3, True)
    """
    run = open_run(Path(folder), AllowedCode(tuple(allow)))
    _, fields, network = run.loaded(device_named(device))
    dataset = file_dataset(run.recipe, fields, data)
    if dataset.skipped:
        rows = number_of(dataset.skipped, "bad row")
        tell(f"left out: {rows} of {data}; --json has the line of each of the others.")
    scored = dict(_scored(network, dataset, examples=run.recipe.evaluation.batch_examples))
    return [scored[row] for row in range(len(dataset))]


def _scored(
    network: Network, dataset: Dataset, *, examples: int
) -> Iterator[tuple[int, ScoredOutput]]:
    output, texts = dataset.fields.output, dataset.table.texts(dataset.fields.output.name)
    for row, result, each in teacher_forced(network, dataset, examples=examples):
        [forced] = result.hypotheses
        total = sum(each) if each else float("-inf")
        stop = ["<stop>"] if forced.finished and network.decoder.searches else []
        tokens = (*output.tokens(forced.tokens, dataset.source_words(row)), *stop)
        line = dataset.table.line(row)
        yield row, ScoredOutput(dataset.raw(row), texts[row], total, tokens, each, line)
