"""Inspection of a model: its equations, its parameters and its attention weights."""
