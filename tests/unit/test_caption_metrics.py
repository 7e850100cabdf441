"""Caption metrics against the COCO tools and sums done by hand."""

import math
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from random import Random
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocoevalcap.bleu.bleu import Bleu
from pycocoevalcap.cider.cider import Cider
from pycocoevalcap.rouge.rouge import Rouge

from sixjars.evaluation.metrics import Outcome, caption_words, metric_named, score, why_zero

from .scoring import outputs, value

WORDS = ("a", "the", "dog", "dogs", "man", "runs", "running", "on", "red", "कुत्ता")


def captions_of(words: Sequence[str]) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(words), min_size=1, max_size=9).map(" ".join)


def corpora_of(words: Sequence[str]) -> st.SearchStrategy[list[Outcome]]:
    texts = captions_of(words)
    several = st.lists(texts, min_size=1, max_size=4).map(tuple)
    return st.lists(
        st.builds(Outcome, references=several, candidates=st.tuples(texts)), min_size=1, max_size=8
    )


corpora = corpora_of(WORDS)
BLEUS = ("bleu1", "bleu2", "bleu3", "bleu4")
ALL = (*BLEUS, "rougeL_coco", "cider_d", "distinct_captions", "vocabulary_used")


def for_coco(outcomes: Sequence[Outcome]) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    rights = {number: list(outcome.references) for number, outcome in enumerate(outcomes)}
    return rights, {number: [outcome.candidates[0]] for number, outcome in enumerate(outcomes)}


@pytest.mark.parametrize(
    ("name", "reference", "output", "short"),
    [
        ("bleu", "yes", "yes", "output and no reference has 4 words, and it needs 4"),
        ("bleu", "I am fine.", "I am fine.", None),  # the full stop is a token of its own
        ("bleu4", "I am fine.", "I am fine.", "output and no reference has 4 words, and it needs 4"),
        ("bleu4", "a dog runs on", "a dog runs", "output has 4 words, and it needs 4"),
        ("bleu4", "a dog runs", "a dog runs on", "reference has 4 words, and it needs 4"),
        ("bleu4", "a dog runs on", "the red man runs", None),  # 0 for another reason
        ("bleu2", "dog", "dog", "output and no reference has 2 words, and it needs 2"),
        ("rougeL_coco", "dog", "man", None),
    ],
)  # fmt: skip
def test_why_bleu_is_0_of_short_texts(
    name: str, reference: str, output: str, short: str | None
) -> None:
    outcomes, metric = [Outcome((reference,), (output,))], metric_named(name)
    told = f"{name} is 0 because no {short} in a row; compare exact_match, chrf or rougeL instead."
    found = [*why_zero([metric], score(outcomes, [metric]), outcomes)]
    assert found == ([told] if short else [])


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
    plain = Outcome(("a dog runs on a road", "the dog"), ("one dog runs on a road",))
    dressed = Outcome(("A dog runs, on a road.", "The DOG!"), ("One dog runs on a 'road' .",))
    expected = value(name, [plain, *outputs("a man")])
    assert value(name, [dressed, *outputs("a man -")]) == expected != 0.0


# BLEU


def matches(outcome: Outcome, n: int) -> bool:
    words = outcome.candidates[0].split()
    pieces = [" ".join(words[start : start + n]) for start in range(len(words) - n + 1)]
    return any(f" {piece} " in f" {text} " for piece in pieces for text in outcome.references)


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
    """6 words, the nearest have 5 + 2. Right: words 4 + 1, pairs 3 + 0 of 4, triples 1 of 2."""
    outcomes = [
        Outcome(("the the dog runs on", "a dog"), ("a dog runs on",)),
        Outcome(("a man", "a man runs here"), ("man man",)),
    ]
    brevity, (one, two, three) = 100 * math.exp(1 - 7 / 6), (5 / 6, 3 / 4, 1 / 2)
    means = one, (one * two) ** (1 / 2), (one * two * three) ** (1 / 3), 0
    found = [value(name, outcomes) for name in BLEUS]
    assert found == pytest.approx([brevity * mean for mean in means])


def test_the_shorter_of_two_equally_near_references_counts() -> None:
    longer, shorter = "a dog runs fast", "a dog"
    both = value("bleu1", [Outcome((longer, shorter), ("a dog runs",))])
    assert both == pytest.approx(100.0)
    alone = value("bleu1", [Outcome((longer,), ("a dog runs",))])
    assert alone == pytest.approx(100 * math.exp(1 - 4 / 3))


# ROUGE-L


@settings(deadline=None)
@given(outcomes=st.one_of(corpora, corpora_of(("a", "dog", "runs"))))
def test_rouge_equals_the_coco_tools(outcomes: list[Outcome]) -> None:
    expected, _ = Rouge().compute_score(*for_coco(outcomes))
    assert value("rougeL_coco", outcomes) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("texts", [("", "a"), ("a", ""), ("", ""), (".", "."), ("a", "b")])
@pytest.mark.parametrize("name", ["rougeL_coco", "cider_d", *BLEUS])
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
    """Four words of six: each cosine is its share's root, and two words too many cost e^(-4/72)."""
    outcomes = [Outcome(("a b c d",), ("a b c d y z",)), Outcome(("p q r s",), ("t",))]
    cosines = [math.sqrt(4 / 6), math.sqrt(3 / 5), math.sqrt(2 / 4), math.sqrt(1 / 3)]
    expected = 10 * sum(cosines) / 4 * math.exp(-4 / 72) / 2
    assert value("cider_d", outcomes) == pytest.approx(expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cider_d", "bleu4", "rougeL_coco"])
def test_five_thousand_captions_take_seconds(name: str) -> None:
    draw = Random(0)
    words = ["a", "the", "on", "in", *(f"word{number}" for number in range(400))]
    weights = [200, 80, 60, 60] + [1] * 400
    texts = [" ".join(draw.choices(words, weights, k=draw.randint(8, 14))) for _ in range(30_000)]
    outcomes = [Outcome(tuple(texts[at + 1 : at + 6]), (texts[at],)) for at in range(0, 30_000, 6)]
    began = process_time()
    assert value(name, outcomes) > 0.0
    assert process_time() - began < 30


def test_signatures_have_how_words_are_split() -> None:
    signatures = {found.name: found.signature for found in score(outputs("a dog"), ALL)}
    for signature in signatures.values():
        assert "|tok:spaces, ends bare|case:lower|sixjars:" in signature
    assert signatures["bleu4"].startswith("bleu4|corpus|closest length|no smoothing|")
