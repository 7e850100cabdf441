"""Numbers with limits, for settings and for the constructors of components."""

from typing import Annotated

from pydantic import Field

Count = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
"""0, 1, 2, …"""
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
"""Of a random number generator."""
Positive = Annotated[int, Field(ge=1, lt=2**63, strict=True)]
"""1, 2, 3, …"""
Size = Annotated[int, Field(ge=1, le=1_000_000, strict=True)]
"""The size of a vector, a layer or a beam."""
Layers = Annotated[int, Field(ge=1, le=100, strict=True)]
"""How many layers are stacked."""
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
"""Any finite number."""
Share = Annotated[float, Field(ge=0.0, lt=1.0, strict=True)]
"""A fraction below 1."""
NotNegative = Annotated[float, Field(ge=0.0, strict=True)]
"""0 or more."""
AboveZero = Annotated[float, Field(gt=0.0, strict=True)]
"""More than 0."""
