"""The fault run of handlers that never end: they take up their time limit, and no slot and no neighbour with them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from jobs.core.job import Job
from tests.faults.checker.report import Expectations, Report, Violation
from tests.faults.stage import SLOTS, stage
from tests.faults.workload.jobs import POOL

if TYPE_CHECKING:
    from tests.faults.scenarios import Profile

HOSTS = 2
ROUND_SECONDS = 15.0
"""A slot is free again after as long: the time limit, the grace, a new process; and the machine may be busy."""


def endless(folder: Path, profile: Profile) -> Report:
    """500 handlers (20 in short) compute for ever with a time limit of one second, every other one deaf to exceptions,
    among as many good jobs: each of them dies of that alone, the good ones run, and in the end every slot works."""
    is_long = profile.name == "long"
    count = 500 if is_long else 20
    # With the graces and leases that users have, and with short ones in every run of the tests.
    settings = {} if is_long else {"DJANGO_SETTINGS_MODULE": "tests.acceptance.hasty"}
    with stage(folder, lease_seconds=10.0 if is_long else 2.0) as run:
        for _ in range(HOSTS):
            run.start_host(**settings)
        began, bad, good = time.monotonic(), [], []
        for number in range(count):
            kind = ("endless", "deaf")[number % 2]
            bad += run.enqueue(f"fault.{kind}", [{"key": f"{kind}:{number}"}], timeout=1.0, max_retries=0)
            good += run.enqueue("fault.work", [{"key": f"good:{number}", "seconds": 0.05}])
        run.wait_until_drained(within=ROUND_SECONDS * (1 + count / (HOSTS * SLOTS)))
        took = time.monotonic() - began
        good += run.enqueue(
            "fault.work", [{"key": f"last:{number}", "seconds": 2.0} for number in range(HOSTS * SLOTS)]
        )
        run.wait_until(lambda: run.counts()["leased"] == HOSTS * SLOTS, "not every slot works again", within=30)
        run.wait_until_drained()
        report = run.judge(Expectations(slots={POOL: SLOTS}))
        jobs = [job for job in run.engine.jobs.get_many([*bad, *good]) if job is not None]
        report.violations += [Violation("K7", job.id, _told(job)) for job in jobs if not _is_as_it_should(job, bad)]
        report.numbers |= {
            "seconds for all of them": took,
            "ended with their process": sum("its worker was ended" in str(job.error) for job in jobs),
        }
        return report


def _is_as_it_should(job: Job, bad: list[str]) -> bool:
    """Charged for what it did itself: one failure of the endless ones, nothing of the others."""
    error = job.error["type"] if job.error else None
    expected = ("dead", "JobTimeout", 1, 0) if job.id in bad else ("succeeded", None, 1, 0)
    return (job.state, error, job.attempt, job.crashes) == expected


def _told(job: Job) -> str:
    return f"{job.type} is {job.state} after {job.attempt} attempts and {job.crashes} crashes: {job.error}"
