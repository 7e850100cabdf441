"""A short made-up news item, and its headline.

The headline is put together from three sentences that each know one thing: who, what and where. They
come in any order, among sentences about other people and other places; the verb of the headline agrees
with a subject that stands in another sentence than the verb does.
"""

from random import Random

from sixjars.samples.pairs import Pair, Told, Word, chance, copied, told, words
from sixjars.samples.sample import Row, Sample

PEOPLE = {
    **{"farmer": "farmers", "teacher": "teachers", "student": "students", "doctor": "doctors"},
    **{"singer": "singers", "driver": "drivers", "baker": "bakers", "painter": "painters"},
}
QUALITIES = ("young", "old", "brave", "clever", "retired")
DEEDS = {
    "found": ("find", ("coin", "ring", "map", "statue", "letter")),
    "built": ("build", ("bridge", "school", "boat", "tower", "clock")),
    "saved": ("save", ("dog", "horse", "forest", "library", "garden")),
    "sold": ("sell", ("painting", "clock", "boat", "ring", "car")),
    "repaired": ("repair", ("bridge", "car", "tower", "boat", "clock")),
}
"""The participle, the headline's verb, and what it is done to."""
LOOKS = ("golden", "wooden", "lost", "famous", "tiny", "forgotten")
CITIES = ("delhi", "chennai", "paris", "cairo", "tokyo", "lima", "oslo", "nairobi", "madrid", "dublin")
DAYS = ("monday", "tuesday", "thursday", "friday", "sunday")
SKIES = ("grey", "clear", "cloudy", "windy", "warm")

WHO = (
    "the whole story began with the work of {} from the hills .",
    "everybody in the country wants to thank {} in person .",
    "the newspapers gave all of the honour to {} this week .",
)
WHAT = (
    "a {} was {} on {day} after many years of waiting .",
    "on {day} people heard that a {} had been {} .",
    "nobody could believe that a {} was {} last {day} .",
)
WHERE = (
    "all of this happened in {} not far from the river .",
    "the streets of {} have been full of visitors since then .",
    "the mayor of {} has promised a large feast for everyone .",
)
BESIDE = (
    "the weather over {city} was {sky} for most of {day} .",
    "the {person} of {city} had nothing to say about it .",
    "we will talk about this for years , said a {person} .",
    "trains to {city} were late on {day} because of the rain .",
)
"""Sentences that say nothing of the matter."""
WORDS_OF_A_SENTENCE = 12
"""A sentence takes about this much room; so long an item has so many sentences at most."""


def draw(rng: Random, longest: int) -> Row:
    """One news item of at most `longest` words, and its headline."""
    while len((pair := _item(rng, longest)).source) > longest:
        pass
    return dict(zip(("document", "summary", "alignment"), pair.texts(), strict=True))


def _item(rng: Random, longest: int) -> Pair:
    who, people, many = _who(rng)
    what, verb, thing = _what(rng, many=many)
    city = words(rng.choice(CITIES))
    facts = [who, what, _sentence(rng.choice(WHERE), city)]
    others = rng.randint(0, max(0, longest // WORDS_OF_A_SENTENCE - len(facts)))
    sentences = facts + [_beside(rng) for _ in range(others)]
    rng.shuffle(sentences)
    headline = people + verb + thing + told("in", *city) + copied(city)
    return Pair(tuple(word for sentence in sentences for word in sentence), headline)


def _sentence(pattern: str, *gaps: tuple[Word, ...]) -> tuple[Word, ...]:
    """The pattern's words, with source words that already exist in its gaps."""
    filling = iter(gaps)
    return tuple(word for part in pattern.split() for word in (next(filling) if part == "{}" else (Word(part),)))


def _who(rng: Random) -> tuple[tuple[Word, ...], Told, bool]:
    """The sentence, what the headline says of it, and whether there are several."""
    count = rng.choice(("a", "two", "three"))
    person = rng.choice(list(PEOPLE))
    quality = words(rng.choice(QUALITIES) if chance(rng, 0.5) else "")
    head = Word(person if count == "a" else PEOPLE[person])
    following = (*quality, head)[0].text
    number = Word("an" if count == "a" and following[0] in "aeiou" else count)
    spoken = copied((*quality, head)) if count == "a" else copied((number, *quality, head))
    return _sentence(rng.choice(WHO), (number, *quality, head)), spoken, count != "a"


def _what(rng: Random, *, many: bool) -> tuple[tuple[Word, ...], Told, Told]:
    """The sentence, and the headline's verb and object."""
    done = Word(rng.choice(list(DEEDS)))
    verb, things = DEEDS[done.text]
    thing = words(f"{rng.choice(LOOKS) if chance(rng, 0.5) else ''} {rng.choice(things)}")
    pattern = rng.choice(WHAT).replace("{day}", rng.choice(DAYS))
    return _sentence(pattern, thing, (done,)), told(verb if many else verb + "s", done), copied(thing)


def _beside(rng: Random) -> tuple[Word, ...]:
    pattern = rng.choice(BESIDE)
    gaps = {"city": CITIES, "day": DAYS, "sky": SKIES, "person": tuple(PEOPLE)}
    return words(pattern.format(**{name: rng.choice(choices) for name, choices in gaps.items()}))


_PATTERN_WORDS = sorted({part for pattern in (*WHO, *WHAT, *WHERE, *BESIDE) for part in pattern.split()})

SAMPLE = Sample(
    task="summarization",
    description="A short news item to a headline: who, what and where from three sentences among others.",
    draw=draw,
    source="document",
    target="summary",
    alignment="alignment",
    shortest=35,
    longest=60,
    categories={
        "people": (*PEOPLE, *PEOPLE.values()),
        "qualities": QUALITIES,
        "deeds": tuple(DEEDS),
        "things": tuple(dict.fromkeys(thing for _, things in DEEDS.values() for thing in things)),
        "looks": LOOKS,
        "cities": CITIES,
        "days": DAYS,
        "skies": SKIES,
        "numbers": ("a", "an", "two", "three"),
        "function words": tuple(part for part in _PATTERN_WORDS if not part.startswith("{")),
    },
)
