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
from sixjars.tasks.scoring import found_by
from sixjars.tasks.table import TASKS


@final
@dataclass(frozen=True)
class Prediction:
    """One text that a model wrote, and how it came about."""

    text: str
    score: float
    """What search ranked it by: higher is better."""
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

    `sixjars.load("runs/en-hi").predict(["I am going home"])[0].text`; see `load` for an example that runs.
    >>> Predictor.__name__
    'Predictor'
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

    def nbest(self, texts: Sequence[str], *, search: SearchSettings | None = None) -> list[list[Prediction]]:
        """The best outputs for each text, as many as the search settings say."""
        settings = search or self.recipe.evaluation.search
        answers: dict[int, list[Prediction]] = {}
        for rows in self._batches(texts):
            answers |= self._answer({row: texts[row] for row in rows}, settings)
        return [answers[row] for row in range(len(texts))]

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Texts of like length together, so that little is padded."""
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        size = self.recipe.evaluation.batch_examples
        for at in range(0, len(order), size):
            yield order[at : at + size]

    def _answer(self, texts: dict[int, str], settings: SearchSettings) -> dict[int, list[Prediction]]:
        reads = TASKS[self.recipe.task].reads
        ids = [self._encoded(row, text, "source" if reads else "target") for row, text in texts.items()]
        given = Padded.of(ids).to(self.device)
        nothing = Padded.of([[] for _ in ids]).to(self.device)
        source, prefix = (given, None) if reads else (nothing, given)
        batch = Batch({"source": source}, nothing, torch.arange(len(ids)))
        found = found_by(self.network, batch, settings, prefix=prefix)
        read = [tuple(self.tokens["source"].pieces(row)) if reads else () for row in ids]
        return {
            row: [self._prediction(hypothesis, pieces) for hypothesis in hypotheses]
            for row, pieces, hypotheses in zip(texts, read, found, strict=True)
        }

    def _encoded(self, row: int, text: str, field: str) -> list[int]:
        ids = self.tokens[field].encode(text)
        if field == "source" and not ids:
            raise DataError(f"input {row + 1} is empty; a {self.recipe.task} model needs some text.")
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
