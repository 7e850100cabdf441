"""The folder of a run: what is in it, how it is opened from elsewhere, and how it is shared."""
