"""Every metric against something independent: the libraries' own objects, brute force, sums done by hand."""

import math
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from importlib.metadata import version
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from sixjars.errors import DataError, RecipeError
from sixjars.evaluation.metrics import METRICS, Metric, Outcome, RationaleWeight, Score, metric_named, names, score

SACRE = {"bleu": BLEU, "chrf": CHRF, "ter": TER}
ROUGE = ("rouge1", "rouge2", "rougeL")
CAPTION_BLEU = ("bleu1", "bleu2", "bleu3", "bleu4")
OF_OUTPUTS = {"distinct1", "distinct2", "distinct_captions", "vocabulary_used"}
"""These ask nothing of the references."""
OF_TOURS = {"tour_length_ratio", "tour_over_nearest", "valid_tours"}
"""These read points."""
FROM_TEXT = sorted(name for name, metric in METRICS.items() if metric.needs == {"candidates"})

WORDS = ("home", "Home", "go", "घर", "जाना", "ab", "abc", "b", ".", "né")
sentences = st.lists(st.sampled_from(WORDS), max_size=7).map(" ".join)
short = st.text(alphabet="ab é", max_size=6)


def outcomes_of(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[Outcome]]:
    several = st.lists(text, min_size=1, max_size=3).map(tuple)
    return st.lists(st.builds(Outcome, references=several, candidates=several), min_size=1, max_size=4)


def value(name: str, outcomes: Sequence[Outcome]) -> float:
    return score(outcomes, [name])[0].value


def one(references: str | tuple[str, ...], *candidates: str) -> Outcome:
    return Outcome((references,) if isinstance(references, str) else references, candidates)


FULL = [
    Outcome(
        ("the cat sat on the mat", "a cat was on a mat"),
        ("the cat is on the mat", "a cat was on a mat"),
        log_probability=-7.0,
        tokens=7,
        links=frozenset({(0, 0), (1, 2)}),
        sure=frozenset({(0, 0)}),
        familiar=True,
        focus=1.5,
        given="on the mat is a cat",
        key=RationaleWeight(0.5, 0.25, 0.75),
    ),
    Outcome(
        ("मैं घर जा रहा हूँ",),
        ("मैं घर जा रही हूँ", ""),
        log_probability=-2.5,
        tokens=6,
        links=frozenset(),
        sure=frozenset({(3, 1)}),
        possible=frozenset({(3, 1), (3, 2)}),
        familiar=False,
        given="i am going home",
    ),
    Outcome(
        ("no",),
        ("",),
        log_probability=-0.5,
        tokens=2,
        links=frozenset({(2, 2)}),
        sure=frozenset({(2, 2)}),
        familiar=False,
        focus=0.0,
        given="",
        key=RationaleWeight(0.0, 0.0, 0.0),
    ),
]


# The table


def test_every_name_finds_its_metric_and_every_metric_scores() -> None:
    assert names() == sorted(METRICS)
    assert [metric_named(name).name for name in names()] == names()
    of_words = [name for name in names() if name not in OF_TOURS]
    scores = score(FULL, of_words)
    assert [one_score.name for one_score in scores] == of_words
    for one_score in scores:
        assert type(one_score.value) is float
        assert one_score.count == 3
        assert one_score.better == metric_named(one_score.name).better


def test_the_names_are_those_promised() -> None:
    assert set(names()) == {
        *("perplexity", "bleu", "chrf", "ter", "rouge1", "rouge2", "rougeL", "exact_match", "accuracy@1"),
        *("character_error_rate", "word_error_rate", "mean_reciprocal_rank", "distinct1", "distinct2"),
        *("bleu1", "bleu2", "bleu3", "bleu4", "rougeL_coco", "cider_d", "meteor_exact_stem", "distinct_captions"),
        *("alignment_error_rate", "vocabulary_used", "seen_in_training", "macro_f1", "object_focus"),
        *("micro_f1", "labels_macro_f1", "labels_micro_f1", "labels_exact", "novel_bigrams", "novel_trigrams"),
        *("copied_words", "key_sentence", "key_word", "key_word_near"),
        *OF_TOURS,
    }


