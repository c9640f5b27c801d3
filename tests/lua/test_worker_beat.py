"""worker_beat.lua: workers prove that they are alive."""

from __future__ import annotations

from typing import Any

from jobs.store.connection import Store
from jobs.store.keys import HostKeys
from tests.support.partition import NOW

HOUR = 3_600_000


def beat(store: Store, *ids: str, now: int = NOW, obeying: str = "") -> Any:
    items = [value for worker in ids for value in (worker, f"facts of {worker}", "1" if worker == obeying else "")]
    return store.run("worker_beat", HostKeys(store.namespace), items, given_now=now, ttl=30_000)


def registry(store: Store) -> tuple[Any, Any, Any]:
    keys = HostKeys(store.namespace)
    client: Any = store.client
    return (
        client.hgetall(keys.workers),
        dict(client.zrange(keys.alive, 0, -1, withscores=True)),
        client.hgetall(keys.commands),
    )


def test_each_worker_is_known_with_its_facts_until_its_time_is_over(store: Store) -> None:
    assert beat(store, "a", "b") == [b"", b""]
    assert registry(store) == (
        {b"a": b"facts of a", b"b": b"facts of b"},
        {b"a": NOW + 30_000, b"b": NOW + 30_000},
        {},
    )


def test_a_command_is_given_until_the_worker_obeys_it(store: Store) -> None:
    """The reply that carries it may be lost."""
    store.client.hset(HostKeys(store.namespace).commands, "b", "drain")

    assert beat(store, "a", "b") == [b"", b"drain"]
    assert beat(store, "a", "b", obeying="a") == [b"", b"drain"]
    assert beat(store, "a", "b", obeying="b") == [b"", b""]
    assert registry(store)[2] == {}


def test_workers_that_are_gone_for_an_hour_are_forgotten(store: Store) -> None:
    beat(store, "gone", now=NOW)
    store.client.hset(HostKeys(store.namespace).commands, "gone", "stop")

    beat(store, "a", now=NOW + 30_000 + HOUR - 1)
    assert set(registry(store)[0]) == {b"a", b"gone"}

    beat(store, "a", now=NOW + 30_000 + HOUR)
    assert registry(store) == ({b"a": b"facts of a"}, {b"a": NOW + 60_000 + HOUR}, {})
