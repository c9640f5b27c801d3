"""The scripts of schedules: schedule_take, schedule_advance, schedule_put, schedule_remove, schedule_record,
schedule_pulse, and job_fire, which makes the jobs of firings."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.exceptions import StoreRefused
from jobs.store.connection import Store
from jobs.store.keys import ScheduleKeys
from tests.support.partition import NOW, Partition, body
from tests.support.steps import everything

HISTORY: dict[str, Any] = {"kept": 3, "kept_ms": 1_000}


class Slot:
    """The slot of the schedules, with one schedule ``s`` that is due."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys = ScheduleKeys(store.namespace)
        self.client: Any = store.client
        self.put("s", due=NOW)

    def put(self, name: str, *, due: int | str, state: str = "one", seen: str = "", forced: str = "") -> list[int]:
        items = (name, "digest", "definition", seen, state, due, "")
        return self.store.run("schedule_put", self.keys, items, at=NOW, forced=forced, **HISTORY)

    def take(self, now: int = NOW, token: str = "me", **arguments: Any) -> list[Any]:
        given = {"claim_ms": 100, "limit": 10, "known_sequence": 0}
        return self.store.run("schedule_take", self.keys, given_now=now, token=token, **{**given, **arguments})

    def advance(self, *items: Any, token: str = "me", at: int = NOW) -> list[int]:
        given = {"at": at, "fired_until": NOW, **HISTORY}
        return self.store.run("schedule_advance", self.keys, items, token=token, **given)

    def record(self, seen: str, state: str, record: str = "r", at: int = NOW) -> int:
        given = {"name": "s", "seen": seen, "state": state, "record": record, "at": at, **HISTORY}
        return self.store.run("schedule_record", self.keys, **given)

    def pulse(self, known: str = "", new: str = "") -> list[Any]:
        return self.store.run("schedule_pulse", self.keys, known_pulse=known, pulse=new)

    def state(self) -> bytes | None:
        return self.client.hget(self.keys.states, "s")

    def due(self) -> float | None:
        return self.client.zscore(self.keys.due, "s")

    def firings(self) -> list[bytes]:
        return self.client.zrange(self.keys.firings + "s", 0, -1)


@pytest.fixture
def slot(store: Store) -> Slot:
    return Slot(store)


def test_what_is_due_is_taken_once_until_the_claim_lapses(slot: Slot) -> None:
    assert slot.take(NOW - 1) == [NOW - 1, 0, NOW, 0, 0]
    assert slot.take() == [NOW, 0, NOW + 100, 0, 0, b"s", b"one", b"definition", 1, NOW]
    assert slot.take(NOW + 99) == [NOW + 99, 0, NOW + 100, 0, 0]
    assert slot.take(NOW + 100)[5:] == [b"s", b"one", b"definition", 2, NOW]


def test_nothing_is_taken_from_a_store_that_has_seen_less(slot: Slot) -> None:
    assert slot.take(known_sequence=1) == [NOW, 0, NOW, 0, 0]


def test_a_schedule_moves_on_under_its_claim(slot: Slot) -> None:
    slot.take()

    assert slot.advance("s", "one", "two", NOW + 500, "fired", "") == [1]
    assert (slot.state(), slot.due(), slot.firings()) == (b"two", NOW + 500, [b"fired"])
    assert slot.client.hgetall(slot.keys.claims) == {}
    assert slot.client.hmget(slot.keys.control, "sequence", "fired_until") == [b"1", str(NOW).encode()]


@pytest.mark.parametrize(
    ("token", "seen"), [("other", "one"), ("me", "another")], ids=["another's claim", "another state"]
)
def test_a_schedule_moves_for_nobody_else(slot: Slot, token: str, seen: str) -> None:
    slot.take()
    before = everything(slot.store)

    assert slot.advance("s", seen, "two", NOW + 500, "fired", "", token=token) == [0]
    assert everything(slot.store) == before


def test_a_step_in_between_keeps_the_claim(slot: Slot) -> None:
    slot.take()

    assert slot.advance("s", "one", "planned", "-", "", "") == [1]
    assert slot.due() == NOW + 100
    assert slot.advance("s", "planned", "two", "", "", "") == [1]
    assert slot.due() is None


