"""The time that a training took, by device, over all resumptions: `cost.json` of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, final

from pydantic import Field, TypeAdapter, ValidationError

from sixjars.progress import duration

FILE: Final = "cost.json"
_LARGEST: Final = 1 << 20  # bytes


@final
@dataclass(frozen=True)
class TrainingPart:
    """One part of a training, from where it was begun or resumed to its end."""

    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    device: Annotated[str, Field(max_length=200)]
    """`cpu`, or `cuda` with the name of the GPU."""
    processes: Annotated[int, Field(ge=1)] = 1

    @property
    def where(self) -> str:
        """The device, and the number of processes where there are several."""
        return self.device + (f" × {self.processes} processes" if self.processes > 1 else "")


@final
@dataclass(frozen=True)
class TrainingCost:
    """Wall time of training and validation, without reading the data and the final scores.

    >>> parts = TrainingPart(150.0, "cpu"), TrainingPart(9.0, "cuda (NVIDIA A100)", 2), TrainingPart(50.0, "cpu")
    >>> cost = TrainingCost(parts)
    >>> cost.seconds, cost.words
    (209.0, '3 min on cpu, cuda (NVIDIA A100) × 2 processes')
    """

    parts: tuple[TrainingPart, ...] = ()
    """One for each time that it was begun or resumed."""

    @property
    def seconds(self) -> float:
        """On all devices."""
        return sum(part.seconds for part in self.parts)

    @property
    def device(self) -> str:
        """Every device that was used."""
        return ", ".join(dict.fromkeys(part.where for part in self.parts))

    @property
    def words(self) -> str:
        """Time and devices for a person."""
        return f"{duration(self.seconds)} on {self.device}"


def read_cost(folder: Path) -> TrainingCost | None:
    """The cost that a run's folder holds; None where the file is missing or damaged."""
    path = folder / FILE
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        kind = TypeAdapter(list[TrainingPart])
        parts: Sequence[TrainingPart] = kind.validate_json(path.read_bytes(), strict=True)
    except (OSError, ValidationError):
        return None
    return TrainingCost(tuple(parts)) if parts else None
