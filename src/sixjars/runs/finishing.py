"""From what a network found to predictions: text, tokens, and what stands at each position of the source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

from sixjars.data.dataset import Dataset
from sixjars.data.field import Positions
from sixjars.data.text.pieces import joined
from sixjars.evaluation.score import spelled
from sixjars.flow.special import STOP
from sixjars.flow.values import Hypothesis
from sixjars.recipe.sections import SearchSettings
from sixjars.runs.prediction import Prediction
from sixjars.runs.requests import Found


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

    def predictions(self, row: int, found: Found, inputs: Mapping[str, str], *, ends: bool) -> list[Prediction]:
        """All outputs for one row; `ends` says whether an output that is finished ended in `<stop>`."""
        dataset = self.dataset
        positions = dataset.positions(row, found.length, self.positions_of) if self.details else Positions()
        tokens, unknown = dataset.tokens_read(row)
        truncated = any(own.truncated(dataset.table, [row])[0] for own in dataset.fields.inputs.values())
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
        self, ids: Sequence[int], stop: list[int], words: Sequence[str], one: Hypothesis, length: int
    ) -> dict[str, Any]:
        """The tokens of an output, and what each was made of."""
        output = self.dataset.fields.output
        own = joined(output.decode, ids, words)
        copied = [number - self._size if number >= self._size else None for number in ids] if self._copies else []
        return {
            "tokens": tuple(output.tokens([*ids, *stop], words)),
            "weights": tuple(weights[:length] for weights in one.weights),
            "token_words": (*own, *(own[-1] + 1 if own else 0 for _ in stop)),
            "copied": (*copied, *(None for _ in stop)) if self._copies else (),
        }

    @property
    def _copies(self) -> bool:
        """Whether words of the source can be in an output."""
        return self.dataset.fields.link is not None or (self.search.unknown == "replace" and self._size > 0)

    @cached_property
    def _size(self) -> int:
        """Of the vocabulary of the output; ids from there on are positions that are copied from. 0 without one."""
        return int(self.dataset.fields.output.facts().get("vocabulary", 0))
