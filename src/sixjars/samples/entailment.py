"""A premise, and a hypothesis that follows from it.

The hypothesis is the same scene in more general words: every noun, activity and place becomes its
hypernym, modifiers are dropped, and two groups of people are counted together.

    two young women are quickly playing football in the park
    two people      are         playing a game   outside
"""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon, Pair, Word, copied, joined, linked, words

WORDS = Lexicon("entailment")
PLAIN = 7
"""With less room than this a scene has no place, manner and time."""


@partial(Corpus, "entailment", ["premise"], "hypothesis", truths=["alignment"], lengths=(4, 16))
def entailment(rng: Random, longest: int) -> Row:
    """A scene to the same scene in general words: kinds for things, and no modifiers."""
    pair = joined(
        rng, longest, shortest=entailment.shortest, clause=clause, conjunction=_conjunction
    )
    return pair.row("premise", "hypothesis")


def clause(rng: Random, room: int) -> Pair:
    """One scene of a group and an activity; with room also place, manner and time."""
    plain = room < PLAIN
    human = rng.random() < 0.75
    who, count = _people(rng) if human else _group(rng, "animals")
    activity = _with_object(rng) if human and rng.random() < 0.75 else _without_object(rng)
    place = _place(rng) if not plain and rng.random() < 0.65 else Pair()
    be = Word("are" if count > 1 else "is")
    manner = words(rng.choice(WORDS["manners"]) if not plain and rng.random() < 0.3 else "")
    time = words(rng.choice(WORDS["times"]) if not plain and rng.random() < 0.2 else "")
    return who + Pair((be, *manner), copied((be,))) + activity + place + Pair(time)


def _conjunction(rng: Random) -> Pair:
    word = Word(rng.choice(WORDS["conjunctions"]))
    return Pair((word,), copied((word,)))


def _people(rng: Random) -> tuple[Pair, int]:
    """One group of people, or two that are counted together; and how many they are."""
    first, count = _group(rng, "persons")
    if rng.random() >= 0.2:
        return first, count
    second, more = _group(rng, "persons")
    total = linked(WORDS["numbers"][count + more], first.source[0], second.source[0])
    people = linked("people", first.source[-1], second.source[-1])
    return Pair((*first.source, Word("and"), *second.source), total + people), count + more


def _group(rng: Random, kind: str) -> tuple[Pair, int]:
    """Persons or animals, and how many they are."""
    count = rng.choices((1, 2, 3), (3, 2, 1))[0]
    nouns = WORDS.table(kind)
    singular = rng.choice(list(nouns))
    qualities = rng.sample(WORDS["qualities"], rng.choices((0, 1, 2), (5, 4, 1))[0])
    rest = words(" ".join((*qualities, singular if count == 1 else nouns[singular][0])))
    number = Word(_numbered(count, rest[0].text))
    general = {"persons": ("person", "people"), "animals": ("animal", "animals")}[kind][count > 1]
    target = linked(_numbered(count, general), number) + linked(general, rest[-1])
    return Pair((number, *rest), target), count


def _numbered(count: int, following: str) -> str:
    """The number or article that stands before a word."""
    return "an" if count == 1 and following[0] in "aeiou" else WORDS["numbers"][count]


def _with_object(rng: Random) -> Pair:
    activity = Word(rng.choice(WORDS["activities"]))
    general, objects = rng.choice(list(WORDS.table(activity.text).items()))
    thing = Word(rng.choice(objects))
    first, *rest = general.split()
    return Pair((activity, thing), linked(first, activity, thing) + linked(" ".join(rest), thing))


def _without_object(rng: Random) -> Pair:
    activities = WORDS.table("without_object")
    activity = Word(rng.choice(list(activities)))
    return Pair((activity,), linked(" ".join(activities[activity.text]), activity))


def _place(rng: Random) -> Pair:
    general = rng.choice(("inside", "outside"))
    place = Word(rng.choice(WORDS[general]))
    scenery = words(rng.choice(WORDS["scenery"]) if rng.random() < 0.25 else "")
    return Pair((*words("in the"), *scenery, place), linked(general, place))
