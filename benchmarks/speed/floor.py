"""The floor: what a step cannot do without. No program is much faster, however it is written.

The matrix products alone, each as large as what it depends on allows: those that wait for the previous state are one
for each step, the others one for all steps. And the bytes that must move, at the speed at which this device copies.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import final

import torch
from torch import Tensor

from .cases import Case

COPIED = {"cpu": 1 << 28, "cuda": 1 << 32}
"""Bytes that are copied to find the bandwidth: far more than any cache holds."""
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


@final
@dataclass(frozen=True)
class Product:
    """(rows × inner) · (inner × outer), so many times one after the other."""

    rows: int
    inner: int
    outer: int
    times: int = 1

    def backward(self) -> "list[Product]":
        """The gradient of the input, and that of the matrix, which can be one product for all steps."""
        inputs = Product(self.rows, self.outer, self.inner, self.times)
        return [inputs, Product(self.inner, self.rows * self.times, self.outer)]


def products(case: Case) -> list[Product]:
    """Of one turn. What attention does for each pair of positions is no matrix product, and is left out."""
    h, e, v = case.sizes.hidden, case.sizes.embedding, case.sizes.vocabulary
    words, rows = case.batch * case.length, case.batch * case.beam
    encoder = [
        *[Product(words, e, 3 * h), Product(case.batch, h, 3 * h, case.length)] * 2,
        Product(words, 2 * h, h),
    ]
    first = Product(case.batch, 2 * h, h)
    if case.measurement == "training":
        steps = case.length
        decoder = [Product(words, e, 3 * h), Product(words, h, v)]
    else:
        steps = case.tokens
        decoder = [Product(rows, e, 3 * h, steps), Product(rows, h, v, steps)]
    decoder += [
        Product(rows, h, 3 * h, steps),
        Product(rows, 2 * h, 3 * h, steps),
        Product(rows, h, h, steps),
    ]
    forward = [*encoder, first, *decoder]
    if case.measurement != "training":
        return forward
    return forward + [gradient for one in forward for gradient in one.backward()]


def weights(case: Case) -> int:
    """How many the model has, without biases."""
    h, e, v = case.sizes.hidden, case.sizes.embedding, case.sizes.vocabulary
    return 2 * v * e + h * v + 3 * 3 * h * (e + h) + 3 * h * 2 * h + 2 * 2 * h * h + h * h


def least_bytes(case: Case) -> int:
    """That must move in one turn.

    In training every weight with its gradient and Adam's two moments is read, and all but the gradient written; the
    logits and their gradient are written and read. In search every step reads the decoder's weights and the keys and
    annotations of all sources.
    """
    h, e, v = case.sizes.hidden, case.sizes.embedding, case.sizes.vocabulary
    wide, narrow = 4, TYPES.get(case.precision, torch.float32).itemsize
    if case.measurement == "training":
        return 8 * weights(case) * wide + 4 * case.batch * case.length * v * narrow
    decoder = h * v + 3 * h * (e + 3 * h) + h * h
    return case.tokens * narrow * (decoder + case.batch * case.length * 3 * h)


@final
class Floor:
    """The products on random numbers."""

    def prepare(self, case: Case) -> Callable[[], object] | None:
        """All of one turn."""
        if case.bridge != "additive" or case.precision == "int8":
            return None
        kind = TYPES.get(case.precision, torch.float32)
        made: dict[tuple[int, int], Tensor] = {}

        def matrix(rows: int, columns: int) -> Tensor:
            if (rows, columns) not in made:
                made[rows, columns] = torch.randn(rows, columns, device=case.device, dtype=kind)
            return made[rows, columns]

        work = [
            (matrix(one.rows, one.inner), matrix(one.inner, one.outer), one.times)
            for one in products(case)
        ]
        outputs = {(len(left), right.shape[1]): left @ right for left, right, _ in work}

        def turn() -> None:
            for left, right, times in work * case.batches:
                out = outputs[len(left), right.shape[1]]
                for _ in range(times):
                    torch.mm(left, right, out=out)

        return turn


def bandwidth(device: str, wait: Callable[[], None]) -> float:
    """Bytes a second that a large copy reads and writes together: the best of several."""
    source = torch.ones(COPIED[device], dtype=torch.uint8, device=device)
    target, best = torch.empty_like(source), float("inf")
    for _ in range(5):
        wait()
        began = perf_counter()
        target.copy_(source)
        wait()
        best = min(best, perf_counter() - began)
    return 2 * COPIED[device] / best
