"""Documents of a few sentences, and their topic, which one word of one sentence decides.

Everything else is drawn before the topic, from the same grammar for all topics, so only the topic
word is evidence. It stands where another noun would stand, in any sentence and at any position.
Some documents have none and are about nothing: otherwise a topic could be predicted from the words
that are absent.
"""

from functools import partial
from random import Random

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("documents")
NOTHING = "nothing"
"""The topic of a document without a topic word."""
FEWEST_SENTENCES = 4
FEWEST_WORDS, MOST_WORDS = 4, 9


@partial(
    Corpus,
    "document_classification",
    ["document"],
    "topic",
    truths=["rationale"],
    tokens="sentences",
    lengths=(FEWEST_SENTENCES, 10),
)
def document(rng: Random, longest: int) -> Row:
    """Documents of a few sentences, each with one word that decides the topic."""
    sentences = [sentence(rng) for _ in range(rng.randint(FEWEST_SENTENCES, longest))]
    there = rng.randrange(len(sentences))
    place = rng.choice([at for at, word in enumerate(sentences[there]) if word in WORDS["nouns"]])
    topics = WORDS.table("topics")
    topic = rng.choice([*topics, NOTHING])
    if topic != NOTHING:
        sentences[there][place] = rng.choice(topics[topic])
    text = "\n".join(" ".join(words) for words in sentences)
    rationale = f"{there} {place}" if topic != NOTHING else ""
    return {"document": text, "topic": topic, "rationale": rationale}


def sentence(rng: Random) -> list[str]:
    """The words of a sentence without a topic word.

    >>> " ".join(sentence(Random(2)))
    'friends mattered before walls often'
    """
    while not FEWEST_WORDS <= len(words := _clause(rng)) <= MOST_WORDS:
        pass
    return words


def _clause(rng: Random) -> list[str]:
    adverb = [rng.choice(WORDS["adverbs"])] if rng.random() < 0.5 else []
    words = _noun_phrase(rng)
    if rng.random() < 0.6:
        words += [rng.choice(WORDS["transitive_verbs"]), *_noun_phrase(rng)]
    else:
        words += [rng.choice(WORDS["intransitive_verbs"])]
    if rng.random() < 0.5:
        words += [rng.choice(WORDS["prepositions"]), *_noun_phrase(rng)]
    return adverb + words if rng.random() < 0.5 else words + adverb


def _noun_phrase(rng: Random) -> list[str]:
    """A noun, perhaps with a determiner or a number, perhaps with an adjective."""
    phrase = []
    if rng.random() < 0.6:
        phrase.append(rng.choice(WORDS["determiners" if rng.random() < 0.7 else "numbers"]))
    if rng.random() < 0.4:
        phrase.append(rng.choice(WORDS["adjectives"]))
    return [*phrase, rng.choice(WORDS["nouns"])]
