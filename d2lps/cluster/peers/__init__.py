"""Lines between workers, over which plans travel: sockets, and NumPy only.

`joining`: how each worker gets a line to each of the others. `exchange`: what
goes over them in a run of `d2lps.collectives.travel`.
"""
