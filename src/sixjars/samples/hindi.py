"""The Hindi that the translation sample knows: words, and how they agree.

Romanisation: a long a is `aa`, but `a` at the end of a word (`bada`, `ja`); long i and u are `ee` and
`oo`, but `i` and `u` at the end; a nasal vowel ends in `n` (`nahin`, `hoon`); `mein` is both I and in.

Grammar: McGregor, Outline of Hindi Grammar. Masculine nouns in -a change (`kamra`, `kamre`), the
others do not; before a postposition a noun and all that belongs to it stand in the oblique case;
parents and grandparents take the plural of respect (`meri maan ja rahi hain`).
"""

from dataclasses import dataclass
from typing import Literal, final

Gender = Literal["m", "f"]


@final
@dataclass(frozen=True)
class Noun:
    """An English noun and its Hindi forms."""

    english: str
    hindi: str
    gender: Gender
    plural: str = ""
    """English plural; none for what is not counted."""
    honoured: bool = False
    """Whether it takes the plural of respect."""

    def form(self, *, many: bool, oblique: bool) -> str:
        """The Hindi form for a number and a case.

        >>> Noun("room", "kamra", "m", "rooms").form(many=False, oblique=True)
        'kamre'
        """
        if many and oblique:
            return self._many_oblique()
        if many:
            return self._many()
        return self.hindi[:-1] + "e" if oblique and self._changes else self.hindi

    @property
    def _changes(self) -> bool:
        return self.gender == "m" and self.hindi.endswith("a")

    def _many(self) -> str:
        if self.gender == "m":
            return self.hindi[:-1] + "e" if self._changes else self.hindi
        return self.hindi + ("yaan" if self.hindi.endswith("i") else "en")

    def _many_oblique(self) -> str:
        if self._changes:
            return self.hindi[:-1] + "on"
        return self.hindi + ("yon" if self.hindi.endswith("i") else "on")


@final
@dataclass(frozen=True)
class Verb:
    """An English verb and its Hindi stems."""

    english: str
    third: str
    going: str
    root: str
    """Before `raha`: `ja`."""
    habit: str
    """Before the ending of the habitual participle: `jaat`."""
    future: str
    """Before the ending of the future: `jaa`."""
    noun: str = ""
    """What stands before the root of a verb of two words: `kaam` of `kaam kar`."""


def verb(english: str, root: str, *, third: str = "", going: str = "") -> Verb:
    """A verb whose forms follow the rules, English ones where they are not given.

    >>> verb("bring", "la").future, verb("work", "kaam kar").noun
    ('laa', 'kaam')
    """
    noun, _, root = root.rpartition(" ")
    long = root if root == "aa" else root + "a" if root.endswith("a") else root
    return Verb(english, third or english + "s", going or english + "ing", root, long + "t", long, noun)


@final
@dataclass(frozen=True)
class Agreement:
    """The endings and auxiliaries that go with a subject."""

    vowel: str
    """Of participles: `rah` + a, i or e."""
    present: str
    past: str
    future: str


I_DO = Agreement("a", "hoon", "tha", "oonga")
YOU_DO = Agreement("e", "ho", "the", "oge")
HE_DOES = Agreement("a", "hai", "tha", "ega")
SHE_DOES = Agreement("i", "hai", "thi", "egi")
THEY_DO = Agreement("e", "hain", "the", "enge")
THESE_WOMEN_DO = Agreement("i", "hain", "thin", "engi")


def agreement(gender: Gender, *, many: bool) -> Agreement:
    """Of a third person."""
    if gender == "m":
        return THEY_DO if many else HE_DOES
    return THESE_WOMEN_DO if many else SHE_DOES


def ending(gender: Gender, *, many: bool, oblique: bool) -> str:
    """The vowel of an adjective: `bada kamra`, `bade kamre mein`, `badi kitaab`.

    >>> ending("m", many=False, oblique=True)
    'e'
    """
    if gender == "f":
        return "i"
    return "e" if many or oblique else "a"


PRONOUNS = {
    "I": ("mein", I_DO),
    "you": ("tum", YOU_DO),
    "he": ("vah", HE_DOES),
    "she": ("vah", SHE_DOES),
    "we": ("ham", THEY_DO),
    "they": ("ve", THEY_DO),
}
PRONOUN_OBJECTS = {
    "me": {"ko": "mujhe", "se": "mujhse"},
    "you": {"ko": "tumhen", "se": "tumse"},
    "him": {"ko": "use", "se": "usse"},
    "her": {"ko": "use", "se": "usse"},
    "us": {"ko": "hamen", "se": "hamse"},
    "them": {"ko": "unhen", "se": "unse"},
}
NAMES: dict[str, Gender] = {"ravi": "m", "amit": "m", "maya": "f", "meera": "f"}
POSSESSORS = {"my": ("mer", "I"), "our": ("hamaar", "we"), "your": ("tumhaar", "you")}
NUMBERS = {"two": "do", "three": "teen"}

