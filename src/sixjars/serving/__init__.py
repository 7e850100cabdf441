"""A trained run, ready to be asked."""
