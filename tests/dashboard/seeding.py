"""Jobs in every state, made by the verbs that make them in life."""

from __future__ import annotations

import json
import time
from typing import Any

from jobs.core.job import JobSpec, Route
from jobs.core.states import JobState
from jobs.engine import Completion, Engine, Failure, WorkerInfo, get_engine, new_token

TRACEBACK = (
    'Traceback (most recent call last):\n  File "/srv/shop/billing.py", line 88, in settle\n    raise Declined()\n'
)


class Shop:
    """Enqueues jobs and plays the worker that ends them as wished. One partition, the server's own clock."""

    def __init__(self) -> None:
        self.engine: Engine = get_engine()

    def ready(self, type: str = "email.send", *, payload: Any = None, **options: Any) -> str:
        body = json.dumps({"to": "a@example.com"} if payload is None else payload).encode()
        return self.engine.jobs.enqueue(JobSpec(type=type, **options), [body])[0].id

    def many(self, number: int, type: str = "email.send", **options: Any) -> list[str]:
        payloads = [json.dumps({"number": number}).encode() for number in range(number)]
        return [made.id for made in self.engine.jobs.enqueue(JobSpec(type=type, **options), payloads)]

    def scheduled(self, **options: Any) -> str:
        return self.ready(delay_ms=3_600_000, **options)

    def leased(self, *, worker: str = "app-1/1", lease_ms: int = 60_000, **options: Any) -> str:
        return self._lease(self.ready(**options), worker, lease_ms)[0]

    def succeeded(self, *, result: Any = None, **options: Any) -> str:
        job_id = self.ready(**options)
        self.succeed(job_id, result)
        return job_id

    def succeed(self, job_id: str, result: Any = None) -> None:
        """Leases the job and completes it."""
        job_id, token, route, type_name = self._lease(job_id)
        ended = json.dumps(result).encode()
        completion = Completion(id=job_id, token=token, type=type_name, started_at=_now_ms(), result=ended, ttl_ms=None)
        assert self.engine.leases.complete(route, [completion]) == ["ok"]

    def dead(self, *, error: dict[str, str] | None = None, **options: Any) -> str:
        job_id = self.ready(**options)
        self.fail(job_id, "dead", error=error)
        return job_id

    def many_dead(self, number: int, type: str = "email.send") -> list[str]:
        """So many at once, all of one error, in the pool default."""
        ids = self.many(number, type)
        first = self.engine.jobs.get(ids[0])
        route = Route(first.pool, first.queue_version, first.partition)
        error = json.dumps({"type": "Declined", "message": "insufficient funds", "traceback": TRACEBACK}).encode()
        common: dict[str, Any] = {"outcome": "dead", "delay_ms": 0, "priority": 0, "error": error}
        for _ in range(0, number, 500):
            token = new_token()  # with the same one it would be the same lease
            reply = self.engine.leases.lease(route, worker="app-1/1", token=token, limit=500, lease_ms=60_000)
            facts = common | {"token": token, "started_at": _now_ms()}
            self.engine.leases.fail(route, [Failure(id=job.id, type=job.type, **facts) for job in reply.jobs])
        return ids

    def retry_wait(self, *, error: dict[str, str] | None = None, **options: Any) -> str:
        job_id = self.ready(**options)
        self.fail(job_id, "retry", delay_ms=3_600_000, error=error)
        return job_id

    def cancelled(self, **options: Any) -> str:
        job_id = self.ready(**options)
        self.engine.jobs.cancel(job_id)
        return job_id

    def in_state(self, state: str, **options: Any) -> str:
        made: str = getattr(self, state)(**options)
        return made

    def fail(self, job_id: str, outcome: str, *, delay_ms: int = 0, error: dict[str, str] | None = None) -> None:
        """Leases the job and ends the attempt: ``retry`` or ``dead``."""
        job_id, token, route, type_name = self._lease(job_id)
        shown = error or {"type": "Declined", "message": "insufficient funds", "traceback": TRACEBACK}
        failure = Failure(
            id=job_id,
            token=token,
            type=type_name,
            started_at=_now_ms(),
            outcome=outcome,
            delay_ms=delay_ms,
            priority=0,
            error=json.dumps(shown).encode(),
        )
        self.engine.leases.fail(route, [failure])

    def worker(self, **facts: Any) -> None:
        """A worker host with one worker that says it is alive, for so long."""
        host, ttl_ms = facts.pop("host", "host-1"), facts.pop("ttl_ms", 60_000)
        common: dict[str, Any] = {"host": host, "hostname": "app-1", "state": "consuming"}
        common |= {"started_at_ms": facts.pop("started_at_ms", _now_ms()), "version": facts.pop("version", "")}
        supervisor = WorkerInfo(id=host, pid=1, pools={}, **common)
        child = WorkerInfo(**{**common, "id": f"{host}/1", "pid": 2, "pools": {"default": 10}, "running": 3, **facts})
        self.engine.workers.beat([supervisor, child], ttl_ms=ttl_ms)

    def state(self, job_id: str) -> JobState:
        return self.engine.jobs.get(job_id).state

    def _lease(self, job_id: str, worker: str = "app-1/1", lease_ms: int = 60_000) -> tuple[str, str, Any, str]:
        """Leases until the wanted job is in hand; the others go back."""
        found = self.engine.jobs.get(job_id)
        route = Route(found.pool, found.queue_version, found.partition)
        token = new_token()
        reply = self.engine.leases.lease(route, worker=worker, token=token, limit=1000, lease_ms=lease_ms)
        wanted = next(job for job in reply.jobs if job.id == job_id)
        others = [(job.id, token) for job in reply.jobs if job.id != job_id]
        if others:
            self.engine.leases.release(route, others)
        self.engine.leases.start(route, [(job_id, token, _now_ms())])
        return job_id, token, route, wanted.type


def _now_ms() -> int:
    return int(time.time() * 1000)
