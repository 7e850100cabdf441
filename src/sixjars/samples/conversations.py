"""A conversation of two people, and the right answer to its last turn, which lies some turns back.

Both tell where they and others live, what their animals are called and what they have. Then one asks. There is
always a second fact of the kind that is asked for, with another answer: of another animal, another relative, or
of the other person, so that who said it matters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import final

from sixjars.samples.pairs import chance
from sixjars.samples.sample import Row, Sample

ANIMALS = ("dog", "cat", "horse", "parrot", "rabbit")
NAMES = ("bello", "luna", "rex", "coco", "milo", "nala", "simba", "kira")
CITIES = ("rome", "delhi", "paris", "cairo", "tokyo", "lima", "oslo", "nairobi")
RELATIVES = ("brother", "sister", "mother", "father")
THINGS = ("apples", "books", "cups", "hats", "pens")
NUMBERS = ("two", "three", "four", "five", "six", "seven")
COLOURS = ("red", "green", "yellow", "blue", "black", "white")

OPENINGS = ("hello .", "good morning .", "hello , how are you ?", "nice to meet you .")
SMALL_TALK = (
    *("how are you ?", "i am fine , thank you .", "that is good to hear .", "oh , really ?", "tell me more ."),
    *("the weather is nice today .", "yes , of course .", "i did not know that .", "let us have some tea ."),
)
"""Turns that tell nothing one could ask for."""
IN_A_TURN = 2
"""Most facts of one turn; the last one has room for one before the question."""
MOST_FACTS = 4


@final
@dataclass(frozen=True)
class Kind:
    """What can be told and asked."""

    subjects: tuple[str, ...]
    """What it may be about; a person tells one fact of each."""
    values: tuple[tuple[str, ...], ...]
    """What may be said of it: one word out of each."""
    tell: Callable[[str, str, Sequence[str]], str]
    """The fact as `i` or `you` have it: the person, the subject, the values."""
    questions: tuple[Callable[[str, str], str], ...]
    """For the person, `i` or `you`, and the subject."""
    answers: tuple[Callable[[str, str, Sequence[str]], str], ...]
    """To each question."""


def _whose(person: str) -> str:
    return "my" if person == "i" else "your"


def _living(person: str, who: str, said: Sequence[str]) -> str:
    return f"{person} live in {said[0]}" if who == "self" else f"{_whose(person)} {who} lives in {said[0]}"


def _where(person: str, who: str) -> str:
    return f"where do {person} live ?" if who == "self" else f"where does {_whose(person)} {who} live ?"


def _calling(person: str, animal: str, said: Sequence[str]) -> str:
    return f"{_whose(person)} {animal} is called {said[0]}"


KINDS = (
    Kind(("self", *RELATIVES), (CITIES,), _living, (_where,), (_living,)),
    Kind(
        ANIMALS,
        (NAMES,),
        _calling,
        (lambda person, animal: f"what is {_whose(person)} {animal} called ?",),
        (_calling,),
    ),
    Kind(
        THINGS,
        (NUMBERS, COLOURS),
        lambda person, thing, said: f"{person} have {said[0]} {said[1]} {thing}",
        (
            lambda person, thing: f"how many {thing} do {person} have ?",
            lambda person, thing: f"what colour are {_whose(person)} {thing} ?",
        ),
        (
            lambda person, thing, said: f"of {thing} {person} have {said[0]}",
            lambda person, thing, said: f"{_whose(person)} {thing} are {said[1]}",
        ),
    ),
)


@final
@dataclass(frozen=True)
class Fact:
    """One fact: in which turn it is told, and what."""

    turn: int
    kind: Kind
    subject: str
    said: tuple[str, ...]


def draw(rng: Random, longest: int) -> Row:
    r"""A conversation of at most `longest` turns, and the answer to the last.

    >>> print("\n".join(draw(Random(11), 4).values()))
    my horse is called coco .
    my mother lives in lima and i have five black hats .
    my mother lives in tokyo . where does your mother live ?
    my mother lives in lima .
    """
    turns = rng.randint(2, longest)
    facts = _facts(rng, turns)
    asked = rng.choice([fact for fact in facts[:2] if fact.turn < turns - 1])
    # The speakers alternate, so that whoever spoke two turns before the end asks now.
    person = "i" if (turns - 1 - asked.turn) % 2 == 0 else "you"
    number = rng.randrange(len(asked.kind.questions))
    question = asked.kind.questions[number](person, asked.subject)
    answer = asked.kind.answers[number]("you" if person == "i" else "i", asked.subject, asked.said)
    lines = [_turn(rng, at, [fact for fact in facts if fact.turn == at]) for at in range(turns - 1)]
    before = [_told([fact]) for fact in facts if fact.turn == turns - 1]
    return {"turns": "\n".join([*lines, " ".join([*before, question])]), "response": f"{answer} ."}


def _facts(rng: Random, turns: int) -> list[Fact]:
    """Facts with different answers. The first two are of one kind, and at least one is before the last turn."""
    room = [at for at in range(turns - 1) for _ in range(IN_A_TURN)] + [turns - 1]
    places = rng.sample(room, min(len(room), rng.randint(2, MOST_FACTS)))
    first = rng.choice(KINDS)
    kinds = [first, first, *rng.choices(KINDS, k=len(places) - 2)]
    left = {kind: [rng.sample(words, len(words)) for words in kind.values] for kind in KINDS}
    facts: list[Fact] = []
    for turn, kind in zip(places, kinds, strict=True):
        told = [fact.subject for fact in facts if fact.kind is kind and (fact.turn - turn) % 2 == 0]
        other = [fact.subject for fact in facts if fact.kind is kind and fact.subject not in told]
        free = [subject for subject in kind.subjects if subject not in told]
        # Half of the time the other person has told of the same subject, where there is one.
        subject = rng.choice(other if other and chance(rng, 0.5) else free)
        facts.append(Fact(turn, kind, subject, tuple(words.pop() for words in left[kind])))
    return facts


def _turn(rng: Random, at: int, facts: Sequence[Fact]) -> str:
    return _told(facts) if facts else rng.choice(SMALL_TALK if at else OPENINGS)


def _told(facts: Sequence[Fact]) -> str:
    """The facts of one speaker in one sentence."""
    return " and ".join(fact.kind.tell("i", fact.subject, fact.said) for fact in facts) + " ."


SAMPLE = Sample(
    task="conversation",
    description="Two people tell facts and talk of other things; the last turn asks for one of the facts.",
    draw=draw,
    source="turns",
    target="response",
    tokens="turns",
    shortest=2,
    longest=8,
    categories={
        "animals": ANIMALS,
        "names": NAMES,
        "cities": CITIES,
        "relatives": RELATIVES,
        "things": THINGS,
        "numbers": NUMBERS,
        "colours": COLOURS,
        "persons": ("i", "you", "my", "your", "me", "us"),
        "questions": ("where", "what", "how", "many", "colour", "?"),
        "verbs": ("live", "lives", "is", "called", "have", "do", "does", "are", "am", "did", "tell", "let", "know"),
        "politeness": ("hello", "good", "morning", "nice", "meet", "fine", "thank", "yes", "oh", "really", "course"),
        "function words": ("in", "and", "to", "that", "the", "not", "of", "some", "more", "hear", ".", ","),
        "small talk": ("weather", "today", "tea"),
    },
)
