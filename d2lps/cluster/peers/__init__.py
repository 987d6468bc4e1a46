"""Connections between workers, over which plans travel; they need NumPy only.

`joining`: each worker gets a connection to each of the others. `exchange`:
what the connections carry in a run of `d2lps.collectives.travel`.
"""
