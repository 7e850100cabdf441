"""Ask a trained run: texts in, texts out, with scores and what was attended to."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import torch

from sixjars.data.text import STOP, Tokens
from sixjars.errors import DataError
from sixjars.flow import Batch, Hypothesis, Padded
from sixjars.learning.devices import Device, device_named
from sixjars.recipe.jars import SearchSettings
from sixjars.tasks.runs import Run, open_run
from sixjars.tasks.scoring import drawn_anew, found_by
from sixjars.tasks.table import TASKS


@final
@dataclass(frozen=True)
class Prediction:
    """One text that a model wrote, and how it came about."""

    text: str
    score: float
    """log P / length^α, with the coverage penalty if there is one: what a beam ranks by."""
    log_probability: float
    source: tuple[str, ...]
    """The pieces that the encoder read."""
    pieces: tuple[str, ...]
    """The pieces that the decoder wrote, `<stop>` included when it was reached."""
    weights: tuple[tuple[float, ...], ...]
    """Attention: a row for each piece written, over the pieces read; empty without attention."""
    finished: bool
    """Whether the model stopped by itself."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        rounded = [[round(weight, 6) for weight in row] for row in self.weights]
        return {
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            "finished": self.finished,
            "source": list(self.source),
            "pieces": list(self.pieces),
            "weights": rounded,
        }


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
        self.tokens: dict[str, Tokens] = run.tokens()
        self.device = device_named(device)
        self.network = run.network(self.tokens).to(self.device)

    def predict(self, texts: Sequence[str], *, search: SearchSettings | None = None) -> list[Prediction]:
        """The best output for each text. For a language model a text is how the output begins (it may be empty)."""
        return [found[0] for found in self.nbest(texts, search=search)]

    def nbest(
        self, texts: Sequence[str], *, search: SearchSettings | None = None, first: int = 0
    ) -> list[list[Prediction]]:
        """The best outputs for each text, as many as the search settings say.

        Where the texts are a portion of more, `first` is how many came before; then samples of different portions
        are different draws. The same texts with the same settings always give the same answers.
        """
        if isinstance(texts, str):
            raise DataError("give a list of texts, not one text.")
        settings = search or self.recipe.evaluation.search
        field = "source" if TASKS[self.recipe.task].reads else "target"
        ids = [self._encoded(text, field, first + row, settings) for row, text in enumerate(texts, start=1)]
        answers: dict[int, list[Prediction]] = {}
        done = first
        for rows in self._batches(ids):
            found = self._answer([ids[row] for row in rows], drawn_anew(settings, done))
            answers |= dict(zip(rows, found, strict=True))
            done += len(rows)
        return [answers[row] for row in range(len(texts))]

    def _batches(self, ids: Sequence[Sequence[int]]) -> Iterator[list[int]]:
        """Row numbers, those of like length together, so that little is padded."""
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        size = self.recipe.evaluation.batch_examples
        for at in range(0, len(order), size):
            yield order[at : at + size]

    def _answer(self, ids: list[list[int]], settings: SearchSettings) -> list[list[Prediction]]:
        reads = TASKS[self.recipe.task].reads
        given = Padded.of(ids).to(self.device)
        nothing = Padded.of([[] for _ in ids]).to(self.device)
        source, prefix = (given, None) if reads else (nothing, given)
        batch = Batch({"source": source}, nothing, torch.arange(len(ids)))
        found = found_by(self.network, batch, settings, prefix=prefix)
        read = [tuple(self.tokens["source"].pieces(row)) if reads else () for row in ids]
        return [
            [self._prediction(hypothesis, pieces) for hypothesis in hypotheses]
            for pieces, hypotheses in zip(read, found, strict=True)
        ]

    def _encoded(self, text: str, field: str, number: int, settings: SearchSettings) -> list[int]:
        ids = self.tokens[field].encode(text)
        if field == "source" and not ids:
            raise DataError(f"input {number} is empty; a {self.recipe.task} model needs some text.")
        if field == "target" and len(ids) >= settings.max_length:
            raise DataError(
                f"input {number} has {len(ids)} tokens, but at most {settings.max_length} are written "
                "(max_length), so nothing could follow."
            )
        return ids

    def _prediction(self, hypothesis: Hypothesis, source: tuple[str, ...]) -> Prediction:
        tokens = self.tokens["target"]
        ids = [*hypothesis.tokens, *([STOP] if hypothesis.finished else [])]
        return Prediction(
            text=tokens.decode(hypothesis.tokens),
            score=hypothesis.score,
            log_probability=hypothesis.log_probability,
            source=source,
            pieces=tuple(tokens.pieces(ids)),
            weights=tuple(row[: len(source)] for row in hypothesis.weights),
            finished=hypothesis.finished,
        )


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
