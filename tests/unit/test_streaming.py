"""Inputs in portions: typed ones at once, slow ones soon, the others many together; and the line about progress."""

import io
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sixjars.cli import streaming
from sixjars.cli.streaming import Throughput, portions


def slowly(count: int, pause: float) -> Iterator[int]:
    for number in range(count):
        time.sleep(pause)
        yield number


def test_typed_inputs_are_answered_one_by_one() -> None:
    assert list(portions(iter(range(3)), typed=True, slow=True)) == [[0], [1], [2]]


def test_portions_grow_while_they_are_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = [len(some) for some in portions(iter(range(20_000)), typed=False, slow=False)]
    assert sizes[:6] == [256, 512, 1024, 2048, 4096, 4096]
    assert sum(sizes) == 20_000
    monkeypatch.setattr(streaming, "QUICK", 0.0)
    halved = [len(some) for some in portions(iter(range(1000)), typed=False, slow=False)]
    assert halved[:3] == [256, 128, 64]


def test_slow_inputs_do_not_wait_for_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "PATIENCE", 0.01)
    found = list(portions(slowly(4, 0.1), typed=False, slow=True))
    assert [one for some in found for one in some] == [0, 1, 2, 3]
    assert len(found) > 1
    assert list(portions(iter(range(9)), typed=False, slow=True))[-1][-1] == 8


def test_an_error_comes_after_what_was_read() -> None:
    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("a test")

    found = portions(broken(), typed=False, slow=True)
    assert next(found) == [1]
    with pytest.raises(ValueError, match="a test"):
        next(found)


@dataclass
class Source:
    read: int
    size: int | None


def test_progress_has_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    pace = Throughput(Source(25, 100), to_terminal=False)
    pace.went_on(1000)
    assert stderr.getvalue() == ""  # half a minute has not passed
    monkeypatch.setattr(streaming, "EVERY", 0.0)
    pace.began -= 10.0
    pace.went_on(1000)
    assert stderr.getvalue() == "2,000 inputs done, 200 a second, about 30 s left\n"
    assert (
        Throughput(Source(25, None), to_terminal=False).line(pace.began + 1e6).endswith(" a second")
    )
    slow = Throughput(Source(1, 61), to_terminal=False)
    assert slow.line(slow.began + 10.0) == "0 inputs done, 0 a second, about 10 min left"
    slow.source = Source(1, 3601)
    assert slow.line(slow.began + 10.0).endswith("about 10.0 h left")
