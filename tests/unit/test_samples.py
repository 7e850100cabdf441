"""The made-up corpora: what they promise, against rules written down a second time by hand."""

import json
import math
import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import combinations
from random import Random
from statistics import fmean, stdev

import pytest

from sixjars.data import samples
from sixjars.errors import DataError
from sixjars.samples import (
    SAMPLES,
    Row,
    Sample,
    dialog,
    entailment,
    language_model,
    make,
    translation,
    vectors,
)
from sixjars.samples.language_model import GRAMMAR, Grammar, Rules
from sixjars.samples.transliteration import devanagari

PAIRED = sorted(task for task, sample in SAMPLES.items() if sample.source)
PICTURED = sorted(task for task, sample in SAMPLES.items() if sample.media)
ALIGNED = [task for task in PAIRED if SAMPLES[task].alignment]
WORDED = [task for task, sample in SAMPLES.items() if sample.categories]
NAMED = "summarization/articles"
"""The one corpus with words that no list has: its names."""


def tokens(sample: Sample, text: str) -> list[str]:
    if sample.tokens in ("sentences", "turns"):
        return text.split("\n")
    return list(text) if sample.tokens == "characters" else text.replace("?", " ?").split()


def read(sample: Sample, line: str) -> list[str]:
    return line.split() if sample.tokens in ("sentences", "turns") else tokens(sample, line)


def links(row: Row) -> list[tuple[int, int]]:
    return [(int(source), int(target)) for source, target in re.findall(r"(\d+)-(\d+)", row["alignment"])]


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: make(task, size=1500, valid=0, test=0)["train"] for task in SAMPLES}


# Every corpus


def test_the_table_is_keyed_by_task() -> None:
    assert all(
        sample.task == task.split("/")[0] and sample.description.endswith(".") for task, sample in SAMPLES.items()
    )


@pytest.mark.parametrize("task", SAMPLES)
def test_rows_have_the_declared_columns_and_single_spaces(task: str, corpora: dict[str, list[Row]]) -> None:
    sample = SAMPLES[task]
    named = (sample.source, sample.media, sample.question, sample.target, sample.alignment, sample.boxes, sample.keys)
    columns = [column for column in named if column]
    assert list(sample.columns) == columns
    for row in corpora[task]:
        assert list(row) == columns
        for column, text in row.items():
            assert text or column in (sample.boxes, sample.keys)
            assert text == "\n".join(" ".join(line.split()) for line in text.split("\n"))
            assert text.replace("I", "i") == text.lower()


@pytest.mark.parametrize("task", SAMPLES)
def test_parts_have_the_sizes_asked_for(task: str) -> None:
    parts = make(task, size=60, valid=20, test=10)
    assert {name: len(rows) for name, rows in parts.items()} == {"train": 60, "valid": 20, "test": 10}


@pytest.mark.parametrize("task", PAIRED)
def test_no_source_is_in_two_parts_nor_twice_in_one(task: str) -> None:
    column = str(SAMPLES[task].source)
    parts = [[row[column] for row in rows] for rows in _both_seeds(task)]
    assert all(not set(one) & set(other) for one, other in combinations(parts, 2))
    once = [row[column] for row in make(task, size=800, valid=0, test=0)["train"]]
    assert len(set(once)) == 800


@pytest.mark.parametrize("task", PICTURED)
def test_no_picture_or_film_is_in_two_parts_nor_a_row_twice_in_one(task: str) -> None:
    sample = SAMPLES[task]
    names = [[row[str(sample.media)] for row in rows] for rows in _both_seeds(task)]
    assert all(not set(one) & set(other) for one, other in combinations(names, 2))
    once = [tuple(row[column] for column in sample.inputs) for row in make(task, size=800, valid=0, test=0)["train"]]
    assert len(set(once)) == 800


def _both_seeds(task: str) -> list[list[Row]]:
    made = [make(task, size=800, valid=100, test=100, seed=seed) for seed in (0, 1)]
    return [made[0][name] + made[1][name] for name in ("train", "valid", "test")]


@pytest.mark.parametrize("task", SAMPLES)
def test_a_larger_training_part_leaves_the_rest_as_it_was(task: str) -> None:
    few, many = (make(task, size=size, valid=10, test=10) for size in (20, 50))
    assert few["valid"] == many["valid"]
    assert few["test"] == many["test"]
    assert few["train"] == many["train"][:20]


