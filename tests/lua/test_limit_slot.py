"""limit_take, limit_start, limit_give, limit_wait, limit_turn, limit_tidy: the slot of the limits of one type."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from jobs.core.limits import PERIODS
from jobs.exceptions import StoreRefused
from jobs.store.connection import Store
from jobs.store.keys import LimitKeys
from jobs.store.scripts import script
from tests.support.partition import NOW
from tests.support.steps import everything

PERIOD = 60_000


Group = tuple[str, str, list[str]]


def wanted(*groups: Group, over: Sequence[str] = ()) -> dict[str, bytes]:
    """What is asked for, as ``limit_take`` takes it."""
    return {"wanted": msgspec.msgpack.encode(groups), "over": msgspec.msgpack.encode(over)}


class Slot:
    def __init__(self, store: Store) -> None:
        self.store = store
        self.keys = LimitKeys(store.namespace, "t")

    def run(self, name: str, *items: Any, **arguments: Any) -> Any:
        defaults = {"given_now": NOW, "concurrency": 1, "starts": 2, "period": PERIOD}
        named = {key: value for key, value in (defaults | arguments).items() if key in script(name).arguments}
        reply = self.store.run(name, self.keys, items, **named)
        return [value.decode() if isinstance(value, bytes) else value for value in reply]

    def take(self, *items: str, most: int = 9, token: str = "token", now: int = NOW, again: str = "") -> str:
        """A letter for each id, key and rate key."""
        groups = [(key, rate, [f"{job_id}\n{token}"]) for job_id, key, rate in zip(*[iter(items)] * 3, strict=True)]
        reply = self.run("limit_take", **wanted(*groups), most=most, route="p.1.0", given_now=now, again=again)
        return str(reply[-1])

    def give(self, *fields: str) -> list[Any]:
        reply: list[Any] = self.run("limit_give", over=msgspec.msgpack.encode(fields))
        return reply

    def wait(self, *ids: str, line: str = "c") -> list[Any]:
        items = [value for id in ids for value in (id, "k", "r", NOW, f"{1:016}", line)]
        reply: list[Any] = self.run("limit_wait", *items, route="p.1.0")
        return reply

    def holders(self) -> dict[bytes, list[bytes]]:
        """Who has a place → route and key."""
        found = self.store.client.hgetall(self.keys.holders)
        return {field: [part.rstrip() for part in holding.split(b"\n")] for field, holding in found.items()}


@pytest.fixture
def slot(store: Store) -> Slot:
    return Slot(store)


def test_a_place_and_a_start_are_taken_together_or_not_at_all(slot: Slot) -> None:
    answers = slot.take("a", "k1", "r", "b", "k1", "r", "c", "k2", "r", "d", "k3", "r")

    assert answers == "gcgr"
    client = slot.store.client
    assert client.hgetall(slot.keys.counts) == {b"k1": b"1", b"k2": b"1"}
    assert slot.holders() == {b"a\ntoken": [b"p.1.0", b"k1"], b"c\ntoken": [b"p.1.0", b"k2"]}


def test_who_waits_comes_before_a_newcomer_also_where_the_limit_was_raised(slot: Slot) -> None:
    slot.take("a", "k", "r")
    slot.wait("b")

    newcomer = wanted(("k", "r", ["c\ntoken"]))
    letters = slot.run("limit_take", **newcomer, concurrency=2, most=9, route="p.1.0", again="")[-1]

    assert letters == "c"


def test_a_place_given_back_twice_is_given_back_once(slot: Slot) -> None:
    slot.take("a", "k", "r")
    slot.give("a\ntoken")
    slot.take("b", "k", "r", token="other")

    slot.give("a\ntoken")

    assert slot.store.client.hgetall(slot.keys.counts) == {b"k": b"1"}


def test_the_same_lease_given_back_twice_in_one_call_is_given_back_once(slot: Slot) -> None:
    slot.take("a", "k", "r", "b", "k2", "r")
    slot.store.client.hset(slot.keys.counts, "k", 2)

    slot.give("a\ntoken", "a\ntoken")

    assert slot.store.client.hget(slot.keys.counts, "k") == b"1"


def test_places_can_be_given_back_with_the_next_request(slot: Slot) -> None:
    slot.take("a", "k", "r")
    slot.wait("b")

    asked = wanted(("k", "r", ["c\nnew"]), over=["a\ntoken"])
    _, _, waiting, count, *rest = slot.run("limit_take", **asked, most=9, route="p.1.0", again="")

    assert (waiting, count, rest) == (1, 1, ["b", "p.1.0", "c"])


def test_a_call_that_is_made_again_finds_what_it_was_given(slot: Slot) -> None:
    slot.take("a", "k", "r")

    assert slot.take("a", "k", "r", again="1") == "g"
    assert slot.store.client.hgetall(slot.keys.counts) == {b"k": b"1"}


def test_a_called_job_has_its_place_before_it_asks(slot: Slot) -> None:
    slot.take("a", "k", "r")
    slot.wait("b")
    assert slot.give("a\ntoken")[3:] == ["b", "p.1.0"]

    assert slot.take("c", "k", "r", token="new") == "c"
    assert slot.take("b", "k", "r", token="new") == "g"
    assert slot.holders() == {b"b\nnew": [b"p.1.0", b"k"]}


def test_who_may_start_by_the_time_it_stands_in_line_is_called_at_once(slot: Slot) -> None:
    """The place was given back between the refusal and the entry."""
    assert slot.wait("b", "c")[3:] == ["b", "p.1.0"]


def test_a_line_that_waits_for_starts_says_when(slot: Slot) -> None:
    slot.take("a", "k1", "r", "b", "k2", "r")

    _, next_turn, _, *called = slot.wait("c", line="r")

    assert called == []
    part = PERIOD // 64
    assert next_turn == (NOW // part + 1) * part + PERIOD
    assert slot.run("limit_turn", given_now=next_turn - 1)[3:] == []
    assert slot.run("limit_turn", given_now=next_turn)[3:] == ["c", "p.1.0"]


def start(store: Store, keys: LimitKeys, asked: list[tuple[str, int]], **named: Any) -> str:
    packed = msgspec.msgpack.encode(([key for key, _ in asked], [size for _, size in asked]))
    answer: bytes = store.run("limit_start", keys, wanted=packed, **named)
    return answer.decode()


def test_starts_are_counted_alike_in_one_pass_and_with_all_that_limits_may_need(store: Store) -> None:
    """A key may stand in a request more than once: where only the first jobs are wanted, they come in their order."""
    chance = random.Random(4)
    short, long = LimitKeys(store.namespace, "short"), LimitKeys(store.namespace, "long")
    now = NOW
    for _ in range(60):
        now += chance.choice([0, 1, PERIOD // 64, PERIOD // 3, PERIOD + PERIOD // 32, -500])
        asked = [(f"r{chance.randint(0, 5)}", chance.choice([1, 1, 1, 2, 5])) for _ in range(chance.randint(1, 12))]
        groups = [
            ("", key, [f"{number}.{place}\ntoken" for place in range(size)]) for number, (key, size) in enumerate(asked)
        ]
        named = {"given_now": now, "starts": 4, "period": PERIOD, "most": chance.choice([0, 3, 100])}
        more = {"concurrency": "", "route": "p.1.0", "again": "", **wanted(*groups)}

        answers = start(store, short, asked, **named), store.run("limit_take", long, **named, **more)[-1]

        assert answers[0] == answers[1].decode()
        assert store.client.hgetall(short.windows) == store.client.hgetall(long.windows)


def test_no_window_of_the_period_has_more_starts_than_are_allowed_nor_fewer_than_it_may(store: Store) -> None:
    """Wherever it begins, close to the borders of the parts too: a start counts until all of its part is past."""
    chance, keys, now, starts = random.Random(7), LimitKeys(store.namespace, "t"), NOW, list[int]()
    part = PERIOD // 64
    for _ in range(400):
        now += chance.choice([1, part - 1, part, PERIOD // 5, PERIOD - 1])
        counting = [at for at in starts if (at // part + 1) * part + PERIOD > now]
        asked, named = chance.randint(1, 4), {"given_now": now, "starts": 4, "period": PERIOD, "most": 9}

        started = start(store, keys, [("r", asked)], **named).count("g")

        assert started == min(asked, 4 - len(counting))
        starts += [now] * started
    assert min(later - earlier for earlier, later in zip(starts, starts[4:], strict=False)) >= PERIOD


@pytest.mark.parametrize(("before", "after"), [("s", "d"), ("m", "h"), ("h", "m"), ("d", "s")])
def test_a_rate_whose_period_was_changed_counts_what_started_before_as_long_as_the_new_one_says(
    store: Store, before: str, after: str
) -> None:
    keys, old, new = LimitKeys(store.namespace, "t"), PERIODS[before], PERIODS[after]
    assert start(store, keys, [("r", 2)], given_now=NOW, starts=2, period=old, most=9) == "gg"
    over = NOW + new + max(old, new) // 64 + 1

    answers = [
        start(store, keys, [("r", 3)], given_now=now, starts=2, period=new, most=9)
        for now in (NOW + 1, NOW + new - 1, over)
    ]

    assert answers == ["rrr", "rrr", "ggr"]


def test_a_window_of_another_form_counts_nothing_and_is_replaced(store: Store) -> None:
    """Earlier versions wrote the numbers of parts, at first without their sum."""
    keys, number = LimitKeys(store.namespace, "t"), NOW // (PERIOD // 64)
    parts = [struct.pack(">HII", 0, number - 1, 900), struct.pack(">HII", 0, number, 900)]
    for form in (parts[0], b"".join(parts), b"".join(parts) + struct.pack(">I", 1800), b"?", b"x" * 13):
        store.client.hset(keys.windows, "r", form)

        assert start(store, keys, [("r", 3)], given_now=NOW, starts=2, period=PERIOD, most=9) == "ggr"
        assert start(store, keys, [("r", 1)], given_now=NOW, starts=2, period=PERIOD, most=9) == "r"


def test_where_somebody_waits_or_was_called_counting_is_not_enough(slot: Slot) -> None:
    slot.take("a", "k1", "r", "b", "k2", "r")
    slot.wait("c", line="r")
    before = everything(slot.store, without=())
    named = {"given_now": NOW, "starts": 2, "period": PERIOD, "most": 9}

    assert start(slot.store, slot.keys, [("other", 1)], **named) == ""
    assert everything(slot.store, without=()) == before

    assert slot.run("limit_turn", given_now=NOW + 2 * PERIOD)[3:] == ["c", "p.1.0"]
    assert start(slot.store, slot.keys, [("other", 1)], **named) == "", "c has its start, and has not come yet"
    slot.give("c\n")
    assert start(slot.store, slot.keys, [("other", 1)], **named) == "g"


def test_a_thousand_keys_are_read_and_written_with_two_commands(store: Store) -> None:
    """Beside them may be 100,000 others: what a key costs is its own."""

    def calls() -> int:
        stats: Any = store.client.info("commandstats")
        return sum(stats.get(f"cmdstat_{name}", {"calls": 0})["calls"] for name in ("hget", "hmget", "hset"))

    keys, named = LimitKeys(store.namespace, "t"), {"given_now": NOW, "starts": 1, "period": PERIOD, "most": 1000}
    asked = [(f"key{number}", 1) for number in range(1000)]
    before = calls()

    assert start(store, keys, asked, **named) == "g" * 1000
    assert calls() - before == 2
    assert start(store, keys, asked, **named) == "r" * 1000
    assert calls() - before == 3, "what has no start left is not written"


def test_windows_that_are_over_are_dropped(slot: Slot) -> None:
    slot.take("a", "k1", "old", now=NOW - 2 * PERIOD)
    slot.take("b", "k2", "young")

    assert slot.run("limit_tidy", cursor="0", count=100) == ["0", 1]
    assert slot.store.client.hkeys(slot.keys.windows) == [b"young"]


def test_windows_that_nobody_sweeps_go_away_by_themselves(slot: Slot) -> None:
    named = {"given_now": NOW, "starts": 2, "period": PERIOD, "most": 9}
    for begin in (lambda: slot.take("a", "k", "r"), lambda: start(slot.store, slot.keys, [("r", 1)], **named)):
        slot.store.client.delete(slot.keys.windows)

        begin()

        assert PERIOD < slot.store.client.pttl(slot.keys.windows) <= PERIOD + 3_600_000


def test_a_line_whose_members_nobody_knows_is_emptied(slot: Slot) -> None:
    slot.take("a", "k", "r")
    slot.wait("b", "c")
    slot.store.client.hset(slot.keys.waiters, "b", b"\xff\x00")

    assert slot.give("a\ntoken")[3:] == ["c", "p.1.0"]


CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "limit_take": ((), {"route": "p.1.0", "most": 9, "again": "", **wanted(("k", "r", ["b\nn"]))}),
    "limit_start": ((), {"most": 9, "wanted": msgspec.msgpack.encode((["r"], [1]))}),
    "limit_give": ((), {"over": msgspec.msgpack.encode(["a\ntoken"])}),
    "limit_wait": (("b", "k", "r", NOW, f"{1:016}", "c"), {"route": "p.1.0"}),
    "limit_turn": ((), {}),
    "limit_tidy": ((), {"cursor": "0", "count": 9}),
}


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name in CALLS for key in script(name).keys if key != "line_of"]
)
def test_nothing_is_written_before_all_is_checked(slot: Slot, name: str, key: str) -> None:
    slot.take("a", "k", "r")
    client: Any = slot.store.client
    client.delete(getattr(slot.keys, key))
    if key == "clock":
        client.rpush(slot.keys.clock, "x")
    else:
        client.set(getattr(slot.keys, key), "x")
    stored = everything(slot.store, without=())
    items, arguments = CALLS[name]

    with pytest.raises(StoreRefused, match="WRONGTYPE"):
        slot.run(name, *items, **arguments)

    assert everything(slot.store, without=()) == stored
