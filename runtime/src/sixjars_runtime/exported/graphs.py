"""A graph of ONNX as a function of named tensors."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from sixjars_runtime.errors import RunError, first_line

LARGEST: Final = (1 << 31) - 1
"""Bytes of a graph; its format holds no more."""
TYPES: Final = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
    "tensor(uint8)": np.uint8,
}
"""Of the tensors that an exported graph takes and gives."""
Sizes = Sequence[int | None]
"""Of a tensor; None where a size differs from batch to batch."""
ROWS: Final = (None, None)
"""The sizes of a tensor with a row for each input and a number at each position."""


@final
class OnnxGraph:
    """A graph in a file, ready to be run, also from several threads at once."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        if not path.is_file():
            is_there = path.is_symlink() or path.exists()
            raise self.fault("is no plain file" if is_there else "does not exist")
        if path.stat().st_size > LARGEST:  # the library would read all of it
            raise self.fault(f"is damaged: it is larger than {LARGEST:,} bytes")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # what is raised need not be printed too
        try:
            self._session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            reason = first_line(error)[:200].rstrip(".")
            raise self.fault(
                f"is damaged, or is no graph that onnxruntime can run: {reason}", end=""
            ) from error
        self.inputs = {tensor.name: _sizes(tensor) for tensor in self._session.get_inputs()}
        """The declared sizes of its inputs, by name."""
        self.outputs = {tensor.name: _sizes(tensor) for tensor in self._session.get_outputs()}
        """The declared sizes of its outputs, by name."""
        self._types = [TYPES.get(tensor.type) for tensor in self._session.get_outputs()]

    def check(
        self, takes: Collection[str], needs: Mapping[str, Sizes], may_have: Mapping[str, Sizes]
    ) -> None:
        """Refuse a graph that takes something else, or whose inputs and outputs do not fit.

        `needs` must be there, `may_have` need not. A size of None fits any.
        """
        if extra := [name for name in self.inputs if name not in takes]:
            raise self.fault(f"does not fit model.json: it takes {extra[0]}")
        declared = self.inputs | self.outputs
        there = {name: sizes for name, sizes in may_have.items() if name in declared}
        for name, expected in {**needs, **there}.items():
            if name not in declared:
                raise self.fault(f"does not fit model.json: it has no {name}")
            if not fits(declared[name], expected):
                raise self.fault(
                    f"does not fit the files beside it: {name} is {in_words(declared[name])}, but "
                    f"should be {in_words(expected)}"
                )

    def __call__(
        self, tensors: Mapping[str, NDArray[Any]], *, rows: int
    ) -> dict[str, NDArray[Any]]:
        """Return the outputs, of so many rows; tensors that it does not take are left out."""
        if lacks := [name for name in self.inputs if name not in tensors]:
            raise self.fault(f"takes {lacks[0]!r}, which it is not given")
        try:
            outputs = self._session.run(
                list(self.outputs), {name: tensors[name] for name in self.inputs}
            )
        except MemoryError:
            raise
        except Exception as error:
            reason = first_line(error)[:300].rstrip(".")
            raise self.fault(
                f"cannot be run, or does not belong to the files beside it: {reason}", end=""
            ) from error
        declared = zip(self.outputs.items(), self._types, outputs, strict=True)
        for (name, sizes), kind, tensor in declared:
            if not (tensor.dtype == kind and fits((rows, *sizes[1:]), tensor.shape)):
                raise self.fault(f"gives another {name} than it declares")
        return dict(zip(self.outputs, outputs, strict=True))

    def fault(self, reason: str, end: str = "; export the run again") -> RunError:
        """Return the error that says what is wrong with this graph."""
        return RunError(f"{self.path} {reason}{end}.")


def _sizes(tensor: Any) -> Sizes:
    """Return the sizes that a graph declares of a tensor, without the names of those that vary."""
    return [size if isinstance(size, int) else None for size in tensor.shape]


def fits(sizes: Sizes, others: Sizes) -> bool:
    """Whether two tensors may have the same sizes.

    >>> fits([None, 6], [2, 6]), fits([None, 6], [2, 7]), fits([None], [2, 6])
    (True, False, False)
    """
    pairs = zip(sizes, others, strict=False)
    return len(sizes) == len(others) and all(
        size == other or None in (size, other) for size, other in pairs
    )


def in_words(sizes: Sizes) -> str:
    """Return sizes as a person reads them.

    >>> in_words([None, 6])
    '(any, 6)'
    """
    return f"({', '.join('any' if size is None else str(size) for size in sizes)})"
