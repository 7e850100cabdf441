"""What `sixjars new` writes for texts: tokens, vectors, lengths, losses, and the model that goes with them."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sixjars.data.text.statistics import suggested_tokens
from sixjars.recipe.sections import Recipe
from sixjars.runs.recipes import read_recipe
from sixjars.starter.sections import EXTRA_WORDS, MISSING
from sixjars.starter.write import new, started

HAS_VECTORS = importlib.util.find_spec("wordllama") is not None


def table(path: Path, rows: Sequence[tuple[str, ...]], header: str) -> Path:
    path.write_text("\n".join([header, *("\t".join(row) for row in rows)]) + "\n", encoding="utf-8")
    return path


def recipe_for(folder: Path, task: str, rows: Sequence[tuple[str, ...]], header: str) -> Recipe:
    new(folder / "mine.yaml", task=task, data=table(folder / "mine.tsv", rows, header))
    return read_recipe(str(folder / "mine.yaml"))


def labelled(count: int, classes: int = 2) -> list[tuple[str, ...]]:
    return [
        (f"Invoice {number} is late and wrong", f"class{number % classes}")
        for number in range(count)
    ]


def setting(recipe: Recipe, field: str, key: str) -> Any:
    return recipe.data.fields[field].model_dump()[key]


def test_labels_are_learned_from_words_and_pairs_of_words(tmp_path: Path) -> None:
    recipe = recipe_for(tmp_path, "document_classification", labelled(300), "text\tlabel")
    assert recipe.model.encoder["kind"] == "bag"
    assert recipe.model.bridge["kind"] == "pooling"
    assert recipe.model.bridge["join_summary"]
    size = recipe.model.encoder["embedding"]["size"] + recipe.model.encoder["ngrams"]["size"]
    assert recipe.model.decoder["size"] == size
    assert setting(recipe, "source", "tokens") == "words"
    assert setting(recipe, "source", "lowercase")
    assert recipe.loss.smoothing == 0.0


def test_unbalanced_labels_are_not_weighted_but_hinted_at(tmp_path: Path) -> None:
    rows = [*labelled(300, classes=1), *[(text, "rare") for text, _ in labelled(20)]]
    recipe = recipe_for(tmp_path, "document_classification", rows, "text\tlabel")
    assert recipe.loss.class_weights is None
    assert "class_weights: balanced finds more of them" in (tmp_path / "mine.yaml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    ("count", "classes", "expected"),
    [(300, 2, (16, 2**18, 0.5)), (300, 40, (40, 2**18, 0.5)), (10_000, 2, (4, 2**20, 0.7))],
)
def test_the_evidence_fits_rows_and_classes(
    count: int, classes: int, expected: tuple[Any, ...], tmp_path: Path
) -> None:
    ngrams = recipe_for(
        tmp_path, "document_classification", labelled(count, classes), "text\tlabel"
    ).model.encoder["ngrams"]
    assert (ngrams["size"], ngrams["buckets"], ngrams["dropout"]) == expected


def test_labels_that_a_row_has_several_of_are_counted_one_by_one(tmp_path: Path) -> None:
    """Not every list of them: 31 of 5 labels."""
    lists = [
        ", ".join(f"label{at}" for at in range(5) if number >> at & 1) for number in range(1, 32)
    ]
    rows = [(f"Invoice {number} is late", lists[number % 31]) for number in range(300)]
    recipe = recipe_for(tmp_path, "document_classification", rows, "text\tlabel")
    assert setting(recipe, "label", "multi_label")
    assert recipe.model.encoder["ngrams"]["size"] == 16


def test_marks_are_tokens_too(tmp_path: Path) -> None:
    """Of mails in HTML; of prose two tokens a word are enough."""
    html = '<p style="color:#000;margin:0">Hello,</p><br/>' * 20
    for text, expected in (("Hello, my friend. " * 20, 120), (html, 23 * 20)):
        folder = tmp_path / str(expected)
        folder.mkdir()
        rows = [(f"{text} {number}", "ab"[number % 2]) for number in range(40)]
        length = setting(
            recipe_for(folder, "document_classification", rows, "text\tlabel"),
            "source",
            "max_length",
        )
        assert expected < length < 1.1 * expected


def test_few_labelled_texts_are_cross_validated(tmp_path: Path) -> None:
    for count, folds in ((90, 5), (900, 5), (1_000, 3), (6_000, None)):
        folder = tmp_path / str(count)
        folder.mkdir()
        recipe = recipe_for(folder, "document_classification", labelled(count), "text\tlabel")
        assert recipe.learning.folds == folds
        assert (recipe.data.test is None) == (folds is not None)


@pytest.mark.skipif(not HAS_VECTORS, reason="the extra vectors is not installed")
def test_vectors_are_chosen_for_texts_in_latin_letters(tmp_path: Path) -> None:
    recipe = recipe_for(
        tmp_path, "translation", [("How are you?", "Wie geht es dir?")] * 40, "source\ttarget"
    )
    assert setting(recipe, "source", "vectors") == "wordllama"
    assert setting(recipe, "source", "extra_words") == EXTRA_WORDS
    assert recipe.model.decoder["tied"]
    (tmp_path / "other").mkdir()
    recipe = recipe_for(
        tmp_path / "other", "translation", [("आप कैसे हैं?", "How are you?")] * 40, "source\ttarget"
    )
    assert setting(recipe, "source", "vectors") is None
    assert recipe.model.decoder["tied"]


def test_without_the_package_a_note_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sixjars.starter.sections.find_spec", lambda name: None)
    data = table(tmp_path / "mine.tsv", labelled(300), "text\tlabel")
    notes = started(tmp_path / "mine.yaml", task="document_classification", data=data).notes
    assert MISSING in notes
    assert "pip install 'sixjars[vectors]'" in MISSING
    assert setting(read_recipe(str(tmp_path / "mine.yaml")), "source", "vectors") is None


def test_pairs_are_compared_word_by_word(tmp_path: Path) -> None:
    rows = [
        (f"a dog runs {number}", f"a dog sleeps {number}", "no" if number % 2 else "yes")
        for number in range(200)
    ]
    recipe = recipe_for(tmp_path, "sentence_pair", rows, "sentence1\tsentence2\tlabel")
    assert recipe.model.encoder["compare"] == "words"
    assert recipe.model.bridge["kind"] == "initial"
    assert recipe.loss.smoothing == 0.1


ENGLISH, CHINESE = (
    "the film is a story of people in a town",
    "这部电影的故事很好看我非常喜欢它的音乐",
)


def test_texts_without_spaces_are_read_to_their_ends(tmp_path: Path) -> None:
    """A bag has no recurrence, so that characters are as cheap as words; before, they were cut at 400."""
    rows = [(CHINESE * 30 + str(number), f"class{number % 2}") for number in range(200)]
    recipe = recipe_for(tmp_path, "document_classification", rows, "text\tlabel")
    assert recipe.model.encoder["kind"] == "bag"
    assert (setting(recipe, "source", "tokens"), setting(recipe, "source", "vectors")) == (
        "characters",
        None,
    )
    assert len(CHINESE) * 30 < setting(recipe, "source", "max_length") <= 2_000


def test_columns_of_mixed_scripts_are_read_in_subwords(tmp_path: Path) -> None:
    """As a whole word, a text without spaces would be unknown."""
    texts = [
        CHINESE[number % 7 :] if number % 3 == 0 else f"{ENGLISH} {number}" for number in range(300)
    ]
    rows = [(text, f"class{number % 2}") for number, text in enumerate(texts)]
    recipe = recipe_for(tmp_path, "document_classification", rows, "text\tlabel")
    assert (setting(recipe, "source", "tokens"), setting(recipe, "source", "vectors")) == (
        "unigram",
        None,
    )
    (tmp_path / "few").mkdir()
    few = [
        (f"{CHINESE} and {ENGLISH}" if number < 15 else ENGLISH, f"class{number % 2}")
        for number in range(300)
    ]
    recipe = recipe_for(tmp_path / "few", "document_classification", few, "text\tlabel")
    assert setting(recipe, "source", "tokens") == "words"


def test_the_script_is_that_of_texts_from_all_over_the_data(tmp_path: Path) -> None:
    """Two languages may come one after the other, or take turns."""
    english = [(f"{ENGLISH} {number}", f"class{number % 2}") for number in range(2_500)]
    hindi = [("आप कैसे हैं मेरे दोस्त", f"class{number % 2}") for number in range(2_500)]
    turns = [row for pair in zip(english, hindi, strict=True) for row in pair]
    for name, rows in (("after", english + hindi), ("turns", turns)):
        (tmp_path / name).mkdir()
        recipe = recipe_for(tmp_path / name, "document_classification", rows, "text\tlabel")
        assert setting(recipe, "source", "vectors") is None


def test_outputs_of_many_words_are_written_in_subwords() -> None:
    few = [f"word{number % 500}" for number in range(4_000)]
    many = [f"word{number}" for number in range(6_000)]
    assert suggested_tokens(few, tokens="words", long=False)["tokens"] == "words"
    found = suggested_tokens(many, tokens="words", long=False)
    assert (found["tokens"], found["size"]) == ("unigram", 4_000)


@pytest.mark.parametrize(
    ("count", "share"), [(2, "third"), (3, "quarter"), (4, "fifth"), (90, "sixth")]
)
def test_what_one_model_takes_of_the_time_of_all(count: int, share: str, tmp_path: Path) -> None:
    data = table(tmp_path / "mine.tsv", labelled(count), "text\tlabel")
    notes = started(tmp_path / "mine.yaml", task="document_classification", data=data).notes
    assert any(
        f"For one model in about a {share} of the time write `folds: null`" in note
        for note in notes
    )
