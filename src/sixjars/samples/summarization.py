"""A short news item, and its headline.

The headline needs three sentences that each have one fact: who, what and where. They come in any
order, among sentences about other people and other places; the verb of the headline agrees with a
subject that stands in another sentence than the verb does.
"""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon, Pair, Target, Word, copied, fitting, linked, words

WORDS = Lexicon("summarization")
WORDS_OF_A_SENTENCE = 12
"""About; it limits the number of sentences of an item."""


@partial(Corpus, "summarization", ["document"], "summary", truths=["alignment"], lengths=(35, 60))
def news(rng: Random, longest: int) -> Row:
    """A short news item to a headline: who, what and where from three sentences among others."""
    return fitting(rng, longest, _item).row("document", "summary")


def _item(rng: Random, longest: int) -> Pair:
    who, people, many = _who(rng)
    what, verb, thing = _what(rng, many=many)
    city = words(rng.choice(WORDS["cities"]))
    facts = [who, what, _sentence(rng.choice(WORDS["where"]), city)]
    others = rng.randint(0, max(0, longest // WORDS_OF_A_SENTENCE - len(facts)))
    sentences = facts + [_beside(rng) for _ in range(others)]
    rng.shuffle(sentences)
    headline = people + verb + thing + linked("in", *city) + copied(city)
    return Pair(tuple(word for sentence in sentences for word in sentence), headline)


def _sentence(pattern: str, *gaps: tuple[Word, ...]) -> tuple[Word, ...]:
    """The pattern's words, with source words that already exist in its gaps."""
    filling = iter(gaps)
    parts = [next(filling) if part == "{}" else (Word(part),) for part in pattern.split()]
    return tuple(word for part in parts for word in part)


def _who(rng: Random) -> tuple[tuple[Word, ...], Target, bool]:
    """The sentence, the subject of the headline, and whether it is plural."""
    count = rng.choice(("a", "two", "three"))
    person = rng.choice(WORDS["people"])
    quality = words(rng.choice(WORDS["qualities"]) if rng.random() < 0.5 else "")
    named = (*quality, Word(person if count == "a" else person + "s"))
    number = Word("an" if count == "a" and named[0].text[0] in "aeiou" else count)
    subject = copied(named if count == "a" else (number, *named))
    return _sentence(rng.choice(WORDS["who"]), (number, *named)), subject, count != "a"


def _what(rng: Random, *, many: bool) -> tuple[tuple[Word, ...], Target, Target]:
    """The sentence, and the headline's verb and object."""
    actions = WORDS.table("actions")
    done = Word(rng.choice(list(actions)))
    (verb,) = actions[done.text]
    look = rng.choice(WORDS["looks"]) if rng.random() < 0.5 else ""
    thing = words(f"{look} {rng.choice(WORDS[done.text])}")
    pattern = rng.choice(WORDS["what"]).replace("{days}", rng.choice(WORDS["days"]))
    target = linked(verb if many else verb + "s", done)
    return _sentence(pattern, thing, (done,)), target, copied(thing)


def _beside(rng: Random) -> tuple[Word, ...]:
    pattern = rng.choice(WORDS["beside"])
    gaps = {gap: rng.choice(WORDS[gap]) for gap in ("cities", "days", "skies", "people")}
    return words(pattern.format(**gaps))
