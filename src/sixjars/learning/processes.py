"""Several processes that train one model: Lightning Fabric starts them, and they end together, whatever happens.

A process that waits for another in a collective operation waits in C++, for as long as it takes: validation on one of
them may take hours. So a thread of each sends a byte to the first process every second, and the first one answers; a
process that is killed closes its line, and one that is stopped (SIGSTOP, a machine that hangs) is silent.
"""

import logging
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, final

import torch

from sixjars_runtime.errors import Interrupted, LearningError, RecipeError, RunError

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.loggers.logger import Logger

    from sixjars.learning.several import Several

PRECISIONS: Final[Mapping[str, Literal["32-true", "bf16-mixed", "16-mixed"]]] = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "fp16": "16-mixed",
}
OF_A_BROKEN_LINE: Final = ("gloo", "NCCL", "onnection", "Broken pipe")
"""One of these words is in what torch says when another process has gone."""
GONE: Final = "another process of this training has ended; go on from the last save with --resume."
SILENCE: Final = 20.0
"""Seconds without a sign of life after which a process counts as gone; all have ended by 30."""
TICK: Final = 1.0
GRACE: Final = 4.0
"""Seconds in which the main thread may find out for itself that a line is broken, and say so in its own way."""
_BEAT: Final = b"."
_DONE: Final = b"!"
_FAILED: Final = b"?"  # and whoever sends it tells why
_KEY: Final = 16  # bytes
_FIRST: Final = "SIXJARS_FIRST_PROCESS"


def launched(
    where: str, devices: int, precision: str, *, fsdp: bool, loggers: "Sequence[Logger]"
) -> "Several":
    """Fabric, with as many processes as devices: this one is the first of them, or was started as one of them."""
    here, machines = _processes(devices)
    if where == "cuda" and here > torch.cuda.device_count():
        fault = f"--devices {here} was asked for, but torch sees {torch.cuda.device_count()} CUDA devices here."
        raise RecipeError([fault], "the command line")
    if where == "mps" and here * machines > 1:
        fault = f"--devices is {here}, but an Apple GPU (mps) trains in one process; leave it out, or use --device cpu."
        raise RecipeError([fault], "the command line")
    several = here * machines > 1
    if fsdp and not several:
        fault = "--fsdp divides the weights among processes, but there is one; say --devices 2, or leave it out."
        raise RecipeError([fault], "the command line")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning_fabric.strategies.ddp import DDPStrategy

        from sixjars.learning.several import Several, Sharded, ShardedPrecision

        logging.getLogger("lightning_fabric").setLevel(
            logging.WARNING
        )  # its import sets its own level
        bits, patience = PRECISIONS[precision], timedelta(days=1)
        divided = (
            Sharded(precision=ShardedPrecision(bits, where), timeout=patience) if fsdp else None
        )
        fabric = Several(
            accelerator=where,
            devices=here,
            num_nodes=machines,
            strategy=divided or DDPStrategy(timeout=patience) if several else "auto",
            precision=bits,
            loggers=list(loggers),
        )
        with ending_with_the_first() if several else nullcontext():
            fabric.launch()
    return fabric


def _processes(devices: int) -> tuple[int, int]:
    """How many processes on this machine, and how many machines: as torchrun says, or as `--devices` asks."""
    if not torch.distributed.is_available() or not torch.distributed.is_torchelastic_launched():
        return devices, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    if devices not in {1, here}:
        fault = f"--devices is {devices}, but torchrun started {here} processes here; leave out --devices."
        raise RecipeError([fault], "the command line")
    return here, everywhere // here


@contextmanager
def ending_with_the_first() -> Iterator[None]:
    """While processes are started: each of them ends soon after the one that started it.

    Also while it still waits to be connected to that one, which it would do for as long as a collective operation may
    take. Only what is started here: whoever starts all processes by hand may log out.
    """
    first = os.environ.pop(_FIRST, None)
    if first is not None:  # a heartbeat ends this process sooner, where there is one already
        end_after(int(first), grace=GRACE + 2 * TICK, tell=os.environ.get("LOCAL_RANK") == "1")
    os.environ[_FIRST] = str(os.getpid())
    try:
        yield
    finally:
        del os.environ[_FIRST]


