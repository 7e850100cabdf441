"""A network against its printed equations: encoder, bridge and decoder, at once and step by step.

Dims: B batch, S source positions, T target positions.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sixjars.flow.contracts import Component, Decoder, Encoder
from sixjars.flow.values import Context, Padded
from sixjars.model.build import Network
from sixjars.model.decoders.pointer import PointerDecoder

from .equation_values import Equations, Example
from .examples import CELLS, DOCUMENTS, VOCABULARY

Numbers = NDArray[np.float64]
ROUNDING = 1e-9
"""In 64 bits sums of a hundred terms differ by 1e-14 or so; a wrong letter by 0.01."""


def letters_of(component: Component, without: str = "\0") -> dict[str, Numbers]:
    """The weights of a component by the letters that `explain` prints; gates taken apart."""
    found: dict[str, Numbers] = {}
    for name, tensor in component.state_dict().items():
        letter = component.letter(name)
        if name.startswith(without) or letter == "CNN":
            continue
        letters = letter.split(" | ")
        assert not found.keys() & set(letters), letters
        parts = np.split(tensor.double().numpy(), len(letters))
        if tensor.shape == (1,):  # a number, which multiplies anything
            parts = [tensor.double().numpy().reshape(())]
        found |= zip(letters, parts, strict=True)
    return found


def all_letters(network: Network) -> dict[str, Numbers]:
    """Those of the whole model, in which no letter means two weights."""
    decoder = network.decoder
    sections = [
        letters_of(network.encoder),
        letters_of(decoder.bridge),
        letters_of(decoder, "bridge."),
    ]
    assert len({letter for section in sections for letter in section}) == sum(map(len, sections))
    return {letter: weight for section in sections for letter, weight in section.items()}


class Model:
    """A network of random weights in 64 bits, its input, and its target."""

    def __init__(
        self, encoder: Encoder, decoder: Decoder, inputs: Mapping[str, Padded], target: Padded
    ) -> None:
        self.network = Network(encoder, decoder).eval()
        self.inputs, self.target = dict(inputs), target
        with torch.no_grad():
            for weight in self.network.parameters():
                weight.normal_(std=0.5)

    def equations(self, row: int) -> Equations:
        """The printed lines, for one row."""
        network = self.network
        lines = [
            network.encoder.equations(),
            network.decoder.bridge.equations(),
            network.decoder.equations(),
        ]
        return Equations(lines, all_letters(network), self.example(row))

    def example(self, row: int) -> Example:
        """One row as numpy sees it: words, points, or the features of a frozen backbone."""
        target = self.target.values[row].tolist()
        shift = 3 if isinstance(self.network.decoder, PointerDecoder) else 0
        given: dict[str, Callable[..., Any]] = {"y": lambda t: target[t - 1] - shift}
        positions = words_of_question = outputs = 0
        segments: tuple[int, ...] = ()
        sentences: list[Any] = []
        for name, padded in self.inputs.items():
            length = int(padded.mask[row].sum())
            values = padded.values[row, :length].detach().numpy()
            if name in ("image", "video"):
                given |= self._features(name, row)
                positions = length if name == "video" or "v" not in given else CELLS
            elif name == "question":
                given["x"] = values_at(values)
                words_of_question = length
            elif name in ("sentence1", "sentence2"):
                sentences.append(values)
                segments, positions = (*segments, length), length
                given["x"] = lambda n, k: sentences[n - 1][k - 1]
            elif name != "nothing":
                positions = length
                given["p" if name == "points" else "x"] = values_at(values)
            if padded.segments is not None:
                segments = tuple(map(len, DOCUMENTS[row]))
                given["x"] = lambda n, k: DOCUMENTS[row][n - 1][k - 1]
            if padded.copy_ids is not None:
                given["copied"] = values_at(padded.copy_ids[row].numpy())
                outputs = VOCABULARY + padded.mask.shape[1]
        return Example(given, positions, words_of_question, segments, outputs)

    def _features(self, name: str, row: int) -> dict[str, Callable[..., Any]]:
        encoder: Any = getattr(self.network.encoder, "image", self.network.encoder)
        with torch.no_grad():
            maps, vectors = encoder.backbone(self.inputs[name])
        cells = maps[row].numpy()
        if name == "image" and encoder.backbone.features is not None:
            return {"r": values_at(vectors[row].numpy())}  # v is their mean
        if name == "video":
            return {"r": values_at(cells), "v": values_at(vectors[row].numpy())}
        return {
            "r": values_at(cells[0].reshape(len(cells[0]), -1).T),
            "v": lambda: vectors[row, 0].numpy(),
        }


def values_at(values: Any) -> Callable[[int], Any]:
    """From an index that begins with 1."""
    return lambda j: values[j - 1]


def agree(got: Any, wanted: Tensor, what: str) -> None:
    """To rounding."""
    np.testing.assert_allclose(got, wanted.detach().numpy(), rtol=0, atol=ROUNDING, err_msg=what)


def compare(model: Model) -> None:
    """Encoder, bridge and decoder of every row against their printed lines."""
    network, target = model.network, model.target
    encoded = network.encode(model.inputs)
    rows = [model.equations(row) for row in range(target.rows)]
    for row, found in enumerate(rows):
        agree(found.value("h", "T"), encoded.summary[row], "h_T")
        for j in range(1, found.example.positions + 1):
            agree(found.value("h", j), encoded.memory[row, j - 1], f"h_{j}")
        for n in range(1, len(found.example.segments) + 1 if encoded.segments is not None else 1):
            assert encoded.segments is not None
            agree(found.value("g", n), encoded.segments.memory[row, n - 1], f"g_{n}")
    output = network.decoder.teach(encoded, target)
    for row, t in zip(
        *(where.tolist() for where in torch.nonzero(target.mask, as_tuple=True)), strict=True
    ):
        chances = (
            torch.sigmoid(output.logits[row, t])
            if output.multi_label
            else output.logits[row, t].softmax(-1)
        )
        found, at = rows[row], (t + 1,) if network.decoder.searches else ()
        agree(padded(found.value("P", *at), len(chances)), chances, f"P at {t + 1}")
        if output.weights is not None and not isinstance(network.decoder, PointerDecoder):
            agree(
                attention(found, t + 1),
                output.weights[row, t, : found.example.positions],
                f"α at {t + 1}",
            )
    if network.decoder.searches:
        compare_steps(model, rows)


def padded(chances: Numbers, width: int) -> Numbers:
    """The positions that other rows have are chosen by nobody."""
    return np.pad(chances, (0, width - len(chances)))


def attention(found: Equations, t: int) -> list[float]:
    """α over all positions: at a step, or of pooling, which has none."""
    at = (t,) if len(found.lines["α"][0].indices) == 2 else ()
    return [found.value("α", j, *at) for j in range(1, found.example.positions + 1)]


@contextmanager
def noted(bridge: Any) -> Iterator[list[Context]]:
    """What a bridge returns meanwhile."""
    contexts: list[Context] = []
    step = bridge.step_from

    def noting(*given: Any) -> Context:
        contexts.append(step(*given))
        return contexts[-1]

    bridge.step_from = noting
    yield contexts
    del bridge.step_from


def compare_steps(model: Model, rows: list[Equations]) -> None:
    """States, context vectors, weights and probabilities, one step after the other."""
    decoder: Any = model.network.decoder
    state, prepared = decoder.start(model.network.encode(model.inputs))
    token = torch.full((model.target.rows,), decoder.special.go)
    for t, following in enumerate(model.target.values.unbind(1), start=1):
        with noted(decoder.bridge) as contexts:
            output, state = decoder.step(token, state, prepared)
        [context] = contexts
        after = getattr(state, "state", state)
        for row in torch.nonzero(model.target.mask[:, t - 1]).flatten().tolist():
            found, chances = rows[row], output.log_probabilities[row].exp()
            agree(found.value("s", t), after.hidden[row, -1], f"s_{t}")
            agree(padded(found.value("P", t), len(chances)), chances, f"P at {t}")
            if context.vector.shape[1]:
                agree(found.value("c", t), context.vector[row], f"c_{t}")
            if context.weights is not None:
                agree(
                    attention(found, t),
                    context.weights[row, : found.example.positions],
                    f"α at {t}",
                )
            if after.cell is not None:
                tag = "m_dec" if decoder.rnn.layers == 1 else f"m_dec{decoder.rnn.layers}"
                agree(found.value(tag, t), after.cell[row, -1], f"{tag},{t}")
        token = following
