"""Backbones: networks from pixels to maps and one vector; `model/visual.py` finds them by name."""
