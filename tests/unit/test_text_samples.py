"""Entailment, summarization and dialog, against rules written down a second time by hand."""

import re
from random import Random

import pytest

from sixjars.samples import SAMPLES, Row, dialog, entailment, generate, summarization

TASKS = ("dialog", "summarization")


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: generate(task, size=1500, valid=0, test=0)["train"] for task in TASKS}


def links(row: Row) -> list[list[int]]:
    return [[int(place) for place in link.split("-")] for link in row["alignment"].split()]


@pytest.mark.parametrize("task", ["dialog", "summarization"])
def test_a_copied_word_is_linked_to_itself(task: str, corpora: dict[str, list[Row]]) -> None:
    copied = {
        "dialog": {
            *dialog.WORDS["names"],
            *dialog.WORDS["colours"],
            *sum(dialog.WORDS.table("kept").values(), ()),
        },
        "summarization": set(summarization.WORDS["cities"]),
    }
    sample = SAMPLES[task]
    count = 0
    for row in corpora[task]:
        source, target = row[sample.inputs[0]].split(), row[sample.target].split()
        for t, word in enumerate(target):
            if word in copied[task]:
                count += 1
                assert [source[s] for s, to in links(row) if to == t] == [word]
    assert count > 500


HYPOTHESES = {
    "a boy is running": "a person is moving",
    "an old woman is sleeping": "a person is taking a break",
    "a cat is swimming in the park": "an animal is moving outside",
    "two women are playing football": "two people are playing a game",
    "two women are playing piano": "two people are playing an instrument",
    "a man and two girls are walking": "three people are moving",
    "three dogs are slowly walking": "three animals are moving",
    "a girl is eating mangoes in the kitchen": "a person is eating fruit inside",
}


def test_hypotheses_by_hand() -> None:
    rng, found = Random(1), dict[str, str]()
    for _ in range(150_000):
        row = entailment.clause(rng, 40).row("premise", "hypothesis")
        if row["premise"] in HYPOTHESES:
            found.setdefault(row["premise"], row["hypothesis"])
            if len(found) == len(HYPOTHESES):
                break
    assert found == HYPOTHESES


def headline(document: str) -> str:
    """The headline found a second time, by reading the document with patterns."""
    who = re.search(
        r"(?:began with the work of|wants to thank|all of the honour to) (.+?) (?:from|in|this) ",
        document,
    )
    what = re.search(
        r"\ba ((?:\w+ )?\w+) (?:was|had been) (found|built|saved|sold|repaired)\b", document
    )
    where = re.search(r"(?:all of this happened in|the streets of|the mayor of) (\w+)", document)
    assert who
    assert what
    assert where
    people = re.sub("^an? ", "", who[1])
    pairs = "found:find built:build saved:save sold:sell repaired:repair"
    verb = dict(pair.split(":") for pair in pairs.split())[what[2]]
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
    drawn = (dialog.dialog.draw(rng, 8) for _ in range(100_000))
    assert next(row["response"] for row in drawn if row["utterance"] == utterance) == response


def test_sums_are_right(corpora: dict[str, list[Row]]) -> None:
    value = {name: number for number, name in enumerate(dialog.WORDS["numbers"])}
    checked = 0
    for row in corpora["dialog"]:
        if found := re.search(r"(\w+) (plus|minus) (\w+) is (\w+) \.$", row["response"]):
            one, sign, two, total = found.groups()
            assert value[total] == value[one] + value[two] * (1 if sign == "plus" else -1)
            checked += 1
    assert checked > 50
