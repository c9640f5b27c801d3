"""Whether schedules fire when they should."""

from __future__ import annotations

from collections.abc import Iterator

from jobs import api
from jobs.core.wording import length
from jobs.management.diagnosis.finding import Finding
from jobs.management.diagnosis.server import STORE_SECONDS


def check_schedules() -> Iterator[Finding]:
    """Whether something should have fired and did not, and whether some row cannot fire."""
    with api.budget(STORE_SECONDS):
        late = api.schedules.late(limit=1000)
    if late:
        first = late[0]
        yield Finding(
            "schedules",
            "failed",
            f"{len(late):,} should have fired and did not: {first.why}. The first is {first.name}, "
            f"{length(first.seconds)} late.",
            "runworkers",
            "Start a worker host without --no-schedules, or resume the scheduler.",
        )
    broken = [(row.name, row.error) for row in api.schedules.list() if row.error]
    for name, error in broken[:3]:
        yield Finding("schedules", "warning", f"{name}: {error}", "the schedule", "See 'manage.py schedules show'.")
    if len(broken) > 3:
        yield Finding("schedules", "warning", f"{len(broken) - 3:,} more have an error.", "the schedule", "")
    if not late and not broken:
        yield Finding("schedules", "ok", "none is late")
