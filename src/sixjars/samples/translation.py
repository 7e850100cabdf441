"""English to romanised Hindi: a small, honest grammar with true word order, agreement and alignment.

Hindi puts the verb last and its prepositions after the noun, so a translation never runs in step with
its source. The words themselves are in `hindi.py`.

    [time] subject [time] [place] [object] [nahin] verb auxiliary

I, you, we and they are taken as masculine. *My* becomes `apna` when the subject is I (and likewise
*our* and *your*): the possessive of Hindi looks back at the subject of its clause.
"""

from dataclasses import dataclass
from random import Random
from typing import final

from sixjars.samples import hindi
from sixjars.samples.hindi import Agreement, Noun, Verb
from sixjars.samples.pairs import Pair, Told, Word, chance, filled, told, words
from sixjars.samples.sample import Row, Sample

JOINTS = {"and": "aur", "but": "lekin", "because": "kyonki"}
BE = {"I": ("am", "was"), "one": ("is", "was"), "many": ("are", "were")}
TIMES: tuple[tuple[str, tuple[tuple[int, str], ...], tuple[str, ...]], ...] = (
    ("now", ((0, "abhi"),), ("progressive",)),
    ("today", ((0, "aaj"),), ("progressive", "past", "future")),
    ("tomorrow", ((0, "kal"),), ("future",)),
    ("yesterday", ((0, "kal"),), ("past",)),
    ("every day", ((0, "har"), (1, "din")), ("habitual",)),
    ("in the morning", ((2, "subah"),), ("habitual", "past", "future")),
    ("in the evening", ((2, "shaam"), (0, "ko")), ("habitual", "past", "future")),
    ("at night", ((1, "raat"), (0, "ko")), ("habitual", "past", "future")),
    ("on sunday", ((1, "ravivaar"), (0, "ko")), ("past", "future")),
)
"""English, the Hindi words with the English position each comes from, and the tenses it goes with."""
PLAIN = 6
"""With less room than this a clause does without time and place."""
TENSES = ("progressive", "habitual", "past", "future")


@final
@dataclass(frozen=True)
class Subject:
    """Who does it, in both languages, and what must agree with it."""

    pair: Pair
    agreement: Agreement
    number: str
    """What English agrees with: `I`, `one` or `many`."""
    head: str
    """The pronoun or noun itself."""


def draw(rng: Random, longest: int) -> Row:
    """One sentence of at most `longest` words and its translation."""
    pair = filled(rng, longest, shortest=SAMPLE.shortest, clause=clause, joint=_joint)
    return dict(zip(("english", "hindi", "alignment"), pair.texts(), strict=True))


def clause(rng: Random, room: int) -> Pair:
    """One subject with one verb; where room is short, without time and place."""
    plain = room < PLAIN
    who = _subject(rng)
    tense = rng.choices(TENSES, (4, 3, 2, 2))[0]
    kind = rng.choices((_motion, _doing, _deed, _meeting), (3, 3, 5, 2))[0]
    verb, complement, place = kind(rng, who)
    verb_english, verb_hindi = _conjugated(verb, tense, who, negated=chance(rng, 0.2))
    time = _time(rng, tense) if not plain and chance(rng, 0.35) else Pair()
    place = Pair() if plain else place
    source = verb_english + complement.source + place.source
    if chance(rng, 0.3):
        return time + Pair(who.pair.source + source, who.pair.target + place.target + complement.target + verb_hindi)
    return Pair(
        who.pair.source + source + time.source,
        who.pair.target + time.target + place.target + complement.target + verb_hindi,
    )


def _joint(rng: Random) -> Pair:
    word = Word(rng.choice(list(JOINTS)))
    return Pair((word,), told(JOINTS[word.text], word))


def _time(rng: Random, tense: str) -> Pair:
    english, spoken, _ = rng.choice([time for time in TIMES if tense in time[2]])
    source = words(english)
    return Pair(source, tuple((text, (source[at],)) for at, text in spoken))


def _subject(rng: Random) -> Subject:
    kind = rng.choices(("pronoun", "name", "kin", "people"), (5, 2, 2, 3))[0]
    if kind == "pronoun":
        word = Word(rng.choice(list(hindi.PRONOUNS)))
        text, agreement = hindi.PRONOUNS[word.text]
        number = {"I": "I", "he": "one", "she": "one"}.get(word.text, "many")
        return Subject(Pair((word,), told(text, word)), agreement, number, word.text)
    if kind == "name":
        word = Word(rng.choice(list(hindi.NAMES)))
        agreement = hindi.agreement(hindi.NAMES[word.text], many=False)
        return Subject(Pair((word,), told(word.text, word)), agreement, "one", word.text)
    noun = rng.choice(hindi.KIN if kind == "kin" else hindi.PEOPLE)
    phrase, many = _person(rng, noun, owner="", oblique=False)
    agreement = hindi.agreement(noun.gender, many=many or noun.honoured)
    return Subject(phrase, agreement, "many" if many else "one", noun.english)


