"""Intervals and the paired test, against a loop that scores every resampled corpus itself."""

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from sixjars.errors import DataError
from sixjars.evaluation import bootstrap
from sixjars.evaluation.bootstrap import (
    Difference,
    Statistics,
    difference,
    exchanged,
    interval,
    interval_of,
    statistics_of,
)
from sixjars.evaluation.metrics import METRICS, Interval, Metric, Outcome, RationaleWeight

WORDS = ("a", "red", "dog", "runs", "home", "the", "old", "man", "sees", "it")
LABELS = ("run", "jump", "sit")
TOGETHER = {"cider_d", "distinct_captions", "distinct1", "distinct2", "vocabulary_used"}
SQUARE = "0,0 0,1 1,1 1,0"


def corpus(examples: int = 12, *, noise: float = 0.3, seed: int = 0) -> list[Outcome]:
    """Sentences with one reference or two, and outputs with some wrong words."""
    chance, found = random.Random(seed), []
    for _ in range(examples):
        right = [chance.choice(WORDS) for _ in range(chance.randint(4, 12))]
        wrong = noise * chance.choice((0, 2))
        output = [chance.choice(WORDS) if chance.random() < wrong else word for word in right]
        others = (" ".join(chance.sample(WORDS, 5)),) if chance.random() < 0.5 else ()
        found.append(
            Outcome(
                (" ".join(right), *others),
                (" ".join(output), " ".join(right)),
                log_probability=-chance.random() * 9,
                tokens=len(right),
                links=frozenset((place, place) for place in range(3)),
                sure=frozenset((place, chance.randint(0, 2)) for place in range(3)),
                familiar=chance.random() < 0.5,
                focus=chance.random() if chance.random() < 0.8 else None,
                given=" ".join([*output[:4], *chance.sample(WORDS, 3)]),
                rationale=RationaleWeight(chance.random(), chance.random(), chance.random()),
            )
        )
    return found


def labelled(*, several: bool) -> list[Outcome]:
    chance = random.Random(1)
    count = 2 if several else 1
    texts = [[", ".join(chance.sample(LABELS, count)) for _ in range(2)] for _ in range(15)]
    return [Outcome((one,), (one if chance.random() < 0.4 else two,)) for one, two in texts]


def tours() -> list[Outcome]:
    chance = random.Random(2)
    orders = [" ".join(str(point) for point in chance.sample(range(4), 4)) for _ in range(12)]
    return [
        Outcome(("0 1 2 3",), ("0 1" if at == 3 else order,), given=SQUARE)
        for at, order in enumerate(orders)
    ]


def data_for(name: str) -> list[Outcome]:
    if "tour" in name:
        return tours()
    if "f1" in name or name == "labels_exact":
        return labelled(several=name.startswith("labels"))
    return corpus()


def sums_of(metric: Metric | str, outcomes: Sequence[Outcome]) -> Statistics:
    found = statistics_of(METRICS[metric] if isinstance(metric, str) else metric, outcomes)
    assert found is not None
    return found


def gap(first: Statistics, other: Statistics) -> Difference:
    found = difference(first, other)
    assert found is not None
    return found


def drawn(examples: int) -> np.ndarray:
    """The places of each resample, as the module draws them."""
    size = bootstrap.RESAMPLES, examples
    return np.random.default_rng(bootstrap.SEED).integers(examples, size=size)


@pytest.fixture
def few_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "RESAMPLES", 40)


@pytest.mark.parametrize("name", [name for name in METRICS if name not in TOGETHER])
@pytest.mark.usefixtures("few_resamples")
def test_resampled_values_are_those_of_the_metric_itself(name: str) -> None:
    outcomes, metric = data_for(name), METRICS[name]
    statistics, resamples = sums_of(metric, outcomes), drawn(len(outcomes))
    brute = [metric.compute([outcomes[place] for place in places]) for places in resamples]
    assert statistics.resampled.tolist() == pytest.approx(brute, rel=1e-9, abs=1e-12)
    whole = statistics.value(statistics.rows.sum(0).tolist())
    assert whole == pytest.approx(metric.compute(outcomes))
    assert len(set(brute)) > 3
    low, high = np.quantile(brute, [0.025, 0.975])
    found = interval_of(metric, outcomes)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((low, high))


@pytest.mark.usefixtures("few_resamples")
def test_memory_is_limited_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    statistics = sums_of("bleu", corpus())
    before = statistics.resampled
    monkeypatch.setattr(bootstrap, "_AT_ONCE", 50)
    assert np.array_equal(statistics.resampled, before)


@pytest.mark.parametrize("name", sorted(TOGETHER))
def test_metrics_of_all_together_have_no_interval(name: str) -> None:
    assert interval_of(METRICS[name], corpus()) is None


