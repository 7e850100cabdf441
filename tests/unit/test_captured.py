"""Training steps as CUDA graphs: the padding they need, and that they change nothing."""

import contextlib
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import sixjars
from sixjars.data.packing import packed
from sixjars.decoding.scores import banned, min_length
from sixjars.errors import LearningError
from sixjars.flow.backend import ChoiceRules
from sixjars.flow.contracts import Bridge
from sixjars.flow.values import Batch, Padded, Segments, StepOutput
from sixjars.kernels import backends
from sixjars.kernels.backends import TorchBackend
from sixjars.learning import captured, engine
from sixjars.learning.captured import ROWS, rung, widened
from sixjars.learning.engine import BatchShare, fabric_for
from sixjars.loss import Objective, SealedBatch
from sixjars.model.bridges.attention import Attention
from sixjars.model.bridges.initial import InitialState
from sixjars.model.build import Network
from sixjars.model.decoders.label import LabelDecoder
from sixjars.model.decoders.sequence import SequenceDecoder
from sixjars.model.encoders.nothing import NothingEncoder
from sixjars.model.encoders.text import HierarchyEncoder, TextEncoder
from sixjars.model.layers import WordEmbedding
from sixjars.model.reference import REFERENCE
from sixjars.recipe.sections import LearningSettings, LossSettings
from tests.reads import Reads

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
    torch.testing.assert_close(
        after.inputs["source"].values[:2, :5], before.inputs["source"].values
    )
    assert after.alignment is not None
    assert after.alignment.shape == ((ROWS if rows else 2), 4, 8)
    assert after.alignment[:2, 2:].sum() == 0


def test_batches_of_one_shape_have_tensors_of_one_shape() -> None:
    shapes = [
        [tuple(tensor.shape) for tensor in widened(each, rows=True).tensors()]
        for each in (batch(), batch())
    ]
    assert shapes[0] == shapes[1]


def places_of(segments: Segments) -> list[list[list[int]]]:
    """The positions of every segment of every row."""
    width = segments.position_index.shape[1]
    rows = [[int(at) % width for at in row[row >= 0]] for pack in segments.packs for row in pack]
    return [
        [rows[number] for number in row if number >= 0] for row in segments.segment_index.tolist()
    ]


def test_segments_of_few_shapes_are_the_same_segments() -> None:
    """The same positions under the same segments, in rectangles of few sizes."""
    rng, shapes = np.random.default_rng(3), set()
    for _ in range(20):
        counts = rng.integers(0, 9, 6)
        lengths = np.minimum(rng.geometric(0.06, counts.sum()), 150)
        tight, wide = packed(lengths, counts), packed(lengths, counts, few=True)
        shapes.add(
            (
                wide.position_index.shape,
                wide.segment_index.shape,
                *(pack.shape for pack in wide.packs),
            )
        )
        assert places_of(tight) == places_of(wide)
        width = wide.position_index.shape[1]
        flat = torch.cat([pack.flatten() for pack in wide.packs])
        for row, positions in enumerate(places_of(tight)):
            for at in (at for segment in positions for at in segment):
                assert flat[wide.position_index[row, at]] == row * width + at
    assert len(shapes) < 10


def test_many_segments_are_in_two_rectangles() -> None:
    """One would be mostly padding, where it is so large that padding takes time."""
    lengths, counts = np.array([300] + [40] * 999), np.array([500, 500])
    tight, wide = packed(lengths, counts), packed(lengths, counts, few=True)
    assert [tuple(pack.shape) for pack in wide.packs] == [(128, 384), (1024, 64)]
    assert places_of(tight) == places_of(wide)


def test_a_batch_of_long_segments_alone_has_no_empty_rectangle() -> None:
    segments = packed(np.array([90, 70]), np.array([1, 1]), few=True)
    assert [tuple(pack.shape) for pack in segments.packs] == [(128, 128)]
    source = Padded(
        torch.ones(2, 128).long(), torch.arange(128) < torch.tensor([[90], [70]]), segments
    )
    words = TextEncoder(embedding=WordEmbedding(vocabulary=5, size=3), size=4)
    encoded = HierarchyEncoder(words=words, size=5)(source)
    assert encoded.segments is not None
    assert encoded.segments.mask.sum() == 2
    encoded.memory.sum().backward()


