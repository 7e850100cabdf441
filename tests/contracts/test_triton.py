"""Triton's kernels under the contract of all backends, on a machine without a GPU.

The interpreter has to be on before Triton is imported, and computes with numpy, which warns where a
GPU does not: so it has a process of its own.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

FEWEST = 50
"""Tests that the process runs at least: one that selects none proves nothing."""


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU runs the kernels themselves")
@pytest.mark.skipif(find_spec("triton") is None, reason="Triton cannot be installed here")
def test_the_kernels_in_the_interpreter() -> None:
    contract = Path(__file__).with_name("test_backends.py")
    options = ["-q", "-p", "no:cacheprovider", "-k", "triton or choice"]
    options += ["-W", "ignore:overflow encountered:RuntimeWarning"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(contract)],
        capture_output=True,
        text=True,
        env={**os.environ, "TRITON_INTERPRET": "1", "PYTEST_ADDOPTS": ""},
        check=False,
    )
    assert ran.returncode == 0, ran.stdout[-4000:]
    counts = dict(re.findall(r"(\d+) (passed|failed|skipped)", ran.stdout.splitlines()[-1]))
    counts = {word: int(number) for number, word in counts.items()}
    assert counts["passed"] >= FEWEST
    assert "skipped" not in counts
