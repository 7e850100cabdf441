"""Ask a trained run: texts, pictures or films in; texts or labels out, with scores and what was attended to."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch

from sixjars.data.columns import stacked
from sixjars.data.copying import copyable
from sixjars.data.parting import spelled_parts
from sixjars.data.pointing import counted, points_of, spelled_points
from sixjars.data.points import Numbers
from sixjars.data.text import STOP, Tokens
from sixjars.errors import DataError
from sixjars.flow import Hypothesis, Layout, Padded
from sixjars.learning.devices import Device, device_named
from sixjars.recipe.jars import SearchSettings
from sixjars.tasks.answering import drawn_anew, found_by
from sixjars.tasks.corpus import seeing_of
from sixjars.tasks.fields import SAID, Fields
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.seeing import media_of
from sixjars.tasks.table import LOOKING, TASKS

Given = str | list[Any]
"""One input: a text, or the path of a file; or a list of sentences, turns or points where a model reads those."""
Asked = Given | Mapping[str, Given]
"""What is asked of a model: its one input, or each input by name."""
FILES_AT_ONCE = 32
"""Pictures or films that are unpacked together."""


@final
@dataclass(frozen=True)
class Prediction:
    """One thing that a model said, and how it came about."""

    text: str
    score: float
    """log P / length^α, with the coverage penalty if there is one: what a beam ranks by. Of a label, log P."""
    log_probability: float
    source: tuple[str, ...]
    """The pieces that the encoder read: of a text its tokens, of a film the numbers of its frames, else nothing."""
    pieces: tuple[str, ...]
    """The pieces that the decoder wrote, `<stop>` included when it was reached; or the label."""
    weights: tuple[tuple[float, ...], ...]
    """Attention: a row for each piece written, over the positions read; empty without attention."""
    finished: bool
    """Whether the model stopped by itself."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What was asked."""
    layout: Layout = field(default_factory=Layout)
    """What the positions are: words, the cells of a picture row by row, or frames."""
    parts: tuple[int, ...] = ()
    """Of a text in parts, the sentence or turn that each position belongs to."""

    @property
    def probability(self) -> float:
        """P of the whole output."""
        return math.exp(self.log_probability)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        rounded = [[round(weight, 6) for weight in row] for row in self.weights]
        told = {
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            "finished": self.finished,
            "source": list(self.source),
            "pieces": list(self.pieces),
            "weights": rounded,
        }
        told |= {"parts": list(self.parts)} if self.parts else {}
        return told if self.layout.kind == "words" else told | {"layout": [self.layout.kind, *self.layout.shape]}


