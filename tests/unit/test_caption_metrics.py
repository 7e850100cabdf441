"""Caption metrics against the COCO tools, nltk and brute force."""

import math
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from itertools import permutations
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nltk.translate.meteor_score import single_meteor_score  # type: ignore[import-untyped]
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from sixjars.errors import DataError
from sixjars.evaluation.metrics import Outcome, caption_words, metric_named, score
from sixjars.evaluation.metrics.meteor import fewest_chunks

WORDS = ("a", "the", "dog", "dogs", "man", "runs", "running", "on", "red", "कुत्ता")


def captions_of(words: Sequence[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=9).map(" ".join)


def corpora_of(words: Sequence[str]) -> st.SearchStrategy[list[Outcome]]:
    texts = captions_of(words)
    several = st.lists(texts, min_size=1, max_size=4).map(tuple)
    return st.lists(st.builds(Outcome, references=several, candidates=st.tuples(texts)), min_size=1, max_size=8)


captions = captions_of(WORDS)
corpora = corpora_of(WORDS)
BLEUS = ("bleu1", "bleu2", "bleu3", "bleu4")
ALL = (*BLEUS, "rougeL_coco", "cider_d", "meteor_exact_stem", "distinct_captions", "vocabulary_used")


def value(name: str, outcomes: Sequence[Outcome]) -> float:
    return score(outcomes, [name])[0].value


def saying(*texts: str) -> list[Outcome]:
    return [Outcome(("x",), (text,)) for text in texts]


def for_coco(outcomes: Sequence[Outcome]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    rights = {number: list(outcome.references) for number, outcome in enumerate(outcomes)}
    return rights, {number: [outcome.best] for number, outcome in enumerate(outcomes)}


# Words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A Dog, running.", ["a", "dog", "running"]),
        ('two men -- one "old" -- don\'t sit ...', ["two", "men", "one", "old", "don't", "sit"]),
        ("a t-shirt for $ 3.50!", ["a", "t-shirt", "for", "3.50"]),
        ("एक कुत्ता दौड़ रहा है।", ["एक", "कुत्ता", "दौड़", "रहा", "है"]),
        ("  \t\n", []),
        ("?!", []),
        ("", []),
    ],
)
def test_words_are_small_and_bare(text: str, words: list[str]) -> None:
    assert caption_words(text) == words


@pytest.mark.parametrize("name", ALL)
def test_capitals_and_punctuation_do_not_count(name: str) -> None:
    plain = [Outcome(("a dog runs on a road", "the dog"), ("one dog runs on a road",)), *saying("a man")]
    dressed = [Outcome(("A dog runs, on a road.", "The DOG!"), ("One dog runs on a 'road' .",)), *saying("a man -")]
    assert value(name, plain) == value(name, dressed) != 0.0


# BLEU


def matches(outcome: Outcome, n: int) -> bool:
    words = outcome.best.split()
    pieces = (" ".join(words[start : start + n]) for start in range(len(words) - n + 1))
    return any(f" {piece} " in f" {reference} " for piece in pieces for reference in outcome.references)


@settings(deadline=None)
@given(outcomes=st.one_of(corpora, corpora_of(("a", "dog"))))
def test_bleu_equals_the_coco_tools(outcomes: list[Outcome]) -> None:
    """They add tiny numbers against division by zero, so that their 0 is a little more."""
    with redirect_stdout(StringIO()):
        theirs, _ = Bleu(4).compute_score(*for_coco(outcomes))
    for n, expected in enumerate(theirs, start=1):
        ours = value(f"bleu{n}", outcomes) / 100
        if any(matches(outcome, n) for outcome in outcomes):
            assert ours == pytest.approx(expected, abs=1e-6) != 0.0
        else:
            assert ours == 0.0
            assert expected < 0.04


