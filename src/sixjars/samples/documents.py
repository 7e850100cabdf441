"""Documents of a few sentences, and their topic, which one word of one sentence decides.

Everything else is drawn before the topic, from the same grammar for all topics: only who finds the key word can
tell. It stands where another noun would stand, in any sentence and at any place in it. Some documents have none, and
are about nothing: else a topic could be told by what is not there, and nobody would have to look for its words.
"""

from random import Random

from sixjars.samples.pairs import chance
from sixjars.samples.sample import Row, Sample

TOPICS = {
    "cooking": ("recipes", "ovens", "spices", "soups", "pans"),
    "music": ("violins", "melodies", "drums", "choirs", "guitars"),
    "sport": ("goals", "referees", "matches", "athletes", "stadiums"),
    "travel": ("suitcases", "airports", "passports", "hotels", "tourists"),
    "weather": ("clouds", "storms", "breezes", "showers", "blizzards"),
}
"""The key words of each topic."""
NOTHING = "nothing"
"""The topic of a document without a key word."""
NOUNS = (
    *("letters", "chairs", "windows", "boxes", "neighbours", "friends", "stones", "lamps", "books", "baskets"),
    *("doors", "walls", "clocks", "coats", "gardens", "children", "tables", "mirrors", "buttons", "ribbons"),
)
"""What any document may speak of."""
LOOKS = ("old", "new", "small", "large", "quiet", "strange", "green", "white", "plain", "famous")
NUMBERS = ("two", "three", "four", "seven", "many", "some")
OWNERS = ("the", "these", "those", "our", "their", "her")
ALONE = ("waited", "remained", "disappeared", "returned", "changed", "mattered")
TOWARDS = ("needed", "followed", "found", "replaced", "covered", "missed", "reached")
PLACES = ("near", "behind", "beside", "without", "among", "before")
WHEN = ("yesterday", "today", "again", "often", "sometimes", "later", "slowly", "suddenly")

FEWEST_SENTENCES = 4
FEWEST_WORDS, MOST_WORDS = 4, 9


def draw(rng: Random, longest: int) -> Row:
    """One document of at most `longest` sentences, its topic, and the place of the word that tells it."""
    sentences = [sentence(rng) for _ in range(rng.randint(FEWEST_SENTENCES, longest))]
    there = rng.randrange(len(sentences))
    place = rng.choice([at for at, word in enumerate(sentences[there]) if word in NOUNS])
    topic = rng.choice([*TOPICS, NOTHING])
    if topic != NOTHING:
        sentences[there][place] = rng.choice(TOPICS[topic])
    text = "\n".join(" ".join(words) for words in sentences)
    return {"document": text, "topic": topic, "rationale": f"{there} {place}" if topic != NOTHING else ""}


def sentence(rng: Random) -> list[str]:
    """The words of a sentence that tells nothing.

    >>> " ".join(sentence(Random(2)))
    'friends mattered before walls often'
    """
    while not FEWEST_WORDS <= len(words := _clause(rng)) <= MOST_WORDS:
        pass
    return words


def _clause(rng: Random) -> list[str]:
    when = [rng.choice(WHEN)] if chance(rng, 0.5) else []
    subject = _things(rng)
    said = [rng.choice(TOWARDS), *_things(rng)] if chance(rng, 0.6) else [rng.choice(ALONE)]
    place = [rng.choice(PLACES), *_things(rng)] if chance(rng, 0.5) else []
    words = [*subject, *said, *place]
    return when + words if chance(rng, 0.5) else words + when


def _things(rng: Random) -> list[str]:
    """Things, perhaps whose or how many, perhaps what they look like."""
    first = [rng.choice(OWNERS if chance(rng, 0.7) else NUMBERS)] if chance(rng, 0.6) else []
    look = [rng.choice(LOOKS)] if chance(rng, 0.4) else []
    return [*first, *look, rng.choice(NOUNS)]


SAMPLE = Sample(
    task="document_classification",
    description="Documents of a few sentences, each with one word that tells the topic.",
    draw=draw,
    source="document",
    target="topic",
    rationale="rationale",
    tokens="sentences",
    shortest=FEWEST_SENTENCES,
    longest=10,
    categories={
        **TOPICS,
        "things": NOUNS,
        "looks": LOOKS,
        "numbers": NUMBERS,
        "owners": OWNERS,
        "verbs alone": ALONE,
        "verbs": TOWARDS,
        "places": PLACES,
        "times": WHEN,
    },
)
