"""What a death costs: replicas, checkpoints, and starting again."""
