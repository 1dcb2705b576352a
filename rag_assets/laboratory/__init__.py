"""The index laboratory: what an approximate index costs, what it finds, and whether that is enough.

Measurement (`recall`, `latency`, `stages`, `benchmark`), experiments that are declared before they
are run (`sweeps`, `plans`, `sweep_runs`) and judged by a stated rule (`verdicts`, `pictures`), and
the gate that an index passes before it may become a space's default (`promotion`, `defaults`).
"""
