"""Backbones: networks that turn pixels into maps of cells and one vector; `model/visual.py` finds them by name."""
