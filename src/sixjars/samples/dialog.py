"""An utterance, and the right response to it.

The response repeats or transforms the utterance: it copies a phrase, turns my into your, adds two
numbers, says words backwards, or names where things of a kind are kept.
"""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Clause, Lexicon, Pair, Word, copied, fitting, linked, words

WORDS = Lexicon("dialog")


def _phrase(rng: Random, nouns: tuple[str, ...]) -> tuple[Word, ...]:
    """A noun, perhaps with a size, perhaps with a colour."""
    size = rng.choice(WORDS["sizes"]) if rng.random() < 0.5 else ""
    colour = rng.choice(WORDS["colours"]) if rng.random() < 0.6 else ""
    return words(f"{size} {colour} {rng.choice(nouns)}")


def _thing(rng: Random) -> tuple[Word, ...]:
    """Something that is kept somewhere."""
    return _phrase(rng, tuple(thing for things in WORDS.table("kept").values() for thing in things))


def _liking(rng: Random, _room: int) -> Pair:
    do, you, like = words("do you like")
    kind = rng.choice(("tasty", "scary"))
    what = _phrase(rng, WORDS[kind])
    answer, more = ("yes , i", "a lot .") if kind == "tasty" else ("no , i do not", "at all .")
    return Pair(
        (do, you, like, *what, Word("?")),
        linked(answer, what[-1]) + copied((like, *what)) + linked(more),
    )


def _finding(rng: Random, _room: int) -> Pair:
    where, be, the = words("where is the")
    what = _thing(rng)
    place = next(place for place, things in WORDS.table("kept").items() if what[-1].text in things)
    answer = copied((the, *what, be)) + linked(place, where, what[-1]) + linked(".")
    return Pair((where, be, the, *what, Word("?")), answer)


def _adding(rng: Random, _room: int) -> Pair:
    first = rng.randint(0, 9)
    second = rng.randint(0, 9)
    numbers = WORDS["numbers"]
    sign = rng.choice(("plus", "minus"))
    if sign == "minus":
        first += second
    total = first + second if sign == "plus" else first - second
    operation = words(f"{numbers[first]} {sign} {numbers[second]}")
    be = Word("is")
    answer = copied((*operation, be)) + linked(numbers[total], *operation) + linked(".")
    if rng.random() < 0.2:
        return Pair((Word("what"), be, *operation, Word("?")), answer)
    name, asks, what = (Word(rng.choice(WORDS["names"])), *words("asks what"))
    reply = linked("tell", asks) + copied((name,)) + linked("that", what) + answer
    return Pair((name, asks, what, *operation, be, Word(".")), reply)


def _having(rng: Random, _room: int) -> Pair:
    first = rng.randint(2, 9)
    second = rng.randint(2, 9)
    numbers = WORDS["numbers"]
    if_, i, have, number = words(f"if i have {numbers[first]}")
    what = _phrase(rng, WORDS["tasty"])
    more = words(f"and buy {numbers[second]} more , how many do i have ?")
    total = linked(numbers[first + second], number, more[2])
    answer = linked("you", i) + copied((have,)) + total + copied(what) + linked(".")
    return Pair((if_, i, have, number, *what, *more), answer)


def _greeting(rng: Random, _room: int) -> Pair:
    opening = words(rng.choice(("hello , my name is", "good morning , i am", "hello , i am")))
    name = Word(rng.choice(WORDS["names"]))
    nice = linked("nice to meet you ,") + copied((name,)) + linked(".")
    if rng.random() < 0.3:
        return Pair((*opening, name, Word(".")), nice)
    city = Word(rng.choice(WORDS["cities"]))
    answer = nice + linked("how is") + copied((city,)) + linked("?")
    return Pair((*opening, name, *words("and i come from"), city, Word(".")), answer)


def _asking(rng: Random, _room: int) -> Pair:
    can, you = words("can you")
    favour, the = Word(rng.choice(WORDS["favours"])), Word("the")
    what = _thing(rng)
    answer = linked("of course , i will", can) + copied((favour, the, *what)) + linked(".")
    return Pair((can, you, favour, the, *what, Word("?")), answer)


def _telling(rng: Random, _room: int) -> Pair:
    i, happened, my = words(f"i {rng.choice(('lost', 'broke', 'found', 'sold'))} my")
    what = _thing(rng)
    mood = "sorry" if happened.text in ("lost", "broke") else "glad"
    feeling = linked("i am") + linked(mood, happened) + linked("that")
    event = linked("you", i) + copied((happened,)) + linked("your", my) + copied(what)
    return Pair((i, happened, my, *what, Word(".")), feeling + event + linked("."))


def _reversing(rng: Random, room: int) -> Pair:
    known = (*WORDS["colours"], *WORDS["names"])
    count = rng.randint(2, max(2, room - 4))
    listed = words(" ".join(rng.choices(known, k=count)))
    request = *words("please say"), *listed, *words("backwards .")
    return Pair(request, copied(listed[::-1]) + linked("."))


TOPICS: dict[Clause, int] = {
    _liking: 3,
    _finding: 3,
    _adding: 2,
    _having: 3,
    _greeting: 3,
    _asking: 3,
    _telling: 3,
    _reversing: 2,
}
"""The topics, and how often each is drawn."""


@partial(Corpus, "dialog", ["utterance"], "response", truths=["alignment"], lengths=(5, 20))
def dialog(rng: Random, longest: int) -> Row:
    """Questions, sums, favours and greetings, each with the one right answer."""
    topics, shares = [*TOPICS], [*TOPICS.values()]
    pair = fitting(rng, longest, lambda rng, room: rng.choices(topics, shares)[0](rng, room))
    return pair.row("utterance", "response")
