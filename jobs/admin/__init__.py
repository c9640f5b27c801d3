"""The admin: configuration that people edit. Running work is looked at and steered on the dashboard.

Plain Django admin classes without scripts or templates of their own, so they keep to a strict content security policy
and take on whatever theme the project gives its admin.
"""

from jobs.admin.job_type import JobTypeAdmin
from jobs.admin.pool import PoolAdmin

__all__ = ["JobTypeAdmin", "PoolAdmin"]
