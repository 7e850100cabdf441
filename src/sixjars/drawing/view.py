"""The outputs and attention of a model for one input: all drawings and tables are made of it.

Dims: T output tokens, S source positions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from math import exp, fsum
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, final

from sixjars.drawing.weights import Weights, percent
from sixjars.flow.values import Layout
from sixjars_runtime.errors import DataError
from sixjars_runtime.text.segments import OTHER, OWN

SPACE = "␣"
"""The sign for a space where characters are tokens."""
LONGEST = 120
"""Characters of the inputs in a heading."""
MARKS = ("▁", "Ġ", "##")
"""Marks of tokenizers before a piece that follows a space, or that does not."""
BY_PROBABILITY = "Ordered by probability."
"""The order of several outputs that no search has scored."""
LEAST_PROBABILITY = 0.001
"""The probability of the best output below which all are written as logarithms."""
TURNS = f"{OTHER} and {OWN}: turns of the other speaker, and of the one who answers."
"""The caption of a conversation."""


def cut(text: str, most: int) -> str:
    """A text on one line, with at most so many characters.

    >>> cut("a  long text", 8)
    'a long …'
    """
    return shortened(" ".join(text.split()), most)


def shortened(text: str, most: int) -> str:
    """At most so many characters of a text.

    >>> shortened("attention", 6), shortened("attend", 6)
    ('atten…', 'attend')
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


@final
class Sentence(NamedTuple):
    """What was attended to in one sentence of the input."""

    weight: float
    """p_s, of all its words together."""
    shares: tuple[float, ...]
    """p_w, the share of each word."""

    @property
    def depths(self) -> list[float]:
        """How dark each word is drawn, √p_s · p_w (Yang et al. 2016, section 3.4)."""
        return [self.weight**0.5 * share for share in self.shares]


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
    """For each token, the position that it can only be a copy of; empty without copying."""
    words: tuple[int, ...] = ()
    """The word that each token is a piece of."""
    score: float = 0.0
    """The score that orders the hypotheses of a beam."""

    @property
    def probability(self) -> float:
        """P of the whole output."""
        return exp(self.log_probability)

    @property
    def order(self) -> list[int]:
        """The positions that the output of a pointer names."""
        return [int(place) for place in self.text.split()]

    @property
    def mean(self) -> tuple[float, ...]:
        """The weight of each position, averaged over the tokens."""
        return tuple(fsum(column) / len(column) for column in zip(*self.weights, strict=True))


@final
@dataclass(frozen=True)
class View:
    """One input with its outputs, the best first, and what they attended to."""

    inputs: Mapping[str, str]
    """The inputs by field; of a file, its name."""
    outputs: tuple[Output, ...]
    source: tuple[str, ...] = ()
    """The token of each position; nothing for the cells of an image."""
    words: tuple[int, ...] = ()
    """The word that each token of the source is a piece of."""
    segments: tuple[int, ...] = ()
    """The sentence or turn of each position, of a text in segments."""
    layout: Layout = field(default_factory=Layout)
    backdrop: Any = None
    """An image with the box that the network got, frames, or points; nothing for a text."""
    forced: bool = False
    """Whether the output was given, and not found by search."""
    order: str = ""
    """A sentence about the order of several outputs, where that is not by probability."""
    attended: str = ""
    """The input that the positions are of, where there are several."""

    @property
    def kind(self) -> str:
        """The kind of the positions."""
        return "segments" if self.segments else self.layout.kind

    @property
    def copies(self) -> bool:
        """Whether words of the source can be copied."""
        return any(output.copied for output in self.outputs)

    @property
    def given(self) -> str:
        """The inputs as one text."""
        return " · ".join(self.inputs.values())

    @property
    def over(self) -> str:
        """Which of several inputs is attended to, to stand behind the outputs."""
        return f" (attention over {self.attended})" if self.attended else ""

    @property
    def title(self) -> str:
        """The input and its best output."""
        return f"{self.short} → {self.outputs[0].text}{self.over}"

    @property
    def short(self) -> str:
        """The same on one line, cut where it is long."""
        return cut(self.given, LONGEST)

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each position: its token (after its number for points), its cell or number."""
        count = len(self.outputs[0].weights[0])
        if len(self.source) == count:
            if not isinstance(self.backdrop, list):
                return self.source
            return tuple(f"{at}: {token}" for at, token in enumerate(self.source))
        if len(self.layout.shape or ()) > 1:
            cells = (divmod(at, self.layout.shape[1]) for at in range(count))
            return tuple(f"row {row + 1}, column {column + 1}" for row, column in cells)
        return tuple(str(at + 1) for at in range(count))

    @property
    def has_turns(self) -> bool:
        """Whether its segments are turns of a conversation, which begin with a speaker's mark."""
        groups = groupby(range(len(self.segments)), key=self.segments.__getitem__)
        firsts = {self.names[next(group)] for _, group in groups}
        return bool(self.segments) and firsts <= {OTHER, OWN}

    def alone(self, rank: int) -> "View":
        """The same with one of its outputs."""
        return replace(self, outputs=(self.outputs[rank],))

    def joined(self) -> "View":
        """The view of words: weights of pieces are added over the source, averaged over the output.

        The same where there is no more than one word on either side, as in transliteration.
        """
        alone = len(set(self.words)) < 2  # the pieces of a single source word stay
        if alone and all(len(set(output.words)) < 3 for output in self.outputs):
            return self
        groups = _groups(range(len(self.names)) if alone else self.words, self.segments)
        place = {at: number for number, group in enumerate(groups) for at in group}
        tokens = [[self.source[at] for at in group] for group in groups] if self.source else []
        return replace(
            self,
            source=tuple(map(_word, tokens)),
            segments=tuple(self.segments[group[0]] for group in groups) if self.segments else (),
            words=self.words if alone else tuple(range(len(groups))),
            outputs=tuple(_joined(output, groups, place) for output in self.outputs),
        )

    def sentences(self, output: Output) -> list[Sentence]:
        """The sentences of a text in segments; a text without them is one."""
        sentences = []
        segments = self.segments or [0] * len(output.mean)
        for _, group in groupby(zip(segments, output.mean, strict=True), key=itemgetter(0)):
            weights = [weight for _, weight in group]
            whole = fsum(weights)
            shares = tuple(weight / whole if whole > 0 else 0.0 for weight in weights)
            sentences.append(Sentence(whole, shares))
        return sentences

    def to_json(self) -> dict[str, Any]:
        """Plain values; images and frames are left out."""
        names = self.names
        values: dict[str, Any] = {
            "inputs": dict(self.inputs),
            "layout": [self.kind, *self.layout.shape],
            "source": list(self.source if len(self.source) == len(names) else names),
            "forced": self.forced,
        }
        if self.segments:
            values["segments"] = list(self.segments)
        if isinstance(self.backdrop, list):
            values["points"] = [list(point) for point in self.backdrop]
        return values | {"outputs": [self._output(output) for output in self.outputs]}

    def _output(self, output: Output) -> dict[str, Any]:
        values: dict[str, Any] = {
            "text": output.text,
            "score": output.score,
            "log_probability": output.log_probability,
            "tokens": list(output.tokens),
            "weights": [list(row) for row in output.weights],
        }
        if self.segments:
            sentences = self.sentences(output)
            values["sentence_weights"] = [sentence.weight for sentence in sentences]
            values["word_shares"] = [list(sentence.shares) for sentence in sentences]
        return values | ({"copied": list(output.copied)} if self.copies else {})