def test_scores_come_in_the_order_asked_for() -> None:
    asked = ["ter", "accuracy@2", "bleu", "ter"]
    assert [one_score.name for one_score in score(FULL, asked)] == asked
    assert score(FULL, []) == []


def test_how_many_candidates_each_metric_wants() -> None:
    more = {name: metric_named(name).nbest for name in [*names(), "accuracy@7"] if metric_named(name).nbest != 1}
    assert more == {"mean_reciprocal_rank": 10, "accuracy@7": 7}


def test_which_way_is_better() -> None:
    errors = {"ter", "character_error_rate", "word_error_rate", "perplexity", "alignment_error_rate"}
    errors |= {"seen_in_training", "tour_length_ratio", "tour_over_nearest"}
    assert {name for name in names() if metric_named(name).better == "lower"} == errors


@pytest.mark.parametrize("name", [*names(), "accuracy@12"])
def test_signature_is_one_short_line_with_a_version(name: str) -> None:
    signature = metric_named(name).signature(FULL)
    assert "\n" not in signature
    assert len(signature) < 100
    source = "version:2" if name in SACRE else f"sixjars:{version('sixjars')}"
    assert source in signature
    assert name in SACRE or signature.split("|")[0] == name


def test_signatures_say_what_was_done() -> None:
    assert metric_named("rougeL").signature(FULL) == (
        f"rougeL|F1|best reference|tok:spaces|case:lower|rouge-score:{version('rouge-score')}"
        f"|sixjars:{version('sixjars')}"
    )
    assert "|candidates:2|" in metric_named("mean_reciprocal_rank").signature(FULL)
    assert "|candidates:1|" in metric_named("mean_reciprocal_rank").signature(FULL[2:])


@pytest.mark.parametrize("name", names())
def test_every_metric_explains_itself(name: str) -> None:
    compute = metric_named(name).compute
    text = getattr(compute, "func", compute).__doc__ or ""
    assert ".. math::" in text
    assert any(f" {year}" in text for year in range(1960, 2030)), "no source"


def test_importing_the_room_loads_nothing_heavy() -> None:
    heavy = ("torch", "nltk", "sacrebleu", "rouge_score", "rapidfuzz", "numpy")
    code = f"import sys, sixjars.evaluation.metrics; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# What is refused


def test_unknown_metric_offers_the_nearest() -> None:
    with pytest.raises(RecipeError) as caught:
        metric_named("blue")
    (fault,) = caught.value.faults
    assert fault.startswith("metric 'blue' is unknown. Did you mean 'bleu'? Known: accuracy@k, alignment_error_rate, ")


def test_misspelt_accuracy_offers_the_pattern() -> None:
    with pytest.raises(RecipeError, match=r"metric 'acuracy@5' is unknown\. Did you mean 'accuracy@k'\?"):
        metric_named("acuracy@5")


@pytest.mark.parametrize("end", ["0", "", "k", "-1", "1.5", "01", " 5", "५", "1" * 5000])
def test_accuracy_needs_a_count(end: str) -> None:
    with pytest.raises(RecipeError) as caught:
        metric_named(f"accuracy@{end}")
    sentence = f"metric 'accuracy@{end}' needs a whole number from 1 to 999999999 after the @, as accuracy@5."
    assert caught.value.faults == (sentence,)


def test_every_bad_name_is_told_at_once() -> None:
    with pytest.raises(RecipeError, match="2 faults in the list of metrics") as caught:
        score(FULL, ["blue", "chrf", "accuracy@0"])
    assert len(caught.value.faults) == 2


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        score([], ["bleu"])
    assert str(caught.value) == "There are no outcomes, so there is nothing to score. Give at least one example."


