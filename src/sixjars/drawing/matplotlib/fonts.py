"""Fonts of this machine for the letters of an image, and numbers for words that none can show.

DejaVu Sans comes with matplotlib and has Latin, Greek, Cyrillic, Arabic and more; other scripts
need a font of the machine. matplotlib shapes what it draws from version 3.11 on, so that Devanagari
and Arabic join as they should.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Final

from matplotlib import font_manager

from sixjars.progress import listed

FIRST: Final = "DejaVu Sans"
"""The font that is always there."""
_COMPUTER_MODERN = tuple("cmb10 cmex10 cmmi10 cmr10 cmss10 cmsy10 cmtt10".split())
LEFT_OUT: Final = ("Last Resort", *_COMPUTER_MODERN, "STIX", "DejaVu")
"""How the names of fonts begin that show no letters of other scripts, or show boxes."""
FAVOURED: Final = ("Noto Sans", "Noto", "Lohit", "Nirmala", "Arial", "")
"""How names begin, the best first, where several fonts have the same letters."""
SCRIPTS: Final[Mapping[str, str]] = {
    "CJK": "Noto Sans CJK SC",
    "HIRAGANA": "Noto Sans CJK JP",
    "KATAKANA": "Noto Sans CJK JP",
    "HANGUL": "Noto Sans CJK KR",
    "EMOJI": "Noto Emoji",
}
"""The font of a script where its name is not Noto Sans and the name of the script."""
Numbers = dict[str, int]
"""Words that no font can show, with their numbers in one image."""


@cache
def _letters(file: str) -> frozenset[int]:
    try:
        return frozenset(font_manager.get_font(file).get_charmap())
    except (OSError, RuntimeError):  # a damaged font, or a kind that matplotlib cannot read
        return frozenset()


@cache
def _others() -> tuple[tuple[str, str], ...]:
    """Name and file of every other font of this machine, the favoured first, in plain faces."""
    fonts: dict[str, str] = {}
    for entry in font_manager.fontManager.ttflist:
        regular = str(entry.weight) in ("400", "normal", "regular", "book")
        plain = entry.style == "normal" and regular
        if not entry.name.startswith(LEFT_OUT) and (plain or entry.name not in fonts):
            fonts[entry.name] = entry.fname

    def rank(name: str) -> tuple[int, str]:
        return next(at for at, start in enumerate(FAVOURED) if name.startswith(start)), name

    return tuple((name, fonts[name]) for name in sorted(fonts, key=rank))


@cache
def _own(weight: str | int) -> frozenset[int]:
    return _letters(font_manager.findfont(font_manager.FontProperties(family=FIRST, weight=weight)))


@lru_cache(4096)
def fonts_for(text: str, weight: str | int = "normal") -> tuple[tuple[str, ...], frozenset[str]]:
    r"""The fonts to try for the letters of a text, in order; and the letters that no font has.

    >>> fonts_for("né ↓"), fonts_for("\U000e0fff")[1] == {"\U000e0fff"}
    ((('DejaVu Sans',), frozenset()), True)
    """
    left = {letter for letter in text if not letter.isspace() and ord(letter) not in _own(weight)}
    names = [FIRST]
    for name, file in _others() if left else ():
        have = {letter for letter in left if ord(letter) in _letters(file)}
        if have:
            names.append(name)
            left -= have
    return tuple(names), frozenset(left)


def shown_text(text: str, numbers: Numbers, weight: str | int = "normal") -> str:
    r"""The text with plain spaces, and a number in place of each word that no font can show.

    >>> numbers = {}
    >>> shown_text("a\tb \U000e0fff", numbers), numbers
    ('a b [1]', {'\U000e0fff': 1})
    """
    plain = re.sub(r"[^\S\n]", " ", text)
    missing = fonts_for(plain, weight)[1]
    if not missing:
        return plain

    def numbered(match: "re.Match[str]") -> str:
        word = match[0]
        return f"[{numbers.setdefault(word, len(numbers) + 1)}]" if missing & set(word) else word

    return re.sub(r"\S+", numbered, plain)


def legend(numbers: Numbers) -> list[str]:
    """The meaning of each number, letter by letter, and the sentence with the fonts to install."""
    if not numbers:
        return []
    words = [f"[{number}] {spelled(word)}" for word, number in numbers.items()]
    return [*words, missing_font(numbers) or ""]


def spelled(word: str) -> str:
    """The names of the letters of a word, short ones: what a font would have drawn.

    >>> spelled("नम"), spelled("你"), spelled("<unk:🎉>")
    ('Devanagari na-ma', 'U+4F60', '<unk:-party popper->')
    """
    names, last = list[str](), ""
    for letter in re.findall(r"[\x00-\x7f]+|.", word):
        script = ""
        if letter.isascii():
            names.append(letter)
        elif (name := unicodedata.name(letter, "")) and not name.startswith("CJK"):
            script = _script(letter)
            short = re.sub(r"^.*(LETTER|SIGN|SYLLABLE|DIGIT|MARK) ", "", name).lower()
            known = script in (last, "CJK", "EMOJI")
            names.append(short if known else f"{script.title()} {short}".strip())
        else:
            names.append(f"U+{ord(letter):04X}")
        last = script
    return "-".join(names)


def _script(letter: str) -> str:
    """The first word of the letter's name, which is its script; or what fonts call it."""
    first = unicodedata.name(letter, "").partition(" ")[0]
    if first in ("FULLWIDTH", "HALFWIDTH", "IDEOGRAPHIC"):
        return "CJK"
    return "EMOJI" if unicodedata.category(letter) in ("So", "Sk") else first


def missing_font(texts: Iterable[str]) -> str | None:
    """A sentence that names the fonts to install, where no font here has the letters of some texts.

    >>> missing_font(["plain text", "é"])
    """
    left = fonts_for("".join(sorted(set("".join(texts)))))[1]
    scripts = [script for script in map(_script, sorted(left)) if script.isalpha()]
    fonts = dict.fromkeys(SCRIPTS.get(name, f"Noto Sans {name.title()}") for name in scripts)
    if not left:
        return None
    if not fonts:
        return "No font on this machine has some of these characters."
    return f"No font on this machine has these letters; install {listed(list(fonts))} to see them."