@final
class Predictor:
    """A trained run in memory.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     predictor = sixjars.load(run.folder)
    >>> [len(found) for found in predictor.nbest(["ghar", "namaste"])]
    [1, 1]
    """

    def __init__(self, run: Run, *, device: Device = "auto") -> None:
        self.run = run
        self.recipe = run.recipe
        self.task = TASKS[run.recipe.task]
        self.tokens = run.tokens()
        self.fields = Fields.of(run.recipe, self.tokens)
        self.device = device_named(device)
        self.network = run.network(self.tokens).to(self.device)
        self.seeing = seeing_of(run.recipe, self.device)
        if self.seeing:
            run.check_backbones()

    @property
    def looks(self) -> bool:
        """Whether its predictions have weights: from a bridge that looks, or because pointing is what it does."""
        return self.task.output == "order" or self.recipe.model.bridge["kind"] in LOOKING

    def predict(self, asked: Sequence[Asked], *, search: SearchSettings | None = None) -> list[Prediction]:
        """The best output for each input. For a language model a text is how the output begins (it may be empty)."""
        return [found[0] for found in self.nbest(asked, search=search)]

    def nbest(
        self, asked: Sequence[Asked], *, search: SearchSettings | None = None, first: int = 0
    ) -> list[list[Prediction]]:
        """The best outputs for each input, as many as the search settings say.

        Where the inputs are a portion of more, `first` is how many came before; then samples of different portions
        are different draws. The same inputs with the same settings always give the same answers.
        """
        if isinstance(asked, str):
            raise DataError("give a list of texts, not one text.")
        settings = search or self.recipe.evaluation.search
        rows = [self._named(one, first + number, settings) for number, one in enumerate(asked, start=1)]
        answers: dict[int, list[Prediction]] = {}
        done = first
        for some in self._batches(rows):
            found = self._answer([rows[row] for row in some], drawn_anew(settings, done))
            answers |= dict(zip(some, found, strict=True))
            done += len(some)
        return [answers[row] for row in range(len(rows))]

    def _named(self, one: Asked, number: int, settings: SearchSettings) -> dict[str, str]:
        """The inputs by name; for a language model the beginning of what is to be written."""
        names = self.task.inputs or (self.task.output,)
        if isinstance(one, str | list) and len(names) == 1:
            one = {names[0]: one}
        if isinstance(one, str | list) or set(one) != set(names):
            raise DataError(f"input {number} must name {' and '.join(names)}; {self.task.name} needs them.")
        texts = {name: self._text(name, one[name], number) for name in names}
        for name in self.seeing:
            if not Path(texts[name]).is_file():
                wrong = "is a folder" if Path(texts[name]).is_dir() else "does not exist"
                raise DataError(f"input {number}: the {name} file {texts[name]} {wrong}.")
        if "points" in names:
            self._check_points(texts["points"], number)
        for name, kept in self.tokens.items():
            if name in texts and isinstance(kept, Tokens):
                self._check(kept.encode(texts[name]), name, number, settings)
        return texts

    def _text(self, name: str, given: Given, number: int) -> str:
        """An input as a text; a list of parts or points becomes one."""
        if isinstance(given, str):
            return given
        source = self.recipe.data.source
        try:
            if name == "points":
                return spelled_points(given)
            if name == "source" and source is not None and source.parts != "none":
                return spelled_parts(given)
        except ValueError as error:
            raise DataError(f"input {number} {error}") from None
        raise DataError(f"input {number}: the {name} must be a text, but is {given!r}.")

    def _check_points(self, text: str, number: int) -> None:
        assert self.recipe.data.points is not None
        try:
            found, wanted = points_of(text), self.recipe.data.points.numbers
            if len(found[0]) != wanted:
                raise ValueError(f"a point has {counted(len(found[0]))}, but this run was trained on {wanted}.")
        except ValueError as error:
            raise DataError(f"input {number}: {error}") from None

    def _check(self, ids: list[int], name: str, number: int, settings: SearchSettings) -> None:
        if name in self.task.inputs and not ids:
            if len(self.task.inputs) > 1:
                raise DataError(f"input {number}: the {name} is empty.")
            raise DataError(f"input {number} is empty; a {self.recipe.task} model needs some text.")
        if name == "target" and len(ids) >= settings.max_length:
            raise DataError(
                f"input {number} has {len(ids)} tokens, but at most {settings.max_length} are written "
                "(max_length), so nothing could follow."
            )

    def _batches(self, rows: Sequence[Mapping[str, str]]) -> Iterator[list[int]]:
        """Row numbers, those of like length together, so that little is padded."""
        order = sorted(range(len(rows)), key=lambda row: self._length(rows[row]))
        size = self.recipe.evaluation.batch_examples
        size = min(size, FILES_AT_ONCE) if self.seeing else size
        for at in range(0, len(order), size):
            yield order[at : at + size]

    def _length(self, row: Mapping[str, str]) -> int:
        return sum(len(text) for name, text in row.items() if name not in self.seeing)

    def _answer(self, rows: list[dict[str, str]], settings: SearchSettings) -> list[list[Prediction]]:
        inputs = {name: self._padded(name, [row[name] for row in rows]).to(self.device) for name in self.task.inputs}
        begun = None
        if not inputs:
            output = self.task.output
            begun = Padded.of(self.tokens[output].encode_many([row[output] for row in rows])).to(self.device)
            inputs = {"source": Padded.of([[] for _ in rows]).to(self.device)}
        with torch.inference_mode():
            encoded = self.network.encode(inputs)
            found = found_by(self.network, encoded, settings, prefix=begun)
        lengths = encoded.mask.sum(1).tolist()
        return [
            [self._prediction(hypothesis, row, length, encoded.layout) for hypothesis in hypotheses]
            for row, hypotheses, length in zip(rows, found, lengths, strict=True)
        ]

    def _padded(self, name: str, given: list[str]) -> Padded:
        if name == "points":
            return Numbers.parsed(given).padded(np.arange(len(given)))
        if name not in self.seeing:
            return self._written(name, given)
        seeing, media = self.seeing[name], media_of([Path()])
        numbers = seeing.numbers([seeing.unpacked(media, path) for path in given])
        return stacked(numbers)

    def _written(self, name: str, given: list[str]) -> Padded:
        rows = np.arange(len(given))
        padded = self.fields.encoded(name, given).padded(rows)
        if name != "source" or not self.fields.copies:
            return Padded(padded.values, padded.mask, padded.parts)
        words = self.fields.encoded(SAID, given).padded(rows)
        return replace(padded, said=copyable(words.values, words.mask, self.tokens["target"].size))

    def _prediction(self, hypothesis: Hypothesis, row: dict[str, str], length: int, layout: Layout) -> Prediction:
        output = self.task.output
        ends = hypothesis.finished and output != "label"
        ids = [*hypothesis.tokens, *([STOP] if ends else [])]
        source, parts = self._source(row, length, layout)
        beyond = self.fields.beyond(row, limited=False)
        return Prediction(
            text=self.fields.text_of(output, hypothesis.tokens, beyond),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            source=source,
            pieces=tuple(self.fields.pieces_of(output, ids, beyond)),
            weights=tuple(weights[:length] for weights in hypothesis.weights),
            finished=hypothesis.finished,
            inputs=row,
            layout=layout,
            parts=parts,
        )

    def _source(self, row: Mapping[str, str], length: int, layout: Layout) -> tuple[tuple[str, ...], tuple[int, ...]]:
        """What stands at each position, and the part of the text that it belongs to."""
        if layout.kind == "frames":
            return tuple(str(number) for number in range(1, length + 1)), ()
        if "points" in row:
            return tuple(row["points"].split()), ()
        if "source" not in row:
            return (), ()
        pieces, parts = self.fields.source_pieces(row["source"])
        return tuple(pieces), tuple(parts)


def load(folder: str | Path, *, device: Device = "auto") -> Predictor:
    """A trained run, ready to be asked. No code in the folder is run.

    >>> import tempfile, sixjars
    >>> few = ["data.sample.size=64", "learning.steps=2", "evaluation.search.max_length=5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = sixjars.train("transliteration/sample_attention", few, out=f"{folder}/run")
    ...     prediction = sixjars.load(run.folder).predict(["namaste"])[0]
    >>> prediction.source
    ('n', 'a', 'm', 'a', 's', 't', 'e')
    """
    return Predictor(open_run(Path(folder)), device=device)
