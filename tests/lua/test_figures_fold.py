"""figures_fold.lua: closed windows become totals and series, and the series stay as long as they should."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.support.partition import NOW, Partition

WINDOW, SLOT = 10_000, 300_000
DAY = 86_400_000
CURRENT = NOW // WINDOW


def fold_once(partition: Partition, now: int = NOW) -> list[Any]:
    kept = {"keep_live": 4, "keep_seconds": DAY, "keep_minutes": 30 * DAY}
    reply: list[Any] = partition.run("figures_fold", given_now=now, **kept)
    return reply


def fold(partition: Partition, now: int = NOW) -> int:
    """Until nothing is left to fold; how many windows there were."""
    total = 0
    while True:
        folded, more = fold_once(partition, now)
        total += folded
        if not more:
            return total


def test_windows_that_are_over_become_totals_and_a_series(partition: Partition) -> None:
    partition.put(
        {
            "counters": {"failed:mail": 10},
            f"live:{CURRENT - 5}": {"failed:mail": 1, "run3:mail": 2, "failed:report": 4},
            f"live:{CURRENT - 4}": {"failed:mail": 5},
        }
    )

    assert fold(partition) == 1
    assert partition.state() == {
        "clock": NOW,
        "control": {"folded_until": str(CURRENT - 4), "run_ms": "0"},
        "counters": {"failed:mail": 16, "run3:mail": 2, "failed:report": 4},
        "seconds": {
            (CURRENT - 5) * WINDOW: {
                "all": {"failed": 5, "run3": 2},
                ":mail": {"failed": 1, "run3": 2},
                ":report": {"failed": 4},
            }
        },
    }
    assert partition.store.client.exists(f"{partition.keys.live}{CURRENT - 4}")


def test_the_second_time_there_is_nothing_to_do(partition: Partition) -> None:
    partition.put({f"live:{CURRENT - 9}": {"failed:t": 1}})
    fold(partition)
    before = partition.state()

    assert fold_once(partition) == [0, ""]
    assert partition.state() == before


def test_five_minutes_that_are_over_are_added_up(partition: Partition) -> None:
    start = NOW - NOW % SLOT - SLOT
    for number in range(3):
        partition.put({f"live:{start // WINDOW + 10 * number}": {"run1:t": 1, "dead:u": 2}})

    fold(partition, now=start + SLOT + 4 * WINDOW)

    assert partition.state()["minutes"] == {
        start: {"all": {"run1": 3, "dead": 6}, ":t": {"run1": 3}, ":u": {"dead": 6}}
    }


def test_five_minutes_that_go_on_are_not(partition: Partition) -> None:
    start = NOW - NOW % SLOT - SLOT
    partition.put({f"live:{start // WINDOW}": {"run1:t": 1}})

    fold(partition, now=start + SLOT + 4 * WINDOW - 1)

    assert "minutes" not in partition.state()


def test_the_series_drop_what_is_too_old(partition: Partition) -> None:
    fold(partition)
    for age in (31 * DAY, 2 * DAY, 0):
        at = NOW + 31 * DAY - age
        partition.put({f"live:{at // WINDOW}": {"run1:t": 1}})
        fold(partition, now=at + SLOT + 9 * WINDOW)
    state = partition.state()

    assert [len(state["seconds"]), len(state["minutes"])] == [1, 2]
    assert state["counters"] == {"run1:t": 3}


def test_a_long_absence_is_caught_up_in_steps(partition: Partition) -> None:
    fold(partition)
    later = NOW + 5 * DAY
    partition.put({f"live:{CURRENT + 1}": {"dead:t": 1}, f"live:{later // WINDOW - 4_000}": {"dead:t": 1}})

    replies = [fold_once(partition, now=later) for _ in range(4)]

    assert [reply[1] for reply in replies] == ["1", "1", "", ""]
    assert partition.state()["counters"] == {"dead:t": 2}
    assert not list(partition.store.client.scan_iter(match=partition.keys.live.translate({123: 63, 125: 63}) + "*"))


def test_the_first_look_finds_every_window_of_three_days(partition: Partition) -> None:
    first = CURRENT - 3 * DAY // WINDOW
    thousand = CURRENT - CURRENT % 1_000 - 20_000  # at which names get another beginning
    windows = [first, *(thousand + rest for rest in (-1, 0, 1, 99, 100, 999, 1_000))]
    partition.put({f"live:{window}": {"enqueued:t": 1} for window in windows})

    assert fold(partition) == len(windows)
    assert partition.state()["counters"] == {"enqueued:t": len(windows)}


def test_names_beyond_a_number_share_one(partition: Partition) -> None:
    partition.put({f"live:{CURRENT - 9}": {f"enqueued:type-{number:03}": 1 for number in range(250)}})

    fold(partition)

    [entry] = partition.state()["seconds"].values()
    assert (len(entry), entry["all"], entry[":(others)"]) == (202, {"enqueued": 250}, {"enqueued": 50})


def test_what_is_no_figure_is_dropped_and_stops_nothing(partition: Partition) -> None:
    client: Any = partition.store.client
    client.hset(f"{partition.keys.live}{CURRENT - 9}", mapping={"failed:t": "many", "nonsense": 3, "dead:t": 1})
    client.set(f"{partition.keys.live}{CURRENT - 8}", "x")
    client.hset(partition.keys.counters, "dead:t", "many")
    client.xadd(partition.keys.seconds, {"all": b"\xc1"}, id=f"{NOW - 2 * SLOT}-0")

    assert fold(partition) == 2
    assert client.hget(partition.keys.counters, "dead:t") == b"many"
    assert not client.exists(f"{partition.keys.live}{CURRENT - 9}", f"{partition.keys.live}{CURRENT - 8}")


@pytest.mark.parametrize(("runs", "mean"), [([100], 100.0), ([100, 200], 130.0)])
def test_the_mean_time_of_an_attempt_is_remembered(partition: Partition, runs: list[int], mean: float) -> None:
    for number, took in enumerate(runs):
        window = CURRENT - 9 + number
        partition.put({f"live:{window}": {"run1:t": 1, "failed:t": 1, "run_ms:t": took, "failed_ms:t": took}})

    fold(partition)

    assert float(partition.state()["control"]["run_ms"]) == pytest.approx(mean)


def test_entries_are_packed_small(partition: Partition) -> None:
    """A busy type costs about a hundred bytes for each 10 seconds."""
    figures = {f"wait{bucket}:email.send": 40 for bucket in range(60, 65)}
    figures |= {f"run{bucket}:email.send": 40 for bucket in range(30, 35)}
    figures |= {"wait_ms:email.send": 99_999, "run_ms:email.send": 99_999, "enqueued:email.send": 200}
    partition.put({f"live:{CURRENT - 9}": figures})
    fold(partition)

    [(_, entry)] = partition.store.client.xrange(partition.keys.seconds)
    assert msgspec.msgpack.decode(entry[b":email.send"])["enqueued"] == 200
    assert len(b":email.send" + entry[b":email.send"]) < 140
