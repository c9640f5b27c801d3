"""figures_read.lua and figures_count.lua: what was counted, at one moment."""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support.partition import NOW, Partition

CURRENT = NOW // 10_000


def read(partition: Partition, **more: Any) -> Any:
    class Keys:
        control, live = partition.keys.control, partition.keys.live
        counters, series = partition.keys.counters, partition.keys.seconds

    asked = {"given_now": NOW, "with_totals": "", "since": "", "name": "all", "limit": 100, **more}
    return partition.store.run("figures_read", Keys, **asked)


def test_totals_and_live_windows_come_together(partition: Partition) -> None:
    partition.put(
        {
            "control": {"folded_until": CURRENT - 1},
            "counters": {"dead:t": 3},
            f"live:{CURRENT - 2}": {"dead:t": 9},
            f"live:{CURRENT}": {"dead:t": 1},
            f"live:{CURRENT + 1}": {"dead:t": 2},
        }
    )

    assert read(partition, with_totals="1") == [
        NOW,
        [b"dead:t", b"3"],
        [],
        [b"%d" % NOW, [b"dead:t", b"1"], b"%d" % (NOW + 10_000), [b"dead:t", b"2"]],
    ]


def test_a_series_is_told_from_a_moment_on_for_all_or_for_one_type(partition: Partition) -> None:
    client: Any = partition.store.client
    pack = msgspec.msgpack.encode
    for number in range(3):
        fields = {"all": pack({"dead": number}), ":t": pack({"dead": 0})}
        client.xadd(partition.keys.seconds, fields, id=f"{NOW + number}-0")

    assert read(partition, since=NOW + 1, limit=1)[2] == [b"%d" % (NOW + 1), pack({"dead": 1})]
    assert read(partition, since=NOW + 2, name=":t")[2] == [b"%d" % (NOW + 2), pack({"dead": 0})]
    assert read(partition, since=NOW + 2, name=":other")[2] == [b"%d" % (NOW + 2), b""]


def test_what_no_script_sees_is_counted_too(partition: Partition) -> None:
    partition.run("figures_count", figure="duplicates", type="t", number=2)
    partition.run("figures_count", figure="duplicates", type="t", number=1)

    assert partition.state() == {"clock": NOW, "counters": {"duplicates:t": 3}}
