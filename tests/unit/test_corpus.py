"""The examples of a recipe: splits, alignments, vectors, and the sentences for what is wrong with them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from sixjars.data.samples import make
from sixjars.errors import DataError
from sixjars.recipe import Recipe
from sixjars.tasks.corpus import corpus_of, vectors_of
from sixjars.tasks.reading import recipe_of


def recipe(**data: object) -> Recipe:
    sides = {"source": {"column": "en"}, "target": {"column": "de"}}
    return recipe_of({"task": "translation", "data": {**sides, **data}}, "a test")


def write(folder: Path, rows: Sequence[tuple[str, ...]], name: str = "pairs.tsv", header: str = "en\tde\tlinks") -> str:
    lines = [header, *("\t".join(row) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


PAIRS = [(f"word{number} cat", f"wort{number} katze", "0-0 1-1") for number in range(40)]


def test_a_fraction_is_held_out_and_nothing_is_lost_or_shared(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS)
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=3)
    parts = [corpus.train.sources, corpus.valid.sources, corpus.test.sources if corpus.test else []]
    assert [len(part) for part in parts] == [27, 10, 3]
    assert sorted(text for part in parts for text in part) == sorted(row[0] for row in PAIRS)
    again = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=3)
    other = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=4)
    assert again.valid.sources == corpus.valid.sources != other.valid.sources


def test_a_fraction_that_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS[:1])
    with pytest.raises(DataError, match=r"data\.valid: a fraction of 0\.5 leaves nothing to train on; .* has 1 rows\."):
        corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.5))


def test_links_between_words_become_links_between_tokens(tmp_path: Path) -> None:
    file = write(tmp_path, [("the cat, sits", "die katze sitzt", "0-0 1-1 2-2")] * 4)
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, alignment="links"))
    assert corpus.train.token_links(0) == ((0, 0), (1, 1), (2, 1), (3, 2))  # the comma is part of the second word
    batch = corpus.train.batches(guided=True).collate(torch.tensor([0]))
    assert batch.alignment is not None
    np.testing.assert_allclose(batch.alignment[0, 1].numpy(), [0, 0.5, 0.5, 0])
    assert not batch.alignment[0, 3].any()  # <stop> has no truth


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ("0:0", r"line 2: alignment '0:0' must be pairs like `0-0 1-2`\."),
        ("0-x", r"line 2: alignment '0-x' must be pairs like `0-0 1-2`\."),
        ("5-0", r"line 2: alignment 5-0 points outside the source, which has 2 words \(counted from 0\)\."),
        ("0-7", r"line 2: alignment 0-7 points outside the target, which has 2 words \(counted from 0\)\."),
    ],
)
def test_links_that_are_wrong(links: str, told: str, tmp_path: Path) -> None:
    file = write(tmp_path, [("a cat", "eine katze", links)] * 4)
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, alignment="links"))
    with pytest.raises(DataError, match=rf"pairs\.tsv, {told}"):
        _ = corpus.train.alignments


def test_vectors_of_a_file_reach_their_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat 1 2 3\nword1 4 5 6\nnobody 7 8 9\n", encoding="utf-8")
    file = write(tmp_path, PAIRS)
    made = recipe(folder=str(tmp_path), train=file, source={"column": "en", "vectors": "words.txt"})
    tokens = corpus_of(made).tokens
    rows, values = vectors_of(made, tokens)["source"]
    spelled = {number: tokens["source"].plain(token) for token, number in tokens["source"].vocabulary().items()}
    found = {spelled[int(row)]: value.tolist() for row, value in zip(rows, values, strict=True)}
    assert found == {"cat": [1, 2, 3], "word1": [4, 5, 6]}


def test_a_sample_keeps_its_parts_apart() -> None:
    made = recipe_of(
        {"task": "dialog", "data": {"sample": {"size": 50, "valid": 5, "test": 7}, "source": {}}}, "a test"
    )
    corpus = corpus_of(made)
    assert corpus.train.sources == [row["utterance"] for row in make("dialog", size=50, valid=5, test=7)["train"]]
    assert (len(corpus.valid), len(corpus.scored)) == (5, 7)


def test_texts_are_compared_as_they_are_tokenised(tmp_path: Path) -> None:
    """A letter in two Unicode forms is one letter, in outputs and in right answers."""
    file = write(tmp_path, [("a  cat", "क\u093c", ""), ("b", "\u0958", ""), ("c", "d", ""), ("e", "f", "")])
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25))
    hindi = [text for text in corpus.train.targets + corpus.valid.targets if text not in "df"]
    assert hindi[0] == hindi[1]
    assert "a cat" in corpus.train.sources + corpus.valid.sources


def test_made_up_vectors_are_for_the_source() -> None:
    letters = {"tokens": "characters"}
    sides = {"source": letters, "target": {**letters, "vectors": "sample"}}
    made = recipe_of(
        {"task": "transliteration", "data": {"sample": {"size": 30, "valid": 3, "test": 3}, **sides}}, "a test"
    )
    with pytest.raises(
        DataError, match="the made-up vectors know none of these words; `vectors: sample` is for the source"
    ):
        vectors_of(made, corpus_of(made).tokens)
