"""A short made-up article about people, firms and towns, and its summary in one sentence.

Every name is made up from syllables and hardly ever comes twice, so it is in no vocabulary: a summary can only be
written by who copies. One or two sentences have the news, in one of several phrasings; the others have names too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import final

from sixjars.samples.sample import Row, Sample

CONSONANTS = ("b", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "kr", "tr", "st")
VOWELS = ("a", "e", "i", "o", "u")
ENDINGS = {
    "person": ("", "n", "r", "s", "l"),
    "firm": ("tec", "corp", "gen", "dyne", "lux"),
    "town": ("ville", "ford", "burg", "stad", "ton"),
}
"""How names of a kind end, after three syllables."""
SYLLABLES = 3

WORDS = {
    "day": ("monday", "tuesday", "wednesday", "thursday", "friday"),
    "number": ("two", "three", "five", "eight", "ten", "twenty"),
    "building": ("factory", "school", "bridge", "museum", "station", "library"),
    "contest": ("race", "chess", "singing", "baking", "dance"),
    "find": ("treasure", "ship", "temple", "cave", "painting"),
}
"""What may stand in a gap that is no name."""


@final
@dataclass(frozen=True)
class News:
    """Something that happens."""

    summary: str
    phrasings: tuple[tuple[str, ...], ...]
    """The sentences that tell it; one of these is chosen."""
    beside: tuple[str, ...]
    """Sentences about it that the summary leaves out; their gaps begin with `other`."""


HEAD = News(
    "{person} becomes head of {firm}",
    (
        ("{firm} has named {person} as its new boss .",),
        ("{person} will lead {firm} from {day} on .",),
        ("the board of {firm} voted for {person} on {day} .",),
        ("the long search of {firm} for a leader is over .", "the choice fell on {person} after a vote ."),
    ),
    (
        "{other_person} leaves the job after {number} years .",
        "{other_person} led the firm until now and goes to {other_firm} .",
        "nobody voted for {other_person} from {other_town} .",
    ),
)
SALE = News(
    "{firm} buys {second_firm}",
    (
        ("{firm} has agreed to pay {number} millions for {second_firm} .",),
        ("{second_firm} will soon belong to {firm} , as was said on {day} .",),
        ("the owners of {second_firm} took an offer from {firm} .",),
        ("from {day} on {second_firm} has a new owner .", "the winner of the auction is {firm} ."),
    ),
    (
        "{other_firm} had offered less .",
        "{other_person} had wanted to sell to {other_firm} .",
        "{other_firm} did not take part .",
    ),
)
OPENING = News(
    "{firm} opens {building} in {town}",
    (
        ("a new {building} in {town} was paid for by {firm} .",),
        ("{firm} showed its new {building} to the people of {town} on {day} .",),
        ("since {day} the people of {town} can visit the {building} that {firm} has built .",),
        ("the new {building} was finished in {town} this week .", "all the work was done by {firm} ."),
    ),
    (
        "{other_person} cut the ribbon .",
        "the plans were drawn by {other_person} of {other_firm} .",
        "{other_town} had hoped to get it .",
    ),
)
PRIZE = News(
    "{person} wins {contest} prize in {town}",
    (
        ("{person} was the best of all at the {contest} contest of {town} .",),
        ("the {contest} contest of {town} ended on {day} with first place for {person} .",),
        ("first place in the {contest} contest went to {person} .", "{number} thousand people had come to {town} ."),
    ),
    (
        "{other_person} came second .",
        "{other_person} of {other_town} was ill and stayed at home .",
        "last year {other_person} had been first .",
    ),
)
MOVE = News(
    "{person} moves from {firm} to {second_firm}",
    (
        ("after {number} years at {firm} , {person} has signed with {second_firm} .",),
        ("{second_firm} has lured {person} away from {firm} .",),
        ("{firm} loses {person} , who starts at {second_firm} on {day} .",),
    ),
    (
        "{other_person} takes over the old desk .",
        "{other_firm} had also made an offer .",
        "{other_person} was asked first but said no .",
    ),
)
DISCOVERY = News(
    "{person} discovers {find} near {town}",
    (
        ("{person} found a hidden {find} not far from {town} .",),
        ("a forgotten {find} in the hills of {town} was found on {day} by {person} .",),
        ("an old {find} lay under the fields of {town} .", "it was {person} who found it ."),
    ),
    (
        "{other_person} had looked for it in {other_town} .",
        "{other_person} of {other_firm} paid for the tools .",
        "it may be shown in {other_town} .",
    ),
)
GIFT = News(
    "{town} gets {building}",
    (
        ("after {number} years of waiting , work on the {building} of {town} is done .",),
        ("the people of {town} may use their new {building} from {day} on .",),
    ),
    (
        "{other_town} still waits for one .",
        "{other_person} of {other_firm} was in charge .",
        "{other_person} gave a long speech .",
    ),
)
NEWS = (HEAD, SALE, OPENING, PRIZE, MOVE, DISCOVERY, GIFT)

COMMENTS = (
    "{other_person} called it a surprise .",
    "{other_person} of {other_firm} had no comment .",
    "in {other_town} , {other_person} was less pleased .",
    "we will remember this day , said {other_person} .",
    "shares of {other_firm} fell on {day} .",
    "the weather in {other_town} was fine .",
    "{other_person} heard of it on the way to {other_town} .",
)
"""Sentences that fit any news."""


def draw(rng: Random, longest: int) -> Row:
    """One article of at most `longest` sentences, and its summary."""
    news = rng.choice(NEWS)
    told = list(rng.choice(news.phrasings))
    others = rng.randint(3, longest) - len(told)
    beside = rng.sample(news.beside, min(others, rng.randint(1, len(news.beside))))
    beside += rng.sample(COMMENTS * (1 + others // len(COMMENTS)), others - len(beside))
    gaps = {gap: _filled(rng, gap) for gap in sorted(_gaps([*told, news.summary]))}
    sentences = [text.format(**gaps) for text in told]
    sentences += [text.format(**{gap: _filled(rng, gap) for gap in sorted(_gaps([text]))}) for text in beside]
    rng.shuffle(sentences)
    return {"article": "\n".join(sentences), "summary": news.summary.format(**gaps)}


def name(rng: Random, kind: str) -> str:
    """A name of a person, a firm or a town that nobody has.

    >>> [name(Random(7), kind) for kind in ENDINGS]
    ['sevafu', 'sevafutec', 'sevafuville']
    """
    syllables = (rng.choice(CONSONANTS) + rng.choice(VOWELS) for _ in range(SYLLABLES))
    return "".join(syllables) + rng.choice(ENDINGS[kind])


def _gaps(texts: Sequence[str]) -> set[str]:
    return {part[1:-1] for text in texts for part in text.split() if part.startswith("{")}


def _filled(rng: Random, gap: str) -> str:
    return rng.choice(WORDS[gap]) if gap in WORDS else name(rng, gap.rpartition("_")[2])


_PATTERNS = (*(text for news in NEWS for told in (*news.phrasings, news.beside) for text in told), *COMMENTS)

SAMPLE = Sample(
    task="summarization",
    description="Articles full of names that nobody has seen, and what happened in one sentence.",
    draw=draw,
    source="article",
    target="summary",
    tokens="sentences",
    shortest=3,
    longest=6,
    categories={
        **{f"{kind}s": words for kind, words in WORDS.items()},
        "ordinary words": tuple(sorted({part for text in _PATTERNS for part in text.split() if part[0] != "{"})),
    },
)
