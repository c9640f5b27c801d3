"""How many jobs waited when."""

from __future__ import annotations

from jobs.engine import Engine
from jobs.services.backlog import BacklogNotes
from tests.support.clock import ManualClock
from tests.support.steps import Steps

DAY = 86_400


def test_the_ready_jobs_of_each_pool_are_noted_once_a_minute(engine: Engine, clock: ManualClock) -> None:
    mail, reports = Steps(engine, "mail"), Steps(engine, "reports")
    mail.enqueue()
    service = BacklogNotes(engine)
    assert [service.tick(), service.tick()] == [{"noted": 1}, {"noted": 0}]
    clock.advance(60)
    reports.enqueue()
    reports.enqueue()
    service.tick()
    mail.lease()
    clock.advance(60)
    service.tick()

    assert [note.ready for note in engine.backlog.notes()] == [
        {"mail": 1},
        {"mail": 1, "reports": 2},
        {"reports": 2},
    ]


def test_a_day_is_told_by_the_minute_and_a_month_by_the_half_hour(engine: Engine, clock: ManualClock) -> None:
    for _ in range(3):
        engine.backlog.note()
        clock.advance(DAY)

    assert [note.seconds for note in engine.backlog.notes(60 * 24 * 30)] == [1800] * 3
    assert [note.seconds for note in engine.backlog.notes(60 * 24 + 1)] == [1800]
    clock.advance(-DAY)
    assert [note.seconds for note in engine.backlog.notes(30)] == [60]


def test_a_note_that_is_none_of_ours_is_an_empty_one(engine: Engine) -> None:
    engine.backlog.note()
    stream = f"{engine.store.namespace}:{{backlog}}:minutes"
    engine.store.call(lambda client: client.xadd(stream, {"ready": b"\xff nonsense"}))

    assert [note.ready for note in engine.backlog.notes()] == [{}, {}]
