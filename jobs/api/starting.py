"""How a schedule starts a workflow: by a job whose id is the id of the run.

The firing makes that job exactly once, as it does any other; whoever runs it again, after a crash or a retry, finds the
run that it started before.
"""

from __future__ import annotations

from typing import Any

from jobs.api import workflows
from jobs.api.job_type import job
from jobs.core.context import Context
from jobs.core.retry import Exponential
from jobs.core.schedule.definition import STARTER


@job(STARTER, max_retries=20, backoff=Exponential(base=1, cap=60), timeout=300)
def start_workflow(workflow: str, payload: dict[str, Any], *, ctx: Context) -> dict[str, Any]:
    """Starts a run of the newest version of a stored workflow. WorkflowNotFound, WorkflowInvalid."""
    by = f"schedule {ctx.schedule}" if ctx.schedule else f"job {ctx.id}"
    run = workflows.start(workflow, payload, id=ctx.id, schedule=ctx.schedule, fire_time=ctx.fire_time, started_by=by)
    return {"run": run.id, "version": run.version}
