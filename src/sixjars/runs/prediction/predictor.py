"""Prediction with a trained run: texts, images, videos or points in; texts or labels out.

It goes in steps: `prepare` checks an input, `encode` makes tensors of some, `run` computes,
`finish` makes text of the outputs. A prediction never depends on the other inputs of a batch, one
bad input spoils only its own prediction, and all of it may be called from several threads at once.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from pathlib import Path
from typing import Any, final, overload

from sixjars.data.dataset import Dataset, InputRows
from sixjars.data.field import Field
from sixjars.evaluation.score import encoded_batch, hypotheses_of
from sixjars.flow.values import Padded
from sixjars.kernels.backends import Device, device_named, in_precision
from sixjars.kernels.products import Precision
from sixjars.recipe.allowed_code import AllowedCode
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.folder.run_folder import RunFolder, open_run
from sixjars.runs.prediction.prediction import Prediction, PredictionBuilder
from sixjars.runs.prediction.requests import (
    Check,
    EncodedRequests,
    Encoding,
    Input,
    Request,
    SearchLike,
    SearchResult,
    SingleInput,
    Value,
    by_name,
    most_together,
    not_utf8,
    search_of,
    unfit,
)
from sixjars_runtime.containers import inputs_of
from sixjars_runtime.errors import DataError, SixJarsError
from sixjars_runtime.search_requests import Ability


@final
class Predictor:
    """A trained run in memory.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     predictor = sixjars.load(run.folder)
    >>> [len(outputs) for outputs in predictor.nbest(["ghar", "namaste"])]
    [1, 1]
    """

    def __init__(
        self, run: RunFolder, *, device: Device = "auto", precision: Precision = "32"
    ) -> None:
        self.folder = run.folder
        self.recipe = run.recipe
        self.device = device_named(device)
        _, self.fields, network = run.loaded(self.device, places=[Path()])
        self.network = in_precision(network, precision)

    @property
    def has_attention(self) -> bool:
        """Whether predictions have attention weights."""
        return self.network.decoder.has_attention

    @property
    def ability(self) -> Ability:
        """The options of a request that this run can follow."""
        return Ability(
            self.network.decoder.searches,
            self.has_attention,
            multi_label=self.fields.output.multi_label,
        )

    @property
    def inputs(self) -> dict[str, Field]:
        """The fields that are read; where none is, the output, which is given its beginning."""
        return dict(self.fields.inputs) or {self.fields.output.name: self.fields.output}

    @property
    def columns(self) -> dict[str, str | int]:
        """The column that each input was trained on, by name or number."""
        return {name: column for name, column in self.all_columns.items() if name in self.inputs}

    @property
    def all_columns(self) -> dict[str, str | int]:
        """The column of each input and of the output, by name or number."""
        data = self.recipe.data
        columns: dict[str, str | int] = {}
        for name, settings in data.fields.items():
            columns[name] = settings.column
        if data.sample is not None:
            from sixjars.samples import sample_columns

            columns.update(sample_columns(self.recipe))
        return {name: columns[name] for name in self.fields.all}

    @overload
    def predict(
        self, inputs: SingleInput, *, search: SearchLike = None, nbest: None = None, **settings: Any
    ) -> Prediction: ...
    @overload
    def predict(
        self,
        inputs: Iterable[Input],
        *,
        search: SearchLike = None,
        nbest: None = None,
        **settings: Any,
    ) -> list[Prediction]: ...
    @overload
    def predict(
        self, inputs: Any, *, search: SearchLike = None, nbest: int | None = None, **settings: Any
    ) -> Any: ...
    def predict(
        self, inputs: Any, *, search: SearchLike = None, nbest: int | None = None, **settings: Any
    ) -> Any:
        """The best output for each input of a list, or for one input.

        For a language model a text is how the output begins. A table (pandas, Polars, Arrow,
        `datasets`) gives the columns of the run, a Series or an array its values. `search` is
        `greedy`, `beam` or `sample` with keywords of `SearchSettings` beside it, or such settings,
        or the run's own. With `nbest=3` there is a list of outputs in place of each best one. An
        input that cannot be used has a prediction with an `error` and no text.
        """
        items, is_one = self._items(inputs)
        if nbest is not None:
            settings["nbest"] = nbest
        outputs = self._outputs(items, search, settings)
        predictions = [best[0] for best in outputs] if nbest is None else outputs
        return predictions[0] if is_one else predictions

    def nbest(
        self,
        inputs: Iterable[Input],
        *,
        search: SearchLike = None,
        first: int = 0,
        details: bool = True,
        threads: Executor | None = None,
        **settings: Any,
    ) -> list[list[Prediction]]:
        """The outputs for each input, always as lists, as many as the search settings say.

        Where the inputs are a portion of more, `first` is how many came before; then samples of
        different portions are different draws. The same inputs with the same settings always give
        the same outputs. Without `details` a prediction has no tokens and no weights, which is
        faster. `threads` compute several batches at a time.
        """
        items, is_one = self._items(inputs)
        if is_one:
            raise DataError("give a list of inputs, not one input.")
        return self._outputs(items, search, settings, first, details=details, threads=threads)

    def _items(self, inputs: Any) -> tuple[list[Any], bool]:
        """The inputs of a call, and whether it is one alone."""
        if isinstance(inputs, str):
            return [inputs], True
        self._check_no_file(inputs)
        return inputs_of(inputs, self.columns, self._takes)

    def _outputs(
        self,
        items: Sequence[Input],
        search: SearchLike,
        settings: Mapping[str, Any],
        first: int = 0,
        *,
        details: bool = True,
        threads: Executor | None = None,
    ) -> list[list[Prediction]]:
        """The outputs for inputs that are numbered from `first`."""
        chosen = search_of(self.recipe.evaluation.search, search, settings, self.ability)
        requests = [
            self.prepare(item, number=number, search=chosen)
            for number, item in enumerate(items, start=first)
        ]
        return self.predictions(requests, chosen, details=details, threads=threads)

    def predictions(
        self,
        requests: Sequence[Request],
        search: SearchSettings,
        *,
        details: bool,
        threads: Executor | None = None,
        check: Check | None = None,
    ) -> list[list[Prediction]]:
        """The outputs for each request, in batches of like length; what `check` raises ends it."""
        wrong = {at: request.error for at, request in enumerate(requests) if request.error}
        predictions: dict[int, list[Prediction]] = {}

        def predict(rows: list[int]) -> None:
            if check is not None:
                check()
            encoded, bad = self.encode([requests[row] for row in rows], check)
            wrong.update({rows[at]: sentence for at, sentence in bad.items()})
            good = [row for at, row in enumerate(rows) if at not in bad]
            if encoded is not None:
                outputs = self.run(encoded, search, attention=details, check=check)
                finished = self.finish(encoded, outputs, search, details=details)
                predictions.update(zip(good, finished, strict=True))

        list((map if threads is None else threads.map)(predict, self._portions(requests)))
        for row, sentence in wrong.items():
            predictions[row] = [Prediction("", inputs=requests[row].texts, error=sentence)]
        return [predictions[row] for row in range(len(requests))]

    def prepare(
        self, value: Input, *, number: int = 0, search: SearchSettings | None = None
    ) -> Request:
        """Check one input; `number` is its place among all."""
        names = list(self.inputs)
        texts: dict[str, str] = {}
        try:
            self._check_no_file(value)
            values = self._by_field(value)
            texts = {name: self._text_of(name, values[name]) for name in names}
            for name, field in self.fields.inputs.items():
                field.check(texts[name], texts)
            if not self.fields.inputs:
                self._check_prefix(texts[names[0]], search or self.recipe.evaluation.search)
        except (ValueError, SixJarsError) as error:
            return Request(texts, number, f"input {number + 1}: {error}")
        return Request(texts, number)

    def _by_field(self, value: Input) -> Mapping[str, Value]:
        """The values of one input; ValueError with the end of a sentence."""
        names = list(self.inputs)
        if isinstance(value, str) and len(names) == 1:
            return {names[0]: value}
        return by_name(value, self.columns)

    def _check_no_file(self, value: Any) -> None:
        """Refuse the path of a file where texts are read: its name is not what is in it."""
        if isinstance(value, os.PathLike) and not any(
            field.is_media for field in self.inputs.values()
        ):
            name = os.fspath(value)
            raise DataError(
                f"{name} is the path of a file, but texts are read here: give a table, "
                f"predict(pandas.read_csv({name!r})), or its lines, predict(open({name!r}).read().splitlines()); the "
                f"command reads files: sixjars predict {self.folder} --input {name}"
            )

    def _takes(self, name: str, value: list[Any]) -> bool:
        """Whether a list is one value of a field."""
        try:
            self.inputs[name].text_of(value)
        except (ValueError, SixJarsError):
            return False
        return True

    def _text_of(self, name: str, value: Value) -> str:
        text = self.inputs[name].text_of(value)
        if wrong := not_utf8(text, name):
            raise ValueError(wrong)
        return text

    def _prefix(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids that each output must begin with."""
        output = self.fields.output
        return output.encoders()[output.name].encode(texts)

    def _check_prefix(self, text: str, search: SearchSettings) -> None:
        [ids] = self._prefix([text])
        if len(ids) >= search.max_length:
            most = f"but an output has at most {search.max_length} (max_length)"
            raise ValueError(f"has {len(ids)} tokens, {most}, so nothing could follow.")

    def _portions(self, requests: Sequence[Request]) -> Iterator[list[int]]:
        """Row numbers, those of like length together, so that little is padded."""
        good = [row for row, request in enumerate(requests) if request.error is None]
        order = sorted(good, key=lambda row: sum(map(len, requests[row].texts.values())))
        size = most_together(self.recipe.evaluation.batch_examples, self.fields.inputs.values())
        for at in range(0, len(order), size):
            yield order[at : at + size]

    def encode(self, requests: Sequence[Request], check: Check | None = None) -> Encoding:
        """Requests encoded as training data is, and a sentence for each that cannot be used.

        Fields are copied, so that a call keeps the features of its files to itself, and they go
        with it.
        """
        fields = self.fields.mapped(
            lambda field: field.equipped(
                replace(field.equipment, check=check or field.equipment.check)
            )
        )
        names = requests[0].texts
        columns = {name: [request.texts[name] for request in requests] for name in names}
        try:
            examined, wrong = fields.examined(columns)
            if not wrong:
                dataset = Dataset(InputRows(examined, fields.encoders()), fields, "input")
                wrong = unfit(dataset)
            if not wrong:
                prefix = None if fields.inputs else Padded.of(self._prefix(*columns.values()))
                batch = fields.encode(dataset.table)
                return EncodedRequests(tuple(requests), dataset, batch, prefix), {}
            faults = {at: f"input {requests[at].number + 1}: {wrong[at]}" for at in sorted(wrong)}
        except DataError as error:
            if len(requests) == 1:
                message = str(error).replace(" of line 1 ", " ", 1)
                return None, {0: f"input {requests[0].number + 1}: {message}"}
            faults = self._each(requests, check)
            if not faults:  # no input is to blame
                raise
        return self._without(faults, requests, check)

    def _without(
        self, faults: dict[int, str], requests: Sequence[Request], check: Check | None
    ) -> Encoding:
        """The other requests encoded."""
        others = [at for at in range(len(requests)) if at not in faults]
        if not others:
            return None, faults
        encoded, more = self.encode([requests[at] for at in others], check)
        return encoded, faults | {others[at]: sentence for at, sentence in more.items()}

    def _each(self, requests: Sequence[Request], check: Check | None) -> dict[int, str]:
        """The faults of requests, each encoded alone."""
        faults = {}
        for at, request in enumerate(requests):
            for sentence in self.encode([request], check)[1].values():
                faults[at] = sentence
        return faults

    def run(
        self,
        encoded: EncodedRequests,
        search: SearchSettings,
        *,
        attention: bool = True,
        check: Check | None = None,
    ) -> list[SearchResult]:
        """Compute encoder, bridge, decoder and search; attention weights where they are wanted."""
        tell = None if check is None or self.device.type != "cpu" else lambda *_: check()
        batch, source = encoded_batch(self.network, encoded.batch)
        rows = batch.numbers.tolist()
        outputs = hypotheses_of(
            self.network,
            source,
            search,
            seeds=[encoded.requests[row].number for row in rows],
            prefix=None if encoded.prefix is None else encoded.prefix.pick(batch.numbers),
            attention=attention,
            tell=tell,
        )
        lengths = source.mask.sum(1).tolist()
        results: dict[int, SearchResult] = {}
        for row, hypotheses, length in zip(rows, outputs, lengths, strict=True):
            results[row] = SearchResult(hypotheses, length, source.layout)
        return [results[row] for row in range(len(rows))]

    def finish(
        self,
        encoded: EncodedRequests,
        results: Sequence[SearchResult],
        search: SearchSettings,
        *,
        details: bool = True,
    ) -> list[list[Prediction]]:
        """Make predictions of outputs; `details` are tokens, weights and source positions."""
        positions_of = self.network.encoder.positions_of()
        builder = PredictionBuilder(encoded.dataset, positions_of, search, details=details)
        ends = self.network.decoder.searches
        predictions = []
        for row, (request, result) in enumerate(zip(encoded.requests, results, strict=True)):
            texts = {name: request.texts[name] for name in self.inputs}
            predictions.append(builder.predictions(row, result, texts, ends=ends))
        return predictions


def load(
    folder: str | os.PathLike[str],
    *,
    device: Device = "auto",
    precision: Precision = "32",
    allow: Iterable[str] = (),
    components: Iterable[Any] = (),
) -> Predictor:
    """A trained run (its folder, or a packed file), ready to be used.

    `allow` and `components` are as for `train`. With `precision` bf16 or int8 (on a CPU) matrix
    products have fewer bits, which is faster. No code in the run's files is executed.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     prediction = sixjars.load(run.folder).predict(["namaste"])[0]
    >>> prediction.source
    ('n', 'a', 'm', 'a', 's', 't', 'e')
    """
    run = open_run(folder, AllowedCode(tuple(allow), tuple(components)))
    return Predictor(run, device=device, precision=precision)
