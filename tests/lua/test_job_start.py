"""job_start.lua: leased → leased, started."""

from __future__ import annotations

import pytest

from tests.support.partition import NOW, Partition, held, record


def test_a_mark_names_the_start_and_forgives_the_leases_that_were_lost_before(partition: Partition) -> None:
    partition.put({"states": {"a": held(lost=4), "b": held()}})

    reply = partition.run("job_start", "a", "token", NOW - 10)

    assert reply == 1
    assert partition.state() == {"states": {"a": held(started_at=NOW - 10), "b": held()}}


@pytest.mark.parametrize(
    "stored",
    [
        pytest.param(held(token="another"), id="held under another token"),
        pytest.param(record("ready", token="token"), id="handed back"),
        pytest.param(record("dead", token="token"), id="ended"),
        pytest.param(b"\xc1", id="unreadable"),
    ],
)
def test_a_job_that_is_not_held_under_the_token_is_left_alone(partition: Partition, stored: object) -> None:
    before = {"states": {"a": stored}}
    partition.put(before)

    reply = partition.run("job_start", "a", "token", NOW, "unknown", "token", NOW)

    assert reply == 0
    assert partition.state() == before
