"""One contestant in a process of its own: a request is a line of JSON, and so is its answer.

It has its own packages (PYTHONPATH), so that two versions of the toolkit can be measured in turns.
"""

import gc
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TextIO, final

from .cases import Case, Contestant

ROOT = Path(__file__).parents[2]
KINDS = {"ours": ("ours", "Ours"), "floor": ("floor", "Floor"), "joeynmt": ("peers", "JoeyNMT")}
"""The module and the class of each kind of contestant; imported where it runs, nowhere else."""
WARM_UP = {"cpu": 1, "cuda": 10}
"""Turns before the first that counts: a GPU's may be compiled or captured in them."""
TOP = 12
"""Operations that a profile shows."""


@final
class Worker:
    """The process of a contestant, as the benchmark sees it."""

    def __init__(self, name: str, kind: str, *, path: Path | None, threads: int) -> None:
        self.name = name
        before = [] if path is None else [str(path), str(path.parent / "runtime" / "src")]
        paths = os.pathsep.join(
            [*before, *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        ).rstrip(os.pathsep)
        self.process = subprocess.Popen(
            [sys.executable, "-m", f"{__package__}.worker", kind],
            env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": str(threads)},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, case: Case, turns: int = 1) -> Any:
        """Milliseconds of some turns, a profile, or facts of the machine; None where it has no such case, or fails."""
        requests, answers = self.process.stdin, self.process.stdout
        assert requests is not None
        assert answers is not None
        with suppress(BrokenPipeError):  # then there is no answer either
            requests.write(json.dumps({"what": what, "case": asdict(case), "turns": turns}) + "\n")
            requests.flush()
        line = answers.readline()
        if not line:
            raise SystemExit(f"{self.name} has ended; what it said is above.")
        answer = json.loads(line)
        if "error" in answer:
            print(f"{self.name} fails in {case}: {answer['error']}", file=sys.stderr)
        return answer.get("found")

    def close(self) -> None:
        """End it."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


@final
class Served:
    """What a worker answers, with the last case kept ready."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self.case: Case | None = None
        self.turn: Callable[[], object] | None = None

    def answer(self, what: str, case: Case, turns: int) -> Any:
        """One request."""
        if what == "machine":
            return machine(case.device)
        if case != self.case:
            self._prepare(case)
        if self.turn is None:
            return None
        return (
            self._timed(case.device, turns) if what == "time" else profiled(case.device, self.turn)
        )

    def _prepare(self, case: Case) -> None:
        import torch

        self.turn = None
        gc.collect()
        if case.device == "cuda":
            torch.cuda.empty_cache()
            torch.set_float32_matmul_precision("highest" if case.precision == "float32" else "high")
        self.case, self.turn = case, self.contestant.prepare(case)
        if self.turn is not None:
            self._timed(case.device, WARM_UP[case.device])

    def _timed(self, device: str, turns: int) -> float:
        """Milliseconds of a turn, where so many are made without waiting between them.

        Those of one CPU thread are its own, whatever else the machine does; others are those of the clock.
        """
        import torch

        assert self.turn is not None
        assert self.case is not None
        clock = process_time if device == "cpu" and torch.get_num_threads() == 1 else perf_counter
        wait(device)
        began = clock()
        for _ in range(turns):
            self.turn()
        wait(device)
        return (clock() - began) * 1000 / turns / self.case.batches


def wait(device: str) -> None:
    """Until the device has done all that it was given."""
    import torch

    if device == "cuda":
        torch.cuda.synchronize()


def machine(device: str) -> Mapping[str, Any]:
    """What everything was measured on."""
    import torch

    from .floor import bandwidth

    name = (
        torch.cuda.get_device_name()
        if device == "cuda"
        else f"{torch.get_num_threads()} CPU threads"
    )
    return {
        "device": name,
        "torch": torch.__version__,
        "bandwidth": bandwidth(device, lambda: wait(device)),
    }


def profiled(device: str, turn: Callable[[], object]) -> str:
    """Where the time of one turn goes, by operation."""
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    with profile(activities=activities) as found:
        turn()
        wait(device)
    by = "self_cuda_time_total" if device == "cuda" else "self_cpu_time_total"
    return str(found.key_averages().table(sort_by=by, row_limit=TOP, max_name_column_width=60))


def serve(kind: str, requests: TextIO, answers: TextIO) -> None:
    """Answer until there are no more requests."""
    module, name = KINDS[kind]
    served = Served(getattr(importlib.import_module(f".{module}", __package__), name)())
    for line in requests:
        asked = json.loads(line)
        try:
            answer = {"found": served.answer(asked["what"], Case(**asked["case"]), asked["turns"])}
        except Exception as error:  # noqa: BLE001 - a peer may fail in one case; the table has the others
            served.turn, answer = None, {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever a library prints goes to stderr
    serve(sys.argv[1], sys.stdin, answers)
