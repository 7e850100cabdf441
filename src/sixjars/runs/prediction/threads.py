"""Several batches at a time on the cores of one machine."""

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

import torch

from sixjars.runs.prediction.predictor import Predictor


@contextmanager
def prediction_threads(predictor: Predictor) -> Iterator[Executor | None]:
    """On a CPU, threads that compute a batch of their own each; else None.

    Images and videos are large products: for those, and where OMP_NUM_THREADS is set, torch divides
    the work by itself.
    """
    media = any(field.is_media for field in predictor.fields.inputs.values())
    if predictor.device.type != "cpu" or media or "OMP_NUM_THREADS" in os.environ:
        yield None
        return
    with thread_for_each_core() as threads:
        yield threads


@contextmanager
def thread_for_each_core() -> Iterator[Executor]:
    """A thread for each core, which computes alone.

    Several threads inside of one small matrix product wait for each other longer than they compute.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    threads = ThreadPoolExecutor(before)
    try:
        yield threads
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
        torch.set_num_threads(before)
