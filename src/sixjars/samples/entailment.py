"""A premise, and a hypothesis that follows from it, written out.

What follows is the same scene seen from further away: every noun, activity and place becomes its more
general word, everything that only adorns is dropped, and two groups of people are counted together.

    two young women are quickly playing football in the park
    two people      are         playing a game   outside
"""

from dataclasses import dataclass
from random import Random
from typing import final

from sixjars.samples.pairs import Pair, Told, Word, chance, copied, filled, told, words
from sixjars.samples.sample import Row, Sample

NUMBERS = ("zero", "a", "two", "three", "four", "five", "six")
PERSONS = {
    "woman": "women",
    "man": "men",
    "boy": "boys",
    "girl": "girls",
    "farmer": "farmers",
    "child": "children",
}
ANIMALS = {"dog": "dogs", "cat": "cats", "horse": "horses", "elephant": "elephants"}
QUALITIES = ("young", "old", "tall", "small", "happy", "tired")
MANNERS = ("quickly", "slowly", "quietly", "happily", "carefully")
TIMES = ("this morning", "in the evening", "at night", "on sunday")
SCENERY = ("big", "quiet", "old", "beautiful")
INSIDE = ("kitchen", "library", "bedroom", "classroom", "office")
OUTSIDE = ("park", "garden", "street", "forest", "field")
WITH_OBJECTS: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "playing": (
        (("football", "tennis", "cricket", "chess"), "playing a game"),
        (("guitar", "piano", "drums", "violin"), "playing an instrument"),
    ),
    "eating": (
        (("apples", "mangoes", "grapes"), "eating fruit"),
        (("carrots", "potatoes", "onions"), "eating vegetables"),
    ),
    "drinking": ((("tea", "milk", "juice", "water"), "having a drink"),),
    "riding": ((("bicycles", "scooters", "motorbikes"), "using a vehicle"),),
    "washing": (
        (("shirts", "coats", "socks"), "cleaning clothes"),
        (("plates", "cups", "bowls"), "cleaning dishes"),
    ),
    "buying": (
        (("shirts", "coats", "socks"), "buying clothes"),
        (("hammers", "saws", "drills"), "buying tools"),
    ),
    "carrying": (
        (("hammers", "saws", "drills"), "carrying tools"),
        (("plates", "cups", "bowls"), "carrying dishes"),
    ),
}
"""For each activity its objects, and what doing it to them amounts to."""
ALONE = {
    **dict.fromkeys(("running", "walking", "swimming"), "moving"),
    **dict.fromkeys(("sleeping", "resting"), "taking a break"),
}
"""What people and animals do without an object."""
PLAIN = 7
"""With less room than this a scene does without place, manner and time."""
JOINTS = ("while", "and")


@final
@dataclass(frozen=True)
class Scene:
    """Part of a premise, and what it amounts to; the hypothesis may need it elsewhere."""

    premise: tuple[Word, ...]
    hypothesis: Told


def draw(rng: Random, longest: int) -> Row:
    """One premise of at most `longest` words, and what follows from it."""
    pair = filled(rng, longest, shortest=SAMPLE.shortest, clause=clause, joint=_joint)
    return dict(zip(("premise", "hypothesis", "alignment"), pair.texts(), strict=True))


def clause(rng: Random, room: int) -> Pair:
    """One scene: who and what, and where there is room also where, with some adornment."""
    plain = room < PLAIN
    human = chance(rng, 0.75)
    who, count = _people(rng) if human else _group(rng, ANIMALS)
    deed = _deed(rng) if human and chance(rng, 0.75) else _doing(rng)
    place = _place(rng) if not plain and chance(rng, 0.65) else Scene((), ())
    be = Word("are" if count > 1 else "is")
    manner = words(rng.choice(MANNERS) if not plain and chance(rng, 0.3) else "")
    time = words(rng.choice(TIMES) if not plain and chance(rng, 0.2) else "")
    return Pair(
        (*who.premise, be, *manner, *deed.premise, *place.premise, *time),
        who.hypothesis + copied((be,)) + deed.hypothesis + place.hypothesis,
    )


def _joint(rng: Random) -> Pair:
    word = Word(rng.choice(JOINTS))
    return Pair((word,), copied((word,)))


def _people(rng: Random) -> tuple[Scene, int]:
    """One group of people, or two that are counted together; and how many they are."""
    first, count = _group(rng, PERSONS)
    if not chance(rng, 0.2):
        return first, count
    second, more = _group(rng, PERSONS)
    total = told(NUMBERS[count + more], first.premise[0], second.premise[0])
    people = told("people", first.premise[-1], second.premise[-1])
    return Scene((*first.premise, Word("and"), *second.premise), total + people), count + more


def _group(rng: Random, kind: dict[str, str]) -> tuple[Scene, int]:
    count = rng.choices((1, 2, 3), (3, 2, 1))[0]
    singular = rng.choice(list(kind))
    qualities = rng.sample(QUALITIES, rng.choices((0, 1, 2), (5, 4, 1))[0])
    rest = words(" ".join((*qualities, singular if count == 1 else kind[singular])))
    number = Word(_numbered(count, rest[0].text))
    general = ("person", "people") if kind is PERSONS else ("animal", "animals")
    seen = general[count > 1]
    return Scene((number, *rest), told(_numbered(count, seen), number) + told(seen, rest[-1])), count


def _numbered(count: int, following: str) -> str:
    """The number or article that stands before a word."""
    return "an" if count == 1 and following[0] in "aeiou" else NUMBERS[count]


def _deed(rng: Random) -> Scene:
    activity = Word(rng.choice(list(WITH_OBJECTS)))
    objects, general = rng.choice(WITH_OBJECTS[activity.text])
    thing = Word(rng.choice(objects))
    first, *rest = general.split()
    return Scene((activity, thing), told(first, activity, thing) + told(" ".join(rest), thing))


def _doing(rng: Random) -> Scene:
    activity = Word(rng.choice(list(ALONE)))
    return Scene((activity,), told(ALONE[activity.text], activity))


def _place(rng: Random) -> Scene:
    general = rng.choice(("inside", "outside"))
    place = Word(rng.choice(INSIDE if general == "inside" else OUTSIDE))
    scenery = words(rng.choice(SCENERY) if chance(rng, 0.25) else "")
    return Scene((*words("in the"), *scenery, place), told(general, place))


SAMPLE = Sample(
    task="entailment",
    description="A scene to the same scene in general words: kinds for things, and nothing that only adorns.",
    draw=draw,
    source="premise",
    target="hypothesis",
    alignment="alignment",
    shortest=4,
    longest=16,
    categories={
        "numbers": ("a", "an", *NUMBERS[2:4]),
        "persons": (*PERSONS, *PERSONS.values()),
        "animals": (*ANIMALS, *ANIMALS.values()),
        "activities": (*WITH_OBJECTS, *ALONE),
        **{general: objects for kinds in WITH_OBJECTS.values() for objects, general in kinds},
        "inside": INSIDE,
        "outside": OUTSIDE,
        "qualities": (*QUALITIES, *SCENERY),
        "manners": MANNERS,
        "times": ("this", "morning", "evening", "at", "night", "on", "sunday"),
        "function words": ("is", "are", "in", "the", *JOINTS),
    },
)
