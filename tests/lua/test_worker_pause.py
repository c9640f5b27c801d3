"""worker_pause.lua: a worker host takes nothing new for a while."""

from __future__ import annotations

from typing import Any

from jobs.store.connection import Store
from jobs.store.keys import HostKeys
from tests.lua.test_worker_beat import HOUR, beat
from tests.support.partition import NOW

TTL = 30_000


def pause(store: Store, host: str, text: str, *, now: int = NOW) -> Any:
    return store.run("worker_pause", HostKeys(store.namespace), id=host, pause=text, now=now)


def pauses(store: Store) -> Any:
    return store.client.hgetall(HostKeys(store.namespace).pauses)


def test_a_host_that_is_alive_is_paused_and_resumed_and_what_was_before_is_told(store: Store) -> None:
    beat(store, "a", "b")

    assert pause(store, "a", "one") == [1, b""]
    assert pause(store, "a", "two") == [1, b"one"]
    assert pauses(store) == {b"a": b"two"}
    assert pause(store, "a", "") == [1, b"two"]
    assert pause(store, "a", "") == [1, b""]
    assert pauses(store) == {}


def test_a_host_that_is_not_there_leaves_nothing_behind(store: Store) -> None:
    beat(store, "a")

    assert pause(store, "nobody", "one") == [0, b""]
    assert pause(store, "a", "one", now=NOW + TTL) == [0, b""]
    assert pause(store, "nobody", "") == [0, b""]
    assert pauses(store) == {}


def test_the_pause_of_a_silent_host_can_be_lifted_and_is_forgotten_with_it(store: Store) -> None:
    beat(store, "a", "b")
    pause(store, "a", "one")
    pause(store, "b", "one")

    assert pause(store, "b", "", now=NOW + TTL) == [1, b"one"]
    beat(store, "c", now=NOW + TTL + HOUR - 1)
    assert pauses(store) == {b"a": b"one"}

    beat(store, "c", now=NOW + TTL + HOUR)
    assert pauses(store) == {}
