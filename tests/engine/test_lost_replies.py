"""A reply that is lost is not a request that was lost: sent again, nothing happens twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.core.job import JobSpec, Unique
from jobs.engine import Completion, Engine
from jobs.exceptions import DuplicateJob, OutcomeUnknown
from jobs.store.client import Client
from jobs.store.connection import Store
from jobs.store.scripts import script
from tests.faults.proxy import CLEAR, Proxy, Weather
from tests.support.clock import ManualClock
from tests.support.steps import Steps, everything
from tests.support.valkey import ValkeyServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """One server for the module: its socket is what the proxy needs."""
    server = ValkeyServer(tmp_path_factory.mktemp("v"), appendonly="no").start()
    yield server
    server.kill()


@pytest.fixture
def proxy(server: ValkeyServer, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy(server.socket, tmp_path / "p.sock")
    proxy.start()
    yield proxy
    proxy.stop()


@pytest.fixture
def steps(proxy: Proxy, namespace: str, clock: ManualClock) -> Iterator[Steps]:
    """Producer and worker whose every word passes through the proxy."""
    store = Store(proxy.url, namespace)
    steps = Steps(Engine(store, get_settings(), clock))
    steps.enqueue(pool="warm")
    assert steps.route
    yield steps
    store.close()


def lose_reply(monkeypatch: pytest.MonkeyPatch, proxy: Proxy, name: str) -> None:
    """The reply to the next call of this script is lost, after it was carried out."""
    happens, run = proxy._happens, Store.run
    waiting = [name]

    def happens_once(chance: float, fault: str) -> bool:
        if chance and fault == "lose reply":
            proxy.weather = CLEAR
        return happens(chance, fault)

    def run_watched(store: Store, script_name: str, /, *arguments: Any, **named: Any) -> Any:
        if script_name in waiting:
            waiting.remove(script_name)
            store.client.script_load(script(script_name).source)
            proxy.weather = Weather(lose_reply=1.0)
        return run(store, script_name, *arguments, **named)

    monkeypatch.setattr(proxy, "_happens", happens_once)
    monkeypatch.setattr(Store, "run", run_watched)


def live(steps: Steps) -> list[str]:
    return [job.id for job in steps.lease_all()]


@pytest.mark.parametrize("count", [1, 5])
def test_an_enqueue_makes_its_jobs_once(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    lose_reply(monkeypatch, proxy, "job_enqueue")

    ids = steps.enqueue_many(count)

    assert proxy.taken["lose reply"] == 1
    assert live(steps) == ids
    assert steps.engine.stats.types()["t"]["enqueued"] == count + 1


@pytest.mark.parametrize("harm", ["lost reply", "lost script"])
def test_an_enqueue_of_thousands_makes_each_once(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    """From the second batch on, each is sent before the one before it is answered: two of them are cut off."""
    happens, in_flight = proxy._happens, Client.in_flight

    def happens_once(chance: float, fault: str) -> bool:
        if chance and fault == "lose reply":
            proxy.weather = CLEAR
        return happens(chance, fault)

    def harmed(client: Client, commands: Iterable[Any]) -> Iterator[Any]:
        if harm == "lost reply":
            proxy.weather = Weather(lose_reply=1.0)
        else:
            client.script_flush()
        return in_flight(client, commands)

    monkeypatch.setattr(proxy, "_happens", happens_once)
    monkeypatch.setattr(Client, "in_flight", harmed)

    ids = steps.enqueue_many(3500)

    assert proxy.taken["lose reply"] == (harm == "lost reply")
    assert sorted(chain.from_iterable(iter(lambda: live(steps), []))) == ids
    assert steps.engine.stats.types()["t"]["enqueued"] == 3501


def test_an_enqueue_of_thousands_that_ends_half_way_does_not_say_that_nothing_was_changed(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_flight = Client.in_flight

    def cut_off(client: Client, commands: Iterable[Any]) -> Iterator[Any]:
        proxy.stop()
        return in_flight(client, commands)

    monkeypatch.setattr(Client, "in_flight", cut_off)
    steps.engine.store.patience = 0.1

    with pytest.raises(OutcomeUnknown, match="At least 1,000 of 2,500 jobs were created"):
        steps.enqueue_many(2500)


@pytest.mark.parametrize("name", ["holder_take", "job_enqueue"])
def test_a_unique_key_makes_one_job_and_it_is_ours(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lose_reply(monkeypatch, proxy, name)

    [created] = steps.engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])

    assert proxy.taken["lose reply"] == 1
    assert not created.existing
    assert live(steps) == [created.id]
    [again] = steps.engine.jobs.enqueue(JobSpec(type="t", unique=Unique(key="k")), [b"{}"])
    assert (again.id, again.existing) == (created.id, True)


@pytest.mark.parametrize("name", ["holder_take", "job_enqueue"])
def test_a_callers_id_makes_one_job_and_is_not_called_a_duplicate(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    lose_reply(monkeypatch, proxy, name)

    [created] = steps.engine.jobs.enqueue(JobSpec(type="t", id="mine"), [b"{}"])

    assert proxy.taken["lose reply"] == 1
    assert (created.id, live(steps)) == ("mine", ["mine"])
    with pytest.raises(DuplicateJob):
        steps.engine.jobs.enqueue(JobSpec(type="t", id="mine"), [b"{}"])


def test_a_lease_gives_the_jobs_that_were_taken(steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = steps.enqueue_many(5)
    lose_reply(monkeypatch, proxy, "job_lease")

    jobs = steps.ask(3).jobs

    assert proxy.taken["lose reply"] == 1
    assert [job.id for job in jobs] == ids[:3]
    assert {job.fencing_token for job in jobs} == {1}
    assert steps.complete(jobs[0]) == "ok"


@pytest.mark.parametrize(
    ("call", "answer", "state"),
    [
        ("job_complete", "ok", "succeeded"),
        ("job_fail", "retry_wait", "retry_wait"),
        ("job_fail dead", "dead", "dead"),
        ("job_fail snooze", "scheduled", "scheduled"),
    ],
)
def test_the_end_of_an_attempt_counts_once(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, call: str, answer: str, state: str
) -> None:
    steps.enqueue()
    job = steps.lease(started=True)
    name, _, outcome = call.partition(" ")
    lose_reply(monkeypatch, proxy, name)

    if name == "job_complete":
        got = steps.engine.leases.complete(steps.route, [Completion(job.id, job.token, "t", steps.now_ms(), b"1")])[0]
    else:
        got = steps.fail(job, outcome or "retry", delay_ms=5_000)

    assert proxy.taken["lose reply"] == 1
    assert (got, steps.state(job.id)) == (answer, state)
    assert len(steps.get(job.id).attempts) == (0 if state == "scheduled" else 1)
    assert steps.engine.stats.types()["t"].get("failed", 0) == (1 if state in ("retry_wait", "dead") else 0)


@pytest.mark.parametrize("name", ["job_release", "job_crash", "job_park", "job_start", "job_renew", "job_recover"])
def test_other_words_of_a_worker_change_nothing_the_second_time(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, clock: ManualClock, name: str
) -> None:
    steps.enqueue()
    job = steps.lease(started=True)
    if name == "job_recover":
        clock.advance(11)
    lose_reply(monkeypatch, proxy, name)

    if name == "job_start":
        steps.start(job)
    elif name == "job_renew":
        assert steps.engine.leases.renew(steps.route, [(job.id, job.token)], 10_000).lost == []
    elif name == "job_recover":
        steps.engine.leases.recover(steps.route)
    else:
        getattr(steps, name.removeprefix("job_"))(job)

    assert proxy.taken["lose reply"] == 1
    read = steps.get(job.id)
    assert read.crashes == (1 if name in ("job_crash", "job_recover") else 0)
    assert len(read.attempts) == (1 if name in ("job_crash", "job_recover", "job_start", "job_renew") else 0)
    if name == "job_park":
        assert steps.engine.leases.parked(steps.route) == {"t": 1}


@pytest.mark.parametrize("verb", ["cancel", "run_now", "resubmit", "discard"])
def test_what_a_person_decided_is_done_once_and_said_to_be_unknown(
    steps: Steps, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    """Sent again it could hit a job that has moved on: so it is not."""
    job_id = steps.bury() if verb in ("resubmit", "discard") else steps.enqueue(delay_ms=60_000)
    lose_reply(monkeypatch, proxy, f"job_{verb}")

    with pytest.raises(OutcomeUnknown):
        getattr(steps.engine.jobs, verb)(job_id)

    assert proxy.taken["lose reply"] == 1
    job = steps.engine.jobs.find(job_id)
    assert (job.state if job else None) == {"cancel": "cancelled", "discard": None}.get(verb, "ready")


def test_in_rough_weather_every_job_still_exists_once(steps: Steps, proxy: Proxy) -> None:
    proxy.weather = Weather(lose_reply=0.08, lose_request=0.04, cut_reply=0.04)
    expected = {f"mine-{number}" for number in range(25)}

    for job_id in sorted(expected):
        steps.enqueue(id=job_id)
        [created] = steps.engine.jobs.enqueue(JobSpec(type="u", unique=Unique(key=job_id)), [b"{}"])
        expected.add(created.id)
    done: list[str] = []
    while jobs := steps.ask(7).jobs:
        done += [job.id for job in jobs if steps.complete(job) == "ok"]

    assert proxy.taken["lose reply"] > 3
    assert sorted(done) == sorted(expected)
    proxy.weather = CLEAR
    counters = steps.engine.stats.types()
    assert (counters["t"]["succeeded"], counters["u"]["succeeded"]) == (25, 25)
    leased = f"{steps.engine.store.namespace}:{{default.1.0}}:leased"
    assert leased not in everything(steps.engine.store)
