"""Two sentences on what animals, people or toys do, and whether the second follows.

Both are `some X are Y` or `no X are Y`, with a kind for X and an activity for Y, each in general or
in particular:

    some dogs are running      some animals are moving    entailment
    no animals are moving      no dogs are running        entailment: `no` turns the direction round
    some dogs are running      no animals are moving      contradiction
    some animals are moving    some dogs are running      neutral, as are unrelated words

One sentence alone is no evidence: given the label, the first has the same distribution, and so has
the second. After `some` a particular word says more than a general one, after `no` less. Of the
first sentence each word is the one that says more with probability 3/4, of the second with 1/2,
whatever the label.
"""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("quantities")
ENTAILMENT, NEUTRAL, CONTRADICTION = "entailment", "neutral", "contradiction"
More = tuple[bool, bool]
"""Whether the word of the first sentence says more, and whether that of the second does."""
FOLLOW: tuple[More, ...] = ((True, True), (True, True), (True, False), (False, False))
"""Pairs of one quantity where the second sentence may follow, equally frequent."""
DENY: tuple[More, ...] = ((True, True), (True, False), (True, False), (False, True))
"""Pairs of two quantities where it may be denied."""
UNRELATED = ((True, False), (False, True), (True, True))
"""Whether the kinds, and the activities, of a neutral pair are unrelated, or reversed."""


@partial(Corpus, "sentence_pair", ["premise", "hypothesis"], "label", lengths=(4, 9), most=9)
def quantified(rng: Random, longest: int) -> Row:
    """Two sentences on what some or no things do; the second follows, may, or cannot."""
    label = rng.choice((ENTAILMENT, NEUTRAL, CONTRADICTION))
    same = label == ENTAILMENT or (label == NEUTRAL and rng.random() < 0.5)
    quantities = WORDS["quantities"] if rng.random() < 0.5 else WORDS["quantities"][::-1]
    pair = quantities[0], quantities[0] if same else quantities[1]
    wrong = rng.choice(UNRELATED) if label == NEUTRAL else (False, False)
    kinds = _words(rng, "kinds", pair, wrong=wrong[0])
    activities = _words(rng, "activities", pair, wrong=wrong[1])
    around = _around(rng, longest - quantified.shortest)
    sentences = [
        f"{quantity} {kind} are {activity} {around}".strip()
        for quantity, kind, activity in zip(pair, kinds, activities, strict=True)
    ]
    return {"premise": sentences[0], "hypothesis": sentences[1], "label": label}


def _around(rng: Random, room: int) -> str:
    """A place and a time, where there is room; they are the same in both sentences."""
    place = rng.choice([text for text in ("", *WORDS["places"]) if len(text.split()) <= room])
    left = room - len(place.split())
    time = rng.choice([text for text in ("", *WORDS["times"]) if len(text.split()) <= left])
    return f"{place} {time}".strip()


def _words(rng: Random, table: str, quantities: tuple[str, str], *, wrong: bool) -> tuple[str, str]:
    """A word for each sentence, by the label; or `wrong` ones, from which nothing follows."""
    same = quantities[0] == quantities[1]
    more = rng.choice(FOLLOW if same != wrong else DENY)
    # after `no` a general word says more, after `some` a particular one
    pairs = zip(more, quantities, strict=True)
    general = [says_more == (quantity == "no") for says_more, quantity in pairs]
    groups = WORDS.table(table)
    group = rng.choice(list(groups))
    first = group if general[0] else rng.choice(groups[group])
    if wrong and more[0]:
        words = [word for name in groups for word in ((name,) if general[1] else groups[name])]
        related = {first} if general[0] == general[1] else {group, *groups[group]}
        return first, rng.choice([word for word in words if word not in related])
    if general[0] == general[1]:
        return first, first
    return first, group if general[1] else rng.choice(groups[group])
