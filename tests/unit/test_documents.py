"""Synthetic documents, conversations and articles, against rules written a second time."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable
from random import Random

import pytest

from sixjars.samples import Corpus, Row, articles, conversations, documents, generate

SAMPLES = {
    "document_classification": documents.document,
    "conversation": conversations.conversation,
    "summarization/articles": articles.article,
}


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: generate(task, size=4000, valid=0, test=0)["train"] for task in SAMPLES}


def lines(sample: Corpus, row: Row) -> list[list[str]]:
    return [line.split(" ") for line in row[sample.inputs[0]].split("\n")]


# All three


@pytest.mark.parametrize(("task", "fewest"), [("document_classification", 4), ("conversation", 2)])
@pytest.mark.parametrize("more", [0, 3, 20])
def test_every_number_of_segments_up_to_longest_is_common(
    task: str, fewest: int, more: int
) -> None:
    sample, rng, longest = SAMPLES[task], Random(0), fewest + more
    assert sample.shortest == fewest
    counts = Counter(len(lines(sample, sample.draw(rng, longest))) for _ in range(1200))
    assert set(counts) == set(range(fewest, longest + 1))
    assert min(counts.values()) > 0.5 * 1200 / (more + 1)


@pytest.mark.parametrize("task", ["document_classification", "conversation"])
def test_the_vocabulary_is_small(task: str, corpora: dict[str, list[Row]]) -> None:
    used = {word for row in corpora[task] for line in lines(SAMPLES[task], row) for word in line}
    assert 80 <= len(used) <= 110


def test_each_word_of_a_document_is_in_one_list(corpora: dict[str, list[Row]]) -> None:
    lists = (words for table in documents.WORDS.tables.values() for words in table.values())
    listed = [word for words in lists for word in words]
    assert len(set(listed)) == len(listed)
    rows = corpora["document_classification"]
    assert set(listed) == {word for row in rows for word in row["document"].split()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "wanted"), [*((task, 20_000) for task in SAMPLES), ("conversation", 100_000)]
)
def test_there_are_more_sources_than_anybody_asks_for(task: str, wanted: int) -> None:
    sample, rng = SAMPLES[task], Random(0)
    assert sample.longest is not None
    drawn = {sample.draw(rng, sample.longest)[sample.inputs[0]] for _ in range(wanted * 5 // 4)}
    assert len(drawn) >= wanted


# Documents

TOPIC_OF = {
    word: topic for topic, words in documents.WORDS.table("topics").items() for word in words
}


def masked(row: Row) -> list[list[str]]:
    there, place = map(int, row["rationale"].split())
    sentences = lines(documents.document, row)
    sentences[there][place] = "_"
    return sentences


@pytest.fixture(scope="module")
def decided(corpora: dict[str, list[Row]]) -> list[Row]:
    return [row for row in corpora["document_classification"] if row["rationale"]]


def test_some_documents_are_about_nothing(corpora: dict[str, list[Row]]) -> None:
    without = [row for row in corpora["document_classification"] if not row["rationale"]]
    assert abs(len(without) / 4000 - 1 / 6) < 0.03
    for row in without:
        assert row["topic"] == documents.NOTHING
        assert TOPIC_OF.keys().isdisjoint(row["document"].split())


def test_the_rationale_is_the_one_topic_word(decided: list[Row]) -> None:
    for row in decided:
        sentences = lines(documents.document, row)
        assert all(4 <= len(words) <= 9 for words in sentences)
        found = [
            (s, w)
            for s, words in enumerate(sentences)
            for w, word in enumerate(words)
            if word in TOPIC_OF
        ]
        assert [f"{s} {w}" for s, w in found] == [row["rationale"]]
        assert TOPIC_OF[sentences[found[0][0]][found[0][1]]] == row["topic"]


def test_topic_words_are_at_every_place_and_as_frequent_as_each_other(decided: list[Row]) -> None:
    rows = decided
    places = [tuple(map(int, row["rationale"].split())) for row in rows]
    assert {sentence for sentence, _ in places} == set(range(10))
    assert {word for _, word in places} == set(range(9))
    every = (word for row in rows for word in row["document"].split())
    used = Counter(word for word in every if word in TOPIC_OF)
    assert set(used) == set(TOPIC_OF)
    assert len(TOPIC_OF) == 25
    assert abs(min(used.values()) - 133) < 50
    assert abs(max(used.values()) - 133) < 50


def test_the_rest_is_drawn_before_the_topic() -> None:
    """The same draws with another topic at the end: only topic and topic word change."""
    seeds = [seed for seed in range(350) if documents.document.draw(Random(seed), 10)["rationale"]]
    originals = [documents.document.draw(Random(seed), 10) for seed in seeds]
    turned = dict(reversed(documents.WORDS.table("topics").items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(documents.WORDS.tables, "topics", turned)
        others = [documents.document.draw(Random(seed), 10) for seed in seeds]
    pairs = list(zip(originals, others, strict=True))
    assert sum(one["topic"] != other["topic"] for one, other in pairs) > 200
    for one, other in pairs:
        assert one["rationale"] == other["rationale"]
        assert masked(one) == masked(other)


FEATURES: dict[str, Callable[[Row], list[str]]] = {
    "words": lambda row: [word for line in masked(row) for word in line],
    "pairs of words": lambda row: [
        " ".join(line[at : at + 2]) for line in masked(row) for at in range(len(line))
    ],
    "places and lengths": lambda row: [
        row["rationale"],
        *(f"{at}:{len(line)}" for at, line in enumerate(masked(row))),
    ],
}


def accuracy(features: Callable[[Row], list[str]], rows: list[Row]) -> float:
    """How often naive Bayes, trained on three quarters, is right on the rest."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    train, test = rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]
    for row in train:
        seen[row["topic"]].update(features(row))
    kinds = len(set().union(*seen.values()))
    totals = {topic: counts.total() + kinds for topic, counts in seen.items()}
    right = 0
    for row in test:
        found = features(row)
        scores = {
            t: sum(math.log((seen[t][f] + 1) / totals[t]) for f in found)
            for t in documents.WORDS.table("topics")
        }
        right += max(scores, key=scores.__getitem__) == row["topic"]
    return right / len(test)


