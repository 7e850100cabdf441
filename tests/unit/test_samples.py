"""What every synthetic corpus promises: columns, splits, seeds, lengths, alignments."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any

import pytest

from sixjars.errors import DataError
from sixjars.recipe.files import overridden
from sixjars.samples import SAMPLES, Corpus, Row, generate, vectors

from .faults import entries

PAIRED = sorted(
    task for task, sample in SAMPLES.items() if len(sample.inputs) == 1 and not sample.media
)
VISUAL = sorted(task for task, sample in SAMPLES.items() if sample.media)
ALIGNED = [task for task in PAIRED if "alignment" in SAMPLES[task].truths]
WITH_VECTORS = ["translation", "transliteration"]


def tokens(sample: Corpus, text: str) -> list[str]:
    if sample.tokens in ("sentences", "turns"):
        return text.split("\n")
    return list(text) if sample.tokens == "characters" else text.replace("?", " ?").split()


def links(row: Row) -> list[tuple[int, int]]:
    pairs = (link.split("-") for link in row["alignment"].split())
    return [(int(source), int(target)) for source, target in pairs]


@pytest.fixture(scope="module")
def corpora() -> dict[str, list[Row]]:
    return {task: generate(task, size=1500, valid=0, test=0)["train"] for task in SAMPLES}


# Every corpus


def test_the_table_is_keyed_by_task() -> None:
    assert all(
        sample.task == task.split("/")[0] and sample.description.endswith(".")
        for task, sample in SAMPLES.items()
    )


@pytest.mark.parametrize("task", SAMPLES)
def test_rows_have_the_declared_columns_and_single_spaces(
    task: str, corpora: dict[str, list[Row]]
) -> None:
    sample = SAMPLES[task]
    columns = [*sample.inputs, sample.target, *sample.truths]
    assert list(sample.columns) == columns
    for row in corpora[task]:
        assert list(row) == columns
        for column, text in row.items():
            assert text or column in ("boxes", "rationale")
            assert text == "\n".join(" ".join(line.split()) for line in text.split("\n"))
            assert text.replace("I", "i") == text.lower()


@pytest.mark.parametrize("task", SAMPLES)
def test_splits_have_the_sizes_asked_for(task: str) -> None:
    splits = generate(task, size=60, valid=20, test=10)
    expected = {"train": 60, "valid": 20, "test": 10}
    assert {name: len(rows) for name, rows in splits.items()} == expected


@pytest.mark.parametrize("task", [task for task, sample in SAMPLES.items() if sample.inputs])
def test_no_source_is_in_two_splits_nor_a_row_twice_in_one(task: str) -> None:
    inputs = SAMPLES[task].inputs
    splits = _both_seeds(task)
    sources = [{row[inputs[0]] for row in rows} for rows in splits]
    assert all(not one & other for one, other in combinations(sources, 2))
    for train in (splits[0][:400], splits[0][400:]):  # of each seed
        assert len({tuple(row[column] for column in inputs) for row in train}) == 400


def _both_seeds(task: str) -> list[list[Row]]:
    made = [generate(task, size=400, valid=100, test=100, seed=seed) for seed in (0, 1)]
    return [made[0][name] + made[1][name] for name in ("train", "valid", "test")]


@pytest.mark.parametrize("task", SAMPLES)
def test_a_larger_training_set_leaves_the_rest_as_it_was(task: str) -> None:
    few, many = (generate(task, size=size, valid=10, test=10) for size in (20, 50))
    assert few["valid"] == many["valid"]
    assert few["test"] == many["test"]
    assert few["train"] == many["train"][:20]


def test_another_seed_is_another_corpus() -> None:
    for task in SAMPLES:
        one, other = (
            generate(task, size=50, valid=5, test=5, seed=seed)["test"] for seed in (0, 1)
        )
        assert one != other


def test_every_process_makes_the_same_corpus_without_torch() -> None:
    code = (
        "import sys, json; from sixjars.samples import *; assert not {'torch', 'PIL', 'av'} "
        "& set(sys.modules);"
        "made = [generate(t, size=40, valid=5, test=5, seed=3) for t in SAMPLES],"
        f" [vectors(t, size=4) for t in {WITH_VECTORS}]; print(json.dumps(made))"
    )
    here = (
        [generate(t, size=40, valid=5, test=5, seed=3) for t in SAMPLES],
        [vectors(t, size=4) for t in WITH_VECTORS],
    )
    for salt in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": salt}
        out = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, check=True
        ).stdout
        assert json.loads(out) == json.loads(json.dumps(here))


@pytest.mark.parametrize("task", PAIRED)
def test_one_source_has_one_target(task: str) -> None:
    sample, rng = SAMPLES[task], Random(5)
    assert sample.longest is not None
    seen: dict[str, Row] = {}
    for _ in range(3000):
        row = sample.draw(rng, sample.longest)
        assert seen.setdefault(row[sample.inputs[0]], row) == row


@pytest.mark.parametrize("task", PAIRED)
@pytest.mark.parametrize("more", [0, 5, 40])
def test_inputs_keep_to_longest_and_come_near_it(task: str, more: int) -> None:
    sample = SAMPLES[task]
    longest = sample.shortest + more
    rng = Random(0)
    lengths = [len(tokens(sample, sample.draw(rng, longest)[sample.inputs[0]])) for _ in range(400)]
    assert max(lengths) <= longest
    assert max(lengths) >= longest - 12


@pytest.mark.parametrize("task", ALIGNED)
def test_alignments_are_in_range_and_sorted_and_cover_the_target(
    task: str, corpora: dict[str, list[Row]]
) -> None:
    sample = SAMPLES[task]
    answers_own = (
        "yes no , . ? i do not am a lot at all of course will that nice to meet you how is".split()
    )
    for row in corpora[task]:
        source, target = tokens(sample, row[sample.inputs[0]]), tokens(sample, row[sample.target])
        pairs = links(row)
        assert pairs == sorted(set(pairs))
        assert all(s < len(source) and t < len(target) for s, t in pairs)
        free = {target[t] for t in range(len(target))} - {target[t] for _, t in pairs}
        assert free <= (set(answers_own) if task == "dialog" else set())


@pytest.mark.slow
def test_a_hundred_thousand_sentences_and_fifty_thousand_words() -> None:
    for task, wanted in (("translation", 100_000), ("transliteration", 50_000)):
        sample, rng = SAMPLES[task], Random(0)
        assert sample.longest is not None
        distinct: set[str] = set()
        for _ in range(3 * wanted):
            distinct.add(sample.draw(rng, sample.longest)[sample.inputs[0]])
            if len(distinct) == wanted:
                break
        assert len(distinct) == wanted


# What is refused

REFUSED = """
translaton
    sample 'translaton' is unknown. Did you mean 'translation'? Known: conversation, dialog, …
