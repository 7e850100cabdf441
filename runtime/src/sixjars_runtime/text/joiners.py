"""Punctuation marks that say where no space stands, so that a word has one spelling everywhere.

A joiner on a side of a punctuation mark says that what stands there follows without a space:
`can't (yet)` is `can`, `￭'￭`, `t`, `(￭`, `yet`, `￭)`. A word has no joiner, for whatever stands
beside it without a space is a mark. Of two marks the second one says how they are joined, so a mark
has a joiner on its right only where a word follows. This is how OpenNMT's tokenizer annotates:
Klein et al. 2017 (https://arxiv.org/abs/1701.02810).

So a mark has up to four forms. A form that was not seen in training is read as the nearest one that
was.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Final

JOINER: Final = "￭"
"""What follows on this side of a token follows without a space."""
STAND_IN: Final = "■"
"""What a joiner of the text itself becomes."""
_LONGEST: Final = 3  # letters of a mark between two joiners
_SEAMS: Final = re.compile(f"{JOINER}? {JOINER}|{JOINER} ")


def without_joiners(token: str) -> str:
    """Return a token as it stands in the text.

    >>> without_joiners("￭'￭"), without_joiners("yet")
    ("'", 'yet')
    """
    return token.removeprefix(JOINER).removesuffix(JOINER) if token != JOINER else token


def text_of(tokens: Sequence[str]) -> str:
    """Join tokens with spaces, but none where either has a joiner.

    >>> text_of(["can", "￭'￭", "t", "(￭", "yet", "￭)"])
    "can't (yet)"
    """
    return _SEAMS.sub("", " ".join(tokens)).strip(JOINER)


def stand_ins(tokens: Iterable[str]) -> dict[str, str]:
    """Return the nearest form of a mark for each form that a vocabulary lacks.

    Of equally near ones it is the first. Single letters are taken for marks too; that costs a
    little memory and changes nothing, for no text has a letter with a joiner.

    >>> stand_ins(["￭,", "yet"])
    {',': '￭,', ',￭': '￭,', '￭,￭': '￭,'}
    """
    return {
        form: min(known, key=lambda other: _distance(form, other))
        for mark, known in _by_mark(tokens).items()
        for form in (f"{left}{mark}{right}" for left, right in product(("", JOINER), repeat=2))
        if form not in known
    }


def folded(counts: Mapping[str, int], least: int) -> Counter[str]:
    """Count a form seen fewer times than `least` as its mark's most frequent form.

    >>> folded({"￭;": 2, ";": 1, "yet": 1}, 3)
    Counter({'￭;': 3, 'yet': 1})
    """
    totals = Counter(counts)
    for forms in _by_mark(counts).values():
        forms.sort(key=lambda form: (-counts[form], form))
        for form in forms[1:]:
            if counts[form] < least:
                totals[forms[0]] += totals.pop(form)
    return totals


def _by_mark(tokens: Iterable[str]) -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for token in tokens:
        mark = without_joiners(token) if len(token) <= _LONGEST else ""
        if len(mark) == 1 and mark != JOINER:
            forms.setdefault(mark, []).append(token)
    return forms


def _distance(form: str, other: str) -> int:
    """Count the sides on which one of two forms has a joiner and the other has none."""
    sides = (str.startswith, str.endswith)
    return sum(has(form, JOINER) != has(other, JOINER) for has in sides)
