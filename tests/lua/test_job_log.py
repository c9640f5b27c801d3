"""job_log.lua: leased → leased; and what log_read.lua makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.partition import NOW, Partition, State, body, held, record

LIMITS = {"keep_lines": 3, "keep_bytes": 100, "keep_attempts": 2}
BEFORE: State = {"states": {"a": held(attempt=1)}, "leased": {"a": NOW}}


def test_the_holder_keeps_lines_in_their_order(partition: Partition) -> None:
    partition.put(BEFORE)

    assert partition.run("job_log", "a", "token", 0, 2, "one", "two", **LIMITS) == ["ok"]
    assert partition.run("job_log", "a", "token", 0, 1, "three", **LIMITS) == ["ok"]
    assert partition.state() == {
        **BEFORE,
        "logs": {"a": [[1, 3, 11, 0]]},
        "log_of:1:a": ["one", "two", "three"],
    }


def test_several_jobs_in_one_call_each_get_their_own_lines(partition: Partition) -> None:
    partition.put({"states": {"a": held(), "b": held(attempt=2), "c": held(token="another")}})

    answers = partition.run(
        "job_log", "a", "token", 0, 1, "x", "c", "token", 0, 1, "y", "b", "token", 0, 1, "z", **LIMITS
    )

    assert answers == ["ok", "lost", "ok"]
    assert {name: lines for name, lines in partition.state().items() if name.startswith("log_of")} == {
        "log_of:1:a": ["x"],
        "log_of:2:b": ["z"],
    }


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(None, id="no record"),
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="taken back"),
        pytest.param(record("succeeded", token="token"), id="ended"),
    ],
)
def test_a_lost_lease_writes_nothing(partition: Partition, stored: object) -> None:
    before: dict[str, Any] = {"states": {"a": stored}} if stored is not None else {}
    partition.put(before)

    assert partition.run("job_log", "a", "token", 0, 1, "late", **LIMITS) == ["lost"]
    assert partition.state() == before


class TestLimits:
    def test_the_oldest_lines_of_an_attempt_make_room_and_are_counted(self, partition: Partition) -> None:
        partition.put(BEFORE)
        partition.run("job_log", "a", "token", 0, 2, "1", "2", **LIMITS)
        partition.run("job_log", "a", "token", 7, 3, "3", "4", "5", **LIMITS)

        state = partition.state()
        assert state["log_of:1:a"] == ["3", "4", "5"]
        assert state["logs"] == {"a": [[1, 3, 3, 9]]}  # two fell out, and seven had never come

    def test_bytes_are_bounded_too_but_the_newest_line_stays(self, partition: Partition) -> None:
        partition.put(BEFORE)
        partition.run("job_log", "a", "token", 0, 2, "x" * 60, "y" * 60, **LIMITS)
        assert partition.state()["log_of:1:a"] == ["y" * 60]

        partition.run("job_log", "a", "token", 0, 1, "z" * 500, **LIMITS)
        assert partition.state()["logs"] == {"a": [[1, 1, 500, 2]]}

    def test_one_attempt_takes_nothing_from_another_and_the_oldest_attempt_goes_first(
        self, partition: Partition
    ) -> None:
        for attempt in (1, 2, 3):
            partition.put({"states": {"a": held(attempt=attempt)}})
            partition.run("job_log", "a", "token", 0, 1, f"of {attempt}", **LIMITS)

        state = partition.state()
        assert {name: lines for name, lines in state.items() if name.startswith("log_of")} == {
            "log_of:2:a": ["of 2"],
            "log_of:3:a": ["of 3"],
        }
        assert state["logs"] == {"a": [[2, 1, 4, 0], [3, 1, 4, 0]]}

    def test_bytes_that_went_bad_are_begun_anew(self, partition: Partition) -> None:
        partition.put({**BEFORE, "logs": {"a": "no list"}})

        assert partition.run("job_log", "a", "token", 0, 1, "x", **LIMITS) == ["ok"]
        assert partition.state()["logs"] == {"a": [[1, 1, 1, 0]]}


class TestReading:
    LOGGED: State = {
        "logs": {"a": [[1, 2, 2, 5], [2, 1, 1, 0]]},
        "log_of:1:a": ["x", "y"],
        "log_of:2:a": ["z"],
    }

    def test_each_attempt_says_how_many_lines_are_gone(self, partition: Partition) -> None:
        partition.put(self.LOGGED)

        assert partition.run("log_read", id="a", only="") == [[1, 5, 6, ["x", "y"]], [2, 0, 1, ["z"]]]
        assert partition.run("log_read", id="a", only=2) == [[2, 0, 1, ["z"]]]
        assert partition.run("log_read", id="b", only="") == []

    def test_what_is_known_is_left_out(self, partition: Partition) -> None:
        partition.put(self.LOGGED)

        assert partition.run("log_read", 1, 6, 2, 1, id="a", only="") == [[1, 5, 7, ["y"]], [2, 0, 2, []]]

    def test_what_is_known_and_gone_is_no_trouble(self, partition: Partition) -> None:
        partition.put(self.LOGGED)

        assert partition.run("log_read", 1, 3, id="a", only=1) == [[1, 5, 6, ["x", "y"]]]


class TestWithTheJob:
    ENDED: State = {
        "bodies": {"a": body(), "b": body()},
        "states": {"a": record("succeeded"), "b": record("succeeded")},
        "succeeded": {"a": 1, "b": 1},
        "logs": {"a": [[1, 1, 1, 0], [2, 1, 1, 0]]},
        "log_of:1:a": ["x"],
        "log_of:2:a": ["y"],
    }

    def test_retention_takes_the_lines_along(self, partition: Partition) -> None:
        partition.put(self.ENDED)
        pruned = _Pruned(partition)
        partition.store.run("job_prune", pruned, given_now=NOW, retention=1, limit=10, skip=0)

        assert partition.state() == {"clock": NOW}

    def test_so_does_discarding_it(self, partition: Partition) -> None:
        partition.put(self.ENDED)

        assert partition.run("job_discard", "a", ended_by="") == ["ok"]
        assert not {name for name in partition.state() if name.startswith("log")}


class _Pruned:
    """The keys that a prune of succeeded jobs takes."""

    def __init__(self, partition: Partition) -> None:
        self._keys = partition.keys
        self.line = partition.keys.succeeded

    def __getattr__(self, name: str) -> Any:
        return getattr(self._keys, name)
