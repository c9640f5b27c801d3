"""Leave to start: places and starts by key, lines of those that wait, turns, and what crashes leave behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.core.job import LeasedJob
from jobs.core.limits import TypeLimits, parse_rate
from jobs.engine import Leave
from jobs.registry import JobType, registry
from jobs.store.keys import LimitKeys
from tests.support.clock import ManualClock
from tests.support.steps import Steps


def handler() -> None: ...


class Gate:
    """A worker of one limited type, step by step: lease, ask leave, set aside what gets none."""

    def __init__(self, steps: Steps, limits: TypeLimits) -> None:
        self.steps = steps
        self.limits = limits
        self.engine = steps.engine

    def enqueue(self, *keys: str, **spec: object) -> list[str]:
        """One job per key, in this order; their ids."""
        return [self.steps.enqueue(type="t", concurrency_key=key or None, rate_key=key or None, **spec) for key in keys]

    def ask(self, most: int = 1000, *, limit: int = 1000) -> Leave:
        reply = self.steps.ask(limit)
        return self.engine.limits.take(
            self.limits, self.steps.route, reply.jobs[0].token if reply.jobs else "-", reply.jobs, most
        )

    def start(self, most: int = 1000, *, limit: int = 1000) -> list[LeasedJob]:
        """Those that may start; the others are set aside."""
        leave = self.ask(most, limit=limit)
        self.engine.limits.hold_back(self.limits, self.steps.route, leave.held)
        for job in leave.rest:
            self.steps.release(job)
        return leave.go

    def end(self, *jobs: LeasedJob) -> None:
        for job in jobs:
            self.steps.complete(job)
        self.engine.limits.give(self.limits, [(job.id, job.token) for job in jobs])


def ids(jobs: list[LeasedJob]) -> list[str]:
    return [job.id for job in jobs]


@pytest.fixture
def known() -> Iterator[None]:
    with registry.restored():
        yield


@pytest.fixture
def two(steps: Steps, known: None) -> Gate:
    """Two at once per key."""
    registry.add(JobType(handler, name="t", concurrency=2))
    return Gate(steps, TypeLimits("t", 2, None))


@pytest.fixture
def one(steps: Steps, known: None) -> Gate:
    """One at once per key."""
    registry.add(JobType(handler, name="t", concurrency=1))
    return Gate(steps, TypeLimits("t", 1, None))


@pytest.fixture
def slow(steps: Steps, known: None) -> Gate:
    """Three starts a minute per key."""
    registry.add(JobType(handler, name="t", rate="3/m"))
    return Gate(steps, TypeLimits("t", None, parse_rate("3/m")))


def test_no_more_than_the_limit_start_under_one_key(two: Gate) -> None:
    jobs = two.enqueue("a", "a", "a", "b", "b", "b")

    assert ids(two.start()) == [jobs[0], jobs[1], jobs[3], jobs[4]]


def test_jobs_without_a_key_share_one(two: Gate) -> None:
    jobs = two.enqueue("", "", "")

    assert ids(two.start()) == jobs[:2]


def test_who_waits_is_ready_listed_counted_and_says_so(two: Gate) -> None:
    jobs = two.enqueue("a", "a", "a")
    two.start()

    waiting = two.steps.get(jobs[2])

    assert (waiting.state, waiting.throttled, waiting.parked, waiting.attempt) == ("ready", True, False, 0)
    assert [job.id for job in two.engine.jobs.page().items if job.state == "ready"] == [jobs[2]]
    assert two.engine.pools.get("default").ready == 1


def test_a_place_that_is_given_back_goes_to_the_next_in_line(two: Gate) -> None:
    jobs = two.enqueue("a", "a", "a", "a")
    running = two.start()

    two.end(running[1])

    assert ids(two.start()) == [jobs[2]]
    assert two.start() == []


def test_newcomers_stand_behind_those_who_wait(one: Gate) -> None:
    _, second = one.enqueue("a", "a")
    running = one.start()
    one.end(*running)  # the second is called now
    (third,) = one.enqueue("a")

    leave = one.ask()

    assert [job.id for job in leave.go] == [second]
    assert [(job.id, kind) for job, kind in leave.held] == [(third, "concurrency")]


def test_order_within_a_key_is_priority_then_arrival(one: Gate) -> None:
    one.enqueue("a")
    running = one.start()
    low, *_ = one.enqueue("a", "a", priority=-5)
    high, later = one.enqueue("a", "a", priority=5)
    one.start()
    order = []
    for _ in range(3):
        one.end(*running)
        running = one.start()
        order += ids(running)

    assert order == [high, later, low]


def test_a_key_with_many_jobs_holds_up_nobody(one: Gate) -> None:
    one.enqueue(*["a"] * 50)
    others = one.enqueue("b", "c", "d")

    assert set(others) < set(ids(one.start()))


def test_keys_take_turns_with_fresh_jobs_when_slots_are_few(one: Gate) -> None:
    """Two slots: without turns the oldest keys would keep them until all of their jobs are done."""
    keys = "aaaaaaaa" + "bbbbbbbb" + "cc" + "dd" + "ee"
    key_of = dict(zip(one.enqueue(*keys), keys, strict=True))
    running: list[LeasedJob] = []
    started = ""
    while True:
        while len(running) < 2 and (jobs := one.start(2 - len(running), limit=20)):
            running += jobs
            started += "".join(key_of[job.id] for job in jobs)
        if not running:
            break
        one.end(running.pop(0))

    assert sorted(started) == sorted(keys)
    # At worst every other start goes to a key that has had its turn.
    assert {"a", "b", "c", "d", "e"} == set(started[:10]), started


def test_what_was_held_back_does_not_go_to_the_end_of_the_pool(one: Gate) -> None:
    _, second = one.enqueue("a", "a")
    running = one.start()
    crowd = [one.steps.enqueue(type="other") for _ in range(20)]

    one.end(*running)

    line = [job.id for job in one.steps.lease_all()]
    assert line.index(second) == 1
    assert line[0] == crowd[0]


def test_asking_again_under_the_same_token_changes_nothing(two: Gate) -> None:
    two.enqueue("a", "a", "a")
    reply = two.steps.ask(10)
    token = reply.jobs[0].token
    first = two.engine.limits.take(two.limits, two.steps.route, token, reply.jobs, 10)

    again = two.engine.limits.take(two.limits, two.steps.route, token, reply.jobs, 10, again=True)

    assert again == first
    assert counts(two) == {"a": 2}


def test_no_more_are_let_through_than_there_are_slots(two: Gate) -> None:
    two.enqueue("a", "b", "c")

    leave = two.ask(2)

    assert (len(leave.go), len(leave.held), len(leave.rest)) == (2, 0, 1)


def test_a_waiting_job_can_be_cancelled_and_the_one_behind_it_is_called(one: Gate) -> None:
    jobs = one.enqueue("a", "a", "a")
    running = one.start()

    assert one.engine.jobs.cancel(jobs[1]).state == "cancelled"
    one.end(*running)

    assert ids(one.start()) == [jobs[2]]


def test_jobs_of_a_paused_pool_keep_no_place_from_those_of_another(one: Gate) -> None:
    one.enqueue("a", "a", "a")
    running = one.start()
    other = Gate(Steps(one.engine, "other"), one.limits)
    (elsewhere,) = other.enqueue("a")
    assert other.start() == []
    one.engine.pools.pause("default", by="me")

    one.end(*running)

    assert ids(other.start()) == [elsewhere]


def test_a_place_of_a_crashed_worker_is_free_once_its_lease_is_over(one: Gate, clock: ManualClock) -> None:
    jobs = one.enqueue("a", "a")
    one.start()
    assert one.engine.limit_upkeep.forgotten(one.limits) == set()

    clock.advance(11)
    one.engine.leases.recover(one.steps.route)
    assert one.start() == []  # the place is not free yet, although the lease is over
    forgotten = one.engine.limit_upkeep.forgotten(one.limits)
    one.engine.limits.give(one.limits, forgotten)

    assert {job_id for job_id, _ in forgotten} == {jobs[0]}
    assert ids(one.start()) == [jobs[0]]
    assert counts(one) == {"a": 1}


def test_a_call_that_nobody_answers_runs_out(one: Gate, clock: ManualClock) -> None:
    jobs = one.enqueue("a", "a", "a")
    one.end(*one.start())  # calls the second
    clock.advance(11)

    one.engine.limits.turn(one.limits)  # takes the call back and calls the third

    assert ids(one.start()) == [jobs[2]]


def test_who_is_set_aside_and_in_no_line_is_found_and_put_back(one: Gate) -> None:
    """A worker died between the two steps."""
    jobs = one.enqueue("a", "a", "a", "a")
    leave = one.ask()
    one.engine.limits.throttle(one.steps.route, [(job.id, job.token) for job, _ in leave.held])

    strays = one.engine.limit_upkeep.strays(one.steps.route)

    assert strays == jobs[1:], "in their order"
    assert one.engine.limit_upkeep.put_back(one.steps.route, strays) == 3
    one.end(*leave.go)
    assert ids(one.start()) == [jobs[1]]


def test_who_stands_in_a_line_is_no_stray(one: Gate) -> None:
    one.enqueue("a", "a")
    one.start()

    assert one.engine.limit_upkeep.strays(one.steps.route) == []


def test_when_a_type_has_no_limit_any_more_its_jobs_come_back(one: Gate) -> None:
    jobs = one.enqueue("a", "a")
    one.start()
    with registry.restored():
        registry.add(JobType(handler, name="t"))

        assert one.engine.limit_upkeep.strays(one.steps.route) == [jobs[1]]


def test_a_rate_holds_in_every_window_of_its_period(slow: Gate, clock: ManualClock) -> None:
    """Not only in those that begin at full minutes: five starts within a minute never happen."""
    slow.enqueue(*["a"] * 30)
    began = clock.now_ms()
    starts: list[float] = []
    while clock.now_ms() < began + 300_000:
        slow.engine.limits.turn(slow.limits)
        jobs = slow.start(limit=1 if len(starts) < 2 else 1000)
        starts += [clock.now_ms()] * len(jobs)
        slow.end(*jobs)
        clock.advance(7)

    assert len(starts) >= 13  # three a minute for five minutes, less what rounding takes
    assert all(later - earlier >= 60_000 for earlier, later in zip(starts, starts[3:], strict=False))


@pytest.mark.parametrize("slots", [1000, 5])
def test_of_mixed_keys_the_first_of_each_start(slow: Gate, slots: int) -> None:
    keys = "abacabadaa"
    jobs = slow.enqueue(*keys)

    started = slow.start(slots)

    expected = [number for number, key in enumerate(keys) if keys[:number].count(key) < 3][:slots]
    assert [job.id for job in started] == [jobs[number] for number in expected]


def test_the_next_start_of_a_key_is_known(slow: Gate, clock: ManualClock) -> None:
    jobs = slow.enqueue(*["a"] * 4)
    slow.start()
    clock.advance(20)

    (hold,) = slow.engine.holds.of(slow.steps.get(jobs[3]))

    assert (hold.kind, hold.key, hold.limit, hold.holders) == ("rate", "a", "3/m", [])
    assert hold.free_in_seconds is not None
    assert 40 <= hold.free_in_seconds <= 41


def test_keys_whose_starts_are_due_together_take_turns(slow: Gate, clock: ManualClock) -> None:
    keys = "aaaaaabbbbbbcccccc"
    key_of = dict(zip(slow.enqueue(*keys), keys, strict=True))
    slow.end(*slow.start())
    clock.advance(62)

    slow.engine.limits.turn(slow.limits)

    assert "".join(key_of[job.id] for job in slow.start()) == "abcabcabc"


def test_the_holders_of_a_key_are_named(two: Gate) -> None:
    jobs = two.enqueue("a", "a", "a", "b")
    two.start()

    (hold,) = two.engine.holds.of(two.steps.get(jobs[2]))

    assert (hold.kind, hold.key, hold.limit, sorted(hold.holders)) == ("concurrency", "a", 2, sorted(jobs[:2]))
    assert two.engine.holds.of(two.steps.get(jobs[3])) == []


def test_a_job_needs_leave_of_both_limits_of_its_type(steps: Steps, known: None, clock: ManualClock) -> None:
    registry.add(JobType(handler, name="t", concurrency=1, rate="2/m"))
    gate = Gate(steps, TypeLimits("t", 1, parse_rate("2/m")))
    jobs = [steps.enqueue(type="t", concurrency_key=key, rate_key="r") for key in ("a", "a", "b", "c")]
    first = gate.start()
    assert ids(first) == [jobs[0], jobs[2]]  # the second lacks a place, the fourth a start
    gate.end(*first)  # a place is free for the second, but no start
    assert gate.start() == []
    clock.advance(62)

    gate.engine.limits.turn(gate.limits)

    assert sorted(ids(gate.start())) == sorted([jobs[1], jobs[3]])


def test_nothing_is_left_when_all_is_done(steps: Steps, known: None, clock: ManualClock) -> None:
    registry.add(JobType(handler, name="t", concurrency=1, rate="5/s"))
    gate = Gate(steps, TypeLimits("t", 1, parse_rate("5/s")))
    gate.enqueue(*"aaabbb")
    for _ in range(10):
        gate.engine.limits.turn(gate.limits)
        gate.end(*gate.start())
        clock.advance(1)
    gate.engine.limit_upkeep.tidy(gate.limits)

    assert gate.engine.pools.get("default").succeeded == 6
    client = steps.engine.store.client
    keys = LimitKeys(steps.engine.store.namespace, "t")
    left = [key.decode() for key in client.scan_iter(match=f"{steps.engine.store.namespace}:*limits*")]
    assert left == [keys.clock]
    assert gate.engine.limit_upkeep.forget_if_idle("t")
    assert gate.engine.limit_upkeep.waited_for() == []


def counts(gate: Gate) -> dict[str, int]:
    keys = LimitKeys(gate.engine.store.namespace, gate.limits.type)
    stored = gate.engine.store.client.hgetall(keys.counts)
    return {key.decode(): int(count) for key, count in stored.items()}