def test_rows_are_added_only_where_they_have_no_influence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Labels of which several may be right: a row without any is an example of none."""
    fabric = fabric_for(device="cpu", devices=1, precision="32")
    monkeypatch.setattr(engine, "uncaptured", lambda *_: "nothing")
    bridge, words = InitialState(summary_size=4, state_size=6), WordEmbedding(vocabulary=9, size=5)
    texts = Network(NothingEncoder(size=4), SequenceDecoder(bridge=bridge, embedding=words, size=6))
    labels = Network(
        NothingEncoder(size=4), LabelDecoder(bridge=bridge, classes=3, size=6, multi_label=True)
    )
    settings = LearningSettings(batch_tokens=100)
    for network, pads in ((texts, True), (labels, False)):
        made = engine.Updater(
            Objective(network, LossSettings()), list(network.parameters()), settings, fabric
        )
        assert made.pads_rows is pads
    made = engine.Updater(
        Objective(texts, LossSettings()), list(texts.parameters()), LearningSettings(), fabric
    )
    assert made.pads_rows is False


def test_every_group_of_a_captured_optimizer_has_its_own_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    groups = [
        {"params": [weight], "factor": factor}
        for weight, factor in zip(weights, (0.1, 1.0), strict=True)
    ]
    make = torch.tensor
    monkeypatch.setattr(torch, "tensor", lambda value, device: make(value))
    monkeypatch.setattr(
        torch.optim, "Adam", lambda groups, **more: torch.optim.SGD(groups, lr=more["lr"])
    )
    made = engine.optimizer_for(groups, LearningSettings(rate=0.5), captured=True)
    for group in made.param_groups:
        group["lr"].fill_(0.5 * group["factor"])
    assert [float(group["lr"]) for group in made.param_groups] == pytest.approx([0.05, 0.5])


def test_the_loss_is_computed_by_the_backend_of_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    losses, given = [], SealedBatch(replace(batch(), inputs={"nothing": Padded.of([[], []])}))
    for backend in (TorchBackend(), REFERENCE):
        torch.manual_seed(0)
        bridge = InitialState(summary_size=4, state_size=6, backend=backend)
        words = WordEmbedding(vocabulary=12, size=5)
        decoder = SequenceDecoder(bridge=bridge, embedding=words, size=6)
        network = Network(NothingEncoder(size=4), decoder, backend=backend)
        losses.append(Objective(network, LossSettings())(given))
        monkeypatch.delattr(
            backends, "output_loss", raising=False
        )  # the reference has no use of it
    torch.testing.assert_close(*losses)


def test_the_path_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    few = ("data.sample.size=20",)
    told = [
        str(sixjars.explain("translation/sample_attention", (*few, *more)))
        for more in ((), ("learning.fast=false",))
    ]
    assert (
        "path: fast, with the result of the plain loop (learning.fast); steps as graphs on a CUDA "
        "device" in told[0]
    )
    assert "path: reference, step by step (learning.fast is false)" in told[1]
    for recipe in ("summarization/sample_hierarchy", "translation/sample_conditional"):
        path = str(sixjars.explain(recipe, few))
        assert "path: fast, with the result of the plain loop (learning.fast); steps" in path


@pytest.mark.parametrize(
    "recipe", ["translation/sample_attention", "translation/sample_conditional"]
)
def test_the_path_of_a_bridge_that_has_no_fast_one_is_told(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Attention, "scoring", Bridge.scoring)
    told = str(sixjars.explain(recipe, ("data.sample.size=20",)))
    assert "path: fast; the decoder step by step, because bridge attention has no fast path" in told


def test_the_path_names_the_bridge_as_the_recipe_does() -> None:
    few = ("data.sample.size=20", "model.bridge={kind: location}")
    told = str(sixjars.explain("translation/sample_attention", few))
    assert "path: fast; the decoder step by step, because bridge location has no fast path" in told


def losses(
    folder: Path, *overrides: str, device: str = "cpu", recipe: str = "translation/sample_attention"
) -> list[float]:
    run = sixjars.train(recipe, [*FEW, *overrides], out=folder, device=device)  # type: ignore[arg-type]
    return [float(record["train_loss"]) for record in run.history]


def test_both_paths_learn_alike(tmp_path: Path) -> None:
    """Some 200 updates of a small network; rounding is all that may part them."""
    parts = ("encoder", "encoder.embedding", "bridge", "decoder", "decoder.embedding")
    sizes = (f"model.{part}.size=24" for part in parts)
    few = ("data.sample.valid=8", "data.sample.test=4", "evaluation.search.max_length=4")
    more = ("learning.batch_examples=8", "learning.epochs=4", *few, *sizes)
    fast, slow = losses(tmp_path / "a", *more), losses(tmp_path / "b", *more, "learning.fast=false")
    assert fast == pytest.approx(slow, rel=2e-3)
    assert fast[-1] < 0.9 * fast[0]


def plain_steps(*losses: Tensor) -> Any:
    """What graphs record: steps that do nothing, with these losses, the last one again and again."""
    left = chain(losses, repeat(losses[-1]))
    nothing: dict[str, Any] = dict.fromkeys(
        ("batches", "backward", "clip", "schedule", "step"), lambda *_: None
    )
    return SimpleNamespace(forward=lambda share: (next(left),) * 2, **nothing)


@pytest.mark.parametrize(("free", "graphs"), [(100, 1), (99, 0)])
def test_graphs_leave_memory_to_what_has_none(
    free: int, graphs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside another training, or on a small device, a step of a new shape has no graph."""
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", tuple)
    monkeypatch.setattr(torch.cuda, "current_device", int)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 400))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(Batch, "to", lambda batch, device: batch.mapped(Tensor.clone))
    replayed = type("Replayed", (), {"replay": lambda _: torch.zeros(())})
    monkeypatch.setattr(captured, "KernelGraph", lambda function, pool: replayed())
    training = captured.TrainingGraphs(plain_steps(torch.zeros(())))
    for _ in range(3):
        training.forward(BatchShare(batch(), 1.0))
        training.step()
    assert len(training.recorded) == graphs
    assert training.is_full == (graphs == 0)


