"""The data of a recipe: its splits, files that a run is scored on, and synthetic corpora."""