def test_an_outcome_without_references_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        Outcome(())
    assert str(caught.value) == (
        "references is empty, but an outcome needs one right answer or more. Give at least one."
    )


@pytest.mark.parametrize("name", FROM_TEXT)
def test_no_candidates_is_refused(name: str) -> None:
    with pytest.raises(DataError) as caught:
        score([one("a", "a"), Outcome(("a",), log_probability=-1.0, tokens=1)], [name])
    assert str(caught.value) == (
        f"{name} compares what search found, but example 2 of 2 has no candidates. "
        "Give at least one; the empty text is one."
    )


@pytest.mark.parametrize(("log_probability", "tokens"), [(None, 3), (-1.0, 0), (None, 0)])
def test_no_likelihood_is_refused(log_probability: float | None, tokens: int) -> None:
    with pytest.raises(DataError) as caught:
        score([Outcome(("a",), log_probability=log_probability, tokens=tokens)], ["perplexity"])
    assert str(caught.value) == (
        "perplexity needs a log probability and at least 1 token (<stop> counts), but example 1 of 1 has "
        f"log_probability {log_probability} and tokens {tokens}. Give both for the first reference."
    )


@pytest.mark.parametrize(
    ("outcome", "lacks"),
    [
        (Outcome(("a",)), "links and sure"),
        (Outcome(("a",), sure=frozenset()), "links"),
        (Outcome(("a",), links=frozenset()), "sure"),
    ],
)
def test_no_links_is_refused(outcome: Outcome, lacks: str) -> None:
    with pytest.raises(DataError) as caught:
        score([outcome], ["alignment_error_rate"])
    assert str(caught.value) == (
        f"alignment_error_rate compares predicted links with sure ones, but example 1 of 1 has no {lacks}. "
        "Give both; a set without links is allowed."
    )


# BLEU, chrF, TER


@pytest.mark.parametrize("name", SACRE)
@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(sentences, sentences, sentences), min_size=1, max_size=5),
    width=st.integers(1, 2),
)
def test_sacrebleu_with_equally_many_references(name: str, rows: list[tuple[str, str, str]], width: int) -> None:
    outcomes = [Outcome(row[1 : 1 + width], (row[0],)) for row in rows]
    theirs = SACRE[name]()
    expected = theirs.corpus_score([row[0] for row in rows], [[row[i] for row in rows] for i in range(1, 1 + width)])
    (ours,) = score(outcomes, [name])
    assert ours == Score(name, expected.score, str(theirs.get_signature()), metric_named(name).better, len(rows))


def test_sacrebleu_with_differing_numbers_of_references() -> None:
    """A missing reference must differ from an empty one, and be no other than a repeated one."""
    uneven = [
        one(("the cat sat on the mat", "a cat on a mat"), "a cat sat on a mat"),
        one("go home now son", "go now"),
    ]
    texts = [outcome.best for outcome in uneven]
    repeated = [["the cat sat on the mat", "go home now son"], ["a cat on a mat", "go home now son"]]
    for name, kind in SACRE.items():
        (ours,) = score(uneven, [name])
        assert ours.value == pytest.approx(kind().corpus_score(texts, repeated).score)
        assert "nrefs:var|" in ours.signature
    with_empty = BLEU().corpus_score(texts, [repeated[0], ["a cat on a mat", ""]]).score
    assert value("bleu", uneven) != pytest.approx(with_empty)


def test_bleu_by_hand() -> None:
    """Of 6 words 5 match, of 5 pairs 3, of 4 triples 1, of 3 fours 0 (which smoothing halves: 1/2 of 1/3)."""
    outcome = one("the cat sat on the mat", "the cat is on the mat")
    product = Fraction(5, 6) * Fraction(3, 5) * Fraction(1, 4) * Fraction(1, 6)
    assert value("bleu", [outcome]) == pytest.approx(100 * float(product) ** 0.25)


