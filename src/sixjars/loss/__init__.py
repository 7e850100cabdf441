"""Jar 4: what training makes small."""