pointing  kind=tour
    kind of the pointing sample 'tour' is unknown. Did you mean 'tours'? Known: hull, sorting,
    tours.
translation  kind=tours
    The translation sample is of one kind, but kind 'tours' is asked for. Remove `kind`.
dialog  valid=-1
    The valid split of the dialog sample must have 0 rows or more, but -1 are asked for.
transliteration  longest=3
    'longest' of the transliteration sample must be 4 characters or more, but is 3.
pointing  longest=4
    'longest' of the pointing sample must be 5 points or more, but is 4.
pointing  longest=21
    'longest' of the pointing sample must be 20 points or fewer, but is 21.
pointing  kind=hull  longest=4
    'longest' of the pointing sample must be 5 points or more, but is 4.
pointing  kind=sorting  longest=2
    'longest' of the pointing sample must be 3 points or more, but is 2.
language_model  longest=9
    The language_model sample takes no 'longest' (got 9): its true perplexity holds for whole draws.
    Remove it.
image_captioning  longest=9
    The image_captioning sample takes no 'longest' (got 9): images have no length in words. Remove
    it.
video_classification  longest=9
    The video_classification sample takes no 'longest' (got 9): videos have no length in words.
    Remove it.
entailment  size=5000  longest=4
    The train split of the entailment sample has no more than # different rows with at most 4 words,
    but 5000 are asked for. Ask for fewer, or for a greater 'longest'.
"""


@pytest.mark.parametrize(("what", "sentence"), entries(REFUSED))
def test_what_cannot_be_drawn_is_a_sentence(what: str, sentence: str) -> None:
    task, *words = what.split("  ")
    options: dict[str, Any] = overridden({"size": 1, "valid": 1, "test": 1}, words)
    with pytest.raises(DataError) as error:
        generate(task, **options)
    told = re.sub(r"than \d+ different", "than # different", str(error.value))
    assert told.startswith(sentence.removesuffix("…"))
    assert told == sentence or sentence.endswith("…")


@pytest.mark.parametrize(
    ("task", "size", "sentence"),
    [
        ("pointing", 4, "The pointing sample has no word vectors. Remove `vectors: sample`."),
        ("translaton", 4, "sample 'translaton' is unknown. Did you mean 'translation'? Known: con"),
        ("translation", 0, "A word vector must have 1 dimension or more, but 0 are asked for."),
    ],
)
def test_vectors_that_cannot_be_drawn_are_a_sentence(task: str, size: int, sentence: str) -> None:
    with pytest.raises(DataError, match=f"^{re.escape(sentence)}"):
        vectors(task, size=size)


def test_more_images_than_there_are_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    few = [f"red-circle-{x}-20-16.png" for x in range(20, 40)]
    drawn = replace(
        SAMPLES["image_captioning"],
        draw=lambda rng, _: {"image": rng.choice(few), "caption": "", "boxes": ""},
    )
    monkeypatch.setitem(SAMPLES, "image_captioning", drawn)
    with pytest.raises(
        DataError,
        match=r"^The test split of the image_captioning sample has no more than \d different rows, "
        r"but 20 are asked for\. Ask for fewer\.$",
    ):
        generate("image_captioning", size=0, valid=0, test=20)
