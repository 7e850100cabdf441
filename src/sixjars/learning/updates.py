"""What an update learns from and leaves behind, and making the next while the present one is used."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar, final

import torch
from torch import Tensor

from sixjars.flow import Batch

T = TypeVar("T")
R = TypeVar("R")


@final
@dataclass(frozen=True)
class Load:
    """What one update of one process learns from."""

    tokens: int
    """Of all processes."""
    batches: tuple[Batch, ...]
    """Of this one; their gradients are added."""
    counts: tuple[float, ...]
    """1 for each batch that counts. A process without a row of its own takes part with one that does not: 0."""


@final
class Update:
    """An update that was made, and its loss, which a device may still be computing."""

    def __init__(self, step: int, tokens: int, loss: Tensor) -> None:
        self.step = step
        self.tokens = tokens
        self._loss = loss.to("cpu", non_blocking=True)
        self._ready: torch.cuda.Event | None = None
        if loss.is_cuda:
            self._ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._ready.record()

    def loss(self) -> float:
        """Summed over the tokens. Waits for the device to finish this update, not what it was given since."""
        if self._ready is not None:
            self._ready.synchronize()
        return float(self._loss)


def ahead(make: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """What `make` makes of each item, in order; a thread makes one while the one before it is used.

    Whatever `make` raises is raised here, when its turn comes.

    >>> list(ahead(str, [1, 2, 3]))
    ['1', '2', '3']
    """
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        waiting: Future[R] | None = None
        for item in items:
            made, waiting = waiting, thread.submit(make, item)
            if made is not None:
                yield made.result()
        if waiting is not None:
            yield waiting.result()
