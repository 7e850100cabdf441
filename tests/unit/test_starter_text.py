"""What `sixjars new` writes for texts: tokens, vectors, lengths, losses, and the model that goes with them."""

import importlib.util
from collections.abc import Sequence
from typing import Any

import pytest

from sixjars.data.text.statistics import suggested_tokens
from sixjars.starter.sections import EXTRA_WORDS, MISSING

from .starters import LABELS, Start, Starter
from .starters import start as start

HAS_VECTORS = importlib.util.find_spec("wordllama") is not None
ENGLISH = "the film is a story of people in a town"
CHINESE = "这部电影的故事很好看我非常喜欢它的音乐"


def labelled(count: int, classes: int = 2) -> list[tuple[str, str]]:
    return [(f"Invoice {n} is late and wrong", f"class{n % classes}") for n in range(count)]


def classified(start: Start, rows: Sequence[tuple[str, str]]) -> Starter:
    return start(LABELS, [("text", "label"), *rows])


def of_texts(start: Start, texts: Sequence[str]) -> Starter:
    return classified(start, [(text, f"class{n % 2}") for n, text in enumerate(texts)])


def test_labels_are_learned_from_words_and_pairs_of_words(start: Start) -> None:
    starter = classified(start, labelled(300))
    model = starter.recipe.model
    assert (model.encoder["kind"], model.bridge["kind"]) == ("bag", "pooling")
    assert model.bridge["join_summary"]
    size = model.encoder["embedding"]["size"] + model.encoder["ngrams"]["size"]
    assert model.decoder["size"] == size
    assert starter.setting("source", "tokens") == "words"
    assert starter.setting("source", "lowercase")
    assert starter.recipe.loss.smoothing == 0.0


def test_unbalanced_labels_are_not_weighted_but_hinted_at(start: Start) -> None:
    rows = [*labelled(300, classes=1), *[(text, "rare") for text, _ in labelled(20)]]
    starter = classified(start, rows)
    assert starter.recipe.loss.class_weights is None
    assert "class_weights: balanced finds more of them" in starter.text


@pytest.mark.parametrize(
    ("count", "classes", "expected"),
    [(300, 2, (16, 2**18, 0.5)), (300, 40, (40, 2**18, 0.5)), (10_000, 2, (4, 2**20, 0.7))],
)
def test_the_evidence_fits_rows_and_classes(
    count: int, classes: int, expected: tuple[Any, ...], start: Start
) -> None:
    ngrams = classified(start, labelled(count, classes)).recipe.model.encoder["ngrams"]
    assert (ngrams["size"], ngrams["buckets"], ngrams["dropout"]) == expected


def test_labels_that_a_row_has_several_of_are_counted_one_by_one(start: Start) -> None:
    """Not every list of them: 31 of 5 labels."""
    lists = [", ".join(f"label{at}" for at in range(5) if n >> at & 1) for n in range(1, 32)]
    starter = classified(start, [(f"Invoice {n} is late", lists[n % 31]) for n in range(300)])
    assert starter.setting("label", "multi_label")
    assert starter.recipe.model.encoder["ngrams"]["size"] == 16


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Hello, my friend. ", 120), ('<p style="color:#000;margin:0">Hello,</p><br/>', 23 * 20)],
)
def test_marks_are_tokens_too(text: str, expected: int, start: Start) -> None:
    """Of mails in HTML; of prose two tokens a word are enough."""
    starter = of_texts(start, [f"{text * 20} {n}" for n in range(40)])
    assert expected < starter.setting("source", "max_length") < 1.1 * expected


@pytest.mark.parametrize(("count", "folds"), [(90, 5), (900, 5), (1_000, 3), (6_000, None)])
def test_few_labelled_texts_are_cross_validated(
    count: int, folds: int | None, start: Start
) -> None:
    recipe = classified(start, labelled(count)).recipe
    assert recipe.learning.folds == folds
    assert (recipe.data.test is None) == (folds is not None)