def test_a_step_for_whose_graph_there_is_no_room_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The graph itself may take more than what was left."""
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", tuple)
    monkeypatch.setattr(torch.cuda, "current_device", int)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (400, 400))
    monkeypatch.setattr(Batch, "to", lambda batch, device: batch.mapped(Tensor.clone))

    def refuse(*_: object) -> None:
        raise LearningError("no graph") from torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(captured, "KernelGraph", refuse)
    training = captured.TrainingGraphs(plain_steps(*torch.arange(2.0)))
    training.updates = 1
    losses = [training.forward(BatchShare(batch(), 1.0))[0] for _ in range(2)]
    assert losses == [0.0, 1.0]
    assert training.is_full


@pytest.mark.parametrize(
    "name", ["translation/sample_attention", "document_classification/sample_attention"]
)
def test_what_a_graph_reads_lives_as_long_as_the_graph(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both graphs of a training, each with another batch before and after; a CPU only calls."""
    reads: list[Reads] = []

    class Recording:
        def __init__(self, function: Callable[[], Tensor | None], pool: object) -> None:
            reads.append(Reads())
            with reads[-1]:
                self.made = function()
            self.made = None if self.made is None else self.made.detach()

        def replay(self) -> Tensor | None:
            return self.made

    monkeypatch.setattr(captured, "KernelGraph", Recording)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", tuple)
    monkeypatch.setattr(torch.cuda, "current_device", int)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (100, 400))
    monkeypatch.setattr(engine, "uncaptured", lambda *_: "")
    monkeypatch.setattr(
        engine, "optimizer_for", lambda weights, *_, **__: torch.optim.Adam(weights)
    )
    monkeypatch.setattr(Batch, "to", lambda batch, device: batch.mapped(Tensor.clone))
    make, kept = captured.TrainingGraphs, []

    def made(*given: Any) -> captured.TrainingGraphs:
        kept.append(make(*given))
        return kept[-1]

    monkeypatch.setattr(captured, "TrainingGraphs", made)
    losses(tmp_path / "run", "data.sample.size=160", "evaluation.search.max_length=4", recipe=name)
    assert len(reads) > 2
    assert [each.freed() for each in reads] == [0] * len(reads)


