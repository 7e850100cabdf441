"""Drawings of attention and of scores as image files."""
