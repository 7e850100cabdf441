"""The fast path of recurrences: the backward pass written by hand, attention and cells as one kernel each on CUDA.

`model.recurrent` holds the reference, which computes the same; `docs/how_it_is_fast.md` derives what is done here.
"""
