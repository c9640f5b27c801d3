"""job_unstarted.lua: what was handed out and has not begun."""

from __future__ import annotations

import pytest

from tests.support.partition import NOW, Partition, body, held, place, record


@pytest.fixture
def handed_out(partition: Partition) -> Partition:
    partition.put(
        {
            "states": {
                "a": held(),
                "b": held(),
                "begun": held(started_at=NOW - 10),
                "ended": record("succeeded"),
                "back": record("ready", place=place(3)),
            },
            "leased": {"a": NOW + 5, "b": NOW + 7, "begun": NOW + 9},
            "bodies": {name: body(type="u" if name == "b" else "t") for name in ("a", "b", "begun", "ended", "back")},
        }
    )
    return partition


def test_only_jobs_that_are_leased_and_have_not_begun_are_named(handed_out: Partition) -> None:
    before = handed_out.state()

    assert handed_out.run("job_unstarted", "a", "b", "begun", "ended", "back", "gone", type="") == [
        NOW,
        *("a", NOW + 5),
        *("b", NOW + 7),
    ]
    assert handed_out.state() == before


def test_a_type_narrows_it(handed_out: Partition) -> None:
    assert handed_out.run("job_unstarted", "a", "b", type="u") == [NOW, "b", NOW + 7]
    assert handed_out.run("job_unstarted", "a", "b", type="v") == [NOW]


def test_bytes_that_nobody_can_read_are_not_waited_for(handed_out: Partition) -> None:
    handed_out.put({"states": {"a": b"?"}, "bodies": {"b": b"?"}})

    assert handed_out.run("job_unstarted", "a", "b", type="t") == [NOW]
