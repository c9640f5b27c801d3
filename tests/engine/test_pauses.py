"""Pauses of everything, of a pool, of a type: they hold, they end, and a settled one is true."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.core.job import Route, moment
from jobs.core.pause import FOR_EVER_MS, Pause
from jobs.engine import EVERYTHING, Engine, Scope
from jobs.engine.news import TOPICS
from jobs.store import pauses as store_pauses
from jobs.store import topology as topology_module
from jobs.store.connection import Store
from jobs.store.keys import SettingKeys, partition_keys
from tests.support.clock import ManualClock
from tests.support.steps import LEASE_MS, Steps
from tests.support.wait import soon

POOL = Scope("pool", "default")
TYPE = Scope("type", "t")


# Everything ----------------------------------------------------------------------------------------------------------


def test_a_pause_of_everything_holds_every_pool(engine: Engine, steps: Steps) -> None:
    other = Steps(engine, "other")
    steps.enqueue()
    other.enqueue()

    engine.pauses.pause(EVERYTHING, by="ana", reason="a move")

    assert (steps.ask().paused, other.ask().paused) == (True, True)
    everything = engine.pauses.state().everything
    assert everything is not None
    assert (everything.by, everything.reason) == ("ana", "a move")

    engine.pauses.resume(EVERYTHING)
    assert (len(steps.ask().jobs), len(other.ask().jobs)) == (1, 1)


def test_a_pool_that_is_born_into_a_pause_of_everything_knows_of_it(engine: Engine) -> None:
    engine.pauses.pause(EVERYTHING, by="ana")

    late = Steps(engine, "late")
    late.enqueue()
    assert late.ask().paused

    engine.pauses.resume(EVERYTHING)
    assert len(late.ask().jobs) == 1


def test_a_pause_that_comes_while_a_pool_is_born_is_not_missed(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = store_pauses.tell_new_pool
    rounds: list[int] = []

    def slow(store: Store, first: Route) -> int:
        told = tell(store, first)
        if not rounds:
            engine.pauses.pause(EVERYTHING, by="ana")
        rounds.append(told)
        return told

    monkeypatch.setattr(topology_module, "tell_new_pool", slow)
    late = Steps(engine, "late")
    late.enqueue()

    assert rounds == [0, 1]
    assert late.ask().paused


def _pause_type(engine: Engine) -> None:
    engine.pauses.pause(TYPE, by="ana")


def _disable_type(engine: Engine) -> None:
    engine.types.set("t", {"enabled": False})


def _pause_everything(engine: Engine) -> None:
    engine.pauses.pause(EVERYTHING, by="ana")


@pytest.mark.parametrize("pause", [_pause_everything, _pause_type, _disable_type])
def test_a_pool_of_which_whoever_pauses_has_not_heard_yet_is_paused_too(
    engine: Engine, store: Store, clock: ManualClock, pause: Callable[[Engine], None]
) -> None:
    """A host hears of new pools, and asks for them itself every twenty seconds only: it may be late to hear."""
    engine.topology.is_told = True
    assert engine.topology.pools() == []
    young = Steps(Engine(store, get_settings(), clock), "young")
    young.enqueue()

    pause(engine)

    assert young.ask().jobs == []


def test_a_pool_that_is_paused_stays_so_when_everything_is_resumed(engine: Engine, steps: Steps) -> None:
    steps.enqueue()
    engine.pauses.pause(POOL, by="ana")
    engine.pauses.pause(EVERYTHING, by="ben")

    engine.pauses.resume(EVERYTHING)

    assert steps.ask().paused
    assert engine.pools.get("default").paused is not None


def test_everything_goes_on_when_the_longer_one_of_two_pauses_is_over(
    engine: Engine, steps: Steps, clock: ManualClock
) -> None:
    steps.enqueue()
    now = moment(clock.now_ms())
    engine.pauses.pause(POOL, by="ana", until=now + timedelta(seconds=20))
    engine.pauses.pause(EVERYTHING, by="ben", until=now + timedelta(seconds=10))

    clock.advance(19.999)
    assert steps.ask().paused
    clock.advance(0.001)
    assert len(steps.ask().jobs) == 1


# Types ---------------------------------------------------------------------------------------------------------------


def test_jobs_of_a_paused_type_wait_and_others_run(engine: Engine, steps: Steps, clock: ManualClock) -> None:
    waiting = steps.enqueue()
    other = steps.enqueue(type="u")
    until = moment(clock.now_ms()) + timedelta(seconds=5)
    engine.pauses.pause(TYPE, by="ana", until=until)

    assert [job.id for job in steps.ask(10).jobs] == [other]
    assert (steps.state(waiting), steps.get(waiting).parked) == ("ready", True)
    clock.advance(5)
    late = steps.enqueue()
    assert [job.id for job in steps.ask(10).jobs] == [late], "what was set aside waits for whoever ends the pause"
    engine.pauses.end_expired()
    assert [job.id for job in steps.ask(10).jobs] == [waiting]


def test_a_paused_type_holds_for_jobs_that_come_back(engine: Engine, steps: Steps, clock: ManualClock) -> None:
    released, failed, delayed = steps.enqueue(), steps.enqueue(), steps.enqueue(delay_ms=1_000)
    first, second = steps.ask(2).jobs
    engine.pauses.pause(TYPE, by="ana")

    steps.release(first)
    steps.fail(second, delay_ms=1_000)
    clock.advance(2)

    assert steps.ask(10).jobs == []
    assert all(steps.get(job_id).parked for job_id in (released, failed, delayed))
    engine.pauses.resume(TYPE)
    assert {job.id for job in steps.ask(10).jobs} == {released, failed, delayed}


def test_a_job_that_was_set_aside_can_be_cancelled(engine: Engine, steps: Steps) -> None:
    job_id = steps.enqueue()
    engine.pauses.pause(TYPE, by="ana")
    steps.ask()

    engine.jobs.cancel(job_id)

    assert (steps.state(job_id), engine.pools.get("default").parked) == ("cancelled", 0)


def test_a_paused_or_disabled_type_is_told_to_every_partition(engine: Engine, steps: Steps) -> None:
    steps.enqueue()
    engine.pauses.pause(TYPE, by="ana")
    engine.types.set("u", {"enabled": False})

    state = engine.pauses.state()
    assert (set(state.types), state.disabled) == ({"t"}, {"u"})
    assert state.types_until_ms() == {"t": FOR_EVER_MS, "u": FOR_EVER_MS}

    engine.pauses.resume(TYPE)
    engine.types.clear("u")
    assert engine.pauses.state().types_until_ms() == {}


def test_jobs_that_were_set_aside_stand_in_line_again_after_the_pause(engine: Engine, steps: Steps) -> None:
    engine.pauses.pause(TYPE, by="ana")
    steps.enqueue()
    for job in steps.ask().jobs:
        steps.park(job)

    engine.pauses.resume(TYPE)

    assert len(steps.ask().jobs) == 1


# Ends ----------------------------------------------------------------------------------------------------------------


def test_pauses_whose_time_is_over_are_dropped_and_others_kept(
    engine: Engine, steps: Steps, clock: ManualClock
) -> None:
    steps.enqueue()
    engine.pauses.pause(POOL, by="ana", until=moment(clock.now_ms()) + timedelta(seconds=5))
    engine.pauses.pause(EVERYTHING, by="ben")

    assert engine.pauses.end_expired() == []
    clock.advance(5)
    assert engine.pauses.end_expired() == [POOL]
    assert list(engine.pauses.stored().each()) == [(EVERYTHING, engine.pauses.state().everything)]


def test_a_pause_that_takes_the_place_of_one_that_is_over_is_not_ended_with_it(
    engine: Engine, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.pauses.pause(EVERYTHING, by="ana", until=moment(clock.now_ms()) + timedelta(seconds=1))
    clock.advance(2)
    seen = engine.pauses.stored()
    engine.pauses.pause(EVERYTHING, by="ben")

    with monkeypatch.context() as patch:  # somebody looked before
        patch.setattr(engine.pauses, "stored", lambda: seen)
        engine.pauses.end_expired()

    held = engine.pauses.state().everything
    assert held is not None
    assert held.by == "ben"


def test_what_somebody_began_and_did_not_end_is_finished_by_anybody(engine: Engine, steps: Steps) -> None:
    """The document was changed, and then its author died."""
    steps.enqueue()
    pause = b'{"by":"ana","at":""}'
    engine.store.run("pause_set", SettingKeys(engine.store.namespace), scope="everything", pause=pause, only="")
    assert not engine.leases.promote(steps.route).promoted

    engine.pauses.tell()

    assert steps.ask().paused


def test_a_change_answers_what_was_there_before(engine: Engine, steps: Steps) -> None:
    steps.enqueue()

    assert engine.pauses.pause(POOL, by="ana", reason="one") is None
    before = engine.pauses.pause(POOL, by="ben", reason="two")
    assert (before and before.by, before and before.reason) == ("ana", "one")
    assert (after := engine.pauses.resume(POOL)) is not None
    assert after.by == "ben"
    assert engine.pauses.resume(POOL) is None


def test_a_pause_that_cannot_be_read_holds_and_can_be_lifted(engine: Engine, steps: Steps) -> None:
    steps.enqueue()
    engine.pauses.pause(POOL, by="ana")
    engine.store.client.hset(SettingKeys(engine.store.namespace).pauses, "pool:default", b"{?")

    pause = engine.pauses.state().pools["default"]
    assert (pause.by, pause.until_ms) == ("unknown", FOR_EVER_MS)
    engine.pauses.resume(POOL)
    assert len(steps.ask().jobs) == 1


def test_an_end_that_is_no_moment_never_comes() -> None:
    assert Pause(by="ana", at="", until="tomorrow").until_ms == FOR_EVER_MS


# Settled -------------------------------------------------------------------------------------------------------------


def test_nothing_was_handed_out_so_the_pause_is_true_at_once(engine: Engine, steps: Steps) -> None:
    steps.enqueue_many(3)
    running = steps.lease(started=True)
    engine.pauses.pause(POOL, by="ana")

    assert engine.pauses.settle(POOL) == 0
    assert steps.complete(running) == "ok"


@pytest.mark.parametrize("end", ["start", "complete", "release", "park"])
def test_what_was_handed_out_is_waited_for(engine: Engine, steps: Steps, end: str) -> None:
    steps.enqueue()
    job = steps.lease()
    engine.pauses.pause(POOL, by="ana")
    assert engine.pauses.settle(POOL, timeout=0) == 1

    later = threading.Timer(0.1, lambda: getattr(steps, end)(job))
    began = time.monotonic()
    later.start()
    assert engine.pauses.settle(POOL) == 0
    assert time.monotonic() - began > 0.09
    later.join()


def test_only_what_the_pause_concerns_is_waited_for(engine: Engine, steps: Steps) -> None:
    other = Steps(engine, "other")
    steps.enqueue()
    steps.lease()
    other.enqueue(type="u")
    other.lease()

    for scope, left in ((Scope("pool", "default"), 1), (Scope("type", "u"), 1), (Scope("type", "v"), 0)):
        engine.pauses.pause(scope, by="ana")
        assert engine.pauses.settle(scope, timeout=0) == left
    engine.pauses.pause(EVERYTHING, by="ana")
    assert engine.pauses.settle(EVERYTHING, timeout=0) == 2


def test_a_host_that_is_gone_delays_it_by_its_lease_and_can_start_nothing_after_it(
    engine: Engine, steps: Steps, clock: ManualClock
) -> None:
    job_id = steps.enqueue()
    frozen = steps.lease()
    engine.pauses.pause(POOL, by="ana")
    assert engine.pauses.settle(POOL, timeout=0) == 1

    clock.advance(LEASE_MS / 1000)

    assert engine.pauses.settle(POOL) == 0
    assert engine.leases.renew(steps.route, [(frozen.id, frozen.token)], LEASE_MS).lost == [(job_id, frozen.token)]
    assert (steps.state(job_id), steps.get(job_id).attempt) == ("ready", 0)


def test_thousands_of_leases_are_looked_through(engine: Engine, steps: Steps) -> None:
    steps.enqueue_many(2_500)
    for _ in range(3):
        steps.ask(1_000, worker=f"w{_}")
    engine.pauses.pause(POOL, by="ana")

    assert engine.pauses.settle(POOL, timeout=0) == 2_500


# News ----------------------------------------------------------------------------------------------------------------


def test_listeners_hear_what_is_changed_and_nothing_twice(engine: Engine, steps: Steps) -> None:
    steps.enqueue()
    listener = engine.news
    assert {item.topic for item in listener.wait(0)} == set(TOPICS)
    assert listener.wait(0.01) == []

    engine.pools.configure("default", slots=3)
    engine.pauses.pause(POOL, by="ana")
    listener.tell("cancel", "worker 7")
    assert [tuple(item) for item in listener.wait(1)] == [("pools", ""), ("pauses", ""), ("cancel", "worker 7")]
    assert listener.wait(0.01) == []


def test_a_listener_that_waits_is_woken_by_the_change(engine: Engine, steps: Steps) -> None:
    steps.enqueue()
    engine.news.wait(0)
    heard: list[Any] = []
    waiting = threading.Thread(target=lambda: heard.extend(engine.news.wait(10)))
    waiting.start()

    began = time.monotonic()
    engine.pools.configure("default", slots=3)
    waiting.join()

    assert [item.topic for item in heard] == ["pools"]
    assert time.monotonic() - began < soon(2)


def test_a_system_that_was_never_paused_carries_no_mark_of_it(engine: Engine, steps: Steps) -> None:
    steps.enqueue()

    control = partition_keys(engine.store.namespace, steps.route).control
    assert engine.store.client.hget(control, "pause_version") is None