def test_bleu_by_hand() -> None:
    """6 words where the nearest references have 5 + 2. Right: words 4 + 1, pairs 3 + 0 of 4, triples 1 of 2."""
    outcomes = [
        Outcome(("the the dog runs on", "a dog"), ("a dog runs on",)),
        Outcome(("a man", "a man runs here"), ("man man",)),
    ]
    brevity = 100 * math.exp(1 - 7 / 6)
    expected = [brevity * 5 / 6, brevity * (5 / 6 * 3 / 4) ** (1 / 2), brevity * (5 / 6 * 3 / 4 * 1 / 2) ** (1 / 3), 0]
    assert [value(name, outcomes) for name in BLEUS] == pytest.approx(expected)


def test_the_shorter_of_two_equally_near_references_counts() -> None:
    assert value("bleu1", [Outcome(("a dog runs fast", "a dog"), ("a dog runs",))]) == pytest.approx(100.0)
    longer = value("bleu1", [Outcome(("a dog runs fast",), ("a dog runs",))])
    assert longer == pytest.approx(100 * math.exp(1 - 4 / 3))


# ROUGE-L


@settings(deadline=None)
@given(outcomes=st.one_of(corpora, corpora_of(("a", "dog", "runs"))))
def test_rouge_equals_the_coco_tools(outcomes: list[Outcome]) -> None:
    expected, _ = Rouge().compute_score(*for_coco(outcomes))
    assert value("rougeL_coco", outcomes) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("texts", [("", "a"), ("a", ""), ("", ""), (".", "."), ("a", "b")])
@pytest.mark.parametrize("name", ["rougeL_coco", "meteor_exact_stem", "cider_d", *BLEUS])
def test_nothing_shared_earns_nothing(name: str, texts: tuple[str, str]) -> None:
    assert value(name, [Outcome(texts[:1], texts[1:])] * 2) == 0.0


# CIDEr-D


@settings(deadline=None)
@given(outcomes=st.one_of(corpora, corpora_of(("a", "dog", "runs"))))
def test_cider_equals_the_coco_tools(outcomes: list[Outcome]) -> None:
    expected, _ = Cider().compute_score(*for_coco(outcomes))
    assert value("cider_d", outcomes) == pytest.approx(expected, abs=1e-6)


def test_cider_of_right_captions_is_ten_where_nothing_is_shared() -> None:
    right = [Outcome((text,), (text,)) for text in ("a b c d", "e f g h i", "j k l m n o")]
    assert value("cider_d", right) == pytest.approx(10.0)
    assert value("cider_d", right[:1]) == 0.0
    short = [Outcome((text,), (text,)) for text in ("a b c", "d e f")]
    assert value("cider_d", short) == pytest.approx(7.5)


def test_cider_of_a_longer_caption_by_hand() -> None:
    """Four words of six: each order's cosine is its share's root, and two words too many cost e^(-4/72)."""
    outcomes = [Outcome(("a b c d",), ("a b c d y z",)), Outcome(("p q r s",), ("t",))]
    cosines = [math.sqrt(4 / 6), math.sqrt(3 / 5), math.sqrt(2 / 4), math.sqrt(1 / 3)]
    assert value("cider_d", outcomes) == pytest.approx(10 * sum(cosines) / 4 * math.exp(-4 / 72) / 2)


@pytest.mark.parametrize("name", ["cider_d", "bleu4", "rougeL_coco", "meteor_exact_stem"])
def test_five_thousand_captions_take_seconds(name: str) -> None:
    draw = Random(0)
    words = ["a", "the", "on", "in", *(f"word{number}" for number in range(400))]
    weights = [200, 80, 60, 60] + [1] * 400
    texts = [" ".join(draw.choices(words, weights, k=draw.randint(8, 14))) for _ in range(30_000)]
    outcomes = [Outcome(tuple(texts[at + 1 : at + 6]), (texts[at],)) for at in range(0, 30_000, 6)]
    began = process_time()
    assert value(name, outcomes) > 0.0
    assert process_time() - began < 30


# METEOR


class NoSynonyms:
    def synsets(self, _: str) -> list[str]:
        return []


