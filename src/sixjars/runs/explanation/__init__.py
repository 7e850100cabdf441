"""What `explain` says of a recipe or a run: its six sections in words, equations and numbers."""