def test_records_are_kept_by_number_and_age(slot: Slot) -> None:
    for number in range(5):
        slot.record("", "", f"r{number}", at=NOW + number)
    assert slot.firings() == [b"r2", b"r3", b"r4"]

    slot.record("", "", "late", at=NOW + 1_003)
    assert slot.firings() == [b"r3", b"r4", b"late"]


def test_a_state_begins_anew_only_where_nobody_has_a_claim(slot: Slot) -> None:
    assert slot.put("s", due=NOW + 7, state="new", seen="other") == [0]
    assert slot.put("s", due=NOW + 7, state="new", seen="one") == [1]
    assert (slot.state(), slot.due()) == (b"new", NOW + 7)

    slot.take(NOW + 7)
    assert slot.put("s", due=NOW + 9, state="newer", seen="new") == [0]
    assert slot.put("s", due="", state="", seen="") == [1]
    assert slot.state() == b"new"
    assert slot.put("s", due=NOW + 9, state="newer", seen="?", forced="1") == [1]
    assert (slot.state(), slot.due()) == (b"newer", NOW + 9)
    assert slot.advance("s", "new", "two", "", "", "") == [0]


def test_a_record_of_a_person_leaves_a_claimed_state_alone(slot: Slot) -> None:
    assert slot.record("one", "two") == 1
    assert slot.record("one", "three") == 0
    slot.take()
    assert slot.record("two", "three") == 0
    assert (slot.state(), slot.firings()) == (b"two", [b"r"])


def test_a_removed_schedule_leaves_nothing(slot: Slot) -> None:
    slot.take()
    slot.record("", "")

    assert slot.store.run("schedule_remove", slot.keys, ["s", "nobody"]) == 1
    assert everything(slot.store, without=("clock", "control")) == {}


def test_a_pulse_says_whether_this_is_the_store_that_its_keeper_knows(slot: Slot) -> None:
    assert slot.pulse(new="1") == [0, b"0", 1]
    assert slot.pulse() == [0, b"0", 1]  # somebody who only looks
    assert slot.pulse("1", "2") == [1, b"0", 1]
    assert slot.pulse("1", "3") == [0, b"0", 1]  # it was put back, or another has kept them in between


def test_a_record_can_take_the_place_of_an_earlier_one(slot: Slot) -> None:
    slot.take()
    assert slot.advance("s", "one", "two", "-", "first", "") == [1]
    assert slot.advance("s", "two", "three", "-", "first and second", "first", at=NOW + 1) == [1]
    assert slot.advance("s", "two", "four", "-", "", "first and second") == [0]

    assert slot.firings() == [b"first and second"]


@pytest.mark.parametrize("key", ["due", "states", "claims", "control", "firings"])
def test_a_key_of_the_wrong_type_stops_a_move_before_it_is_begun(slot: Slot, key: str) -> None:
    slot.take()
    name = getattr(slot.keys, key) + ("s" if key == "firings" else "")
    slot.client.delete(name)
    slot.client.set(name, "wrong")
    before = everything(slot.store)

    with pytest.raises(StoreRefused):
        slot.advance("s", "one", "two", NOW + 500, "fired", "")
    assert everything(slot.store) == before


# --- the jobs of firings ---------------------------------------------------------------------------------------------


def fire(partition: Partition, *ids: str, **arguments: Any) -> list[Any]:
    items: list[Any] = []
    for job_id in ids:
        items += (job_id, body()[16:])
    given = {"type": "t", "priority": 0, "not_after": NOW, "max_pending": ""}
    return partition.run("job_fire", *items, **{**given, **arguments})[1:]


def test_a_firing_makes_its_job_once(partition: Partition) -> None:
    assert fire(partition, "a", "b") == ["created", "created"]
    after = partition.state()
    assert fire(partition, "a", "b") == ["there", "there"]
    assert partition.state() == after
    assert list(after["ready"]) == ["a", "b"]
    assert after["bodies"]["a"] == body(created_at=NOW, run_at=NOW)


def test_who_comes_late_makes_nothing(partition: Partition) -> None:
    assert fire(partition, "a", not_after=NOW - 1) == ["late"]
    assert "bodies" not in partition.state()


def test_a_full_pool_takes_as_many_as_it_has_room_for(partition: Partition) -> None:
    assert fire(partition, "a", "b", "c", max_pending=2) == ["created", "created", "full"]
    assert fire(partition, "a", "c", max_pending=2) == ["there", "full"]
