"""The engine and the model side by side, on a real server, under a clock that goes where Hypothesis sends it.

After each rule the whole namespace is read raw: every job must be where the model says, with the numbers that the model
says, and every index must be what a rebuild from the bytes gives (K16).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jobs.conf import Settings
from jobs.core.job import Job, JobSpec, LeasedJob, Route, Unique
from jobs.core.pause import EVERYTHING, Scope
from jobs.core.states import JobState
from jobs.engine import Completion, Engine, Failure
from jobs.engine.deaths import Deaths
from jobs.engine.listing import JobFilter
from jobs.engine.logs import NewLines
from jobs.exceptions import DuplicateJob, JobNotFound, PoolFull, WrongState
from jobs.store.connection import Store
from jobs.store.keys import HOLDER_BUCKETS
from jobs.store.log_lines import encode_line
from tests.engine_model.model import Model
from tests.faults.structure import Structure, read_structure
from tests.support.clock import ManualClock

POOLS = ("alpha", "beta")
TYPES = ("mail", "report")
WORKERS = ("one", "two", "three")
CALLER_IDS = ("order:1", "order:2", "{weird} id")
UNIQUE_KEYS = ("k1", "k2")
LEASE_MS = 10_000
RETENTION_MS = 300_000
ATTEMPTS_KEPT = 5
SCOPES = (EVERYTHING, *(Scope("type", name) for name in TYPES))
TELLERS = ("teller one", "teller two")
ENDS = {"succeeded", "failed", "dead", "cancelled", "crashed", "stale"}
COUNTED = ENDS | {"enqueued", "duplicates", "retried", "resubmitted"}
"""The figures that the model keeps too."""

namespaces = itertools.count()
pools, types, workers = st.sampled_from(POOLS), st.sampled_from(TYPES), st.sampled_from(WORKERS)
priorities = st.sampled_from((-100, 0, 0, 0, 7, 100))
delays = st.sampled_from((0, 0, 0, 1, 5_000, 60_000))
crash_budgets = st.sampled_from((1, 2, 3))
picks = st.integers(0, 1_000_000)


def unique_name(type: str, key: str) -> str:
    """Under what name a unique key is claimed."""
    return f"{type}\0{key}"


class Died(Exception):
    """What a host meets in the middle of a move."""


def die(_moved: object) -> None:
    raise Died


class Holding:
    """A lease as its worker remembers it, for as long as the machine runs: it may be long lost."""

    def __init__(self, job: LeasedJob, worker: str) -> None:
        self.id, self.token, self.type, self.route, self.worker = job.id, job.token, job.type, job.route, worker
        self.pool = job.route.pool


class EngineMachine(RuleBasedStateMachine):
    """Each rule calls a verb of the engine and its twin of the model, and compares the answers."""

    url: str  # set by whoever makes the class
    restart: Callable[[], None] | None = None  # kills and starts the server; None: it may not be restarted

    def __init__(self) -> None:
        super().__init__()
        self.namespace = f"model{next(namespaces)}"
        self.clock = ManualClock()
        self.store = Store(self.url, namespace=self.namespace)
        settings = Settings(
            lease_seconds=LEASE_MS / 1000, retention_seconds=RETENTION_MS / 1000, attempts_kept=ATTEMPTS_KEPT
        )
        self.engine = Engine(self.store, settings, self.clock)
        self.engine.leases.bundle_from = 2
        self.model = Model(
            self.clock.now_ms(), lease_ms=LEASE_MS, retention_ms=RETENTION_MS, attempts_kept=ATTEMPTS_KEPT
        )
        self.deaths: list[tuple[str, str, Deaths]] = []  # pool, who took them, which
        self.held: list[Holding] = []
        self.tokens = itertools.count()
        self.last_lease: dict[tuple[str, str], str] = {}
        self.worker_ms = 0  # the recoverer's own monotonic clock
        self.recovered_at: dict[str, int] = {}

    def teardown(self) -> None:
        client = self.store.client
        if keys := list(client.scan_iter(match=f"{self.namespace}:*", count=1000)):
            client.unlink(*keys)
        self.store.close()

    @initialize()
    def create_pools(self) -> None:
        for pool in POOLS:
            self.engine.topology.ensure(pool)

    def route(self, pool: str) -> Route:
        return self.engine.topology.route_for(pool)

    # --- producers ----------------------------------------------------------------------------------------------

    @rule(
        pool=pools,
        type=types,
        priority=priorities,
        delay_ms=delays,
        max_crashes=crash_budgets,
        count=st.sampled_from((1, 1, 2, 5)),
    )
    def enqueue(self, pool: str, type: str, priority: int, delay_ms: int, max_crashes: int, count: int) -> None:
        facts: dict[str, Any] = {"pool": pool, "type": type, "priority": priority, "delay_ms": delay_ms}
        facts["max_crashes"] = max_crashes
        if self.model.is_full(pool, count):
            with pytest.raises(PoolFull):
                self.engine.jobs.enqueue(JobSpec(**facts), [b"{}"] * count)
            return
        created = self.engine.jobs.enqueue(JobSpec(**facts), [b"{}"] * count)
        state = self.model.enqueue([job.id for job in created], **facts)
        assert [job.state for job in created] == [state] * count

    @rule(job_id=st.sampled_from(CALLER_IDS), pool=pools, priority=priorities, delay_ms=delays)
    def enqueue_under_an_id(self, job_id: str, pool: str, priority: int, delay_ms: int) -> None:
        facts: dict[str, Any] = {"pool": pool, "type": "mail", "priority": priority, "delay_ms": delay_ms}
        facts["max_crashes"] = 2
        if job_id in self.model.jobs:
            with pytest.raises(DuplicateJob) as refused:
                self.engine.jobs.enqueue(JobSpec(id=job_id, **facts), [b"{}"])
            assert refused.value.job_id == job_id
            self.model.refuse_duplicate(self.model.jobs[job_id].pool, "mail")
        elif self.model.is_full(pool, 1):
            with pytest.raises(PoolFull):
                self.engine.jobs.enqueue(JobSpec(id=job_id, **facts), [b"{}"])
        else:
            (created,) = self.engine.jobs.enqueue(JobSpec(id=job_id, **facts), [b"{}"])
            assert created.state == self.model.enqueue([job_id], **facts)

    @rule(
        key=st.sampled_from(UNIQUE_KEYS),
        pool=pools,
        type=types,
        until=st.sampled_from(("finished", "started", 30.0)),
        on_duplicate=st.sampled_from(("return", "raise", "replace")),
        delay_ms=delays,
    )
    def enqueue_unique(
        self, key: str, pool: str, type: str, until: str | float, on_duplicate: str, delay_ms: int
    ) -> None:
        facts: dict[str, Any] = {"pool": pool, "type": type, "priority": 0, "delay_ms": delay_ms, "max_crashes": 2}
        spec = JobSpec(unique=Unique(key=key, until=until, on_duplicate=on_duplicate), **facts)
        in_the_way = self.model.claim_unique(type, key, on_duplicate)
        if in_the_way is not None:
            self.model.refuse_duplicate(in_the_way.pool, type)
        if in_the_way is not None and on_duplicate == "raise":
            with pytest.raises(DuplicateJob) as refused:
                self.engine.jobs.enqueue(spec, [b"{}"])
            assert refused.value.job_id == in_the_way.id
            return
        if in_the_way is None and self.model.is_full(pool, 1):
            with pytest.raises(PoolFull):
                self.engine.jobs.enqueue(spec, [b"{}"])
            return
        (created,) = self.engine.jobs.enqueue(spec, [b"{}"])
        assert created.existing == (in_the_way is not None), f"existing: {created}, the model has {in_the_way}"
        if in_the_way is not None:
            assert created.id == in_the_way.id
            return
        self.model.enqueue([created.id], unique=(key, until), **facts)
        self.model.unique[type, key] = created.id

    # --- workers ------------------------------------------------------------------------------------------------

    @rule(pool=pools)
    def promote(self, pool: str) -> None:
        assert self.engine.leases.promote(self.route(pool)).promoted == self.model.promote(pool)

    @rule(pool=pools, worker=workers, limit=st.sampled_from((1, 2, 10)))
    def lease(self, pool: str, worker: str, limit: int) -> None:
        token = f"token{next(self.tokens)}"
        self.last_lease[pool, worker] = token
        self._lease(pool, worker, token, limit)

    @precondition(lambda self: self.last_lease)
    @rule(pick=picks)
    def lease_again_with_the_same_token(self, pick: int) -> None:
        (pool, worker), token = self._nth(sorted(self.last_lease.items()), pick)
        self._lease(pool, worker, token, 10)

    def _lease(self, pool: str, worker: str, token: str, limit: int) -> None:
        reply = self.engine.leases.lease(self.route(pool), worker=worker, token=token, limit=limit, lease_ms=LEASE_MS)
        expected = self.model.lease(pool, worker=worker, token=token, limit=limit)
        assert [(job.id, job.attempt, job.fencing_token, job.errors, job.crashes) for job in reply.jobs] == [
            (job.id, job.attempt, job.fence, job.errors, job.crashes) for job in expected
        ]
        assert all(job.token == token for job in reply.jobs)
        assert reply.now == self.model.pool(pool).now
        known = {(holding.id, holding.token) for holding in self.held}
        self.held += [Holding(job, worker) for job in reply.jobs if (job.id, job.token) not in known]

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def start(self, pick: int) -> None:
        held = self._holding(pick)
        self.engine.leases.start(held.route, [(held.id, held.token, self.clock.now_ms())])
        self.model.start(held.id, held.token)

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def renew_all_of_a_worker(self, pick: int) -> None:
        chosen = self._holding(pick)
        leases = [held for held in self.held if held.worker == chosen.worker and held.pool == chosen.pool][-50:]
        reply = self.engine.leases.renew(chosen.route, [(held.id, held.token) for held in leases], LEASE_MS)
        expected = [((held.id, held.token), self.model.renew(held.pool, held.id, held.token)) for held in leases]
        assert reply.lost == [lease for lease, answer in expected if answer == "lost"]
        assert reply.ended == [lease for lease, answer in expected if answer == "ended"]
        assert reply.cancelled == [lease for lease, answer in expected if answer == "cancel"]

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def renew_one(self, pick: int) -> None:
        held = self._holding(pick)
        reply = self.engine.leases.renew(held.route, [(held.id, held.token)], LEASE_MS)
        answers = {"lost": reply.lost, "ended": reply.ended, "cancel": reply.cancelled}
        expected = self.model.renew(held.pool, held.id, held.token)
        assert [answer for answer, leases in answers.items() if leases] == [expected] * (expected != "held")

    @precondition(lambda self: self.held)
    @rule(pick=picks, result=st.sampled_from((None, b'{"ok": true}')), ttl_ms=st.sampled_from((None, None, 1_000)))
    def complete(self, pick: int, result: bytes | None, ttl_ms: int | None) -> None:
        held = self._holding(pick)
        completion = Completion(held.id, held.token, held.type, self.clock.now_ms(), result, ttl_ms)
        answer = self.engine.leases.complete(held.route, [completion])
        assert answer == [self.model.complete(held.pool, held.id, held.token, held.type, ttl_ms=ttl_ms)]

    @precondition(lambda self: self.held)
    @rule(
        pick=picks,
        outcome=st.sampled_from(("retry", "retry", "dead", "snooze", "cancelled")),
        delay_ms=st.sampled_from((0, 1, 5_000)),
    )
    def fail(self, pick: int, outcome: Any, delay_ms: int) -> None:
        held = self._holding(pick)
        job = self.model.jobs.get(held.id)
        priority = job.priority if job else 0
        failure = Failure(held.id, held.token, held.type, self.clock.now_ms(), outcome, delay_ms, priority, b"{}")
        answer = self.engine.leases.fail(held.route, [failure])
        assert answer == [self.model.fail(held.pool, held.id, held.token, held.type, outcome, delay_ms)]

    @precondition(lambda self: self.held)
    @rule(pick=picks, charged=st.booleans())
    def release(self, pick: int, charged: bool) -> None:
        held = self._holding(pick)
        answer = self.engine.leases.release(held.route, [(held.id, held.token)], charged=charged)
        assert answer == [self.model.release(held.pool, held.id, held.token, charged=charged)]

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def crash(self, pick: int) -> None:
        held = self._holding(pick)
        marks = [(held.id, held.token, self.clock.now_ms())]
        answer = self.engine.leases.crash(held.route, marks, reason="worker died: killed by SIGKILL (9)")
        assert answer == [self.model.crash(held.pool, held.id, held.token)]

    @precondition(lambda self: self.held)
    @rule(pick=picks, count=st.sampled_from((1, 3)))
    def log(self, pick: int, count: int) -> None:
        held = self._holding(pick)
        words = [f"line {next(self.tokens)}" for _ in range(count)]
        lines = [encode_line(self.clock.now_ms(), logging.INFO, word, {}) for word in words]
        lost = self.engine.logs.append(held.route, [NewLines(held.id, held.token, lines)])
        assert lost == ([(held.id, held.token)] if self.model.log(held.id, held.token, words) == "lost" else [])

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def read_a_log(self, pick: int) -> None:
        job = self.model.jobs[self._nth(list(self.model.jobs), pick)]
        found: dict[int, list[str]] = {}
        for line in self.engine.logs.read(self.route(job.pool), job.id).lines:
            found.setdefault(line.attempt, []).append(line.message)
        assert {attempt: sorted(lines) for attempt, lines in found.items()} == {
            attempt: sorted(lines) for attempt, lines in job.logged.items()
        }

    @precondition(lambda self: self.held)
    @rule(pick=picks)
    def park(self, pick: int) -> None:
        held = self._holding(pick)
        answer = self.engine.leases.park(held.route, [(held.id, held.token, held.type)])
        assert answer == [self.model.park(held.pool, held.id, held.token)]

    @rule(pool=pools, type=types)
    def unpark(self, pool: str, type: str) -> None:
        assert self.engine.leases.unpark(self.route(pool), [type]) == self.model.unpark(pool, type)

    @rule(pool=pools)
    def recover(self, pool: str) -> None:
        last = self.recovered_at.get(pool)
        elapsed_ms = None if last is None else self.worker_ms - last
        self.recovered_at[pool] = self.worker_ms
        reply = self.engine.leases.recover(self.route(pool), limit=1000, elapsed_ms=elapsed_ms)
        answer = (reply.recovered, reply.released, reply.buried, reply.held)
        assert answer == self.model.recover(pool, elapsed_ms)

    @rule(pool=pools, worker=workers)
    def a_worker_is_lost_and_another_takes_over(self, pool: str, worker: str) -> None:
        """What makes a token stale, in one step: everything held so far may come back late from now on."""
        self.time_passes(LEASE_MS / 1000 + 1)
        self.recover(pool)
        self.lease(pool, worker, 10)

    # --- people -------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def cancel(self, pick: int) -> None:
        self._decide(pick, self.engine.jobs.cancel, self.model.cancel)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def run_now(self, pick: int) -> None:
        self._decide(pick, self.engine.jobs.run_now, self.model.run_now)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks, priority=st.integers(-100, 100))
    def prioritize(self, pick: int, priority: int) -> None:
        def verb(job_id: str) -> Job:
            if (problem := self.engine.jobs.prioritize_many([job_id], priority)[job_id]) is not None:
                raise problem
            return self.engine.jobs.get(job_id)

        self._decide(pick, verb, lambda job_id: self.model.prioritize(job_id, priority))

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks, pool=pools, dies=st.booleans())
    def move(self, pick: int, pool: str, dies: bool) -> None:
        """Now and then its host dies halfway, and another finishes what that has begun."""
        job_id, moving = self._nth(list(self.model.jobs), pick), self.engine.moving
        facts: dict[str, Any] = {"move": f"move{next(self.tokens)}", "at_ms": self.clock.now_ms()}
        if dies:
            with pytest.MonkeyPatch.context() as dying, suppress(Died):
                dying.setattr(moving, "_create", die)
                moving.move([job_id], pool, **facts)
        problem = moving.move([job_id], pool, only_finish=dies, **facts)[job_id]
        if problem is None:
            answer, successor = "moved", self.engine.jobs.get(job_id).result["moved_to"]
        else:
            assert isinstance(problem, WrongState)
            answer, successor = f"!{problem.state}", ""
        assert answer == self.model.move(job_id, pool, successor)

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def resubmit(self, pick: int) -> None:
        self._decide(pick, self.engine.jobs.resubmit, self.model.resubmit)

    @rule()
    def resubmit_all(self) -> None:
        expected = {id: self.model.resubmit(id) == "ready" for id in list(self.model.jobs)}
        outcome = self.engine.jobs.resubmit_many(expected)
        assert {id: problem is None for id, problem in outcome.items()} == expected

    @precondition(lambda self: self.model.jobs)
    @rule(pick=picks)
    def discard(self, pick: int) -> None:
        self._decide(pick, self.engine.jobs.discard, self.model.discard)

    def _decide(self, pick: int, verb: Callable[[str], Any], twin: Callable[[str], str]) -> None:
        """A verb on one job: its new state, or the state that it was refused for, must be the model's."""
        job_id = self._nth(list(self.model.jobs), pick)
        expected = twin(job_id)
        try:
            job = verb(job_id)
            answer = job.state if job is not None else "gone"
        except WrongState as error:
            answer = f"!{error.state}"
        except DuplicateJob:
            answer = "!duplicate"
        assert answer == expected

    @rule(pool=pools)
    def list_what_is_leased(self, pool: str) -> None:
        page = self.engine.jobs.page(JobFilter(states=(JobState.LEASED,), pool=pool), limit=1000)
        assert {job.id for job in page.items} == {
            job.id for job in self.model.jobs.values() if job.state == "leased" and job.pool == pool
        }

    @rule(job_id=st.sampled_from(("nobody", *CALLER_IDS)))
    def ask_for_a_job(self, job_id: str) -> None:
        try:
            state = self.engine.jobs.get(job_id).state
        except JobNotFound:
            assert job_id not in self.model.jobs
        else:
            assert state == self.model.jobs[job_id].state

    @rule(pool=pools, seconds=st.sampled_from((None, None, 5)))
    def pause(self, pool: str, seconds: int | None) -> None:
        until = None if seconds is None else self.clock.now_ms() + seconds * 1000
        moment = None if until is None else datetime.fromtimestamp(until / 1000, UTC)
        self.engine.pools.pause(pool, by="machine", until=moment)
        self.model.pause(pool, until)

    @rule(pool=pools, max_running=st.sampled_from((None, None, 0, 1, 3)))
    def cap(self, pool: str, max_running: int | None) -> None:
        self.engine.pools.configure(pool, max_running=max_running)
        self.model.pool(pool).max_running = max_running

    @rule(pool=pools, max_pending=st.sampled_from((None, None, None, 1, 6)))
    def limit_the_backlog(self, pool: str, max_pending: int | None) -> None:
        self.engine.pools.configure(pool, max_pending=max_pending)
        self.model.pool(pool).max_pending = max_pending

    @rule(pool=pools)
    def resume(self, pool: str) -> None:
        self.engine.pools.resume(pool)
        self.model.resume(pool)

    @rule(scope=st.sampled_from(SCOPES), seconds=st.sampled_from((None, 5)))
    def pause_everything_or_a_type(self, scope: Scope, seconds: int | None) -> None:
        until = None if seconds is None else self.clock.now_ms() + seconds * 1000
        moment = None if until is None else datetime.fromtimestamp(until / 1000, UTC)
        self.engine.pauses.pause(scope, by="machine", until=moment)
        self.model.pause_scope(scope.name or "all", until)

    @rule(scope=st.sampled_from(SCOPES))
    def resume_everything_or_a_type(self, scope: Scope) -> None:
        self.engine.pauses.resume(scope)
        self.model.resume_scope(scope.name or "all")

    @rule()
    def pauses_that_are_over_are_dropped(self) -> None:
        assert len(self.engine.pauses.end_expired()) == self.model.end_expired()

    @rule(pool=pools, teller=st.sampled_from(TELLERS))
    def take_deaths(self, pool: str, teller: str) -> None:
        taken = self.engine.deaths.take(self.route(pool), teller, begun_ms=0)
        expected = self.model.take_deaths(pool, teller, 0)
        assert (None if taken is None else (taken.ids, taken.told)) == expected
        if taken is not None and taken.ids:
            self.deaths.append((pool, teller, taken))

    @precondition(lambda self: self.deaths)
    @rule(pick=picks)
    def tell_of_deaths(self, pick: int) -> None:
        """Mostly in time; now and then after another has taken them over, or once more."""
        pool, teller, taken = self._nth(self.deaths, -1 - pick % 3)
        answer = self.engine.deaths.settle(self.route(pool), teller, taken)
        assert answer == self.model.settle_deaths(pool, teller, taken.told)

    @rule(pool=pools)
    def prune(self, pool: str) -> None:
        assert self.engine.leases.prune(self.route(pool)) == self.model.prune(pool)

    @rule()
    def sweep_claims(self) -> None:
        """Claims of names whose jobs are gone or over go away, and nothing else changes."""
        names = [*CALLER_IDS, *(unique_name(type, key) for type in TYPES for key in UNIQUE_KEYS)]
        for bucket in {crc32(name.encode()) % HOLDER_BUCKETS for name in names}:
            self.engine.upkeep.sweep_claims(bucket)
        self.model.sweep_unique()

    # --- the world ------------------------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from((0.001, 1, 4, 5, 10, 11, 60)))
    def time_passes(self, seconds: float) -> None:
        self.worker_ms += round(seconds * 1000)
        self.model.clock_ms = self.clock.advance(seconds)

    @rule(seconds=st.sampled_from((-3600, -11, -1, 15, 120, 86_400)))
    def the_clock_jumps(self, seconds: float) -> None:
        """The server's clock is set; nobody's monotonic clock moves."""
        self.model.clock_ms = self.clock.advance(seconds)

    @rule()
    def the_script_cache_is_lost(self) -> None:
        self.store.client.script_flush()

    @precondition(lambda self: self.restart is not None)
    @rule(sure=st.integers(0, 9))
    def the_server_dies_and_comes_back(self, sure: int) -> None:
        if sure == 0 and self.restart is not None:
            self.restart()

    # --- agreement ------------------------------------------------------------------------------------------------

    @invariant()
    def both_agree(self) -> None:
        structure = read_structure(self.store.client, self.namespace)
        assert structure.problems == [], "\n".join(structure.problems)
        assert structure.jobs.keys() == self.model.jobs.keys()
        for job_id, expected in self.model.jobs.items():
            self._compare(job_id, structure)
            assert structure.jobs[job_id].route.pool == expected.pool
        counted = {name: total for name, total in structure.counters.items() if name.partition(":")[0] in COUNTED}
        assert counted == +self.model.counters
        for type, key in self.model.unique:
            if (holder := self.model.unique_holder(type, key)) is not None:
                assert structure.holders["unique"].get(unique_name(type, key)) == holder.id
        strangers = structure.holders["ids"].keys() - self.model.jobs.keys()
        assert not strangers, f"ids that are held for nobody: {strangers}"

    def _compare(self, job_id: str, structure: Structure) -> None:
        stored, expected = structure.jobs[job_id], self.model.jobs[job_id]
        seen: dict[str, Any] = {"state": stored.state, "parked": stored.parked}
        wanted: dict[str, Any] = {"state": expected.state, "parked": expected.parked}
        if stored.state == "leased":
            seen["deadline"], wanted["deadline"] = stored.score, expected.deadline
        if stored.state in {"scheduled", "retry_wait"}:
            seen["due"], wanted["due"] = int(stored.score), expected.run_at
        if record := stored.record:
            for name in ("attempt", "errors", "crashes", "fence", "lost", "resubmissions", "token"):
                seen[name], wanted[name] = getattr(record, name), getattr(expected, name)
            seen["cancel"], wanted["cancel"] = bool(record.cancel), expected.cancel
        else:
            untouched = replace(expected, attempt=0, errors=0, crashes=0, fence=0, token="", cancel=False)
            assert untouched == expected, f"{job_id} has no record, but is {expected}"
        assert seen == wanted, f"{job_id}: stored {seen}, the model says {wanted}"

    def _holding(self, pick: int) -> Holding:
        """Mostly a recent lease, now and then an old one that is probably lost."""
        recent = self.held[-8:]
        chosen: Holding = self._nth(self.held if pick % 4 == 0 else recent, pick // 4)
        return chosen

    @staticmethod
    def _nth(items: Any, pick: int) -> Any:
        return items[pick % len(items)]


def machine_on(url: str, *, restart: Callable[[], None] | None = None) -> type[EngineMachine]:
    """The machine for one server."""
    return type("EngineMachine", (EngineMachine,), {"url": url, "restart": staticmethod(restart) if restart else None})
