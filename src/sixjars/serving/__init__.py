"""Trained runs in use elsewhere: exported to other runtimes, served over HTTP, or in a browser."""