def test_another_seed_is_another_corpus() -> None:
    for task in SAMPLES:
        one, other = (make(task, size=50, valid=5, test=5, seed=seed)["test"] for seed in (0, 1))
        assert one != other


def test_every_process_makes_the_same_corpus_without_torch() -> None:
    code = (
        "import sys, json; from sixjars.samples import *; assert not {'torch', 'PIL', 'av'} & set(sys.modules);"
        f"made = [make(t, size=40, valid=5, test=5, seed=3) for t in SAMPLES], [vectors(t, size=4) for t in {WORDED}];"
        "print(json.dumps(made))"
    )
    here = [make(t, size=40, valid=5, test=5, seed=3) for t in SAMPLES], [vectors(t, size=4) for t in WORDED]
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        said = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout
        assert json.loads(said) == json.loads(json.dumps(here))


@pytest.mark.parametrize("task", PAIRED)
def test_one_source_has_one_target(task: str) -> None:
    sample, rng = SAMPLES[task], Random(5)
    assert sample.source is not None
    assert sample.longest is not None
    seen: dict[str, Row] = {}
    for _ in range(3000):
        row = sample.draw(rng, sample.longest)
        assert seen.setdefault(row[sample.source], row) == row


@pytest.mark.parametrize("task", PAIRED)
@pytest.mark.parametrize("more", [0, 5, 40])
def test_inputs_keep_to_longest_and_come_near_it(task: str, more: int) -> None:
    sample = SAMPLES[task]
    longest = sample.shortest + more
    rng = Random(0)
    lengths = [len(tokens(sample, sample.draw(rng, longest)[str(sample.source)])) for _ in range(400)]
    assert max(lengths) <= longest
    assert max(lengths) >= longest - 12


@pytest.mark.parametrize("task", ALIGNED)
def test_alignments_are_in_range_and_sorted_and_cover_the_target(task: str, corpora: dict[str, list[Row]]) -> None:
    sample = SAMPLES[task]
    answers_own = "yes no , . ? i do not am a lot at all of course will that nice to meet you how is".split()
    for row in corpora[task]:
        source, target = tokens(sample, row[str(sample.source)]), tokens(sample, row[sample.target])
        pairs = links(row)
        assert pairs == sorted(set(pairs))
        assert all(s < len(source) and t < len(target) for s, t in pairs)
        free = {target[t] for t in range(len(target))} - {target[t] for _, t in pairs}
        assert free <= (set(answers_own) if task == "dialog" else set())


@pytest.mark.parametrize("task", ["dialog", "summarization"])
def test_a_copied_word_is_linked_to_itself(task: str, corpora: dict[str, list[Row]]) -> None:
    copied = {
        "dialog": set(dialog.NAMES + dialog.COLOURS + dialog.THINGS),
        "summarization": set(samples.summarization.CITIES),
    }
    sample = SAMPLES[task]
    count = 0
    for row in corpora[task]:
        source, target = row[str(sample.source)].split(), row[sample.target].split()
        for t, word in enumerate(target):
            if word in copied[task]:
                count += 1
                assert [source[s] for s, to in links(row) if to == t] == [word]
    assert count > 500


def test_a_hundred_thousand_sentences_and_fifty_thousand_words() -> None:
    for task, wanted in (("translation", 100_000), ("transliteration", 50_000)):
        sample, rng = SAMPLES[task], Random(0)
        assert sample.longest is not None
        distinct: set[str] = set()
        for _ in range(3 * wanted):
            distinct.add(sample.draw(rng, sample.longest)[str(sample.source)])
            if len(distinct) == wanted:
                break
        assert len(distinct) == wanted


# Vectors


