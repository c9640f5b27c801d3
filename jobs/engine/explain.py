"""Why a job does not run: one true answer, from the keys that decide.

``reasons`` is the decision: pure, over facts that were read, in the order in which a job meets what may hold it back.
The first that holds is the answer; the others are named beside it, because they come next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from jobs.core.job import Job, Route, iso, moment
from jobs.core.pause import Pause, PauseState, by_whom
from jobs.core.states import JobState
from jobs.engine.jobs import Jobs
from jobs.engine.limits import Hold, Holds
from jobs.engine.pauses import Pauses
from jobs.engine.pools import Pool, Pools
from jobs.engine.redaction import Visible
from jobs.engine.workers import Worker, Workers
from jobs.engine.workflows import Workflows
from jobs.store.connection import Store
from jobs.store.keys import partition_keys

ROUNDS = 5
"""A job may move while its facts are read; then they are read again, so often at most."""


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job does not run. ``code`` names the kind, ``message`` is a sentence, ``facts`` are what it is made of.

    ``also``: codes of what would hold it back next.
    """

    code: str
    message: str
    facts: Mapping[str, Any] = {}
    also: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {"code": self.code, "message": self.message, **self.facts, "also": list(self.also)}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What decides over one job, read at nearly one moment. ``ahead``: jobs before it in its line, None if in none."""

    now: datetime
    job: Job
    pool: Pool
    pauses: PauseState
    workers: Sequence[Worker]  # alive, of any pool
    run_pause: Any = None
    """Who has paused the run that it is a node of, when and why."""
    holds: Sequence[Hold] = ()
    ahead: int | None = None

    @property
    def serving(self) -> list[Worker]:
        """Live workers with slots for the pool."""
        return [worker for worker in self.workers if worker.pools.get(self.pool.name)]


class Explain:
    """See the module. Costs the same however many jobs wait."""

    def __init__(
        self,
        store: Store,
        jobs: Jobs,
        pools: Pools,
        pauses: Pauses,
        workers: Workers,
        holds: Holds,
        workflows: Workflows,
        visible: Visible,
    ) -> None:
        self._store = store
        self._jobs = jobs
        self._pools = pools
        self._pauses = pauses
        self._workers = workers
        self._holds = holds
        self._workflows = workflows
        self._visible = visible

    def job(self, job_id: str) -> Reason | None:
        """Why the job does not run; None where it runs or has ended. JobNotFound."""
        for _ in range(ROUNDS):
            job = self._jobs.get(job_id)
            if job.is_terminal or job.is_running:
                return None
            answer = first_of(reasons(self._facts(job)))
            if _stands_still(job, self._jobs.get(job_id)):
                return answer
        return answer

    def _facts(self, job: Job) -> Facts:
        return Facts(
            now=moment(self._pauses.now_ms()),
            job=job,
            pool=self._pools.get(job.pool),
            pauses=self._pauses.state(),
            run_pause=self._run_pause(job),
            workers=[worker for worker in self._workers.all() if worker.alive and not worker.is_host],
            holds=self._holds_of(job) if job.state == JobState.READY else (),
            ahead=self._ahead(job),
        )

    def _holds_of(self, job: Job) -> list[Hold]:
        """Reasons are for people: keys of limits without what the payload hides."""
        return [hold._replace(key=self._visible.quoted(job, hold.key)) for hold in self._holds.of(job)]

    def _run_pause(self, job: Job) -> Any:
        run = self._workflows.find(job.workflow_run) if job.workflow_run else None
        return run.paused if run else None

    def _ahead(self, job: Job) -> int | None:
        keys = partition_keys(self._store.namespace, Route(job.pool, job.queue_version, job.partition))
        rank: int | None = self._store.read(lambda client: client.zrank(keys.ready, job.id))
        return rank


def _stands_still(before: Job, after: Job) -> bool:
    return (before.state, before.fencing_token, before.parked) == (after.state, after.fencing_token, after.parked)


def first_of(found: Iterator[Reason]) -> Reason | None:
    """The answer, with the codes of those that would hold the job back next."""
    answer = next(found, None)
    return None if answer is None else msgspec.structs.replace(answer, also=tuple(other.code for other in found))


def reasons(facts: Facts) -> Iterator[Reason]:
    """All that keeps the job from running, in the order in which it is decided."""
    job = facts.job
    if job.state == JobState.LEASED:
        yield _taken(job)
        return
    if job.state == JobState.BLOCKED:
        yield _parents(job)
    elif job.state in (JobState.SCHEDULED, JobState.RETRY_WAIT) and facts.now < job.run_at:
        yield _not_due(job, facts.now)
    yield from _paused(facts)
    yield from _not_served(facts)
    is_paused = bool(facts.run_pause) or job.type in facts.pauses.types_until_ms()
    if job.parked and not is_paused:  # those of a paused type or run are parked too
        yield Reason(
            code="unknown_type",
            message=f"No worker that met it knows the job type {job.type}; it waits for one that does.",
            facts={"type": job.type},
        )
    yield from (_held(facts, hold) for hold in facts.holds)
    if job.state == JobState.READY and not job.parked:
        yield _in_line(facts)
    elif job.state in (JobState.SCHEDULED, JobState.RETRY_WAIT) and facts.now >= job.run_at:
        yield Reason(
            code="just_due",
            message="It is due since this moment and stands in line as soon as a worker looks.",
            facts={"run_at": iso(job.run_at)},
        )


def _taken(job: Job) -> Reason:
    asked = " It was asked to stop, and ends without a start." if job.cancel_requested else ""
    return Reason(
        code="taken",
        message=f"Worker {job.worker} has taken it and starts it as soon as one of its slots is free.{asked}",
        facts={"worker": job.worker, "since": iso(job.leased_at), "lease_expires_at": iso(job.lease_expires_at)},
    )


def _parents(job: Job) -> Reason:
    of_run = f" of workflow run {job.workflow_run}" if job.workflow_run else ""
    return Reason(
        code="parents",
        message=f"It waits for the nodes before it{of_run}.",
        facts={"workflow_run": job.workflow_run, "node": job.node},
    )


def _not_due(job: Job, now: datetime) -> Reason:
    seconds = round((job.run_at - now).total_seconds(), 3)
    due = f"{_clock(job.run_at)}, in {_span(seconds)}"
    facts = {"run_at": iso(job.run_at), "seconds": seconds}
    if job.state == JobState.RETRY_WAIT:
        return Reason(
            code="retry_at",
            message=f"Attempt {job.attempt} failed; the next one is due at {due}.",
            facts={**facts, "attempt": job.attempt},
        )
    return Reason(code="due_at", message=f"It is due at {due}.", facts=facts)


def _paused(facts: Facts) -> Iterator[Reason]:
    job, pauses = facts.job, facts.pauses
    if pauses.everything:
        yield _pause("everything_paused", "Everything", pauses.everything, {})
    if pause := pauses.pools.get(job.pool):
        yield _pause("pool_paused", f"Pool {job.pool}", pause, {"pool": job.pool})
    if pause := pauses.types.get(job.type):
        yield _pause("type_paused", f"Job type {job.type}", pause, {"type": job.type})
    if facts.run_pause:
        yield _pause(
            "run_paused",
            f"Workflow run {job.workflow_run}",
            Pause(**facts.run_pause),
            {"workflow_run": job.workflow_run},
        )
    if job.type in pauses.disabled:
        yield Reason(
            code="type_disabled",
            message=f"Job type {job.type} is switched off in the admin.",
            facts={"type": job.type},
        )


def _pause(code: str, what: str, pause: Pause, facts: dict[str, Any]) -> Reason:
    return Reason(
        code=code,
        message=f"{what} is paused {_by_whom(pause)}.",
        facts={**facts, "by": pause.by, "at": pause.at, "reason": pause.reason, "until": pause.until},
    )


def _by_whom(pause: Pause) -> str:
    return by_whom(pause.by, pause.reason, when=f"until {_clock(moment(pause.until_ms))}" if pause.until else "")


def _not_served(facts: Facts) -> Iterator[Reason]:
    pool, serving = facts.pool, facts.serving
    if not serving and pool.slots == 0:
        yield Reason(
            code="no_slots",
            message=f"Pool {pool.name} has 0 slots: no worker starts anything of it until somebody scales it up.",
            facts={"pool": pool.name, "slots": 0},
        )
    elif not serving:
        others = f" ({len(facts.workers)} serve others)" if facts.workers else ""
        yield Reason(
            code="no_worker",
            message=f"No worker serves pool {pool.name}{others}.",
            facts={"pool": pool.name, "workers": len(facts.workers)},
        )
    elif held := _held_hosts(serving):
        yield Reason(
            code="hosts_paused",
            message=f"The worker hosts of pool {pool.name} are paused: "
            f"{'; '.join(f'{host} {_by_whom(pause)}' for host, pause in held.items())}.",
            facts={
                "pool": pool.name,
                "hosts": [{"id": host, **msgspec.to_builtins(pause)} for host, pause in held.items()],
            },
        )
    elif not any(_takes_jobs(worker) for worker in serving):
        states = sorted({worker.state for worker in serving})
        yield Reason(
            code="workers_take_nothing",
            message=f"The workers of pool {pool.name} take no new jobs: {'; '.join(states)}.",
            facts={"pool": pool.name, "states": states},
        )


def _takes_jobs(worker: Worker) -> bool:
    """A worker says that it is paused for some seconds after a pause has ended: that is no reason any more."""
    return worker.state in ("consuming", "not consuming: paused")


def _held_hosts(serving: Sequence[Worker]) -> dict[str, Pause]:
    """The pauses by host, where that of its host holds back each of these; empty where one is not paused."""
    held = {worker.host: worker.paused for worker in serving if worker.paused}
    return held if all(worker.paused for worker in serving) else {}


def _held(facts: Facts, hold: Hold) -> Reason:
    known = {"limit": hold.limit, "holders": hold.holders}
    holders = f" Held by {', '.join(hold.holders)}." if hold.holders else ""
    match hold.kind:
        case "max_running":
            return Reason(
                code="pool_full",
                message=f"Pool {facts.pool.name} is full: {_how_many_run(hold, ' of it')}.{holders}",
                facts={"pool": facts.pool.name, **known},
            )
        case "concurrency":
            return Reason(
                code="concurrency",
                message=f"Of {_key(facts.job, hold.key)} {_how_many_run(hold)}.{holders}",
                facts={"type": facts.job.type, "key": hold.key, **known},
            )
        case _:
            free = hold.free_in_seconds or 0.0
            return Reason(
                code="rate",
                message=f"Of {_key(facts.job, hold.key)} {_how_many_start(hold)}; the next one in {_span(free)}.",
                facts={"type": facts.job.type, "key": hold.key, "limit": hold.limit, "seconds": free},
            )


def _how_many_run(hold: Hold, of: str = "") -> str:
    return "as many run as may run at once" if hold.limit is None else f"{_jobs(int(hold.limit))}{of} may run at once"


def _how_many_start(hold: Hold) -> str:
    return "as many have started as may" if hold.limit is None else f"{hold.limit} may start"


def _key(job: Job, key: str) -> str:
    return f"job type {job.type} with the key {key!r}" if key else f"job type {job.type}"


def _in_line(facts: Facts) -> Reason:
    pool, ahead = facts.pool, facts.ahead or 0
    known = {"ahead": ahead, "slots": pool.slots_actual, "busy": min(pool.leased, pool.slots_actual)}
    busy = f"{known['busy']} of {pool.slots_actual} slots are busy"
    if ahead == 0:
        return Reason(code="next", message=f"It is the next to start; {busy}.", facts=known)
    wait = pool.predicted_wait_seconds
    expected = f", the last in line waits about {_span(wait)}" if wait else ""
    return Reason(
        code="behind",
        message=f"It stands behind {_jobs(ahead)}; {busy}{expected}.",
        facts={**known, "predicted_wait_seconds": wait},
    )


def _jobs(number: int) -> str:
    return f"{number:,} job{'' if number == 1 else 's'}"


def _clock(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    """``7.9 s``, ``12 s``, ``3 min``, ``2 h``, ``5 days``: as precise as anybody needs."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f}".removesuffix(".0") + " s"
