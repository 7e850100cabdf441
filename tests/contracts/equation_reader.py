"""Reads the equations that `explain` prints: from lines to trees; or an error.

Sums of products of factors; names such as `m_{enc→,j-1}` stand for a quantity (m_enc→) at some
indices (j-1).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

Tree = tuple[Any, ...]
GO = 1

WORDS = {
    "before the first step every state is 0": "zero",
    "a word outside the vocabulary is <unk> in E_dec, and 0 in P_V": "unknown",
    "before the first step every weight is 0": "unattended",
    "τ_j is at how many positions the word x_j stands in the text, τ′_j the pair q_j": "counted",
    "m_nk is 1 where the other sentence has the word x_nk too, else 0; <unk> is never the same word": "shared",
}
"""Lines of plain words, each with the rule that it states."""
COMMENTS = (
    r"the (output|input|forget|reset|update) gate",
    r"the memory cell",
    r"no encoder, for there is no input; z is a learned vector",
    r"each label on its own",
    r"φ is 1 for words with a frozen vector, else 0",
    r"over the cells; \* is a convolution over frames and cells",
    r"the coverage",
    r"E_idf1 of a word is "
    r"log\(\(1 \+ n\) / \(1 \+ m\)\) \+ 1 where m of n training texts have it, 0 where none has",
    r"E_idf2 likewise, of pairs",
    r"E_idf1 of a word is "
    r"log\(\(1 \+ n\) / \(1 \+ m\)\) \+ 1 where m of n training texts have it, 0 where none has, "
    r"times the greatest log\(p / q\) over the labels ℓ of texts that have it, or 0: "
    r"p = \(m_ℓ \+ 4 n_ℓ / n\) / \(n_ℓ \+ 4\) where m_ℓ of the n_ℓ texts of label ℓ have it, "
    r"q likewise of all other texts",
    r"E_idf of a word is "
    r"log\(\(1 \+ L\) / \(1 \+ M\)\) \+ 1 where M of L training sentences have it, 0 where none "
    r"has",
    r"μ_o and σ_o are mean and spread over the training pairs",
    r"the pair's hash",
    r"λ is [\d.]+",
    r"0 beyond the ends",
)
"""What may stand after the colon of an equation."""
GATES = {"output": "o", "input": "i", "forget": "f", "reset": "o", "update": "i"}
"""The letter of each gate: those of a GRU are the lecture's."""
PLACE = ", where word j is word k of segment n"
CONDITIONS = {
    PLACE: "place",
    PLACE + "; ω_nk = 1 / K where the encoder computes none": "even",
    ", over the words of segment n, which has word j": "segment",
    ", or 0 where one of both is <unk> or beyond the end": "pair",
    ", or 0 where no word of the sentence counts": "none counts",
    ", or -1 where w_{1k} or w_{2j} is 0": "both count",
    ", or 0 where q_1 or q_2 is 0": "none is zero",
    ", over words whose w is above 0; 1 where none is": "above 0",
    ", over positions not chosen yet; <stop> when none is left": "all",
    ", over positions not chosen yet and, from t = 2 on, <stop>": "some",
}
"""What may stand after the comma of an equation, each with the rule that it states."""
FEATURES = re.compile(
    r"(?:r_1\.\.r_S, v = CNN\(I\)|v = CNN\(I\)|r_j, v_j = CNN\(I_j\)|v_j = CNN\(I_j\)): "
    r"(?:\d+×\d+ cells of \d+ numbers, )?a vector of \d+ "
    r"\(\w+, (?:(?:learned|fine-tuned)(?: from \S+ on)?|frozen, computed once)\)"
    r"|(?:r_1\.\.r_S|v_j): \d+ numbers each \(features given by the data\)"
)
"""The line of a backbone, which is taken as given."""
TURNED = re.compile(r"(.+): the same with ← for → and ([jkn])\+1 for \2-1")
RAISED = re.compile(r"(.+): the same with (\w+) for (\w+), (\S+) for ¹, and (.+) for (.+)")
WINDOW = re.compile(r"j-(\d+)\.\.j\+\1")
"""The positions around j."""
LEFT = re.compile(r"(P(?:_V)?\(.*?\)|\[.*?\]|.+?) = (.+)")

