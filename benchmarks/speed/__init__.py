"""How fast the toolkit is beside its peers: the same model, the same batches and the same precision, in turns.

python -m benchmarks.speed --device cpu

Each contestant runs in a process of its own, with its own packages: this version, any other version of it (`--src`),
the peers (installed into `build/peers`, never into the project), and the floor, which is the matrix products alone.
"""
