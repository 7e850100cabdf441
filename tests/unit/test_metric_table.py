"""The table of metrics: names, signatures, docs, metrics of one's own, what is refused."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version

import pytest

import sixjars
from sixjars.errors import DataError, RecipeError
from sixjars.evaluation.metrics import (
    METRICS,
    Metric,
    Outcome,
    RationaleWeight,
    Score,
    metric_named,
    score,
)
from sixjars.recipe.allowed_code import AllowedCode

SACRE = ("bleu", "chrf", "ter")
OF_TOURS = {"tour_length_ratio", "tour_over_nearest", "valid_tours"}
"""These read points."""
FROM_TEXT = sorted(name for name, metric in METRICS.items() if metric.needs == {"candidates"})

FULL = [
    Outcome(("the cat sat on the mat", "a cat was on a mat"), ("the cat is on the mat", "a cat was on a mat"),
            log_probability=-7.0, tokens=7, links=frozenset({(0, 0), (1, 2)}), sure=frozenset({(0, 0)}), familiar=True,
            focus=1.5, given="on the mat is a cat", rationale=RationaleWeight(0.5, 0.25, 0.75)),
    Outcome(("मैं घर जा रहा हूँ",), ("मैं घर जा रही हूँ", ""), log_probability=-2.5, tokens=6, links=frozenset(),
            sure=frozenset({(3, 1)}), possible=frozenset({(3, 1), (3, 2)}), familiar=False, given="i am going home"),
    Outcome(("no",), ("",), log_probability=-0.5, tokens=2, links=frozenset({(2, 2)}), sure=frozenset({(2, 2)}),
            familiar=False, focus=0.0, given="", rationale=RationaleWeight(0.0, 0.0, 0.0)),
]  # fmt: skip
TOUR = [Outcome(("0 1 2",), ("2 0 1",), given="0,0 0,1 1,1")]


def test_every_name_finds_its_metric_and_every_metric_scores() -> None:
    assert [metric_named(name) for name in METRICS] == list(METRICS.values())
    assert [metric.name for metric in METRICS.values()] == list(METRICS)
    of_words = [name for name in METRICS if name not in OF_TOURS]
    scores = score(FULL, of_words) + score(TOUR, sorted(OF_TOURS))
    assert [one_score.name for one_score in scores] == [*of_words, *sorted(OF_TOURS)]
    for one_score in scores:
        assert type(one_score.value) is float
        assert one_score.count == (1 if one_score.name in OF_TOURS else 3)
        assert one_score.better == METRICS[one_score.name].better


def test_the_names_are_those_documented() -> None:
    names = """
        perplexity bleu chrf ter rouge1 rouge2 rougeL exact_match accuracy@1
        rouge1_spaces rouge2_spaces rougeL_spaces
        character_error_rate word_error_rate mean_reciprocal_rank distinct1 distinct2
        bleu1 bleu2 bleu3 bleu4 rougeL_coco cider_d distinct_captions
        alignment_error_rate posterior_error_rate vocabulary_used seen_in_training macro_f1
        micro_f1 labels_macro_f1 labels_micro_f1 labels_exact novel_bigrams novel_trigrams
        object_focus copied_words rationale_sentence rationale_word rationale_word_near
    """
    assert set(METRICS) == {*names.split(), *OF_TOURS}


def test_scores_come_in_the_order_of_the_names() -> None:
    names = ["ter", "accuracy@2", "bleu", "ter"]
    assert [one_score.name for one_score in score(FULL, names)] == names
    assert score(FULL, []) == []


def test_how_many_candidates_each_metric_needs() -> None:
    counts = {name: metric_named(name).nbest for name in [*METRICS, "accuracy@7"]}
    more = {name: count for name, count in counts.items() if count != 1}
    assert more == {"mean_reciprocal_rank": 10, "accuracy@7": 7}


def test_what_each_metric_needs() -> None:
    of_input = (*OF_TOURS, "novel_bigrams", "novel_trigrams", "copied_words")
    others = {
        "perplexity": {"likelihood"},
        "alignment_error_rate": {"links"},
        "posterior_error_rate": {"links"},
        "object_focus": {"focus"},
        "seen_in_training": {"candidates", "familiar"},
        **{f"rationale_{level}": {"rationale"} for level in ("sentence", "word", "word_near")},
        **{name: {"candidates", "given"} for name in of_input},
    }
    needs = {name: set(metric.needs) for name, metric in METRICS.items()}
    assert {name: need for name, need in needs.items() if need != {"candidates"}} == others


def test_which_way_is_better() -> None:
    errors = "ter character_error_rate word_error_rate perplexity alignment_error_rate"
    others = "posterior_error_rate seen_in_training tour_length_ratio tour_over_nearest"
    assert {name for name, metric in METRICS.items() if metric.better == "lower"} == {
        *errors.split(),
        *others.split(),
    }


@pytest.mark.parametrize("name", [*METRICS, "accuracy@12"])
def test_signature_is_one_short_line_with_a_version(name: str) -> None:
    signature = score(TOUR if name in OF_TOURS else FULL, [name])[0].signature
    assert "\n" not in signature
    assert len(signature) < 100
    source = "version:2" if name in SACRE else f"sixjars:{version('sixjars')}"
    assert source in signature
    assert name in SACRE or signature.split("|")[0] == name


def test_signatures_have_the_settings() -> None:
    ours = f"sixjars:{version('sixjars')}"
    theirs = f"rouge-score:{version('rouge-score')}|{ours}"
    names = ["rougeL", "rougeL_spaces", "mean_reciprocal_rank", "labels_exact", "rationale_word"]
    assert [one_score.signature for one_score in score(FULL, names)] == [
        f"rougeL|F1|best reference|tok:a-z0-9|Porter stems|case:lower|{theirs}",
        f"rougeL_spaces|F1|best reference|tok:spaces|no stems|case:lower|{theirs}",
        f"mean_reciprocal_rank|any reference|candidates:2|case:mixed|{ours}",
        f"labels_exact|any reference|between:', '|case:mixed|{ours}",
        f"rationale_word|share of its sentence|with rationales:2|{ours}",
    ]
    assert "|candidates:1|" in score(FULL[2:], ["mean_reciprocal_rank"])[0].signature


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_its_equation_and_its_source(name: str) -> None:
    compute = METRICS[name].compute
    text = getattr(compute, "func", compute).__doc__ or ""
    assert ".. math::" in text
    assert any(f" {year}" in text for year in range(1960, 2030)), "no source"


def test_importing_the_metrics_loads_nothing_heavy() -> None:
    heavy = ("torch", "nltk", "sacrebleu", "rouge_score", "rapidfuzz", "numpy")
    code = f"import sys, sixjars.evaluation.metrics; print([name for name in {heavy} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize("kind", [Outcome, Metric, Score])
def test_values_are_final_and_frozen(kind: type) -> None:
    assert getattr(kind, "__final__", False)
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]


# A metric of one's own


def mean_length(outcomes: list[Outcome]) -> float:
    return sum(len(outcome.candidates[0]) for outcome in outcomes) / len(outcomes)


OWN = Metric("mean_length", mean_length, "lower", how=("unit:code point",))  # type: ignore[arg-type]


def test_a_metric_is_scored_beside_names() -> None:
    mine, theirs = score(FULL, [OWN, "exact_match"])
    length = sum(len(outcome.candidates[0]) for outcome in FULL) / 3
    ours = f"sixjars:{version('sixjars')}"
    assert mine == Score("mean_length", length, f"mean_length|unit:code point|{ours}", "lower", 3)
    assert theirs == score(FULL, ["exact_match"])[0]
    assert score(FULL, [METRICS["exact_match"]]) == [theirs]


def test_its_signature_may_depend_on_the_outcomes() -> None:
    told = replace(OWN, how=lambda outcomes: (f"count:{len(outcomes)}",))
    whole = replace(OWN, how=lambda outcomes: f"{len(outcomes)} outcomes")
    first, second = score(FULL, [told, whole])
    assert first.signature.startswith("mean_length|count:3|sixjars:")
    assert second.signature == "3 outcomes"


def test_what_it_needs_is_checked() -> None:
    told = r"^mean_length compares outputs, but example 1 of 1 has no candidates\."
    with pytest.raises(DataError, match=told):
        score([Outcome(("a",))], [OWN])


def test_it_is_found_by_its_name_where_it_is_handed_over() -> None:
    assert metric_named("mean_length", AllowedCode(components=(OWN,))) is OWN
    with pytest.raises(RecipeError, match=r"metric 'mean_length' is unknown\."):
        metric_named("mean_length")
    assert sixjars.Metric is Metric
    assert sixjars.score is score


# What is refused


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("blue", "metric 'blue' is unknown. Did you mean 'bleu'? Known: accuracy@k, alignment_error_rate, "),
        ("acuracy@5", "metric 'acuracy@5' is unknown. Did you mean 'accuracy@k'?"),
    ],
)  # fmt: skip
def test_unknown_metric_offers_the_nearest(name: str, fault: str) -> None:
    with pytest.raises(RecipeError) as caught:
        metric_named(name)
    [found] = caught.value.faults
    assert found.startswith(fault)


@pytest.mark.parametrize("end", ["0", "", "k", "-1", "1.5", "01", " 5", "५", "1" * 5000])
def test_accuracy_needs_a_count(end: str) -> None:
    with pytest.raises(RecipeError) as caught:
        metric_named(f"accuracy@{end}")
    sentence = f"metric 'accuracy@{end}' needs a whole number from 1 to 999999999 after the @, as accuracy@5."
    assert caught.value.faults == (sentence,)


def test_every_bad_name_is_reported_at_once() -> None:
    with pytest.raises(RecipeError, match="2 faults in the list of metrics") as caught:
        score(FULL, ["blue", "chrf", "accuracy@0"])
    assert len(caught.value.faults) == 2


NO_CANDIDATES = "compares outputs, but example 2 of 2 has no candidates. Give at least one; the empty text is one."
NO_LIKELIHOOD = (
    "needs a log probability and at least 1 token (<stop> counts), but example 1 of 1 has none. "
    "Give both for the first reference."
)
NO_LINKS = (
    "compares predicted links with sure ones, but example 1 of 1 lacks one of them. "
    "Give links and sure; a set without links is allowed."
)
NO_INPUT = "compares outputs with the input, but example 2 of 2 has no given. Give the text of its first input."
NOT_SEEN = (
    "seen_in_training asks whether the best candidate is in the training data, "
    "but example 2 of 2 has no familiar. Give True or False."
)
A, B = Outcome(("a",)), Outcome(("a",), ("b",))


@pytest.mark.parametrize(
    ("outcomes", "name", "sentence"),
    [
        ([], "bleu", "There are no outcomes, so there is nothing to score. Give at least one example."),
        ([*FULL, Outcome((), ("a",))], "exact_match",
         "example 4 has no references, but a metric needs one right answer or more."),
        *([[replace(A, candidates=("a",)), replace(A, log_probability=-1.0, tokens=1)], name, f"{name} {NO_CANDIDATES}"]
          for name in FROM_TEXT),
        *([[replace(A, log_probability=log, tokens=tokens)], "perplexity", f"perplexity {NO_LIKELIHOOD}"]
          for log, tokens in [(None, 3), (-1.0, 0), (None, 0)]),
        *([[outcome], "alignment_error_rate", f"alignment_error_rate {NO_LINKS}"]
          for outcome in (A, replace(A, sure=frozenset()), replace(A, links=frozenset()))),
        *([[replace(B, given=""), B], name, f"{name} {NO_INPUT}"]
          for name in ("novel_bigrams", "novel_trigrams", "copied_words")),
        ([replace(B, familiar=False), B], "seen_in_training", NOT_SEEN),
    ],
)  # fmt: skip
def test_outcomes_that_lack_what_a_metric_needs(
    outcomes: list[Outcome], name: str, sentence: str
) -> None:
    with pytest.raises(DataError) as caught:
        score(outcomes, [name])
    assert str(caught.value) == sentence
