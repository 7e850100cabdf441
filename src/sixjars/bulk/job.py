"""One job of a large prediction: its parts, which of them are done, and doing the rest here."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, final

from sixjars.bulk import PART_ROWS
from sixjars.bulk.plan import (
    PLAN,
    BulkPlan,
    FilePart,
    Shard,
    keep_plan,
    kept_plan,
    planned,
)
from sixjars.bulk.sources import inputs_of
from sixjars.bulk.worker import Worker, WorkerSettings
from sixjars.data.tables import FORMATS
from sixjars.data.text.files import ending_of
from sixjars.model.compiling import compiled_for
from sixjars.progress import number_of, tell
from sixjars.runs.fine_tune import fingerprint
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars.runs.prediction.predictor import Predictor
from sixjars.runs.prediction.threads import prediction_threads
from sixjars_runtime.errors import DataError

MOST_NAMES: Final = 5
"""Files without rows that are named; others are only counted."""


@final
@dataclass(frozen=True)
class BulkJob:
    """The parts of one job."""

    order: WorkerSettings
    parts: list[FilePart]
    left: list[FilePart]
    """The parts that are not there yet."""

    @property
    def rows(self) -> int:
        """How many rows are left to answer."""
        return sum(part.rows for part in self.left)


def job_of(
    order: WorkerSettings,
    predictor: Predictor,
    given: str | Path,
    *,
    shard: Shard,
    part_rows: int | None = None,
    resume: bool = False,
) -> BulkJob:
    """The parts of one of several jobs. `order` need not know yet where the inputs are."""
    output = Path(order.output)
    _check(output)
    inputs = inputs_of(str(given), output)
    facts = {
        "weights": fingerprint(predictor.folder),
        "search": order.search.model_dump(mode="json"),
        "precision": order.precision,
        "json": order.as_json,
    }
    plan = kept_plan(output, facts, part_rows, inputs)
    if plan is None:
        plan = planned(facts, part_rows or PART_ROWS, inputs, predictor)
        there = next((part.target for part in plan.parts if (output / part.target).exists()), None)
        if there is not None and not (output / PLAN).exists():
            elsewhere = f"--output {output} holds {there} already, from elsewhere"
            raise DataError(f"{elsewhere}; choose another folder.")
        keep_plan(output, plan)
        kept_plan(output, facts, part_rows, inputs)  # another job may have been quicker
    _tell_empty(plan)
    order = replace(order, root=inputs.root)
    parts = plan.parts[shard.number - 1 :: shard.count]
    left = [part for part in parts if not order.is_done(part)]
    if len(left) < len(parts) and not resume:
        there = f"holds {len(parts) - len(left)} of its {len(parts)} parts already"
        remedy = "go on with --resume, or choose another folder."
        raise DataError(f"--output {output} {there}; {remedy}")
    return BulkJob(order, parts, left)


def _check(output: Path) -> None:
    """Refuse a file, and a new folder with a name like that of a file."""
    if output.is_dir():
        return
    if output.exists():
        raise DataError(
            f"--output {output} is a file, but these answers need a folder, and work in one file "
            "cannot go on; begin again with --output FOLDER."
        )
    if ending_of(output) in FORMATS:
        reason = "would be a folder, because these answers are files"
        raise DataError(f"--output {output} {reason}; name it without ending.")


def _tell_empty(plan: BulkPlan) -> None:
    empty = [source.name for source in plan.sources if not source.rows]
    if empty:
        names = ", ".join(empty[:MOST_NAMES]) + (", …" if len(empty) > MOST_NAMES else "")
        tell(f"left out because there are no rows: {number_of(len(empty), 'file')}, {names}")


def predicted_here(job: BulkJob, predictor: Predictor) -> Iterator[tuple[InputCounts, list[str]]]:
    """Answer one part after the other, with all cores; yield each with its notes."""
    worker = Worker(job.order, predictor)
    compiled_for(predictor.device.type, "32")
    with prediction_threads(predictor) as threads:
        for part in job.left:
            yield worker.predict(part, threads)
