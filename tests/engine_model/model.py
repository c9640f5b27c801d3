"""What the engine should do, written as a dictionary of jobs: no Redis, no scripts, no batches.

Every verb of the engine has its twin here, which answers what the engine must answer. Times are milliseconds. The model
knows the rules of the design and nothing of how they are kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

LOST_LIMIT = 10
"""Leases in a row that end unused before the job itself is taken for the cause."""

CAP_MARGIN_MS = 500
"""Where a pool has a cap, a lost lease counts so much longer: its worker has stopped by then."""

TELLING_MS = 60_000
"""How long a host may take to tell of deaths before another does it again."""

DEATHS_AT_ONCE = 10
OLDEST_NEWS_MS = 86_400_000

WAITING_LINES = ("scheduled", "retry_wait")
TERMINAL = frozenset({"succeeded", "dead", "cancelled"})


@dataclass
class ModelJob:
    """One job, and everything about it that a reader can see."""

    id: str
    pool: str
    type: str
    priority: int
    state: str
    run_at: int
    created_at: int
    max_crashes: int
    place: int = 0  # order of arrival in the ready line
    attempt: int = 0
    errors: int = 0
    crashes: int = 0
    fence: int = 0
    lost: int = 0
    resubmissions: int = 0
    cancel: bool = False
    parked: bool = False
    moved: bool = False  # it ended here, and another goes on for it
    started: bool = False
    begun: bool = False  # in a life before it was resubmitted
    token: str = ""
    deadline: int = 0
    ended_at: int = 0
    unique: tuple[str, str | float] | None = None  # key, until
    forget_at: int | None = None
    logged: dict[int, list[str]] = field(default_factory=dict)  # attempt → its lines

    @property
    def order(self) -> tuple[int, int]:
        """Place in the ready line: higher priorities first, then the order of arrival."""
        return (-self.priority, self.place)


@dataclass
class ModelPool:
    """What the server remembers of a pool beside its jobs."""

    now: int = 0  # high-water mark: the time of the last change
    arrivals: int = 0
    paused: bool = False
    paused_until: int | None = None
    grants: dict[str, tuple[str, list[str]]] = field(default_factory=dict)  # worker → its last token and jobs
    recovered_at: int = 0
    hold_until: int = 0
    max_running: int | None = None
    max_pending: int | None = None
    told: int | None = None  # of all deaths before it
    told_by: str = ""  # who tells of the next ones
    told_until: int = 0


class Model:
    """All jobs of all pools. ``clock_ms`` is what the engine's clock says; a pool's time never goes back."""

    def __init__(self, clock_ms: int, *, lease_ms: int, retention_ms: int, attempts_kept: int) -> None:
        self.clock_ms = clock_ms
        self.attempts_kept = attempts_kept
        self.paused: dict[str, int | None] = {}  # "all" or a type → until when
        self.lease_ms = lease_ms
        self.retention_ms = retention_ms
        self.jobs: dict[str, ModelJob] = {}
        self.pools: dict[str, ModelPool] = {}
        self.unique: dict[tuple[str, str], str] = {}  # type and key → the job that claimed it last
        self.counters: Counter[str] = Counter()

    def pool(self, name: str) -> ModelPool:
        return self.pools.setdefault(name, ModelPool())

    def now(self, pool: str) -> int:
        """The time of a change in this pool."""
        kept = self.pool(pool)
        kept.now = max(kept.now, self.clock_ms)
        return kept.now

    # --- producers ----------------------------------------------------------------------------------------------

    def is_full(self, pool: str, count: int) -> bool:
        """Whether so many new jobs find no room to wait: they are refused there, where the time is seen."""
        limit = self.pool(pool).max_pending
        waiting = sum(len(self._in(pool, state)) for state in ("ready", *WAITING_LINES))
        if limit is None or waiting + count <= limit:
            return False
        self.now(pool)
        return True

    def enqueue(
        self, ids: list[str], *, pool: str, type: str, priority: int, delay_ms: int, max_crashes: int, **facts: Any
    ) -> str:
        """Creates the jobs; the state that they are in."""
        now = self.now(pool)
        due = now + delay_ms
        state = "ready" if due <= now else "scheduled"
        for job_id in ids:
            job = ModelJob(job_id, pool, type, priority, state, due, now, max_crashes, **facts)
            if state == "ready":
                job.place = self._arrive(pool)
            self.jobs[job_id] = job
        self.counters[f"enqueued:{type}"] += len(ids)
        return state

    def unique_holder(self, type: str, key: str) -> ModelJob | None:
        """The job that holds the key now."""
        job = self.jobs.get(self.unique.get((type, key), ""))
        return job if job is not None and self._holds_key(job) else None

    def claim_unique(self, type: str, key: str, on_duplicate: str) -> ModelJob | None:
        """Makes way for a new holder; the job that stays in its way, if one does."""
        holder = self.unique_holder(type, key)
        if holder is None:
            return None
        if on_duplicate != "replace" or holder.state == "leased":
            return holder
        if holder.state not in TERMINAL:
            self.cancel(holder.id)
        return None

    def refuse_duplicate(self, pool: str, type: str) -> None:
        """An enqueue whose id or unique key a job of this pool has: counted there, where the time is seen."""
        self.now(pool)
        self.counters[f"duplicates:{type}"] += 1

    def sweep_unique(self) -> None:
        """Forgets claims that hold no more. A clock that goes back afterwards does not bring them back."""
        self.unique = {claim: job_id for claim, job_id in self.unique.items() if self.unique_holder(*claim)}

    def _holds_key(self, job: ModelJob) -> bool:
        assert job.unique is not None
        until = job.unique[1]
        if until == "started":
            if job.state == "leased":
                return not job.begun and not job.started and job.attempt == 1
            return job.state not in TERMINAL and not job.begun and job.attempt == 0
        if until == "finished":
            return job.state not in TERMINAL
        return self.clock_ms < job.created_at + float(until) * 1000

    # --- workers ------------------------------------------------------------------------------------------------

    def promote(self, pool: str) -> int:
        """Makes due jobs ready, in order of their due time, priority and id."""
        now = self.now(pool)
        promoted = 0
        for line in WAITING_LINES:
            due = [job for job in self._in(pool, line) if job.run_at <= now]
            for job in sorted(due, key=lambda job: (job.run_at, -job.priority, job.id)):
                job.state, job.place = "ready", self._arrive(pool)
                promoted += 1
        return promoted

    def lease(self, pool: str, *, worker: str, token: str, limit: int) -> list[ModelJob]:
        """Gives the worker the first jobs in line; the same token again finds the same jobs."""
        kept = self.pool(pool)
        now = self.now(pool)
        last = kept.grants.get(worker)
        if last and last[0] == token:
            granted = (self.jobs.get(job_id) for job_id in last[1])
            return [job for job in granted if job and job.state == "leased" and job.token == token]
        self.promote(pool)
        if (kept.paused and _is_before(now, kept.paused_until)) or self._is_paused("all", now):
            return []
        if kept.max_running is not None:
            limit = max(0, min(limit, kept.max_running - len(self._in(pool, "leased"))))
        taken = self._first_in_line(pool, limit, now)
        for job in taken:
            job.state, job.token, job.deadline = "leased", token, now + self.lease_ms
            job.attempt += 1
            job.fence += 1
            job.started = False
        if taken:
            kept.grants[worker] = (token, [job.id for job in taken])
        return taken

    def _first_in_line(self, pool: str, limit: int, now: int) -> list[ModelJob]:
        """Jobs of a paused type that stand in front of them are set aside."""
        taken: list[ModelJob] = []
        for job in sorted((job for job in self._in(pool, "ready") if not job.parked), key=lambda job: job.order):
            if len(taken) == limit:
                break
            if self._is_paused(job.type, now):
                job.parked = True
            else:
                taken.append(job)
        return taken

    def start(self, job_id: str, token: str) -> None:
        if job := self._held(job_id, token):
            job.started, job.lost = True, 0

    def renew(self, pool: str, job_id: str, token: str) -> str:
        """held, cancel (held, but asked to stop), ended (under this token) or lost."""
        now = self.now(pool)
        job = self.jobs.get(job_id)
        if job is None or job.token != token:
            return "lost"
        if job.state != "leased":
            return "ended"
        job.deadline = now + self.lease_ms
        return "cancel" if job.cancel else "held"

    def complete(self, pool: str, job_id: str, token: str, type: str, *, ttl_ms: int | None = None) -> str:
        now = self.now(pool)
        job = self.jobs.get(job_id)
        if job is None or job.token != token:
            return self._refuse_stale(type)
        if job.state == "leased":
            job.lost, job.started = 0, True
            if job.cancel:
                self._end(job, "cancelled", now)
                return "cancelled"
            self._end(job, "succeeded", now)
            if ttl_ms is not None:
                job.forget_at = now + ttl_ms
            return "ok"
        return {"succeeded": "ok", "cancelled": "cancelled"}.get(job.state) or self._refuse_stale(type)

    def fail(self, pool: str, job_id: str, token: str, type: str, outcome: str, delay_ms: int) -> str:
        now = self.now(pool)
        job = self.jobs.get(job_id)
        if job is None or job.token != token:
            return self._refuse_stale(type)
        if job.state != "leased":
            return job.state
        job.lost = 0
        if job.cancel or outcome == "cancelled":
            self._end(job, "cancelled", now)
        elif outcome == "snooze":
            job.state, job.run_at, job.attempt = "scheduled", now + delay_ms, job.attempt - 1
        else:
            job.errors += 1
            self.counters[f"failed:{job.type}"] += 1
            if outcome == "retry":
                job.state, job.run_at = "retry_wait", now + delay_ms
                self.counters[f"retried:{job.type}"] += 1
            else:
                self._end(job, "dead", now)
        return job.state

    def _refuse_stale(self, type: str) -> str:
        """An end that comes under a lease that is somebody else's by now."""
        self.counters[f"stale:{type}"] += 1
        return "lost"

    def release(self, pool: str, job_id: str, token: str, *, charged: bool) -> str:
        now = self.now(pool)
        job = self._held(job_id, token)
        if job is None:
            return "lost"
        if not charged:
            job.attempt -= 1
        return self._hand_back(job, now)

    def crash(self, pool: str, job_id: str, token: str) -> str:
        now = self.now(pool)
        job = self._held(job_id, token)
        return "lost" if job is None else self._charge_crash(job, now)

    def log(self, job_id: str, token: str, lines: list[str]) -> str:
        """Keeps what a running attempt has logged."""
        job = self._held(job_id, token)
        if job is None:
            return "lost"
        if job.attempt not in job.logged and len(job.logged) >= self.attempts_kept:
            del job.logged[next(iter(job.logged))]
        job.logged.setdefault(job.attempt, []).extend(lines)
        return "ok"

    def park(self, pool: str, job_id: str, token: str) -> str:
        now = self.now(pool)
        job = self._held(job_id, token)
        if job is None:
            return "lost"
        job.attempt -= 1
        if not job.cancel:
            job.parked = True
        return self._hand_back(job, now)

    def unpark(self, pool: str, type: str) -> int:
        parked = [job for job in self._in(pool, "ready") if job.parked and job.type == type]
        for job in parked:
            job.parked = False
        return len(parked)

    def recover(self, pool: str, elapsed_ms: int | None) -> tuple[int, int, int, bool]:
        """How many were charged a crash, handed back, buried; and whether a clock jump held everything back."""
        kept = self.pool(pool)
        now = self.now(pool)
        if elapsed_ms is not None and kept.recovered_at and now - kept.recovered_at > elapsed_ms + self.lease_ms:
            kept.hold_until = now + self.lease_ms
        kept.recovered_at = now
        if now < kept.hold_until:
            return 0, 0, 0, True
        charged = handed_back = buried = 0
        margin = 0 if kept.max_running is None else CAP_MARGIN_MS
        for job in self._in(pool, "leased"):
            if job.deadline + margin > now:
                continue
            if not job.started and job.lost + 1 < LOST_LIMIT:
                job.lost += 1
                job.attempt -= 1
                self._hand_back(job, now)
                handed_back += 1
            else:
                charged += 1
                buried += self._charge_crash(job, now) == "dead"
        return charged, handed_back, buried, False

    # --- people -------------------------------------------------------------------------------------------------

    def cancel(self, job_id: str) -> str:
        """The state that the job is in afterwards; the state that forbids it with a ``!`` in front."""
        job = self.jobs[job_id]
        if job.state in TERMINAL:
            return f"!{job.state}"
        now = self.now(job.pool)
        if job.state == "leased":
            job.cancel = True
        else:
            job.parked = False
            self._end(job, "cancelled", now)
        return job.state

    def run_now(self, job_id: str) -> str:
        job = self.jobs[job_id]
        if job.state not in WAITING_LINES:
            return f"!{job.state}"
        self.now(job.pool)
        job.state, job.place = "ready", self._arrive(job.pool)
        return job.state

    def prioritize(self, job_id: str, priority: int) -> str:
        job = self.jobs[job_id]
        if job.state not in {"ready", *WAITING_LINES}:
            return f"!{job.state}"
        job.priority = priority
        return job.state

    def move(self, job_id: str, pool: str, successor: str) -> str:
        """``moved``, or the state that forbids it with a ``!`` in front; ``!None`` where something else does."""
        job = self.jobs[job_id]
        if job.pool == pool:
            return "!None"
        now = self.now(job.pool)
        if job.state not in {"ready", *WAITING_LINES}:
            return f"!{job.state}"
        if job.unique is not None:
            return "!None"
        due = 0 if job.state == "ready" else job.run_at
        job.parked, job.moved = False, True
        self._end(job, "cancelled", now)
        delay_ms = max(0, due - self.now(pool))
        facts: dict[str, Any] = {"type": job.type, "priority": job.priority, "max_crashes": job.max_crashes}
        self.enqueue([successor], pool=pool, delay_ms=delay_ms, **facts)
        return "moved"

    def resubmit(self, job_id: str) -> str:
        job = self.jobs[job_id]
        if job.state in {"dead", "cancelled"} and job.unique is not None:
            key = (job.type, job.unique[0])
            if (holder := self.unique_holder(*key)) is not None and holder.id != job.id:
                return "!duplicate"
            self.unique[key] = job.id
        self.now(job.pool)
        if job.state not in {"dead", "cancelled"} or job.moved:
            return f"!{job.state}"
        job.state, job.place = "ready", self._arrive(job.pool)
        job.begun = job.begun or job.attempt > 0
        job.attempt = job.errors = job.crashes = job.lost = 0
        job.cancel = job.started = False
        job.token = ""
        job.resubmissions += 1
        self.counters[f"resubmitted:{job.type}"] += 1
        return "ready"

    def discard(self, job_id: str) -> str:
        job = self.jobs[job_id]
        if job.state not in TERMINAL:
            return f"!{job.state}"
        del self.jobs[job_id]
        return "gone"

    def pause(self, pool: str, until: int | None) -> None:
        kept = self.pool(pool)
        kept.paused, kept.paused_until = True, until

    def resume(self, pool: str) -> None:
        self.pool(pool).paused = False

    def pause_scope(self, name: str, until: int | None) -> None:
        """Everything ("all") or a type."""
        self.paused[name] = until

    def resume_scope(self, name: str) -> None:
        if self.paused.pop(name, "none") == "none" and name == "all":
            return
        if name != "all":
            for pool in self.pools:
                self.unpark(pool, name)

    def end_expired(self) -> int:
        """Forgets pauses that are over, each for good; how many."""
        over = [name for name, until in self.paused.items() if until is not None and until <= self.clock_ms]
        for name in over:
            self.resume_scope(name)
        pools = [
            kept for kept in self.pools.values() if kept.paused and not _is_before(self.clock_ms, kept.paused_until)
        ]
        for kept in pools:
            kept.paused = False
        return len(over) + len(pools)

    def _is_paused(self, name: str, now: int) -> bool:
        return name in self.paused and _is_before(now, self.paused[name])

    # --- deaths ---------------------------------------------------------------------------------------------------

    def take_deaths(self, pool: str, token: str, begun: int) -> tuple[list[str], str] | None:
        """Jobs that died and nobody was told of, and the mark for when they are told; None: there is nothing to do."""
        kept, now = self.pool(pool), self.now(pool)
        kept.told = begun if kept.told is None else kept.told
        if kept.told_by not in ("", token) and kept.told_until > now:
            return None
        dead = sorted((job.ended_at, job.id) for job in self._in(pool, "dead"))
        since = max(kept.told, now - OLDEST_NEWS_MS)
        due = [ended_at for ended_at, _ in dead if since <= ended_at < now][:DEATHS_AT_ONCE]
        if not due:
            return ([], "") if any(ended_at >= now for ended_at, _ in dead) else None
        kept.told_by, kept.told_until = token, now + TELLING_MS
        return [job_id for ended_at, job_id in dead if since <= ended_at <= due[-1]], str(due[-1] + 1)

    def settle_deaths(self, pool: str, token: str, told: str) -> bool:
        kept = self.pool(pool)
        if kept.told_by != token:
            return False
        kept.told, kept.told_by = int(told), ""
        return True

    def prune(self, pool: str) -> int:
        """Forgets what ended long enough ago; dead jobs stay."""
        now = self.now(pool)
        over = [
            job.id
            for job in self.jobs.values()
            if job.pool == pool
            and job.state in {"succeeded", "cancelled"}
            and (job.forget_at if job.forget_at is not None else job.ended_at + self.retention_ms) <= now
        ]
        for job_id in over:
            del self.jobs[job_id]
        return len(over)

    # --- what they share ------------------------------------------------------------------------------------------

    def _in(self, pool: str, state: str) -> list[ModelJob]:
        return [job for job in self.jobs.values() if job.pool == pool and job.state == state]

    def _held(self, job_id: str, token: str) -> ModelJob | None:
        job = self.jobs.get(job_id)
        return job if job is not None and job.state == "leased" and job.token == token else None

    def _arrive(self, pool: str) -> int:
        kept = self.pool(pool)
        kept.arrivals += 1
        return kept.arrivals

    def _hand_back(self, job: ModelJob, now: int) -> str:
        """Back to its old place in line; a job that was asked to stop ends instead."""
        job.started = False
        if job.cancel:
            self._end(job, "cancelled", now)
        else:
            job.state, job.token = "ready", ""  # who held it is told that it lost it, not that it ended it
        return job.state

    def _charge_crash(self, job: ModelJob, now: int) -> str:
        job.crashes += 1
        job.lost = 0
        self.counters[f"crashed:{job.type}"] += 1
        if not job.cancel and job.crashes >= job.max_crashes:
            self._end(job, "dead", now)
            return job.state
        return self._hand_back(job, now)

    def _end(self, job: ModelJob, state: str, now: int) -> None:
        job.state, job.ended_at = state, now
        self.counters[f"{state}:{job.type}"] += 1


def _is_before(now: int, until: int | None) -> bool:
    return until is None or now < until
