"""Training steps as CUDA graphs: the padding that they need, and on a CUDA device that they change nothing."""

from pathlib import Path

import pytest
import torch

import sixjars
from sixjars.flow.values import Batch, Padded
from sixjars.learning.captured import ROWS, rung, tensors_of, widened

FEW = (
    "data.sample.size=400",
    "data.sample.valid=40",
    "data.sample.test=20",
    "learning.epochs=3",
    "learning.rate=0.003",
)
ON_CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def batch(*, alignment: bool = False) -> Batch:
    source, target = Padded.of([[4, 5, 6, 7, 8], [4, 5]]), Padded.of([[9, 2], [2]])
    truth = torch.rand(2, 2, 5) if alignment else None
    return Batch({"source": source}, target, torch.tensor([7, 3]), truth)


def test_widths_are_few_and_little_is_added() -> None:
    widths = range(1, 400)
    assert all(rung(width) >= width for width in widths)
    assert len({rung(width) for width in widths}) < 35
    assert max(rung(width) / width for width in widths if width > 8) < 1.34


@pytest.mark.parametrize("rows", [True, False])
def test_what_is_added_is_masked(*, rows: bool) -> None:
    before, after = batch(alignment=True), widened(batch(alignment=True), rows=rows)
    assert after.inputs["source"].values.shape == ((ROWS if rows else 2), 8)
    assert after.target.values.shape == ((ROWS if rows else 2), 4)
    assert after.inputs["source"].mask.sum() == before.inputs["source"].mask.sum()
    torch.testing.assert_close(after.inputs["source"].values[:2, :5], before.inputs["source"].values)
    assert after.alignment is not None
    assert after.alignment.shape == ((ROWS if rows else 2), 4, 8)
    assert after.alignment[:2, 2:].sum() == 0


def test_batches_of_one_shape_have_tensors_of_one_shape() -> None:
    shapes = [[tuple(tensor.shape) for tensor in tensors_of(widened(each, rows=True))] for each in (batch(), batch())]
    assert shapes[0] == shapes[1]


def test_texts_in_segments_stay_as_they_are() -> None:
    from sixjars.data.packing import packed

    lengths, counts = torch.tensor([2, 1, 3]).numpy(), torch.tensor([2, 1]).numpy()
    source = Padded(torch.ones(2, 3).long(), torch.ones(2, 3).bool(), packed(lengths, counts))
    given = Batch({"source": source}, Padded.of([[1], [0]]), torch.tensor([0, 1]))
    assert widened(given, rows=True) is given


def test_the_path_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [
        str(sixjars.explain("translation/sample_attention", overrides)) for overrides in ((), ("learning.fast=false",))
    ]
    assert "path: fast, backward passes by hand; steps as graphs on a CUDA device" in told[0]
    assert "path: reference, step by step (learning.fast is false)" in told[1]
    levels = str(sixjars.explain("summarization/sample_hierarchy"))
    assert "path: fast; the decoder step by step, because bridge TwoLevelAttention has no fast path" in levels


def losses(folder: Path, *overrides: str, device: str = "cpu") -> list[float]:
    run = sixjars.train("translation/sample_attention", [*FEW, *overrides], out=folder, device=device)  # type: ignore[arg-type]
    return [float(record["train_loss"]) for record in run.history]


def test_both_paths_learn_alike(tmp_path: Path) -> None:
    """Some 200 updates; rounding is all that may part them."""
    more = ("learning.batch_examples=8", "learning.epochs=4")
    fast, slow = losses(tmp_path / "a", *more), losses(tmp_path / "b", *more, "learning.fast=false")
    assert fast == pytest.approx(slow, rel=2e-3)
    assert fast[-1] < 0.9 * fast[0]


@ON_CUDA
@pytest.mark.parametrize("more", [(), ("learning.precision=bf16",), ("learning.accumulate=2",), ("loss.coverage=0.1",)])
def test_graphs_change_nothing(tmp_path: Path, more: tuple[str, ...]) -> None:
    fast = losses(tmp_path / "a", *more, device="cuda")
    slow = losses(tmp_path / "b", *more, "learning.fast=false", device="cuda")
    assert fast == pytest.approx(slow, rel=0.02 if "learning.precision=bf16" in more else 2e-3)


@ON_CUDA
def test_resume_is_equal_to_the_byte(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    losses(whole, "model.decoder.dropout=0.2", device="cuda")
    losses(parts, "model.decoder.dropout=0.2", "learning.steps=11", device="cuda")
    sixjars.train(
        "translation/sample_attention",
        [*FEW, "model.decoder.dropout=0.2"],
        out=parts,
        device="cuda",
        resume=True,
    )
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
