"""Baselines: cheap predictors, scored as a model is; they learn from the training set alone.

`table.py` lists them by what a model outputs; the others each have one kind.
"""
