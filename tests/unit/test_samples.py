"""What every synthetic corpus promises: columns, splits, seeds, lengths, alignments."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from sixjars.errors import DataError
from sixjars.samples import SAMPLES, Row, SyntheticCorpus, generate, vectors

PAIRED = sorted(task for task, sample in SAMPLES.items() if sample.source and not sample.second)
VISUAL = sorted(task for task, sample in SAMPLES.items() if sample.media)
ALIGNED = [task for task in PAIRED if SAMPLES[task].alignment]
WITH_VECTORS = ["translation", "transliteration"]


def tokens(sample: SyntheticCorpus, text: str) -> list[str]:
    if sample.tokens in ("sentences", "turns"):
        return text.split("\n")
    return list(text) if sample.tokens == "characters" else text.replace("?", " ?").split()


def links(row: Row) -> list[tuple[int, int]]:
    return [
        (int(source), int(target))
        for source, target in re.findall(r"(\d+)-(\d+)", row["alignment"])
    ]


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
    truths = (sample.alignment, sample.boxes, sample.rationale)
    inputs = (sample.source, sample.second, sample.media, sample.question)
    columns = [column for column in (*inputs, sample.target, *truths) if column]
    assert list(sample.columns) == columns
    for row in corpora[task]:
        assert list(row) == columns
        for column, text in row.items():
            assert text or column in (sample.boxes, sample.rationale)
            assert text == "\n".join(" ".join(line.split()) for line in text.split("\n"))
            assert text.replace("I", "i") == text.lower()


@pytest.mark.parametrize("task", SAMPLES)
def test_splits_have_the_sizes_asked_for(task: str) -> None:
    splits = generate(task, size=60, valid=20, test=10)
    expected = {"train": 60, "valid": 20, "test": 10}
    assert {name: len(rows) for name, rows in splits.items()} == expected


@pytest.mark.parametrize("task", PAIRED)
def test_no_source_is_in_two_splits_nor_twice_in_one(task: str) -> None:
    column = str(SAMPLES[task].source)
    splits = [[row[column] for row in rows] for rows in _both_seeds(task)]
    assert all(not set(one) & set(other) for one, other in combinations(splits, 2))
    assert len(splits[0]) == 800
    assert len(set(splits[0][:400])) == len(set(splits[0][400:])) == 400  # of each seed


@pytest.mark.parametrize("task", VISUAL)
def test_no_image_or_video_is_in_two_splits_nor_a_row_twice_in_one(task: str) -> None:
    sample = SAMPLES[task]
    splits = _both_seeds(task)
    names = [[row[str(sample.media)] for row in rows] for rows in splits]
    assert all(not set(one) & set(other) for one, other in combinations(names, 2))
    for train in (splits[0][:400], splits[0][400:]):  # of each seed
        assert len({tuple(row[column] for column in sample.inputs) for row in train}) == 400


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
        "import sys, json; from sixjars.samples import *; assert not {'torch', 'PIL', 'av', "
        "'yaml'} & set(sys.modules);"
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
    assert sample.source is not None
    assert sample.longest is not None
    seen: dict[str, Row] = {}
    for _ in range(3000):
        row = sample.draw(rng, sample.longest)
        assert seen.setdefault(row[sample.source], row) == row


@pytest.mark.parametrize("task", PAIRED)
@pytest.mark.parametrize("more", [0, 5, 40])
def test_inputs_keep_to_longest_and_come_near_it(task: str, more: int) -> None:
    sample = SAMPLES[task]
    longest = sample.shortest + more
    rng = Random(0)
    lengths = [
        len(tokens(sample, sample.draw(rng, longest)[str(sample.source)])) for _ in range(400)
    ]
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
        source, target = tokens(sample, row[str(sample.source)]), tokens(sample, row[sample.target])
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
            distinct.add(sample.draw(rng, sample.longest)[str(sample.source)])
            if len(distinct) == wanted:
                break
        assert len(distinct) == wanted


# What is refused


def test_an_unknown_task_is_named_with_the_nearest() -> None:
    for ask in (
        lambda: generate("translaton", size=1, valid=1, test=1),
        lambda: vectors("translaton", size=4),
    ):
        with pytest.raises(
            DataError,
            match=r"^sample 'translaton' is unknown\. Did you mean 'translation'\? Known: conversation, ",
        ):
            ask()


def test_a_negative_number_of_rows_is_refused() -> None:
    told = r"^The valid split of the dialog sample must have 0 rows or more, but -1 are asked"
    with pytest.raises(DataError, match=told):
        generate("dialog", size=1, valid=-1, test=1)


def test_too_short_a_limit_is_refused() -> None:
    told = r"^'longest' of the transliteration sample must be 4 characters or more, but is 3\.$"
    with pytest.raises(DataError, match=told):
        generate("transliteration", size=1, valid=1, test=1, longest=3)


def test_a_language_model_takes_no_limit() -> None:
    told = r"^The language_model sample takes no 'longest' \(got 9\): its true .* Remove it\.$"
    with pytest.raises(DataError, match=told):
        generate("language_model", size=1, valid=1, test=1, longest=9)


@pytest.mark.parametrize("task", VISUAL)
def test_images_and_videos_take_no_limit(task: str) -> None:
    reason = f"{task.split('_')[0]}s have no length in words"
    told = rf"^The {task} sample takes no 'longest' \(got 9\): {reason}\. Remove it\.$"
    with pytest.raises(DataError, match=told):
        generate(task, size=1, valid=1, test=1, longest=9)


@pytest.mark.parametrize("task", [task for task in SAMPLES if task not in WITH_VECTORS])
def test_samples_without_word_vectors_are_refused(task: str) -> None:
    told = f"^The {task} sample has no word vectors\\. Remove `vectors: sample`\\.$"
    with pytest.raises(DataError, match=told):
        vectors(task, size=4)


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


def test_more_rows_than_there_are_is_refused() -> None:
    words = r"^The train split of the entailment sample has no more than \d+ different rows with at most 4 words, "
    told = words + r"but 5000 are asked for\. Ask for fewer, or for a greater 'longest'\.$"
    with pytest.raises(DataError, match=told):
        generate("entailment", size=5000, valid=0, test=0, longest=4)


def test_an_empty_vector_is_refused() -> None:
    told = r"^A word vector must have 1 dimension or more, but 0 are asked for\.$"
    with pytest.raises(DataError, match=told):
        vectors("translation", size=0)
