"""Numbers with limits, for settings and for the signatures of parts."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("should be a number")
    return value


Count = Annotated[int, Field(ge=0, strict=True)]
"""0, 1, 2, …"""
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
"""Where random numbers begin."""
Positive = Annotated[int, Field(ge=1, strict=True)]
"""1, 2, 3, …"""
Number = Annotated[float, BeforeValidator(_number)]
"""Any number; `5e-4`, which YAML takes for a word, included."""
Share = Annotated[Number, Field(ge=0.0, lt=1.0)]
"""A fraction below 1."""
NotNegative = Annotated[Number, Field(ge=0.0)]
"""0 or more."""
AboveZero = Annotated[Number, Field(gt=0.0)]
"""More than 0."""
