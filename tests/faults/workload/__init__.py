"""A Django app of job types that write down what happens to them. Loaded by the processes of the fault runs only."""
