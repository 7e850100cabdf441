"""The backends: how the operations of a model are computed faster than by the reference.

`backends` has them all, and makes one from device, precision and `learning.fast`; the other files
are their parts. `docs/how_it_is_fast.md` derives the equations.
"""
