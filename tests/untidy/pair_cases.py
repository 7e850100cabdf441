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
    headline,
    lines,
    pair,
    rows,
    sentiment,
    table,
    tabs,
    written,
)

RELATIONS = "entailment neutral contradiction".split()


def claim(n: int) -> str:
    """A second sentence."""
    return f"a {ANIMALS[(n + n % 3) % 8]} was seen in some {PLACES[n // 8 % 4]} {n // 3}"


def relation(n: int) -> str:
    """The label of both."""
    return RELATIONS[n % 3]


PAIRED = rows(N, english, claim, relation)
PAIRS_OF_SENTENCES = [
    pair(
        "premise and hypothesis",
        table("premise,hypothesis,label", PAIRED),
        "premise,hypothesis,label",
    ),
    pair(
        "columns of SICK",
        table(
            "pair_ID,sentence_A,sentence_B,relatedness_score,entailment_judgment",
            rows(N, lambda n: n + 1, english, claim, lambda n: 1 + n % 9 * 0.5, relation),
            "\t",
        ),
        "sentence_A,sentence_B,entailment_judgment",
        file="data.tsv",
    ),
    pair(
        "columns of SNLI",
        lines(
            "gold_label sentence1 sentence2 pairID captionID",
            rows(N, relation, english, claim, lambda n: f"{n}.jpg#1r1e", lambda n: f"{n}.jpg#1"),
        ),
        "sentence1,sentence2,gold_label",
        file="data.jsonl",
    ),
    pair(
        "columns of Quora",
        table(
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
        ),
        "question1,question2,is_duplicate",
    ),
    pair(
        "text_a and text_b, the label first",
        table("label,text_a,text_b", rows(N, relation, english, claim)),
        "text_a,text_b,label",
    ),
    pair("pairs without a header", tabs(PAIRED), "1,2,3", file="data.tsv"),
    pair(
        "pairs without a header, the label first, an index",
        written(rows(N, lambda n: n, relation, english, claim)),
        "3,4,2",
    ),
    pair(
        "pairs with strange names",
        table("foo,bar,baz", PAIRED, ";"),
        "foo,bar,baz",
        keys={"delimiter": ";"},
        says=("the other way round: --column sentence1=bar --column sentence2=foo",),
    ),
    pair(
        "a claim and a longer text, quoted",
        table("headline,body,stance", rows(N, headline, article, sentiment), quoting=csv.QUOTE_ALL),
        "headline,body,stance",
    ),
    pair(
        "the second one named",
        table("headline,body,stance", rows(N, headline, article, sentiment)),
        "body,headline,stance",
        options=("--column", "sentence1=body", "--column", "sentence2=headline"),
    ),
    pair(
        "three texts and a label",
        table("one,two,three,label", rows(N, english, claim, article, relation)),
        asks=("which column is the sentence1", "'one', 'two' or 'three'", "--column sentence1=one"),
    ),
    pair(
        "pairs in a JSON list",
        array("premise hypothesis label date", rows(N, english, claim, relation, date_of)),
        "premise,hypothesis,label",
        file="data.json",
    ),
    pair(
        "one text and a label for a pair",
        table("text,label", rows(N, english, relation)),
        asks=("none of its columns",),
    ),
    pair(
        "pairs of one class",
        table("premise,hypothesis,label", rows(N, english, claim, "entailment")),
        asks=("always 'entailment'", "two classes"),
    ),
    Case(
        "text_classification, as people call it",
        table("text,label", rows(N, english, sentiment)),
        "text_classification",
        ("text", "label"),
    ),
]
