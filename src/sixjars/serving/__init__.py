"""Trained runs in use elsewhere: behind HTTP, without torch, in a browser."""
