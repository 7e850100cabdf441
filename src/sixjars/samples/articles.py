"""A short article about people, firms and towns, and its summary in one sentence.

Every name is composed of random syllables and hardly ever occurs twice, so it is in no vocabulary:
only a model that copies can write the summary. One or two sentences report the event, in one of
several phrasings; the others have names too.
"""

from functools import partial
from random import Random
from string import Formatter

from sixjars.samples.sample import Corpus, Row
from sixjars.samples.texts import Lexicon

WORDS = Lexicon("articles")
SYLLABLES = 3


@partial(Corpus, "summarization", ["article"], "summary", tokens="sentences", lengths=(3, 6))
def article(rng: Random, longest: int) -> Row:
    """Articles full of names that are in no vocabulary, and what happened in one sentence."""
    event = WORDS.table(rng.choice(WORDS["events"]))
    (summary,) = event["summary"]
    report = rng.choice(event["phrasings"])
    facts = report.replace(" . ", " .\n").split("\n")
    others = rng.randint(3, longest) - len(facts)
    beside = rng.sample(event["beside"], min(others, rng.randint(1, len(event["beside"]))))
    comments = WORDS["comments"]
    beside += rng.sample(comments * (1 + others // len(comments)), others - len(beside))
    gaps = _filled(rng, f"{report} {summary}")
    sentences = [text.format(**gaps) for text in facts]
    sentences += [text.format(**_filled(rng, text)) for text in beside]
    rng.shuffle(sentences)
    return {"article": "\n".join(sentences), "summary": summary.format(**gaps)}


def name(rng: Random, kind: str) -> str:
    """A new name of a person, a firm or a town.

    >>> [name(Random(7), kind) for kind in ("person", "firm", "town")]
    ['sevafu', 'sevafutec', 'sevafuville']
    """
    consonants, vowels = WORDS["consonants"], WORDS["vowels"]
    syllables = (rng.choice(consonants) + rng.choice(vowels) for _ in range(SYLLABLES))
    return "".join(syllables) + rng.choice(WORDS.table("endings")[kind])


def _filled(rng: Random, text: str) -> dict[str, str]:
    """A word or a name for each gap of a text."""
    words = WORDS.table("words")
    filling = {}
    for gap in sorted({gap for _, gap, _, _ in Formatter().parse(text) if gap}):
        known = gap in words
        filling[gap] = rng.choice(words[gap]) if known else name(rng, gap.rpartition("_")[2])
    return filling
