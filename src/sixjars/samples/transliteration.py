"""Made-up words in Roman letters to Devanagari, by rules that look around.

A letter's sign depends on its neighbours: a vowel is a letter of its own at the start of a word and a
mark after a consonant; a short a is not written at all; at the end of a word a, i and u are long;
consonants that touch are joined by a virama; a nasal before its own kind of stop becomes a dot above
the letter before. Tokens are code points, so a mark and a virama are characters of their own.
"""

from dataclasses import dataclass
from random import Random
from typing import final

from sixjars.errors import DataError
from sixjars.samples.sample import Row, Sample

CONSONANTS = {
    **{"k": "क", "kh": "ख", "g": "ग", "gh": "घ", "ch": "च", "chh": "छ", "j": "ज", "jh": "झ"},
    **{"t": "त", "th": "थ", "d": "द", "dh": "ध", "n": "न", "p": "प", "ph": "फ", "b": "ब", "bh": "भ"},
    **{"m": "म", "y": "य", "r": "र", "l": "ल", "v": "व", "sh": "श", "s": "स", "h": "ह"},
}
VOWELS = {
    **{"a": ("अ", ""), "aa": ("आ", "ा"), "i": ("इ", "ि"), "ee": ("ई", "ी"), "u": ("उ", "ु"), "oo": ("ऊ", "ू")},
    **{"e": ("ए", "े"), "ai": ("ऐ", "ै"), "o": ("ओ", "ो"), "au": ("औ", "ौ")},
}
"""The letter of its own, and the mark after a consonant."""
LETTERS = (*CONSONANTS, *VOWELS)
LONG_AT_END = {"a": "aa", "i": "ee", "u": "oo"}
NASALS = {
    "n": ("k", "kh", "g", "gh", "ch", "chh", "j", "jh", "t", "th", "d", "dh"),
    "m": ("p", "ph", "b", "bh"),
}
"""The stops before which a nasal is only a dot."""
VIRAMA, DOT = "्", "ं"
AFTER = {
    ("g", "y"): "ञ",
    ("k", "sh"): "ष",
    ("sh", "t"): "ट",
    ("sh", "th"): "ठ",
    ("sh", "n"): "ण",
    ("r", "n"): "ण",
}
"""A consonant that is written otherwise when it touches the one before."""
BEFORE = {("g", "y"): "ज", ("sh", "t"): "ष", ("sh", "th"): "ष", ("sh", "n"): "ष"}
"""A consonant that is written otherwise when it touches the one after."""

SYLLABLES_OF_DEFAULT = 5
ONSETS = (*CONSONANTS, *("r", "k", "m", "n", "s"), "pr", "kr", "tr", "gr", "sv", "st", "ksh", "gy", "dy")
CODAS = ("n", "n", "m", "r", "l", "s", "k", "t", "sh")


@final
@dataclass(frozen=True)
class Letter:
    """One Roman consonant or vowel, and where it stands."""

    text: str
    start: int

    @property
    def span(self) -> tuple[int, ...]:
        """The positions of its characters."""
        return tuple(range(self.start, self.start + len(self.text)))


def letters(roman: str) -> list[Letter]:
    """The word cut into consonants and vowels, the longest that fit first.

    >>> [letter.text for letter in letters("chhaata")]
    ['chh', 'aa', 't', 'a']
    """
    cut: list[Letter] = []
    at = 0
    while at < len(roman):
        size = next((size for size in (3, 2, 1) if roman[at : at + size] in LETTERS), 0)
        if not size:
            raise DataError(f"No letter of {roman!r} begins with {roman[at]!r}. Known: {', '.join(LETTERS)}.")
        cut.append(Letter(roman[at : at + size], at))
        at += size
    return cut


def devanagari(roman: str) -> tuple[str, str]:
    """The word in Devanagari, and which Roman character each of its characters comes from.

    >>> devanagari("namaste")
    ('नमस्ते', '0-0 2-1 4-2 4-3 5-4 6-5')
    >>> devanagari("rang")[0], devanagari("aam")[0], devanagari("bhaai")[0], devanagari("chhota")[0]
    ('रंग', 'आम', 'भाई', 'छोता')
    """
    cut = letters(roman)
    signs: list[tuple[str, Letter]] = []
    for at, letter in enumerate(cut):
        before = cut[at - 1].text if at else ""
        after = cut[at + 1].text if at + 1 < len(cut) else ""
        signs += [(sign, letter) for sign in _signs(letter.text, before, after)]
    links = sorted((source, target) for target, (_, letter) in enumerate(signs) for source in letter.span)
    return "".join(sign for sign, _ in signs), " ".join(f"{source}-{target}" for source, target in links)


def _signs(letter: str, before: str, after: str) -> str:
    """What one letter is written as, given the letters on both sides."""
    if letter in VOWELS:
        alone, mark = VOWELS[letter if after else LONG_AT_END.get(letter, letter)]
        return mark if before in CONSONANTS else alone
    if before in VOWELS and after in NASALS.get(letter, ()):
        return DOT
    sign = BEFORE.get((letter, after)) or AFTER.get((before, letter)) or CONSONANTS[letter]
    return sign + VIRAMA if after in CONSONANTS else sign


def draw(rng: Random, longest: int) -> Row:
    """One word of at most `longest` characters, and the same word in Devanagari."""
    assert SAMPLE.longest is not None
    most = max(2, longest * SYLLABLES_OF_DEFAULT // SAMPLE.longest)
    while len(roman := _word(rng, rng.randint(2, most))) > longest:
        pass
    written, alignment = devanagari(roman)
    return {"roman": roman, "devanagari": written, "alignment": alignment}


def _word(rng: Random, syllables: int) -> str:
    parts: list[str] = []
    for number in range(syllables):
        onset = "" if number == 0 and rng.random() < 0.12 else rng.choice(ONSETS)
        vowel = rng.choices(list(VOWELS), (6, 4, 2, 1, 2, 1, 2, 1, 2, 1))[0]
        coda = rng.choice(CODAS) if rng.random() < 0.25 else ""
        parts += [onset, vowel, coda]
    if rng.random() < 0.05:
        parts += [rng.choice(("i", "e", "o")) if parts[-1] == "" and parts[-2] in ("aa", "oo") else ""]
    return "".join(parts)


SAMPLE = Sample(
    task="transliteration",
    description="Made-up words in Roman letters to Devanagari, by rules that look at the neighbours.",
    draw=draw,
    source="roman",
    target="devanagari",
    alignment="alignment",
    tokens="characters",
    shortest=4,
    longest=16,
    categories={
        "vowels": ("a", "i", "u", "e", "o"),
        "stops": ("k", "g", "c", "j", "t", "d", "p", "b"),
        "nasals": ("n", "m"),
        "others": ("y", "r", "l", "v", "s", "h"),
    },
)
