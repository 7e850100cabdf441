"""Where learning stands, and the log of how it got there."""

import errno
import json
import os
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixjars.errors import RunError
from sixjars.learning.checkpoints import Log, TrainingState

SCORES = st.lists(st.floats(-5, 5).map(lambda value: round(value, 1)), min_size=1, max_size=12)


@given(scores=SCORES, better=st.sampled_from(["higher", "lower"]), keep=st.integers(1, 4))
def test_the_best_are_remembered(scores: list[float], better: Literal["higher", "lower"], keep: int) -> None:
    journal, wins = TrainingState(), []
    for step, score in enumerate(scores, start=1):
        journal.step = step
        wins.append(journal.score(score, better=better, keep=keep))
    sign = 1 if better == "lower" else -1
    ranked = sorted(
        ((score, step) for step, score in enumerate(scores, start=1)), key=lambda pair: (sign * pair[0], pair[1])
    )
    assert journal.best == ranked[:keep]
    assert wins == [all(sign * score < sign * other for other in scores[:at]) for at, score in enumerate(scores)]
    last = max(at for at, won in enumerate(wins) if won)
    assert journal.stale == journal.since_halving == len(scores) - 1 - last


def test_a_journal_comes_back_through_json() -> None:
    journal = TrainingState(step=7, epoch=2, done_in_epoch=1, loss=1 / 3, tokens=9, log_bytes=80, finished=True)
    journal.score(0.1 + 0.2, better="lower", keep=2)
    journal.score(1e-300, better="lower", keep=2)
    assert TrainingState.from_json(json.loads(json.dumps(journal.to_json()))) == journal


def test_what_is_no_journal() -> None:
    for values in ({}, {"best": [], "steps": 3}, {"best": 5}, {"best": [[1, 2, 3]]}):
        with pytest.raises((KeyError, TypeError, ValueError)):
            TrainingState.from_json(values)


def test_the_log_forgets_a_lost_future(tmp_path: Path) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.cut(10)  # of nothing
    first = log.add({"step": 1, "loss": 0.5})
    log.add({"step": 2, "loss": 0.25})
    assert first == len(b'{"step": 1, "loss": 0.5}\n')
    log.cut(first)
    log.add({"step": 2, "loss": 0.125})
    lines = [json.loads(line) for line in log.path.read_text().splitlines()]
    assert lines == [{"step": 1, "loss": 0.5}, {"step": 2, "loss": 0.125}]
    log.cut(first + 5)
    assert log.path.stat().st_size == first
    log.cut(10_000)  # more than there is: never filled up
    assert log.path.stat().st_size == first
    log.cut(0)
    assert log.path.read_bytes() == b""


def test_no_space_for_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **more: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(RunError) as caught:
        Log(tmp_path / "log.jsonl").add({"step": 1})
    assert str(caught.value) == (
        f"no space left to write {tmp_path / 'log.jsonl'}; what was saved before is still there."
    )
