"""What people set in rows is in force in running hosts within seconds, however the rows were changed."""

from __future__ import annotations

from typing import Any

import pytest

from jobs import get_job
from jobs.core.states import JobState
from jobs.engine import get_engine
from jobs.registry import registry
from jobs.services.reconciler import Reconciler
from tests.acceptance.hosts import Manage, StartHost
from tests.support.valkey import ValkeyServer
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance

SECONDS = 25.0
"""Ample for "within seconds"."""

OFTEN = {"MAINSPRING_TEST_COMPARISON_SECONDS": "0.5"}
"""Hosts compare every ten seconds; a test need not wait for that."""


@pytest.fixture
def server_url(private_valkey: ValkeyServer, settings: Any) -> str:
    settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
    return private_valkey.url


def edit(manage: Manage, statement: str) -> None:
    """Changes rows as a program would, without the admin's push."""
    manage("shell", "--verbosity", "0", "-c", f"from jobs.models import JobType, Pool; {statement}")


def _set_aside(job_type: Any) -> Any:
    """A new job of the type, if the host set it aside and did not run it."""
    job = job_type.enqueue(source="cat.jpg", sizes=[32])
    eventually(lambda: (found := get_job(job.id)).parked or found.attempt, within=SECONDS)
    return job if get_job(job.id).parked else None


def test_a_running_host_obeys_rows_that_a_program_changed_even_after_redis_was_flushed(
    start_host: StartHost, manage: Manage, private_valkey: ValkeyServer
) -> None:
    edit(manage, "JobType.objects.filter(name='image.process').update(enabled=False)")
    host = start_host("--pool", "background", **OFTEN).consuming()
    engine = get_engine()
    eventually(lambda: engine.types.disabled() == {"image.process"}, within=SECONDS)
    image, report = registry.get("image.process"), registry.get("report.build")

    held = eventually(lambda: _set_aside(image), within=SECONDS)  # a worker's view is up to a second old
    done = report.enqueue(year=2014, resamples=100)  # type: ignore[attr-defined]
    eventually(lambda: get_job(done.id).state == JobState.SUCCEEDED, within=SECONDS)
    assert get_job(held.id).state == JobState.READY
    assert get_job(held.id).attempt == 0

    edit(manage, "JobType.objects.update(enabled=True); Pool.objects.filter(name='background').update(slots=3)")
    eventually(lambda: get_job(held.id).state == JobState.SUCCEEDED, within=SECONDS)
    eventually(lambda: engine.pools.get("background").slots_actual == 3, within=SECONDS)

    with private_valkey.client() as client:
        client.flushall()
    eventually(lambda: engine.pools.configured() == {"background": 3}, within=SECONDS)
    again = report.enqueue(year=2014, resamples=100)  # type: ignore[attr-defined]
    # Until a host has entered the pool anew nobody finds its jobs.
    eventually(lambda: (found := engine.jobs.find(again.id)) and found.state == JobState.SUCCEEDED, within=SECONDS)
    eventually(lambda: "the store knows" in host.log, within=SECONDS)  # heard at its next beat, whatever was pushed


def test_hosts_compare_within_seconds() -> None:
    assert Reconciler.every <= 10.0


def test_scaling_a_pool_by_command_outlasts_the_next_comparison(start_host: StartHost, manage: Manage) -> None:
    start_host("--pool", "background", **OFTEN).consuming()

    manage("shell", "--verbosity", "0", "-c", "from jobs import pools; pools.scale('background', 4)")

    engine = get_engine()
    eventually(lambda: engine.pools.get("background").slots_actual == 4, within=SECONDS)
    edit(manage, "JobType.objects.filter(name='image.process').update(priority=7)")
    eventually(lambda: engine.types.get("image.process").priority == 7, within=SECONDS)  # a comparison has happened
    assert engine.pools.get("background").slots_actual == 4
