"""The values of flow: padding by hand, rows picked and repeated, and what is refused."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sixjars.errors import ShapeError
from sixjars.flow.values import Batch, Context, Encoded, Layout, Padded, Prepared, Rows, State


@given(st.lists(st.lists(st.integers(1, 99), max_size=6), max_size=5))
def test_padded_rows_can_be_read_back(sequences: list[list[int]]) -> None:
    padded = Padded.of(sequences)
    longest = max((len(sequence) for sequence in sequences), default=0)
    assert padded.values.shape == padded.mask.shape == (len(sequences), longest)
    assert (padded.values.dtype, padded.mask.dtype) == (torch.long, torch.bool)
    assert [
        row[real].tolist() for row, real in zip(padded.values, padded.mask, strict=True)
    ] == sequences
    assert padded.values[~padded.mask].sum() == 0
    for row, sequence in zip(padded.mask.tolist(), sequences, strict=True):
        assert row == [True] * len(sequence) + [False] * (longest - len(sequence))


def batch(*, alignment: bool = True) -> Batch:
    truth = torch.rand(3, 2, 4) if alignment else None
    source, other = Padded.of([[1, 2, 3, 4], [5], [6, 7]]), Padded.of([[9], [8, 7], [6]])
    return Batch(
        {"source": source, "other": other},
        Padded.of([[1, 3], [3], [2, 3]]),
        torch.tensor([4, 0, 7]),
        truth,
    )


def leaves(value: object) -> object:
    """The same in plain lists, those of nested values included: what `==` can compare."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: leaves(inner) for key, inner in value.items()}
    if isinstance(value, Rows):
        return {
            field.name: leaves(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    return value


def test_picking_reaches_nested_values() -> None:
    before, rows = batch(), torch.tensor([2, 0, 0])
    after = before.pick(rows)
    assert after.numbers.tolist() == [7, 4, 4]
    assert after.inputs["source"].values.tolist() == [[6, 7, 0, 0], [1, 2, 3, 4], [1, 2, 3, 4]]
    assert after.inputs["other"].mask.tolist() == [[True, False], [True, False], [True, False]]
    assert after.target.values.tolist() == [[2, 3], [1, 3], [1, 3]]
    assert before.alignment is not None
    assert after.alignment is not None
    assert torch.equal(after.alignment, before.alignment[rows])
    assert before.numbers.tolist() == [4, 0, 7]


def test_rows_and_device_are_those_of_any_tensor() -> None:
    assert batch().rows == 3
    assert batch().device == torch.device("cpu")
    assert batch().to("meta").device.type == "meta"
    assert Context(torch.zeros(2, 0)).rows == 2
    assert Padded.of([[], []]).rows == 2
    assert State(torch.zeros(4, 1, 3)).repeat(2).rows == 8


def test_frames_of_numbers_are_picked_like_ids() -> None:
    videos = Padded(
        torch.arange(24).view(2, 3, 4), torch.tensor([[True, True, True], [True, False, False]])
    )
    before = Batch({"video": videos}, Padded.of([[1], [0]]), torch.tensor([5, 6]))
    after = before.pick(torch.tensor([1]))
    assert torch.equal(after.inputs["video"].values, videos.values[1:])
    assert after.inputs["video"].mask.tolist() == [[True, False, False]]


def test_a_summary_may_have_another_size_than_the_memory() -> None:
    read = Encoded(torch.zeros(2, 3, 4), torch.ones(2, 3, dtype=torch.bool), torch.zeros(2, 9))
    assert read.repeat(2).summary.shape == (4, 9)


def test_repeated_rows_stand_side_by_side() -> None:
    state = State(torch.arange(6.0).view(2, 1, 3)).repeat(3)
    assert state.hidden[:, 0, 0].tolist() == [0, 0, 0, 3, 3, 3]
    assert state.cell is None


def test_moving_to_a_device_keeps_the_value() -> None:
    before = batch()
    assert leaves(before.to("cpu")) == leaves(before)
    assert before.to("meta").inputs["source"].values.device.type == "meta"


def test_absent_tensors_stay_absent() -> None:
    rows = torch.tensor([1])
    prepared = Prepared(
        torch.zeros(2, 3),
        torch.zeros(2, 4),
        torch.zeros(2, 5, 4),
        torch.ones(2, 5, dtype=torch.bool),
    )
    assert prepared.pick(rows).keys is None
    assert Context(torch.zeros(2, 0)).repeat(2).weights is None


def test_layout_is_kept() -> None:
    encoded = Encoded(
        torch.zeros(2, 4, 3),
        torch.ones(2, 4, dtype=torch.bool),
        torch.zeros(2, 3),
        Layout("grid", (2, 2)),
    )
    assert encoded.pick(torch.tensor([1])).layout == Layout("grid", (2, 2))


def test_values_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch().numbers = torch.zeros(3)  # type: ignore[misc]


def test_memory_and_mask_must_agree() -> None:
    with pytest.raises(ShapeError) as error:
        Encoded(torch.zeros(2, 3, 4), torch.ones(2, 5, dtype=torch.bool), torch.zeros(2, 4))
    assert str(error.value) == "memory (2, 3, 4) and mask (2, 5) must agree on (B, S)."
