"""The examples of a recipe: splits, alignments, vectors, and the sentences for what is wrong with them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from sixjars.data.samples import make
from sixjars.errors import DataError
from sixjars.flow import Encoded, Hypothesis
from sixjars.model.network import Network
from sixjars.recipe import Recipe
from sixjars.recipe.jars import EvaluationSettings, SearchSettings
from sixjars.tasks import scoring
from sixjars.tasks.corpus import corpus_of, facts_of
from sixjars.tasks.vectors import vectors_of
from sixjars.tasks.part import Part
from sixjars.tasks.parts import network_of
from sixjars.tasks.reading import recipe_of


def recipe(**data: object) -> Recipe:
    sides = {"source": {"column": "en"}, "target": {"column": "de"}}
    return recipe_of({"task": "translation", "data": {**sides, **data}}, "a test")


def write(folder: Path, rows: Sequence[tuple[str, ...]], name: str = "pairs.tsv", header: str = "en\tde\tlinks") -> str:
    lines = [header, *("\t".join(row) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return name


def sources(part: Part) -> list[str]:
    return [given["source"] for given in part.inputs]


PAIRS = [(f"word{number} cat", f"wort{number} katze", "0-0 1-1") for number in range(40)]


def test_a_fraction_is_held_out_and_nothing_is_lost_or_shared(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS)
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=3)
    assert corpus.test is not None
    parts = [sources(part) for part in (corpus.train, corpus.valid, corpus.test)]
    assert [len(part) for part in parts] == [27, 10, 3]
    assert sorted(text for part in parts for text in part) == sorted(row[0] for row in PAIRS)
    again = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=3)
    other = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25, test=0.1), seed=4)
    assert sources(again.valid) == sources(corpus.valid) != sources(other.valid)


def test_rows_with_the_same_input_are_held_out_together(tmp_path: Path) -> None:
    """Several translations of one sentence: none is learned from while another is held out."""
    file = write(tmp_path, [(f"word{n % 10} cat", f"wort{n} katze", "0-0") for n in range(40)])
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.2, test=0.25), seed=1)
    assert corpus.test is not None
    parts = [sources(part) for part in (corpus.train, corpus.valid, corpus.test)]
    assert [len(part) for part in parts] == [24, 8, 8]  # 2 of 10 inputs, then 2 of 8
    assert [len(set(part)) for part in parts] == [6, 2, 2]
    assert len(set().union(*parts)) == 10
    kept = [int(text.split()[0].removeprefix("wort")) for text in corpus.train.targets]
    assert kept == sorted(kept)


def test_a_column_may_tell_the_parts_apart(tmp_path: Path) -> None:
    named = ("train", "dev", "elsewhere", "train")
    file = write(tmp_path, [(f"word{n} cat", "katze", named[n % 4]) for n in range(12)], header="en\tde\tpart")
    split = {"column": "part", "valid": "dev"}
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, split=split))
    assert sources(corpus.train) == [f"word{n} cat" for n in range(12) if n % 4 in (0, 3)]
    assert sources(corpus.valid) == [f"word{n} cat" for n in range(12) if n % 4 == 1]
    assert corpus.test is None
    assert corpus.scored.where == f"the valid part of {tmp_path / file}"


def test_a_language_model_holds_out_rows(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("the same line\n" * 20, encoding="utf-8")
    data = {"folder": str(tmp_path), "train": "lines.txt", "valid": 0.25, "target": {"column": 1}}
    corpus = corpus_of(recipe_of({"task": "language_model", "data": data}, "a test"))
    assert (len(corpus.train), len(corpus.valid)) == (15, 5)


def test_a_fraction_that_leaves_nothing(tmp_path: Path) -> None:
    file = write(tmp_path, PAIRS[:1])
    with pytest.raises(DataError, match=r"data\.valid: a fraction of 0\.5 leaves nothing .* has 1 inputs\."):
        corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.5))


def test_links_between_words_become_links_between_tokens(tmp_path: Path) -> None:
    file = write(tmp_path, [("the cat, sits", "die katze sitzt", "0-0 1-1 2-2")] * 4)
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links"))
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
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=file, alignment="links"))
    with pytest.raises(DataError, match=rf"pairs\.tsv, {told}"):
        _ = corpus.train.alignments


def test_vectors_of_a_file_reach_their_words(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("cat 1 2 3\nword1 4 5 6\nnobody 7 8 9\n", encoding="utf-8")
    file = write(tmp_path, PAIRS)
    made = recipe(folder=str(tmp_path), train=file, source={"column": "en", "vectors": "words.txt"})
    tokens = corpus_of(made).tokens
    rows, values = vectors_of(made, tokens)["source"]
    kept = corpus_of(made).train.text("source")
    spelled = {number: kept.plain(token) for token, number in kept.vocabulary().items()}
    found = {spelled[int(row)]: value.tolist() for row, value in zip(rows, values, strict=True)}
    assert found == {"cat": [1, 2, 3], "word1": [4, 5, 6]}


def test_a_sample_keeps_its_parts_apart() -> None:
    made = recipe_of(
        {"task": "dialog", "data": {"sample": {"size": 50, "valid": 5, "test": 7}, "source": {}}}, "a test"
    )
    corpus = corpus_of(made)
    assert sources(corpus.train) == [row["utterance"] for row in make("dialog", size=50, valid=5, test=7)["train"]]
    assert (len(corpus.valid), len(corpus.scored)) == (5, 7)


def test_texts_are_compared_as_they_are_tokenised(tmp_path: Path) -> None:
    """A letter in two Unicode forms is one letter, in outputs and in right answers."""
    file = write(tmp_path, [("a  cat", "क\u093c", ""), ("b", "\u0958", ""), ("c", "d", ""), ("e", "f", "")])
    corpus = corpus_of(recipe(folder=str(tmp_path), train=file, valid=0.25))
    hindi = [text for text in corpus.train.targets + corpus.valid.targets if text not in "df"]
    assert hindi[0] == hindi[1]
    assert "a cat" in sources(corpus.train) + sources(corpus.valid)


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


WIDTH, HEIGHT = 12, 8
COLOURS = ("red", "green", "blue", "white")


def pictured(folder: Path, lines: Sequence[dict[str, Any]], **data: object) -> Recipe:
    """Captions of pictures of one colour each, in JSON lines."""
    for name in COLOURS:
        Image.new("RGB", (WIDTH, HEIGHT), name).save(folder / f"{name}.png")
    (folder / "captions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    files = {"folder": str(folder), "train": "captions.jsonl", "valid": "captions.jsonl"}
    fields = {"image": {"size": 8}, "target": {"column": "caption"}}
    model = {"encoder": {"backbone": {"widths": [4]}}, "bridge": {"size": 3}, "decoder": {"size": 5}}
    return recipe_of({"task": "image_captioning", "data": {**files, **fields, **data}, "model": model}, "a test")


def captions(*names: str) -> list[dict[str, Any]]:
    return [{"image": f"{name}.png", "caption": f"all is {name}", "boxes": "2:0,0,0.5,0.5"} for name in names]


def test_pictures_reach_the_rows_that_name_them(tmp_path: Path) -> None:
    corpus = corpus_of(pictured(tmp_path, captions("red", "blue", "red", "white")))
    batch = corpus.train.batches().collate(torch.tensor([3, 0, 2]))
    assert corpus.train.inputs[3] == {"image": "white.png"}
    pixels = batch.inputs["image"].values.view(3, 3, 8, 8)
    assert batch.inputs["image"].mask.tolist() == [[True]] * 3
    assert [pixels[row, :, 4, 4].tolist() for row in range(3)] == [[255, 255, 255], [255, 0, 0], [255, 0, 0]]


def test_a_bad_picture_is_an_error_unless_it_may_be_skipped(tmp_path: Path) -> None:
    lines = captions("red", "broken", "blue", "gone", "broken", "green")
    (tmp_path / "broken.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"^There is no file 'gone\.png' in "):
        corpus_of(pictured(tmp_path, lines))
    with pytest.raises(DataError, match=r"^broken\.png is not a picture, or damaged from its first bytes"):
        corpus_of(pictured(tmp_path, [line for line in lines if line["image"] != "gone.png"]))
    corpus = corpus_of(pictured(tmp_path, lines, on_bad_row="skip"))
    assert [given["image"] for given in corpus.train.inputs] == ["red.png", "blue.png", "green.png"]
    assert corpus.train.targets == ["all is red", "all is blue", "all is green"]
    assert (corpus.train.skipped, corpus.skipped) == (3, 6)
    assert corpus.train.table.line(2) == 6


def test_no_picture_is_left(tmp_path: Path) -> None:
    made = pictured(tmp_path, captions("gone", "lost"), on_bad_row="skip")
    with pytest.raises(DataError, match=r"captions\.jsonl: no image file is left; There is no file 'gone\.png' in "):
        corpus_of(made)


def test_boxes_are_read(tmp_path: Path) -> None:
    lines = captions("red", "blue", "green")
    lines[1]["boxes"] = ""
    lines[2]["boxes"] = "0:0,0,1,1 2:-0.5,0.25,0.5,1.5"
    corpus = corpus_of(pictured(tmp_path, lines, boxes="boxes"))
    assert corpus.train.boxes == [
        ((2, 0.0, 0.0, 0.5, 0.5),),
        (),
        ((0, 0.0, 0.0, 1.0, 1.0), (2, -0.5, 0.25, 0.5, 1.5)),
    ]
    assert corpus_of(pictured(tmp_path, lines)).train.boxes is None


@pytest.mark.parametrize(
    "text",
    [
        *("2", "2:1,2,3", "2:0,0,1,1,1", "x:0,0,1,1", "2:0,0,a,1", "2:nan,0,1,1"),
        *("2:0.5,0,0.5,1", "2:0,1,1,0", "2:1,0,1.5,1", "2:0,-1,1,0"),
    ],
)
def test_boxes_that_are_none(text: str, tmp_path: Path) -> None:
    lines = captions("red", "blue")
    lines[1]["boxes"] = text
    part = corpus_of(pictured(tmp_path, lines, boxes="boxes")).train
    with pytest.raises(DataError) as error:
        _ = part.boxes
    assert str(error.value) == (
        f"{tmp_path / 'captions.jsonl'}, line 2: boxes {text!r} must be like `2:0.1,0.1,0.4,0.3`: "
        "word, left, top, right, bottom."
    )


@pytest.mark.parametrize("word", [3, -1])
def test_a_box_of_a_word_that_is_not_there(word: int, tmp_path: Path) -> None:
    lines = captions("red", "blue")
    lines[0]["boxes"] = f"{word}:0,0,1,1"
    part = corpus_of(pictured(tmp_path, lines, boxes="boxes")).train
    with pytest.raises(DataError) as error:
        _ = part.boxes
    assert str(error.value) == (
        f"{tmp_path / 'captions.jsonl'}, line 1: a box belongs to word {word}, but the target has 3 (counted from 0)."
    )


def network_for(made: Recipe) -> Network:
    return network_of(made.model, facts_of(made, corpus_of(made).tokens))


def test_boxes_of_words_that_were_cut_off_do_not_count(tmp_path: Path) -> None:
    short = {"target": {"column": "caption", "max_length": 2}}
    made = pictured(tmp_path, captions("red", "blue"), boxes="boxes", **short)
    part = corpus_of(made).train
    assert part.boxes == [((2, 0.0, 0.0, 0.5, 0.5),)] * 2
    outcomes = scoring.outcomes_of(network_for(made), part, EvaluationSettings(), ["object_focus"])
    assert [outcome.focus for outcome in outcomes] == [None, None]
    whole = pictured(tmp_path, captions("red", "blue"), boxes="boxes")
    outcomes = scoring.outcomes_of(network_for(whole), corpus_of(whole).train, EvaluationSettings(), ["object_focus"])
    assert all(outcome.focus is not None and outcome.focus > 0 for outcome in outcomes)


def test_a_picture_with_several_captions_is_searched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        {"image": f"{name}.png", "caption": [f"all is {name}", f"{name} everywhere", f"all is {name}"]}
        for name in COLOURS
    ]
    made = pictured(tmp_path, lines)
    part, network = corpus_of(made).train, network_for(made)
    assert len(part) == 12
    searched: list[int] = []
    found_by = scoring.found_by

    def counting(network: Network, encoded: Encoded, *rest: Any, **more: Any) -> list[list[Hypothesis]]:
        searched.append(encoded.rows)
        return found_by(network, encoded, *rest, **more)

    monkeypatch.setattr(scoring, "found_by", counting)
    settings = EvaluationSettings(search=SearchSettings(max_length=4), group=True, batch_examples=3)
    together = scoring.outcomes_of(network, part, settings, ["bleu4"])
    assert searched == [3, 1]
    assert [outcome.references for outcome in together] == [(f"all is {n}", f"{n} everywhere") for n in COLOURS]
    apart = scoring.outcomes_of(network, part, settings.model_copy(update={"group": False}), ["bleu4"])
    assert sum(searched) == 4 + 12
    assert [outcome.candidates for outcome in together] == [outcome.candidates for outcome in apart[::3]]
