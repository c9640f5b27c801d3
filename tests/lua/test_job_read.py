"""job_read.lua: reads jobs whole."""

from __future__ import annotations

from tests.support.partition import NOW, Partition, body, due, held, packed, place


def test_all_of_a_job_is_read_at_one_moment(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(b"[1]")},
            "states": {"a": held()},
            "leased": {"a": NOW + 5},
            "attempts": {"a": b"\x00"},
            "results": {"a": "2"},
            "progress": {"a": "p"},
        }
    )
    before = partition.state()

    reply = partition.store.run("job_read", partition.keys, ["a"])

    deadline = str(NOW + 5).encode()
    assert reply == [[body(b"[1]"), packed(held()), b"", deadline, b"\x00", b"2", b"p", b""]]
    assert partition.state() == before


def test_the_state_of_a_job_that_was_never_touched_is_that_of_its_line(partition: Partition) -> None:
    partition.put(
        {
            "bodies": {"a": body(), "b": body(), "c": body()},
            "scheduled": {"a": due(NOW + 1)},
            "ready": {"b": place(1)},
        }
    )

    reply = partition.store.run("job_read", partition.keys, ["a", "b", "c", "unknown"])

    assert [(entry[2], entry[7]) for entry in reply] == [(b"scheduled", b""), (b"ready", b"1"), (b"", b""), (b"", b"")]
    assert reply[3] == [None, None, b"", None, None, None, None, b""]
