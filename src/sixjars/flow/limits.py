"""Numbers with limits, for settings and for the constructors of components."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]  # 0, 1, 2, …
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]  # of a random number generator
Positive = Annotated[int, Field(ge=1, lt=2**63, strict=True)]  # 1, 2, 3, …
Size = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
"""The size of a vector, a layer or a beam."""
Layers = Annotated[int, Field(ge=1, le=100, strict=True)]  # stacked layers
Radius = Annotated[int, Field(ge=0, le=100, strict=True)]  # positions on each side of one
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]  # any finite number
Share = Annotated[float, Field(ge=0.0, lt=1.0, strict=True)]  # a fraction below 1
NotNegative = Annotated[float, Field(ge=0.0, strict=True)]  # 0 or more
AboveZero = Annotated[float, Field(gt=0.0, strict=True)]  # more than 0


def padded_size(size: int, *, least: int, parts: int) -> int:
    """The size to pad to where few sizes should be met: a multiple of the least, or of a part.

    Between two powers of two there are `parts` sizes, so that less than one of `parts + 1` places
    is padding.

    >>> [padded_size(size, least=8, parts=4) for size in (1, 9, 33, 65, 300)]
    [8, 16, 40, 80, 320]
    """
    step = max(least, (1 << (size - 1).bit_length()) // (2 * parts))
    return -(-size // step) * step
