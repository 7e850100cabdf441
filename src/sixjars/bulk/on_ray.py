"""The same work on Ray Data, which assigns parts to workers and replaces workers that are lost."""

import logging
import os
import socket
from collections.abc import Iterator, Sequence
from typing import Any, Final, final

from pydantic import TypeAdapter

from sixjars.bulk.job import BulkJob, WorkerSettings
from sixjars.bulk.plan import FilePart
from sixjars.runs.prediction.input_warnings import InputCounts
from sixjars_runtime.errors import DataError, MissingExtra, RunError, SixJarsError, first_line

PATIENCE = 10.0
"""Seconds that a cluster has to answer its first call."""
TRIES = 4
"""How often a part is begun at most: a worker lost so often in the same rows is lost again."""

AS_TEXT: Final = TypeAdapter(InputCounts)
"""Makes a text of counts, and counts of it: a row of Ray Data holds plain values."""


@final
class PartWorker:
    """One process of the pool; it has the run in memory as long as it lives."""

    def __init__(self, order: WorkerSettings, parts: Sequence[FilePart]) -> None:
        self.parts = parts
        self.order = order
        self.worker = order.worker()

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Write one part, unless a worker that was lost then has written it; return its row."""
        part = self.parts[int(batch["id"][0])]
        counts = InputCounts(part.rows)
        notes = list[str]()
        wrong = ""
        try:
            if self.order.tries(part) >= TRIES:
                lost = f"was begun {TRIES} times, and each time its worker was lost."
                raise RunError(f"{part.target} {lost}")
            if not self.order.is_done(part):
                counts, notes = self.worker.predict(part)
        except (SixJarsError, OSError) as error:
            wrong = str(error)
        return {"counts": [AS_TEXT.dump_json(counts).decode()], "notes": [notes], "error": [wrong]}


def predicted_on_ray(
    job: BulkJob, *, workers: int | None = None, address: str | None = None
) -> Iterator[tuple[InputCounts, list[str]]]:
    """Answer all parts by a pool of workers, on this machine or on the cluster at an address."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError:
        raise MissingExtra("ray", "scale") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    job.order.clean(job.left)
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, workers, address)
    try:
        yield from _predicted(ray, job, workers)
    finally:
        if is_ours:
            ray.shutdown()


def _connect(ray: Any, workers: int | None, address: str | None) -> None:
    """Connect to a cluster, or start Ray on this machine, which ends with this process."""
    here: dict[str, Any] = {}
    if not address:
        cpus = max(os.cpu_count() or 1, (workers or 1) + 1)
        here = {"num_cpus": cpus, "include_dashboard": False}
    try:
        _call(address or "")
        ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR", **here)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"the Ray cluster at {address}" if address else "Ray on this machine"
        raise RunError(f"{where} cannot be reached: {first_line(error)}.") from None


def _call(address: str) -> None:
    """Raise OSError where nobody listens at an address: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE).close()


def pool_size(cpus: int, gpus: int, *, workers: int | None, parts: int) -> int:
    """How many workers: one for each GPU, or for each CPU but one, but no more than parts.

    Ray Data needs that CPU: a pool that takes all waits for ever
    (https://github.com/ray-project/ray/issues/44687).

    >>> pool_size(8, 0, workers=None, parts=100), pool_size(8, 2, workers=None, parts=100)
    (7, 2)
    """
    most = min(gpus, cpus - 1) if gpus else cpus - 1
    if most < 1 or (workers or 1) > most:
        has = f"{gpus} GPUs and {cpus} CPUs" if gpus else f"{cpus} CPUs"
        needs = f"--workers {workers or 1} needs more than Ray has ({has})"
        raise DataError(f"{needs}; one CPU must stay free.")
    return min(workers or most, parts)


def _predicted(
    ray: Any, job: BulkJob, workers: int | None
) -> Iterator[tuple[InputCounts, list[str]]]:
    there = ray.cluster_resources()
    gpus = 0 if job.order.device == "cpu" else int(there.get("GPU", 0))
    size = pool_size(int(there.get("CPU", 0)), gpus, workers=workers, parts=len(job.left))
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.execution_no_progress_timeout_s = -1  # a part may take hours
    done = ray.data.range(len(job.left), override_num_blocks=len(job.left)).map_batches(
        PartWorker,
        batch_size=1,
        fn_constructor_args=(job.order, job.left),
        compute=ray.data.ActorPoolStrategy(size=size),
        num_cpus=1,
        num_gpus=1 if gpus else 0,
    )
    try:
        for row in done.iter_rows():
            if row["error"]:
                raise DataError(row["error"])
            yield AS_TEXT.validate_json(str(row["counts"])), list(map(str, row["notes"]))
    except ray.exceptions.RayError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        reason = lines[-1].rstrip(".") if lines else type(error).__name__
        raise RunError(f"the work on Ray has ended: {reason}; go on with --resume.") from error