def test_bleu_says_nothing_about_tokenised_text(caplog: pytest.LogCaptureFixture) -> None:
    score([one("I go home .", "I go home .")] * 150, ["bleu"])
    assert not caplog.records


# ROUGE


@pytest.mark.parametrize("name", ROUGE)
@settings(deadline=None, max_examples=40)
@given(outcomes=outcomes_of(st.lists(st.sampled_from(["go", "Home", "now", "4"]), max_size=6).map(" ".join)))
def test_rouge_equals_the_library_on_plain_words(name: str, outcomes: list[Outcome]) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    theirs = RougeScorer([name])
    each = [max(theirs.score(r, o.best)[name].fmeasure for r in o.references) for o in outcomes]
    assert value(name, outcomes) == pytest.approx(sum(each) / len(each))


def test_rouge_by_hand_in_hindi() -> None:
    """Four of five words, two of four pairs, four in the same order."""
    outcomes = [one("मैं घर जा रहा हूँ", "मैं घर जा रही हूँ")]
    assert value("rouge1", outcomes) == pytest.approx(4 / 5)
    assert value("rouge2", outcomes) == pytest.approx(2 / 4)
    assert value("rougeL", outcomes) == pytest.approx(4 / 5)


def test_rouge_takes_the_best_reference() -> None:
    assert value("rougeL", [one(("never mind", "go HOME", "go"), "Go home")]) == 1.0


# Edit distances


def brute_force(left: Sequence[str], right: Sequence[str]) -> int:
    """The whole table of Wagner & Fischer 1974."""
    table = [[row + column for column in range(len(right) + 1)] for row in range(len(left) + 1)]
    for row, a in enumerate(left, start=1):
        for column, b in enumerate(right, start=1):
            table[row][column] = min(
                table[row - 1][column] + 1, table[row][column - 1] + 1, table[row - 1][column - 1] + (a != b)
            )
    return table[-1][-1]


def brute_force_rate(pairs: list[tuple[Sequence[str], list[Sequence[str]]]]) -> float:
    edits = length = 0
    for said, rights in pairs:
        fewest = min(brute_force(said, right) for right in rights)
        edits += fewest
        length += max(len(right) for right in rights if brute_force(said, right) == fewest)
    return edits / length if length else float(edits > 0)


@settings(deadline=None)
@given(outcomes=outcomes_of(st.one_of(short, st.text(max_size=5))))
def test_character_error_rate_equals_brute_force(outcomes: list[Outcome]) -> None:
    expected = brute_force_rate([(o.best, list(o.references)) for o in outcomes])
    assert value("character_error_rate", outcomes) == pytest.approx(expected)


@settings(deadline=None)
@given(outcomes=outcomes_of(sentences))
def test_word_error_rate_equals_brute_force(outcomes: list[Outcome]) -> None:
    expected = brute_force_rate([(o.best.split(), [r.split() for r in o.references]) for o in outcomes])
    assert value("word_error_rate", outcomes) == pytest.approx(expected)


def test_error_rates_by_hand() -> None:
    """The corpus rate weighs by length: (1 + 0) / (4 + 1) words, not the mean of 1/4 and 0."""
    outcomes = [one("I am going home", "I am going Home"), one("no", "no")]
    assert value("word_error_rate", outcomes) == pytest.approx(1 / 5)
    assert value("character_error_rate", outcomes) == pytest.approx(1 / 17)
    assert value("character_error_rate", [one("a", "abcd")]) == pytest.approx(3.0)


def test_a_devanagari_vowel_sign_is_a_character() -> None:
    assert value("character_error_rate", [one("की", "कि")]) == pytest.approx(1 / 2)


# Answers


def test_accuracy_by_hand() -> None:
    outcomes = [
        one("a", "a", "b", "c"),
        one("b", "a", "b", "c"),
        one(("x", "c"), "a", "b", "c"),
        one("d", "a"),
    ]
    shares = [value(f"accuracy@{k}", outcomes) for k in (1, 2, 3, 4, 100)]
    assert shares == [0.25, 0.5, 0.75, 0.75, 0.75]
    assert value("exact_match", outcomes) == 0.25


