"""Where learning stands: small enough for JSON, enough to go on from exactly there."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

from sixjars.learning.checkpoints import disk_faults


@final
@dataclass
class Journal:
    """Counters of a run. Everything that influences what comes next is here, in the weights or in the recipe."""

    step: int = 0
    """Updates made."""
    epoch: int = 0
    """Whole passes over the data made."""
    done_in_epoch: int = 0
    """Updates made in this pass."""
    loss: float = 0.0
    """Summed over the tokens since the last validation."""
    tokens: int = 0
    """Seen since the last validation."""
    best: list[tuple[float, int]] = field(default_factory=list)
    """Scores of the best checkpoints and the updates they were made at, best first."""
    stale: int = 0
    """Validations since the last improvement."""
    halvings: int = 0
    """How often plateau has halved the rate."""
    since_halving: int = 0
    """Validations without improvement that plateau has counted."""
    log_bytes: int = 0
    """How much of the log belongs to this state; what comes after is of a future that was lost."""
    finished: bool = False
    """Whether learning came to its own end."""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Journal":
        """Back from `to_json`."""
        plain = {**values, "best": [(score, step) for score, step in values["best"]]}
        return cls(**plain)

    def score(self, value: float, *, better: str, keep: int) -> bool:
        """Enter a validation score; whether it is the best so far. At most `keep` are remembered."""
        sign = 1.0 if better == "lower" else -1.0
        is_best = not self.best or sign * value < sign * self.best[0][0]
        self.best = sorted([*self.best, (value, self.step)], key=lambda entry: sign * entry[0])[:keep]
        self.stale = 0 if is_best else self.stale + 1
        self.since_halving = 0 if is_best else self.since_halving + 1
        return is_best


@final
class Log:
    """The run's log: one JSON object a line, one line a validation."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def cut(self, size: int) -> None:
        """Forget all after the first `size` bytes, and half a line."""
        if self.path.exists():
            with disk_faults(self.path), self.path.open("r+b") as file:
                whole = file.read(size).rpartition(b"\n")
                file.truncate(len(whole[0] + whole[1]))

    def add(self, record: Mapping[str, float]) -> int:
        """Write a line; returns the log's size after it."""
        with disk_faults(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            return file.tell()
