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
    rows,
    sentiment,
    table,
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

PAIRS_OF_SENTENCES = [
    Case(
        "premise and hypothesis",
        table("premise,hypothesis,label", PAIRED),
        PAIR,
        ("premise", "hypothesis", "label"),
    ),
    Case(
        "columns of SICK",
        table(
            "pair_ID,sentence_A,sentence_B,relatedness_score,entailment_judgment",
            rows(N, lambda n: n + 1, english, claim, lambda n: 1 + n % 9 * 0.5, relation),
            "\t",
        ),
        PAIR,
        ("sentence_A", "sentence_B", "entailment_judgment"),
        file="data.tsv",
    ),
    Case(
        "columns of SNLI",
        lines(
            "gold_label sentence1 sentence2 pairID captionID",
            rows(N, relation, english, claim, lambda n: f"{n}.jpg#1r1e", lambda n: f"{n}.jpg#1"),
        ),
        PAIR,
        ("sentence1", "sentence2", "gold_label"),
        file="data.jsonl",
    ),
    Case(
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
        PAIR,
        ("question1", "question2", "is_duplicate"),
    ),
    Case(
        "text_a and text_b, the label first",
        table("label,text_a,text_b", rows(N, relation, english, claim)),
        PAIR,
        ("text_a", "text_b", "label"),
    ),
    Case("pairs without a header", tabs(PAIRED), PAIR, (1, 2, 3), file="data.tsv"),
    Case(
        "pairs without a header, the label first, an index",
        written(rows(N, lambda n: n, relation, english, claim)),
        PAIR,
        (3, 4, 2),
    ),
    Case(
        "pairs with strange names",
        table("foo,bar,baz", PAIRED, ";"),
        PAIR,
        ("foo", "bar", "baz"),
        keys={"delimiter": ";"},
        says=("the other way round: --column sentence1=bar --column sentence2=foo",),
    ),
    Case(
        "a claim and a longer text, quoted",
        table("headline,body,stance", rows(N, headline, article, sentiment), quoting=csv.QUOTE_ALL),
        PAIR,
        ("headline", "body", "stance"),
    ),
    Case(
        "the second one named",
        table("headline,body,stance", rows(N, headline, article, sentiment)),
        PAIR,
        ("body", "headline", "stance"),
        options=("--column", "sentence1=body", "--column", "sentence2=headline"),
    ),
    Case(
        "three texts and a label",
        table("one,two,three,label", rows(N, english, claim, article, relation)),
        PAIR,
        asks=("which column is the sentence1", "'one', 'two' or 'three'", "--column sentence1=one"),
    ),
    Case(
        "pairs in a JSON list",
        array("premise hypothesis label date", rows(N, english, claim, relation, date_of)),
        PAIR,
        ("premise", "hypothesis", "label"),
        file="data.json",
    ),
    Case(
        "one text and a label for a pair",
        table("text,label", rows(N, english, relation)),
        PAIR,
        asks=("none of its columns",),
    ),
    Case(
        "pairs of one class",
        table("premise,hypothesis,label", rows(N, english, claim, "entailment")),
        PAIR,
        asks=("always 'entailment'", "two classes"),
    ),
    Case(
        "text_classification, as people call it",
        table("text,label", rows(N, english, sentiment)),
        "text_classification",
        ("text", "label"),
    ),
]
