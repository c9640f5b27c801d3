"""What people edit, kept in the Django database. Never on the hot path: workers read Redis, the reconciler fills it.

``jobs.services.reconciler`` carries these rows to the engine; nothing here speaks to it.
"""

from jobs.models.audit import AuditEntry
from jobs.models.job_type import JobType
from jobs.models.pool import Pool
from jobs.models.schedule import Schedule, ScheduleChange

__all__ = ["AuditEntry", "JobType", "Pool", "Schedule", "ScheduleChange"]
