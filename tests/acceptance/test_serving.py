"""A host in an unsteady world: servers restart, pools pause and grow, types come and go, code changes."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from typing import Any

import pytest

from jobs.api import get_job, pools
from jobs.core.states import JobState
from jobs.engine import get_engine
from tests.acceptance.handlers import jobs as handlers
from tests.acceptance.hosts import Journal, Manage, StartHost
from tests.support.valkey import ValkeyServer, free_port
from tests.support.wait import eventually, soon

pytestmark = pytest.mark.acceptance


def ask(port: int, path: str) -> tuple[int, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, json.load(refusal)


class TestWithAServerOfItsOwn:
    @pytest.fixture
    def server_url(self, private_valkey: ValkeyServer, settings: Any) -> str:
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
        return private_valkey.url

    def test_a_killed_and_restarted_server_loses_nothing_and_health_says_who_is_to_blame(
        self, start_host: StartHost, private_valkey: ValkeyServer, journal: Journal
    ) -> None:
        port = free_port()
        host = start_host("--health-port", str(port), "--lease", "60").consuming()  # it outlasts the server's absence
        assert ask(port, "/readyz")[0] == 200
        running = handlers.sleep.enqueue(seconds=1.0, path=journal.path)
        eventually(lambda: journal.count("began", running.id))

        private_valkey.kill()
        status, facts = eventually(lambda: (answer := ask(port, "/readyz"))[0] == 503 and answer)
        assert status == 503
        assert facts["state"].startswith("not consuming: ")
        assert ask(port, "/livez")[0] == 200
        private_valkey.start()

        eventually(lambda: get_job(running.id).state == JobState.SUCCEEDED)
        assert journal.counts("began") == {running.id: 1}  # the result was kept until somebody heard it
        after = handlers.note.enqueue(path=journal.path)
        eventually(lambda: get_job(after.id).state == JobState.SUCCEEDED)
        eventually(lambda: ask(port, "/readyz")[0] == 200)
        host.signal(signal.SIGTERM)
        assert host.wait() == 0

    def test_a_host_that_starts_before_its_server_waits_for_it(
        self, start_host: StartHost, private_valkey: ValkeyServer
    ) -> None:
        job = handlers.nothing.enqueue()
        private_valkey.kill()
        host = start_host("--burst")
        eventually(lambda: "cannot" in host.log)

        private_valkey.start()

        assert host.wait() == 0
        assert get_job(job.id).state == JobState.SUCCEEDED


def test_an_unknown_type_is_parked_and_runs_when_a_worker_that_knows_it_arrives(
    start_host: StartHost, journal: Journal
) -> None:
    job = handlers.sometimes.enqueue(path=journal.path)

    assert start_host("--burst", MAINSPRING_TEST_UNKNOWN="1").wait() == 0
    parked = get_job(job.id)
    assert (parked.state, parked.parked, parked.attempt) == (JobState.READY, True, 0)

    start_host().consuming()
    eventually(lambda: get_job(job.id).state == JobState.SUCCEEDED)


def test_a_paused_pool_starts_nothing_new_and_goes_on_when_resumed(start_host: StartHost, journal: Journal) -> None:
    host = start_host("--pool", "default").consuming()
    running = handlers.sleep.enqueue(seconds=0.5, path=journal.path)
    eventually(lambda: journal.count("began", running.id))

    pools.pause("default")
    waiting = handlers.note.enqueue(path=journal.path)
    eventually(lambda: get_job(running.id).state == JobState.SUCCEEDED)
    eventually(lambda: host.registered.state == "not consuming: paused")
    assert get_job(waiting.id).state == JobState.READY
    pools.resume("default")

    eventually(lambda: get_job(waiting.id).state == JobState.SUCCEEDED)


def test_slots_follow_the_pool_while_the_host_runs(start_host: StartHost, manage: Manage) -> None:
    def slots() -> list[dict[str, int]]:
        return [worker.pools for worker in get_engine().workers.all() if not worker.is_host]

    start_host("--pool", "default").consuming()
    eventually(lambda: slots() == [{"default": 10}])

    manage("pools", "scale", "default", "3")

    eventually(lambda: slots() == [{"default": 3}])


def test_a_full_pool_keeps_no_other_waiting(start_host: StartHost, journal: Journal) -> None:
    handlers.nothing.using(pool="other").enqueue()  # the pool is there when the host starts
    start_host("--concurrency", "1").consuming()
    handlers.sleep.enqueue_many([{"seconds": 60.0, "path": journal.path}] * 2)
    eventually(lambda: journal.count("began") == 1)

    elsewhere = handlers.note.using(pool="other").enqueue(path=journal.path)

    eventually(lambda: journal.count("ran", elsewhere.id))
    assert journal.count("ended") == 0


def test_a_delayed_job_starts_when_it_is_due_and_not_before(start_host: StartHost) -> None:
    start_host().consuming()
    job = handlers.nothing.using(delay=1.0).enqueue()

    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)

    assert ended.started_at is not None
    late = (ended.started_at - ended.run_at).total_seconds()
    assert 0 <= late < soon(0.5)


def test_progress_is_seen_while_the_job_runs_and_the_last_word_stays(start_host: StartHost, journal: Journal) -> None:
    start_host().consuming()
    job = handlers.progress.enqueue(path=journal.path)

    eventually(lambda: (get_job(job.id).progress or {}).get("current") == 3)
    ended = eventually(lambda: (found := get_job(job.id)).state == JobState.SUCCEEDED and found)

    assert ended.progress == {"current": 12, "total": 12, "message": "all"}
