"""Whether a search of many rows fits into memory, checked before anything is copied."""

from typing import Any

import torch

from sixjars.flow.contracts import Generator
from sixjars.flow.values import Prepared, Rows
from sixjars_runtime.memory import SearchSize, free_memory


def check_memory(
    generator: Generator, state: Rows, prepared: Prepared, *, keeps_weights: bool, **size: Any
) -> None:
    """Refuse a search that does not fit; one step of the model tells its vocabulary.

    `size` are the other fields of `SearchSize`: rows of each source, steps, whether it is a beam.
    """
    with torch.inference_mode():
        go = generator.special.go
        token = torch.full((state.rows,), go, dtype=torch.long, device=state.device)
        scored, _ = generator.step(token, state, prepared)
    carried = state.tensors() if generator.grouped else [*state.tensors(), *prepared.tensors()]
    SearchSize(
        sources=state.rows,
        vocabulary=scored.scores.shape[1],
        positions=0 if scored.weights is None or not keeps_weights else scored.weights.shape[1],
        state=sum(tensor.nbytes for tensor in carried) // state.rows,
        **size,
    ).check(free_on(state.device))


def free_on(device: torch.device) -> int | None:
    """The free bytes of a device, with those that torch holds and does not use."""
    if device.type != "cuda":
        return free_memory()
    held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0]) + held
