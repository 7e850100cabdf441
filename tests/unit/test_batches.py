"""Batches: each row once, one plan for a seed, limits that count padding, tensors as of a loop."""

from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.data.alignment.guides import Guides
from sixjars.data.batches import DEFAULT_EXAMPLES, Batches, EmptyColumn, IdColumn, by_length
from sixjars.data.flat import Flat
from sixjars.data.packing import SegmentColumn
from sixjars_runtime.special_tokens import STOP

Pairs = list[tuple[list[int], list[int]]]


def flat(rows: list[list[int]]) -> Flat:
    ids = np.array(list(chain.from_iterable(rows)), dtype=np.int32)
    return ids, np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


def ids(rows: list[list[int]], *, stop: int | None = None) -> IdColumn:
    return IdColumn(flat(rows), stop=stop)


def pairs(count: int, *, seed: int = 0) -> Pairs:
    noise = np.random.default_rng(seed)
    return [
        ([4 + at] * int(noise.integers(1, 9)), [5] * int(noise.integers(0, 7)))
        for at in range(count)
    ]


def batches(
    rows: Pairs,
    *,
    seed: int = 0,
    batch_tokens: int | None = None,
    batch_examples: int | None = None,
) -> Batches:
    sources = ids([source for source, _ in rows])
    targets = ids([target for _, target in rows], stop=STOP)
    return Batches(
        {"source": sources},
        targets,
        seed=seed,
        batch_tokens=batch_tokens,
        batch_examples=batch_examples,
    )


def planned(found: Batches, epoch: int, accumulate: int = 1) -> list[list[int]]:
    return [
        rows.tolist() for group in found.plan(epoch=epoch, accumulate=accumulate) for rows in group
    ]


LIMITS = pytest.mark.parametrize(
    ("tokens", "examples"),
    [(None, None), (None, 7), (40, None), (1, None)],
    ids=["default", "examples", "tokens", "tiny"],
)


@LIMITS
@pytest.mark.parametrize("epoch", [0, 1, 5])
def test_every_row_exactly_once(tokens: int | None, examples: int | None, epoch: int) -> None:
    found = planned(batches(pairs(150), batch_tokens=tokens, batch_examples=examples), epoch)
    assert sorted(chain.from_iterable(found)) == list(range(150))
    assert all(found)


@LIMITS
def test_every_epoch_has_as_many_batches(tokens: int | None, examples: int | None) -> None:
    found = batches(pairs(150), batch_tokens=tokens, batch_examples=examples)
    for accumulate in (1, 3):
        counts = {len(found.plan(epoch=epoch, accumulate=accumulate)) for epoch in range(8)}
        assert counts == {found.updates_per_epoch(accumulate)}


def test_the_plan_depends_on_seed_and_epoch_and_nothing_else() -> None:
    rows = pairs(150)
    plan = planned(batches(rows, batch_tokens=40), 3)
    assert planned(batches(rows, batch_tokens=40), 3) == plan
    assert planned(batches(rows, batch_tokens=40), 4) != plan
    assert planned(batches(rows, batch_tokens=40, seed=1), 3) != plan
    np.random.seed(9)
    assert planned(batches(rows, batch_tokens=40), 3) == plan


def test_rows_of_equal_length_meet_others_in_another_epoch() -> None:
    found = batches([([4], [5])] * 60, batch_examples=10)
    assert {frozenset(rows) for rows in planned(found, 0)} != {
        frozenset(rows) for rows in planned(found, 1)
    }


@given(st.integers(0, 99), st.integers(1, 80))
def test_the_token_limit_counts_padding(seed: int, limit: int) -> None:
    rows = pairs(60, seed=seed)
    found = batches(rows, batch_tokens=limit)
    for numbers in planned(found, 0):
        source = max(len(rows[row][0]) for row in numbers)
        target = max(len(rows[row][1]) + 1 for row in numbers)
        assert len(numbers) == 1 or len(numbers) * (source + target) <= limit


def test_batches_are_as_full_as_the_limit_allows() -> None:
    assert sorted(
        len(rows) for rows in planned(batches([([4, 4], [5])] * 23, batch_tokens=40), 0)
    ) == [3, 10, 10]


def test_examples_are_the_limit_where_none_is_given() -> None:
    expected = [150 - 2 * DEFAULT_EXAMPLES, 64, 64]
    assert sorted(len(rows) for rows in planned(batches(pairs(150)), 0)) == expected


def test_like_lengths_stand_together() -> None:
    rows = pairs(300)
    lengths = [
        [len(rows[row][0]) for row in numbers]
        for numbers in planned(batches(rows, batch_examples=10), 0)
    ]
    assert max(max(found) - min(found) for found in lengths) <= 1


def test_groups_of_batches_make_one_update() -> None:
    found = batches(pairs(50), batch_examples=7)
    groups = found.plan(epoch=0, accumulate=3)
    assert [len(group) for group in groups] == [3, 3, 2]
    assert planned(found, 0, accumulate=3) == planned(found, 0)


@pytest.mark.parametrize("tokens", [None, 40])
def test_no_rows_no_batches(tokens: int | None) -> None:
    assert list(batches([], batch_tokens=tokens).plan(epoch=0)) == []


