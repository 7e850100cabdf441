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


@final
class Graph:
    """A graph in a file, ready to be run, also from several threads at once."""

    def __init__(self, path: Path, threads: int) -> None:
        self.path = path
        _check_file(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4  # what is raised need not be printed too
        try:
            self._session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            reason = first_line(error)[:200].rstrip(".")
            raise RunError(
                f"{path} is damaged, or is no graph that onnxruntime can run: {reason}."
            ) from error
        self._inputs = {tensor.name: tensor for tensor in self._session.get_inputs()}
        self._outputs = {tensor.name: tensor for tensor in self._session.get_outputs()}
        self._declared = {
            name: (TYPES.get(tensor.type), self.sizes(name))
            for name, tensor in self._outputs.items()
        }

    @property
    def inputs(self) -> list[str]:
        """The names of its inputs."""
        return list(self._inputs)

    @property
    def outputs(self) -> list[str]:
        """The names of its outputs."""
        return list(self._outputs)

    def sizes(self, name: str) -> Sizes:
        """Return the declared sizes of an input or output; RunError where there is no such name."""
        tensor = self._inputs.get(name) or self._outputs.get(name)
        if tensor is None:
            raise RunError(
                f"{self.path} does not fit model.json: it has no {name}; export the run again."
            )
        return [size if isinstance(size, int) else None for size in tensor.shape]

    def check(self, *, takes: Collection[str], gives: Mapping[str, Sizes]) -> None:
        """Refuse a graph that takes or gives something else than is needed.

        A size of None fits any.
        """
        if extra := [name for name in self._inputs if name not in takes]:
            raise RunError(
                f"{self.path} does not fit model.json: it takes {extra[0]}; export the run again."
            )
        for name, expected in gives.items():
            sizes = self.sizes(name)
            if not fits(sizes, expected):
                raise RunError(
                    f"{self.path} does not fit the files beside it: {name} is {in_words(sizes)}, "
                    "but should be "
                    f"{in_words(expected)}; export the run again."
                )

    def __call__(
        self, tensors: Mapping[str, NDArray[Any]], *, rows: int
    ) -> dict[str, NDArray[Any]]:
        """Return the outputs, of so many rows; tensors that it does not take are left out."""
        try:
            outputs = self._session.run(
                list(self._outputs), {name: tensors[name] for name in self._inputs}
            )
        except KeyError as error:
            raise RunError(
                f"{self.path} takes {error}, which it is not given; export the run again."
            ) from None
        except MemoryError:
            raise
        except Exception as error:
            reason = first_line(error)[:300].rstrip(".")
            raise RunError(
                f"{self.path} cannot be run, or does not belong to the files beside it: {reason}."
            ) from error
        for (name, (kind, sizes)), tensor in zip(self._declared.items(), outputs, strict=True):
            if not (tensor.dtype == kind and fits((rows, *sizes[1:]), tensor.shape)):
                raise RunError(
                    f"{self.path} gives another {name} than it declares; export the run again."
                )
        return dict(zip(self._outputs, outputs, strict=True))


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


def _check_file(path: Path) -> None:
    """Refuse what is no plain file of a graph's size.

    A library would wait for it, or read all of it.
    """
    if not path.is_file():
        there = path.is_symlink() or path.exists()
        raise RunError(
            f"{path} {'is no plain file' if there else 'does not exist'}; export the run again."
        )
    if path.stat().st_size > LARGEST:
        raise RunError(
            f"{path} is damaged: it is larger than {LARGEST:,} bytes; export the run again."
        )
