"""What need not wait: sending while computing, and workers for each other."""
