"""What a model output and what it attended to, as one value: every drawing, table and JSON of attention is made of it.

Dims: T output tokens, S source positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import exp, fsum
from pathlib import Path
from typing import Any, final

from sixjars.drawing.page import Weights, shortened
from sixjars.flow.values import Layout
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import OTHER, OWN

SPACE = "␣"
"""How a space is written where characters are tokens."""
LONGEST = 120
"""Characters of the inputs in a heading."""
MARKS = ("▁", "Ġ", "##")
"""What tokenizers write before a piece that follows a space, or before one that does not."""
BY_PROBABILITY = "Ordered by probability."
"""What several outputs are in the order of, where no search has scored them."""


@final
@dataclass(frozen=True)
class Output:
    """One output: the only one, or one hypothesis of several."""

    text: str
    tokens: tuple[str, ...]
    """Words (or pieces of words), `<stop>` included when it was reached; or the label."""
    weights: tuple[tuple[float, ...], ...]
    """A row for each token, over the positions of the source."""
    log_probability: float = 0.0
    copied: tuple[int | None, ...] = ()
    """For each token, the position that it can only have been copied from; empty where nothing can be copied."""
    words: tuple[int, ...] = ()
    """The word that each token is a piece of."""
    score: float = 0.0
    """What a beam orders its hypotheses by."""

    @property
    def probability(self) -> float:
        """P of the whole output."""
        return exp(self.log_probability)

    @property
    def mean(self) -> tuple[float, ...]:
        """The weight of each position, averaged over the tokens."""
        return tuple(fsum(column) / len(column) for column in zip(*self.weights, strict=True))


@final
@dataclass(frozen=True)
class View:
    """One input with its outputs, the best first, and what they attended to."""

    inputs: Mapping[str, str]
    """What was given, by field; of a file its name."""
    outputs: tuple[Output, ...]
    source: tuple[str, ...] = ()
    """What stands at each position; nothing for the cells of an image."""
    words: tuple[int, ...] = ()
    """The word that each token of the source is a piece of."""
    segments: tuple[int, ...] = ()
    """Of a text in segments, the sentence or turn of each position."""
    layout: Layout = field(default_factory=Layout)
    backdrop: Any = None
    """What the weights lie on: an image with the box that the network got, frames, or points; nothing for a text."""
    forced: bool = False
    """Whether the output was given, and not found by search."""
    order: str = ""
    """A sentence about what several outputs are in the order of, where that is not their probability: their score."""
    attended: str = ""
    """The input that the positions are of, where there are several."""

    @property
    def kind(self) -> str:
        """What the positions are."""
        return "segments" if self.segments else self.layout.kind

    @property
    def copies(self) -> bool:
        """Whether words of the source can be copied."""
        return any(one.copied for one in self.outputs)

    @property
    def given(self) -> str:
        """The inputs as one text."""
        return " · ".join(self.inputs.values())

    @property
    def over(self) -> str:
        """Which of several inputs is attended to, to stand behind the outputs."""
        return f" (attention over {self.attended})" if self.attended else ""

    @property
    def short(self) -> str:
        """The same on one line, cut where it is long."""
        return shortened(" ".join(self.given.split()), LONGEST)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each position; cells of an image have their row and column, others without one are numbered.

        Points have their numbers too, which an output names them by.
        """
        count = len(self.outputs[0].weights[0])
        if len(self.source) == count:
            points = isinstance(self.backdrop, list)
            return (
                tuple(f"{at}: {one}" for at, one in enumerate(self.source))
                if points
                else self.source
            )
        if self.layout.shape and len(self.layout.shape) > 1:
            columns = self.layout.shape[1]
            return tuple(
                f"row {at // columns + 1}, column {at % columns + 1}" for at in range(count)
            )
        return tuple(str(at + 1) for at in range(count))

    @property
    def has_turns(self) -> bool:
        """Whether its segments are turns of a conversation, which begin with the mark of a speaker."""
        groups = groupby(range(len(self.segments)), key=self.segments.__getitem__)
        return bool(self.segments) and {self.names[next(group)] for _, group in groups} <= {
            OTHER,
            OWN,
        }

    def alone(self, rank: int) -> "View":
        """The same with one of its outputs."""
        return replace(self, outputs=(self.outputs[rank],))

    def joined(self) -> "View":
        """With pieces as words, for reading: weights of the pieces of a source word are added, of an output averaged.

        The same where there is no more than one word on either side, as in the transliteration of one word.
        """
        if len(set(self.words)) < 2 and all(len(set(one.words)) < 3 for one in self.outputs):
            return self
        alone = len(set(self.words)) < 2  # one word is looked at by its pieces
        groups = _groups(range(len(self.names)) if alone else self.words, self.segments)
        place = {at: number for number, group in enumerate(groups) for at in group}
        return replace(
            self,
            source=tuple(_word([self.source[at] for at in group]) for group in groups)
            if self.source
            else (),
            segments=tuple(self.segments[group[0]] for group in groups) if self.segments else (),
            words=self.words if alone else tuple(range(len(groups))),
            outputs=tuple(_joined(one, groups, place) for one in self.outputs),
        )

    def sentences(self, output: Output) -> list[tuple[float, tuple[float, ...]]]:
        """Both levels of a text in segments: the weight of each sentence, and the share of each word in it."""
        mean, found = output.mean, []
        for _, group in groupby(
            range(len(mean)), key=(self.segments or [0] * len(mean)).__getitem__
        ):
            own = [mean[at] for at in group]
            whole = fsum(own)
            found.append((whole, tuple(one / whole if whole > 0 else 0.0 for one in own)))
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain values; images and frames are left out."""
        names = self.names
        values: dict[str, Any] = {
            "inputs": dict(self.inputs),
            "layout": [self.kind, *self.layout.shape],
            "source": list(self.source if len(self.source) == len(names) else names),
            "forced": self.forced,
        }
        values |= {"segments": list(self.segments)} if self.segments else {}
        values |= (
            {"points": [list(point) for point in self.backdrop]}
            if isinstance(self.backdrop, list)
            else {}
        )
        return values | {"outputs": [self._output(one) for one in self.outputs]}

    def _output(self, output: Output) -> dict[str, Any]:
        values: dict[str, Any] = {
            "text": output.text,
            "score": output.score,
            "log_probability": output.log_probability,
            "tokens": list(output.tokens),
            "weights": [list(row) for row in output.weights],
        }
        if self.segments:
            levels = self.sentences(output)
            values |= {"sentence_weights": [weight for weight, _ in levels]}
            values |= {"word_shares": [list(shares) for _, shares in levels]}
        return values | ({"copied": list(output.copied)} if self.copies else {})


def _groups(words: Sequence[int], segments: Sequence[int]) -> list[list[int]]:
    """The positions of each word; a word never reaches into the next segment."""
    parts = segments or [0] * len(words)
    return [
        list(group)
        for _, group in groupby(range(len(words)), key=lambda at: (parts[at], words[at]))
    ]


def _word(pieces: Sequence[str]) -> str:
    """Pieces as a word, without the marks of a tokenizer."""
    plain = []
    for piece in pieces:
        mark = next((mark for mark in MARKS if piece.startswith(mark) and piece != mark), "")
        plain.append(piece.removeprefix(mark))
    return "".join(plain).replace(SPACE, "") or SPACE


def _joined(output: Output, groups: list[list[int]], place: Mapping[int, int]) -> Output:
    """The words of an output over the words of the source."""
    if not output.words:
        rows = [[at] for at in range(len(output.tokens))]
    else:
        rows = _groups(output.words, ())
    copied = [[output.copied[at] for at in row] for row in rows] if output.copied else []
    return replace(
        output,
        tokens=tuple(_word([output.tokens[at] for at in row]) for row in rows),
        weights=tuple(_weights(output.weights, row, groups) for row in rows),
        copied=tuple(next((place[at] for at in row if at is not None), None) for row in copied),
        words=tuple(range(len(rows))),
    )


def _weights(weights: Weights, rows: Sequence[int], groups: list[list[int]]) -> tuple[float, ...]:
    """Added over the pieces of each source word, averaged over those of an output word."""
    return tuple(
        fsum(weights[row][at] for row in rows for at in group) / len(rows) for group in groups
    )


def view_of(
    predictor: Any,
    predictions: Sequence[Any],
    *,
    pieces: bool = False,
    forced: bool = False,
    order: str = "",
) -> View:
    """The value of the predictions for one input; with `pieces` its tokens stay as they are.

    `order` is a sentence about what they are in the order of, where that is not their probability.
    """
    first = predictions[0]
    if first.error is not None:
        raise DataError(f"there is no output to draw. {first.error}")
    if not first.weights:
        raise DataError(
            "this prediction has no attention weights to draw; its bridge has no attention."
        )
    name, text = next(iter(first.inputs.items()))
    found = View(
        inputs={
            name: Path(text).name if predictor.inputs[name].is_media else text
            for name, text in first.inputs.items()
        },
        outputs=tuple(
            _output_of(one) for one in predictions if one.weights
        ),  # a beam may hold an empty one
        source=first.source,
        words=first.source_words,
        segments=first.segments,
        layout=first.layout,
        backdrop=predictor.inputs[name].backdrop(text),
        forced=forced,
        order=order,
        attended=first.attended if len(first.inputs) > 1 else "",
    )
    return found if pieces else found.joined()


def _output_of(prediction: Any) -> Output:
    """One output; several labels that were chosen together are one step."""
    together = len(prediction.tokens) > len(prediction.weights) == 1
    return Output(
        text=prediction.text,
        tokens=(", ".join(prediction.tokens),) if together else prediction.tokens,
        weights=prediction.weights,
        log_probability=prediction.log_probability,
        score=prediction.score,
        copied=prediction.copied,
        words=() if together else prediction.token_words,
    )
