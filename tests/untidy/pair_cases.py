"""Untidy files with two texts and a label in each row."""

import csv

from .files import (
    ANIMALS,
    PLACES,
    Case,
    N,
    array,
    article,
    date_of,
    english,
    headed,
    headline,
    lines,
    rows,
    sentiment,
    tabs,
    written,
)

PAIR = "sentence_pair"
RELATIONS = "entailment neutral contradiction".split()


def claim(n: int) -> str:
    """A second sentence."""
    return f"a {ANIMALS[(n + n % 3) % 8]} was seen in some {PLACES[n // 8 % 4]} {n // 3}"


def relation(n: int) -> str:
    """The label of both."""
    return RELATIONS[n % 3]


PAIRED = rows(N, english, claim, relation)


def columns(first: str | int, second: str | int, label: str | int) -> dict[str, str | int]:
    """What should be chosen."""
    return {"sentence1": first, "sentence2": second, "label": label}


PAIRS_OF_SENTENCES = [
    Case(
        "premise and hypothesis",
        written(headed("premise,hypothesis,label", PAIRED)),
        PAIR,
        columns("premise", "hypothesis", "label"),
    ),
    Case(
        "columns of SICK",
        tabs(
            headed(
                "pair_ID,sentence_A,sentence_B,relatedness_score,entailment_judgment",
                rows(N, lambda n: n + 1, english, claim, lambda n: 1 + n % 9 * 0.5, relation),
            )
        ),
        PAIR,
        columns("sentence_A", "sentence_B", "entailment_judgment"),
        file="data.tsv",
    ),
    Case(
        "columns of SNLI",
        lines(
            "gold_label sentence1 sentence2 pairID captionID",
            rows(N, relation, english, claim, lambda n: f"{n}.jpg#1r1e", lambda n: f"{n}.jpg#1"),
        ),
        PAIR,
        columns("sentence1", "sentence2", "gold_label"),
        file="data.jsonl",
    ),
    Case(
        "columns of Quora",
        written(
            headed(
                "id,qid1,qid2,question1,question2,is_duplicate",
                rows(
                    N,
                    lambda n: n,
                    lambda n: 2 * n,
                    lambda n: 2 * n + 1,
                    english,
                    claim,
                    lambda n: n % 2,
                ),
            )
        ),
        PAIR,
        columns("question1", "question2", "is_duplicate"),
    ),
    Case(
        "text_a and text_b, the label first",
        written(headed("label,text_a,text_b", rows(N, relation, english, claim))),
        PAIR,
        columns("text_a", "text_b", "label"),
    ),
    Case("pairs without a header", tabs(PAIRED), PAIR, columns(1, 2, 3), file="data.tsv"),
    Case(
        "pairs without a header, the label first, an index",
        written(rows(N, lambda n: n, relation, english, claim)),
        PAIR,
        columns(3, 4, 2),
    ),
    Case(
        "pairs with strange names",
        written(headed("foo,bar,baz", PAIRED), ";"),
        PAIR,
        columns("foo", "bar", "baz"),
        keys={"delimiter": ";"},
        says=("the other way round: --column sentence1=bar --column sentence2=foo",),
    ),
    Case(
        "a claim and a longer text, quoted",
        written(
            headed("headline,body,stance", rows(N, headline, article, sentiment)),
            quoting=csv.QUOTE_ALL,
        ),
        PAIR,
        columns("headline", "body", "stance"),
    ),
    Case(
        "the second one named",
        written(headed("headline,body,stance", rows(N, headline, article, sentiment))),
        PAIR,
        columns("body", "headline", "stance"),
        options=("--column", "sentence1=body", "--column", "sentence2=headline"),
    ),
    Case(
        "three texts and a label",
        written(headed("one,two,three,label", rows(N, english, claim, article, relation))),
        PAIR,
        asks=("which column is the sentence1", "'one', 'two' or 'three'", "--column sentence1=one"),
    ),
    Case(
        "pairs in a JSON list",
        array("premise hypothesis label date", rows(N, english, claim, relation, date_of)),
        PAIR,
        columns("premise", "hypothesis", "label"),
        file="data.json",
    ),
    Case(
        "one text and a label for a pair",
        written(headed("text,label", rows(N, english, relation))),
        PAIR,
        asks=("none of its columns",),
    ),
    Case(
        "pairs of one class",
        written(headed("premise,hypothesis,label", rows(N, english, claim, "entailment"))),
        PAIR,
        asks=("always 'entailment'", "two classes"),
    ),
    Case(
        "text_classification, as people call it",
        written(headed("text,label", rows(N, english, sentiment))),
        "text_classification",
        {"source": "text", "label": "label"},
    ),
]
