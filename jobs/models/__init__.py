"""What people edit, kept in the Django database. Never on the hot path: workers read Redis, the reconciler fills it.

``jobs.services.reconciler`` carries these rows to the engine; nothing here speaks to it.
"""

from jobs.models.audit import AuditEntry
from jobs.models.job_type import JobType
from jobs.models.pool import Pool
from jobs.models.run_record import RunRecord
from jobs.models.schedule import Schedule
from jobs.models.schedule_change import ScheduleChange
from jobs.models.token import ApiToken
from jobs.models.workflow import Workflow, WorkflowEdge, WorkflowNode, WorkflowVersion

__all__ = [
    "ApiToken",
    "AuditEntry",
    "JobType",
    "Pool",
    "RunRecord",
    "Schedule",
    "ScheduleChange",
    "Workflow",
    "WorkflowEdge",
    "WorkflowNode",
    "WorkflowVersion",
]
