"""One output of a model: its text, how probable it is, and what it attended to; and how it comes from a search."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from sixjars.data.dataset import Dataset
from sixjars.data.field import Positions
from sixjars.evaluation.score import spelled
from sixjars.flow.searching import Hypothesis
from sixjars.flow.values import Layout
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.notebook import heat_map
from sixjars.runs.requests import Found
from sixjars_runtime.special_tokens import STOP
from sixjars_runtime.text.word_pieces import joined


@final
@dataclass(frozen=True)
class Prediction:
    """One output of a model, and how it came about; or why there is none.

    >>> Prediction(text="yes", log_probability=math.log(0.5)).probability
    0.5
    """

    text: str
    score: float = 0.0
    """log P / length^α, with the coverage penalty if there is one: what a beam ranks by. Of a label, log P."""
    log_probability: float = 0.0
    source: tuple[str, ...] = ()
    """What stands at each position that is attended to: tokens, numbers of frames, points; nothing for an image."""
    tokens: tuple[str, ...] = ()
    """The tokens of the output, `<stop>` included when it was reached; or the label."""
    weights: tuple[tuple[float, ...], ...] = ()
    """Attention: a row for each token of the output, over the positions of the source; empty without attention."""
    finished: bool = True
    """Whether the model stopped by itself."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """What was given."""
    attended: str = ""
    """Of which input the positions are."""
    layout: Layout = field(default_factory=Layout)
    """What the positions are: words, words in segments, the cells of an image row by row, frames, or points."""
    segments: tuple[int, ...] = ()
    """Of a text in segments, the sentence or turn that each position belongs to."""
    source_words: tuple[int, ...] = ()
    """Of a text, the word that each token of the source is a piece of."""
    token_words: tuple[int, ...] = ()
    """The word that each token of the output is a piece of; `<stop>` is one too."""
    copied: tuple[int | None, ...] = ()
    """For each token of the output, the position of the source that it can only have been copied from; empty where
    nothing can be copied."""
    truncated: bool = False
    """Whether the input was longer than the run reads (`max_length`), and was cut."""
    tokens_read: int = 0
    """Tokens of the input; none where it is no text."""
    unknown_tokens: int = 0
    """How many of them are unknown to the run (`<unk>`)."""
    error: str | None = None
    """Why this input has no answer; then the text is empty."""

    @property
    def probability(self) -> float:
        """P of the whole output; not a number where there is none."""
        return math.exp(self.log_probability) if self.error is None else math.nan

    @property
    def attention(self) -> NDArray[np.float64]:
        """The weights as an array: a row for each token of the output, a column for each position of the source."""
        return np.array(self.weights, dtype=np.float64).reshape(len(self.weights), -1)

    def _repr_html_(self) -> str:
        """The output and its attention, for a notebook; positions without a name are numbered."""
        if self.error is not None:
            return f"<p><b>{escape(self.error)}</b></p>"
        said = f"<p><b>{escape(self.text)}</b> (probability {self.probability:.3g})</p>"
        if not self.weights:
            return said
        width = len(self.weights[0])
        names = self.source if len(self.source) == width else [str(at) for at in range(width)]
        return said + heat_map(names, self.tokens, self.weights)

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
        return (
            values
            if self.layout.kind == "words"
            else values | {"layout": [self.layout.kind, *self.layout.shape]}
        )


@final
@dataclass(frozen=True)
class Finishing:
    """What the predictions for the rows of a dataset are made with."""

    dataset: Dataset
    positions_of: str
    """The input whose positions are attended to."""
    search: SearchSettings
    details: bool
    """Whether anybody asked for tokens and weights."""

    def predictions(
        self, row: int, found: Found, inputs: Mapping[str, str], *, ends: bool
    ) -> list[Prediction]:
        """All outputs for one row; `ends` says whether an output that is finished ended in `<stop>`."""
        dataset = self.dataset
        positions = (
            dataset.positions(row, found.length, self.positions_of) if self.details else Positions()
        )
        tokens, unknown = dataset.tokens_read(row)
        truncated = any(
            own.truncated(dataset.table, [row])[0] for own in dataset.fields.inputs.values()
        )
        made = []
        for one in found.hypotheses:
            ids, words = spelled(dataset, row, one, self.search)
            stop = [STOP] if one.finished and ends else []
            details = self._details(ids, stop, words, one, found.length) if self.details else {}
            made.append(
                Prediction(
                    text=dataset.fields.output.decode(ids, words),
                    score=one.score,
                    log_probability=one.log_probability,
                    source=positions.tokens,
                    finished=one.finished,
                    inputs=inputs,
                    attended=self.positions_of,
                    layout=found.layout,
                    segments=positions.segments,
                    source_words=positions.words,
                    truncated=truncated,
                    tokens_read=tokens,
                    unknown_tokens=unknown,
                    **details,
                )
            )
        return made

    def _details(
        self,
        ids: Sequence[int],
        stop: list[int],
        words: Sequence[str],
        one: Hypothesis,
        length: int,
    ) -> dict[str, Any]:
        """The tokens of an output, and what each was made of."""
        output = self.dataset.fields.output
        own = joined(output.decode, ids, words)
        copied = (
            [number - self._size if number >= self._size else None for number in ids]
            if self._copies
            else []
        )
        return {
            "tokens": tuple(output.tokens([*ids, *stop], words)),
            "weights": tuple(weights[:length] for weights in one.weights),
            "token_words": (*own, *(own[-1] + 1 if own else 0 for _ in stop)),
            "copied": (*copied, *(None for _ in stop)) if self._copies else (),
        }

    @property
    def _copies(self) -> bool:
        """Whether words of the source can be in an output."""
        return self.dataset.fields.link is not None or (
            self.search.unknown == "replace" and self._size > 0
        )

    @cached_property
    def _size(self) -> int:
        """Of the vocabulary of the output; ids from there on are positions that are copied from. 0 without one."""
        return int(self.dataset.fields.output.facts().get("vocabulary", 0))