@pytest.mark.parametrize("task", WORDED)
def test_every_source_token_has_a_vector_near_its_own_kind(task: str, corpora: dict[str, list[Row]]) -> None:
    sample = SAMPLES[task]
    made = dict(vectors(task, size=64))
    column = sample.source or sample.question or sample.target
    words = (word for row in corpora[task] for line in row[column].split("\n") for word in read(sample, line))
    if task != NAMED:
        assert set(words) <= set(made)
    assert {len(vector) for vector in made.values()} == {64}
    kind: dict[str, str] = {}
    for name, members in sample.categories.items():
        for word in members:
            kind.setdefault(word, name)
    together = Counter(kind.values())
    for word, vector in made.items():
        others = {other: math.dist(vector, there) for other, there in made.items() if other != word}
        if together[kind[word]] > 1:
            assert kind[min(others, key=others.__getitem__)] == kind[word]


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
    drawn = (translation.clause(rng, 40).texts() for _ in range(60_000))
    return {english: (hindi, alignment) for english, hindi, alignment in drawn}


@pytest.mark.parametrize("line", HINDI.strip().splitlines())
def test_hindi_by_hand(line: str, clauses: dict[str, tuple[str, str]]) -> None:
    english, hindi = line.split(" = ")
    assert clauses[english][0] == hindi


def test_the_headline_is_what_the_grammar_says_and_opens_the_training_part(
    clauses: dict[str, tuple[str, str]],
) -> None:
    first = make("translation", size=1, valid=0, test=0)["train"][0]
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
    lasts = [hindi.split()[-1] for source, (hindi, _) in clauses.items() if source.startswith(english + " ")]
    assert len(lasts) > 50
    present, past, future = endings
    assert all(last in (present, past) or last.endswith(future) for last in lasts)


def test_links_join_words_that_mean_the_same(corpora: dict[str, list[Row]]) -> None:
    known = {
        "not": "nahin",
        "because": "kyonki",
        "water": "paani",
        "home": "ghar",
        "two": "do",
        "now": "abhi",
        "he": "vah",
    }
    seen = set()
    for row in corpora["translation"]:
        english, hindi = row["english"].split(), row["hindi"].split()
        for s, word in enumerate(english):
            if word in known:
                seen.add(word)
                assert [hindi[t] for source, t in links(row) if source == s] == [known[word]]
    assert seen == set(known)