def end_after(parent: int, *, grace: float = 0.0, tell: bool = False) -> None:
    """From now on this process ends soon after the one that started it, whatever it is doing then."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(TICK)
        time.sleep(grace)
        _end(tell=tell)

    threading.Thread(target=watch, name="first process", daemon=True).start()


def _end(*, tell: bool) -> None:
    if tell:
        sys.stderr.write(f"sixjars: {GONE}\n")
        sys.stderr.flush()
    os._exit(RunError.exit_code)


@final
class Heartbeat:
    """Sends signs of life, and ends this process when those of another one stay away."""

    def __init__(
        self, fabric: "Fabric", children: "Sequence[subprocess.Popen[bytes]]" = ()
    ) -> None:
        self.rank, self.world, self.children = fabric.global_rank, fabric.world_size, children
        alone = getattr(fabric.strategy, "num_nodes", 1) == 1
        host = "127.0.0.1" if alone else os.environ["MASTER_ADDR"]
        self.listener, port = None, 0
        if self.rank == 0:
            self.listener = socket.create_server((host if alone else "", 0))
            self.listener.settimeout(0.0)
            port = self.listener.getsockname()[1]
        port, self.key = fabric.broadcast((port, secrets.token_bytes(_KEY)))
        self.address = host, port
        self.lines: dict[int, socket.socket] = {}
        self.silent: dict[int, float] = {}
        """Seconds since a sign of life. A line that cannot be opened does no harm: it is not watched."""
        self.over, self.done = threading.Event(), False
        self.orphaned, self.failed = threading.Event(), False
        self.thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.thread.start()

    def stop(self, *, done: bool) -> None:
        """No more signs of life; `done` tells the others that this process came to its end as it should."""
        self.done = done
        self.over.set()
        self.thread.join(GRACE)

    def tells(self) -> bool:
        """Whether this process is to tell why all end, now that a line is broken: of those that are left, the first.

        It takes two ticks to know that the first process has ended without a word.
        """
        return self.rank == 0 or (self.rank == 1 and self.orphaned.wait(2 * TICK))

    def _run(self) -> None:
        with suppress(OSError):
            self._open()
        before = time.monotonic()
        while not self.over.wait(TICK):
            now = time.monotonic()
            # Not the time that this process was itself stopped for: Ctrl-Z stops all of them.
            passed, before = min(now - before, 2 * TICK), now
            with suppress(OSError):
                self._open()
            lost = [rank for rank in list(self.lines) if self._is_lost(rank, passed)]
            if lost or max(self.silent.values(), default=0.0) > SILENCE:
                self._give_up(lost=bool(lost))
        for line in self.lines.values():
            with suppress(
                OSError
            ):  # a line that is closed with something unread may be reset before the last word
                line.recv(4096)
            with suppress(OSError):
                line.send(_DONE if self.done else _FAILED)
            line.close()
        if self.listener is not None:
            self.listener.close()

    def _open(self) -> None:
        """Open the lines that are not open yet; OSError where nobody calls, or nobody is called."""
        if self.listener is None and not self.silent:
            line = socket.create_connection(self.address, timeout=TICK)
            line.sendall(self.key + self.rank.to_bytes(4))
            self._add(0, line)
        while self.listener is not None and len(self.silent) < self.world - 1:
            line, _ = self.listener.accept()
            line.settimeout(TICK)
            hello = b""
            with suppress(OSError):
                hello = line.recv(_KEY + 4, socket.MSG_WAITALL)
            if secrets.compare_digest(hello[:_KEY], self.key):
                self._add(int.from_bytes(hello[_KEY:]), line)
            else:
                line.close()

    def _add(self, rank: int, line: socket.socket) -> None:
        line.settimeout(0.0)
        self.lines[rank], self.silent[rank] = line, 0.0

    def _is_lost(self, rank: int, passed: float) -> bool:
        """Take in what came and send a sign of life; whether the other process has ended without a last word."""
        line, lost = self.lines[rank], False
        self.silent[rank] += passed
        with suppress(BlockingIOError):  # nothing came
            try:
                came = line.recv(4096)
            except ConnectionError:
                came = b""
            self.silent[rank], lost = 0.0, not came
            self.failed = self.failed or _FAILED in came
            if _DONE in came:
                self.lines.pop(rank).close()
        with suppress(OSError):  # a broken line is found by reading
            line.send(_BEAT)
        return lost

    def _give_up(self, *, lost: bool) -> None:
        """End this process; best by its main thread, which tells why in its own way.

        Where it waits for a process that is stopped, it goes on when that one is ended.
        """
        if not self.failed:
            self.orphaned.set()
        if lost and self.over.wait(GRACE):
            return
        for child in self.children:
            child.kill()
        if self.children and self.over.wait(GRACE):
            return
        _end(tell=self.tells())


@contextmanager
def all_or_none(fabric: "Fabric") -> Iterator[None]:
    """If one of several processes fails, all end: none waits for ever, none is left, and one tells why."""
    leads, patience, heartbeat = fabric.global_rank == 0, 0.0, None
    started: list[subprocess.Popen[bytes]] = getattr(fabric.strategy.launcher, "procs", [])
    children = list(started)
    started.clear()  # Fabric watches this list, and kills this process without a word when one of them ends badly
    try:
        if fabric.world_size > 1 and torch.distributed.is_initialized():
            heartbeat = Heartbeat(fabric, children)
        yield
        patience = 60.0
    except (Interrupted, LearningError) as error:  # all have agreed on it, so one tells
        raise (error if leads else SystemExit(error.exit_code)) from None
    except KeyboardInterrupt:
        raise (KeyboardInterrupt() if leads else SystemExit(Interrupted.exit_code)) from None
    except RuntimeError as error:
        if fabric.world_size == 1 or not any(word in str(error) for word in OF_A_BROKEN_LINE):
            raise
        tells = leads if heartbeat is None else heartbeat.tells()
        raise (RunError(GONE) if tells else SystemExit(RunError.exit_code)) from None
    finally:
        if heartbeat is not None:
            heartbeat.stop(done=patience > 0.0)
        _ended(children, patience)


def _ended(children: "list[subprocess.Popen[bytes]]", patience: float) -> None:
    """The processes that this one started. They write nothing, so nothing is lost when they are killed."""
    for child in children:
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
