"""Hindi words of the translation sample, and how they agree.

Romanisation: a long a is `aa`, but `a` at the end of a word (`bada`, `ja`); long i and u are `ee`
and `oo`, but `i` and `u` at the end; a nasal vowel ends in `n` (`nahin`, `hoon`); `mein` is both I
and in.

Grammar: McGregor, Outline of Hindi Grammar. Masculine nouns in -a change (`kamra`, `kamre`), the
others do not; before a postposition a noun and all that belongs to it stand in the oblique case;
parents and grandparents take the plural of respect (`meri maan ja rahi hain`).
"""

from dataclasses import dataclass
from functools import cache
from typing import final

from sixjars.samples.texts import Lexicon

WORDS = Lexicon("hindi")


@final
@dataclass(frozen=True)
class Noun:
    """An English noun and its Hindi forms."""

    group: str
    """`kin`, `people`, `animals`, `things` or `places`."""
    english: str
    hindi: str
    gender: str
    """`m` or `f`."""
    plural: str = ""
    """English plural; none for what is not counted."""

    @property
    def adjectives(self) -> tuple[str, ...]:
        """English adjectives that can stand before it."""
        known = WORDS.table("adjectives_of")
        return known.get(self.group) or known.get(self.english, ())

    def adjective(self, english: str, vowel: str) -> str:
        """An adjective before it, with its vowel; old is `puraana` for things, `boodha` for people.

        >>> Noun("things", "book", "kitaab", "f", "books").adjective("big", "i")
        'badi'
        """
        if english == "old" and self.group == "people":
            return "boodh" + vowel
        (stem,) = WORDS.table("adjectives")[english]
        return stem if stem in WORDS["unchanging"] else stem + vowel

    @property
    def honoured(self) -> bool:
        """Whether it takes the plural of respect."""
        return self.english in WORDS["honoured"]

    def form(self, *, many: bool, oblique: bool) -> str:
        """The Hindi form for a number and a case.

        >>> Noun("things", "room", "kamra", "m", "rooms").form(many=False, oblique=True)
        'kamre'
        """
        if self.gender == "m" and self.hindi.endswith("a"):
            end = "on" if many and oblique else "e"
            return self.hindi[:-1] + (end if many or oblique else "a")
        if not many or (self.gender == "m" and not oblique):
            return self.hindi
        if self.hindi.endswith("i"):
            return self.hindi + ("yon" if oblique else "yaan")
        return self.hindi + ("on" if oblique else "en")


@final
@dataclass(frozen=True)
class Verb:
    """An English verb and its Hindi root.

    >>> verb = Verb("la", "", "bring", "brings", "bringing")
    >>> verb.habit, verb.future
    ('laat', 'laa')
    """

    root: str
    """The form before `raha`: `ja`."""
    noun: str
    """The first word of a verb of two words: `kaam` of `kaam kar`."""
    english: str
    third: str
    participle: str

    @property
    def future(self) -> str:
        """The stem of the future: `jaa`."""
        return self.root + "a" if self.root.endswith("a") and self.root != "aa" else self.root

    @property
    def habit(self) -> str:
        """The stem of the habitual participle: `jaat`."""
        return (self.root[:-1] + "ee" if self.root.endswith("i") else self.future) + "t"


@final
@dataclass(frozen=True)
class VerbForms:
    """The endings and auxiliaries that go with a subject."""

    vowel: str
    """The vowel of participles: `rah` + a, i or e."""
    present: str
    past: str
    future: str


@cache
def agreement(kind: str) -> VerbForms:
    """The agreement of `I`, `you` or a third person: gender, and `one` or `many`.

    >>> agreement("f one").past
    'thi'
    """
    return VerbForms(*WORDS.table("agreement")[kind])


def ending(gender: str, *, many: bool, oblique: bool) -> str:
    """The vowel of an adjective: `bada kamra`, `bade kamre mein`, `badi kitaab`.

    >>> ending("m", many=False, oblique=True)
    'e'
    """
    if gender == "f":
        return "i"
    return "e" if many or oblique else "a"


@cache
def nouns(group: str) -> dict[str, Noun]:
    """The nouns of a group, by their English."""
    return {english: Noun(group, english, *forms) for english, forms in WORDS.table(group).items()}


@cache
def verbs(group: str) -> tuple[Verb, ...]:
    """All `motion`, `intransitive`, `transitive` or `social` verbs."""
    listed = WORDS.table(f"{group}_verbs").items()
    return tuple(Verb(root, " ".join(before), *forms.split()) for forms, (*before, root) in listed)


def in_hindi(table: str, english: str) -> str:
    """The Hindi word or words for an English word."""
    return " ".join(WORDS.table(table)[english])
