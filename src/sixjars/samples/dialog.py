"""What one person says, and what the other rightly answers.

The right answer repeats or transforms what was said: it copies a phrase, turns my into your, adds two
numbers, says words backwards, or knows where things of a kind are kept.
"""

from collections.abc import Callable
from random import Random

from sixjars.samples.pairs import Pair, Told, Word, chance, copied, told, words
from sixjars.samples.sample import Row, Sample

NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
)
NAMES = ("maya", "ravi", "meera", "amit", "anna", "tom", "lena", "omar", "yuki", "noor")
CITIES = ("delhi", "chennai", "paris", "cairo", "tokyo", "lima", "oslo", "nairobi")
TASTY = ("apples", "mangoes", "bananas", "grapes", "carrots")
SCARY = ("snakes", "spiders", "wasps", "rats")
COLOURS = ("red", "green", "yellow", "blue", "black", "white")
SIZES = ("big", "small", "old", "new")
KEPT = {
    "on the shelf": ("book", "map", "letter"),
    "in the kitchen": ("cup", "spoon", "plate"),
    "in the cupboard": ("coat", "shirt", "hat"),
    "by the door": ("umbrella", "bag", "key"),
}
"""Where things of a kind are found."""
THINGS = tuple(thing for things in KEPT.values() for thing in things)
FAVOURS = ("bring", "clean", "show", "find", "keep", "paint")


def _phrase(rng: Random, nouns: tuple[str, ...]) -> tuple[Word, ...]:
    """A noun, perhaps with a size, perhaps with a colour."""
    size = rng.choice(SIZES) if chance(rng, 0.5) else ""
    colour = rng.choice(COLOURS) if chance(rng, 0.6) else ""
    return words(f"{size} {colour} {rng.choice(nouns)}")


def _counted(number: int, *origin: Word) -> Told:
    return told(NUMBERS[number], *origin)


def _liking(rng: Random, _room: int) -> Pair:
    do, you, like = words("do you like")
    kind = rng.choice((TASTY, SCARY))
    what = _phrase(rng, kind)
    answer = told("yes , i", what[-1]) if kind is TASTY else told("no , i do not", what[-1])
    more = told("a lot .") if kind is TASTY else told("at all .")
    return Pair((do, you, like, *what, Word("?")), answer + copied((like, *what)) + more)


def _finding(rng: Random, _room: int) -> Pair:
    where, be, the = words("where is the")
    what = _phrase(rng, THINGS)
    place = next(place for place, things in KEPT.items() if what[-1].text in things)
    answer = copied((the, *what, be)) + told(place, where, what[-1]) + told(".")
    return Pair((where, be, the, *what, Word("?")), answer)


def _adding(rng: Random, _room: int) -> Pair:
    first, second = rng.randint(0, 9), rng.randint(0, 9)
    sign = rng.choice(("plus", "minus"))
    if sign == "minus":
        first += second
    total = first + second if sign == "plus" else first - second
    operation = words(f"{NUMBERS[first]} {sign} {NUMBERS[second]}")
    be = Word("is")
    answer = copied((*operation, be)) + _counted(total, *operation) + told(".")
    if chance(rng, 0.2):
        return Pair((Word("what"), be, *operation, Word("?")), answer)
    name, *asks = words(f"{rng.choice(NAMES)} asks what")
    told_name = told("tell", asks[0]) + copied((name,)) + told("that", asks[1])
    return Pair((name, *asks, *operation, be, Word(".")), told_name + answer)


def _having(rng: Random, _room: int) -> Pair:
    first, second = rng.randint(2, 9), rng.randint(2, 9)
    if_, i, have, number = words(f"if i have {NUMBERS[first]}")
    what = _phrase(rng, TASTY)
    more = words(f"and buy {NUMBERS[second]} more , how many do i have ?")
    answer = told("you", i) + copied((have,)) + _counted(first + second, number, more[2]) + copied(what) + told(".")
    return Pair((if_, i, have, number, *what, *more), answer)


def _greeting(rng: Random, _room: int) -> Pair:
    opening = words(rng.choice(("hello , my name is", "good morning , i am", "hello , i am")))
    name = Word(rng.choice(NAMES))
    nice = told("nice to meet you ,") + copied((name,)) + told(".")
    if chance(rng, 0.3):
        return Pair((*opening, name, Word(".")), nice)
    origin = words("and i come from")
    city = Word(rng.choice(CITIES))
    return Pair((*opening, name, *origin, city, Word(".")), nice + told("how is") + copied((city,)) + told("?"))


def _asking(rng: Random, _room: int) -> Pair:
    can, you, favour = words(f"can you {rng.choice(FAVOURS)}")
    the, *what = (Word("the"), *_phrase(rng, THINGS))
    answer = told("of course , i will", can) + copied((favour, the, *what)) + told(".")
    return Pair((can, you, favour, the, *what, Word("?")), answer)


def _telling(rng: Random, _room: int) -> Pair:
    i, happened, my = words(f"i {rng.choice(('lost', 'broke', 'found', 'sold'))} my")
    what = _phrase(rng, THINGS)
    mood = "sorry" if happened.text in ("lost", "broke") else "glad"
    answer = told("i am") + told(mood, happened) + told("that") + told("you", i) + copied((happened,))
    return Pair((i, happened, my, *what, Word(".")), answer + told("your", my) + copied(what) + told("."))


def _reversing(rng: Random, room: int) -> Pair:
    say = words("please say")
    listed = words(" ".join(rng.choices((*COLOURS, *NAMES), k=rng.randint(2, max(2, room - 4)))))
    return Pair((*say, *listed, *words("backwards .")), copied(listed[::-1]) + told("."))


TOPICS: tuple[tuple[Callable[[Random, int], Pair], int], ...] = (
    (_liking, 3),
    (_finding, 3),
    (_adding, 2),
    (_having, 3),
    (_greeting, 3),
    (_asking, 3),
    (_telling, 3),
    (_reversing, 2),
)
"""What people talk about, and how often."""


def draw(rng: Random, longest: int) -> Row:
    """One utterance of at most `longest` words, and its answer."""
    topics, shares = zip(*TOPICS, strict=True)
    pair = rng.choices(topics, shares)[0](rng, longest)
    while len(pair.source) > longest:
        pair = rng.choices(topics, shares)[0](rng, longest)
    return dict(zip(("utterance", "response", "alignment"), pair.texts(), strict=True))


SAMPLE = Sample(
    task="dialog",
    description="Questions, sums, favours and greetings, each with the one right answer.",
    draw=draw,
    source="utterance",
    target="response",
    alignment="alignment",
    shortest=5,
    longest=20,
    categories={
        "numbers": NUMBERS,
        "names": NAMES,
        "cities": CITIES,
        "tasty": TASTY,
        "scary": SCARY,
        "colours": COLOURS,
        "sizes": SIZES,
        **KEPT,
        "favours": FAVOURS,
        "happenings": ("lost", "broke", "found", "sold"),
        "questions": ("do", "where", "what", "how", "can", "if", "?"),
        "persons": ("i", "you", "my"),
        "verbs": ("like", "is", "am", "have", "buy", "come", "say", "asks"),
        "signs": ("plus", "minus", "more", "many"),
        "politeness": ("hello", "good", "morning", "please", "name"),
        "function words": ("the", "and", "from", "backwards", ",", "."),
    },
)
