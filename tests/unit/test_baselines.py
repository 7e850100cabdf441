"""Baselines, each against something independent: scikit-learn called directly, a plain loop, a sum that must be one."""

import math
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer

import sixjars
from sixjars.errors import DataError
from sixjars.evaluation.baselines.budget import (
    FEWEST_FIRST,
    FIRST,
    MOST,
    MOST_FIRST,
    STEP,
    Check,
    Learner,
    TimeBudget,
    TooMuch,
    learned_in_time,
)
from sixjars.evaluation.baselines.ngrams import NgramModel
from sixjars.evaluation.baselines.problem import BaselineOutputs, BaselineProblem
from sixjars.evaluation.baselines.result import Baseline, best_by
from sixjars.evaluation.baselines.table import METHODS, load_library, measured
from sixjars.evaluation.baselines.tfidf import fitted
from sixjars.evaluation.metrics import METRICS, Score, metric_named
from sixjars.evaluation.score import groups_of
from sixjars.recipe.allowed_code import NOTHING
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.recipes import Blueprint, read_recipe
from sixjars_runtime.special_tokens import STOP


def split_of(recipe: Any, *overrides: str) -> Splits:
    return splits_of(Blueprint.of(read_recipe(recipe, overrides, NOTHING)))


def problem_of(
    splits: Splits, *, most: int = 1, longer: bool = False, group: bool = False
) -> BaselineProblem:
    groups = tuple(map(tuple, groups_of(splits.scored, group=group)))
    return BaselineProblem(splits.train, splits.scored, groups, most, longer_source=longer)


def predicted(problem: BaselineProblem, name: str) -> BaselineOutputs:
    """The outputs of the baseline that has this in its name."""
    methods = METHODS[problem.fields.output.holds]
    [method] = [own for own in methods if own.fits(problem) and name in own.name(problem)]
    return method.predict(problem, TimeBudget(60.0))


def candidates(problem: BaselineProblem, name: str) -> list[tuple[str, ...]]:
    found = predicted(problem, name).candidates
    assert found is not None
    return [*found]


def outputs(problem: BaselineProblem, name: str) -> list[str]:
    return [best for best, *_ in candidates(problem, name)]


def column(split: Any, name: str) -> list[str]:
    return [str(text) for text in split.table.texts(name)]


def few(size: int, test: int, valid: int = 5) -> list[str]:
    sizes = {"size": size, "valid": valid, "test": test}
    return [f"data.sample.{name}={count}" for name, count in sizes.items()]


@pytest.fixture(scope="module")
def documents() -> Splits:
    return split_of("document_classification/sample_initial", *few(90, 40))


@pytest.fixture(scope="module")
def pairs() -> Splits:
    return split_of("sentence_pair/sample_plain", *few(90, 40))


@pytest.fixture(scope="module")
def words() -> Splits:
    return split_of("transliteration/sample_attention", *few(80, 30))


def liblinear(rows: Any) -> LogisticRegression:
    dual = rows.shape[1] > rows.shape[0]
    return LogisticRegression(C=10, solver="liblinear", dual=dual, random_state=0)


def test_the_most_frequent_label(documents: Splits) -> None:
    counts = Counter(column(documents.train, "label"))
    found = candidates(problem_of(documents, most=3), "most frequent")
    assert [counts[label] for label in found[0]] == sorted(counts.values(), reverse=True)[:3]
    assert set(found) == {found[0]}


def test_the_linear_model_is_that_of_scikit_learn(documents: Splits) -> None:
    counted = TfidfVectorizer(ngram_range=(1, 2))
    rows = counted.fit_transform(column(documents.train, "source"))
    model = OneVsRestClassifier(liblinear(rows)).fit(rows, column(documents.train, "label"))
    wanted = model.predict(counted.transform(column(documents.test, "source")))
    assert outputs(problem_of(documents), "word counts") == wanted.tolist()
    assert len(set(wanted)) > 2


