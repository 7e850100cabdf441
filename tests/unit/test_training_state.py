"""Where training stands, what cannot be right about it, and the log of how it got there."""

import errno
import json
import math
import os
import re
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn, optim

from sixjars.errors import RunError
from sixjars.learning import checkpoints
from sixjars.learning.checkpoints import (
    Checkpoints,
    RunFiles,
    TrainingState,
    copied,
    packed_optimizer,
    state_of,
    unpacked_optimizer,
)
from sixjars.learning.engine import fabric_for
from sixjars.recipe.sections import LearningSettings

VALUES = st.floats(-5, 5).map(lambda value: round(value, 1))
SCORES = st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12)


@given(scores=SCORES, better=st.sampled_from(["higher", "lower"]), keep=st.integers(1, 4))
def test_the_best_are_remembered(
    scores: list[tuple[float, float]], better: Literal["higher", "lower"], keep: int
) -> None:
    """By the score, then by the loss; of equal ones the first."""
    state, wins = TrainingState(), []
    for step, (score, loss) in enumerate(scores, start=1):
        state.step = step
        wins.append(state.score(score, loss, better=better, keep=keep))
    sign = 1 if better == "lower" else -1
    ranks = [(sign * score, loss) for score, loss in scores]
    ranked = sorted(range(len(scores)), key=lambda at: (ranks[at], at))
    assert state.best == [(*scores[at], at + 1) for at in ranked[:keep]]
    assert wins == [all(rank < other for other in ranks[:at]) for at, rank in enumerate(ranks)]
    assert (
        state.stale
        == state.since_halving
        == len(scores) - 1 - max(at for at, won in enumerate(wins) if won)
    )


def test_early_stopping_waits_while_the_loss_falls() -> None:
    """BLEU is 0 for many epochs, and accuracy 1 on few examples: no reason to stop."""
    state, stale = TrainingState(), []
    for score, loss in [
        (0.0, 3.0),
        (0.0, 2.0),
        (0.0, 2.5),
        (1.5, 2.6),
        (1.5, 2.4),
        (1.5, 2.4),
        (1.0, 0.1),
    ]:
        state.score(score, loss, better="higher", keep=1)
        stale.append(state.stale)
    assert stale == [0, 0, 1, 0, 0, 1, 2]


def a_state() -> TrainingState:
    state = TrainingState(
        step=7, epoch=2, done_in_epoch=1, loss=1 / 3, tokens=9, log_bytes=80, finished=True
    )
    state.score(0.1 + 0.2, 0.5, better="lower", keep=2)
    state.score(1e-300, 0.5, better="lower", keep=2)
    return state


def through_json(**changes: Any) -> Any:
    return json.loads(json.dumps({**asdict(a_state()), **changes}))


def test_a_state_comes_back_through_json_bit_for_bit() -> None:
    assert state_of(through_json()) == a_state()
    assert state_of(through_json(loss=3, best=[[math.inf, 1.5, 7]])).best == [(math.inf, 1.5, 7)]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("step", -1, "step is -1"),
        ("step", "7", "step is '7'"),
        ("step", 7.5, "step is 7.5"),
        ("step", True, "step is True"),
        ("epoch", None, "epoch is None"),
        ("tokens", 2**63, f"tokens is {2**63}"),
        ("log_bytes", -80, "log_bytes is -80"),
        ("loss", math.nan, "loss is nan"),
        ("loss", math.inf, "loss is inf"),
        ("loss", -0.5, "loss is -0.5"),
        ("finished", 1, "finished is 1"),
        ("best", 5, "best is 5"),
        ("best", [[0.5, 1.5, 3, 1]], "best.0 is [0.5, 1.5, 3, 1]"),
        ("best", [["good", 1.5, 3]], "best.0.0 is 'good'"),
        ("best", [[math.nan, 1.5, 3]], "best.0.0 is nan"),
        ("best", [[0.5, 1.5, 3], [0.5, 1.5, -3]], "best.1.2 is -3"),
        ("best", [[0.5, 1.5, 8]], "its counts do not agree with 7 steps"),
        ("best", [], "its counts do not agree with 7 steps"),
        ("epoch", 8, "its counts do not agree with 7 steps"),
        ("done_in_epoch", 8, "its counts do not agree with 7 steps"),
        ("stale", 8, "its counts do not agree with 7 steps"),
        ("halvings", 8, "its counts do not agree with 7 steps"),
        ("since_halving", 10**12, "its counts do not agree with 7 steps"),
        ("steps", 3, "state is {"),
    ],
)
def test_a_state_that_cannot_be_right(name: str, value: Any, told: str) -> None:
    with pytest.raises(ValueError, match="^" + re.escape(told)) as caught:
        state_of(through_json(**{name: value}))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("values", [{}, {"best": []}, [], None, "state", 5])
