"""Life of a long-running process: identity, kinship, loops with back-off, signals. Knows nothing of jobs."""
