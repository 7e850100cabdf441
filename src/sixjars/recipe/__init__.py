"""A recipe as settings: read, checked, overridden, saved. Loads no torch."""