@pytest.mark.skipif(not HAS_VECTORS, reason="the extra vectors is not installed")
@pytest.mark.parametrize(
    ("row", "vectors"),
    [
        (("How are you?", "Wie geht es dir?"), ("wordllama", EXTRA_WORDS)),
        (("आप कैसे हैं?", "How are you?"), (None, 0)),
    ],
)
def test_vectors_are_chosen_for_texts_in_latin_letters(
    row: tuple[str, str], vectors: tuple[Any, ...], start: Start
) -> None:
    starter = start("translation", [("source", "target"), *[row] * 40])
    chosen = (starter.setting("source", "vectors"), starter.setting("source", "extra_words"))
    assert chosen == vectors
    assert starter.recipe.model.decoder["tied"]


def test_without_the_package_a_note_says_what_to_install(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.starter.sections.find_spec", lambda name: None)
    starter = classified(start, labelled(300))
    assert MISSING in starter.notes
    assert "pip install 'sixjars[vectors]'" in MISSING
    assert starter.setting("source", "vectors") is None


def test_pairs_are_compared_word_by_word(start: Start) -> None:
    rows = [(f"a dog runs {n}", f"a dog sleeps {n}", "no" if n % 2 else "yes") for n in range(200)]
    recipe = start("sentence_pair", [("sentence1", "sentence2", "label"), *rows]).recipe
    assert (recipe.model.encoder["compare"], recipe.model.bridge["kind"]) == ("words", "initial")
    assert recipe.loss.smoothing == 0.1


def test_pairs_have_one_vocabulary_and_one_length(start: Start) -> None:
    rows = [(f"a dog {n}", "a dog sleeps " * 30, "no" if n % 2 else "yes") for n in range(20)]
    starter = start("sentence_pair", [("sentence1", "sentence2", "label"), *rows])
    assert [starter.setting(f"sentence{n}", "max_length") for n in (1, 2)] == [180, 180]


def test_texts_without_spaces_are_read_to_their_ends(start: Start) -> None:
    """A bag has no recurrence, so that characters are as cheap as words; before, they were cut at 400."""
    starter = of_texts(start, [CHINESE * 30 + str(n) for n in range(200)])
    assert starter.recipe.model.encoder["kind"] == "bag"
    assert starter.setting("source", "tokens") == "characters"
    assert starter.setting("source", "vectors") is None
    assert len(CHINESE) * 30 < starter.setting("source", "max_length") <= 2_000


def test_columns_of_mixed_scripts_are_read_in_subwords(start: Start) -> None:
    """As a whole word, a text without spaces would be unknown."""
    texts = [CHINESE[n % 7 :] if n % 3 == 0 else f"{ENGLISH} {n}" for n in range(300)]
    starter = of_texts(start, texts)
    assert starter.setting("source", "tokens") == "unigram"
    assert starter.setting("source", "vectors") is None
    few = [f"{CHINESE} and {ENGLISH}" if n < 15 else ENGLISH for n in range(300)]
    assert of_texts(start, few).setting("source", "tokens") == "words"


def test_the_script_is_that_of_texts_from_all_over_the_data(start: Start) -> None:
    """Two languages may come one after the other, or take turns."""
    english = [f"{ENGLISH} {n}" for n in range(2_500)]
    hindi = ["आप कैसे हैं मेरे दोस्त"] * 2_500
    turns = [text for pair in zip(english, hindi, strict=True) for text in pair]
    for texts in (english + hindi, turns):
        assert of_texts(start, texts).setting("source", "vectors") is None


def test_outputs_of_many_words_are_written_in_subwords() -> None:
    few = [f"word{number % 500}" for number in range(4_000)]
    many = [f"word{number}" for number in range(6_000)]
    assert suggested_tokens(few, tokens="words", long=False)["tokens"] == "words"
    suggested = suggested_tokens(many, tokens="words", long=False)
    assert (suggested["tokens"], suggested["size"]) == ("unigram", 4_000)


@pytest.mark.parametrize(
    ("count", "share"), [(2, "third"), (3, "quarter"), (4, "fifth"), (90, "sixth")]
)
def test_what_one_model_takes_of_the_time_of_all(count: int, share: str, start: Start) -> None:
    told = " ".join(classified(start, labelled(count)).notes)
    assert f"For one model in about a {share} of the time write `folds: null`" in told
