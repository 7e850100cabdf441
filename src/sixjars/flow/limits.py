"""Numbers with limits, for settings and for the constructors of components."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=0, strict=True)]
"""0, 1, 2, …"""
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
"""Of a random number generator."""
Positive = Annotated[int, Field(ge=1, strict=True)]
"""1, 2, 3, …"""
Size = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
"""The size of a vector or a layer."""
Number = Annotated[float, Field(strict=True)]
"""Any number."""
Share = Annotated[float, Field(ge=0.0, lt=1.0, strict=True)]
"""A fraction below 1."""
NotNegative = Annotated[float, Field(ge=0.0, strict=True)]
"""0 or more."""
AboveZero = Annotated[float, Field(gt=0.0, strict=True)]
"""More than 0."""
