"""What holds for every metric: best value, range, empty texts, the order of the examples."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sixjars.evaluation.metrics import METRICS, Outcome, RationaleWeight, metric_named, score

from .scoring import WORDS, outcome, outcomes_of, sentences, value

ROUGE = ("rouge1", "rouge2", "rougeL")
ROUGE_SPACES = ("rouge1_spaces", "rouge2_spaces", "rougeL_spaces")
CAPTION_BLEU = ("bleu1", "bleu2", "bleu3", "bleu4")
OF_OUTPUTS = {"distinct1", "distinct2", "distinct_captions", "vocabulary_used"}
"""These ignore the references."""
OF_TOURS = {"tour_length_ratio", "tour_over_nearest", "valid_tours"}
"""These read points."""
FROM_TEXT = sorted(name for name, metric in METRICS.items() if metric.needs == {"candidates"})


BEST = {
    "bleu": 100.0,
    "chrf": 100.0,
    "ter": 0.0,
    "character_error_rate": 0.0,
    "word_error_rate": 0.0,
}
WITHOUT_STOPS = {*CAPTION_BLEU, "rougeL_coco", "cider_d"}
"""These drop the "." of the sentences; their best values are in test_caption_metrics.py."""
PERFECT = sorted({*FROM_TEXT, "accuracy@3"} - OF_OUTPUTS - WITHOUT_STOPS - set(ROUGE))


def check_best(name: str, texts: list[str]) -> None:
    outcomes = [outcome(("something else", text), text) for text in texts]
    expected = BEST.get(name, 1.0)
    assert value(name, outcomes) == pytest.approx(expected)
    spoilt = [outcome(text, "qqq") for text in texts]
    difference = value(name, spoilt) - expected
    assert difference < 0 if metric_named(name).better == "higher" else difference > 0


@pytest.mark.parametrize("name", PERFECT)
@settings(deadline=None, max_examples=25)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(WORDS), min_size=4, max_size=8).map(" ".join),
        min_size=1,
        max_size=4,
    )
)
def test_a_perfect_output_scores_best(name: str, texts: list[str]) -> None:
    check_best(name, texts)


@pytest.mark.parametrize("name", ROUGE)
@settings(deadline=None, max_examples=25)
@given(
    texts=st.lists(
        st.lists(st.sampled_from(("home", "Home", "going", "ab", "4")), min_size=2, max_size=8).map(
            " ".join
        ),
        min_size=1,
        max_size=4,
    )
)
def test_a_perfect_output_of_latin_letters_scores_best(name: str, texts: list[str]) -> None:
    """Of other letters the published tokenizer leaves nothing; see test_overlap_metrics.py."""
    check_best(name, texts)


@pytest.mark.parametrize("name", sorted({*METRICS, "accuracy@2"} - OF_TOURS))
def test_order_of_examples_does_not_matter(name: str) -> None:
    draw = Random(0)
    outcomes = [
        Outcome(
            tuple(" ".join(draw.choices(WORDS, k=5)) for _ in range(draw.randint(1, 3))),
            tuple(" ".join(draw.choices(WORDS, k=5)) for _ in range(2)),
            log_probability=-draw.random(),
            tokens=draw.randint(1, 5),
            links=frozenset({(draw.randint(0, 1), 0)}),
            sure=frozenset({(0, 0)}),
            familiar=draw.random() < 0.5,
            focus=draw.random(),
            given=" ".join(draw.choices(WORDS, k=20)),
            rationale=RationaleWeight(draw.random(), draw.random(), draw.random()),
        )
        for _ in range(12)
    ]
    ordered = score(outcomes, [name])[0]
    draw.shuffle(outcomes)
    shuffled = score(outcomes, [name])[0]
    assert shuffled.value == pytest.approx(ordered.value)
    assert shuffled.signature == ordered.signature


@pytest.mark.parametrize("name", FROM_TEXT)
@settings(deadline=None, max_examples=30)
@given(outcomes=outcomes_of(st.one_of(sentences, st.text(max_size=12))))
def test_any_text_gives_a_float_in_range(name: str, outcomes: list[Outcome]) -> None:
    got = value(name, outcomes)
    assert type(got) is float
    limits = {"bleu": 100.0, "chrf": 100.0, **dict.fromkeys(CAPTION_BLEU, 100.0), "cider_d": 10.0}
    limits["vocabulary_used"] = math.inf
    most = limits.get(name, 1.0) if metric_named(name).better == "higher" else math.inf
    assert 0.0 <= got <= most * (1 + 1e-12)
    assert math.isfinite(got)


ALL_EMPTY = {
    **dict.fromkeys(FROM_TEXT, 0.0),
    "exact_match": 1.0,
    "accuracy@1": 1.0,
    "mean_reciprocal_rank": 1.0,
    "macro_f1": 1.0,
    "micro_f1": 1.0,
    "labels_exact": 1.0,
    "distinct_captions": 0.5,
}
EMPTY_REFERENCES = {
    **dict.fromkeys(FROM_TEXT, 0.0),
    "character_error_rate": 1.0,
    "word_error_rate": 1.0,
    "ter": 100.0,
}


@pytest.mark.parametrize("name", FROM_TEXT)
def test_empty_texts_have_a_value(name: str) -> None:
    """An empty output for an empty reference is no error, but no overlap either."""
    assert value(name, [outcome("", ""), outcome(("", ""), "")]) == ALL_EMPTY[name]


@pytest.mark.parametrize("name", sorted(set(FROM_TEXT) - OF_OUTPUTS))
def test_words_for_empty_references(name: str) -> None:
    assert value(name, [outcome("", "a b c d"), outcome("", "e")]) == EMPTY_REFERENCES[name]


@pytest.mark.parametrize(
    "name",
    ["bleu", "chrf", *ROUGE, *ROUGE_SPACES, "exact_match", "macro_f1", "distinct1", "distinct2"],
)
def test_an_empty_output_scores_nothing(name: str) -> None:
    assert value(name, [outcome("a b c d", ""), outcome("e", "")]) == 0.0


@pytest.mark.parametrize(
    ("name", "whole"), [("ter", 100.0), ("character_error_rate", 1.0), ("word_error_rate", 1.0)]
)
def test_an_empty_output_is_wholly_wrong(name: str, whole: float) -> None:
    assert value(name, [outcome("a b c d", ""), outcome("e", "")]) == pytest.approx(whole)
