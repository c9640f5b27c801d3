"""A Django app with the job types of the benchmarks. Loaded by their processes only."""
