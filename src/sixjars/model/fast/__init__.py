"""The fast path of recurrences: hand-written backward passes, and cells and attention as kernels.

`model.recurrent` holds the reference, which computes the same; `docs/how_it_is_fast.md` derives
these equations.
"""