def test_mean_reciprocal_rank_by_hand() -> None:
    outcomes = [
        one("a", "a", "b", "c"),
        one("b", "a", "b", "b"),
        one(("x", "c"), "a", "b", "c"),
        one("d", "a"),
    ]
    assert value("mean_reciprocal_rank", outcomes) == pytest.approx((1 + 1 / 2 + 1 / 3 + 0) / 4)


def test_answers_are_compared_as_they_are() -> None:
    outcomes = [one("Delhi", "delhi"), one("a", "a "), one("", ""), one("two", "2"), one(("two", "2"), "2")]
    assert value("exact_match", outcomes) == pytest.approx(2 / 5)


@settings(deadline=None)
@given(outcomes=outcomes_of(st.sampled_from(["a", "b", "c", ""])))
def test_accuracy_grows_with_k_and_bounds_the_reciprocal_rank(outcomes: list[Outcome]) -> None:
    shares = [value(f"accuracy@{k}", outcomes) for k in (1, 2, 3)]
    assert shares == sorted(shares)
    assert shares[0] == value("exact_match", outcomes)
    # Each extra hit at place k is worth 1/k.
    expected = shares[0] + (shares[1] - shares[0]) / 2 + (shares[2] - shares[1]) / 3
    assert value("mean_reciprocal_rank", outcomes) == pytest.approx(expected)


# Variety


def test_distinct_by_hand() -> None:
    """Words: i do not know i do i = 4 of 7. Pairs: i-do do-not not-know i-do = 3 of 4, none across texts."""
    outcomes = [one("x", "i do not know", "other words here"), one("x", "i do"), one("x", "i"), one("x", "")]
    assert value("distinct1", outcomes) == pytest.approx(4 / 7)
    assert value("distinct2", outcomes) == pytest.approx(3 / 4)


def test_saying_it_again_halves_distinct() -> None:
    outcomes = [one("x", "a b c")]
    for name in ("distinct1", "distinct2"):
        assert value(name, outcomes) == 1.0
        assert value(name, outcomes * 2) == 0.5


# Likelihood


@settings(deadline=None)
@given(size=st.integers(1, 50_000), lengths=st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_uniform_model_has_perplexity_of_its_vocabulary(size: int, lengths: list[int]) -> None:
    outcomes = [Outcome(("x",), log_probability=n * math.log(1 / size), tokens=n) for n in lengths]
    assert value("perplexity", outcomes) == pytest.approx(size)


def test_perplexity_by_hand() -> None:
    """Three tokens of probability 1/2, 1/4 and 1/8: the cube root of 64."""
    outcomes = [
        Outcome(("x",), log_probability=math.log(1 / 2) + math.log(1 / 4), tokens=2),
        Outcome(("y",), log_probability=math.log(1 / 8), tokens=1),
    ]
    assert value("perplexity", outcomes) == pytest.approx(4.0)


@pytest.mark.parametrize("log_probability", [-math.inf, -1e6])
def test_hopeless_model_has_infinite_perplexity(log_probability: float) -> None:
    assert value("perplexity", [Outcome(("x",), log_probability=log_probability, tokens=1)]) == math.inf


# Links


def test_alignment_error_rate_by_hand() -> None:
    """A has 4 + 1 links, S 3 + 1; A∩S is 2 + 0, A∩P 3 + 0: 1 - 5/9. `possible` leaves out the sure ones."""
    first = Outcome(
        ("x",),
        links=frozenset({(0, 0), (1, 1), (2, 3), (3, 2)}),
        sure=frozenset({(0, 0), (1, 1), (2, 2)}),
        possible=frozenset({(2, 3)}),
    )
    second = Outcome(("x",), links=frozenset({(0, 1)}), sure=frozenset({(1, 0)}))
    assert value("alignment_error_rate", [first, second]) == pytest.approx(1 - 5 / 9)


link_sets = st.frozensets(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=6)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(link_sets, link_sets), min_size=1, max_size=4))
def test_without_possible_links_the_error_is_one_less_f_score(
    rows: list[tuple[frozenset[tuple[int, int]], frozenset[tuple[int, int]]]],
) -> None:
    """With P = S the equation is 1 - F1 of the links; with every link allowed and none sure it is 0."""
    found = sum(len(links) for links, _ in rows)
    true = sum(len(sure) for _, sure in rows)
    right = sum(len(links & sure) for links, sure in rows)
    f_score = 2 * right / (found + true) if found + true else 1.0
    outcomes = [Outcome(("x",), links=links, sure=sure) for links, sure in rows]
    assert value("alignment_error_rate", outcomes) == pytest.approx(1 - f_score)
    lenient = [Outcome(("x",), links=links, sure=frozenset(), possible=links) for links, _ in rows]
    assert value("alignment_error_rate", lenient) == 0.0


