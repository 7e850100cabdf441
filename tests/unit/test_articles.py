"""Synthetic articles full of unknown names, against patterns written down a second time."""

import re
from collections import Counter
from random import Random

import pytest

from sixjars.samples import Row, articles, generate

NAME = re.compile(
    "(?:(?:br|kr|tr|st|[bdfgklmnprstvz])[aeiou]){3}(?:[nrsl]|tec|corp|gen|dyne|lux|ville|ford|burg|stad|ton)?"
)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return generate("summarization", kind="articles", size=4000, valid=0, test=0)["train"]


def names_in(text: str) -> list[str]:
    return [word for word in text.split() if NAME.fullmatch(word)]


@pytest.mark.parametrize("longest", [3, 4, 6, 30])
def test_articles_have_three_sentences_or_more(longest: int) -> None:
    rng = Random(0)
    counts = Counter(
        articles.article.draw(rng, longest)["article"].count("\n") + 1 for _ in range(1000)
    )
    assert set(counts) == set(range(3, longest + 1))


def test_summaries_need_names_that_the_article_has_among_others(rows: list[Row]) -> None:
    counts: Counter[int] = Counter()
    for row in rows:
        needed, there = names_in(row["summary"]), names_in(row["article"])
        assert set(needed) < set(there)
        assert len(set(needed)) == len(needed)
        counts[len(needed)] += 1
    assert set(counts) == {1, 2, 3}
    assert min(counts.values()) > 300


def test_almost_every_name_is_seen_once(rows: list[Row]) -> None:
    seen = Counter(name for row in rows for name in set(names_in(row["article"])))
    assert len(seen) > 15_000
    assert sum(count == 1 for count in seen.values()) > 0.98 * len(seen)
    assert max(seen.values()) < 5
    rest = {word for row in rows for word in f"{row['article']} {row['summary']}".split()} - set(
        seen
    )
    assert len(rest) < 250
    assert rest >= {word for words in articles.WORDS.table("words").values() for word in words}


READ = {
    r"(\S+) has agreed to pay \w+ millions for (\S+) \.": r"\1 buys \2",
    r"(\S+) will soon belong to (\S+) , as was said on \w+ \.": r"\2 buys \1",
    r"the owners of (\S+) took an offer from (\S+) \.": r"\2 buys \1",
    r"(\S+) will lead (\S+) from \w+ on \.": r"\1 becomes head of \2",
    r"(\S+) has named (\S+) as its new boss \.": r"\2 becomes head of \1",
    r"after \w+ years at (\S+) , (\S+) has signed with (\S+) \.": r"\2 moves from \1 to \3",
    r"(\S+) has lured (\S+) away from (\S+) \.": r"\2 moves from \3 to \1",
    r"(\S+) loses (\S+) , who starts at (\S+) on \w+ \.": r"\2 moves from \1 to \3",
    r"a new (\w+) in (\S+) was paid for by (\S+) \.": r"\3 opens \1 in \2",
    r"(\S+) was the best of all at the (\w+) contest of (\S+) \.": r"\1 wins \2 prize in \3",
    r"(\S+) found a hidden (\w+) not far from (\S+) \.": r"\1 discovers \2 near \3",
    r"the people of (\S+) may use their new (\w+) from \w+ on \.": r"\1 gets \2",
}


@pytest.mark.parametrize("pattern", READ)
def test_summaries_state_what_the_sentence_reports(pattern: str, rows: list[Row]) -> None:
    count = 0
    for row in rows:
        reports = [
            found for line in row["article"].split("\n") if (found := re.fullmatch(pattern, line))
        ]
        if reports:
            count += 1
            assert [found.expand(READ[pattern]) for found in reports] == [row["summary"]]
    assert count > 50


def test_news_of_two_sentences_come_in_both_orders(rows: list[Row]) -> None:
    orders: Counter[bool] = Counter()
    for row in rows:
        if found := re.search(r"search of (\S+) for", row["article"]):
            chosen = re.search(r"fell on (\S+) after", row["article"])
            assert chosen
            assert row["summary"] == f"{chosen[1]} becomes head of {found[1]}"
            orders[found.start() < chosen.start()] += 1
    assert min(orders[True], orders[False]) > 30
