"""The data of a recipe: splits, alignments, vectors, and what is wrong with them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

import sixjars
from sixjars.data.batches import Batches, EmptyColumn, IdColumn
from sixjars.data.dataset import Dataset
from sixjars.data.storage.cache import Examples
from sixjars.data.text.tokenizer import TextTokenizer
from sixjars.errors import DataError
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.duplicates import numbered, paired
from sixjars.runs.data.splits import Splits, splits_of
from sixjars.runs.evaluate import evaluate
from sixjars.runs.recipes import Blueprint, recipe_of
from sixjars.runs.training.network import add_vectors
from sixjars.samples import generate
from sixjars.samples.video_files import write_video

from .tokenizers import vocabulary


def recipe(**data: object) -> Recipe:
    sides = {"source": {"column": "en"}, "target": {"column": "de"}}
    return recipe_of({"task": "translation", "data": {**sides, **data}}, "a test")


def splits(made: Recipe) -> Splits:
    return splits_of(Blueprint.of(made))


def vectors(made: Recipe, name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of the embedding, and their pretrained vectors."""
    blueprint = Blueprint.of(made)
    fields = splits_of(blueprint).fields
    facts = fields.facts()
    add_vectors(blueprint, fields, facts)
    rows, values = facts[name]["vectors"]
    return rows, values


