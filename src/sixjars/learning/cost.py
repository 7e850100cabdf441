"""What a training took: seconds on each device, over all parts of a run that was resumed; a small file of the run."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Final, final

import torch
from pydantic import Field, TypeAdapter, ValidationError

from sixjars.progress import duration

FILE: Final = "cost.json"
_LARGEST: Final = 1 << 16  # bytes


@final
@dataclass(frozen=True)
class Part:
    """So long on one kind of device."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    device: Annotated[str, Field(max_length=200)]
    """`cpu`, or `cuda` with the name of the GPU."""
    processes: Annotated[int, Field(ge=1)] = 1

    @property
    def where(self) -> str:
        """The device, and how many processes where there are several."""
        return self.device + (f" × {self.processes} processes" if self.processes > 1 else "")


@final
@dataclass(frozen=True)
class TrainingCost:
    """Wall time of training and validation; reading the data and the final scores are not in it.

    >>> cost = TrainingCost((Part(150.0, "cpu"),)).plus(Part(50.0, "cpu")).plus(Part(9.0, "cuda (NVIDIA A100)", 2))
    >>> cost.seconds, cost.words
    (209.0, '3 min on cpu, cuda (NVIDIA A100) × 2 processes')
    """

    parts: tuple[Part, ...] = ()
    """One for each kind of device, in the order of their first use."""

    @property
    def seconds(self) -> float:
        """On all devices."""
        return sum(part.seconds for part in self.parts)

    @property
    def device(self) -> str:
        """All of them."""
        return ", ".join(part.where for part in self.parts)

    @property
    def words(self) -> str:
        """For a person."""
        return f"{duration(self.seconds)} on {self.device}"

    def plus(self, more: Part) -> "TrainingCost":
        """With one more part; it is added to one on the same device."""
        found = {part.where: part for part in self.parts}
        before = found[more.where].seconds if more.where in found else 0.0
        found[more.where] = Part(round(before + more.seconds, 3), more.device, more.processes)
        return TrainingCost(tuple(found.values()))

    def to_json(self) -> bytes:
        """As `read_cost` takes it."""
        return (json.dumps([asdict(part) for part in self.parts], indent=2) + "\n").encode()


def read_cost(folder: Path) -> TrainingCost | None:
    """What a run's folder says; nothing where it says nothing, as of older runs, or where the file is damaged."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        parts: Sequence[Part] = TypeAdapter(list[Part]).validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return None
    return TrainingCost(tuple(parts)) if parts else None


def device_name(device: torch.device) -> str:
    """Its kind; of a GPU the name too.

    >>> device_name(torch.device("cpu"))
    'cpu'
    """
    return f"cuda ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else device.type
