"""An exported model in memory: inputs in, predictions out.

Dims: B batch, S source positions, V vocabulary or labels.
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from sixjars_runtime.containers import by_name, inputs_of
from sixjars_runtime.errors import DataError, RunError, SixJarsError
from sixjars_runtime.exported.graphs import ROWS, OnnxGraph, Sizes
from sixjars_runtime.exported.inputs import (
    READERS,
    FileReader,
    InputReader,
    ReadInput,
    TextReader,
    padded,
    plain_text,
    sizes_of,
)
from sixjars_runtime.exported.outputs import WRITERS, ExportedPrediction, OutputWriter, TextWriter
from sixjars_runtime.exported.search import SearchOutput, Tensors, outputs_of, search
from sixjars_runtime.exported.search_options import SearchOptions, special_tokens_of
from sixjars_runtime.exported.settings import (
    CHOOSE,
    ENCODER,
    NOTHING,
    PREFIX,
    SETTINGS,
    STEP,
    WHOLE,
    about_of,
    damaged,
    learned_of,
)
from sixjars_runtime.memory import MANY, SearchSize, free_memory
from sixjars_runtime.search_requests import Ability
from sixjars_runtime.special_tokens import SPECIAL, STOP
from sixjars_runtime.text.segments import has_half_character

FILES_AT_ONCE: Final = 32
"""Images or videos that are computed together."""
T = TypeVar("T")
LIKELY: Final = math.log(0.5)
"""One of several labels is chosen from this log probability on."""


@final
class Model:
    """An exported model in memory, as `load` gives it."""

    def __init__(self, folder: Path, *, threads: int) -> None:
        self.folder = folder
        self.about = about_of(folder)
        self.readers: dict[str, InputReader] = {
            name: self._with_learned(READERS[field["kind"]], name, field)
            for name, field in self.about["inputs"].items()
        }
        for name, reader in self.readers.items():
            if isinstance(reader, FileReader) and (folder / f"{name}.onnx").exists():
                backbone = OnnxGraph(folder / f"{name}.onnx", threads)
                sizes = {"pixels": (None, 3, reader.side, reader.side), "values": ROWS}
                backbone.check({"pixels"}, sizes, {})
                reader.computed_by(backbone)
        [(self.output, field)] = self.about["output"].items()
        self.writer: OutputWriter = self._with_learned(WRITERS[field["kind"]], self.output, field)
        self.searches: bool = self.about["special"] is not None
        self.is_whole = (folder / WHOLE).exists()
        with damaged(folder / SETTINGS):
            self.settings = SearchOptions.read(self.about["search"])
            if self.searches:
                size = self.writer.size or len(SPECIAL)
                self.special = special_tokens_of(self.about["special"], size)
            self._check_settings()
        first = ENCODER if self.searches else CHOOSE
        self.first = OnnxGraph(folder / (WHOLE if self.is_whole else first), threads)
        if self.searches and not self.is_whole:
            self.second = OnnxGraph(folder / STEP, threads)
        self._check_graphs()

    def _with_learned(self, kind: Callable[..., T], name: str, field: Mapping[str, Any]) -> T:
        path, learned = learned_of(self.folder, name)
        with damaged(path):
            return kind(name, field, learned)

    def _check_settings(self) -> None:
        """Check that words can be copied, and that a penalty for coverage has attention."""
        if self.settings.coverage_penalty and not self.about["has_attention"]:
            raise ValueError(
                f"search.coverage_penalty is {self.settings.coverage_penalty}, but has_attention "
                "is false"
            )
        fields = (*self.readers.values(), self.writer)
        texts = [field for field in fields if isinstance(field, TextReader | TextWriter)]
        if self.about["copies"] and not all(field.tokenizer.can_copy for field in texts):
            raise ValueError("copies is true, but the tokens are pieces of words")

    def _check_graphs(self) -> None:
        """Refuse graphs that do not fit each other, the settings and the vocabularies."""
        takes = sizes_of(self.readers, copies=self.about["copies"])
        if not takes:
            name = PREFIX if self.is_whole else NOTHING
            takes = {f"{name}.values": ROWS, f"{name}.mask": ROWS}
        size = None if self.about["copies"] else self.writer.size
        scores: dict[str, Sizes] = {"log_probabilities": (None, size)}
        needs: dict[str, Sizes] = {"mask": ROWS}
        if self.is_whole:
            needs |= dict.fromkeys(("score", "log_probability", "length", "finished"), ROWS)
            needs["tokens"] = (*ROWS, None)
            self.first.check(takes, needs, {"weights": (*ROWS, *ROWS)} | takes)
        elif not self.searches:
            self.first.check(takes, scores | needs, {"weights": ROWS} | takes)
        else:
            self.first.check(takes, needs, takes)
            self._check_step(scores)

    def _check_step(self, scores: Mapping[str, Sizes]) -> None:
        """Refuse a step that does not give back each part of the state that it takes."""
        begun = [name for name in self.first.outputs if name.startswith(("state.", "prepared."))]
        self.second.check({"token", *begun}, scores, {"weights": ROWS})
        states = sorted(name for name in self.second.inputs if name.startswith("state."))
        after = [name.replace("state.", "after.", 1) for name in states]
        if lacks := [name for name in after if name not in self.second.outputs]:
            raise self.second.fault(f"does not give {lacks[0]}, which it takes")

    def predict(
        self, inputs: Any, *, search: str | None = None, nbest: int | None = None, **settings: Any
    ) -> Any:
        """Predict the best output for each input of a list, or for one input.

        For a language model a text is how an output begins.

        `search` is `greedy`, `beam` or `sample`, with settings of search beside it; without them,
        they are the run's. With `nbest=3` there is a list of outputs in place of each best one. An
        input that cannot be used has a prediction with an `error` and no text.
        """
        items, is_one = inputs_of(inputs, self.about["columns"], self._takes)
        options = settings if nbest is None else {**settings, "nbest": nbest}
        outputs = self.nbest(items, search=search, **options)
        answers = [few[0] for few in outputs] if nbest is None else outputs
        return answers[0] if is_one else answers

    def nbest(
        self, inputs: Iterable[Any], *, search: str | None = None, **settings: Any
    ) -> list[list[ExportedPrediction]]:
        """Predict a list of outputs for each input, as many as the settings of search say."""
        items, is_one = inputs_of(inputs, self.about["columns"], self._takes)
        if is_one:
            raise DataError("give a list of inputs, not one input.")
        chosen = self._settings(search, settings)
        answers: dict[int, list[ExportedPrediction]] = {}
        rows: dict[int, dict[str, ReadInput]] = {}
        for at, item in enumerate(items):
            read = self._prepared(at, item, chosen)
            if isinstance(read, ExportedPrediction):
                answers[at] = [read]
            else:
                rows[at] = read
        size = self.about["batch_examples"]
        if any(isinstance(reader, FileReader) for reader in self.readers.values()):
            size = min(size, FILES_AT_ONCE)
        good = sorted(rows, key=lambda at: sum(len(row.values) for row in rows[at].values()))
        for begin in range(0, len(good), size):
            batch = good[begin : begin + size]
            outputs = self._answers(batch, [rows[at] for at in batch], chosen)
            answers.update(zip(batch, outputs, strict=True))
        return [answers[at] for at in range(len(items))]

    def _settings(self, search: str | None, settings: Mapping[str, Any]) -> SearchOptions:
        able = Ability(
            self.searches, self.about["has_attention"], multi_label=self.about["multi_label"]
        )
        able.check(search, settings)
        chosen = self.settings
        if search is not None or settings:
            chosen = chosen.changed(search, settings, able)
        if self.is_whole and chosen != self.settings:
            raise DataError(
                "the search of this model is inside its graph; to choose another, export without "
                "--whole."
            )
        return chosen

    def _prepared(
        self, number: int, item: Any, settings: SearchOptions
    ) -> dict[str, ReadInput] | ExportedPrediction:
        texts: dict[str, str] = {}
        try:
            values = by_name(item, self.about["columns"])
            texts = {name: self._text_of(name, value) for name, value in values.items()}
            if not self.readers:
                return {self.output: self._prefix(texts[self.output], settings)}
            rows = {name: reader.read(texts[name]) for name, reader in self.readers.items()}
            if self.about["copies"]:
                name, source = next(iter(self.readers.items()))
                assert isinstance(source, TextReader)
                assert isinstance(self.writer, TextWriter)
                rows[name] = source.copied(rows[name], self.writer.tokenizer)
            return rows
        except (ValueError, SixJarsError) as error:
            return ExportedPrediction("", inputs=texts, error=f"input {number + 1}: {error}")

    def _takes(self, name: str, value: list[Any]) -> bool:
        try:
            self._text_of(name, value)
        except (ValueError, SixJarsError):
            return False
        return True

    def _text_of(self, name: str, value: Any) -> str:
        read = self.readers[name].text_of if name in self.readers else plain_text
        try:
            text = read(value)
        except ValueError as error:
            raise ValueError(f"the {name} {error}") from None
        if has_half_character(text):
            raise ValueError(f"the {name} is not UTF-8 text (it holds half a character).")
        return text

    def _prefix(self, text: str, settings: SearchOptions) -> ReadInput:
        assert isinstance(self.writer, TextWriter)
        ids = self.writer.tokenizer.encode(text)
        if len(ids) >= settings.max_length:
            raise ValueError(
                f"has {len(ids)} tokens, but an output has at most {settings.max_length} "
                "(max_length), so nothing could follow."
            )
        return ReadInput(np.array(ids, dtype=np.int64), text)

    def _answers(
        self,
        numbers: Sequence[int],
        rows: Sequence[Mapping[str, ReadInput]],
        settings: SearchOptions,
    ) -> Iterator[list[ExportedPrediction]]:
        outputs = self.first(self._tensors(rows), rows=len(rows))
        if self.is_whole:
            hypotheses = _from_graph(outputs)
        elif self.searches:
            prefix = None if self.readers else padded([row[self.output] for row in rows])
            hypotheses = self._searched(outputs, settings, numbers, prefix)
        else:
            hypotheses = self._chosen(outputs, settings.nbest)
        lengths = outputs["mask"].sum(1).tolist()
        for row, best, length in zip(rows, hypotheses, lengths, strict=True):
            if not best or any(math.isnan(hypothesis.score) for hypothesis in best):
                raise self._no_numbers()
            yield [self._finished(row, hypothesis, length, settings) for hypothesis in best]

    def _tensors(self, rows: Sequence[Mapping[str, ReadInput]]) -> dict[str, NDArray[Any]]:
        columns = {name: [row[name] for row in rows] for name in self.readers}
        for name, reader in self.readers.items():
            if isinstance(reader, FileReader):
                columns[name] = reader.computed(columns[name])
        if not columns and self.is_whole:
            columns = {PREFIX: [row[self.output] for row in rows]}
        elif not columns:
            columns = {NOTHING: [ReadInput(np.zeros(0, dtype=np.int64), "")] * len(rows)}
        return {
            f"{name}.{part}": tensor
            for name, column in columns.items()
            for part, tensor in padded(column).items()
        }

    def _searched(
        self,
        outputs: Tensors,
        settings: SearchOptions,
        numbers: Sequence[int],
        prefix: Tensors | None,
    ) -> list[list[SearchOutput]]:
        state = {name: value for name, value in outputs.items() if name.startswith("state.")}
        prepared = {name: value for name, value in outputs.items() if name.startswith("prepared.")}

        def step(token: NDArray[Any], state: Tensors, prepared: Tensors) -> Any:
            outputs = self.second({"token": token, **state, **prepared}, rows=len(token))
            scores, weights = outputs.pop("log_probabilities"), outputs.pop("weights", None)
            if np.isnan(scores[:, 0]).any():  # then the whole row is, for its sum is
                raise self._no_numbers()
            after = {name.replace("after.", "state.", 1): value for name, value in outputs.items()}
            return scores, weights, after

        mask, beyond = outputs["mask"], self.about["longest_beyond"]
        (sources, positions), carried = mask.shape, [*state.values(), *prepared.values()]
        longest = settings.max_length if beyond is None else positions + beyond
        if sources * settings.rows >= MANY:  # before anything is copied for its rows
            copies = self.writer.size is None or self.about["copies"]
            SearchSize(
                sources=sources,
                rows=settings.rows,
                vocabulary=(self.writer.size or len(SPECIAL)) + positions * copies,
                steps=longest,
                positions=positions if self.about["has_attention"] else 0,
                state=sum(tensor.nbytes for tensor in carried) // sources,
                beam=settings.kind == "beam",
            ).check(free_memory())
        return search(
            step,
            state,
            prepared,
            settings,
            self.special,
            mask=mask,
            longest=longest,
            prefix=None if prefix is None else (prefix["values"], prefix["mask"]),
            seeds=numbers,
        )

    def _no_numbers(self) -> RunError:
        return RunError(
            f"{self.folder}: its graphs give no numbers (NaN), so nothing was found; export it "
            "again."
        )

    def _chosen(self, outputs: Tensors, nbest: int) -> list[list[SearchOutput]]:
        """Return the most probable labels of each row, or one set of all that apply."""
        weights = outputs.get("weights")
        hypotheses = []
        for at, log_V in enumerate(outputs["log_probabilities"]):
            attention = None if weights is None else weights[at : at + 1]
            order_V = np.argsort(-log_V, kind="stable")
            chosen = [((int(label),), float(log_V[label])) for label in order_V[:nbest]]
            if self.about["multi_label"]:
                count = max(1, int((log_V >= LIKELY).sum()))
                others = np.log1p(-np.exp(log_V[order_V[count:]].astype(np.float64)))
                whole = float(log_V[order_V[:count]].sum()) + float(others.sum())
                chosen = [(tuple(order_V[:count].tolist()), whole)]
            hypotheses.append(
                [SearchOutput(labels, total, total, attention) for labels, total in chosen]
            )
        return hypotheses

    def _finished(
        self,
        rows: Mapping[str, ReadInput],
        hypothesis: SearchOutput,
        length: int,
        settings: SearchOptions,
    ) -> ExportedPrediction:
        """Turn a hypothesis into a prediction, with what stands at each position of the source."""
        source = rows.get(self.about["positions_of"])
        name, row = next(iter(rows.items()))
        ids: Sequence[int] = hypothesis.tokens
        words: Sequence[str] = row.words
        weights, writer, reader = hypothesis.weights, self.writer, self.readers.get(name)
        if settings.unknown == "replace" and isinstance(reader, TextReader) and weights is not None:
            if isinstance(writer, TextWriter):
                ids, words = writer.replaced(ids, weights, reader, row.text)
        stop = [STOP] if hypothesis.finished and self.searches else []
        attention: dict[str, Any] = {} if weights is None else {"weights": weights[:, :length]}
        return ExportedPrediction(
            text=self.writer.decode(ids, words),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            source=() if source is None else source.names,
            tokens=tuple(self.writer.tokens([*ids, *stop], words)),
            finished=hypothesis.finished,
            inputs={key: value.text for key, value in rows.items()},
            layout=tuple(self.about["layout"]),
            segments=() if source is None else source.segments,
            **attention,
        )


def _from_graph(outputs: Tensors) -> list[list[SearchOutput]]:
    """Return what a graph with a search inside found, (B, N, …)."""
    each = outputs["score"].shape[1]
    flat = {
        name: tensor.reshape(-1, *tensor.shape[2:])
        for name, tensor in outputs.items()
        if name != "mask"
    }
    flat["count"] = flat["length"]
    return outputs_of(flat["tokens"], flat, flat.get("weights"), each)


def load(folder: str | os.PathLike[str], *, threads: int = 1) -> Model:
    """Load an exported model; `threads` compute one step together."""
    return Model(Path(folder), threads=threads)
