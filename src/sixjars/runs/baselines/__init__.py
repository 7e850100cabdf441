"""The baselines of a run: simple methods scored on the same rows, and advice where they are as good."""
