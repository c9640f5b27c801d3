"""A Django app of job types that behave well and badly, for tests that start real worker hosts."""
