"""backlog_note.lua: one note a minute, one in half an hour, and none for ever."""

from __future__ import annotations

from typing import Any

from jobs.store.connection import Store
from jobs.store.keys import BacklogKeys
from tests.support.partition import NOW

MINUTE, HALF, DAY = 60_000, 1_800_000, 86_400_000


def note(store: Store, at: int, counts: bytes = b"\x80") -> bool:
    return bool(store.run("backlog_note", BacklogKeys(store.namespace), given_now=at, counts=counts))


def kept(store: Store, stream: str) -> list[int]:
    entries: Any = store.read(lambda client: client.xrange(getattr(BacklogKeys(store.namespace), stream)))
    return [int(entry.partition(b"-")[0]) for entry, _ in entries]


def test_whoever_comes_first_in_a_minute_notes_it(store: Store) -> None:
    start = NOW - NOW % HALF

    assert [note(store, start + after) for after in (5_000, 5_001, 59_999, 60_000)] == [True, False, False, True]
    assert kept(store, "minutes") == [start, start + MINUTE]
    assert kept(store, "halves") == [start]


def test_a_clock_that_went_back_changes_nothing(store: Store) -> None:
    note(store, NOW)

    assert not note(store, NOW - DAY)
    assert len(kept(store, "minutes")) == len(kept(store, "halves")) == 1


def test_minutes_are_kept_for_a_day_and_half_hours_for_30_days(store: Store) -> None:
    for day in range(40):
        note(store, NOW + day * DAY)
        note(store, NOW + day * DAY + 2 * MINUTE)

    assert len(kept(store, "minutes")) <= 4
    assert 28 <= len(kept(store, "halves")) <= 32
