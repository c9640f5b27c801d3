"""The undertaker: every death is told of, once in the good case and again where it is in doubt."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.core.job import Job, LeasedJob
from jobs.engine import Engine, Failure, new_token
from jobs.engine.deaths import AT_ONCE, CLAIM_MS, OLDEST_MS
from jobs.services.undertaker import EVERY_SECONDS, SOON_SECONDS, Undertaker
from tests.services.conftest import ROUTE
from tests.support.clock import ManualClock


@pytest.fixture
def told() -> list[Job]:
    return []


@pytest.fixture
def undertaker(engine: Engine, told: list[Job]) -> Undertaker:
    """One that was there before anything died."""
    undertaker = Undertaker(engine, told.append)
    undertaker.tick()
    return undertaker


@pytest.fixture
def die(
    engine: Engine,
    clock: ManualClock,
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> Callable[..., list[str]]:
    """``die(3)`` → ids of jobs that died in the same millisecond."""

    def die(count: int = 1) -> list[str]:
        enqueue(count)
        leases = lease(count)
        engine.leases.fail(ROUTE, [Failure(job.id, job.token, job.type, 1, "dead") for job in leases])
        clock.advance(0.001)
        return [job.id for job in leases]

    return die


def ids(told: list[Job]) -> list[str]:
    return [job.id for job in told]


def test_a_death_is_told_of_once(undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]) -> None:
    died = die()

    assert [undertaker.tick(), undertaker.tick()] == [{"mourned": 1}, {"mourned": 0}]
    assert ids(told) == died
    assert told[0].state.value == "dead"
    assert undertaker.every == EVERY_SECONDS


def test_so_is_a_burial_by_recovery(
    engine: Engine,
    clock: ManualClock,
    undertaker: Undertaker,
    told: list[Job],
    enqueue: Callable[..., list[str]],
    lease: Callable[..., list[LeasedJob]],
) -> None:
    enqueue(max_crashes=1)
    (job,) = lease()
    engine.leases.start(ROUTE, [(job.id, job.token, clock.now_ms())])
    clock.advance(11)
    assert engine.leases.recover(ROUTE).buried == 1
    clock.advance(0.001)

    undertaker.tick()

    assert ids(told) == [job.id]
    assert told[0].error is not None
    assert told[0].error["type"] == "WorkerLost"


def test_more_than_are_taken_at_once_are_all_told_of_in_order(
    undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]
) -> None:
    first, second = die(AT_ONCE + 5), die(2)

    assert undertaker.tick() == {"mourned": AT_ONCE + 7}
    assert set(ids(told)[: AT_ONCE + 5]) == set(first)
    assert set(ids(told)[AT_ONCE + 5 :]) == set(second)


def test_a_death_of_this_very_millisecond_is_waited_for(
    engine: Engine, clock: ManualClock, undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]
) -> None:
    died = die()
    clock.advance(-0.001)

    assert undertaker.tick() == {"mourned": 0}
    assert undertaker.every == SOON_SECONDS
    clock.advance(0.001)
    assert undertaker.tick() == {"mourned": 1}
    assert ids(told) == died


def test_what_died_before_anybody_wanted_to_know_is_no_news(
    engine: Engine, told: list[Job], die: Callable[..., list[str]]
) -> None:
    die()
    late = Undertaker(engine, told.append)

    assert [late.tick(), late.tick()] == [{"mourned": 0}, {"mourned": 0}]


def test_nor_is_what_died_long_ago_while_nobody_was_there(
    undertaker: Undertaker, clock: ManualClock, told: list[Job], die: Callable[..., list[str]]
) -> None:
    die()
    clock.advance(OLDEST_MS / 1000)
    died = die()

    undertaker.tick()

    assert ids(told) == died


def test_of_several_hosts_one_tells(
    engine: Engine, undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]
) -> None:
    die()
    other = Undertaker(engine, told.append)
    assert engine.deaths.take(ROUTE, "another host", begun_ms=0) is not None

    assert [undertaker.tick(), other.tick()] == [{"mourned": 0}, {"mourned": 0}]


def test_what_a_host_took_and_did_not_tell_of_another_tells_of(
    engine: Engine, clock: ManualClock, undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]
) -> None:
    died = die()
    host = new_token()
    taken = engine.deaths.take(ROUTE, host, begun_ms=0)
    assert taken is not None
    clock.advance(CLAIM_MS / 1000 + 1)

    undertaker.tick()

    assert ids(told) == died
    assert engine.deaths.settle(ROUTE, host, taken) is False


def test_a_job_that_was_discarded_meanwhile_is_passed_over(
    engine: Engine, undertaker: Undertaker, told: list[Job], die: Callable[..., list[str]]
) -> None:
    gone, stays = die(2)
    engine.jobs.discard(gone)

    undertaker.tick()

    assert ids(told) == [stays]
