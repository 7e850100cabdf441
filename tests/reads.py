"""Which memory operations read: a CUDA graph has addresses alone, so somebody must keep it."""

import gc
from typing import Any, final

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@final
class Reads(TorchDispatchMode):
    """The memory that operations read and did not make themselves."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.own: set[int] = set()
        self.given: list[StorageWeakRef] = []

    def freed(self) -> int:
        """How many of them nobody keeps any more."""
        gc.collect()
        assert len(self.given) > 20
        return sum(memory.expired() for memory in self.given)  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in tree_leaves((args, kwargs or {})):
            if _has_storage(tensor) and tensor.untyped_storage()._cdata not in self.own:
                self.given.append(StorageWeakRef(tensor.untyped_storage()))  # type: ignore[no-untyped-call]
        made = func(*args, **(kwargs or {}))
        self.own |= {
            each.untyped_storage()._cdata for each in tree_leaves(made) if _has_storage(each)
        }
        return made


def _has_storage(value: object) -> bool:
    """Whether it is a tensor whose memory torch knows; a matrix of oneDNN has its own."""
    return isinstance(value, Tensor) and not value.is_mkldnn
