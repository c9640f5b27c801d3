"""The worker host: a supervisor, a nursery that forks for it, and children that lease and run jobs.

Start reading at ``supervisor`` (one process, renews leases and watches children) or ``child`` (leases, runs, reports).
"""
