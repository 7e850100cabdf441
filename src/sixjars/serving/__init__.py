"""Runs in use outside of training: exported, served, shown in a browser."""
