"""worker_beat.lua: workers prove that they are alive."""

from __future__ import annotations

from typing import Any

from jobs.store.connection import Store
from jobs.store.keys import HostKeys
from tests.support.partition import NOW

HOUR = 3_600_000


def beat(store: Store, *ids: str, now: int = NOW, obeying: str = "", release: str = "") -> Any:
    items = [value for worker in ids for value in (worker, f"facts of {worker}", "1" if worker == obeying else "")]
    return store.run(
        "worker_beat", HostKeys(store.namespace), items, given_now=now, ttl=30_000, release=release, host="h"
    )


def registry(store: Store) -> tuple[Any, Any, Any]:
    keys = HostKeys(store.namespace)
    client: Any = store.client
    return (
        client.hgetall(keys.workers),
        dict(client.zrange(keys.alive, 0, -1, withscores=True)),
        client.hgetall(keys.commands),
    )


def test_each_worker_is_known_with_its_facts_until_its_time_is_over(store: Store) -> None:
    assert beat(store, "a", "b") == [b"", 0, b"", b""]
    assert registry(store) == (
        {b"a": b"facts of a", b"b": b"facts of b"},
        {b"a": NOW + 30_000, b"b": NOW + 30_000},
        {},
    )


def test_a_command_is_given_until_the_worker_obeys_it(store: Store) -> None:
    """The reply that carries it may be lost."""
    store.client.hset(HostKeys(store.namespace).commands, "b", "drain")

    assert beat(store, "a", "b") == [b"", 0, b"", b"drain"]
    assert beat(store, "a", "b", obeying="a") == [b"", 0, b"", b"drain"]
    assert beat(store, "a", "b", obeying="b") == [b"", 0, b"", b""]
    assert registry(store)[2] == {}


def test_the_pause_of_their_host_is_told_with_each(store: Store) -> None:
    store.client.hset(HostKeys(store.namespace).pauses, "h", "a pause")
    store.client.hset(HostKeys(store.namespace).pauses, "other", "another")

    assert beat(store, "a", "b") == [b"a pause", 0, b"", b""]


def test_a_host_hears_whether_it_was_known(store: Store) -> None:
    assert beat(store, "h", "a") == [b"", 0, b"", b""]
    assert beat(store, "h", "a") == [b"", 1, b"", b""]

    store.client.delete(HostKeys(store.namespace).workers)

    assert beat(store, "h", "a") == [b"", 0, b"", b""]


def test_workers_that_are_gone_for_an_hour_are_forgotten(store: Store) -> None:
    beat(store, "gone", now=NOW)
    store.client.hset(HostKeys(store.namespace).commands, "gone", "stop")

    beat(store, "a", now=NOW + 30_000 + HOUR - 1)
    assert set(registry(store)[0]) == {b"a", b"gone"}

    beat(store, "a", now=NOW + 30_000 + HOUR)
    assert registry(store) == ({b"a": b"facts of a"}, {b"a": NOW + 60_000 + HOUR}, {})


def test_a_release_is_noted_when_it_is_first_told_of_and_the_newest_are_kept(store: Store) -> None:
    releases = HostKeys(store.namespace).releases
    client: Any = store.client
    beat(store, "a", now=NOW)
    assert client.exists(releases) == 0

    for minute in range(52):
        beat(store, "a", now=NOW + minute * 60_000, release=f"v{minute}")
    beat(store, "a", now=NOW + HOUR, release="v51")

    assert client.zcard(releases) == 50
    assert client.zrange(releases, 0, 0, withscores=True) == [(b"v2", NOW + 120_000)]
    assert client.zscore(releases, "v51") == NOW + 51 * 60_000
