"""The backends with hand-written backward passes: torch operations, C kernels, Triton kernels.

Dims: B batch, R rows open in search, T steps, S source positions, H state features, G gate
      features (H times 1, 3 or 4), V vocabulary, N tokens.

Each computes what `model.reference` does, up to rounding. All share the loop over steps
(`unrolled`), the loss in chunks (`output_loss`) and packed matrices (`products`); they differ in
what computes one step. Tensors that a kernel does not fit are left to torch operations.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any, Literal, Self, final, get_args

import torch
from torch import Tensor, nn

from sixjars.flow.backend import (
    AttendedRecurrence,
    AttentionSources,
    Backend,
    ChoiceRules,
    LayerState,
)
from sixjars.flow.values import Context, LinearLogits, State, StepOutput
from sixjars.kernels import compiled, unrolled
from sixjars.kernels.compiled import COMPILED, CompiledAdditive, KernelLibrary
from sixjars.kernels.compiling import hindrance, load_kernels
from sixjars.kernels.output_loss import loss_gradient, output_loss
from sixjars.kernels.products import Precision, Products, check_precision, key_powers, linear
from sixjars.kernels.steps import CELLS, AdditiveAttention, BatchAttention, Cell, attend_by_powers
from sixjars.model.build import Network
from sixjars.model.reference import REFERENCE, STEPS, advanced, by_torch, layer_weights
from sixjars_runtime.errors import RecipeError, RunError, unknown

Device = Literal["auto", "cpu", "cuda", "mps"]


class HandWritten(Backend):
    """What the three backends share; a subclass says what computes one step."""

    def __init__(self, *, note: str = "", unrolls_stacks: bool = True) -> None:
        self.note = note
        self.products = Products()
        self.unrolls_stacks = unrolls_stacks
        """Whether recurrences without attention are unrolled in training, or left to torch."""

    def __deepcopy__(self, _: dict[int, Any]) -> Self:
        """The same backend; packed matrices belong to the weights of one network."""
        if self.products.packed:
            raise RunError(
                "a network that is packed for prediction cannot be copied; load the run again."
            )
        return self

    def __reduce__(self) -> tuple[Callable[[str], Backend], tuple[str]]:
        """A backend that is unpickled is chosen again, for its kernels are of this machine."""
        return _of_kind, (type(self).__name__,)

    @abstractmethod
    def cell_for(self, name: str, like: Tensor) -> Cell:
        """The step of a cell and its backward pass, for such tensors."""

    @abstractmethod
    def attention_for(self, sources: AttentionSources, steps: int) -> BatchAttention:
        """The additive attention of a batch for so many steps."""

    @abstractmethod
    def loss_gradient(
        self, logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `output_loss.loss_gradient`; the gradient may overwrite the logits."""

    def unrolls(self, inputs: Tensor) -> bool:
        """Whether all steps of such inputs are one call.

        It pays where gradients are needed, and on a GPU, where few large kernels are faster than
        many small ones.
        """
        wanted = torch.is_grad_enabled() or inputs.is_cuda
        return wanted and not torch.compiler.is_compiling()

    def linear(self, inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """As the interface says; by the packed matrix where there is one."""
        return self.products.linear(inputs, weight, bias)

    def pack(self, modules: Iterable[nn.Module], precision: str) -> None:
        """As the interface says, on a CPU."""
        self.products.pack(modules, precision)

    def recurrences(
        self, stacks: Sequence[nn.RNNBase], inputs: Sequence[Tensor], first: State | None = None
    ) -> list[Tensor]:
        """As the interface says; without gradients torch's own call is as fast."""
        name = _name_of(stacks[0])
        if self.unrolls_stacks and torch.is_grad_enabled() and not torch.compiler.is_compiling():
            return unrolled.recurrences(partial(self.cell_for, name), stacks, inputs, first)
        return [
            by_torch(stack, values, first)
            if self.products.packed_form(layer_weights(stack, 0)[2]) is None
            else self._by_steps(name, stack, values, first)
            for stack, values in zip(stacks, inputs, strict=True)
        ]

    def _by_steps(
        self, name: str, stack: nn.RNNBase, inputs: Tensor, first: State | None
    ) -> Tensor:
        """The states (B, T, H) step by step: torch's own call takes no packed matrices."""
        zeros_BH = inputs.new_zeros(len(inputs), stack.hidden_size)
        layers: list[LayerState] = []
        for layer in range(stack.num_layers):
            hidden_BH = zeros_BH if first is None else first.hidden[:, layer]
            cell_BH = zeros_BH if first is None or first.cell is None else first.cell[:, layer]
            layers.append((hidden_BH, cell_BH if name == "lstm" else None))
        weight, bias, _, _ = layer_weights(stack, 0)
        states = []
        for given_BG in self.linear(inputs, weight, bias).unbind(1):
            layers = advanced(self, name, stack, given_BG, layers)
            states.append(layers[-1][0])
        return torch.stack(states, dim=1)

    def cell(self, name: str, given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
        """As the interface says."""
        return STEPS[name](given, recurrent, before)

    def step(self, name: str, stack: nn.RNNBase, inputs: Tensor, before: LayerState) -> LayerState:
        """As the interface says; by torch's own cell, unless matrices are packed."""
        below, bias, weight, bias_hh = layer_weights(stack, 0)
        if name == "gru" and self.products.packed_form(weight) is None:
            return REFERENCE.step(name, stack, inputs, before)
        recurrent_BG = self.linear(before[0], weight, bias_hh)
        return self.cell(name, self.linear(inputs, below, bias), recurrent_BG, before)

    def unroll(self, recurrence: AttendedRecurrence) -> tuple[Tensor, Context] | None:
        """As the interface says."""
        if not self.unrolls(recurrence.inputs):
            return None
        cell = partial(self.cell_for, _name_of(recurrence.stack))
        return unrolled.unrolled(cell, self.attention_for, recurrence)

    def keys(self, memory: Tensor, weight: Tensor) -> Tensor:
        """As the interface says; in training by oneDNN where it is faster."""
        if self.products.packed_form(weight) is None:
            return linear(memory, weight)
        return self.products.linear(memory, weight, None)

    def key_powers(self, keys: Tensor) -> Tensor | None:
        """As the interface says; None where they are not exact, or where gradients are needed."""
        return None if torch.is_grad_enabled() else key_powers(keys)

    def attend(
        self, query: Tensor, sources: AttentionSources, powers: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """As the interface says, by powers of queries and keys."""
        if powers is None or torch.is_grad_enabled():
            return None
        return attend_by_powers(query, sources, powers)

    def output_loss(
        self, linear: LinearLogits, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        """As the interface says, in chunks of tokens."""
        return output_loss(self.loss_gradient, linear, truth, factor, smoothing)

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """As the interface says."""
        return REFERENCE.log_probabilities(logits)

    def choose(
        self, scored: StepOutput, rules: ChoiceRules, opened: Tensor, totals: Tensor, steps: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """None: the operations are those of search."""
        return None


@final
class TorchBackend(HandWritten):
    """Every step in torch operations, on any device."""

    def cell_for(self, name: str, like: Tensor) -> Cell:
        """The cell of this name."""
        return CELLS[name]

    def attention_for(self, sources: AttentionSources, steps: int) -> BatchAttention:
        """Additive attention in torch operations."""
        return AdditiveAttention(sources, steps)

    def loss_gradient(
        self, logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """In torch operations."""
        return loss_gradient(logits, truth, factor, smoothing)


@final
class CompiledBackend(HandWritten):
    """Steps as C kernels, for 32-bit floats on a CPU."""

    def __init__(self, library: KernelLibrary, *, note: str = "") -> None:
        super().__init__(note=note)
        self.kernels = library

    def cell_for(self, name: str, like: Tensor) -> Cell:
        """A kernel, where the cell has one for such tensors."""
        has_kernel = name in COMPILED and compiled.fits(like)
        return COMPILED[name](self.kernels) if has_kernel else CELLS[name]

    def attention_for(self, sources: AttentionSources, steps: int) -> BatchAttention:
        """A kernel for each step and its gradients."""
        if not compiled.fits(sources.keys):
            return AdditiveAttention(sources, steps)
        return CompiledAdditive(sources, steps, self.kernels)

    def loss_gradient(
        self, logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """By a kernel, which overwrites the logits."""
        if compiled.fits(logits) and compiled.fits_loss(logits, truth, factor):
            return compiled.loss_gradient(logits, truth, factor, smoothing, self.kernels)
        return loss_gradient(logits, truth, factor, smoothing)

    def cell(self, name: str, given: Tensor, recurrent: Tensor, before: LayerState) -> LayerState:
        """By a kernel in prediction."""
        after = None
        if compiled.predicts(given):
            after = compiled.step(name, given, recurrent, before, self.kernels)
        return STEPS[name](given, recurrent, before) if after is None else after

    def step(self, name: str, stack: nn.RNNBase, inputs: Tensor, before: LayerState) -> LayerState:
        """By two products and a kernel in prediction."""
        if not compiled.predicts(inputs):
            return super().step(name, stack, inputs, before)
        below, bias, weight, bias_hh = layer_weights(stack, 0)
        recurrent_BG = self.linear(before[0], weight, bias_hh)
        return self.cell(name, self.linear(inputs, below, bias), recurrent_BG, before)

    def attend(
        self, query: Tensor, sources: AttentionSources, powers: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """By a kernel in prediction."""
        attended = None
        if compiled.predicts(query):
            attended = compiled.attend(query, sources, powers, self.kernels)
        return super().attend(query, sources, powers) if attended is None else attended

    def log_probabilities(self, logits: Tensor) -> Tensor:
        """By a kernel in prediction, which overwrites the logits."""
        if compiled.predicts(logits) and logits.is_contiguous() and logits.dim() == 2:
            return compiled.log_softmax(logits, self.kernels)
        return REFERENCE.log_probabilities(logits)


@final
class TritonBackend(HandWritten):
    """Steps as Triton kernels, on CUDA; a network that is not there yet is computed by torch."""

    def cell_for(self, name: str, like: Tensor) -> Cell:
        """A kernel, where the cell has one."""
        if not _on_cuda(like):
            return CELLS[name]
        from sixjars.kernels.cell_kernels import FUSED

        return FUSED.get(name, CELLS[name])

    def attention_for(self, sources: AttentionSources, steps: int) -> BatchAttention:
        """A kernel for each step and its gradients, where one program can hold a source."""
        if not _on_cuda(sources.keys):
            return AdditiveAttention(sources, steps)
        from sixjars.kernels.attention_kernels import FusedAdditive, holds

        kind = FusedAdditive if holds(sources.mask) else AdditiveAttention
        return kind(sources, steps)

    def loss_gradient(
        self, logits: Tensor, truth: Tensor, factor: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """By a kernel, which overwrites the logits."""
        if not _on_cuda(logits):
            return loss_gradient(logits, truth, factor, smoothing)
        from sixjars.kernels.output_kernels import fused_gradient

        return fused_gradient(logits, truth, factor, smoothing)

    def attend(
        self, query: Tensor, sources: AttentionSources, powers: Tensor | None
    ) -> tuple[Tensor, Tensor] | None:
        """By a kernel in prediction, where one program can hold a source."""
        if torch.is_grad_enabled() or not _on_cuda(query):
            return super().attend(query, sources, powers)
        from sixjars.kernels.attention_kernels import attend, holds

        return attend(query, sources) if holds(sources.mask) else None

    def choose(
        self, scored: StepOutput, rules: ChoiceRules, opened: Tensor, totals: Tensor, steps: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
        """By one kernel."""
        from sixjars.kernels.choice_kernels import chosen

        return chosen(scored, rules, opened, totals, steps)


def _on_cuda(like: Tensor) -> bool:
    """Whether Triton's kernels can read such a tensor: on CUDA, or in its interpreter."""
    return like.is_cuda or os.environ.get("TRITON_INTERPRET") == "1"


def _of_kind(name: str) -> Backend:
    """A backend of such a kind, as far as there is one here."""
    if name == "TritonBackend":
        return TritonBackend()
    return prediction_backend("cpu") if name == "CompiledBackend" else TorchBackend()


def _name_of(stack: nn.RNNBase) -> str:
    """The name of the cell of a stack."""
    return {"RNN_TANH": "rnn", "GRU": "gru", "LSTM": "lstm"}[stack.mode]


def device_named(device: Device) -> torch.device:
    """The device that `--device` means on this machine."""
    if device not in get_args(Device):
        raise RecipeError([unknown("device", device, get_args(Device))], "the command line")
    has: dict[str, Any] = {
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "cpu": lambda: True,
    }
    names = [name for name, is_there in has.items() if device in (name, "auto") and is_there()]
    if not names:
        missing = "CUDA device" if device == "cuda" else "Apple GPU (mps)"
        fault = f"--device {device} was asked for, but torch sees no {missing} here."
        raise RecipeError([fault], "the command line")
    return torch.device(names[0])


def training_backend(device: str, precision: str, *, fast: bool, graphs: bool) -> Backend:
    """The backend of a training on such a device; `graphs` if its steps are CUDA graphs."""
    if not fast:
        return REFERENCE
    if device == "cuda":
        # Without graphs a GPU waits for Python; torch's own recurrence is a single call.
        if find_spec("triton") is None:
            return TorchBackend(unrolls_stacks=graphs)
        return TritonBackend(unrolls_stacks=graphs)
    if device != "cpu":
        return TorchBackend(unrolls_stacks=False)
    library = hindrance(precision) or load_kernels(build=True)
    if isinstance(library, str):
        return TorchBackend(note=f"; no compiled kernels: {library}")
    return CompiledBackend(library, note="; compiled kernels")


def prediction_backend(device: str) -> Backend:
    """The backend of predictions; kernels are used that are compiled already."""
    if device == "cuda" and find_spec("triton") is not None:
        return TritonBackend()
    library = load_kernels(build=False) if device == "cpu" else ""
    return TorchBackend() if isinstance(library, str) else CompiledBackend(library)


def compile_ahead(device: str) -> None:
    """Compile the kernels for what will predict for long: a server, a folder of files."""
    if device == "cpu":
        load_kernels(build=True)


def in_precision(network: Network, precision: Precision) -> Network:
    """The network itself, which now predicts in that precision, but trains and saves as before.

    Of an encoder only the recurrences change; the other layers run once for each source.
    """
    device = network.device.type
    check_precision(device, precision)
    if device == "cuda" and precision == "bf16":
        network.decoder.to(torch.bfloat16)
    if device == "cpu":
        stacks = [each for each in network.encoder.modules() if isinstance(each, nn.RNNBase)]
        network.backend.pack([*network.decoder.modules(), *stacks], precision)
    return network