def test_long_sentences_are_spread_over_the_whole_range() -> None:
    rows = make("translation", size=2000, valid=0, test=0, longest=40)["train"]
    lengths = Counter((len(row["english"].split()) - 1) // 10 for row in rows)
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
    with pytest.raises(DataError, match=r"^No letter of 'taxi' begins with 'x'\. Known: k, kh, g, "):
        devanagari("taxi")


# Language model


def enumerated(rules: Rules, start: str) -> dict[str, float]:
    """Every sentence of a grammar without recursion, by rewriting the leftmost symbol."""
    found: dict[str, float] = {}
    open_: list[tuple[float, tuple[str, ...], tuple[str, ...]]] = [(1.0, (), (start,))]
    while open_:
        share, done, rest = open_.pop()
        if not rest:
            found[" ".join(done)] = found.get(" ".join(done), 0.0) + share
        elif rest[0] not in rules:
            open_.append((share, (*done, rest[0]), rest[1:]))
        else:
            open_ += [(share * p, done, (*parts, *rest[1:])) for p, parts in rules[rest[0]]]
    return found


def truncated(depth: int, words: int) -> Rules:
    """The true grammar with at most so many relative clauses inside one another, and words of each kind.

    `X@2` is symbol X with two levels left; a level is spent by `that` and by `and`.
    """
    rules: dict[str, tuple[tuple[float, tuple[str, ...]], ...]] = {}
    for symbol, every in GRAMMAR.rules.items():
        lexical = all(part not in GRAMMAR.rules for _, parts in every for part in parts)
        for level in range(depth + 1):
            kept = [choice for choice in every if level or not {"that", "and"} & set(choice[1])]
            kept = kept[:words] if lexical else kept
            whole = sum(p for p, _ in kept)
            rules[f"{symbol}@{level}"] = tuple((p / whole, _lowered(parts, level)) for p, parts in kept)
    return rules


def _lowered(parts: tuple[str, ...], level: int) -> tuple[str, ...]:
    below = level - bool({"that", "and"} & set(parts))
    return tuple(f"{part}@{below}" if part in GRAMMAR.rules else part for part in parts)


@pytest.mark.parametrize(("depth", "words", "start"), [(1, 1, "CLAUSE"), (0, 3, "CLAUSE"), (1, 2, "NP_many")])
def test_entropy_length_and_probabilities_equal_brute_force(depth: int, words: int, start: str) -> None:
    rules, start = truncated(depth, words), f"{start}@{depth}"
    found, grammar = enumerated(rules, start), Grammar(rules, start)
    assert len(found) > 20
    assert sum(found.values()) == pytest.approx(1.0)
    assert grammar.entropy() == pytest.approx(-sum(p * math.log(p) for p in found.values()))
    assert grammar.mean_tokens() == pytest.approx(sum(p * (len(s.split()) + 1) for s, p in found.items()))
    for sentence, share in list(found.items())[:500]:
        assert grammar.log_probability(sentence) == pytest.approx(math.log(share))


def test_the_whole_grammar_is_the_limit_of_the_truncated_ones() -> None:
    gaps = [abs(Grammar(truncated(depth, 99), f"S@{depth}").entropy() - GRAMMAR.entropy()) for depth in (0, 2, 4, 16)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1
    assert gaps[-1] < 1e-6


def test_true_perplexity_is_the_mean_of_a_large_sample() -> None:
    texts = [row["text"] for row in make("language_model", size=15_000, valid=0, test=0)["train"]]
    surprises = [-language_model.log_probability(text) for text in texts]
    lengths = [len(text.split()) + 1 for text in texts]
    rate = math.log(language_model.true_perplexity())
    gaps = [surprise - rate * length for surprise, length in zip(surprises, lengths, strict=True)]
    assert abs(fmean(gaps)) < 4 * stdev(gaps) / math.sqrt(len(gaps))
    assert math.exp(sum(surprises) / sum(lengths)) == pytest.approx(language_model.true_perplexity(), rel=0.01)


def test_agreement_at_a_distance() -> None:
    assert language_model.log_probability("the dogs that the boy sees run") > -30
    assert language_model.log_probability("the dogs that the boy sees runs") == -math.inf
    assert language_model.log_probability("the dogs that the boy") == -math.inf
    assert language_model.log_probability("") == -math.inf


# Entailment, summarization, dialog


@pytest.mark.parametrize(
    ("premise", "hypothesis"),
    [
        ("a boy is running", "a person is moving"),
        ("an old woman is sleeping", "a person is taking a break"),
        ("a cat is swimming in the park", "an animal is moving outside"),
        ("two women are playing football", "two people are playing a game"),
        ("two women are playing piano", "two people are playing an instrument"),
        ("a man and two girls are walking", "three people are moving"),
        ("three dogs are slowly walking", "three animals are moving"),
        ("a girl is eating mangoes in the kitchen", "a person is eating fruit inside"),
    ],
)
def test_hypotheses_by_hand(premise: str, hypothesis: str) -> None:
    rng = Random(1)
    drawn = (entailment.clause(rng, 40).texts() for _ in range(150_000))
    assert next(seen for said, seen, _ in drawn if said == premise) == hypothesis


def headline(document: str) -> str:
    """The headline found a second time, by reading the document with patterns."""
    who = re.search(r"(?:began with the work of|wants to thank|all of the honour to) (.+?) (?:from|in|this) ", document)
    what = re.search(r"\ba ((?:\w+ )?\w+) (?:was|had been) (found|built|saved|sold|repaired)\b", document)
    where = re.search(r"(?:all of this happened in|the streets of|the mayor of) (\w+)", document)
    assert who
    assert what
    assert where
    people = re.sub("^an? ", "", who[1])
    verb = {"found": "find", "built": "build", "saved": "save", "sold": "sell", "repaired": "repair"}[what[2]]
    return f"{people} {verb}{'' if people.startswith(('two', 'three')) else 's'} {what[1]} in {where[1]}"


def test_headlines_follow_from_their_documents(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["summarization"]:
        assert row["summary"] == headline(row["document"])
        assert 4 <= len(row["summary"].split()) <= 8
        assert 3 <= row["document"].split().count(".") <= 5
        assert 25 <= len(row["document"].split()) <= 60
    facts = [[links(row)[0][1], links(row)[-1][1]] for row in corpora["summarization"]]
    assert len({tuple(fact) for fact in facts}) > 4  # the facts stand in many orders


@pytest.mark.parametrize(
    ("utterance", "response"),
    [
        ("do you like green apples ?", "yes , i like green apples a lot ."),
        ("do you like snakes ?", "no , i do not like snakes at all ."),
        ("where is the red book ?", "the red book is on the shelf ."),
        ("what is three plus four ?", "three plus four is seven ."),
        ("what is nine minus four ?", "nine minus four is five ."),
        ("hello , my name is maya .", "nice to meet you , maya ."),
        ("i lost my blue hat .", "i am sorry that you lost your blue hat ."),
        ("please say red tom backwards .", "tom red ."),
    ],
)
def test_responses_by_hand(utterance: str, response: str) -> None:
    rng = Random(2)
    drawn = (dialog.draw(rng, 8) for _ in range(100_000))
    assert next(row["response"] for row in drawn if row["utterance"] == utterance) == response


def test_sums_are_right(corpora: dict[str, list[Row]]) -> None:
    value = {name: number for number, name in enumerate(dialog.NUMBERS)}
    checked = 0
    for row in corpora["dialog"]:
        if found := re.search(r"(\w+) (plus|minus) (\w+) is (\w+) \.$", row["response"]):
            one, sign, two, total = found.groups()
            assert value[total] == value[one] + value[two] * (1 if sign == "plus" else -1)
            checked += 1
    assert checked > 50


# What is refused


def test_an_unknown_task_is_named_with_the_nearest() -> None:
    for ask in (lambda: make("translaton", size=1, valid=1, test=1), lambda: vectors("translaton", size=4)):
        with pytest.raises(
            DataError, match=r"^sample 'translaton' is unknown\. Did you mean 'translation'\? Known: conversation, "
        ):
            ask()


def test_a_negative_number_of_rows_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"^The valid part of the dialog sample must have 0 rows or more, but -1 are asked"
    ):
        make("dialog", size=1, valid=-1, test=1)


def test_too_short_a_limit_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"^'longest' of the transliteration sample must be 4 characters or more, but is 3\.$"
    ):
        make("transliteration", size=1, valid=1, test=1, longest=3)


def test_a_language_model_takes_no_limit() -> None:
    with pytest.raises(
        DataError, match=r"^The language_model sample takes no 'longest' \(got 9\): its true .* Remove it\.$"
    ):
        make("language_model", size=1, valid=1, test=1, longest=9)


@pytest.mark.parametrize("task", PICTURED)
def test_pictures_and_films_take_no_limit(task: str) -> None:
    reason = f"{'pictures' if SAMPLES[task].media == 'image' else 'films'} have no length in words"
    with pytest.raises(DataError, match=rf"^The {task} sample takes no 'longest' \(got 9\): {reason}\. Remove it\.$"):
        make(task, size=1, valid=1, test=1, longest=9)


def test_where_no_words_are_read_there_are_no_vectors() -> None:
    wordless = {task.split("/")[0] for task in SAMPLES if task not in WORDED}
    assert wordless == {"image_captioning", "pointing", "video_captioning", "video_classification"}
    with pytest.raises(
        DataError,
        match=r"^The video_captioning sample has no word vectors, for it reads no words\. Remove `vectors: sam",
    ):
        vectors("video_captioning", size=4)


def test_more_pictures_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [f"red-circle-{x}-20-16.png" for x in range(20, 40)]
    drawn = replace(
        SAMPLES["image_captioning"], draw=lambda rng, _: {"image": rng.choice(few), "caption": "", "boxes": ""}
    )
    monkeypatch.setitem(SAMPLES, "image_captioning", drawn)
    with pytest.raises(
        DataError,
        match=r"^The test part of the image_captioning sample has no more than \d different rows, "
        r"but 20 are asked for\. Ask for fewer\.$",
    ):
        make("image_captioning", size=0, valid=0, test=20)


def test_more_rows_than_there_are_is_refused() -> None:
    words = r"^The train part of the entailment sample has no more than \d+ different rows with at most 4 words, "
    with pytest.raises(
        DataError, match=words + r"but 5000 are asked for\. Ask for fewer, or for a greater 'longest'\.$"
    ):
        make("entailment", size=5000, valid=0, test=0, longest=4)


def test_an_empty_vector_is_refused() -> None:
    with pytest.raises(DataError, match=r"^A word vector must have 1 number or more, but 0 are asked for\.$"):
        vectors("dialog", size=0)
