"""Evaluates printed equations with numpy, for one example: each quantity by its line.

A value is looked up with its indices put in, and so on down to weights and inputs, without torch.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .equation_reader import WINDOW, Line, Tree, Unreadable, expanded, read, split

Env = dict[str, Any]
UNK, SPECIAL = 3, 4
VARIABLES = "jnkt"
ELEMENTWISE: dict[str, Callable[[Any], Any]] = {
    "tanh": np.tanh,
    "σ": lambda x: 1 / (1 + np.exp(-x)),
    "abs": np.abs,
    "relu": lambda x: np.maximum(x, 0),
    "sqrt": np.sqrt,
    "log": np.log,
    "var": np.var,
    "mean": lambda x: x.mean((-2, -1)) if np.ndim(x) == 3 else np.mean(x),
}

OTHERWISE = {"none counts": 0.0, "both count": -1.0, "none is zero": 0.0}
"""What lines have in the case that they except, by their rules."""


def is_general(line: Line) -> bool:
    """Whether it holds for all values of its indices, such as h_j, or for one, such as s_0."""
    return all(index in VARIABLES for index in line.indices)


def softmax(scores: Any) -> Any:
    """Over a vector."""
    powers = np.exp(np.asarray(scores) - np.max(scores))
    return powers / powers.sum()


def multiplied(left: Any, right: Any) -> Any:
    """Side by side: a number times anything, a matrix times a vector; an undefined state is 0."""
    if np.ndim(left) == 2 and np.ndim(right) == 0:
        assert right == 0
        return np.zeros(len(left))
    product = left * right if np.ndim(left) == 0 or np.ndim(right) == 0 else left @ right
    return product[0] if np.shape(product) == (1,) else product


def convolved(weight: Any, window: Any) -> Any:
    """Of frames (5, C, h, w) by (G, C, 5, 3, 3), zero outside: (G, h, w)."""
    *_, height, width = window.shape
    edged = np.pad(window, ((0, 0), (0, 0), (1, 1), (1, 1)))
    found = np.zeros((len(weight), height, width))
    for down in range(height):
        for across in range(width):
            patch = edged[:, :, down : down + 3, across : across + 3].transpose(1, 0, 2, 3)
            found[:, down, across] = (weight * patch).sum((1, 2, 3, 4))
    return found


@dataclass(frozen=True)
class Example:
    """The input and output of one example, and how many there are of each index."""

    given: Mapping[str, Callable[..., Any]]
    """Inputs by name, each a function of its indices."""
    positions: int = 0
    """S."""
    words: int = 0
    """K of a question."""
    segments: tuple[int, ...] = ()
    """K of each segment."""
    outputs: int = 0
    """All that can be output, where words are copied."""

    def place(self, position: int) -> Env:
        """The segment n that has word j, and which of its words that is, k."""
        before = 0
        for n, length in enumerate(self.segments, start=1):
            if position <= before + length:
                return {"n": n, "k": position - before}
            before += length
        raise Unreadable(f"word {position} is in no segment")

    def range(self, index: str, env: Env) -> range:
        """All values of an index."""
        last = {"j": self.positions, "n": len(self.segments), "k": self.words}[index]
        if index == "k" and self.segments:
            # of a pair, k alone counts the words of the first sentence
            last = self.segments[env.get("n", 1) - 1]
        return range(1, last + 1)


@dataclass
class Equations:
    """The printed lines of a model with its weights, for one example."""

    components: Iterable[list[str]]
    weights: Mapping[str, Any]
    example: Example
    lines: dict[str, list[Line]] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for component in self.components:
            for line in expanded(component):
                for one in read(line):
                    self._add(one)

    def _add(self, line: Line) -> None:
        if not line.base:
            self.rules.add(line.rule)
            return
        others = self.lines.setdefault(line.base, [])
        general = {one.indices for one in others if is_general(one)} if is_general(line) else set()
        twice = any(len(indices) == len(line.indices) for indices in general)
        if (
            twice
            or line.indices in {one.indices for one in others}
            or line.text.partition(" = ")[0] in self.weights
        ):
            raise Unreadable(f"{line.text!r}: {line.base} means two things")
        others.append(line)

    def value(self, base: str, *at: Any) -> Any:
        """A quantity at some indices."""
        if "unattended" in self.rules and base in ("α", "κ") and at[-1] == 0:
            return 0.0
        if base == "m" and "shared" in self.rules:
            return self._shared(*at)
        if base in ("τ", "τ′") and "counted" in self.rules:
            return self._occurrences({"τ": "x", "τ′": "q"}[base], *at)
        if (base, at) not in self.known:
            self.known[base, at] = self._found(base, at)
        return self.known[base, at]

    def _found(self, base: str, at: tuple[Any, ...]) -> Any:
        lines = [line for line in self.lines.get(base, []) if len(line.indices) == len(at)]
        named = [
            line for line in lines if not is_general(line) and line.indices == tuple(map(str, at))
        ]
        if named:
            return self._evaluated(named[0], {})
        if base in self.example.given:
            return self.example.given[base](*at)
        general = [line for line in lines if is_general(line)]
        if len(general) != 1 or any(isinstance(one, str) for one in at):
            raise Unreadable(f"{base} at {at} is defined {len(general)} times")
        env: Env = {}
        for index, number in zip(general[0].indices, at, strict=True):
            if index != "t" and number not in self.example.range(index, env):
                if "zero" not in self.rules:
                    raise Unreadable(f"{base} at {at} is nowhere")
                return 0.0
            env[index] = number
        if env.get("t", 0) < 0:
            raise Unreadable(f"{base} before its first step")
        return self._evaluated(general[0], env)

    def _evaluated(self, line: Line, env: Env) -> Any:
        if line.rule in ("all", "some"):
            return self._pointed(line, env)
        if line.rule in ("place", "even", "segment"):
            env = env | self.example.place(env["j"])
        if line.rule == "pair" and not all(self._is_known(env["j"] + by) for by in (0, 1)):
            return 0
        if line.rule in OTHERWISE and (value := self._otherwise(line.rule, env)) is not None:
            return value
        if line.rule == "even" and "ω" not in self.lines:
            self.lines["ω"] = list(read("ω_nk = 1 / K"))
        if "y_t" in line.text.partition(" = ")[2]:  # a chance that is told for each word
            return np.array(
                [self.eval(line.tree, env | {"y_t": word}) for word in range(self.example.outputs)]
            )
        return self.eval(line.tree, env | {"rule": line.rule})

    def _otherwise(self, rule: str, env: Env) -> float | None:
        """The value of a line of the overlap of two sentences in its exception, or None."""
        if rule == "none counts":
            words = self.example.range("k", env)
            excepted = not any(self._frequency(env["n"], k) for k in words)
        elif rule == "both count":
            excepted = not (self._frequency(1, env["k"]) and self._frequency(2, env["j"]))
        else:
            excepted = not (self.value("q", 1).any() and self.value("q", 2).any())
        return OTHERWISE[rule] if excepted else None

    def _frequency(self, n: int, k: int) -> float:
        """What a word of a sentence weighs for how rare it is, before it is shared out."""
        return float(self.weights["E_idf"][self.value("x", n, k)].item())

    def _is_known(self, position: int) -> bool:
        """Whether there is a word of the vocabulary at a position."""
        return position <= self.example.positions and self.value("x", position) >= SPECIAL

    def _occurrences(self, base: str, position: int) -> int:
        """At how many positions a quantity has the value that it has at one."""
        values = [self.value(base, place) for place in self.example.range("j", {})]
        return values.count(self.value(base, position))

    def _shared(self, n: int, k: int) -> float:
        """Whether the other of two sentences has a word too."""
        other = 3 - n
        theirs = [self.value("x", other, place) for place in self.example.range("k", {"n": other})]
        return float(self.value("x", n, k) in theirs and self.value("x", n, k) >= SPECIAL)

    def _pointed(self, line: Line, env: Env) -> Any:
        """The chance of each token: positions not chosen, and `<stop>` where it may come."""
        t, found = env["t"], np.zeros(SPECIAL + self.example.positions)
        chosen = {self.value("y", before) for before in range(1, t)}
        free = [j for j in self.example.range("j", env) if j not in chosen]
        scores = {SPECIAL - 1 + j: self.eval(line.tree[2], env | {"j": j}) for j in free}
        if line.rule == "some" and t >= 2:
            scores[2] = self.value("u_stop", t)
        elif not free:
            scores[2] = 0.0
        found[list(scores)] = softmax(list(scores.values()))
        return found

    def index(self, text: str, env: Env) -> Any:
        """A printed index as a number; T is a name."""
        if text.startswith("y_"):
            before = 0 if text == "y_0" else env["t"] - 1
            return self.value("y", before) if before else "y_0"
        if text in ("S", "N", "K"):
            return len(self.example.range({"S": "j", "N": "n", "K": "k"}[text], env))
        if text[0] in VARIABLES:
            return env[text[0]] + int(text[1:] or 0)
        return int(text) if text.isdigit() else text

    def eval(self, tree: Tree, env: Env) -> Any:
        """A tree with values for its indices."""
        kind, *parts = tree
        if kind == "number":
            return parts[0]
        special = getattr(self, f"_{kind}", None)
        if special is not None:
            return special(*parts, env)
        return _combined(kind, [self.eval(part, env) for part in parts])

    def _join(self, *parts: Any) -> Any:
        *trees, env = parts
        return np.concatenate([np.atleast_1d(self.eval(tree, env)) for tree in trees])

    def _share(self, whole: Tree, at: int, count: int, env: Env) -> Any:
        return np.split(self.eval(whole, env), count)[at]

    def _row(self, matrix: str, word: Tree, env: Env) -> Any:
        rows, number = self._name(matrix, env), int(self.eval(word, env))
        row = rows[UNK if number >= len(rows) and "unknown" in self.rules else number]
        return row[0] if row.shape == (1,) else row  # a weight of the token

    def _chance(self, name: str, _: Tree, env: Env) -> Any:
        chances = self.value(name, env["t"])
        return (
            0.0 if env["y_t"] >= len(chances) and "unknown" in self.rules else chances[env["y_t"]]
        )

    def _name(self, text: str, env: Env) -> Any:
        if text in self.weights:
            return self.weights[text]
        if text in env:
            return env[text]
        base, indices = split(text)
        if base in ("S", "N", "K"):
            return self.index(base, env)
        if indices and (around := WINDOW.fullmatch(indices[0])):
            window = [env["j"] + by for by in range(-int(around[1]), int(around[1]) + 1)]
            others = [self.index(index, env) for index in indices[1:]]
            inside = [
                self.value(base, j, *others) if 1 <= j <= self.example.positions else None
                for j in window
            ]
            blank = np.zeros_like(next(frame for frame in inside if frame is not None))
            return np.stack([blank if frame is None else frame for frame in inside])
        return self.value(base, *(self.index(index, env) for index in indices))

    def _sum(self, over: str, body: Tree, env: Env) -> Any:
        index, _, condition = over.partition(": ")
        if condition not in ("", "x_j = y_t"):
            raise Unreadable(over)
        values = list(self.example.range(index, env))
        if condition:
            values = [j for j in values if self.example.given["copied"](j) == env["y_t"]]
        return sum((self.eval(body, env | {index: value}) for value in values), 0.0)

    def _reduce(self, name: str, body: Tree, env: Env) -> Any:
        index = name.partition("_")[2]
        if not index:
            return softmax(self.eval(body, env))
        values = list(self.example.range(index, env))
        if env.get("rule") == "above 0" and name.startswith("min"):
            values = [at for at in values if self._frequency({"k": 1, "j": 2}[index], at)]
            if not values:
                return 1.0
        if name[0] == "m":
            stacked = np.stack([self.eval(body, env | {index: value}) for value in values])
            return getattr(stacked, name.partition("_")[0])(0)
        if env.get("rule") == "segment":
            values = [j for j in values if self.example.place(j)["n"] == env["n"]]
        return softmax([self.eval(body, env | {index: value}) for value in values])[
            values.index(env[index])
        ]

    def _function(self, name: str, body: Tree, env: Env) -> Any:
        value = self.eval(body, env)
        return (
            ELEMENTWISE[name](value)
            if name in ELEMENTWISE
            else self.eval(self.lines[name][0].tree, {"a": value})
        )


def _combined(kind: str, values: list[Any]) -> Any:
    if kind == "ᵀ":  # a vector that torch keeps as a matrix of one row is printed as the vector
        return (
            values[0]
            if np.ndim(values[0]) == 2 and len(values[0]) == 1
            else np.atleast_2d(values[0])
        )
    left, right = values
    if kind == "+":
        return left + (right[:, None, None] if np.ndim(left) == 3 else right)
    if kind == "-":
        return left - right
    if kind == "/":
        return left / right
    if kind == "mod":
        return left % right
    if kind == "⊙":
        return left * right
    return {"·": multiplied, "*": convolved}[kind](left, right)
