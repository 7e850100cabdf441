"""English to romanised Hindi: a small grammar with true word order, agreement and alignment.

Hindi puts the verb last and its prepositions after the noun, so the alignment is not monotonic.
The words themselves are in `words/hindi.yaml`.

    [time] subject [time] [place] [object] [nahin] verb auxiliary

I, you, we and they are taken as masculine. *My* becomes `apna` when the subject is I (and likewise
*our* and *your*): the reflexive possessive refers to the subject of its clause.
"""

from dataclasses import dataclass
from functools import partial
from random import Random
from typing import final

from sixjars.samples import hindi
from sixjars.samples.hindi import WORDS, Noun, Verb, VerbForms, in_hindi
from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Pair, Target, Word, joined, linked, words

BE = {"I": ("am", "was"), "one": ("is", "was"), "many": ("are", "were")}
PLAIN = 6
"""With less room than this a clause has no time and place."""
TENSES = ("progressive", "habitual", "past", "future")


@final
@dataclass(frozen=True)
class Subject:
    """The subject of a clause in both languages, and what must agree with it."""

    pair: Pair
    agreement: VerbForms
    number: str
    """The number that an English verb agrees with: `I`, `one` or `many`."""
    head: str
    """The pronoun or noun itself."""


def clause(rng: Random, room: int) -> Pair:
    """One subject with one verb; where room is short, without time and place."""
    plain = room < PLAIN
    who = _subject(rng)
    tense = rng.choices(TENSES, (4, 3, 2, 2))[0]
    kind = rng.choices((_motion, _intransitive, _transitive, _social), (3, 3, 5, 2))[0]
    verb, complement, place = kind(rng, who)
    verb_english, verb_hindi = _conjugated(verb, tense, who, negated=rng.random() < 0.2)
    time = _time(rng, tense) if not plain and rng.random() < 0.35 else Pair()
    place = Pair() if plain else place
    source = verb_english + complement.source + place.source
    target = place.target + complement.target + verb_hindi
    if rng.random() < 0.3:
        return time + who.pair + Pair(source, target)
    return who.pair + Pair(source + time.source, time.target + target)


def _translated(table: str, english: str) -> Pair:
    word = Word(english)
    return Pair((word,), linked(in_hindi(table, english), word))


def _conjunction(rng: Random) -> Pair:
    return _translated("conjunctions", rng.choice(list(WORDS.table("conjunctions"))))


def _time(rng: Random, tense: str) -> Pair:
    times = WORDS.table("tenses_of").items()
    english = rng.choice([time for time, tenses in times if tense in tenses])
    source = words(english)
    links = (entry.split("-") for entry in WORDS.table("times")[english])
    return Pair(source, tuple((text, (source[int(at)],)) for at, text in links))


def _subject(rng: Random) -> Subject:
    kind = rng.choices(("pronoun", "name", "kin", "people"), (5, 2, 2, 3))[0]
    if kind == "pronoun":
        word = Word(rng.choice(list(WORDS.table("pronouns"))))
        text, *agrees = WORDS.table("pronouns")[word.text]
        number = {"I": "I", "he": "one", "she": "one"}.get(word.text, "many")
        pair = Pair((word,), linked(text, word))
        return Subject(pair, hindi.agreement(" ".join(agrees)), number, word.text)
    if kind == "name":
        word = Word(rng.choice(list(WORDS.table("names"))))
        agreement = hindi.agreement(f"{in_hindi('names', word.text)} one")
        return Subject(Pair((word,), linked(word.text, word)), agreement, "one", word.text)
    noun = rng.choice(list(hindi.nouns(kind).values()))
    phrase, many = _person(rng, noun, owner="", oblique=False)
    agreement = hindi.agreement(f"{noun.gender} {'many' if many or noun.honoured else 'one'}")
    return Subject(phrase, agreement, "many" if many else "one", noun.english)


