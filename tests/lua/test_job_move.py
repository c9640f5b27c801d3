"""job_move.lua: waiting jobs end, and leave a note that names their successor; asked again it tells the same."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.engine.leases import _PruneKeys
from jobs.store.codec.records import Record
from tests.support.partition import NEWER, NOW, Partition, State, body, due, held, place, record

NOTE = '{"moved_to":"b","move":"m1"}'


def call(partition: Partition, *, mark: str = '"move":"m1"', only_finish: str = "") -> Any:
    [answer] = partition.run("job_move", "a", NOTE, mark=mark, only_finish=only_finish)
    return answer


@pytest.mark.parametrize(
    ("line", "stored", "due_at"),
    [
        pytest.param({"ready": {"a": place(1)}}, None, 0, id="ready"),
        pytest.param({"throttled": {"a": place(1)}}, record("ready", place=place(1)), 0, id="throttled"),
        pytest.param({"scheduled": {"a": due(NOW + 7, 5)}}, None, NOW + 7, id="scheduled"),
        pytest.param({"retry_wait": {"a": due(NOW + 7)}}, record("retry_wait", errors=1), NOW + 7, id="retry_wait"),
    ],
)
def test_a_waiting_job_ends_and_names_its_successor(
    partition: Partition, line: State, stored: Record | None, due_at: int
) -> None:
    partition.put({"bodies": {"a": body()}, **line})
    if stored:
        partition.put({"states": {"a": stored}})
    moved = {
        "clock": NOW,
        "bodies": {"a": body()},
        "states": {"a": (stored or record(""))._replace(state="cancelled", finished_at=NOW, run_at=due_at)},
        "results": {"a": NOTE},
        "cancelled": {"a": NOW},
        "expiring": {"a": float("inf")},
        "counters": {"cancelled:t": 1},
    }

    assert call(partition)[:3] == ["ok", NOTE, str(due_at)]
    assert partition.state() == moved
    assert call(partition)[:3] == ["ok", NOTE, str(due_at)], "the same again"
    assert call(partition, only_finish="1")[:3] == ["ok", NOTE, str(due_at)]
    assert partition.state() == moved


def test_a_parked_job_leaves_the_count_of_its_type(partition: Partition) -> None:
    parked: State = {"parked": {"t": 2}, "parked_of:t": {"a": place(1), "x": place(2)}}
    partition.put({"bodies": {"a": body()}, "states": {"a": record("ready", place=place(1))}, **parked})

    assert call(partition)[0] == "ok"
    assert partition.state()["parked"] == {"t": 1}
    assert partition.state()["parked_of:t"] == {"x": place(2)}


def test_once_its_successor_is_there_it_may_be_forgotten_and_is_not_made_again(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "ready": {"a": place(1)}})
    call(partition)

    assert partition.run("job_discard", "a", ended_by="") == ["moving"]
    assert pruned(partition) == []
    assert partition.run("job_move_end", "a", "other") == 1
    assert partition.run("job_move_end", "a") == 0

    assert call(partition) == ["ok"]
    assert pruned(partition) == ["a"]


def test_once_its_successor_is_there_it_may_be_discarded(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "ready": {"a": place(1)}})
    call(partition)
    partition.run("job_move_end", "a")

    assert partition.run("job_discard", "a", ended_by="") == ["ok"]
    assert "bodies" not in partition.state()


def test_the_end_of_a_move_leaves_the_retention_of_others_alone(partition: Partition) -> None:
    partition.put({"expiring": {"kept": NOW + 1}})

    assert partition.run("job_move_end", "kept") == 0
    assert partition.state()["expiring"] == {"kept": NOW + 1}


def pruned(partition: Partition) -> Any:
    """What goes when the retention of all that was cancelled is over."""
    keys = _PruneKeys(partition.keys, "cancelled")
    _, _, *gone = partition.store.run("job_prune", keys, given_now=NOW + 9, retention=1, limit=9, skip=0)
    return [job_id.decode() for job_id in gone]


RAN = {"bodies": {"a": body()}, "states": {"a": held()}, "leased": {"a": NOW}}
MOVED: State = {"bodies": {"a": body()}, "states": {"a": record("cancelled", finished_at=1)}, "results": {"a": NOTE}}


@pytest.mark.parametrize(
    ("answer", "before"),
    [
        ("leased", RAN),
        ("dead", {"bodies": {"a": body()}, "states": {"a": record("dead")}, "dead": {"a": NOW}}),
        ("blocked", {"bodies": {"a": body()}, "states": {"a": record("blocked")}, "blocked": {"a": NOW}}),
        ("node", {"bodies": {"a": body(workflow_run="r", node="n")}, "ready": {"a": place(1)}}),
        ("unreadable", {"bodies": {"a": body()}, "states": {"a": b"\xc1"}, "scheduled": {"a": due(NOW + 1)}}),
        ("unreadable", {"bodies": {"a": NEWER}, "ready": {"a": place(1)}}),
        ("JOB_NOT_FOUND", {}),
    ],
)
def test_any_other_stays_as_it_is(partition: Partition, answer: str, before: State) -> None:
    partition.put(before)
    before = partition.state()

    assert call(partition) == [answer]
    assert {**partition.state(), "clock": 0} == {**before, "clock": 0}


def test_what_another_move_has_ended_is_not_its_own(partition: Partition) -> None:
    partition.put(MOVED)

    assert call(partition, mark='"move":"m2"') == ["cancelled"]


def test_where_it_only_finishes_it_moves_no_more(partition: Partition) -> None:
    partition.put({"bodies": {"a": body()}, "ready": {"a": place(1)}})

    assert len(call(partition, only_finish="1")) == 1
    assert partition.state()["ready"] == {"a": place(1)}