def nltk_meteor(said: str, right: str) -> float:
    return float(single_meteor_score(right.split(), said.split(), wordnet=NoSynonyms()))


def brute_force_chunks(said: Sequence[str], right: Sequence[str]) -> int:
    """Every way to give words of the shorter text places in the longer one; the most connected, then fewest runs."""
    short, long = sorted((said, right), key=len)
    best = (0, 0)
    for places in permutations(range(len(long)), len(short)):
        links = [(at, to) for at, to in enumerate(places) if short[at] == long[to]]
        runs = sum((at - 1, to - 1) not in links for at, to in links)
        best = min(best, (-len(links), runs))
    return best[1]


small = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=6)


@settings(deadline=None)
@given(said=small, right=small)
def test_fewest_chunks_equals_brute_force(said: list[str], right: list[str]) -> None:
    assert fewest_chunks(said, right) == brute_force_chunks(said, right)


distinct = st.lists(
    st.sampled_from(["the", "dogs", "man", "running", "on", "red", "grass", "happily", "कुत्ता"]), min_size=1, unique=True
)


@settings(deadline=None)
@given(said=distinct, right=distinct, inflect=st.booleans())
def test_meteor_equals_nltk_without_repeats(said: list[str], right: list[str], inflect: bool) -> None:
    other = {"dogs": "dog", "running": "runs", "grass": "grasses"} if inflect else {}
    text, reference = " ".join(said), " ".join(other.get(word, word) for word in right)
    ours = value("meteor_exact_stem", [Outcome((reference,), (text,))])
    assert ours == pytest.approx(nltk_meteor(text, reference), abs=1e-9)


@settings(deadline=None)
@given(said=captions, right=captions)
def test_meteor_is_never_below_nltk(said: str, right: str) -> None:
    """Both connect equally many words, but nltk takes the last free one, so its runs may be more."""
    assert value("meteor_exact_stem", [Outcome((right,), (said,))]) >= nltk_meteor(said, right) - 1e-9


def test_meteor_takes_the_best_reference_and_the_mean() -> None:
    outcomes = [Outcome(("no", "two dogs ran", "so"), ("two dogs ran",)), Outcome(("a",), ("b",))]
    assert value("meteor_exact_stem", outcomes) == pytest.approx((1 - 0.5 / 27) / 2)


def test_meteor_of_endless_repeats_ends() -> None:
    text = " ".join(["a dog on the"] * 12)
    assert value("meteor_exact_stem", [Outcome((text,), (text,))]) == pytest.approx(1, abs=0.01)


# Variety


def test_variety_by_hand() -> None:
    outcomes = saying("a dog", "A dog.", "a man runs", "", "a dog", "")
    assert value("distinct_captions", outcomes) == 3 / 6
    assert value("vocabulary_used", outcomes) == 4.0


def test_seen_in_training_is_a_share() -> None:
    outcomes = [Outcome(("x",), ("y",), familiar=familiar) for familiar in (True, False, False, True, True)]
    assert value("seen_in_training", outcomes) == 3 / 5
    assert metric_named("seen_in_training").better == "lower"


def test_seen_in_training_must_be_told() -> None:
    with pytest.raises(DataError) as caught:
        score([Outcome(("x",), ("y",), familiar=False), Outcome(("x",), ("y",))], ["seen_in_training"])
    assert str(caught.value) == (
        "seen_in_training asks whether the best candidate stands in the training data, but example 2 of 2 has no "
        "familiar. Say True or False."
    )
    with pytest.raises(DataError, match=r"^seen_in_training compares what search found, but example 1 of 1 has no "):
        score([Outcome(("x",), familiar=False)], ["seen_in_training"])


def test_signatures_say_how_words_are_made() -> None:
    for name in ALL:
        assert "|tok:spaces, ends bare|case:lower|sixjars:" in metric_named(name).signature([])
    assert metric_named("bleu4").signature([]).startswith("bleu4|corpus|closest length|no smoothing|")
