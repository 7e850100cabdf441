"""Jar 6: choosing outputs, and saying how good they are."""
