"""A host dies at every point at which it can: before and after each word it has with the store. Another goes on.

Whatever is due is then made once and accounted for once, exactly as by a host that lived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from jobs import job
from jobs.models import Schedule
from jobs.services.definitions import HOLD_MS
from tests.schedules.conftest import World

CLAIM_SECONDS = 7.0
"""After as long another host does what the dead one left."""


class Killed(BaseException):
    """The host is gone."""


class Account(NamedTuple):
    """What became of the firings of all schedules: times in minutes since the start."""

    fired: dict[str, list[float]]
    states: list[str]
    records: dict[str, list[tuple[float, str, int | None, str]]]
    """When it was due, what became of it, how many share the record, and why (without the ids of jobs)."""


def account(world: World) -> Account:
    names = [row.name for row in Schedule.objects.order_by("name")]
    jobs = {name: world.jobs(name) for name in names}
    return Account(
        fired={name: [world.minutes(job.fire_time) for job in jobs[name]] for name in names},
        states=[job.state for name in names for job in jobs[name]],
        records={
            name: [
                ((record.due - world.start_ms) / 60_000, record.outcome, record.count, record.reason.partition(":")[0])
                for record in sorted(world.records(name), key=lambda record: record.due)
            ]
            for name in names
        },
    )


@contextmanager
def dying(world: World, monkeypatch: pytest.MonkeyPatch, number: int, when: str) -> Iterator[list[int]]:
    """A host dies at its word of this number with the store: before it is said, or just after it was answered.

    Gives the words that were said.
    """
    say = world.engine.store._call
    said: list[int] = []

    def say_or_die(*arguments: Any, **options: Any) -> Any:
        said.append(len(said) + 1)
        if len(said) == number and when == "before":
            raise Killed
        answer = say(*arguments, **options)
        if len(said) == number:
            raise Killed
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(world.engine.store, "_call", say_or_die)
        with suppress(Killed):
            yield said


Act = Callable[[World], Any]


class Situation(NamedTuple):
    """What leads up to it, what the host does in which it dies, what happens meanwhile, and what comes then.

    ``after`` gets what ``before`` answered.
    """

    fired: dict[str, list[float]]
    before: Act
    act: Act = World.tick
    meanwhile: Act = lambda world: None
    after: Callable[[World, Any], object] = lambda world, given: None


# --- What is due ----------------------------------------------------------------------------------------------------


def due(minutes: float = 1, **fields: Any) -> Act:
    """One schedule of a firing a minute, and so much time."""

    def lead_up(world: World) -> None:
        world.schedule(**fields)
        world.clock.advance(minutes * 60)

    return lead_up


def due_once(world: World) -> None:
    world.schedule(kind="once", run_at=world.now + timedelta(minutes=1))
    world.clock.advance(60)


def due_in_another_pool_than_was_planned(world: World) -> None:
    world.schedule()
    change_the_pool(world)
    world.clock.advance(60)


def change_the_pool(world: World) -> None:
    Schedule.objects.update(pool="elsewhere")
    world.carry()


def several_due(world: World) -> None:
    for name, fields in {"low": {"priority": -5}, "other": {"pool": "elsewhere"}, "s": {}, "t": {}}.items():
        world.schedule(name, **fields)
    world.clock.advance(60)


def due_in_a_pause(world: World) -> None:
    row = world.schedule()
    row.pause(by="ana", at=world.now)
    row.save()
    world.carry()
    world.clock.advance(3 * 60)


# --- What is due while another job has not ended ----------------------------------------------------------------------


def due_again(overlap: str) -> Act:
    """The job before waits for a worker."""

    def lead_up(world: World) -> str:
        world.schedule(overlap=overlap)
        world.run(60)
        world.clock.advance(60)
        return world.jobs()[0].id

    return lead_up


def due_while_the_first_runs(overlap: str) -> Act:
    def lead_up(world: World) -> Any:
        world.schedule(overlap=overlap)
        world.run(60)
        leased = world.lease(world.jobs()[0].id)
        world.clock.advance(60)
        return leased

    return lead_up


def one_waits_and_the_first_has_ended(world: World) -> None:
    world.schedule(overlap="queue_one")
    world.run(120)
    world.end(world.jobs()[0].id)
    world.clock.advance(1)


def end_the_first(world: World, first: str) -> None:
    world.end(first)
    world.run(CLAIM_SECONDS)


def hand_the_first_back(world: World, leased: Any) -> None:
    world.engine.leases.release(leased.route, [(leased.id, leased.token)])
    world.run(CLAIM_SECONDS)


# --- What is carried from the rows to the store -----------------------------------------------------------------------


def edited(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(90)
    Schedule.objects.update(interval_seconds=30.0)


def emptied(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(90)
    world.remember()
    world.wipe()


def put_back(world: World) -> None:
    world.schedule(missed="run_all")
    world.run(60)
    old = world.dump()
    world.run(120)
    world.remember()
    world.restore(old)


def take_over(world: World, _: None) -> None:
    """Another host keeps the definitions once the dead one has not been heard of for a while."""
    world.clock.advance(HOLD_MS / 1000)
    world.definitions, world.ticker = world.host()
    world.run(70 - HOLD_MS / 1000)


SITUATIONS = {
    "it is due": Situation({"s": [1]}, due()),
    "it is due once": Situation({"s": [1]}, due_once),
    "it is the last": Situation({"s": [1]}, due(max_firings=1)),
    "its jobs are unique": Situation({"s": [1]}, due(job_type="schedules.unique")),
    "the pool was changed": Situation({"s": [1]}, due_in_another_pool_than_was_planned),
    "the pool is changed": Situation({"s": [1]}, due(), meanwhile=change_the_pool),
    "several are due": Situation({"low": [1], "other": [1], "s": [1], "t": [1]}, several_due),
    "it is paused": Situation({"s": []}, due_in_a_pause),
    "three were missed": Situation({"s": []}, due(3.5, missed="skip")),
    "the latest of three is made up": Situation({"s": [3]}, due(3.5, missed="run_once")),
    "three are made up": Situation({"s": [1, 2, 3]}, due(3.5, missed="run_all")),
    "skip while one runs": Situation({"s": [1]}, due_while_the_first_runs("skip")),
    "queue behind one": Situation({"s": [1, 2]}, due_again("queue_one"), after=end_the_first),
    "the queued one's turn": Situation({"s": [1, 2]}, one_waits_and_the_first_has_ended),
    "cancel one that waits": Situation({"s": [1, 2]}, due_again("cancel_old")),
    "cancel one that runs": Situation({"s": [1, 2]}, due_while_the_first_runs("cancel_old"), after=hand_the_first_back),
    "the rhythm was edited": Situation({"s": [1, 2, 2.5]}, edited, World.carry, after=take_over),
    "the store was emptied": Situation({"s": [2]}, emptied, World.carry, after=take_over),
    "the store was put back": Situation({"s": [1, 4]}, put_back, World.carry, after=take_over),
}


@pytest.mark.parametrize("situation", SITUATIONS.values(), ids=SITUATIONS)
def test_a_host_that_dies_at_any_point_loses_nothing_and_doubles_nothing(
    situation: Situation, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    job("schedules.unique", unique=True)(lambda: None)

    def outcome(number: int = 0, when: str = "") -> tuple[Account, int]:
        """Of a life that ends at this word; how many were said."""
        world.begin_anew()
        given = situation.before(world)
        with dying(world, monkeypatch, number, when) as said:
            situation.act(world)
        words = len(said)
        world.engine.topology.forget()  # what it knew, it took along
        situation.meanwhile(world)
        _, other = world.host()
        other.tick()  # at once, when the claim of the dead one stands
        for _ in range(2):
            world.clock.advance(CLAIM_SECONDS)
            other.tick()
        situation.after(world, given)
        return account(world), words

    lived, words = outcome()
    assert lived.fired == situation.fired
    assert words > 2
    for number in range(1, words + 1):
        for when in ("before", "after"):
            assert outcome(number, when)[0] == lived, f"it died {when} word {number} of {words}"


def test_a_job_that_was_made_is_fired_whatever_lives_again_before_somebody_says_so(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host died before it said so; then a person had the job before it done again."""
    world.schedule(overlap="skip")
    world.run(60)
    [first] = world.jobs()
    world.engine.jobs.cancel(first.id)
    world.clock.advance(60)
    fire = world.engine.schedules.fire

    def fire_and_die(*arguments: Any, **options: Any) -> None:
        fire(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(world.engine.schedules, "fire", fire_and_die)
        world.tick()
    world.engine.jobs.resubmit(first.id)
    world.clock.advance(CLAIM_SECONDS)
    world.tick()

    assert world.fired() == [1, 2]
    assert [record.outcome for record in world.records()] == ["fired", "fired"]