def _motion(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb = rng.choice(hindi.MOTIONS)
    if chance(rng, 0.4):
        home = Word("home")
        return verb, Pair((home,), told("ghar", home)), Pair()
    noun = hindi.PLACES[rng.choice(hindi.GOALS)]
    goal = _place_phrase(rng, noun, owner=who.head)
    company = _company(rng, who) if chance(rng, 0.2) else Pair()
    return verb, Pair((Word("to"), *goal.source), goal.target), company


def _doing(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    return rng.choice(hindi.DOINGS), Pair(), _place(rng, who) if chance(rng, 0.6) else Pair()


def _deed(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb, things = rng.choice(hindi.DEEDS)
    noun = hindi.THINGS[rng.choice(things)]
    if noun.plural:
        determiner = rng.choices(("the", "a", "this", "my", "two", ""), (5, 3, 1, 1, 1, 1))[0]
    else:
        determiner = rng.choices(("the", "this", "my", ""), (3, 1, 1, 5))[0]
    many = noun.plural != "" and determiner in ("two", "")
    fitting = hindi.FITTING[noun.english]
    thing = _phrase(rng, noun, determiner=determiner, fitting=fitting, owner=who.head, many=many)
    return verb, thing, _place(rng, who) if chance(rng, 0.2) else Pair()


def _meeting(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb, postposition = rng.choice(hindi.MEETINGS)
    if chance(rng, 0.3):
        same = {"I": ("me", "us"), "we": ("me", "us"), "you": ("you",)}.get(who.head, ())
        word = Word(rng.choice([pronoun for pronoun in hindi.PRONOUN_OBJECTS if pronoun not in same]))
        return verb, Pair((word,), told(hindi.PRONOUN_OBJECTS[word.text][postposition], word)), Pair()
    group = rng.choice((hindi.KIN, hindi.PEOPLE, hindi.ANIMALS))
    noun = rng.choice([noun for noun in group if noun.english != who.head])
    phrase, _ = _person(rng, noun, owner=who.head, oblique=True)
    return verb, Pair(phrase.source, phrase.target + told(postposition, phrase.source[-1])), Pair()


def _place(rng: Random, who: Subject) -> Pair:
    kind = rng.choices(("home", "company", "place"), (1, 1, 4))[0]
    if kind == "company":
        return _company(rng, who)
    if kind == "home":
        at, home = words("at home")
        return Pair((at, home), told("ghar", home) + told("par", at))
    preposition = Word(rng.choice(list(hindi.POSTPOSITIONS)))
    postposition, nouns = hindi.POSTPOSITIONS[preposition.text]
    phrase = _place_phrase(rng, hindi.PLACES[rng.choice(nouns)], owner=who.head)
    return Pair((preposition, *phrase.source), phrase.target + told(postposition, preposition))


def _company(rng: Random, who: Subject) -> Pair:
    noun = rng.choice([noun for noun in hindi.KIN if noun.english != who.head])
    phrase, _ = _person(rng, noun, owner=who.head, oblique=True)
    company = Word("with")
    return Pair((company, *phrase.source), phrase.target + told("ke saath", company))


def _place_phrase(rng: Random, noun: Noun, *, owner: str) -> Pair:
    determiner = rng.choices(("the", "this", "my"), (6, 1, 1))[0]
    return _phrase(rng, noun, determiner=determiner, fitting=hindi.SPATIAL, owner=owner, oblique=True)


def _person(rng: Random, noun: Noun, *, owner: str, oblique: bool) -> tuple[Pair, bool]:
    """Somebody, and whether it is more than one."""
    fitting: tuple[str, ...] = ()
    if noun in hindi.KIN:
        determiner = rng.choices(list(hindi.POSSESSORS), (4, 1, 1))[0]
    else:
        determiner = rng.choices(("the", "a", "this", "two", "three"), (7, 2, 1, 1, 1))[0]
        fitting = hindi.PERSONAL if noun in hindi.PEOPLE else ("big", "small", "black", "white")
    many = determiner in hindi.NUMBERS or (determiner == "the" and chance(rng, 0.3))
    phrase = _phrase(rng, noun, determiner=determiner, fitting=fitting, owner=owner, many=many, oblique=oblique)
    return phrase, many


def _phrase(
    rng: Random,
    noun: Noun,
    *,
    determiner: str,
    fitting: tuple[str, ...],
    owner: str,
    many: bool = False,
    oblique: bool = False,
) -> Pair:
    """A noun with its determiner and, one time in four, an adjective; `owner` is the clause's subject."""
    vowel = hindi.ending(noun.gender, many=many or noun.honoured, oblique=oblique)
    head = Word(noun.plural if many else noun.english)
    told_head = told(noun.form(many=many, oblique=oblique), head)
    adjective = Pair()
    if fitting and chance(rng, 0.25):
        word = Word(rng.choice(fitting))
        adjective = Pair((word,), told(_adjective(word.text, noun, vowel), word))
    first = _determiner(determiner, vowel=vowel, owner=owner, oblique=oblique)
    phrase = first + adjective + Pair((head,), told_head)
    if determiner == "a" and phrase.source[1].text[0] in "aeiou":
        article = Word("an")
        return Pair((article, *phrase.source[1:]), told("ek", article) + phrase.target[1:])
    return phrase


def _adjective(english: str, noun: Noun, vowel: str) -> str:
    stem = hindi.OLD_PERSON if english == "old" and noun in hindi.PEOPLE else hindi.ADJECTIVES[english]
    return stem if stem in hindi.UNCHANGING else stem + vowel


def _determiner(text: str, *, vowel: str, owner: str, oblique: bool) -> Pair:
    word = Word(text)
    if text in hindi.POSSESSORS:
        stem, person = hindi.POSSESSORS[text]
        return Pair((word,), told(("apn" if owner == person else stem) + vowel, word))
    spoken: dict[str, Told] = {
        "a": told("ek", word),
        "this": told("is" if oblique else "yah", word),
        **{number: told(name, word) for number, name in hindi.NUMBERS.items()},
    }
    return Pair((word,) if text else (), spoken.get(text, ()))


def _conjugated(verb: Verb, tense: str, who: Subject, *, negated: bool) -> tuple[tuple[Word, ...], Told]:
    """The English verb with its auxiliaries, and the Hindi verb with its own."""
    agrees, no = who.agreement, words("not" if negated else "")
    if tense in ("progressive", "past"):
        be, going = Word(BE[who.number][tense == "past"]), Word(verb.going)
        auxiliary = agrees.past if tense == "past" else agrees.present
        spoken = told(f"{verb.root} rah{agrees.vowel}", going) + told(auxiliary, be)
        return (be, *no, going), _negated(verb, going, no) + spoken
    base = Word(verb.english)
    if tense == "future":
        will = Word("will")
        return (will, *no, base), _negated(verb, base, no) + told(verb.future + agrees.future, will, base)
    if negated:
        do = Word("does" if who.number == "one" else "do")
        spoken = told(verb.habit + agrees.vowel, base) + told(agrees.present, do)
        return (do, *no, base), _negated(verb, base, no) + spoken
    word = Word(verb.third) if who.number == "one" else base
    return (word,), told(f"{verb.noun} {verb.habit}{agrees.vowel} {agrees.present}", word)


def _negated(verb: Verb, english: Word, no: tuple[Word, ...]) -> Told:
    """What stands before the root: the noun of a verb of two words, then `nahin`."""
    return told(verb.noun, english) + (told("nahin", *no) if no else ())


_HEADLINE = ("I am going home", "mein ghar ja raha hoon", "0-0 1-4 2-2 2-3 3-1")
_VERBS = (
    *hindi.MOTIONS,
    *hindi.DOINGS,
    *(deed for deed, _ in hindi.DEEDS),
    *(verb for verb, _ in hindi.MEETINGS),
)
_NOUNS = (*hindi.THINGS.values(), *hindi.ANIMALS)

SAMPLE = Sample(
    task="translation",
    description="English sentences to romanised Hindi: other word order, agreement, true alignments.",
    draw=draw,
    source="english",
    target="hindi",
    alignment="alignment",
    shortest=3,
    longest=12,
    headline=dict(zip(("english", "hindi", "alignment"), _HEADLINE, strict=True)),
    categories={
        "subjects": tuple(hindi.PRONOUNS),
        "objects": tuple(hindi.PRONOUN_OBJECTS),
        "names": tuple(hindi.NAMES),
        "people": tuple(text for noun in (*hindi.KIN, *hindi.PEOPLE) for text in (noun.english, noun.plural) if text),
        "things": tuple(text for noun in _NOUNS for text in (noun.english, noun.plural) if text),
        "places": (*hindi.PLACES, "home"),
        "adjectives": tuple(hindi.ADJECTIVES),
        "verbs": tuple(verb.english for verb in _VERBS),
        "verbs of one": tuple(verb.third for verb in _VERBS),
        "verbs in progress": tuple(verb.going for verb in _VERBS),
        "auxiliaries": (*BE["I"], *BE["one"], *BE["many"], "will", "do", "does", "not"),
        "times": (
            "now",
            "today",
            "tomorrow",
            "yesterday",
            "every",
            "day",
            "morning",
            "evening",
            "night",
            "sunday",
        ),
        "determiners": ("the", "a", "an", "this", *hindi.POSSESSORS, *hindi.NUMBERS),
        "prepositions": (*hindi.POSTPOSITIONS, "to", "at", "with"),
        "joints": tuple(JOINTS),
    },
)
