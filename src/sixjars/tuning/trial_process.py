"""A trial in a process of its own: orders and results are lines of JSON through its pipes.

`python -m sixjars.tuning.trial_process PARENT` is that process. For each trial it reads an order,
writes the score of each validation (and notes on the data), reads whether to go on, and writes how
it ended. It ends soon after its parent.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from typing import IO, Any, Final, final

from sixjars.learning.processes import end_after
from sixjars.progress import Reporter
from sixjars.tuning.trial import KeepGoing, TrialEnd, TrialObjects, TrialSettings, try_order
from sixjars_runtime.errors import Interrupted, RunError

GO, STOP = "go\n", "stop\n"
STOPPED: Final = "stopped."
ASKED_TO_STOP: Final = {Interrupted.exit_code, -signal.SIGINT, -signal.SIGTERM}
"""Exit codes of a process that was stopped on purpose."""
Note = Callable[[str], None]
"""Takes a note on the data."""
ONE_OF: Final = [sys.executable, "-P", "-m", "sixjars.tuning.trial_process"]


def place_of(job: int, jobs: int, *, gpus: int) -> dict[str, str]:
    """The environment of a job: a GPU of its own if there are several, and its share of the cores.

    >>> place_of(1, 2, gpus=2)["CUDA_VISIBLE_DEVICES"]
    '1'
    """
    place = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    if gpus > 1:
        visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(gpus)))
        names = [name for name in visible.split(",") if name][:gpus]
        place["CUDA_VISIBLE_DEVICES"] = names[job % len(names)]
    if "OMP_NUM_THREADS" not in os.environ:
        place["OMP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // jobs))
    return place


@final
class TrialProcess:
    """A process for one trial after the other, on the same device; replaced when a trial fails."""

    def __init__(self, place: Mapping[str, str], note: Note) -> None:
        self.place = place
        self.note = note
        self.child: subprocess.Popen[str] | None = None
        self.complaints = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        self.stopped = False

    def try_order(self, order: TrialSettings, goes_on: KeepGoing) -> TrialEnd:
        """Run a trial and return its end; one that was stopped raises `Interrupted`."""
        child = self.child or self._started()
        if self.stopped:
            raise Interrupted(STOPPED)
        end = _spoken_with(child, order, goes_on, self.note)
        if end is None:
            end = self._explained(child.wait())
        if end.state == "failed":  # what it holds is given back
            self._end()
        return end

    def _started(self) -> "subprocess.Popen[str]":
        command = [*ONE_OF, str(os.getpid())]
        pipes: Any = dict.fromkeys(["stdin", "stdout"], subprocess.PIPE)
        environment = {**os.environ, **self.place}
        self.child = subprocess.Popen(
            command, env=environment, text=True, stderr=self.complaints, **pipes
        )
        return self.child

    def _explained(self, code: int) -> TrialEnd:
        """The end of a trial whose process died; an error where that has no known reason."""
        if self.stopped or code in ASKED_TO_STOP:
            raise Interrupted(STOPPED)
        if code < 0:
            killed = f"its process was killed (signal {-code}), perhaps because memory was short."
            return TrialEnd("failed", killed)
        self.complaints.seek(0)
        last = [line.strip() for line in self.complaints if line.strip()][-1:]
        reason = " ".join(last) or code
        raise RunError(f"a trial ended unexpectedly ({reason}); with --jobs 1 it says where.")

    def stop(self) -> None:
        """End the process at once, from any thread; its files are removed anyway."""
        self.stopped = True
        if self.child is not None:
            self.child.kill()

    def _end(self) -> None:
        if self.child is not None:
            self.child.kill()
            # Leaving closes its pipes, perhaps with an order in them, and waits for it.
            with suppress(BrokenPipeError), self.child:
                pass
            self.child = None

    def close(self) -> None:
        """Close what is open, when no thread uses it any more."""
        self._end()
        self.complaints.close()


def _spoken_with(
    child: "subprocess.Popen[str]", order: TrialSettings, goes_on: KeepGoing, note: Note
) -> TrialEnd | None:
    """Reply to each score until the end comes; None where the process ends without one."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        _say(child.stdin, asdict(order))
        for line in child.stdout:
            event = json.loads(line)
            if "state" in event:
                return TrialEnd(**event)
            if "note" in event:
                note(event["note"])
                continue
            child.stdin.write(GO if goes_on(event["score"]) else STOP)
            child.stdin.flush()
    except BrokenPipeError:
        pass
    return None


def _say(stream: IO[str], event: Mapping[str, Any]) -> None:
    stream.write(json.dumps(event) + "\n")
    stream.flush()


@final
class _NotePasser(Reporter):
    def __init__(self, results: IO[str]) -> None:
        self.results = results

    def note(self, sentence: str) -> None:
        """Write the note among the results."""
        _say(self.results, {"note": sentence})


def main() -> None:
    """Run trials in this process, until its input ends."""
    end_after(int(sys.argv[1]))
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints is no result

    def goes_on(score: float) -> bool:
        _say(results, {"score": score})
        reply = sys.stdin.readline()
        if not reply:
            raise Interrupted(STOPPED)
        return reply == GO

    try:
        while line := sys.stdin.readline():
            values = json.loads(line)
            order = TrialSettings(**{**values, "allow": tuple(values["allow"])})
            end = try_order(order, goes_on, TrialObjects(reporter=_NotePasser(results), notes=True))
            _say(results, asdict(end))
    except (Interrupted, KeyboardInterrupt, BrokenPipeError):
        os._exit(Interrupted.exit_code)


if __name__ == "__main__":
    main()
