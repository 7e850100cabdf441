"""A graph of ONNX as a function of named tensors."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, final

import onnxruntime
from numpy.typing import NDArray

from sixjars_runtime.shared.errors import RunError


@final
class Graph:
    """A file, ready to be run; from several threads at once if they like."""

    def __init__(self, path: Path, threads: int) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            reason = str(error).splitlines()[0][:200].rstrip(".")
            raise RunError(f"{path} is damaged, or is no graph that onnxruntime can run: {reason}.") from error
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._outputs = [one.name for one in self._session.get_outputs()]

    @property
    def inputs(self) -> list[str]:
        """The names of what it takes."""
        return self._inputs

    def __call__(self, tensors: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """What it makes of these; others that are given are left out."""
        found = self._session.run(self._outputs, {name: tensors[name] for name in self._inputs})
        return dict(zip(self._outputs, found, strict=True))
