"""What learning leaves on disk while it runs: the log, the best weights, and the state to go on from.

The order is what makes a kill harmless: weights first, then the state that knows of them, then the weights that no
state needs any more are taken away. A kill in between repeats the same work and writes the same bytes.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from torch import nn, optim

from sixjars.errors import RunError
from sixjars.learning import checkpoints
from sixjars.learning.journal import Journal, Log

if TYPE_CHECKING:
    from lightning_fabric.plugins.precision import Precision


@final
class Saves:
    """The files of one run that learning writes; only one process of a run may write them."""

    def __init__(self, folder: Path) -> None:
        self.model = folder / "model.safetensors"
        self.last = folder / "checkpoints" / "last.safetensors"
        self.log = Log(folder / "log.jsonl")

    def best(self, step: int) -> Path:
        """The weights of update `step`, kept because they are among the best."""
        return self.last.with_name(f"best-{step}.safetensors")

    def keep_best(self, network: nn.Module, journal: Journal, *, is_best: bool, average: int) -> None:
        """The weights as they are, if they are the best so far or among those to be averaged."""
        weights = network.state_dict()
        if average > 1 and journal.step in {step for _, step in journal.best}:
            checkpoints.save_tensors(self.best(journal.step), weights, {})
        if is_best:
            checkpoints.save_tensors(self.model, weights, {"step": journal.step})

    def save(self, network: nn.Module, optimizer: optim.Optimizer, journal: Journal, precision: "Precision") -> None:
        """The whole state, down to the optimizer's memory."""
        tensors = {f"model.{name}": tensor for name, tensor in network.state_dict().items()}
        tensors |= checkpoints.packed_optimizer(optimizer)
        notes = {"journal": journal.to_json(), "precision": precision.state_dict()}
        checkpoints.save_tensors(self.last, tensors, notes)
        self.sweep(journal)

    def sweep(self, journal: Journal) -> None:
        """Take away the weights that are no longer among the best, and what a kill left unfinished."""
        kept = {self.best(step) for _, step in journal.best}
        left = {*self.last.parent.glob("best-*.safetensors"), *self.last.parent.glob(".*.part")}
        for path in left - kept:
            path.unlink(missing_ok=True)

    def load(self, network: nn.Module, optimizer: optim.Optimizer, precision: "Precision") -> Journal:
        """Back from `save`; returns where learning stood."""
        tensors, notes = checkpoints.load_tensors(self.last)
        weights = {name.removeprefix("model."): t for name, t in tensors.items() if name.startswith("model.")}
        checkpoints.put_weights(network, weights, self.last)
        try:
            journal = Journal.from_json(notes["journal"])
            checkpoints.unpack_optimizer(optimizer, tensors)
            if notes["precision"]:
                precision.load_state_dict(notes["precision"])
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise RunError(f"{self.last} does not belong to this recipe: {error!r}.") from None
        return journal

    def average(self, journal: Journal) -> None:
        """The final weights: the mean of the best."""
        steps = [step for _, step in journal.best]
        notes: dict[str, Any] = {"mean of": steps}
        mean = checkpoints.mean_weights([self.best(step) for step in steps])
        checkpoints.save_tensors(self.model, mean, notes)
