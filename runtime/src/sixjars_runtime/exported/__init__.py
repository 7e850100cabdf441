"""Models that `sixjars export` wrote: what their files say, how inputs are read, and the search for outputs."""