# What holds for all of them

BEST = {"bleu": 100.0, "chrf": 100.0, "ter": 0.0, "character_error_rate": 0.0, "word_error_rate": 0.0}
WITHOUT_STOPS = {*CAPTION_BLEU, "rougeL_coco", "cider_d", "meteor_exact_stem"}
"""These drop the "." of the sentences; their best values are in test_caption_metrics.py."""
PERFECT = sorted({*FROM_TEXT, "accuracy@3"} - OF_OUTPUTS - WITHOUT_STOPS)


@pytest.mark.parametrize("name", PERFECT)
@settings(deadline=None, max_examples=25)
@given(texts=st.lists(st.lists(st.sampled_from(WORDS), min_size=4, max_size=8).map(" ".join), min_size=1, max_size=4))
def test_a_perfect_output_scores_best(name: str, texts: list[str]) -> None:
    outcomes = [one(("something else", text), text) for text in texts]
    expected = BEST.get(name, 1.0)
    assert value(name, outcomes) == pytest.approx(expected)
    spoilt = [one(text, "qqq") for text in texts]
    difference = value(name, spoilt) - expected
    assert difference < 0 if metric_named(name).better == "higher" else difference > 0


@pytest.mark.parametrize("name", sorted({*names(), "accuracy@2"} - OF_TOURS))
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
            key=RationaleWeight(draw.random(), draw.random(), draw.random()),
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
def test_nothing_at_all_has_a_value(name: str) -> None:
    """As the docstrings promise: nothing said where nothing was right is no error, but no overlap either."""
    assert value(name, [one("", ""), one(("", ""), "")]) == ALL_EMPTY[name]


@pytest.mark.parametrize("name", sorted(set(FROM_TEXT) - OF_OUTPUTS))
def test_words_where_none_were_right(name: str) -> None:
    assert value(name, [one("", "a b c d"), one("", "e")]) == EMPTY_REFERENCES[name]


@pytest.mark.parametrize("name", ["bleu", "chrf", *ROUGE, "exact_match", "macro_f1", "distinct1", "distinct2"])
def test_saying_nothing_earns_nothing(name: str) -> None:
    assert value(name, [one("a b c d", ""), one("e", "")]) == 0.0


@pytest.mark.parametrize(("name", "whole"), [("ter", 100.0), ("character_error_rate", 1.0), ("word_error_rate", 1.0)])
def test_saying_nothing_is_wholly_wrong(name: str, whole: float) -> None:
    assert value(name, [one("a b c d", ""), one("e", "")]) == pytest.approx(whole)


def test_no_links_at_all_is_no_error() -> None:
    assert value("alignment_error_rate", [Outcome(("x",), links=frozenset(), sure=frozenset())]) == 0.0


@pytest.mark.parametrize("kind", [Outcome, Metric, Score])
def test_values_are_final_and_frozen(kind: type) -> None:
    assert getattr(kind, "__final__", False)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