def test_the_linear_model_is_not_behind_one_of_all_labels() -> None:
    """What anybody computes in five lines is no stronger, but for chance: two standard errors."""
    sizes = "data.sample.size=200", "data.sample.test=400"
    splits = split_of("document_classification/sample_initial", *sizes)
    texts, labels = (column(splits.test, name) for name in ("source", "label"))
    counted = TfidfVectorizer(ngram_range=(1, 2))
    rows = counted.fit_transform(column(splits.train, "source"))
    model = LogisticRegression(C=10, max_iter=1000).fit(rows, column(splits.train, "label"))
    wanted = np.mean(model.predict(counted.transform(texts)) == labels)
    ours = np.mean(np.array(outputs(problem_of(splits), "word counts")) == labels)
    assert ours >= wanted - 2 * math.sqrt(wanted * (1 - wanted) / len(labels))
    assert 0.3 < wanted < 0.99


def test_two_labels_have_one_model(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    kinds = {"ham": ["lunch", "thanks", "report"], "spam": ["money", "free", "winner"]}
    rows = []
    for label in draw.choice(["ham", "spam"], size=80, p=[0.7, 0.3]):
        chosen = draw.choice([*kinds[label], "the", "you", "today"], size=5)
        rows.append({"text": " ".join(chosen), "label": label})
    splits = labelled(tmp_path, rows)
    counted = TfidfVectorizer(ngram_range=(1, 2))
    train = counted.fit_transform(column(splits.train, "source"))
    model = liblinear(train).fit(train, column(splits.train, "label"))
    wanted = model.predict(counted.transform(column(splits.valid, "source")))
    assert outputs(problem_of(splits), "linear") == wanted.tolist()
    assert set(wanted) == {"ham", "spam"}


def test_the_linear_model_of_pairs_compares_them(pairs: Splits) -> None:
    first, second = column(pairs.train, "sentence1"), column(pairs.train, "sentence2")
    counted = TfidfVectorizer(ngram_range=(1, 2)).fit(first + second)

    def compared(ones: list[str], others: list[str]) -> Any:
        one, other = counted.transform(ones).toarray(), counted.transform(others).toarray()
        return np.hstack([abs(one - other), one * other, (one * other).sum(1, keepdims=True)])

    rows = compared(first, second)
    model = OneVsRestClassifier(liblinear(rows)).fit(rows, column(pairs.train, "label"))
    tested = compared(*(column(pairs.test, name) for name in ("sentence1", "sentence2")))
    wanted = model.predict(tested)
    assert outputs(problem_of(pairs), "of both texts") == wanted.tolist()


def labelled(folder: Path, rows: Sequence[Mapping[str, Any]], **label: Any) -> Splits:
    """A recipe of rows in memory; the last ten are the test set."""
    from sixjars.data.tables.memory import given_tables

    data = {"train": "memory:train", "valid": "memory:valid", "source": {"column": "text"}}
    recipe = {"task": "document_classification", "model": {"encoder": {"kind": "text"}}}
    recipe["data"] = {**data, "label": {"column": "label", **label}}
    with given_tables({"memory:train": [*rows[:-10]], "memory:valid": [*rows[-10:]]}):
        return split_of(recipe)


def test_several_labels_are_one_against_the_rest(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    rows = []
    for _ in range(70):
        count = draw.integers(1, 3)
        chosen = sorted(draw.choice(["corn", "gold", "oil"], size=count, replace=False))
        others = draw.choice(["price", "rose", "fell", "today"], size=3)
        rows.append({"text": " ".join([*chosen, *others]), "label": [*map(str, chosen)]})
    splits = labelled(tmp_path, rows, multi_label=True)
    counted = TfidfVectorizer(ngram_range=(1, 2))
    train = counted.fit_transform(column(splits.train, "source"))
    labels = MultiLabelBinarizer()
    held = labels.fit_transform([text.split(", ") for text in column(splits.train, "label")])
    model = OneVsRestClassifier(liblinear(train)).fit(train, held)
    tested = model.predict(counted.transform(column(splits.valid, "source")))
    wanted = [", ".join(sorted(some)) for some in labels.inverse_transform(tested)]
    assert outputs(problem_of(splits), "linear") == wanted
    [(most, _)] = Counter(column(splits.train, "label")).most_common(1)
    assert outputs(problem_of(splits), "most frequent labels")[0] == most


def test_texts_without_words_are_counted_by_characters(tmp_path: Path) -> None:
    kinds = ["a x", "b y", "c z"]  # no word has two letters
    rows = [{"text": f"{kinds[n % 3]} {n % 2}", "label": "pqr"[n % 3]} for n in range(60)]
    problem = problem_of(labelled(tmp_path, rows))
    assert outputs(problem, "linear") == column(problem.scored, "label")


def test_names_are_counted_by_characters(words: Splits, tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    rows = []
    for n in range(60):
        stem, (end, label) = (
            draw.choice(list("abdeiklmnprtu"), size=5),
            [("son", "s"), ("ov", "b")][n % 2],
        )
        rows.append({"text": f"{''.join(stem)}{end}", "label": label})
    problem = problem_of(labelled(tmp_path, rows))
    assert METHODS["classes"][1].name(problem) == "a linear model on character counts"
    assert outputs(problem, "character counts") == column(problem.scored, "label")


def test_the_nearest_row_is_that_of_a_plain_loop(words: Splits) -> None:
    counted = TfidfVectorizer(analyzer="char", ngram_range=(1, 3))
    counted.fit(column(words.train, "source"))
    train, targets = counted.transform(column(words.train, "source")).toarray(), words.train.targets
    wanted = []
    for row in counted.transform(column(words.test, "source")).toarray():
        likeness = [float(row @ other) for other in train]  # all have length 1
        wanted.append(targets[max(range(len(targets)), key=lambda at: likeness[at])])
    assert outputs(problem_of(words), "most similar") == wanted
    found = candidates(problem_of(words, most=3), "most similar")
    assert [some[0] for some in found] == wanted
    assert all(len(set(some)) == 3 for some in found)


def test_the_input_is_copied_and_its_first_sentence() -> None:
    splits = split_of("summarization/sample_initial", *few(20, 6, 4))
    problem, short = problem_of(splits, longer=True), problem_of(splits)
    copies = outputs(problem, "copying")
    texts = ["".join(text.split()) for text in column(splits.test, "source")]
    assert [text.replace(" ", "") for text in copies] == texts
    for whole, text in zip(copies, outputs(problem, "first sentence"), strict=True):
        assert whole.startswith(text)
        assert len(text) < len(whole)
    names = [own.name(short) for own in METHODS["tokens"] if own.fits(short)]
    assert "first sentence" not in " ".join(names)


def test_an_order_is_that_of_the_input() -> None:
    splits = split_of("pointing/sample_sorting", *few(9, 5, 3))
    counts = [len(text.split()) for text in column(splits.test, "points")]
    wanted = [" ".join(map(str, range(count))) for count in counts]
    assert outputs(problem_of(splits), "order") == wanted


TEXTS = [[4, 5, 6], [4, 5], [5, 4, 4, 6], [7], [4, 5, 6, 7], []]
"""Of words 4 to 7, in a vocabulary of 9; 8 is never seen."""


def brute_force(texts: Sequence[Sequence[int]], order: int, possible: Sequence[int]) -> Any:
    """Interpolated Kneser-Ney by dictionaries, as the equations are written."""
    begin, lines = -1, [[-1, *text, STOP] for text in texts]

    def runs(line: list[int], n: int) -> list[tuple[int, ...]]:
        return [tuple(line[at - n + 1 : at + 1]) for at in range(max(n - 1, 1), len(line))]

    sizes = range(1, order + 2)
    grams = [Counter(gram for line in lines for gram in runs(line, n)) for n in sizes]
    counts = []
    for seen, longer in pairwise(grams):
        before = Counter(gram[1:] for gram in longer)
        counts.append({gram: n if gram[0] == begin else before[gram] for gram, n in seen.items()})
    counts[-1] = dict(grams[order - 1])
    held = []
    for own in counts:
        once, twice = sum(c == 1 for c in own.values()), sum(c == 2 for c in own.values())
        held.append(once / (once + 2 * twice) if once else 0.5)

    def chance(word: int, history: tuple[int, ...]) -> float:
        below = chance(word, history[1:]) if history else 1 / len(possible)
        own, discount = counts[len(history)], held[len(history)]
        follow = {gram: c for gram, c in own.items() if gram[:-1] == history}
        total = sum(follow.values())
        if not total:
            return below
        seen = own.get((*history, word), 0)
        return max(seen - discount, 0) / total + discount * len(follow) / total * below

    def of_text(text: Sequence[int]) -> list[float]:
        line = [begin, *text, STOP]
        places = range(1, len(line))
        return [chance(line[at], tuple(line[max(0, at - order + 1) : at])) for at in places]

    return of_text


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_kneser_ney_is_that_of_dictionaries(order: int) -> None:
    possible = [STOP, 3, 4, 5, 6, 7, 8]
    wanted = brute_force(TEXTS, order, possible)
    model = NgramModel(TEXTS, words=9, order=order)
    for text in [*TEXTS, [8, 3, 4], [6, 5, 4, 7, 7], [4, 5, 6, 7, 4]]:
        np.testing.assert_allclose(model.probabilities([text]), wanted(text), rtol=1e-12)
    both = model.probabilities([[4, 5], [7]])
    np.testing.assert_allclose(both, [*wanted([4, 5]), *wanted([7])])


@pytest.mark.parametrize("order", [1, 5])
@pytest.mark.parametrize("history", [[], [4], [4, 5], [8], [4, 5, 6, 7], [7, 7]])
def test_kneser_ney_sums_to_one(order: int, history: list[int]) -> None:
    model = NgramModel(TEXTS, words=9, order=order)
    words = [model.probabilities([[*history, word]])[len(history)] for word in (3, 4, 5, 6, 7, 8)]
    stop = model.probabilities([history])[-1]
    assert math.isclose(sum(words) + stop, 1.0, rel_tol=1e-9)


def test_a_language_model_is_scored_over_the_tokens_of_the_perplexity() -> None:
    splits = split_of("language_model/sample_gru", *few(60, 20))
    problem = problem_of(splits)
    found = predicted(problem, "5-gram").likelihoods
    assert found is not None
    mask = splits.scored.batches().collate(torch.arange(20)).target.mask
    assert [tokens for _, tokens in found] == mask.sum(1).tolist()  # <stop> included
    baselines, _ = measured(problem, [METRICS["perplexity"]], TimeBudget(60.0))
    total, tokens = map(sum, zip(*found, strict=True))
    assert baselines[-1].value("perplexity") == pytest.approx(math.exp(-total / tokens))
    assert baselines[0].name == "a unigram model"


def test_they_learn_from_the_training_set_alone(documents: Splits) -> None:
    """Other labels in the test set change scores, and no output."""
    problem = problem_of(documents)
    blind = problem_of(Splits(documents.train, documents.train, documents.test, documents.fields))
    assert outputs(problem, "word counts") == outputs(blind, "word counts")
    other = replace(problem, train=documents.valid)
    assert outputs(other, "word counts") != outputs(problem, "word counts")


LATE_SENTENCE = (
    "there was no time for a linear model on word counts, or too little memory: "
    "baselines get a tenth of the time, or 2 s, and about 1 GB."
)


class Clock:
    """A clock that work moves on."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_clock_is_looked_at_between_pieces_of_work() -> None:
    clock = Clock()
    budget = TimeBudget(2.0, clock)
    budget.check()
    clock.now = 1.0
    assert budget.share(0.5).left == 0.5
    assert budget.without(0.25).left == 0.75
    assert budget.at_least(3.0).left == 3.0
    assert budget.at_least(0.5).left == 1.0
    clock.now = 2.0
    assert budget.share(0.5).left == budget.without(1.0).left == 0.0
    with pytest.raises(TooMuch):
        budget.check()


class Slow:
    """Learns and predicts in as many seconds as it is given for a row."""

    def __init__(self, fitting: float, predicting: float = 0.0, *, late: int = 10**9) -> None:
        self.clock = Clock()
        self.fitting, self.predicting, self.late = fitting, predicting, late
        self.tried: list[int] = []

    def fit(self, rows: Sequence[int], check: Check) -> int:
        self.tried.append(len(rows))
        self.clock.now += 1000.0 if len(rows) >= self.late else self.fitting * len(rows)
        check()
        return len(rows)

    def predict(self, model: int, rows: Sequence[int], check: Check) -> list[int]:
        for _ in rows:
            self.clock.now += self.predicting
            check()
        return [model] * len(rows)

    def learned(
        self, rows: int, scored: int, seconds: float, *, size: float = 1.0
    ) -> tuple[int, int]:
        learner, budget = Learner(self.fit, self.predict, size), TimeBudget(seconds, self.clock)
        found, count = learned_in_time(learner, range(rows), range(scored), budget)
        assert found == [count] * scored
        return count, len(self.tried)


def test_rows_are_limited_by_the_measured_rate() -> None:
    slow = Slow(0.001, 0.01)
    count, _ = slow.learned(100_000, 50, 10.0)
    assert slow.tried[0] == MOST_FIRST
    assert 2_000 < count < 9_500  # 9,500 rows and all predictions would take all of the 10 s
    assert slow.clock.now <= 10.0
    assert Slow(0.001).learned(7, 3, 10.0) == (7, 1)


def test_rows_are_tried_a_few_times_as_many_each_time() -> None:
    slow = Slow(1e-6)
    assert slow.learned(100_000, 5, 100.0)[0] == 100_000
    assert slow.tried == [500, 500 * STEP, 100_000]


def test_rows_that_are_long_are_fewer_from_the_beginning() -> None:
    slow = Slow(1e-6)
    assert slow.learned(100_000, 5, 100.0, size=FIRST / 100)[0] == MOST // (FIRST // 100)
    assert slow.tried[0] == 100
    slow = Slow(1e-6)
    assert slow.learned(100_000, 5, 100.0, size=FIRST)[0] == MOST // FIRST
    assert slow.tried[0] == FEWEST_FIRST


def test_what_is_late_is_given_up_and_the_model_before_it_predicts() -> None:
    slow = Slow(0.001, 0.01, late=501)
    assert slow.learned(100_000, 50, 10.0)[0] == MOST_FIRST
    assert len(slow.tried) == 2
    with pytest.raises(TooMuch):
        Slow(1.0).learned(100_000, 50, 10.0)
    with pytest.raises(TooMuch):
        Slow(0.0, 1.0).learned(100_000, 50, 10.0)


def test_time_for_predictions_is_kept() -> None:
    """Where only few rows are timed, those of all others are expected to take as long."""
    slow = Slow(0.001, 0.005)
    count, _ = slow.learned(100_000, 1_000, 10.0)  # 5 s to predict
    assert count < 3_000
    assert slow.clock.now <= 10.0


def test_predictions_may_take_longer_with_more_rows() -> None:
    clock = Clock()

    def fit(rows: Sequence[int], check: Check) -> int:
        clock.now += 1e-6 * len(rows)
        return len(rows)

    def predict(model: int, rows: Sequence[int], check: Check) -> list[int]:
        clock.now += 1e-6 * model * len(rows)
        check()
        return [model] * len(rows)

    learner = Learner(fit, predict, 1.0, compares=True)
    _, count = learned_in_time(learner, range(100_000), range(1_000), TimeBudget(10.0, clock))
    assert 1_000 < count < 10_000
    assert clock.now <= 10.0


def test_the_rows_are_drawn_by_a_seed() -> None:
    drawn: list[list[int]] = []

    def fit(rows: Sequence[int], check: Check) -> None:
        drawn.append([*rows])

    learner = Learner(fit, lambda model, rows, check: [None for _ in rows], FIRST / 50)
    for seed in (1, 1, 2):
        learned_in_time(learner, range(100), range(3), TimeBudget(0.0, Clock()), seed=seed)
    assert drawn[0] == drawn[1] != drawn[2]
    assert drawn[0] == sorted(drawn[0])
    assert len(drawn[0]) == FEWEST_FIRST


def test_a_look_at_the_clock_comes_before_each_text(documents: Splits) -> None:
    looks: list[None] = []
    fitted(problem_of(documents), range(20), lambda: looks.append(None))
    assert len(looks) >= 20


def test_long_texts_do_not_take_longer_than_their_time(documents: Splits) -> None:
    """A text of a million characters counts as many short ones."""
    [short, long] = [problem_of(documents), problem_of(documents)]
    vars(long)["_sampled"] = ["word " * 200_000]
    assert short.size == pytest.approx(sum(map(len, column(documents.train, "source"))) / 90 / 3)
    assert Learner(print, print, long.size).most < 100  # type: ignore[arg-type]


def test_weights_that_do_not_fit_into_memory_are_not_made(
    documents: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.evaluation.baselines.tfidf.MOST_WEIGHTS", 100)
    found, notes = measured(problem_of(documents), [metric_named("accuracy@1")], TimeBudget(60.0))
    assert len(found) == 1
    assert notes == [LATE_SENTENCE]


def test_what_has_no_time_is_told(documents: Splits) -> None:
    found, notes = measured(problem_of(documents), [metric_named("accuracy@1")], TimeBudget(0.0))
    assert [one.name for one in found] == ["the most frequent label"]
    assert notes == [LATE_SENTENCE]


def test_what_cannot_be_computed_is_told(
    documents: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("the matrix is empty.\nmore")

    monkeypatch.setattr("sixjars.evaluation.baselines.tfidf.counted", broken)
    found, notes = measured(problem_of(documents), [metric_named("accuracy@1")], TimeBudget(60.0))
    assert len(found) == 1
    assert notes == ["a linear model on word counts could not be computed: the matrix is empty."]


def test_without_scikit_learn_there_is_what_needs_none(
    documents: Splits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.evaluation.baselines.table.find_spec", lambda name: None)
    found, notes = measured(problem_of(documents), [metric_named("accuracy@1")], TimeBudget(60.0))
    assert [one.name for one in found] == ["the most frequent label"]
    assert notes == [
        "scikit-learn is not installed, so a linear model on word counts is not among the baselines. "
        "Run: pip install 'sixjars[baselines]'"
    ]


@pytest.mark.parametrize("error", [ImportError, RuntimeError, OSError, KeyError, DataError])
def test_whatever_breaks_is_told_and_breaks_no_training(
    documents: Splits, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def broken(name: str) -> None:
        raise error("numpy is too old")

    monkeypatch.setattr("sixjars.evaluation.baselines.table.import_module", broken)
    load_library(problem_of(documents))

    def wrong(outcomes: Sequence[sixjars.Outcome]) -> float:
        raise error("numpy is too old")

    metrics = [sixjars.Metric("wrong", wrong)]
    found, notes = measured(problem_of(documents), metrics, TimeBudget(60.0))
    assert found == []
    assert notes[0].startswith("the most frequent label could not be computed: ")
    assert "numpy is too old" in notes[0]


def test_a_metric_that_takes_too_long_is_left_out(words: Splits) -> None:
    clock = Clock()

    def slow(outcomes: Sequence[sixjars.Outcome]) -> float:
        clock.now += 0.1 * len(outcomes)
        return 0.5

    metrics = [metric_named("exact_match"), sixjars.Metric("slow", slow)]
    found, _ = measured(problem_of(words), metrics, TimeBudget(4.0, clock))
    assert [score.name for score in found[0].scores] == ["exact_match"]
    found, _ = measured(problem_of(words), metrics, TimeBudget(40.0, clock))
    assert [score.name for score in found[0].scores] == ["exact_match", "slow"]
    found, notes = measured(problem_of(words), metrics[1:], TimeBudget(4.0, clock))
    assert found == []
    assert notes[0].startswith("there was no time for copying the input, or too little memory: ")


def test_metrics_of_attention_are_left_out(words: Splits) -> None:
    names = "exact_match", "alignment_error_rate", "seen_in_training"
    metrics = [metric_named(name) for name in names]
    found, _ = measured(problem_of(words), metrics, TimeBudget(60.0))
    assert [score.name for score in found[1].scores] == ["exact_match", "seen_in_training"]
    assert found[1].value("seen_in_training") == 1.0  # its outputs are those of training rows


def test_rows_with_one_input_are_one_example() -> None:
    splits = split_of("image_captioning/sample_initial", *few(30, 20))
    problem = problem_of(splits, group=True)
    assert len(problem.examples) == len({row["image"] for row in splits.scored.inputs})
    assert sum(len(group) for group in problem.groups) == 20


def test_the_best_is_chosen_by_the_direction_of_the_metric() -> None:
    def one(name: str, value: float, better: Any) -> Baseline:
        return Baseline(name, (Score("m", value, "", better, 9),), 0.1)

    higher = one("a", 0.1, "higher"), one("b", 0.2, "higher")
    lower = one("a", 9.0, "lower"), one("b", 10.0, "lower")
    assert (best_by(higher, "m"), best_by(lower, "m")) == (higher[1], lower[0])
    assert best_by([one("a", 9.0, "lower")], "other") is None


def test_warnings_of_the_library_stay_inside(documents: Splits) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        predicted(problem_of(documents), "word counts")


def with_features(folder: Path, task: str, output: str) -> Splits:
    """Examples whose inputs are arrays of numbers: class 0 has a large first number, class 1 a large second one."""
    draw, rows = np.random.default_rng(3), []
    for at in range(50):
        kind = at % 2
        vector = draw.normal(size=6).astype(np.float32)
        vector[kind] += 20
        np.save(folder / f"{at}.npy", vector)
        rows.append(f'{{"image": "{at}.npy", "out": "{["red fox", "blue sea"][kind]}"}}\n')
    (folder / "train.jsonl").write_text("".join(rows[:-10]))
    (folder / "valid.jsonl").write_text("".join(rows[-10:]))
    files = {"folder": str(folder), "train": "train.jsonl", "valid": "valid.jsonl"}
    image = {"kind": "features", "column": "image"}
    data = {**files, "image": image, output: {"column": "out"}}
    return split_of({"task": task, "data": data, "model": {"bridge": {"kind": "initial"}}})


def test_labels_of_images_are_learned_from_frozen_features(tmp_path: Path) -> None:
    splits = with_features(tmp_path, "image_classification", "label")
    found = outputs(problem_of(splits), "a linear model on the frozen features")
    assert found == column(splits.valid, "label")


def test_captions_are_those_of_the_nearest_image(tmp_path: Path) -> None:
    splits = with_features(tmp_path, "image_captioning", "target")
    problem = problem_of(splits)
    train = problem.features(splits.train, range(40))
    scored = problem.features(splits.valid, range(10))
    assert train is not None
    assert scored is not None
    wanted = [splits.train.targets[int(at)] for at in (scored @ train.T).argmax(1)]
    assert outputs(problem, "most similar") == wanted == column(splits.valid, "target")


def test_images_without_frozen_features_have_the_most_frequent_output() -> None:
    problem = problem_of(split_of("image_captioning/sample_initial", *few(30, 9)))
    [method] = [one for one in METHODS["tokens"] if one.fits(problem)]
    assert method.name(problem) == "the most frequent output"
    counts = Counter(problem.targets(problem.learned_from))
    assert counts[outputs(problem, "most frequent")[0]] == max(counts.values())
