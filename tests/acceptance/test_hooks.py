"""What a project hears of its jobs, over all processes of a real host."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs import get_job, job_logs
from jobs.core.states import JobState
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Host, Journal, StartHost
from tests.support.wait import eventually

pytestmark = pytest.mark.acceptance


@pytest.fixture
def heard(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "heard")


def start(start_host: StartHost, heard: Journal, *arguments: str, **more: str) -> Host:
    settings = {"DJANGO_SETTINGS_MODULE": "tests.acceptance.hooked", "HOOK_JOURNAL": heard.path}
    return start_host(*arguments, **settings, **more).consuming()


def test_deaths_of_every_kind_are_told_and_signals_come_from_where_it_happened(
    start_host: StartHost, heard: Journal
) -> None:
    host = start(start_host, heard)
    failing = handlers.fail.enqueue()  # twice more, then it is dead
    refused = handlers.echo.using(meta={"tenant": "unknown"}, max_retries=0).enqueue()
    fine = handlers.echo.enqueue(value=1)
    eventually(lambda: heard.count("dead", failing.id) and heard.count("job_finished", fine.id))
    crashing = handlers.quit_process.enqueue(code=3)  # its first crash is its last; it takes its neighbours along

    dead = [failing.id, crashing.id, refused.id]
    eventually(lambda: heard.count("dead") == heard.count("job_died") == 3)

    assert heard.counts("dead").keys() == heard.counts("job_died").keys() == set(dead)
    assert heard.counts("job_started") == {failing.id: 3, crashing.id: 1, fine.id: 1, refused.id: 1}
    assert heard.counts("job_retrying") == {failing.id: 2}
    assert heard.pid_of("job_died", crashing.id) == host.pid
    assert heard.pid_of("job_died", failing.id) == heard.pid_of("job_started", failing.id) != host.pid
    error = get_job(refused.id).error
    assert error is not None
    assert (error["type"], error["message"]) == ("PermissionError", "no such tenant")
    assert f"[test.echo {fine.id} #1]" in host.log


def test_the_lines_of_a_handler_are_kept_with_its_job_and_stand_in_the_hosts_log(
    start_host: StartHost, heard: Journal
) -> None:
    host = start(start_host, heard)
    job = handlers.tell.enqueue()
    eventually(lambda: get_job(job.id).state is JobState.SUCCEEDED)

    assert [(line.attempt, line.text) for line in job_logs(job.id).lines] == [(1, "of the job page=3")]
    for line in ("of the job", "of a library"):
        assert f"[test.tell {job.id} #1] {line}" in host.log


def test_a_queue_that_grows_too_long_is_told_of(start_host: StartHost, heard: Journal, journal: Journal) -> None:
    """AC-134: 16 jobs of 500 ms and 4 slots make some wait longer than 100 ms."""
    start(start_host, heard, "--concurrency", "4", LONG_QUEUE_SECONDS="0.1")
    handlers.sleep.enqueue_many([{"seconds": 0.5, "path": journal.path}] * 16)

    eventually(lambda: heard.count("slow"))

    assert all(float(wait) >= 0.1 for wait in heard.counts("slow"))


def test_one_that_is_short_enough_is_not(start_host: StartHost, heard: Journal, journal: Journal) -> None:
    """AC-135: 30 slots run 20 jobs at once."""
    start(start_host, heard, "--concurrency", "30", LONG_QUEUE_SECONDS="0.6")
    jobs = handlers.sleep.enqueue_many([{"seconds": 0.5, "path": journal.path}] * 20)

    eventually(lambda: journal.count("ended") == len(jobs))

    assert heard.count("slow") == 0