@pytest.mark.parametrize("features", FEATURES)
def test_without_its_topic_word_a_document_does_not_predict_its_topic(
    features: str, decided: list[Row]
) -> None:
    spread = math.sqrt(0.2 * 0.8 / (len(decided) / 4))
    assert abs(accuracy(FEATURES[features], decided) - 0.2) < 4 * spread


def test_with_its_topic_word_the_same_classifier_finds_the_topic(decided: list[Row]) -> None:
    assert accuracy(lambda row: row["document"].split(), decided) > 0.9


# Conversations

STATED = {
    r"i live in (\w+)": r"i live",
    r"my (\w+) lives in (\w+)": r"\1 lives",
    r"my (\w+) is called (\w+)": r"\1 called",
    r"i have (\w+) (\w+) (\w+)": r"\3 had",
}
ASKED = {
    r"where do (i|you) live \?": "i live",
    r"where does (my|your) (\w+) live \?": r"\2 lives",
    r"what is (my|your) (\w+) called \?": r"\2 called",
    r"how many (\w+) do (i|you) have \?": r"\1 had",
    r"what colour are (my|your) (\w+) \?": r"\2 had",
}


def facts_of(turns: list[str]) -> dict[tuple[int, str], str]:
    """Everything stated, by whether its turn is one's own, and what it is about."""
    facts: dict[tuple[int, str], str] = {}
    for at, turn in enumerate(turns):
        for clause in turn.split(" . ")[0].removesuffix(" .").split(" and "):
            for pattern, about in STATED.items():
                if found := re.fullmatch(pattern, clause):
                    key = ((len(turns) - 1 - at) % 2, found.expand(about))
                    assert key not in facts
                    facts[key] = clause
    return facts


def answered(turns: list[str]) -> str:
    """The answer found a second time, with patterns."""
    question = turns[-1].split(" . ")[-1]
    ((pattern, found),) = [(p, match) for p in ASKED if (match := re.fullmatch(p, question))]
    mine = {"i", "my"} & set(question.split()) != set()
    fact = facts_of(turns)[0 if mine else 1, found.expand(ASKED[pattern])]
    if "how many" in question:
        fact = re.sub(r"i have (\w+) \w+ (\w+)", r"of \2 i have \1", fact)
    if "colour" in question:
        fact = re.sub(r"i have \w+ (\w+) (\w+)", r"my \2 are \1", fact)
    if mine:
        fact = re.sub(r"\bmy\b", "your", re.sub(r"\bi\b", "you", fact))
    return f"{fact} ."


@pytest.mark.parametrize(
    ("turns", "response"),
    [
        ("i live in rome .\ni live in oslo .\nwhere do i live ?", "you live in rome ."),
        ("i live in rome .\ni live in oslo .\nwhere do you live ?", "i live in oslo ."),
        (
            "i have two red cups and i have six blue pens .\nwhat colour are your pens ?",
            "my pens are blue .",
        ),
        (
            "my cat is called rex .\noh , really ?\nwhat is my cat called ?",
            "your cat is called rex .",
        ),
        (
            "i have two red cups .\ni have six red pens . how many cups do you have ?",
            "of cups i have two .",
        ),
    ],
)
def test_the_second_way_of_answering_by_hand(turns: str, response: str) -> None:
    assert answered(turns.split("\n")) == response


def test_the_answer_follows_from_the_conversation(corpora: dict[str, list[Row]]) -> None:
    for row in corpora["conversation"]:
        assert row["response"] == answered(row["turns"].split("\n"))


VALUES = [
    tuple(line.split())
    for kind in ("living", "naming", "having")
    for line in conversations.WORDS.table(kind)["values"]
]


def test_there_is_always_another_fact_of_the_kind(corpora: dict[str, list[Row]]) -> None:
    twice = lately = 0
    kinds: Counter[str] = Counter()
    for row in corpora["conversation"]:
        turns = row["turns"].split("\n")
        answer = set(row["response"].split())
        values: tuple[str, ...] = ()
        for values in VALUES:
            if answer & set(values):
                break
        named = [word for turn in turns for word in turn.split() if word in values]
        assert len(named) == len(set(named)) >= 2
        kinds[values[0]] += 1
        facts = facts_of(turns)
        twice += any((1 - whose, what) in facts for whose, what in facts)
        lately += not answer & set(values) & set(turns[-2].split())
    assert len(kinds) == 4
    assert min(kinds.values()) > 400
    # both persons state facts about the same subject, so that the speaker matters
    assert twice > 1000
    assert lately > 2000  # the answer lies further back than the turn before the last