def test_a_step_that_cannot_be_recorded_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Graph:
        def capture_begin(self, **_: object) -> None: ...

        def capture_end(self) -> None:
            raise RuntimeError("the capture was invalidated")

    def fails() -> Tensor:
        raise RuntimeError("operation not permitted when stream is capturing\nmore of torch")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "Stream", lambda: None)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    with pytest.raises(LearningError) as refused:
        captured.KernelGraph(fails, None)
    assert str(refused.value) == (
        "a training step of this model cannot be recorded as a CUDA graph (operation not "
        "permitted when stream is "
        "capturing); learning.fast=false trains without."
    )


BF16, COVERAGE = ("learning.precision=bf16",), ("loss.coverage=0.1",)
# without dropout, which is drawn for padding too
STACKED = ("model.decoder.cell=lstm", "model.decoder.layers=2")


@ON_CUDA
@pytest.mark.parametrize(
    ("recipe", "more"),
    [
        *(
            ("translation/sample_attention", more)
            for more in ((), BF16, COVERAGE, ("learning.accumulate=2",))
        ),
        *(("translation/sample_conditional", more) for more in ((), BF16, COVERAGE, STACKED)),
        *(("summarization/sample_hierarchy", more) for more in ((), BF16, STACKED)),
        ("summarization/sample_copy", ("model.decoder.conditional=true", *COVERAGE)),
    ],
)
def test_graphs_change_nothing(recipe: str, more: tuple[str, ...], tmp_path: Path) -> None:
    fast = losses(tmp_path / "a", *more, device="cuda", recipe=recipe)
    slow = losses(tmp_path / "b", *more, "learning.fast=false", device="cuda", recipe=recipe)
    assert fast == pytest.approx(slow, rel=0.02 if "learning.precision=bf16" in more else 2e-3)


@ON_CUDA
@pytest.mark.parametrize("logits", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("size", [9, 4_096, 9_001])
@pytest.mark.parametrize("made", [0, 5, 9])
def test_the_kernel_of_greedy_search_obeys_the_rules(
    made: int, size: int, dtype: torch.dtype, *, logits: bool
) -> None:
    from sixjars.kernels.choice_kernels import chosen

    torch.manual_seed(0)
    scores = torch.randn(40, size, device="cuda", dtype=dtype)
    scores[:10, 7] = 9.0  # `<stop>` would win
    scores[10:20, 5] = 9.0  # and here a token that is never output
    scores[20:25] = -torch.inf  # nothing may follow,
    scores[22:25, 7] = -1.0  # or only `<stop>`
    scores[26, :-1] = -torch.inf  # of the first blocks nothing
    scores[27:29] = 0.5  # ties, `<stop>` among them
    scores[27, :7] = 0.0
    never, now = torch.tensor([3, 5], device="cuda"), torch.tensor(made, device="cuda")
    output = StepOutput(scores, are_logits=logits)
    ruled = min_length(4, stop=7)(banned(never)(output.log_probabilities, never, now), never, now)
    rules = ChoiceRules(never, stop=7, fewest=4, longest=9)
    opened, totals = torch.arange(40, device="cuda") % 4 > 0, torch.randn(40, device="cuda")
    token, gained, still_open, total = chosen(output, rules, opened, totals, now)
    possible = torch.ones_like(opened)
    possible[20:22] = False
    torch.testing.assert_close(gained[possible], ruled.amax(1)[possible])
    assert (ruled.gather(1, token.unsqueeze(1)).squeeze(1) == ruled.amax(1))[possible].all()
    assert not (gained > -torch.inf)[~possible].any()
    goes = opened & possible & (made < 9)
    assert (still_open == (goes & (token != 7))).all()
    torch.testing.assert_close(total, torch.where(goes, totals + gained, totals))


@ON_CUDA
def test_resume_is_equal_to_the_byte(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    more = ("model.decoder.dropout=0.2", "learning.schedule=constant")
    losses(whole, *more, device="cuda")
    losses(parts, *more, "learning.steps=11", device="cuda")
    sixjars.train(
        "translation/sample_attention", [*FEW, *more], out=parts, device="cuda", resume=True
    )
    assert (whole / "model.safetensors").read_bytes() == (parts / "model.safetensors").read_bytes()
