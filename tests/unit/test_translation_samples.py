"""Hindi, Devanagari and their word vectors, against rules written down a second time by hand."""

import math
import re
from collections import Counter
from random import Random

import pytest

from sixjars.errors import DataError
from sixjars.samples import SAMPLES, Row, generate, translation, vectors
from sixjars.samples.transliteration import devanagari


def rows(task: str) -> list[Row]:
    return generate(task, size=4000, valid=0, test=0)["train"]


# Translation

HINDI = """
I am going home = mein ghar ja raha hoon
she is going home = vah ghar ja rahi hai
they are going home = ve ghar ja rahe hain
she will go home = vah ghar jaaegi
I will go home = mein ghar jaaoonga
you will come home = tum ghar aaoge
maya was going home = maya ghar ja rahi thi
ravi is going to the market = ravi bazaar ja raha hai
he goes to the market = vah bazaar jaata hai
my father is resting = mere pitaaji aaraam kar rahe hain
my mother was running = meri maan daud rahi thin
the girls are running = ladkiyaan daud rahi hain
the boys run = ladke daudte hain
you were playing = tum khel rahe the
she does not walk = vah nahin chalti hai
he is not working = vah kaam nahin kar raha hai
I am calling him = mein use bula raha hoon
I am calling my mother = mein apni maan ko bula raha hoon
I am meeting my brother = mein apne bhaai se mil raha hoon
he is meeting my brother = vah mere bhaai se mil raha hai
she is drinking water = vah paani pi rahi hai
he drinks cold water = vah thanda paani peeta hai
she drinks cold tea = vah thandi chai peeti hai
he sings a new song = vah ek naya geet gaata hai
I will close the door = mein darvaaza band karoonga
he plays in the garden = vah bageeche mein khelta hai
I am resting at home = mein ghar par aaraam kar raha hoon
he works at night = vah raat ko kaam karta hai
she is laughing now = vah abhi hans rahi hai
we will play tomorrow = ham kal khelenge
"""


@pytest.fixture(scope="module")
def clauses() -> dict[str, tuple[str, str]]:
    rng = Random(0)
    drawn = (translation.clause(rng, 40).row("english", "hindi") for _ in range(60_000))
    return {row["english"]: (row["hindi"], row["alignment"]) for row in drawn}


@pytest.mark.parametrize("line", HINDI.strip().splitlines())
def test_hindi_by_hand(line: str, clauses: dict[str, tuple[str, str]]) -> None:
    english, hindi = line.split(" = ")
    assert clauses[english][0] == hindi


def test_the_headline_is_what_the_grammar_gives_and_opens_the_training_set(
    clauses: dict[str, tuple[str, str]],
) -> None:
    first = generate("translation", size=1, valid=0, test=0)["train"][0]
    assert first["english"] == "I am going home"
    assert clauses["I am going home"] == (first["hindi"], first["alignment"])
    assert first["alignment"] == "0-0 1-4 2-2 2-3 3-1"


@pytest.mark.parametrize(
    ("english", "endings"),
    [
        ("I", ("hoon", "tha", "oonga")),
        ("you", ("ho", "the", "oge")),
        ("he", ("hai", "tha", "ega")),
        ("she", ("hai", "thi", "egi")),
        ("we", ("hain", "the", "enge")),
        ("my sister", ("hai", "thi", "egi")),
        ("our mother", ("hain", "thin", "engi")),
        ("your father", ("hain", "the", "enge")),
        ("three girls", ("hain", "thin", "engi")),
        ("the children", ("hain", "the", "enge")),
    ],
)
def test_the_last_word_agrees_with_the_subject(
    english: str, endings: tuple[str, ...], clauses: dict[str, tuple[str, str]]
) -> None:
    lasts = [
        hindi.split()[-1]
        for source, (hindi, _) in clauses.items()
        if source.startswith(english + " ")
    ]
    assert len(lasts) > 50
    present, past, future = endings
    assert all(last in (present, past) or last.endswith(future) for last in lasts)


def test_links_join_words_that_mean_the_same() -> None:
    pairs = "not:nahin because:kyonki water:paani home:ghar two:do now:abhi he:vah"
    known = dict(pair.split(":") for pair in pairs.split())
    seen = set()
    for row in rows("translation"):
        english, hindi = row["english"].split(), row["hindi"].split()
        links = [[int(place) for place in link.split("-")] for link in row["alignment"].split()]
        for s, word in enumerate(english):
            if word in known:
                seen.add(word)
                assert [hindi[t] for source, t in links if source == s] == [known[word]]
    assert seen == set(known)


def test_long_sentences_are_spread_over_the_whole_range() -> None:
    long = generate("translation", size=2000, valid=0, test=0, longest=40)["train"]
    lengths = Counter((len(row["english"].split()) - 1) // 10 for row in long)
    assert set(lengths) == {0, 1, 2, 3}
    assert all(count > 300 for count in lengths.values())


# Transliteration


DEVANAGARI = """
ghar घर, namaste नमस्ते, aam आम, bhaai भाई, rang रंग, lamba लंबा, bhakt भक्त, paani पानी, kitaab किताब, doodh दूध,
gyaan ज्ञान, karm कर्म, kaksha कक्षा, chhaatr छात्र, achchha अच्छा, kasht कष्ट, varn वर्ण, janm जन्म, aurat औरत
"""


@pytest.mark.parametrize("pair", re.split(r",\s", DEVANAGARI.strip()))
def test_devanagari_by_hand(pair: str) -> None:
    roman, written = pair.split()
    assert devanagari(roman)[0] == written


def test_devanagari_refuses_a_letter_it_does_not_know() -> None:
    told = r"^No letter of 'taxi' begins with 'x'\. Known: k, kh, g, "
    with pytest.raises(DataError, match=told):
        devanagari("taxi")


# Vectors


@pytest.mark.parametrize("task", ["translation", "transliteration"])
def test_every_source_token_has_a_vector_near_its_own_kind(task: str) -> None:
    sample = SAMPLES[task]
    made = dict(vectors(task, size=64))
    texts = [row[sample.inputs[0]] for row in rows(task)]
    assert {
        token
        for text in texts
        for token in (text if sample.tokens == "characters" else text.split())
    } == set(made)
    assert sample.categories is not None
    assert {len(vector) for vector in made.values()} == {64}
    kind: dict[str, str] = {}
    for name, members in sample.categories().items():
        for word in members:
            kind.setdefault(word, name)
    together = Counter(kind.values())
    for word, vector in made.items():
        others = {other: math.dist(vector, there) for other, there in made.items() if other != word}
        if together[kind[word]] > 1:
            assert kind[min(others, key=others.__getitem__)] == kind[word]
