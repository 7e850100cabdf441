"""The library that multiplies matrices on this CPU, by their size."""

import sys
from contextlib import suppress
from pathlib import Path
from platform import processor
from typing import Final

import torch


def _is_intel() -> bool:
    """Whether the processor is Intel's: torch's MKL uses all of it, but half of others."""
    with suppress(OSError):
        return "GenuineIntel" in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    return "AuthenticAMD" not in processor()  # on Windows it names the maker


BY_MKL: Final[bool] = _is_intel() or not torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
HAS_ONEDNN: Final[bool] = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
FEWEST: Final = 1 << 15
"""Smaller matrices are left to torch's own product: to call another takes as long."""
FEWEST_STEPS: Final = 1 << 18 if BY_MKL else FEWEST
"""The least size of a matrix that is reordered for oneDNN once for all steps of a batch."""
FEWEST_ONCE: Final = sys.maxsize if BY_MKL else FEWEST
"""The least size of a matrix that is multiplied by once."""
