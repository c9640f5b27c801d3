"""The steps of producers and workers in few words, and a look at all that is stored."""

from __future__ import annotations

from typing import Any

from jobs.core.job import Job, JobSpec, LeasedJob, Route
from jobs.engine import Completion, Engine, Failure, LeaseReply, new_token
from jobs.store.connection import Store

LEASE_MS = 10_000


class Steps:
    """An engine, one pool of one partition, and a worker that does what it is told."""

    def __init__(self, engine: Engine, pool: str = "default") -> None:
        self.engine = engine
        self.pool = pool

    @property
    def route(self) -> Route:
        return self.engine.topology.route_for(self.pool)

    def enqueue(self, payload: bytes = b"{}", **spec: Any) -> str:
        """Creates one job, of type ``t`` if not said otherwise; its id."""
        return self.engine.jobs.enqueue(JobSpec(**{"type": "t", "pool": self.pool, **spec}), [payload])[0].id

    def enqueue_many(self, count: int, **spec: Any) -> list[str]:
        """Creates jobs whose payloads are ``{"n":0}``, ``{"n":1}``, …; their ids."""
        payloads = [b'{"n":%d}' % number for number in range(count)]
        created = self.engine.jobs.enqueue(JobSpec(**{"type": "t", "pool": self.pool, **spec}), payloads)
        return [job.id for job in created]

    def ask(self, limit: int = 1, *, worker: str = "w", token: str | None = None) -> LeaseReply:
        """One lease call and its whole reply."""
        return self.engine.leases.lease(
            self.route, worker=worker, token=token or new_token(), limit=limit, lease_ms=LEASE_MS
        )

    def lease(self, *, worker: str = "w", started: bool = False) -> LeasedJob:
        """The first job in line."""
        [job] = self.ask(worker=worker).jobs
        if started:
            self.start(job)
        return job

    def lease_all(self, limit: int = 1_000) -> list[LeasedJob]:
        """Everything that is ready."""
        return self.ask(limit).jobs

    def start(self, job: LeasedJob) -> None:
        self.engine.leases.start(self.route, [(job.id, job.token, self.now_ms())])

    def complete(self, job: LeasedJob, result: bytes | None = None, **more: Any) -> str:
        return self.engine.leases.complete(
            self.route, [Completion(job.id, job.token, job.type, self.now_ms(), result, **more)]
        )[0]

    def fail(self, job: LeasedJob, outcome: Any = "retry", delay_ms: int = 0, error: bytes | None = None) -> str:
        failure = Failure(job.id, job.token, job.type, self.now_ms(), outcome, delay_ms, job.priority, error)
        return self.engine.leases.fail(self.route, [failure])[0]

    def release(self, job: LeasedJob, *, charged: bool = False) -> str:
        return self.engine.leases.release(self.route, [(job.id, job.token)], charged=charged)[0]

    def crash(self, job: LeasedJob, reason: str = "killed by SIGKILL (9)") -> str:
        return self.engine.leases.crash(self.route, [(job.id, job.token, self.now_ms())], reason=reason)[0]

    def park(self, job: LeasedJob) -> str:
        return self.engine.leases.park(self.route, [(job.id, job.token, job.type)])[0]

    def bury(self, **spec: Any) -> str:
        """A job in the dead-letter list; its id."""
        job_id = self.enqueue(**spec)
        assert self.fail(self.lease(), "dead", error=b'{"type":"E","message":"m","traceback":""}') == "dead"
        return job_id

    def get(self, job_id: str) -> Job:
        return self.engine.jobs.get(job_id)

    def state(self, job_id: str) -> str:
        return self.engine.jobs.get(job_id).state.value

    def now_ms(self) -> int:
        return self.engine.jobs.server_now_ms()


def everything(store: Store, *, without: tuple[str, ...] = ("clock",)) -> dict[str, Any]:
    """All keys of the namespace with their content, save those whose last part is named in ``without``."""
    client: Any = store.client
    found: dict[str, Any] = {}
    for raw in client.scan_iter(match=f"{store.namespace}:*", count=1_000):
        key = raw.decode()
        if key.rpartition(":")[2] in without:
            continue
        kind = client.type(raw)
        if kind == b"hash":
            found[key] = client.hgetall(raw)
        elif kind == b"zset":
            found[key] = client.zrange(raw, 0, -1, withscores=True)
        elif kind == b"list":
            found[key] = client.lrange(raw, 0, -1)
        elif kind == b"stream":
            found[key] = client.xrange(raw)
        else:
            found[key] = client.get(raw)
    return found