def _groups(words: Sequence[int], segments: Sequence[int]) -> list[list[int]]:
    """The positions of each word; a word never reaches into the next segment."""
    parts = segments or [0] * len(words)
    groups = groupby(range(len(words)), key=lambda at: (parts[at], words[at]))
    return [list(group) for _, group in groups]


def _word(pieces: Sequence[str]) -> str:
    plain = []
    for piece in pieces:
        mark = next((mark for mark in MARKS if piece.startswith(mark) and piece != mark), "")
        plain.append(piece.removeprefix(mark))
    return "".join(plain).replace(SPACE, "") or SPACE


def _joined(output: Output, groups: list[list[int]], place: Mapping[int, int]) -> Output:
    """The words of an output over the words of the source."""
    rows = _groups(output.words or range(len(output.tokens)), ())
    copied = [[output.copied[at] for at in row] for row in rows] if output.copied else []
    return replace(
        output,
        tokens=tuple(_word([output.tokens[at] for at in row]) for row in rows),
        weights=tuple(_weights(output.weights, row, groups) for row in rows),
        copied=tuple(next((place[at] for at in row if at is not None), None) for row in copied),
        words=tuple(range(len(rows))),
    )


def _weights(weights: Weights, rows: Sequence[int], groups: list[list[int]]) -> tuple[float, ...]:
    """Weights added over the pieces of each source word, averaged over those of the output's."""
    sums = (fsum(weights[row][at] for row in rows for at in group) for group in groups)
    return tuple(total / len(rows) for total in sums)


def view_of(
    predictor: Any,
    predictions: Sequence[Any],
    *,
    pieces: bool = False,
    forced: bool = False,
    order: str = "",
) -> View:
    """The view of the predictions for one input; with `pieces` its tokens stay as they are.

    `order` is a sentence about the order of the predictions, where that is not by probability.
    """
    first = predictions[0]
    if first.error is not None:
        raise DataError(f"there is no output to draw. {first.error}")
    if not first.weights:
        raise DataError(
            "this prediction has no attention weights to draw; its bridge has no attention."
        )
    inputs = dict(first.inputs)
    name, text = next(iter(inputs.items()))
    for key, value in first.inputs.items():
        if predictor.inputs[key].is_media:
            inputs[key] = Path(value).name
    view = View(
        inputs=inputs,
        # a beam may hold an empty output, which has no weights
        outputs=tuple(_output_of(each) for each in predictions if each.weights),
        source=first.source,
        words=first.source_words,
        segments=first.segments,
        layout=first.layout,
        backdrop=predictor.inputs[name].backdrop(text),
        forced=forced,
        order=order,
        attended=first.attended if len(first.inputs) > 1 else "",
    )
    return view if pieces else view.joined()


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


def probability_of(view: View, rank: int = 0) -> str:
    """The probability of an output as a share, or where all are small its logarithm.

    All outputs have the same unit; several in the order of their scores have those.
    """
    output = view.outputs[rank]
    best = view.outputs[0].probability
    if len(view.outputs) > 1 and view.order:
        return f"score {output.score:z.3f}"
    if best < LEAST_PROBABILITY:
        return f"log probability {output.log_probability:.2f}"
    if output.probability < LEAST_PROBABILITY:
        return "probability below 0.1%"
    return f"probability {percent(output.probability)}"


def order_of(view: View) -> str:
    """A sentence about the order of several outputs; nothing where there is one."""
    return "" if len(view.outputs) < 2 else view.order or BY_PROBABILITY
