"""The admin: configuration that people edit. Running work is looked at and steered on the dashboard.

Plain Django admin classes. Only schedules bring a script (a file, for their preview), templates and a style sheet that
names no ground colours, so all keep to a strict content security policy and take on whatever theme the admin has.
"""

from jobs.admin.audit import AuditEntryAdmin
from jobs.admin.job_type import JobTypeAdmin
from jobs.admin.pool import PoolAdmin
from jobs.admin.run_record import RunRecordAdmin
from jobs.admin.schedule import ScheduleAdmin
from jobs.admin.token import ApiTokenAdmin
from jobs.admin.workflow import WorkflowAdmin

__all__ = [
    "ApiTokenAdmin",
    "AuditEntryAdmin",
    "JobTypeAdmin",
    "PoolAdmin",
    "RunRecordAdmin",
    "ScheduleAdmin",
    "WorkflowAdmin",
]
