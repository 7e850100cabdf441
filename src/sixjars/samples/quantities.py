"""Two sentences about what some animals, people or toys do, and whether the second follows from the first.

Both are `some X are Y` or `no X are Y`, with a kind for X and an activity for Y, each in general or
in particular:

    some dogs are running      some animals are moving    entailment
    no animals are moving      no dogs are running        entailment: `no` turns the direction round
    some dogs are running      no animals are moving      contradiction
    some animals are moving    some dogs are running      neutral, and so is whatever has an unrelated word

One sentence alone is no evidence: given the label, the first has the same distribution, and so has
the second. After `some` a particular word says more than a general one, after `no` less. Of the
first sentence each word is the one that says more with probability 3/4, of the second with 1/2,
whatever the label.
"""

from random import Random

from sixjars.samples.sample import Row, Sample
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("quantities")
ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
More = tuple[bool, bool]
"""Whether the word of the first sentence is the one that says more, and whether that of the second
is."""
FOLLOW: tuple[More, ...] = ((True, True), (True, True), (True, False), (False, False))
"""Where the second sentence may follow, which has the same quantity; equally frequent."""
DENY: tuple[More, ...] = ((True, True), (True, False), (True, False), (False, True))
"""Where it may be denied, which has the other quantity."""
UNRELATED = ((True, False), (False, True), (True, True))
"""Whether the kinds and whether the activities of a neutral pair are unrelated, or related the
wrong way round."""


def draw(rng: Random, longest: int) -> Row:
    """Two sentences of at most `longest` words each, and what the first says about the second."""
    label = rng.choice((ENTAILMENT, NEUTRAL, CONTRADICTION))
    same = label == ENTAILMENT or (label == NEUTRAL and rng.random() < 0.5)
    quantities = WORDS["quantities"] if rng.random() < 0.5 else WORDS["quantities"][::-1]
    both = quantities[0], quantities[0] if same else quantities[1]
    wrong = rng.choice(UNRELATED) if label == NEUTRAL else (False, False)
    kinds = _words(rng, "kinds", both, wrong=wrong[0])
    activities = _words(rng, "activities", both, wrong=wrong[1])
    around = _around(rng, longest - SAMPLE.shortest)
    sentences = [
        f"{quantity} {kind} are {activity} {around}".strip()
        for quantity, kind, activity in zip(both, kinds, activities, strict=True)
    ]
    return {"premise": sentences[0], "hypothesis": sentences[1], "label": label}


def _around(rng: Random, room: int) -> str:
    """A place and a time, where there is room; they are the same in both sentences."""
    place = rng.choice([one for one in ("", *WORDS["places"]) if len(one.split()) <= room])
    time = rng.choice(
        [one for one in ("", *WORDS["times"]) if len(one.split()) <= room - len(place.split())]
    )
    return f"{place} {time}".strip()


def _words(rng: Random, table: str, quantities: tuple[str, str], *, wrong: bool) -> tuple[str, str]:
    """A word for each sentence, such that they agree with the label; or `wrong` ones, with which nothing follows."""
    same = quantities[0] == quantities[1]
    more = rng.choice(FOLLOW if same != wrong else DENY)
    general = [
        says_more == (quantity == "no")
        for says_more, quantity in zip(more, quantities, strict=True)
    ]
    groups = WORDS.table(table)
    group = rng.choice(list(groups))
    first = group if general[0] else rng.choice(groups[group])
    if wrong and more[0]:
        words = [one for name in groups for one in ((name,) if general[1] else groups[name])]
        related = {first} if general[0] == general[1] else {group, *groups[group]}
        return first, rng.choice([one for one in words if one not in related])
    if general[0] == general[1]:
        return first, first
    return first, group if general[1] else rng.choice(groups[group])


SAMPLE = Sample(
    task="sentence_pair",
    description="Two sentences on what some or no animals, people or toys do; the second follows, may, or cannot.",
    draw=draw,
    source="premise",
    second="hypothesis",
    target="label",
    shortest=4,
    longest=9,
    most=9,
)
