"""Training: losses, batches, the trainer and jobs."""
