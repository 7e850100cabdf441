"""Trained runs behind HTTP: batches of requests, limits, and a live page."""
