"""Several processes as Fabric sees them: each has all weights (DDP), or a share of them (FSDP).

Fully sharded data parallelism is that of Zhao et al. 2023 (https://arxiv.org/abs/2304.11277). The
whole network is one unit: its weights are together while an update, a validation or a save needs
them; in between each process has its share of them, and always only its share of what the optimizer
remembers, which for Adam is twice as much.
"""

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, cast, final

import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins.precision.fsdp import FSDPPrecision
from lightning_fabric.strategies.fsdp import FSDPStrategy
from torch import Tensor, nn, optim

if TYPE_CHECKING:
    from torch.distributed.fsdp import FullyShardedDataParallel


@final
class DistributedEngine(Fabric):
    """Fabric, with a context in which one process has all weights."""

    @property
    def shares(self) -> bool:
        """Whether each process has a share of the weights."""
        return isinstance(self.strategy, Sharded)

    def whole(self, *, change: bool = False) -> AbstractContextManager[None]:
        """The context in which the first process has all weights, or each, to `change` them.

        All processes enter it.
        """
        strategy = self.strategy
        return strategy.whole(change=change) if isinstance(strategy, Sharded) else nullcontext()

    def summed(self, values: Tensor) -> Tensor:
        """The sum over all processes."""
        return cast("Tensor", self.all_reduce(values, reduce_op="sum"))

    def anywhere(self, *facts: bool) -> tuple[bool, ...]:
        """Each fact, true in all processes where it is in any."""
        if self.world_size == 1:  # reading a tensor would wait for the device every time
            return facts
        flags = torch.tensor([float(fact) for fact in facts], device=self.device)
        return tuple(map(bool, cast("Tensor", self.all_reduce(flags, reduce_op="max"))))


@final
class ShardedPrecision(FSDPPrecision):
    """Mixed precision on any device; Fabric's own is for CUDA devices alone."""

    def __init__(
        self, precision: Literal["32-true", "bf16-mixed", "16-mixed"], device: str
    ) -> None:
        super().__init__(precision)
        self.device = device

    def forward_context(self) -> AbstractContextManager[Any]:
        """The context in which the model and the loss are computed."""
        kind = torch.float16 if self.precision == "16-mixed" else torch.bfloat16
        return torch.autocast(self.device, kind, enabled=self.precision != "32-true")


@final
class Sharded(FSDPStrategy):
    """FSDP, also on CPUs, which Fabric's own refuses.

    To others the optimizer looks as if there was one process: its state is that of whole weights,
    by their numbers.
    """

    unit: "FullyShardedDataParallel"

    def setup_module(self, module: nn.Module) -> nn.Module:
        """Divide its weights, which stay in 32 bits: only computation has fewer."""
        from torch.distributed.fsdp import (
            FullOptimStateDictConfig,
            FullStateDictConfig,
            FullyShardedDataParallel,
            StateDictType,
        )

        self.unit = FullyShardedDataParallel(
            module, device_id=self.root_device, use_orig_params=True
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            FullyShardedDataParallel.set_state_dict_type(
                self.unit,
                StateDictType.FULL_STATE_DICT,
                FullStateDictConfig(rank0_only=True, offload_to_cpu=True),
                FullOptimStateDictConfig(rank0_only=True, offload_to_cpu=True),
            )
        return self.unit

    def setup_optimizer(self, optimizer: optim.Optimizer) -> optim.Optimizer:
        """Let its state be saved and loaded as a whole."""
        optimizer.register_state_dict_post_hook(self._gathered)
        optimizer.register_load_state_dict_pre_hook(self._divided)
        return optimizer

    def setup_module_and_optimizers(
        self, module: Any, optimizers: Any, scheduler: Any = None
    ) -> Any:
        """The module and its optimizers, both divided."""
        each = [self.setup_optimizer(optimizer) for optimizer in optimizers]
        return self.setup_module(module), each, scheduler

    @contextmanager
    def whole(self, *, change: bool) -> Iterator[None]:
        """The context in which all weights are together."""
        with self.unit.summon_full_params(self.unit, writeback=change, rank0_only=not change):
            yield

    def _gathered(self, optimizer: optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        """The state of all processes, on the first one; the others get an empty one."""
        numbers = {name: number for number, name in self._named(optimizer).items()}
        memory: dict[int, dict[str, Any]] = {}
        states = state["state"]
        kinds = {kind for each in states.values() for kind in each if each[kind] is not None}
        for kind in sorted(kinds):
            # One after the other: on CPUs torch gathers all into the same place.
            part = {number: {kind: each[kind]} for number, each in states.items()}
            whole = self.unit.optim_state_dict(self.unit, optimizer, {**state, "state": part})
            for name, tensors in whole.get("state", {}).items():
                memory.setdefault(numbers[name], {})[kind] = tensors[kind].clone()
        return {**state, "state": memory}

    def _divided(self, optimizer: optim.Optimizer, state: dict[str, Any]) -> dict[str, Any]:
        """The share of this process."""
        names = self._named(optimizer)
        groups = [
            {**group, "params": [names[at] for at in group["params"]]}
            for group in state["param_groups"]
        ]
        by_name = {names[number]: memory for number, memory in state["state"].items()}
        whole = {"state": by_name, "param_groups": groups}
        return self.unit.optim_state_dict_to_load(self.unit, optimizer, whole)

    def _named(self, optimizer: optim.Optimizer) -> dict[int, str]:
        """The names of the weights by their numbers in an optimizer."""
        names = {id(weight): name for name, weight in self.unit.module.named_parameters()}
        weights = [weight for group in optimizer.param_groups for weight in group["params"]]
        return {number: names[id(weight)] for number, weight in enumerate(weights)}
