"""Models that `sixjars export` wrote: their files, readers of their inputs, and search."""
