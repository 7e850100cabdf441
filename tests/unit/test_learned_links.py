"""`data.alignment: learn`, and links in files of their own."""

import random
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sixjars
from sixjars.data.alignment import guides
from sixjars.data.alignment.aligner import DirectedLinks, aligned
from sixjars.data.alignment.guides import Guides, learned_links
from sixjars.errors import DataError, RecipeError
from sixjars.recipe.data import LinkFiles
from sixjars.recipe.sections import Recipe
from sixjars.runs.data.splits import Splits, notes_on, splits_of
from sixjars.runs.recipes import Blueprint, recipe_of

from .faults import check_fault, entries

DRAW = random.Random(0)
ROWS = [
    DRAW.sample(["house", "book", "tree", "river", "cloud", "stone", "bird", "fish"], 3)
    for _ in range(80)
]
FIRST = [" ".join(row) for row in ROWS]
SECOND = [" ".join(word[::-1] for word in row) for row in ROWS]
MODEL: dict[str, Any] = {
    "encoder": {"size": 4, "embedding": {"size": 4}},
    "bridge": {"kind": "attention", "size": 4},
    "decoder": {"size": 8, "embedding": {"size": 4}},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIXJARS_CACHE", str(tmp_path / "cache"))
    for split, rows in {
        "train": slice(0, 60),
        "valid": slice(60, 70),
        "test": slice(70, 80),
    }.items():
        for name, lines in (("a", FIRST), ("b", SECOND)):
            (tmp_path / f"{split}.{name}").write_text("".join(f"{line}\n" for line in lines[rows]))
    (tmp_path / "links").write_text("0-0 1-1 2?2\n" * 10)
    return tmp_path


def values(folder: Path, alignment: object, **changes: Any) -> dict[str, Any]:
    files = {split: {"a": f"{split}.a", "b": f"{split}.b"} for split in ("train", "valid", "test")}
    data = {"folder": str(folder), **files, "source": {"column": "a"}, "target": {"column": "b"}}
    found: dict[str, Any] = {
        "task": "translation",
        "model": MODEL,
        "learning": {"steps": 2, "batch_examples": 8, "metric": "bleu"},
        "evaluation": {"search": {"max_length": 4}},
        **changes,
    }
    return found | {"data": data | {"alignment": alignment} | found.pop("data", {})}


def made(folder: Path, alignment: object, **changes: Any) -> Recipe:
    return recipe_of(values(folder, alignment, **changes), "a test")


def splits(recipe: Recipe) -> Splits:
    return splits_of(Blueprint.of(recipe))


GUIDED = {"loss": {"guide": 0.5}}
SCORED = {"evaluation": {"metrics": ["bleu", "alignment_error_rate"], "search": {"max_length": 4}}}


def test_words_are_linked(folder: Path) -> None:
    recipe = made(folder, "learn", **GUIDED)
    assert recipe.data.alignment == LinkFiles(train="learn")
    assert recipe_of(recipe.model_dump(mode="json"), "what is kept of it").data == recipe.data
    train = splits(recipe).train
    assert train.alignments is None  # nothing is known to be true
    assert [train.guides[row].tolist() for row in range(60)] == [[[0, 0], [1, 1], [2, 2]]] * 60
    told = "60 pairs, 1.00 links a target word; 0% of source and 0% of target words without a link"
    assert train.guides.describe() == told


def test_words_that_are_cut_off_are_not_counted() -> None:
    guides = Guides()
    guides.add(frozenset((at, at) for at in range(4)), [0, 1, 1], [0, 1])
    told = "1 pair, 1.00 links a target word; 0% of source and 0% of target words without a link"
    assert guides.describe() == told


def test_the_diagonal_can_be_weak(folder: Path) -> None:
    """Each text from the last word to the first; such links are kept beside the usual ones."""
    path = folder / "train.b"
    lines = [" ".join(reversed(line.split())) for line in path.read_text().splitlines()]
    path.write_text("\n".join([*lines, ""]))
    right = [[0, 2], [1, 1], [2, 0]]

    def share(alignment: object) -> float:
        recipe = made(folder, alignment, **GUIDED)
        assert recipe_of(recipe.model_dump(mode="json"), "what is kept of it").data == recipe.data
        guides = splits(recipe).train.guides
        return sum(bool(guides[row].tolist() == right) for row in range(60)) / 60

    assert share({"train": "learn", "diagonal": 0}) == 1.0
    assert share("learn") < 1.0
    told = r"'diagonal' is for links that are learned; say `train: learn` beside it"
    with pytest.raises(RecipeError, match=told):
        made(folder, {"test": "links", "diagonal": 1})


def test_training_tells_of_the_alignment(folder: Path) -> None:
    told = list[Mapping[str, str]]()

    class Told(sixjars.Reporter):
        def summary(self, summary: Any) -> None:
            told.append(summary.facts)

        def note(self, sentence: str) -> None:
            told.append({"note": sentence})

    sixjars.train(values(folder, "learn", **GUIDED), out=folder / "guided", reporter=Told())
    assert told[0]["alignment"].startswith("60 pairs, 1.00 links a target word; ")
    assert not any("alignment" in one.get("note", "") for one in told)
    told.clear()
    sixjars.train(values(folder, "learn"), out=folder / "plain", reporter=Told())
    assert "alignment" not in told[0]
    assert told[1]["note"] == (
        "data.alignment: learn changes nothing here, because loss.guide is 0; say loss.guide: 0.5, "
        "or remove it."
    )


def test_an_explanation_does_not_call_learned_links_true(folder: Path) -> None:
    told = str(sixjars.explain(values(folder, "learn", **GUIDED)))
    assert "guided attention, where α* has the links that are learned (data.alignment)" in told
    learned_from = "links between words that are learned from the training set; they may be wrong"
    assert f"alignment: {learned_from}" in told
    true = str(sixjars.explain(values(folder, {"train": "links"}, **GUIDED)))
    assert "guided attention, where α* is the true attention" in true
    assert "alignment: links" not in true


@pytest.mark.parametrize("column", ["lern", "Learn", "leran"])
def test_a_misspelt_learn_is_no_column(column: str, folder: Path) -> None:
    """Of files beside one another, of a table with names, and of one with numbers."""
    told = r" For links that are learned, write `data\.alignment: learn`\.$"
    with pytest.raises(DataError, match=rf"column '{column}' is unknown\..*{told}"):
        splits(made(folder, column, **GUIDED))
    (folder / "pairs.tsv").write_text("a\tb\n" + "x y\tz w\n" * 5)
    table = {"train": "pairs.tsv", "valid": 0.2, "test": 0.2}
    with pytest.raises(DataError, match=rf"column '{column}' is unknown\..*{told}"):
        splits(made(folder, column, **GUIDED, data=table))
    numbers = {**table, "source": {"column": 1}, "target": {"column": 2}}
    with pytest.raises(DataError, match=rf"Columns are given by name \('{column}'\).*{told}"):
        splits(made(folder, column, **GUIDED, data=numbers))


def test_many_links_need_little_memory() -> None:
    """8 bytes for each link, and 8 for each row; tuples of numbers need 64 for each link."""
    guides, links = Guides(), frozenset((at, at) for at in range(20))
    for _ in range(2000):
        guides.add(links, range(20), range(20))
    assert sum(map(sys.getsizeof, vars(guides).values())) < 10 * 20 * 2000
    assert guides[1999].tolist() == [[at, at] for at in range(20)]


@pytest.mark.parametrize("tokens", ["bpe", "characters"])
def test_links_reach_smaller_tokens(folder: Path, tokens: str) -> None:
    """Pieces are linked where their words are; characters are aligned themselves."""
    side = {"tokens": tokens, "size": 40}
    data = {"source": {"column": "a", **side}, "target": {"column": "b", **side}}
    train = splits(made(folder, "learn", data=data, **GUIDED)).train
    source, target = train.source_words_index[0], train.target_words_index[0]
    links = train.guides[0].tolist()
    if tokens == "bpe":
        assert len(source) > 3
        places = product(range(len(source)), range(len(target)))
        assert sorted(links) == [[s, t] for s, t in places if source[s] == target[t]]
    else:
        first, second = train.inputs[0]["source"], train.targets[0]
        assert all(s < len(first) and t < len(second) for s, t in links)
        assert sum(first[s] == second[t] for s, t in links) > len(links) / 2


def test_links_that_were_learned_are_found_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, calls = learned_links(FIRST, SECOND), list[Any]()

    def align(first: Any, second: Any, diagonal: float) -> DirectedLinks:
        calls.append(first)
        return aligned(first, second, diagonal=diagonal)

    monkeypatch.setattr(guides, "aligned", align)
    again = learned_links(FIRST, SECOND)
    assert not calls
    assert [again.links(line) for line in range(80)] == [found.links(line) for line in range(80)]
    [path] = [one for one in (folder / "cache").iterdir() if len(one.name) == 64]
    for damaged in (path.read_bytes()[:-4], b"", b"\x93NUMPY", np.zeros(3).tobytes()):
        path.write_bytes(damaged)
        assert learned_links(FIRST, SECOND).links(0) == found.links(0)
    assert len(calls) == 4
    learned_links(FIRST[:-1], SECOND[:-1])
    learned_links(SECOND, FIRST)
    assert len(calls) == 6
    learned_links(FIRST, SECOND, diagonal=0.0)
    learned_links(FIRST, SECOND, diagonal=0.0)
    assert len(calls) == 7


def test_nothing_is_learned_where_nobody_needs_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("sixjars.data.alignment.guides.learned_links")
    sixjars.train(values(folder, "learn"), out=folder / "run")
    sixjars.evaluate(folder / "run")


def test_a_training_is_guided_and_scored(folder: Path) -> None:
    """The test set has true links, the training set learned ones, the validation set none."""
    recipe = values(folder, {"train": "learn", "test": "links"}, **GUIDED, **SCORED)
    run = sixjars.train(recipe, out=folder / "run")
    assert [score.name for score in run.scores] == ["bleu", "alignment_error_rate"]
    assert "alignment_error_rate" not in run.history[-1]
    assert sixjars.evaluate(folder / "run").scores[1].value == run.scores[1].value
    plain = sixjars.train(values(folder, {"test": "links"}, **SCORED), out=folder / "plain")
    assert plain.history[-1]["loss"] != run.history[-1]["loss"]
    told = r"the links of this run are in files .* metrics without alignment_error_rate\.$"
    with pytest.raises(DataError, match=told):
        sixjars.evaluate(folder / "run", data=folder / "more.tsv")


def test_possible_links_are_no_error(folder: Path) -> None:
    """Where every link is possible and none is sure, whatever attention does is right."""
    every = " ".join(f"{first}?{second}" for first in range(3) for second in range(3))
    (folder / "links").write_text(f"{every}\n" * 10)
    run = sixjars.train(values(folder, {"test": "links"}, **SCORED), out=folder / "run")
    assert run.scores[1].value == 0.0


def test_sentences_that_a_file_does_not_name_are_not_scored(folder: Path) -> None:
    every = [f"2 {first} {second} P\n" for first in range(1, 4) for second in range(1, 4)]
    (folder / "numbered").write_text("".join(every))
    found = {"test": "numbered"}
    run = sixjars.train(values(folder, found, **SCORED), out=folder / "run")
    assert run.scores[1].value == 0.0
    assert "|with links:1|" in run.scores[1].signature
    named = splits(made(folder, found)).fingerprints["test"]
    pharaoh = " ".join(f"{first}?{second}" for first in range(3) for second in range(3))
    (folder / "links").write_text(f"\n{pharaoh}\n" + "\n" * 8)
    assert splits(made(folder, {"test": "links"})).fingerprints["test"] != named


def test_learning_links_changes_no_data(folder: Path) -> None:
    """So a run is found to be of the same data, whatever the aligner finds on another machine."""
    learned, none = made(folder, "learn", **GUIDED), made(folder, None)
    assert splits(learned).fingerprints == splits(none).fingerprints


def test_links_in_files(folder: Path) -> None:
    (folder / "numbered").write_text("1 1 1 S\n1 2 3 P\n60 3 1\n")
    found = splits(made(folder, {"train": "numbered", "test": "links"}, **GUIDED, **SCORED))
    assert found.train.alignments is not None
    assert found.train.alignments[0] == (frozenset({(0, 0)}), frozenset({(1, 2)}))
    assert found.train.alignments[59] == (frozenset({(2, 0)}), frozenset())
    assert found.train.alignments[1] is None  # not named, so not known to have no links
    assert [found.train.guides[row].tolist() for row in (0, 1)] == [[[0, 0]], []]
    held = splits(made(folder, {"train": "numbered"}, data={"test": 0.5})).test
    assert held is not None
    assert held.alignments is not None
    assert held.alignments.count(None) >= len(held) - 2
    assert found.valid.alignments is None
    assert found.test is not None
    assert found.test.alignments is not None
    assert found.test.alignments[9] == (frozenset({(0, 0), (1, 1)}), frozenset({(2, 2)}))


def test_a_file_of_links_that_does_not_fit(folder: Path) -> None:
    with pytest.raises(DataError, match=r"links has links for 10 lines, but there are 60\.$"):
        splits(made(folder, {"train": "links"}, **GUIDED))
    with pytest.raises(DataError, match=r"linsk does not exist\. Did you mean 'links'\?"):
        splits(made(folder, {"test": "linsk"}))


def test_each_set_of_a_column_has_its_own_links(folder: Path) -> None:
    rows = [("train", 4), ("valid", 2), ("test", 3)]
    lines = [f"{FIRST[0]}\t{SECOND[0]}\t{name}\n" for name, count in rows for _ in range(count)]
    (folder / "all.tsv").write_text("".join(["a\tb\tset\n", *lines]))
    for at, (name, count) in enumerate(rows):
        (folder / f"{name}.links").write_text(f"{at}-0\n" * count)
    split = {"column": "set", "test": "test"}
    data = {"train": "all.tsv", "valid": None, "test": None, "split": split}
    files = {name: f"{name}.links" for name, _ in rows}
    found = splits(made(folder, files, data=data, **GUIDED, **SCORED))
    assert found.test is not None
    sets = zip((found.train, found.valid, found.test), (4, 2, 3), strict=True)
    for at, (dataset, count) in enumerate(sets):
        assert dataset.alignments == [(frozenset({(at, 0)}), frozenset())] * count
    with pytest.raises(RecipeError, match=r"data\.alignment\.test names no file"):
        made(folder, {"train": "train.links"}, data=data, **SCORED)
    data["split"] = {"column": "set"}
    told = r"^data\.alignment\.test: names a file .* data\.split\.test names no value, so th"
    with pytest.raises(DataError, match=told):
        splits(made(folder, {"test": "test.links"}, data=data))


def test_links_of_rows_that_are_left_out(folder: Path) -> None:
    lines = (folder / "test.a").read_text().splitlines()
    (folder / "test.a").write_text("\n".join(["", *lines[1:]]) + "\n")
    (folder / "numbered").write_text("2 1 1 S\n")
    end = r"so the links of numbered would be those of other rows; remove these rows .* column\.$"
    told = rf"^data\.alignment\.test: bad rows are skipped \(1\) of .*, {end}"
    with pytest.raises(DataError, match=told):
        splits(made(folder, {"test": "numbered"}, data={"on_bad_row": "skip"}))
    told = rf"^data\.alignment\.train: data\.filter leaves out rows of .*, {end}"
    with pytest.raises(DataError, match=told):
        splits(made(folder, {"train": "numbered"}, data={"filter": {"a": FIRST[0]}}))


@pytest.mark.parametrize("split", ["valid", "test"])
def test_links_of_a_set_that_has_no_file(folder: Path, split: str) -> None:
    told = rf"^data\.alignment\.{split}: names a file .* data\.{split} names no file; rem"
    with pytest.raises(DataError, match=told):
        splits(made(folder, {split: "links"}, data={split: 0.1}))


FAULTS = """
data.alignment={test: links}  loss.guide=0.5
    loss.guide: needs true alignments, but data.alignment.train names no file (`train: learn` learns
    them).
data.alignment=null  loss.guide=0.5
    loss.guide: needs true alignments, but data.alignment names no column; name one, or say
    data.alignment: learn, which aligns the words.
data.alignment=learn  loss.guide=0.5  evaluation.metrics=[bleu, alignment_error_rate]
    evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment.test names no
    file.
data.alignment={train: learn, test: links}  learning.metric=alignment_error_rate
    learning.metric: alignment_error_rate needs true alignments, but data.alignment.valid names no
    file.
data.alignment={train: links}  evaluation.metrics=[bleu, alignment_error_rate]
    evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment.test names no
    file.
data.alignment={train: learn, test: links}  learning={}  evaluation.metrics=[alignment_error_rate]
    learning.metric: alignment_error_rate needs true alignments, but data.alignment.valid names no
    file.
data.alignment={train: learn}  data.test=0.1  evaluation.metrics=[bleu, alignment_error_rate]
    evaluation.metrics: alignment_error_rate needs true alignments, but data.alignment.train names
    no file.
data.alignment={tain: learn}
    data.alignment: key 'tain' is unknown. Did you mean 'train'? Known: diagonal, test, train,
    valid.
"""


@pytest.mark.parametrize(("overrides", "sentence"), entries(FAULTS))
def test_links_that_are_missing(overrides: str, sentence: str, folder: Path) -> None:
    check_fault(values(folder, None), overrides, sentence)


def test_links_that_are_there(folder: Path) -> None:
    made(folder, {"train": "links"}, **SCORED, data={"test": 0.1})
    made(folder, "learn", loss={"guide": 1}, model={})


def test_texts_without_spaces_are_told(folder: Path) -> None:
    def told(alignment: object, **changes: Any) -> list[str]:
        notes = notes_on(splits(made(folder, alignment, **changes)))
        return [note for note in notes if "spaces" in note]

    assert told("learn", **GUIDED) == []
    path = folder / "train.b"
    path.write_text(path.read_text().replace(" ", ""))
    assert told("learn", **GUIDED) == [
        "data.alignment: learn links the words between spaces, but most texts of target are one "
        "word; separate the words by spaces, or say tokens: characters for both sides."
    ]
    side = {"tokens": "characters"}
    data = {"source": {"column": "a", **side}, "target": {"column": "b", **side}}
    assert told("learn", data=data, **GUIDED) == told(None) == []


def test_a_synthetic_corpus_can_be_aligned_too(tmp_path: Path) -> None:
    few = ["data.sample.size=40", "data.sample.valid=4", "data.sample.test=4", "learning.steps=1"]
    found = sixjars.read_recipe("translation/sample_guided", [*few, "data.alignment=learn"])
    train = splits(found).train
    assert train.alignments is not None  # the true ones
    true = [sorted(map(list, links.sure)) for links in train.alignments if links is not None]
    assert [train.guides[row].tolist() for row in range(len(train))] != true


def test_a_label_is_not_guided() -> None:
    """Its one attention is over the whole text, and links are between words."""
    recipe, overrides = "document_classification/sample_attention", ["data.alignment=learn"]
    told = r"loss\.guide: needs an output of words, each with its own attention, but doc"
    with pytest.raises(RecipeError, match=told):
        sixjars.read_recipe(recipe, [*overrides, "loss.guide=1"])
