"""pool_set.lua, type_set.lua, pause_set.lua and pool_create.lua: what people change, in one slot, with its news."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.store.connection import Store
from jobs.store.keys import SettingKeys


@pytest.fixture
def keys(store: Store) -> SettingKeys:
    return SettingKeys(store.namespace)


def stored(store: Store, key: str) -> Any:
    return store.client.hgetall(key)


def news(store: Store, keys: SettingKeys) -> list[str]:
    entries: Any = store.client.xrange(keys.news)
    return [fields[b"topic"].decode() for _, fields in entries]


# pool_set.lua --------------------------------------------------------------------------------------------------------


def test_settings_are_changed_one_by_one_and_told(store: Store, keys: SettingKeys) -> None:
    assert store.run("pool_set", keys, ["a:slots", "3", "a:max_running", "9"]) == [b"", b""]
    assert store.run("pool_set", keys, ["a:slots", "4", "b:slots", "1"]) == [b"3", b""]
    assert stored(store, keys.pools) == {b"a:slots": b"4", b"a:max_running": b"9", b"b:slots": b"1"}

    assert store.run("pool_set", keys, ["a:slots", ""]) == [b"4"]
    assert stored(store, keys.pools) == {b"a:max_running": b"9", b"b:slots": b"1"}
    assert news(store, keys) == ["pools"] * 3


def test_what_is_so_already_is_no_news(store: Store, keys: SettingKeys) -> None:
    store.run("pool_set", keys, ["a:slots", "3"])
    store.run("pool_set", keys, ["a:slots", "3", "b:slots", ""])

    assert news(store, keys) == ["pools"]


# type_set.lua --------------------------------------------------------------------------------------------------------


def type_set(store: Store, keys: SettingKeys, overrides: str, disabled: str = "") -> Any:
    return store.run("type_set", keys, type="mail", overrides=overrides, disabled=disabled)


def test_overrides_are_stored_and_leave_pauses_alone(store: Store, keys: SettingKeys) -> None:
    assert type_set(store, keys, "{}") == 0
    assert (stored(store, keys.types), stored(store, keys.pauses)) == ({b"mail": b"{}"}, {})

    assert type_set(store, keys, "") == 0
    assert stored(store, keys.types) == {}
    assert news(store, keys) == ["types", "types"]


def test_a_disabled_type_is_paused_until_it_is_enabled(store: Store, keys: SettingKeys) -> None:
    assert type_set(store, keys, "{1}", "1") == 1
    assert stored(store, keys.pauses) == {b"disabled:mail": b"1", b"version": b"1"}
    assert type_set(store, keys, "{2}", "1") == 0, "it was so before"

    assert type_set(store, keys, "") == 2
    assert stored(store, keys.pauses) == {b"version": b"2"}
    assert news(store, keys).count("pauses") == 2


# pause_set.lua -------------------------------------------------------------------------------------------------------


def pause_set(store: Store, keys: SettingKeys, pause: str, scope: str = "pool:a", only: str = "") -> Any:
    return store.run("pause_set", keys, scope=scope, pause=pause, only=only)


def test_each_change_of_a_pause_is_a_new_version_and_news(store: Store, keys: SettingKeys) -> None:
    assert pause_set(store, keys, "one") == [1, b""]
    assert pause_set(store, keys, "two") == [2, b"one"]
    assert pause_set(store, keys, "all", "everything") == [3, b""]
    assert stored(store, keys.pauses) == {b"pool:a": b"two", b"everything": b"all", b"version": b"3"}

    assert pause_set(store, keys, "") == [4, b"two"]
    assert stored(store, keys.pauses) == {b"everything": b"all", b"version": b"4"}
    assert news(store, keys) == ["pauses"] * 4


def test_what_is_so_already_makes_no_version(store: Store, keys: SettingKeys) -> None:
    pause_set(store, keys, "one")

    assert pause_set(store, keys, "one") == [1, b"one"]
    assert pause_set(store, keys, "", "pool:b") == [1, b""]
    assert news(store, keys) == ["pauses"]


def test_a_pause_that_was_renewed_is_not_lifted_for_the_old_one(store: Store, keys: SettingKeys) -> None:
    pause_set(store, keys, "new")

    assert pause_set(store, keys, "", only="old") == [1, b"new"]
    assert pause_set(store, keys, "", only="new") == [2, b"new"]


# pool_create.lua -----------------------------------------------------------------------------------------------------


def create(store: Store, keys: SettingKeys, seen: int, versions: str = "{}") -> Any:
    return store.run("pool_create", keys, pool="a", versions=versions, seen=seen)


def test_a_pool_comes_into_being_once(store: Store, keys: SettingKeys) -> None:
    assert create(store, keys, 0, "first") == 0
    assert create(store, keys, 0, "second") == 0
    assert stored(store, keys.topology) == {b"a": b"first"}


def test_no_pool_comes_into_being_while_its_partitions_were_told_something_older(
    store: Store, keys: SettingKeys
) -> None:
    pause_set(store, keys, "all", "everything")

    assert create(store, keys, 0) == 1
    assert stored(store, keys.topology) == {}
    assert create(store, keys, 1) == 1
    assert stored(store, keys.topology) == {b"a": b"{}"}


@pytest.mark.parametrize("key", ["pools", "types", "pauses", "topology", "news"])
def test_nothing_is_written_where_a_key_is_of_the_wrong_type(store: Store, keys: SettingKeys, key: str) -> None:
    store.client.set(getattr(keys, key), "x")
    calls = {
        "pools": lambda: store.run("pool_set", keys, ["a:slots", "3"]),
        "types": lambda: type_set(store, keys, "{}", "1"),
        "pauses": lambda: pause_set(store, keys, "one"),
        "topology": lambda: create(store, keys, 0),
        "news": lambda: type_set(store, keys, "{}", "1"),
    }

    with pytest.raises(Exception, match="WRONGTYPE"):
        calls[key]()

    assert store.client.keys(f"{store.namespace}:*") == [getattr(keys, key).encode()]
