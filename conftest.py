"""For every test and every example in a docstring: one thread, a cache of its own, the same random numbers.

Libraries are imported in the fixtures: the process that hands the tests to workers needs none of them.
"""

import gc
import os
import random
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    """What was imported stays, so the garbage collector need not look through it again and again, nor come so often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


@pytest.fixture(scope="session", autouse=True)
def _quiet_surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One thread here and in child processes (small models are many times slower with two), and an empty cache."""
    import torch

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", os.environ.get("OMP_NUM_THREADS", "1"))
        patch.setenv("SIXJARS_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True)
def _seeds() -> None:
    """A test does not depend on those that ran before it."""
    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    # Without a GPU, `torch.manual_seed` writes down for later who called it, which takes longer than most tests.
    (torch.manual_seed if torch.cuda.is_available() else torch.default_generator.manual_seed)(0)


@pytest.fixture
def in_64_bits() -> Iterator[None]:
    """Weights and inputs made in the test have 64 bits, so bounds are tight on every processor and version of torch."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