TOKEN = re.compile(
    r"\s*(?:"
    r"(?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)"
    r"|(?P<special><go>)"
    r"|(?P<reduce>softmax(?:_[jkn])?(?=\()|(?:mean|max|min)_[jk](?= )|Σ_(?:[jkn]|\{[^}]*\}))"
    r"|(?P<function>(?:tanh|relu|abs|mean|var|sqrt|log|norm|σ)(?=\())"
    r"|(?P<sign>mod(?= )|[-+⊙*/(),\[\]ᵀ])"
    r"|(?P<name>[A-Za-zα-ω][\u0302\u0303]?′?[⁰¹²³⁴⁵⁶⁷⁸⁹]*[→←]?"
    r"(?:_(?:\{(?:[^{}]|\{[^}]*\})*\}|(?:[^\s(){}\[\]ᵀ,;:]|,(?=\S))+))?)"
    r")"
)


class Unreadable(Exception):
    """A line that the reader does not understand."""


def split(name: str) -> tuple[str, tuple[str, ...]]:
    """A printed name as the name of a quantity and its indices."""
    base, _, subscript = name.partition("_")
    subscript = subscript[1:-1] if subscript.startswith("{") else subscript
    if re.fullmatch(r"y_(0|\{t-1\})", subscript):
        return base, (subscript,)
    if WINDOW.match(subscript):
        return base, tuple(subscript.split(","))
    pieces = subscript.split(",") if subscript else []
    indices: list[str] = []
    while pieces and re.fullmatch(r"[jnkt][+-]1|[jnktSNKT0-9]+", pieces[-1]):
        last = pieces.pop()
        indices[:0] = [last] if last[1:2] in ("+", "-") else list(last)
    return "_".join([base, *([",".join(pieces)] if pieces else [])]), tuple(indices)


@dataclass(frozen=True)
class Line:
    """An equation: what it defines at which indices, by which tree, under which rule."""

    base: str
    indices: tuple[str, ...]
    tree: Tree
    rule: str
    text: str


