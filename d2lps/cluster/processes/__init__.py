"""Start, watch and end processes: here, in the slow network, over SSH."""
