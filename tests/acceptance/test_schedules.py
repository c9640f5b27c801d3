"""Schedules on a real host: it fires them at their times, whatever else runs, and takes in changes as it goes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.core.job import Job
from jobs.engine import JobFilter, get_engine
from tests.acceptance.edits import EDITS
from tests.acceptance.hosts import ROOT, Journal, Manage, StartHost
from tests.support.wait import eventually, soon

pytestmark = pytest.mark.acceptance

INTERVAL = 0.25
"""Of schedules that are changed, from then on."""

ACT = 1.0
"""An edit is written down before it is committed: by at most so many seconds."""

Edit = Callable[[float], dict[str, float]]


@pytest.fixture
def edit(environment: dict[str, str]) -> Edit:
    """Changes schedules in every way: schedule → when that was committed."""

    def run(seconds: float) -> dict[str, float]:
        command = [sys.executable, "-m", "tests.acceptance.edits", str(seconds)]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True)
        return dict(json.loads(done.stdout))

    return run


def jobs_of(schedule: str) -> list[Job]:
    """Its jobs, in the order of their fire times. One that changes its state meanwhile may be listed twice, or not."""
    listed = {job.id: job for job in get_engine().jobs.page(JobFilter(), limit=1000).items}
    found = [job for job in listed.values() if job.schedule == schedule]
    return sorted(found, key=lambda job: job.fire_time or datetime.min.replace(tzinfo=UTC))


def steps(jobs: list[Job]) -> set[float]:
    """The seconds between their fire times."""
    times = [job.fire_time.timestamp() for job in jobs if job.fire_time]
    return {round(later - earlier, 3) for earlier, later in pairwise(times)}


def in_step(schedule: str, seconds: float, *, at_least: int) -> list[Job]:
    """At least so many jobs of it, each of which fires ``seconds`` after the one before: none lacks."""

    def look() -> list[Job] | None:
        found = jobs_of(schedule)
        return found if len(found) >= at_least and steps(found) == {seconds} else None

    return eventually(look, within=30)


def test_a_host_fires_short_intervals_beside_slow_jobs_and_takes_in_every_change_within_two_seconds(
    start_host: StartHost, manage: Manage, edit: Edit, journal: Journal, tmp_path: Path
) -> None:
    soon_after = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=1)
    common = {"job_type": "test.nothing", "grace_seconds": 3600}  # a host may take its time to start
    slow = {"job_type": "test.sleep", "payload": {"seconds": 1, "path": journal.path}}
    items = [
        {"name": "tenth", **common, "kind": "interval", "interval_seconds": 0.1},
        {"name": "slow", **common, **slow, "kind": "interval", "interval_seconds": 0.5},
        {"name": "once", **common, "kind": "once", "run_at": soon_after.isoformat()},
        *({"name": name, **common, "kind": "interval", "interval_seconds": 3600} for name in EDITS if name != "code"),
    ]
    file = tmp_path / "schedules.json"
    file.write_text(json.dumps(items))
    manage("schedules", "import", str(file))
    start_host().consuming()

    in_step("tenth", 0.1, at_least=8)
    once = eventually(lambda: next((job for job in jobs_of("once") if job.started_at), None), within=30)
    assert once.fire_time == soon_after
    first = eventually(lambda: next((job for job in jobs_of("slow") if job.finished_at), None), within=30)
    assert first.finished_at is not None
    assert [job.id for job in jobs_of("slow") if job.started_at and job.started_at < first.finished_at] != [first.id]
    manage("schedules", "pause", "tenth")
    paused = len(jobs_of("tenth"))

    for name, edited_at in edit(INTERVAL).items():
        made = in_step(name, INTERVAL, at_least=3)
        assert made[0].fire_time is not None
        assert made[0].fire_time.timestamp() > edited_at - ACT, f"{name}: a changed rhythm makes nothing up"
        assert made[0].created_at.timestamp() - edited_at < soon(INTERVAL + 2), name
    assert len(jobs_of("tenth")) <= paused + 1