def test_metrics_from_outside() -> None:
    def letters(outcomes: Sequence[Outcome]) -> float:
        return sum(len(one.candidates[0]) for one in outcomes) / len(outcomes)

    def longest(outcomes: Sequence[Outcome]) -> float:
        return float(max(len(one.candidates[0]) for one in outcomes))

    outcomes = corpus()
    found = interval_of(Metric("letters", letters), outcomes)
    assert found is not None
    assert found.low < letters(outcomes) < found.high
    assert interval_of(Metric("longest", longest), outcomes) is None


def test_the_interval_is_that_of_theory() -> None:
    """A share of 0.3 of 1,000: plus or minus 1.96 standard errors."""
    outcomes = [Outcome(("a",), ("a" if number < 300 else "b",)) for number in range(1000)]
    found = interval_of(METRICS["exact_match"], outcomes)
    assert found is not None
    error = 1.96 * math.sqrt(0.3 * 0.7 / 1000)
    assert (found.low, found.high) == pytest.approx((0.3 - error, 0.3 + error), abs=0.004)


@pytest.mark.parametrize("name", ["bleu", "exact_match", "ter"])
def test_the_paired_test(name: str) -> None:
    metric = METRICS[name]
    good, same, bad = (sums_of(name, corpus(60, noise=noise)) for noise in (0.05, 0.05, 0.6))
    nothing, worse, better = gap(good, same), gap(good, bad), gap(bad, good)
    assert (nothing.value, nothing.p, nothing.interval.low, nothing.interval.high) == (0, 1, 0, 0)
    assert worse.p < 0.01
    assert worse.p == better.p
    assert worse.value == -better.value
    assert (worse.interval.high < 0) == (metric.better == "higher")


def test_pure_chance_is_rarely_significant() -> None:
    """Two models that are equally good: p is below 0.05 about once in twenty times."""
    chance, found = random.Random(0), []
    for _ in range(60):
        texts = [[chance.choice("ab") for _ in range(80)] for _ in range(2)]
        outcomes = [[Outcome(("a",), (text,)) for text in some] for some in texts]
        one, two = (sums_of("exact_match", some) for some in outcomes)
        found.append(gap(one, two).p)
    assert sum(p < 0.05 for p in found) <= 8
    assert sum(p < 0.5 for p in found) >= 15


def test_different_numbers_of_examples() -> None:
    one, two = (sums_of("bleu", corpus(count)) for count in (5, 6))
    with pytest.raises(DataError) as told:
        difference(one, two)
    assert str(told.value) == "a paired test needs the same examples, but there are 5 and 6."


def test_the_output_of_the_other_model() -> None:
    outcomes, metric = corpus(6), METRICS["bleu"]
    statistics = sums_of(metric, outcomes)
    others = [replace(one, candidates=(f"{one.candidates[0]} x",)) for one in outcomes]
    changed = [[*outcomes[:at], others[at], *outcomes[at + 1 :]] for at in range(6)]
    brute = [metric.compute(some) - metric.compute(outcomes) for some in changed]
    assert exchanged(metric, outcomes, others) == pytest.approx(brute)
    assert exchanged(metric, outcomes, outcomes) == [0.0] * 6
    assert exchanged(METRICS["distinct1"], outcomes, others) == []
    one = [Outcome(("run",), ("run",)), Outcome(("sit",), ("run",))]
    two = [Outcome(("run",), ("jump",))] * 2
    [lost, _] = exchanged(METRICS["macro_f1"], one, two)  # classes that only one of them has
    assert lost == pytest.approx(0 - METRICS["macro_f1"].compute(one))
    assert statistics.only([0, 2]).rows.tolist() == statistics.rows[[0, 2]].tolist()


def test_resamples_without_a_value() -> None:
    assert interval(np.array([math.nan, math.nan, 1.0])) is None
    outcomes = [replace(one, focus=1.0 if at == 0 else None) for at, one in enumerate(corpus(12))]
    statistics = sums_of("object_focus", outcomes)
    assert interval(statistics.resampled) == Interval(1.0, 1.0)
    assert difference(statistics.only([1, 2]), statistics.only([1, 2])) is None


@pytest.mark.parametrize(("examples", "p"), [(2, 0.5), (5, 0.0625), (30, 2 / 1001)])
def test_few_examples_that_all_go_one_way_may_be_chance(examples: int, p: float) -> None:
    """As in the sign test: those that are the same say nothing."""
    right, wrong = Outcome(("a",), ("a",)), Outcome(("a",), ("b",))
    outcomes = ([some] * examples + [right] * 2 for some in (wrong, right))
    one, two = (sums_of("exact_match", some) for some in outcomes)
    found = gap(one, two)
    assert found.p >= p
    assert found.p < 0.05 or examples < 6


def test_classes_that_only_one_model_has() -> None:
    one, two = (sums_of("macro_f1", [Outcome(("a",), (name,))] * 3) for name in "ab")
    assert one.rows.shape != two.rows.shape
    assert gap(one, two).p == 0.25


def test_one_example_has_no_interval() -> None:
    statistics = sums_of("exact_match", [Outcome(("a",), ("a",))])
    assert interval_of(METRICS["exact_match"], [Outcome(("a",), ("a",))]) is None
    assert difference(statistics, statistics) is None
