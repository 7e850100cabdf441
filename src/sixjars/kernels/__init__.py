"""The backends: how the operations of a model are computed faster than by the reference.

`choose` makes a backend from device, precision and `learning.fast`; `backends` has them all, and
the other files their parts. `docs/how_it_is_fast.md` derives the equations.
"""
