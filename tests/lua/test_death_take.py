"""death_take.lua and death_told.lua: a mark that moves along the line of the dead."""

from __future__ import annotations

from typing import Any

from tests.support.partition import NOW, Partition

DAY = 86_400_000


def take(partition: Partition, token: str = "host", **arguments: Any) -> Any:
    return partition.run(
        "death_take", **{"token": token, "claim": 60_000, "limit": 2, "oldest": DAY, "begun": NOW - 5, **arguments}
    )


def control(partition: Partition) -> dict[str, str]:
    return {name: value for name, value in partition.state().get("control", {}).items() if name.startswith("deaths")}


def test_where_nobody_ever_told_it_begins_with_what_came_after_the_host(partition: Partition) -> None:
    partition.put({"dead": {"before": NOW - 6, "after": NOW - 5}})

    assert take(partition) == [str(NOW - 4), "after"]
    assert control(partition)["deaths_told"] == str(NOW - 5)


def test_deaths_since_the_mark_are_handed_to_one_host_for_a_while(partition: Partition) -> None:
    partition.put({"control": {"deaths_told": NOW - 10}, "dead": {"old": NOW - 11, "a": NOW - 10, "b": NOW - 5}})

    assert take(partition) == [str(NOW - 4), "a", "b"]
    assert control(partition) == {
        "deaths_told": str(NOW - 10),
        "deaths_by": "host",
        "deaths_by_until": str(NOW + 60_000),
    }
    assert take(partition, "another") == []
    assert take(partition) == [str(NOW - 4), "a", "b"]
    assert take(partition, "another", given_now=NOW + 60_000) == [str(NOW - 4), "a", "b"]


def test_all_of_one_millisecond_go_together(partition: Partition) -> None:
    partition.put({"control": {"deaths_told": 0}, "dead": {"a": NOW - 9, "b": NOW - 5, "c": NOW - 5, "d": NOW - 5}})

    assert take(partition) == [str(NOW - 4), "a", "b", "c", "d"]


def test_of_the_present_millisecond_there_may_be_more(partition: Partition) -> None:
    partition.put({"control": {"deaths_told": NOW - 10}, "dead": {"a": NOW}})

    assert take(partition) == [""]
    assert take(partition, given_now=NOW + 1) == [str(NOW + 1), "a"]


def test_what_is_too_old_is_passed_over(partition: Partition) -> None:
    partition.put({"control": {"deaths_told": 0}, "dead": {"a": NOW - DAY - 1, "b": NOW - DAY}})

    assert take(partition) == [str(NOW - DAY + 1), "b"]


def test_who_has_told_moves_the_mark_and_gives_the_rest_free(partition: Partition) -> None:
    partition.put({"control": {"deaths_told": NOW - 10}, "dead": {"a": NOW - 5}})
    told, _ = take(partition)

    assert partition.run("death_told", token="host", told=told) == "ok"
    assert control(partition) == {"deaths_told": str(NOW - 4)}
    assert take(partition, "another") == []


def test_who_took_too_long_moves_nothing(partition: Partition) -> None:
    before = {"deaths_told": str(NOW - 10), "deaths_by": "another", "deaths_by_until": str(NOW)}
    partition.put({"control": before})

    assert partition.run("death_told", token="host", told=NOW) == "lost"
    assert control(partition) == before
