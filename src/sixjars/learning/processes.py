"""Several processes that train one model: Lightning Fabric starts them, and they end together.

A process waits in C++ for another in a collective operation, however long that takes: validation on
one of them may take hours. So a thread of each sends a byte to the first process every second, and
the first one answers; a process that is killed closes its connection, and one that is stopped
(SIGSTOP, a machine that hangs) is silent.
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
from typing import TYPE_CHECKING, Any, Final, Literal, final

import torch

from sixjars_runtime.errors import Interrupted, LearningError, RecipeError, RunError

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.loggers.logger import Logger

    from sixjars.learning.distributed import DistributedEngine

PRECISIONS: Final[Mapping[str, Literal["32-true", "bf16-mixed", "16-mixed"]]] = {
    "32": "32-true",
    "bf16": "bf16-mixed",
    "fp16": "16-mixed",
}
OF_A_BROKEN_LINE: Final = ("gloo", "NCCL", "onnection", "Broken pipe")
"""Words of torch's messages when another process has gone; one of them is in each."""
GONE: Final = "another process of this training has ended; go on from the last save with --resume."
SILENCE: Final = 20.0
"""Seconds without a sign of life after which a process counts as gone; all have ended by 30."""
TICK: Final = 1.0
GRACE: Final = 4.0
"""Seconds in which the main thread may find a broken connection itself and say so its own way."""
_BEAT: Final = b"."
_DONE: Final = b"!"
_FAILED: Final = b"?"  # its sender tells why
_KEY: Final = 16  # bytes
_FIRST: Final = "SIXJARS_FIRST_PROCESS"


def launched(
    where: str, devices: int, precision: str, *, fsdp: bool, loggers: "Sequence[Logger]"
) -> "DistributedEngine":
    """Fabric with as many processes as devices, of which this is the first, or one it started."""
    here, machines = _processes(devices)
    several = here * machines > 1
    fault = ""
    if where == "cuda" and here > torch.cuda.device_count():
        seen = torch.cuda.device_count()
        fault = f"--devices {here} was asked for, but torch sees {seen} CUDA devices here."
    elif where == "mps" and several:
        fault = f"--devices is {here}, but an Apple GPU (mps) trains in one process; "
        fault += "leave it out, or use --device cpu."
    elif fsdp and not several:
        fault = "--fsdp divides the weights among processes, but there is one; "
        fault += "say --devices 2, or leave it out."
    if fault:
        raise RecipeError([fault], "the command line")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from lightning_fabric.strategies.ddp import DDPStrategy

        from sixjars.learning.distributed import DistributedEngine, Sharded, ShardedPrecision

        # After the import, which sets a level itself.
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        bits, patience = PRECISIONS[precision], timedelta(days=1)
        strategy: Any = DDPStrategy(timeout=patience) if several else "auto"
        if fsdp:
            strategy = Sharded(precision=ShardedPrecision(bits, where), timeout=patience)
        fabric = DistributedEngine(
            accelerator=where,
            devices=here,
            num_nodes=machines,
            strategy=strategy,
            precision=bits,
            loggers=list(loggers),
        )
        with ending_with_the_first() if several else nullcontext():
            fabric.launch()
    return fabric


def _processes(devices: int) -> tuple[int, int]:
    """The numbers of processes here and of machines, from torchrun or from `--devices`."""
    if not torch.distributed.is_available() or not torch.distributed.is_torchelastic_launched():
        return devices, 1
    here, everywhere = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["WORLD_SIZE"])
    if devices not in {1, here}:
        fault = f"--devices is {devices}, but torchrun started {here} processes here; "
        raise RecipeError([f"{fault}leave out --devices."], "the command line")
    return here, everywhere // here


@contextmanager
def ending_with_the_first() -> Iterator[None]:
    """While processes are started: let each of them end soon after the one that started it.

    That holds also while it waits for its first connection. Only processes that are started here
    end so: whoever starts them all by hand may log out.
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
    """Let this process end soon after the one that started it, whatever it is doing then."""

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
    """Sends signs of life, and ends this process when those of another one are missing."""

    def __init__(
        self, fabric: "Fabric", children: "Sequence[subprocess.Popen[bytes]]" = ()
    ) -> None:
        self.rank, self.world = fabric.global_rank, fabric.world_size
        self.children = children
        alone = getattr(fabric.strategy, "num_nodes", 1) == 1
        host = "127.0.0.1" if alone else os.environ["MASTER_ADDR"]
        self.listener = None
        port = 0
        if self.rank == 0:
            self.listener = socket.create_server((host if alone else "", 0))
            self.listener.settimeout(0.0)
            port = self.listener.getsockname()[1]
        port, self.key = fabric.broadcast((port, secrets.token_bytes(_KEY)))
        self.address = host, port
        self.lines: dict[int, socket.socket] = {}
        self.silent: dict[int, float] = {}
        """Seconds since a sign of life; without a connection there is no watching, and no harm."""
        self.over, self.done = threading.Event(), False
        self.orphaned, self.failed = threading.Event(), False
        self.thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self.thread.start()

    def stop(self, *, done: bool) -> None:
        """Stop the signs of life; `done` tells the others that this process ended as it should."""
        self.done = done
        self.over.set()
        self.thread.join(GRACE)

    def tells(self) -> bool:
        """Whether this process, the first of those that are left, is to tell why all end.

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
            with suppress(OSError):  # something unread would reset the line before the last word
                line.recv(4096)
            with suppress(OSError):
                line.send(_DONE if self.done else _FAILED)
            line.close()
        if self.listener is not None:
            self.listener.close()

    def _open(self) -> None:
        """Open missing connections; OSError where nobody calls, or nobody answers."""
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
        """Receive and send signs of life; return whether the other process ended without a word."""
        line, lost = self.lines[rank], False
        self.silent[rank] += passed
        with suppress(BlockingIOError):  # nothing came
            try:
                received = line.recv(4096)
            except ConnectionError:
                received = b""
            self.silent[rank] = 0.0
            lost = not received
            self.failed = self.failed or _FAILED in received
            if _DONE in received:
                self.lines.pop(rank).close()
        with suppress(OSError):  # a broken line is found by reading
            line.send(_BEAT)
        return lost

    def _give_up(self, *, lost: bool) -> None:
        """End this process, if possible by its main thread, which tells why in its own way.

        The main thread may wait for a process that is stopped, until that one is ended.
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
    """If one of several processes fails, all end: none waits for ever, and one tells why."""
    leads, patience, heartbeat = fabric.global_rank == 0, 0.0, None
    started: list[subprocess.Popen[bytes]] = getattr(fabric.strategy.launcher, "procs", [])
    children = list(started)
    started.clear()  # Fabric watches this list, and would kill this process when one ends badly
    try:
        if fabric.world_size > 1 and torch.distributed.is_initialized():
            heartbeat = Heartbeat(fabric, children)
        yield
        patience = 60.0
    except (Interrupted, LearningError) as error:  # of all processes, so one tells
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
    """Wait for the started processes; kill those that do not end, for they write nothing."""
    for child in children:
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
