"""Random words in Roman letters to Devanagari, by rules with context.

A letter's sign depends on its neighbours: a vowel is a letter of its own at the start of a word and
a mark after a consonant; a short a is not written at all; at the end of a word a, i and u are long;
consonants that touch are joined by a virama; a nasal before its own kind of stop becomes a dot
above the letter before. Tokens are code points, so a mark and a virama are characters of their own.
"""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import final

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon
from sixjars_runtime.errors import DataError

WORDS = Lexicon("transliteration")
VIRAMA, DOT = "्", "ं"
SYLLABLES_OF_DEFAULT = 5
"""The most syllables of a word where `longest` is the default; they grow with it."""


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
    known = (*WORDS.table("consonants"), *WORDS.table("vowels"))
    cut: list[Letter] = []
    at = 0
    while at < len(roman):
        size = next((size for size in (3, 2, 1) if roman[at : at + size] in known), 0)
        if not size:
            raise DataError(
                f"No letter of {roman!r} begins with {roman[at]!r}. Known: {', '.join(known)}."
            )
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
    spans = enumerate(letter.span for _, letter in signs)
    links = sorted((source, target) for target, span in spans for source in span)
    alignment = " ".join(f"{source}-{target}" for source, target in links)
    return "".join(sign for sign, _ in signs), alignment


def _signs(letter: str, before: str, after: str) -> str:
    """The signs of a letter, given the letters on both sides."""
    consonants, vowels = WORDS.table("consonants"), WORDS.table("vowels")
    if letter in vowels:
        (letter,) = (letter,) if after else WORDS.table("long_at_end").get(letter, (letter,))
        alone, *mark = vowels[letter]
        return "".join(mark) if before in consonants else alone
    if before in vowels and after in WORDS.table("nasals").get(letter, ()):
        return DOT
    usual = WORDS.table("after").get(f"{before} {letter}", consonants[letter])
    (sign,) = WORDS.table("before").get(f"{letter} {after}", usual)
    return sign + VIRAMA if after in consonants else sign


@partial(
    Corpus,
    "transliteration",
    ["roman"],
    "devanagari",
    truths=["alignment"],
    tokens="characters",
    categories=lambda: WORDS.table("categories"),
    lengths=(4, 16),
)
def transliteration(rng: Random, longest: int) -> Row:
    """Random words in Roman letters to Devanagari; the rules depend on neighbouring letters."""
    assert transliteration.longest is not None
    most = max(2, longest * SYLLABLES_OF_DEFAULT // transliteration.longest)
    while len(roman := _word(rng, rng.randint(2, most))) > longest:
        pass
    written, alignment = devanagari(roman)
    return {"roman": roman, "devanagari": written, "alignment": alignment}


def _word(rng: Random, syllables: int) -> str:
    onsets, vowels = (*WORDS.table("consonants"), *WORDS["onsets"]), list(WORDS.table("vowels"))
    parts: list[str] = []
    for number in range(syllables):
        onset = "" if number == 0 and rng.random() < 0.12 else rng.choice(onsets)
        vowel = rng.choices(vowels, (6, 4, 2, 1, 2, 1, 2, 1, 2, 1))[0]
        coda = rng.choice(WORDS["codas"]) if rng.random() < 0.25 else ""
        parts += [onset, vowel, coda]
    if rng.random() < 0.05 and parts[-1] == "" and parts[-2] in ("aa", "oo"):
        parts.append(rng.choice(("i", "e", "o")))
    return "".join(parts)
