"""Prediction for very many rows: files are cut into parts, each written whole or not at all."""

from typing import Final

PART_ROWS: Final = 10_000
"""Rows of a part: what is lost at most when a worker is killed."""