def write(
    folder: Path,
    rows: Sequence[tuple[str, ...]],
    name: str = "pairs.tsv",
    header: str = "en\tde\tlinks",
) -> str:
    lines = [header, *("\t".join(row) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def sources(dataset: Dataset) -> list[str]:
    return [given["source"] for given in dataset.inputs]


PAIRS = [(f"word{number} cat", f"wort{number} katze", "0-0 1-1") for number in range(40)]


def test_rows_that_are_also_in_the_training_set_are_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same input with another target is another row."""
    changed = [(source, f"{target} hund", links) for source, target, links in PAIRS]
    file, other = write(tmp_path, PAIRS), write(tmp_path, [*PAIRS[:3], *changed], "other.tsv")
    write(tmp_path, [*changed, PAIRS[0]] * 3, "one.tsv")
    write(tmp_path, changed * 3 + PAIRS[:1], "few.tsv")
    end = " also in the training set, so a score on them says little of new ones."

    def told(**named: object) -> list[str]:
        found = splits(recipe(folder=str(tmp_path), **{"train": file, "valid": 0.25, **named}))
        return [
            note for split in (found.valid, found.test) if split is not None for note in split.notes
        ]

    assert told() == told(test=0.1) == told(valid="few.tsv") == []
    assert told(test=file) == [f"30 of the 40 test rows are{end}"]
    expected = [f"all 40 validation rows are{end}", f"3 of the 43 test rows are{end}"]
    assert told(valid=file, test=other) == expected
    assert told(valid="one.tsv") == [f"3 of the 123 validation rows are{end}"]
    monkeypatch.setattr("sixjars.runs.data.duplicates.MOST", 39)
    assert told(valid=file) == []


def test_rows_that_a_column_puts_into_two_splits_are_told_of(tmp_path: Path) -> None:
    rows = [
        (f"word{n}", f"wort{n}", part)
        for n in range(30)
        for part in (("a", "b") if n < 10 else ("ab"[n % 2],))
    ]
    file = write(tmp_path, rows, header="en\tde\tpart")
    split = {"column": "part", "train": "a", "valid": "b"}
    [note] = splits(recipe(folder=str(tmp_path), train=file, split=split)).valid.notes
    assert note.startswith("10 of the 20 validation rows are also in the training set, so ")


def test_a_fraction_is_held_out_and_nothing_is_lost_or_shared(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS)
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1, seed=3))
    assert corpus.test is not None
    texts = [sources(dataset) for dataset in (corpus.train, corpus.valid, corpus.test)]
    assert [len(some) for some in texts] == [27, 10, 3]
    assert sorted(text for some in texts for text in some) == sorted(row[0] for row in PAIRS)
    again = splits(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1, seed=3))
    other = splits(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1, seed=4))
    assert sources(again.valid) == sources(corpus.valid) != sources(other.valid)


def test_rows_with_the_same_input_are_held_out_together(tmp_path: Path) -> None:
    """Several translations of one sentence: none is learned from while another is held out."""
    file = write(tmp_path, [(f"word{n % 10} cat", f"wort{n} katze", "0-0") for n in range(40)])
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=0.2, test=0.25, seed=1))
    assert corpus.test is not None
    texts = [sources(dataset) for dataset in (corpus.train, corpus.valid, corpus.test)]
    assert [len(some) for some in texts] == [24, 8, 8]  # 2 of 10 inputs, then 2 of 8
    assert [len(set(some)) for some in texts] == [6, 2, 2]
    assert len(set().union(*texts)) == 10
    kept = [int(text.split()[0].removeprefix("wort")) for text in corpus.train.targets]
    assert kept == sorted(kept)


def test_pairs_in_another_order_are_held_out_together() -> None:
    """Whether A follows from B, and B from A: none is learned from where one is held out."""

    def groups(*rows: str) -> list[int]:
        one = Examples.of(
            {"a": [row[0] for row in rows], "b": [row[1] for row in rows]}, where="here"
        )
        found: list[int] = paired(one, ["a", "b"], numbered(one, ["a"])).tolist()
        return found

    expected = [0, 0, 0, 1, 1, 1, 2, 3, 4]
    assert groups("xy", "yx", "xz", "pq", "pr", "qp", "kl", "mn", "oo") == expected
    # all of them are connected, so only mirrored rows are together
    ring = [f"{n}{(n + 1) % 9}" for n in range(9)]
    assert groups(*ring, *(row[::-1] for row in ring)) == [*range(9), *range(9)]


NAMES = ("train", "dev", "elsewhere", "train", "exam")


def with_split_column(folder: Path, count: int = 15) -> str:
    """Pairs whose third column says which split they belong to."""
    rows = [(f"word{n} cat", f"wort{n % 3} katze", NAMES[n % 5]) for n in range(count)]
    return write(folder, rows, header="en\tde\tset")


def test_a_column_may_tell_the_splits_apart(tmp_path: Path) -> None:
    """Rows with other values are in none of them."""
    file = with_split_column(tmp_path)
    corpus = splits(
        recipe(folder=str(tmp_path), train=file, split={"column": "set", "valid": "dev"})
    )
    assert sources(corpus.train) == [f"word{n} cat" for n in range(15) if n % 5 in (0, 3)]
    assert sources(corpus.valid) == [f"word{n} cat" for n in (1, 6, 11)]
    assert corpus.test is None
    assert corpus.scored.where == f"the validation set of {tmp_path / file}"
    split = {"column": "set", "valid": "elsewhere", "test": "exam"}
    tested = splits(
        recipe(folder=str(tmp_path), train=file, split=split, filter={"de": "wort2 katze"})
    )
    assert tested.test is not None
    expected = [["word5 cat", "word8 cat"], ["word2 cat"], ["word14 cat"]]
    assert [sources(dataset) for dataset in (tested.train, tested.valid, tested.test)] == expected
    assert tested.scored.where == f"the test set of {tmp_path / file}"


def test_a_split_that_no_row_belongs_to(tmp_path: Path) -> None:
    file = with_split_column(tmp_path)
    told = r"pairs\.tsv: no row is left of 15; 0 were bad and 15 did not fit"
    with pytest.raises(DataError, match=told):
        splits(recipe(folder=str(tmp_path), train=file, split={"column": "set"}))
    told = r"pairs\.tsv: column 'split' is unknown\. Known: de, en, set\."
    with pytest.raises(DataError, match=told):
        splits(recipe(folder=str(tmp_path), train=file, split={}))


def test_a_run_whose_splits_are_told_apart_by_a_column_is_loaded_again(tmp_path: Path) -> None:
    data = {
        "folder": str(tmp_path),
        "train": with_split_column(tmp_path, 40),
        "split": {"column": "set", "valid": "dev", "test": "exam"},
        "source": {"column": "en"},
        "target": {"column": "de"},
    }
    values = {
        "task": "translation",
        "data": data,
        "model": {"encoder": {"size": 8}, "bridge": {"kind": "initial"}, "decoder": {"size": 8}},
        "learning": {"steps": 3, "batch_examples": 8},
        "evaluation": {"search": {"max_length": 4}, "metrics": ["exact_match"]},
    }
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(values))
    trained = sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "run")
    assert (trained.examples, trained.where) == (8, f"the test set of {tmp_path / 'pairs.tsv'}")
    again = evaluate(tmp_path / "run")
    assert (again.examples, again.where) == (trained.examples, trained.where)
    said = sixjars.load(tmp_path / "run").predict(["word0 cat", "word1 cat", "word2 cat"])
    # Only the training set teaches words.
    assert [found.source[0] for found in said] == ["word0", "<unk:word1>", "<unk:word2>"]
    sixjars.train(tmp_path / "recipe.yaml", out=tmp_path / "run", resume=True)
    assert evaluate(tmp_path / "run", data=tmp_path / "pairs.tsv").examples == 40


def test_a_language_model_holds_out_rows(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("the same line\n" * 20, encoding="utf-8")
    data = {"folder": str(tmp_path), "train": "lines.txt", "valid": 0.25, "target": {"column": 1}}
    corpus = splits(recipe_of({"task": "language_model", "data": data}, "a test"))
    assert (len(corpus.train), len(corpus.valid)) == (15, 5)


def test_a_fraction_that_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS[:1])
    told = r"data\.valid: a fraction of 0\.5 leaves nothing .* has 1 input\."
    with pytest.raises(DataError, match=told):
        splits(recipe(folder=str(tmp_path), train=file, valid=0.5))


def test_links_between_words_become_links_between_tokens(tmp_path: Path) -> None:
    file = write(tmp_path, [("the cat, sits", "die katze sitzt", "0-0 1-1 2-2")] * 4)
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links"))
    # the comma belongs to the second word
    assert corpus.train.guides[0].tolist() == [[0, 0], [1, 1], [2, 1], [3, 2]]
    batch = corpus.train.batches(guided=True).collate(torch.tensor([0]))
    assert batch.alignment is not None
    np.testing.assert_allclose(batch.alignment[0, 1].numpy(), [0, 0.5, 0.5, 0])
    assert not batch.alignment[0, 3].any()  # <stop> has no truth


def test_rows_are_tokenized_once_and_not_in_every_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links between words need the tokens of each; guided attention reads them in every batch."""
    file = write(tmp_path, PAIRS)
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links"))
    seen: list[str] = []
    real = TextTokenizer.word_index

    def counted(self: TextTokenizer, texts: Sequence[str]) -> list[list[int]]:
        seen.extend(texts)
        return real(self, texts)

    monkeypatch.setattr(TextTokenizer, "word_index", counted)
    batches = corpus.train.batches(batch_examples=8, guided=True, training=True)
    for epoch in range(3):
        for update in batches.plan(epoch=epoch):
            assert all(batches.collate(rows).alignment is not None for rows in update)
    assert sorted(seen) == sorted(text for row in PAIRS for text in row[:2])


@pytest.mark.parametrize(
    ("links", "told"),
    [
        ("0:0", r"line 2: alignment '0:0' must be pairs like `0-0 1-2`\."),
        ("0-x", r"line 2: alignment '0-x' must be pairs like `0-0 1-2`\."),
        (
            "5-0",
            r"line 2: alignment 5-0 points outside the source, which has 2 words \(counted from "
            r"0\)\.",
        ),
        (
            "0-7",
            r"line 2: alignment 0-7 points outside the target, which has 2 words \(counted from "
            r"0\)\.",
        ),
    ],
)
def test_links_that_are_wrong(links: str, told: str, tmp_path: Path) -> None:
    file = write(tmp_path, [("a cat", "eine katze", links)] * 4)
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links"))
    with pytest.raises(DataError, match=rf"pairs\.tsv, {told}"):
        _ = corpus.train.alignments


def test_possible_links_are_read_and_do_not_guide(tmp_path: Path) -> None:
    file = write(tmp_path, [("a cat", "eine katze", "0-0 1?1")] * 4)
    train = splits(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links")).train
    assert train.alignments is not None
    assert train.alignments[0] == (frozenset({(0, 0)}), frozenset({(1, 1)}))
    assert train.guides[0].tolist() == [[0, 0]]


def test_vectors_of_a_file_reach_their_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat 1 2 3\nword1 4 5 6\nnobody 7 8 9\n", encoding="utf-8")
    file = write(tmp_path, PAIRS)
    data: dict[str, object] = {"folder": str(tmp_path), "train": file, "valid": file}
    data |= {"source": {"column": "en", "vectors": "words.txt"}, "target": {"column": "de"}}
    model = {"encoder": {"embedding": {"size": 3}}}
    made = recipe_of({"task": "translation", "data": data, "model": model}, "a test")
    rows, values = vectors(made, "source")
    kept = splits(made).fields.all["source"].tokenizer  # type: ignore[attr-defined]
    spelled = {number: kept.plain(token) for token, number in vocabulary(kept).items()}
    found = {spelled[int(row)]: value.tolist() for row, value in zip(rows, values, strict=True)}
    assert found == {"cat": [1, 2, 3], "word1": [4, 5, 6]}


def test_a_sample_keeps_its_splits_apart() -> None:
    made = recipe_of(
        {"task": "dialog", "data": {"sample": {"size": 50, "valid": 5, "test": 7}, "source": {}}},
        "a test",
    )
    corpus = splits(made)
    assert sources(corpus.train) == [
        row["utterance"] for row in generate("dialog", size=50, valid=5, test=7)["train"]
    ]
    assert (len(corpus.valid), len(corpus.scored)) == (5, 7)


def test_texts_are_compared_as_they_are_tokenised(tmp_path: Path) -> None:
    """A letter in two Unicode forms is one letter, in outputs and in right answers."""
    file = write(
        tmp_path, [("a  cat", "क\u093c", ""), ("b", "\u0958", ""), ("c", "d", ""), ("e", "f", "")]
    )
    corpus = splits(recipe(folder=str(tmp_path), train=file, valid=0.25))
    hindi = [text for text in corpus.train.targets + corpus.valid.targets if text not in "df"]
    assert hindi[0] == hindi[1]
    assert "a cat" in sources(corpus.train) + sources(corpus.valid)


def test_synthetic_vectors_are_for_the_source() -> None:
    letters = {"tokens": "characters"}
    sides = {"source": letters, "target": {**letters, "vectors": "sample"}}
    made = recipe_of(
        {
            "task": "transliteration",
            "data": {"sample": {"size": 30, "valid": 3, "test": 3}, **sides},
        },
        "a test",
    )
    told = "the synthetic vectors know none of these words; `vectors: sample` is for the source"
    with pytest.raises(DataError, match=told):
        vectors(made, "target")


def test_labels_of_which_none_was_learned_are_refused(tmp_path: Path) -> None:
    for name, label in (("train", "Yes"), ("train", "No"), ("valid", "yes")):
        video = tmp_path / f"{name}{label}.mp4"
        write_video(video, np.zeros((3, 16, 16, 3), dtype=np.uint8), rate=3.0)
        with (tmp_path / f"{name}.tsv").open("a") as rows:
            rows.write(f"{video.name}\t{label}\n")
    data: dict[str, object] = {"folder": str(tmp_path), "train": "train.tsv", "valid": "valid.tsv"}
    data |= {"video": {"column": 1, "size": 16, "frames": 2}, "label": {"column": 2}}
    made = recipe_of({"task": "video_classification", "data": data}, "a test")
    told = r"none of its labels \('yes', ...\) is among those that were learned"
    with pytest.raises(DataError, match=told):
        _ = splits(made).valid.usable


def test_unlisted_labels_are_not_trained_on() -> None:
    labels = IdColumn((np.array([1, 0, 1], dtype=np.int32), np.array([0, 1, 1, 2, 3])), narrowest=1)
    usable = np.array([True, False, True, True])
    batches = Batches({"source": EmptyColumn(4)}, labels, usable=usable, batch_examples=2)
    planned = torch.cat([rows for group in batches.plan(epoch=0) for rows in group])
    assert sorted(planned.tolist()) == [0, 2, 3]
    assert sorted(torch.cat(batches.in_order(2)).tolist()) == [0, 1, 2, 3]


def test_weights_of_files_are_for_training_alone(tmp_path: Path) -> None:
    files = [{"file": with_split_column(tmp_path), "weight": 2}]
    split = {"column": "set", "valid": "dev", "test": "exam"}
    found = splits(recipe(folder=str(tmp_path), train=files, split=split))
    assert found.test is not None
    assert found.train.weights is not None
    assert found.valid.weights is found.test.weights is None