def test_in_order_is_longest_first_and_whole() -> None:
    rows = pairs(50)
    found = batches(rows).in_order(8)
    lengths = [
        len(rows[row][0]) + len(rows[row][1]) for numbers in found for row in numbers.tolist()
    ]
    assert lengths == sorted(lengths, reverse=True)
    assert sorted(row for numbers in found for row in numbers.tolist()) == list(range(50))
    assert [len(numbers) for numbers in found] == [8] * 6 + [2]


@pytest.mark.parametrize("world", [1, 2, 3, 9])
def test_processes_share_a_batch_among_them(world: int) -> None:
    rows = torch.tensor([4, 8, 1, 9, 3])
    shares = [
        batches(pairs(10)).share(rows, rank=rank, world=world).tolist() for rank in range(world)
    ]
    assert sorted(chain.from_iterable(shares)) == [1, 3, 4, 8, 9]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(
    st.lists(
        st.tuples(st.lists(st.integers(4, 9), max_size=4), st.lists(st.integers(4, 9), max_size=4)),
        min_size=1,
    )
)
def test_collating_equals_a_loop(rows: Pairs) -> None:
    numbers = [*range(len(rows))][::-2]
    batch = batches(rows).collate(torch.tensor(numbers))
    for name, padded, wanted in (
        ("source", batch.inputs["source"], [rows[number][0] for number in numbers]),
        ("target", batch.target, [[*rows[number][1], STOP] for number in numbers]),
    ):
        widest = max(len(row) for row in wanted)
        assert padded.values.tolist() == [row + [0] * (widest - len(row)) for row in wanted], name
        assert padded.mask.tolist() == [
            [at < len(row) for at in range(widest)] for row in wanted
        ], name
    assert batch.numbers.tolist() == numbers
    assert batch.alignment is None


def test_target_tokens_count_the_stop() -> None:
    assert batches([([4], [5, 5]), ([4], []), ([4], [5])]).target_tokens(torch.tensor([0, 1])) == 4


def test_without_a_source_there_are_rows_of_nothing() -> None:
    batch = Batches({"source": EmptyColumn(2)}, ids([[5, 6], [7]], stop=STOP)).collate(
        torch.tensor([1, 0])
    )
    assert batch.inputs["source"].values.shape == batch.inputs["source"].mask.shape == (2, 0)
    assert batch.target.values.tolist() == [[7, STOP, 0], [5, 6, STOP]]


def test_lengths_of_several_inputs_add_up() -> None:
    """An image of one frame and a question: the limit counts both, and each is padded by itself."""
    images, questions = ids([[9]] * 4), ids([[4, 5, 6], [7], [8], [4, 4, 4]])
    found = Batches({"image": images, "question": questions}, ids([[1]] * 4), batch_tokens=10)
    assert found.input_lengths.tolist() == [4, 2, 2, 4]
    # two rows of 4 and 1 tokens, and two of 2 and 1
    assert sorted(sorted(rows) for rows in planned(found, 0)) == [[0, 3], [1, 2]]
    batch = found.collate(torch.tensor([1, 0]))
    assert batch.inputs["image"].values.tolist() == [[9], [9]]
    assert batch.inputs["question"].values.tolist() == [[7, 0, 0], [4, 5, 6]]


def test_texts_in_segments_are_as_long_as_their_words() -> None:
    """The ends of segments are no positions: two texts of three words, one in three segments."""
    source = SegmentColumn(flat([[4, STOP, 5, STOP, 6, STOP], [4, 5, 6, STOP], [4, STOP]]))
    found = Batches({"source": source}, ids([[1]] * 3), batch_tokens=8)
    assert found.input_lengths.tolist() == [3, 3, 1]
    assert sorted(len(rows) for rows in planned(found, 0)) == [1, 2]  # 2 * (3 + 1) fits
    read = found.collate(torch.tensor([2, 0])).inputs["source"]
    assert read.values.tolist() == [[4, 0, 0], [4, 5, 6]]
    assert read.segments is not None
    assert read.segments.segment_of.tolist() == [[0, 0, 0], [0, 1, 2]]
    assert read.copy_ids is None


def test_alignments_are_spread_over_the_source() -> None:
    links = Guides()
    for some in ({(0, 0), (2, 0), (1, 1)}, set[tuple[int, int]](), {(0, 1)}):
        links.add(frozenset(some), range(3), range(2))
    source = {"source": ids([[4, 5, 6], [7], [8, 9]])}
    found = Batches(source, ids([[4, 5], [6], [7, 8]], stop=STOP), links=links)
    truth = found.collate(torch.tensor([2, 0, 1])).alignment
    assert truth is not None
    assert truth.tolist() == [
        [[0, 0, 0], [1, 0, 0], [0, 0, 0]],
        [[0.5, 0, 0.5], [0, 1, 0], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    ]


def test_an_input_that_is_shorter_comes_first_whatever_its_target() -> None:
    """Also before one without a target, as where no label of a row is in the list."""
    assert by_length(np.array([2, 1]), np.array([0, 3])).tolist() == [1, 0]