def test_what_is_no_state_at_all(values: Any) -> None:
    with pytest.raises(ValueError, match="state is "):
        state_of(values)


def test_the_log_forgets_a_lost_future(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    files.cut_log(10)  # of nothing
    first = files.add_to_log({"step": 1, "loss": 0.5})
    files.add_to_log({"step": 2, "loss": 0.25})
    assert first == len(b'{"step": 1, "loss": 0.5}\n')
    files.cut_log(first)
    files.add_to_log({"step": 2, "loss": 0.125})
    lines = [json.loads(line) for line in files.log.read_text().splitlines()]
    assert lines == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.125}]
    files.cut_log(first + 5)
    assert files.log.stat().st_size == first
    files.cut_log(2**62)  # more than there is: never filled up, and no memory is taken for it
    assert files.log.stat().st_size == first
    files.cut_log(0)
    assert files.log.read_bytes() == b""


def test_no_space_for_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError) as caught:
        RunFiles(tmp_path).add_to_log({"step": 1})
    told = f"no space left to write {tmp_path / 'log.jsonl'}; what was saved before is still there."
    assert str(caught.value) == told


def keep_all(checkpoints: Checkpoints, state: TrainingState) -> None:
    checkpoints.validated({}, state, is_best=True)
    checkpoints.save(state)
    checkpoints.settle()


def test_nothing_is_written_behind_what_could_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state whose weights are not there, or are swept away: worse than an older state."""
    network = nn.Linear(2, 2)
    updates: Any = SimpleNamespace(
        fabric=fabric_for(device="cpu", devices=1, precision="32"),
        optimizer=optim.SGD(network.parameters(), lr=0.1),
        scaler=None,
        settings=LearningSettings(average=2),
    )
    training = Checkpoints(tmp_path, network, updates)
    state = TrainingState()
    state.step = 1
    state.score(2.0, 2.0, better="lower", keep=2)
    keep_all(training, state)
    before = {path.name: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}
    writes, write = [], checkpoints.write_whole

    def full_once(path: Path, content: bytes) -> None:
        writes.append(path.name)
        if len(writes) == 1:
            raise RunError(f"no space left to write {path}; what was saved before is still there.")
        write(path, content)

    monkeypatch.setattr(checkpoints, "write_whole", full_once)
    state.step = 2
    state.score(1.0, 1.0, better="lower", keep=1)
    with pytest.raises(RunError, match="no space left"):  # at once, or where it is waited for
        keep_all(training, state)
    assert writes == ["best-2.safetensors"]
    assert {path.name: path.read_bytes() for path in tmp_path.rglob("*.safetensors")} == before


def test_a_fused_optimizer_goes_on_with_weights_that_are_not_contiguous() -> None:
    def steps(weight: nn.Parameter, optimizer: optim.Optimizer, count: int) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            (weight.sin() * torch.arange(24.0).view(4, 6)).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    whole, parts = (nn.Parameter(torch.linspace(0, 1, 24).view(6, 4).t()) for _ in "ab")
    steps(whole, optim.Adam([whole], lr=0.1, fused=True), 4)
    first = optim.Adam([parts], lr=0.1, fused=True)
    steps(parts, first, 2)
    second = optim.Adam([parts], lr=0.1, fused=True)
    second.load_state_dict(unpacked_optimizer(second, copied(packed_optimizer(first)), updates=2))
    steps(parts, second, 2)
    torch.testing.assert_close(parts, whole)