class Parser:
    """Sums of products of factors, as trees of tuples."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while text[place:].strip():
            match = TOKEN.match(text, place)
            if match is None or match.lastgroup is None:
                raise Unreadable(f"{text!r} at {text[place:]!r}")
            self.tokens.append((match.lastgroup, match[match.lastgroup]))
            place = match.end()
        self.tokens.append(("end", ""))

    def whole(self) -> Tree:
        """All of the text."""
        tree = self.sum()
        if self.tokens[self.at][0] != "end":
            raise Unreadable(f"{self.text!r} at {self.tokens[self.at :]}")
        return tree

    def take(self, *signs: str) -> str:
        """The next sign if it is one of these, else nothing."""
        kind, text = self.tokens[self.at]
        found = kind == "sign" and text in signs
        self.at += found
        return text if found else ""

    def need(self, sign: str) -> None:
        """The next sign, which must be this one."""
        if not self.take(sign):
            raise Unreadable(f"{self.text!r}: no {sign!r} at {self.tokens[self.at :]}")

    def sum(self) -> Tree:
        """Products, added and subtracted."""
        tree = self.product()
        while sign := self.take("+", "-"):
            tree = (sign, tree, self.product())
        return tree

    def product(self) -> Tree:
        """Factors side by side, or with a sign between them."""
        tree = self.factor()
        while True:
            kind, text = self.tokens[self.at]
            if sign := self.take("⊙", "*", "/", "mod"):
                tree = (sign, tree, self.factor())
            elif kind in ("number", "reduce", "function", "name") or text in ("(", "["):
                tree = ("·", tree, self.factor())
            else:
                return tree

    def inside(self, end: str) -> Tree:
        """A sum and the bracket that ends it."""
        tree = self.sum()
        self.need(end)
        return tree

    def factor(self) -> Tree:
        """A number, name, function, sum in brackets or vector of parts; each may be transposed."""
        kind, text = self.tokens[self.at]
        self.at += 1
        if kind in ("number", "special"):
            tree: Tree = ("number", GO if kind == "special" else float(text))
        elif kind == "name":
            tree = self.name(text)
        elif kind in ("reduce", "function"):
            tree = (
                ("sum", text[2:].strip("{}"), self.product())
                if text[0] == "Σ"
                else (kind, text, self.factor())
            )
        elif text == "(":
            tree = self.inside(")")
        elif text == "[":
            parts = [self.sum()]
            while self.take(","):
                parts.append(self.sum())
            self.need("]")
            tree = ("join", *parts)
        else:
            raise Unreadable(f"{self.text!r} at {text!r}")
        return ("ᵀ", tree) if self.take("ᵀ") else tree

    def name(self, text: str) -> Tree:
        """A quantity; a word's row of a matrix, E[x]; or a word's chance, P_V(y)."""
        if text.startswith("E") and self.take("["):
            return ("row", text, self.inside("]"))
        if text == "P_V":
            self.need("(")
            return ("chance", text, self.inside(")"))
        return ("name", text)


def changed(line: str, changes: Mapping[str, str]) -> str:
    """The line with all of these replaced at once."""
    return re.sub("|".join(map(re.escape, changes)), lambda found: changes[found[0]], line)


def expanded(lines: list[str]) -> list[str]:
    """The lines of one component, with every 'the same with …' written out."""
    found: list[str] = []
    for line in lines:
        if turned := TURNED.fullmatch(line):
            start = len(found) - next(
                (at for at, one in enumerate(reversed(found)) if "→" not in one), len(found)
            )
            block = [
                one.replace("→", "←").replace(f"{turned[2]}-1", f"{turned[2]}+1")
                for one in found[start:]
            ]
            defined = turned[1]
        elif raised := RAISED.fullmatch(line):
            changes = {raised[3]: raised[2], "¹": raised[4], raised[6]: raised[5]}
            first = [one for one in found if re.match(rf"[^\[=]*(¹|{raised[3]})[^=]* = ", one)]
            block = [changed(one, changes) for one in first]
            defined = raised[1]
        else:
            found.append(line)
            continue
        if not any(one.startswith(f"{defined} = ") for one in block):
            raise Unreadable(line)
        found += block
    return found


@cache
def read(line: str) -> tuple[Line, ...]:
    """What a line defines: a quantity, or several that share a vector; or a rule without a tree."""
    if line in WORDS:
        return (Line("", (), (), WORDS[line], line),)
    if FEATURES.fullmatch(line):
        return ()
    apart = re.fullmatch(r"((?:[^:{]|\{[^}]*\}|:(?! ))*)(?:: (.*))?", line)
    if apart is None or (
        apart[2] is not None and not any(re.fullmatch(known, apart[2]) for known in COMMENTS)
    ):
        raise Unreadable(line)
    ending = next(
        (end for end in sorted(CONDITIONS, key=len, reverse=True) if apart[1].endswith(end)), ""
    )
    sides = LEFT.fullmatch(apart[1].removesuffix(ending))
    if sides is None:
        raise Unreadable(line)
    gate = re.fullmatch(r"the (\w+) gate", apart[2] or "")
    if gate and not sides[1].startswith(f"{GATES[gate[1]]}_"):
        raise Unreadable(line)
    tree, rule = Parser(sides[2]).whole(), CONDITIONS.get(ending, "")
    if sides[1].startswith("["):
        names = [split(name) for name in sides[1][1:-1].split(", ")]
        return tuple(
            Line(*name, ("share", tree, at, len(names)), rule, line)
            for at, name in enumerate(names)
        )
    return (Line(*_defined(sides[1]), tree, rule, line),)


def _defined(left: str) -> tuple[str, tuple[str, ...]]:
    """The one quantity, function or distribution on the left of an equation, and its indices."""
    if function := re.fullmatch(r"(norm)\(a\)", left):
        return function[1], ("a",)
    if chance := re.fullmatch(r"(P(?:_V)?)\((y_t|y)( = j)?( \| .*)?\)", left):
        return chance[1], ("t",) if chance[2] == "y_t" else ()
    if [("name", left), ("end", "")] != Parser(left).tokens:
        raise Unreadable(left)
    return split(left)


def names_in(line: str) -> set[str]:
    """All names that stand in the equations of a line."""

    def walked(tree: Tree) -> set[str]:
        inner = {name for part in tree if isinstance(part, tuple) for name in walked(part)}
        return inner | ({tree[1]} if tree and tree[0] in ("name", "row") else set())

    return {name for one in read(line) for name in walked(one.tree)}