KIN = (
    Noun("brother", "bhaai", "m"),
    Noun("sister", "bahan", "f"),
    Noun("friend", "dost", "m"),
    Noun("mother", "maan", "f", honoured=True),
    Noun("father", "pitaaji", "m", honoured=True),
)
PEOPLE = (
    Noun("boy", "ladka", "m", "boys"),
    Noun("girl", "ladki", "f", "girls"),
    Noun("man", "aadmi", "m", "men"),
    Noun("woman", "aurat", "f", "women"),
    Noun("child", "bachcha", "m", "children"),
    Noun("farmer", "kisaan", "m", "farmers"),
)
ANIMALS = (Noun("dog", "kutta", "m", "dogs"), Noun("cat", "billi", "f", "cats"))
THINGS = {
    noun.english: noun
    for noun in (
        Noun("book", "kitaab", "f", "books"),
        Noun("letter", "chitthi", "f", "letters"),
        Noun("story", "kahaani", "f", "stories"),
        Noun("song", "geet", "m", "songs"),
        Noun("film", "film", "f", "films"),
        Noun("flower", "phool", "m", "flowers"),
        Noun("car", "gaadi", "f", "cars"),
        Noun("door", "darvaaza", "m", "doors"),
        Noun("window", "khidki", "f", "windows"),
        Noun("room", "kamra", "m", "rooms"),
        Noun("house", "ghar", "m", "houses"),
        Noun("toy", "khilauna", "m", "toys"),
        Noun("apple", "seb", "m", "apples"),
        Noun("mango", "aam", "m", "mangoes"),
        Noun("banana", "kela", "m", "bananas"),
        Noun("bread", "roti", "f"),
        Noun("water", "paani", "m"),
        Noun("milk", "doodh", "m"),
        Noun("tea", "chai", "f"),
    )
}
PLACES = {
    noun.english: noun
    for noun in (
        Noun("market", "bazaar", "m"),
        Noun("city", "shahar", "m"),
        Noun("village", "gaanv", "m"),
        Noun("temple", "mandir", "m"),
        Noun("school", "vidyaalay", "m"),
        Noun("garden", "bageecha", "m"),
        Noun("room", "kamra", "m"),
        Noun("house", "ghar", "m"),
        Noun("road", "sadak", "f"),
        Noun("roof", "chhat", "f"),
        Noun("river", "nadi", "f"),
        Noun("tree", "ped", "m"),
        Noun("shop", "dukaan", "f"),
    )
}
GOALS = ("market", "city", "village", "temple", "school")
"""Where one goes; motion towards them has no postposition, but the oblique case."""
POSTPOSITIONS = {
    "in": ("mein", ("market", "city", "village", "school", "garden", "room", "house", "shop")),
    "on": ("par", ("road", "roof")),
    "near": ("ke paas", ("river", "tree", "shop", "temple", "school", "house")),
    "behind": ("ke peechhe", ("house", "tree", "shop", "temple")),
    "under": ("ke neeche", ("tree",)),
}

ADJECTIVES = {
    "big": "bad",
    "small": "chhot",
    "good": "achchh",
    "tall": "lamb",
    "new": "nay",
    "old": "puraan",
    "sweet": "meeth",
    "cold": "thand",
    "black": "kaal",
    "blue": "neel",
    "green": "har",
    "red": "laal",
    "white": "safed",
    "beautiful": "sundar",
    "hot": "garam",
}
UNCHANGING = ("laal", "safed", "sundar", "garam")
OLD_PERSON = "boodh"
"""Old is `puraana` for a thing, `boodha` for a person."""
PERSONAL = ("good", "small", "tall", "old")
SPATIAL = ("big", "small", "new", "old", "beautiful")
_COLOURED = ("black", "blue", "green", "red", "white")
_WRITTEN = ("small", "good", "new", "old")
FITTING = {
    **dict.fromkeys(("book", "car", "door", "window", "toy"), ("big", "small", "new", "old", *_COLOURED)),
    **dict.fromkeys(("letter", "story"), _WRITTEN),
    **dict.fromkeys(("song", "film"), ("good", "new", "old", "beautiful")),
    **dict.fromkeys(("room", "house"), SPATIAL),
    **dict.fromkeys(("apple", "mango", "banana"), ("good", "sweet", "green", "big", "small")),
    **dict.fromkeys(("water", "milk", "tea"), ("good", "cold", "hot")),
    "flower": ("beautiful", "blue", "red", "white"),
    "bread": ("good", "hot"),
}
"""Which adjectives can stand before which thing."""

MOTIONS = (
    verb("go", "ja", third="goes"),
    verb("come", "aa", going="coming"),
    verb("return", "laut"),
)
DOINGS = (
    verb("run", "daud", going="running"),
    verb("laugh", "hans"),
    verb("play", "khel"),
    verb("walk", "chal"),
    verb("work", "kaam kar"),
    verb("rest", "aaraam kar"),
    verb("wait", "intazaar kar"),
)
DEEDS: tuple[tuple[Verb, tuple[str, ...]], ...] = (
    (verb("eat", "kha"), ("apple", "mango", "banana", "bread")),
    (Verb("drink", "drinks", "drinking", "pi", "peet", "pi"), ("water", "milk", "tea")),
    (verb("read", "padh"), ("book", "letter", "story")),
    (verb("write", "likh", going="writing"), ("book", "letter", "story", "song")),
    (verb("sing", "ga"), ("song",)),
    (verb("watch", "dekh", third="watches"), ("film",)),
    (verb("buy", "khareed"), ("book", "flower", "car", "apple", "mango", "toy", "milk", "house")),
    (verb("sell", "bech"), ("book", "flower", "car", "mango", "toy", "house")),
    (verb("make", "bana", going="making"), ("toy", "bread", "tea", "house")),
    (verb("bring", "la"), ("water", "milk", "flower", "letter", "banana")),
    (verb("open", "khol"), ("door", "window", "book", "letter")),
    (verb("close", "band kar", going="closing"), ("door", "window")),
    (verb("clean", "saaf kar"), ("room", "house", "car", "window")),
)
MEETINGS = (
    (verb("call", "bula"), "ko"),
    (verb("watch", "dekh", third="watches"), "ko"),
    (verb("meet", "mil"), "se"),
)
"""What is done to a person, and the postposition that the person takes."""
