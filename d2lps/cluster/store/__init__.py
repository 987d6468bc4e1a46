"""A worker's end of MXNet's store, and what the workers agree on."""
