"""One output of a model: its text, probability and attention; and how it comes from a search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.data.field import Positions
from sixjars.data.text.tokenizer import joined
from sixjars.evaluation.score import spelled
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Layout
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction.requests import SearchResult
from sixjars_runtime.special_tokens import STOP


@final
@dataclass(frozen=True)
class Prediction:
    """One output of a model, and how it came about; or why there is none.

    >>> Prediction(text="yes", log_probability=math.log(0.5)).probability
    0.5
    """

    text: str
    score: float = 0.0
    """log P / length^α, with any coverage penalty: what a beam ranks by. Of a label, log P."""
    log_probability: float = 0.0
    source: tuple[str, ...] = ()
    """Names of the positions attended to: tokens, frame numbers, points; empty for an image."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included when it was reached; or the label."""
    weights: tuple[tuple[float, ...], ...] = ()
    """Attention: a row for each output token, over the source positions; empty without any."""
    finished: bool = True
    """Whether the model stopped by itself."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The input texts by field."""
    attended: str = ""
    """The input that the positions are of."""
    layout: Layout = field(default_factory=Layout)
    """The kind of positions: words, words in segments, image cells, frames or points."""
    segments: tuple[int, ...] = ()
    """For a text in segments, the sentence or turn that each position belongs to."""
    source_words: tuple[int, ...] = ()
    """For a text, the word that each token of the source is a piece of."""
    token_words: tuple[int, ...] = ()
    """The word that each token of the output is a piece of; `<stop>` is one too."""
    copied: tuple[int | None, ...] = ()
    """The source position that each output token must have been copied from, if any; empty where
    nothing can be copied."""
    truncated: bool = False
    """Whether the input was longer than the run reads (`max_length`), and was cut."""
    tokens_read: int = 0
    """Tokens of the input; none where it is no text."""
    unknown_tokens: int = 0
    """The number of input tokens that are unknown to the run (`<unk>`)."""
    error: str | None = None
    """Why this input has no answer; then the text is empty."""

    @property
    def probability(self) -> float:
        """P of the whole output; not a number where there is none."""
        return math.exp(self.log_probability) if self.error is None else math.nan

    @property
    def attention(self) -> NDArray[np.float64]:
        """The weights as an array: a row for each output token, a column for a source position."""
        return np.array(self.weights, dtype=np.float64).reshape(len(self.weights), -1)

    def _repr_html_(self) -> str:
        """The output and its attention, for a notebook; positions without a name are numbered."""
        from html import escape

        from sixjars.runs.notebook import heat_map

        if self.error is not None:
            return f"<p><b>{escape(self.error)}</b></p>"
        output = f"<p><b>{escape(self.text)}</b> (probability {self.probability:.3g})</p>"
        if not self.weights:
            return output
        width = len(self.weights[0])
        names = self.source if len(self.source) == width else [str(at) for at in range(width)]
        return output + heat_map(names, self.tokens, self.weights)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        if self.error is not None:
            return {"text": self.text, "error": self.error}
        rounded = [[round(weight, 6) for weight in row] for row in self.weights]
        values = {
            "text": self.text,
            "score": self.score,
            "log_probability": self.log_probability,
            "probability": self.probability,
            "finished": self.finished,
            "source": list(self.source),
            "tokens": list(self.tokens),
            "weights": rounded,
        }
        values |= {"segments": list(self.segments)} if self.segments else {}
        values |= {"truncated": True} if self.truncated else {}
        if self.layout.kind == "words":
            return values
        return values | {"layout": [self.layout.kind, *self.layout.shape]}


@final
@dataclass(frozen=True)
class PredictionBuilder:
    """Makes the predictions for the rows of a dataset."""

    dataset: Dataset
    positions_of: str
    """The input whose positions are attended to."""
    search: SearchSettings
    details: bool
    """Whether predictions have tokens and weights."""

    def predictions(
        self, row: int, result: SearchResult, inputs: Mapping[str, str], *, ends: bool
    ) -> list[Prediction]:
        """All outputs for one row; `ends` says whether an output that is finished has `<stop>`."""
        dataset = self.dataset
        positions = Positions()
        if self.details:
            positions = dataset.positions(row, result.length, self.positions_of)
        tokens, unknown = dataset.tokens_read(row)
        fields = dataset.fields.inputs.values()
        truncated = any(field.truncated(dataset.table, [row])[0] for field in fields)
        predictions = []
        for output in result.hypotheses:
            ids, words = spelled(dataset, row, output, self.search)
            stop = [STOP] if output.finished and ends else []
            details = self._details(ids, stop, words, output, result.length) if self.details else {}
            prediction = Prediction(
                text=dataset.fields.output.decode(ids, words),
                score=output.score,
                log_probability=output.log_probability,
                source=positions.tokens,
                finished=output.finished,
                inputs=inputs,
                attended=self.positions_of,
                layout=result.layout,
                segments=positions.segments,
                source_words=positions.words,
                truncated=truncated,
                tokens_read=tokens,
                unknown_tokens=unknown,
                **details,
            )
            predictions.append(prediction)
        return predictions

    def _details(
        self,
        ids: Sequence[int],
        stop: list[int],
        words: Sequence[str],
        hypothesis: Hypothesis,
        length: int,
    ) -> dict[str, Any]:
        output = self.dataset.fields.output
        pieces = joined(output.decode, ids, words)
        copied: list[int | None] = []
        if self._copies:
            places = [number - self._size if number >= self._size else None for number in ids]
            copied = [*places, *(None for _ in stop)]
        return {
            "tokens": tuple(output.tokens([*ids, *stop], words)),
            "weights": tuple(weights[:length] for weights in hypothesis.weights),
            "token_words": (*pieces, *(pieces[-1] + 1 if pieces else 0 for _ in stop)),
            "copied": tuple(copied),
        }

    @property
    def _copies(self) -> bool:
        """Whether words of the source can be in an output."""
        replaces = self.search.unknown == "replace" and self._size > 0
        return self.dataset.fields.link is not None or replaces

    @cached_property
    def _size(self) -> int:
        """The vocabulary size of the output, or 0; ids from there on are positions to copy from."""
        return int(self.dataset.fields.output.facts().get("vocabulary", 0))
