"""Why a job does not run: each situation for real, the sentence, the facts, and which of several comes first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from jobs.core.job import moment
from jobs.core.states import JobState
from jobs.engine import EVERYTHING, Completion, Engine, Reason, Scope, WorkerInfo
from jobs.exceptions import JobNotFound, StoreUnavailable
from jobs.registry import registry
from tests.support.clock import ManualClock
from tests.support.steps import Steps

NOON = "2027-01-15 08:00:00 UTC"


def serve(engine: Engine, pool: str = "default", slots: int = 2, state: str = "consuming", id: str = "h.1") -> None:
    info = WorkerInfo(id=id, host="h", hostname="h", pid=1, pools={pool: slots}, started_at_ms=1, state=state)
    engine.workers.beat([info], ttl_ms=600_000)


def why(steps: Steps, job_id: str) -> Reason:
    reason = steps.engine.explain.job(job_id)
    assert reason is not None
    return reason


@pytest.fixture
def limited() -> Iterator[str]:
    """A job type of which one may run at once per key, and 60 may start per minute and key."""
    from jobs.api import job

    @job("limited", concurrency=1, rate="60/m")
    def limited() -> None: ...

    yield "limited"
    registry._types.pop("limited", None)


# One at a time -------------------------------------------------------------------------------------------------------


def test_a_job_that_runs_or_has_ended_needs_no_reason(steps: Steps) -> None:
    running, done = steps.enqueue(), steps.enqueue()
    first = steps.lease(started=True)
    assert first.id == running
    steps.complete(steps.lease(), None)

    assert steps.engine.explain.job(running) is None
    assert steps.engine.explain.job(done) is None
    with pytest.raises(JobNotFound):
        steps.engine.explain.job("nobody")


def test_it_is_not_due_yet(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(delay_ms=90_000)

    assert why(steps, job_id).as_dict() == {
        "code": "due_at",
        "message": "It is due at 2027-01-15 08:01:30 UTC, in 90 s.",
        "run_at": "2027-01-15T08:01:30.000Z",
        "seconds": 90.0,
        "also": [],
    }


def test_it_waits_for_its_next_attempt(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue()
    steps.fail(steps.lease(), "retry", 5_000)

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "retry_at",
        "Attempt 1 failed; the next one is due at 2027-01-15 08:00:05 UTC, in 5 s.",
    )
    assert (reason.facts["attempt"], reason.facts["seconds"]) == (1, 5.0)


def test_it_is_due_and_nobody_has_looked_yet(steps: Steps, clock: ManualClock) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(delay_ms=1_000)
    clock.advance(1)

    assert why(steps, job_id).code == "just_due"


def test_everything_is_paused(steps: Steps, clock: ManualClock) -> None:
    serve(steps.engine)
    job_id = steps.enqueue()
    until = moment(clock.now_ms()) + timedelta(hours=1)
    steps.engine.pauses.pause(EVERYTHING, by="ana", reason="disk move", until=until)

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "everything_paused",
        "Everything is paused by ana until 2027-01-15 09:00:00 UTC: disk move.",
    )
    assert dict(reason.facts) == {
        "by": "ana",
        "at": "2027-01-15T08:00:00.000Z",
        "reason": "disk move",
        "until": "2027-01-15T09:00:00.000Z",
    }


def test_its_pool_is_paused(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue()
    steps.engine.pools.pause("default", by="ben")

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == ("pool_paused", "Pool default is paused by ben.")
    assert (reason.facts["pool"], reason.facts["until"]) == ("default", None)
    steps.engine.pools.resume("default")
    assert why(steps, job_id).code == "next"


def test_its_type_is_paused(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(type="mail")
    steps.engine.pauses.pause(Scope("type", "mail"), by="eva", reason="provider is down")

    reason = why(steps, job_id)
    assert steps.ask().jobs == []
    assert steps.get(job_id).parked  # a lease sets it aside, which changes nothing of the reason
    assert why(steps, job_id).message == reason.message
    assert (reason.code, reason.message) == ("type_paused", "Job type mail is paused by eva: provider is down.")


def test_its_type_is_switched_off(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(type="mail")
    steps.engine.types.set("mail", {"enabled": False})

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == ("type_disabled", "Job type mail is switched off in the admin.")


def test_its_pool_has_no_slots(steps: Steps) -> None:
    serve(steps.engine, slots=0)
    job_id = steps.enqueue()
    steps.engine.pools.configure("default", slots=0)

    reason = why(steps, job_id)
    assert reason.code == "no_slots"
    assert reason.message.startswith("Pool default has 0 slots:")


def test_no_worker_serves_its_pool(steps: Steps) -> None:
    job_id = steps.enqueue()
    assert why(steps, job_id).message == "No worker serves pool default."

    serve(steps.engine, "other")
    reason = why(steps, job_id)
    assert (reason.code, reason.message, reason.facts["workers"]) == (
        "no_worker",
        "No worker serves pool default (1 serve others).",
        1,
    )


def test_the_workers_of_its_pool_take_nothing(steps: Steps) -> None:
    serve(steps.engine, state="draining")
    job_id = steps.enqueue()

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "workers_take_nothing",
        "The workers of pool default take no new jobs: draining.",
    )


def test_the_hosts_of_its_pool_are_paused(steps: Steps) -> None:
    serve(steps.engine, id="h")
    serve(steps.engine, state="not consuming: paused by ana: paused")
    job_id = steps.enqueue()
    steps.engine.workers.pause("h", by="ana", reason="paused")

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "hosts_paused",
        "The worker hosts of pool default are paused: h by ana: paused.",
    )
    assert [(host["id"], host["by"], host["until"]) for host in reason.facts["hosts"]] == [("h", "ana", None)]

    steps.engine.workers.resume("h")
    assert why(steps, job_id).code == "workers_take_nothing", "until the host says that it goes on"


def test_one_paused_host_of_two_is_no_reason(steps: Steps) -> None:
    serve(steps.engine, id="h")
    serve(steps.engine, state="not consuming: paused by ana")
    info = WorkerInfo(id="i.1", host="i", hostname="i", pid=1, pools={"default": 2}, started_at_ms=1, state="consuming")
    steps.engine.workers.beat([info], ttl_ms=600_000)
    steps.engine.workers.pause("h", by="ana")

    assert why(steps, steps.enqueue()).code == "next"


def test_no_worker_knows_its_type(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(type="mystery")
    steps.park(steps.lease())

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "unknown_type",
        "No worker that met it knows the job type mystery; it waits for one that does.",
    )


def test_its_pool_is_full(steps: Steps) -> None:
    serve(steps.engine)
    steps.engine.pools.configure("default", max_running=1)
    holder, job_id = steps.enqueue(), steps.enqueue()
    steps.lease(started=True)

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "pool_full",
        f"Pool default is full: 1 job of it may run at once. Held by {holder}.",
    )
    assert (reason.facts["limit"], reason.facts["holders"]) == (1, [holder])


def test_its_concurrency_key_is_held(steps: Steps, limited: str) -> None:
    serve(steps.engine)
    holder, job_id = (steps.enqueue(type=limited, concurrency_key="acme", rate_key=str(n)) for n in range(2))
    ask_leave(steps, limited)

    reason = why(steps, job_id)
    assert (reason.code, reason.message) == (
        "concurrency",
        f"Of job type limited with the key 'acme' 1 job may run at once. Held by {holder}.",
    )
    assert (reason.facts["key"], reason.facts["holders"]) == ("acme", [holder])


@pytest.mark.parametrize(
    ("keys", "count", "code", "says"),
    [
        ({"concurrency_key": "acme"}, 2, "concurrency", "as many run as may run at once. Held by "),
        ({"rate_key": "acme"}, 61, "rate", "as many have started as may; the next one in "),
    ],
    ids=["concurrency", "rate"],
)
def test_a_process_without_the_code_of_the_type_knows_that_a_limit_holds_it(
    keys: dict[str, str], count: int, code: str, says: str, steps: Steps, limited: str
) -> None:
    serve(steps.engine)
    others = next(name for name in ("rate_key", "concurrency_key") if name not in keys)
    ids = [steps.enqueue(type=limited, **keys, **{others: str(number)}) for number in range(count)]
    ask_leave(steps, limited)
    registry._types.pop(limited)

    reason = why(steps, ids[-1])

    assert reason.code == code
    assert reason.message.startswith(f"Of job type limited with the key 'acme' {says}")
    assert reason.facts["limit"] is None


def test_a_key_that_its_payload_hides_is_not_told(steps: Steps, limited: str) -> None:
    serve(steps.engine)
    payload = b'{"api_key": "tok-4711"}'
    for n in range(2):
        job_id = steps.enqueue(payload, type=limited, concurrency_key="tok-4711", rate_key=str(n))
    ask_leave(steps, limited)

    reason = why(steps, job_id)
    assert (reason.code, reason.facts["key"]) == ("concurrency", "•••")
    assert "tok-4711" not in reason.message


def test_its_rate_is_used_up(steps: Steps, limited: str) -> None:
    serve(steps.engine)
    ids = [steps.enqueue(type=limited, concurrency_key=str(n), rate_key="acme") for n in range(61)]
    ask_leave(steps, limited)

    reason = why(steps, ids[-1])
    assert reason.code == "rate"
    assert (reason.facts["key"], reason.facts["limit"]) == ("acme", "60/m")
    assert 0 < reason.facts["seconds"] < 120
    assert reason.message.startswith("Of job type limited with the key 'acme' 60/m may start; the next one in ")


def ask_leave(steps: Steps, type_name: str) -> None:
    """What a fetcher does with leased jobs of a type that has limits."""
    from jobs.engine.limits import limits_of

    limits = limits_of(type_name)
    assert limits is not None
    jobs = steps.lease_all()
    leave = steps.engine.limits.take(limits, steps.route, jobs[0].token, jobs, len(jobs))
    for job in leave.go:
        steps.start(job)
    steps.engine.limits.hold_back(limits, steps.route, leave.held)


def test_it_stands_in_line(steps: Steps, clock: ManualClock) -> None:
    serve(steps.engine)
    steps.enqueue_many(2)
    running = [(job, steps.now_ms()) for job in steps.lease_all()]
    clock.advance(10)
    done = [Completion(job.id, job.token, job.type, began) for job, began in running]
    steps.engine.leases.complete(steps.route, done)
    steps.enqueue_many(2)
    for job in steps.lease_all():
        steps.start(job)
    first, second, third = steps.enqueue_many(3)

    assert why(steps, first).message == "It is the next to start; 2 of 2 slots are busy."
    reason = why(steps, third)
    assert (reason.code, reason.message) == (
        "behind",
        "It stands behind 2 jobs; 2 of 2 slots are busy, the last in line waits about 15 s.",
    )
    assert (reason.facts["ahead"], why(steps, second).facts["ahead"]) == (2, 1)


def test_a_worker_has_taken_it_and_not_begun(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue()
    steps.lease(worker="h.1")

    reason = why(steps, job_id)
    assert (reason.code, reason.facts["worker"]) == ("taken", "h.1")
    assert reason.message == "Worker h.1 has taken it and starts it as soon as one of its slots is free."
    steps.engine.jobs.cancel(job_id)
    assert why(steps, job_id).message.endswith("It was asked to stop, and ends without a start.")


def test_it_waits_for_its_parents(steps: Steps) -> None:
    serve(steps.engine)
    job_id = steps.enqueue(workflow_run="run-1", node="load")
    from jobs.store.keys import partition_keys
    from tests.support.partition import packed, record

    keys = partition_keys(steps.engine.store.namespace, steps.route)
    client: Any = steps.engine.store.client
    client.zrem(keys.ready, job_id)
    client.zadd(keys.blocked, {job_id: steps.now_ms()})
    client.hset(keys.states, job_id, packed(record("blocked")))

    reason = why(steps, job_id)
    assert steps.get(job_id).state == JobState.BLOCKED
    assert (reason.code, reason.message) == ("parents", "It waits for the nodes before it of workflow run run-1.")
    assert reason.facts["node"] == "load"


def test_a_store_that_is_away_is_said_so(private_valkey: Any) -> None:
    from jobs.conf import get_settings
    from jobs.store.connection import Store

    store = Store(private_valkey.url, namespace="away", patience=0.2)
    steps = Steps(Engine(store, get_settings()))
    job_id = steps.enqueue()
    private_valkey.kill()

    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        steps.engine.explain.job(job_id)
    store.close()


# Which comes first ---------------------------------------------------------------------------------------------------


def test_the_first_that_decides_is_the_answer_and_the_others_are_named(steps: Steps, clock: ManualClock) -> None:
    """Everything holds at once, and is lifted one after the other."""
    engine = steps.engine
    job_id = steps.enqueue(type="mail", delay_ms=60_000)
    engine.pools.configure("default", slots=0)
    engine.types.set("mail", {"enabled": False})
    for scope in (EVERYTHING, Scope("pool", "default"), Scope("type", "mail")):
        engine.pauses.pause(scope, by="ana")

    order = [
        ("due_at", lambda: clock.advance(60)),
        ("everything_paused", lambda: engine.pauses.resume(EVERYTHING)),
        ("pool_paused", lambda: engine.pauses.resume(Scope("pool", "default"))),
        ("type_paused", lambda: engine.pauses.resume(Scope("type", "mail"))),
        ("type_disabled", lambda: engine.types.clear("mail")),
        ("no_slots", lambda: engine.pools.configure("default", slots=1)),
        ("no_worker", lambda: serve(engine)),
        ("just_due", lambda: engine.leases.promote(steps.route)),
    ]
    for place, (code, lift) in enumerate(order):
        reason = why(steps, job_id)
        assert reason.code == code
        later = [other for other, _ in order[place + 1 :]]
        assert set(reason.also) <= set(later)
        lift()
    assert why(steps, job_id).code == "next"


def test_what_holds_next_is_named_in_its_order(steps: Steps) -> None:
    job_id = steps.enqueue(delay_ms=60_000)
    steps.engine.pools.pause("default", by="ana")

    assert why(steps, job_id).also == ("pool_paused", "no_worker")


def test_it_costs_the_same_with_many_jobs_in_line(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    original = type(steps.engine.store)._call

    def counting(self: Any, *args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        return original(self, *args, **more)

    serve(steps.engine)
    few = steps.enqueue_many(2)[-1]
    steps.engine.explain.job(few)
    monkeypatch.setattr(type(steps.engine.store), "_call", counting)
    steps.engine.explain.job(few)
    before, calls = calls, 0
    many = steps.enqueue_many(3_000)[-1]
    calls = 0
    steps.engine.explain.job(many)

    assert calls <= before
