"""Baselines: what costs nothing, scored as a model is, on the same rows; they learn from the training set alone.

`table.py` lists them by what a model outputs; the others each have one kind.
"""