def _motion(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb = rng.choice(hindi.verbs("motion"))
    if rng.random() < 0.4:
        home = Word("home")
        return verb, Pair((home,), linked("ghar", home)), Pair()
    goal = Pair((Word("to"),)) + _place_phrase(rng, rng.choice(WORDS["goals"]), owner=who.head)
    return verb, goal, _company(rng, who) if rng.random() < 0.2 else Pair()


def _intransitive(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb = rng.choice(hindi.verbs("intransitive"))
    return verb, Pair(), _place(rng, who) if rng.random() < 0.6 else Pair()


def _transitive(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb = rng.choice(hindi.verbs("transitive"))
    noun = hindi.nouns("things")[rng.choice(WORDS.table("objects")[verb.english])]
    if noun.plural:
        determiner = rng.choices(("the", "a", "this", "my", "two", ""), (5, 3, 1, 1, 1, 1))[0]
    else:
        determiner = rng.choices(("the", "this", "my", ""), (3, 1, 1, 5))[0]
    many = noun.plural != "" and determiner in ("two", "")
    thing = _phrase(rng, noun, determiner=determiner, owner=who.head, many=many)
    return verb, thing, _place(rng, who) if rng.random() < 0.2 else Pair()


def _social(rng: Random, who: Subject) -> tuple[Verb, Pair, Pair]:
    verb = rng.choice(hindi.verbs("social"))
    postposition = in_hindi("persons_take", verb.english)
    if rng.random() < 0.3:
        same = {"I": ("me", "us"), "we": ("me", "us"), "you": ("you",)}.get(who.head, ())
        pronouns = [pronoun for pronoun in WORDS.table(postposition) if pronoun not in same]
        return verb, _translated(postposition, rng.choice(pronouns)), Pair()
    group = hindi.nouns(rng.choice(("kin", "people", "animals")))
    noun = rng.choice([noun for noun in group.values() if noun.english != who.head])
    phrase, _ = _person(rng, noun, owner=who.head, oblique=True)
    return verb, phrase + Pair((), linked(postposition, phrase.source[-1])), Pair()


def _place(rng: Random, who: Subject) -> Pair:
    kind = rng.choices(("home", "company", "place"), (1, 1, 4))[0]
    if kind == "company":
        return _company(rng, who)
    if kind == "home":
        at, home = words("at home")
        return Pair((at, home), linked("ghar", home) + linked("par", at))
    preposition = Word(rng.choice(list(WORDS.table("postpositions"))))
    place = rng.choice(WORDS.table("places_of")[preposition.text])
    phrase = _place_phrase(rng, place, owner=who.head)
    after = linked(in_hindi("postpositions", preposition.text), preposition)
    return Pair((preposition,)) + phrase + Pair((), after)


def _company(rng: Random, who: Subject) -> Pair:
    noun = rng.choice([noun for noun in hindi.nouns("kin").values() if noun.english != who.head])
    phrase, _ = _person(rng, noun, owner=who.head, oblique=True)
    company = Word("with")
    return Pair((company,)) + phrase + Pair((), linked("ke saath", company))


def _place_phrase(rng: Random, english: str, *, owner: str) -> Pair:
    determiner = rng.choices(("the", "this", "my"), (6, 1, 1))[0]
    noun = hindi.nouns("places")[english]
    return _phrase(rng, noun, determiner=determiner, owner=owner, oblique=True)


def _person(rng: Random, noun: Noun, *, owner: str, oblique: bool) -> tuple[Pair, bool]:
    """A phrase for a person, and whether it is plural."""
    if noun.group == "kin":
        determiner = rng.choices(list(WORDS.table("possessors")), (4, 1, 1))[0]
    else:
        determiner = rng.choices(("the", "a", "this", "two", "three"), (7, 2, 1, 1, 1))[0]
    many = determiner in WORDS.table("numbers") or (determiner == "the" and rng.random() < 0.3)
    return _phrase(rng, noun, determiner=determiner, owner=owner, many=many, oblique=oblique), many


def _phrase(
    rng: Random,
    noun: Noun,
    *,
    determiner: str,
    owner: str,
    many: bool = False,
    oblique: bool = False,
) -> Pair:
    """A noun with its determiner, and at times an adjective; `owner` is the clause's subject."""
    vowel = hindi.ending(noun.gender, many=many or noun.honoured, oblique=oblique)
    head = Word(noun.plural if many else noun.english)
    phrase = Pair((head,), linked(noun.form(many=many, oblique=oblique), head))
    if noun.adjectives and rng.random() < 0.25:
        word = Word(rng.choice(noun.adjectives))
        phrase = Pair((word,), linked(noun.adjective(word.text, vowel), word)) + phrase
    if determiner == "a" and phrase.source[0].text[0] in "aeiou":
        determiner = "an"
    return _determiner(determiner, vowel=vowel, owner=owner, oblique=oblique) + phrase


def _determiner(text: str, *, vowel: str, owner: str, oblique: bool) -> Pair:
    if text in WORDS.table("numbers"):
        return _translated("numbers", text)
    word = Word(text)
    this = "is" if oblique else "yah"
    if text in WORDS.table("possessors"):
        stem, person = WORDS.table("possessors")[text]
        return Pair((word,), linked(("apn" if owner == person else stem) + vowel, word))
    known = {"a": "ek", "an": "ek", "this": this}
    return Pair((word,) if text else (), linked(known.get(text, ""), word))


def _conjugated(
    verb: Verb, tense: str, who: Subject, *, negated: bool
) -> tuple[tuple[Word, ...], Target]:
    """The English verb with its auxiliaries, and the Hindi verb with its own."""
    agrees = who.agreement
    no = words("not" if negated else "")
    if tense in ("progressive", "past"):
        be, going = Word(BE[who.number][tense == "past"]), Word(verb.participle)
        auxiliary = agrees.past if tense == "past" else agrees.present
        spelled = linked(f"{verb.root} rah{agrees.vowel}", going) + linked(auxiliary, be)
        return (be, *no, going), _negated(verb, going, no) + spelled
    base = Word(verb.english)
    if tense == "future":
        will = Word("will")
        spelled = linked(verb.future + agrees.future, will, base)
        return (will, *no, base), _negated(verb, base, no) + spelled
    if negated:
        do = Word("does" if who.number == "one" else "do")
        spelled = linked(verb.habit + agrees.vowel, base) + linked(agrees.present, do)
        return (do, *no, base), _negated(verb, base, no) + spelled
    word = Word(verb.third) if who.number == "one" else base
    return (word,), linked(f"{verb.noun} {verb.habit}{agrees.vowel} {agrees.present}", word)


def _negated(verb: Verb, english: Word, no: tuple[Word, ...]) -> Target:
    """The words before the root: the noun of a verb of two words, then `nahin`."""
    return linked(verb.noun, english) + (linked("nahin", *no) if no else ())


def _categories() -> dict[str, tuple[str, ...]]:
    groups = ("motion", "intransitive", "transitive", "social")
    verbs = [verb for group in groups for verb in hindi.verbs(group)]

    def forms(*groups: str) -> tuple[str, ...]:
        nouns = (noun for group in groups for noun in hindi.nouns(group).values())
        return tuple(text for noun in nouns for text in (noun.english, noun.plural) if text)

    times = "now today tomorrow yesterday every day morning evening night sunday"
    owners = WORDS.table("possessors"), WORDS.table("numbers")
    return {
        "subjects": tuple(WORDS.table("pronouns")),
        "objects": tuple(WORDS.table("ko")),
        "names": tuple(WORDS.table("names")),
        "people": forms("kin", "people"),
        "things": forms("things", "animals"),
        "places": (*WORDS.table("places"), "home"),
        "adjectives": tuple(WORDS.table("adjectives")),
        "verbs": tuple(verb.english for verb in verbs),
        "third persons": tuple(verb.third for verb in verbs),
        "participles": tuple(verb.participle for verb in verbs),
        "auxiliaries": (*BE["I"], *BE["one"], *BE["many"], "will", "do", "does", "not"),
        "times": tuple(times.split()),
        "determiners": ("the", "a", "an", "this", *owners[0], *owners[1]),
        "prepositions": (*WORDS.table("postpositions"), "to", "at", "with"),
        "conjunctions": tuple(WORDS.table("conjunctions")),
    }


HEADLINE = {
    "english": "I am going home",
    "hindi": "mein ghar ja raha hoon",
    "alignment": "0-0 1-4 2-2 2-3 3-1",
}


@partial(
    Corpus,
    "translation",
    ["english"],
    "hindi",
    truths=["alignment"],
    headline=HEADLINE,
    categories=_categories,
    lengths=(3, 12),
)
def translation(rng: Random, longest: int) -> Row:
    """English sentences to romanised Hindi: other word order, agreement, true alignments."""
    pair = joined(
        rng, longest, shortest=translation.shortest, clause=clause, conjunction=_conjunction
    )
    return pair.row("english", "hindi")
