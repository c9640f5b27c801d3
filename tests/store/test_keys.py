"""Every key is known by name, and keys of one partition share a slot."""

from __future__ import annotations

import pytest
from redis.crc import key_slot

from jobs.core.job import Route
from jobs.store.keys import (
    HOLDER_BUCKETS,
    HolderKeys,
    HostKeys,
    LimitKeys,
    PartitionKeys,
    SettingKeys,
    holder_bucket,
    is_known,
    partition_keys,
)

ROUTE = Route("my.pool-1", 2, 3)


def keys_of(holder: object) -> list[str]:
    return [getattr(holder, name) for name in type(holder).__slots__]  # type: ignore[attr-defined]


def test_a_partition_lives_in_one_slot() -> None:
    keys = keys_of(PartitionKeys("ns", ROUTE))

    assert len(set(keys)) == len(keys)
    assert len({key_slot(key.encode()) for key in keys}) == 1
    assert all(key.startswith("ns:{my.pool-1.2.3}:") for key in keys)


def test_partitions_spread_over_slots() -> None:
    slots = {key_slot(PartitionKeys("ns", Route("p", 1, number)).ready.encode()) for number in range(64)}

    assert len(slots) > 60


def test_every_key_is_known() -> None:
    keys = [
        *keys_of(PartitionKeys("ns", ROUTE)),
        PartitionKeys("ns", ROUTE).parked_of + "any: type\n{}",
        *keys_of(HolderKeys("ns", "ids", "x")),
        *keys_of(HolderKeys("ns", "unique", "x")),
        *keys_of(HostKeys("ns")),
        *keys_of(SettingKeys("ns")),
        *keys_of(LimitKeys("ns", "mail.send")),
        LimitKeys("ns", "mail.send").line_of + "cany key\n{}",
    ]

    assert [key for key in keys if not is_known("ns", key)] == []


@pytest.mark.parametrize(
    "key",
    [
        "ns:{p.1.0}:else",
        "ns:{p.1.0}:ready:x",
        "ns:{p.1}:ready",
        "ns:{p}:ready",
        "ns:p.1.0:ready",
        "ns:{ids.1}:other",
        "ns:{settings}:x",
        "other:{p.1.0}:ready",
        "nsx:{p.1.0}:ready",
        "ns",
        "",
    ],
)
def test_nothing_else_is(key: str) -> None:
    assert not is_known("ns", key)


def test_names_are_claimed_in_a_fixed_bucket() -> None:
    assert HolderKeys("ns", "ids", "ünï").holders == HolderKeys("ns", "ids", "ünï").holders
    buckets = {HolderKeys("ns", "ids", f"name-{number}").holders for number in range(5_000)}
    assert buckets == {holder_bucket("ns", "ids", bucket) for bucket in range(HOLDER_BUCKETS)}


def test_the_line_of_a_state_is_found_by_its_name() -> None:
    keys = partition_keys("ns", ROUTE)

    assert keys.index("retry_wait") == keys.retry_wait
    assert partition_keys("ns", ROUTE) is keys
