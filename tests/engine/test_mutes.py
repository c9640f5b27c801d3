"""Mutes hold until their moment, one for each subject, and leave nothing behind."""

from __future__ import annotations

from jobs.engine import Engine, Mute
from tests.support.clock import ManualClock


def mute(clock: ManualClock, subject: str, seconds: int) -> Mute:
    return Mute(kind="type", subject=subject, until_ms=clock.now_ms() + seconds * 1000, who="ana", reason="known")


def test_it_holds_until_its_moment_and_the_next_one_sweeps_it_away(engine: Engine, clock: ManualClock) -> None:
    short, long = mute(clock, "mail", 60), mute(clock, "crm", 3600)
    engine.mutes.set(long)
    engine.mutes.set(short)
    assert engine.mutes.all() == [short, long]

    clock.advance(61)

    assert engine.mutes.all() == [long]
    engine.mutes.set(mute(clock, "feed", 60))
    assert engine.store.read(lambda client: client.hlen(engine.mutes._keys.mutes)) == 2


def test_another_for_the_same_subject_takes_its_place_and_one_can_be_ended(engine: Engine, clock: ManualClock) -> None:
    engine.mutes.set(mute(clock, "mail", 60))
    engine.mutes.set(mute(clock, "mail", 120))

    [held] = engine.mutes.all()
    assert held.until_ms == clock.now_ms() + 120_000
    assert engine.mutes.end("type", "mail")
    assert not engine.mutes.end("type", "mail")
    assert engine.mutes.all() == []


def test_what_went_bad_mutes_nothing(engine: Engine, clock: ManualClock) -> None:
    engine.store.call(lambda client: client.hset(engine.mutes._keys.mutes, "type:mail", b"junk"))

    assert engine.mutes.all() == []
    engine.mutes.set(mute(clock, "crm", 60))
    assert [found.subject for found in engine.mutes.all()] == ["crm"]
