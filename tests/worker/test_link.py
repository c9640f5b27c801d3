from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator

import pytest

from jobs.core.job import LeasedJob, Route
from jobs.worker.link import Link
from jobs.worker.messages import (
    AloneEnded,
    Bye,
    Drain,
    HandBack,
    Hold,
    LedgerFull,
    Lost,
    Ready,
    Report,
    Retiring,
    RunAlone,
    Serve,
    Stop,
)
from tests.worker.leased import leased


@pytest.fixture
def ends() -> Iterator[tuple[Link, Link]]:
    """(the supervisor's, the child's)"""
    one, other = socket.socketpair()
    supervisor, child = Link.of_supervisor(one), Link.of_child(other)
    yield supervisor, child
    supervisor.close()
    child.close()


def test_messages_arrive_whole_and_in_order_in_both_directions(ends: tuple[Link, Link]) -> None:
    supervisor, child = ends
    up = [Ready(), LedgerFull(), Report({"default": 3}, 1, 2, None, False), Retiring("enough"), Bye(2)]
    down = [
        Serve(),
        Serve(True),
        Hold(True),
        Lost([("a", "token")]),
        Drain(),
        Stop(2.5),
        HandBack(),
        AloneEnded(("x", "token")),
    ]
    for message in up:
        child.send(message)
    for message in down:
        supervisor.send(message)

    assert supervisor.receive() == up
    assert child.receive() == down


def test_a_leased_job_survives_the_way(ends: tuple[Link, Link]) -> None:
    supervisor, child = ends
    job: LeasedJob = leased(payload=b'{"x": "\xf0\x9f\x90\x8e"}', extras={"tags": ["a"], "fire_time_ms": 3})
    child.send(RunAlone(job, 12.5, -3.0))
    (order,) = supervisor.receive()
    assert order.lease == job
    assert isinstance(order.lease.route, Route)


def test_a_frame_larger_than_any_buffer_arrives(ends: tuple[Link, Link]) -> None:
    supervisor, child = ends
    large = Retiring("x" * 200_000)
    sender = threading.Thread(target=child.send, args=(large,))
    sender.start()

    received = []
    while not received:
        received = supervisor.receive()
    sender.join()

    assert received == [large]


def test_a_supervisor_waits_for_no_child_that_reads_nothing(ends: tuple[Link, Link]) -> None:
    """It is frozen, or its handlers hold the interpreter's lock; and it hears all of it when it goes on."""
    supervisor, child = ends
    said = [Lost([(str(number), "token")]) for number in range(2_000)]
    assert all(supervisor.send(message) for message in said)
    assert supervisor.receive() == []
    assert supervisor.has_unsent

    heard: list[Lost] = []
    while len(heard) < len(said):
        heard += child.receive()
        supervisor.push()

    assert heard == said
    assert not supervisor.has_unsent


def test_the_end_of_the_peer_closes_the_link_and_sending_says_so(ends: tuple[Link, Link]) -> None:
    supervisor, child = ends
    child.send(Bye(0))
    child.close()

    assert supervisor.receive() == [Bye(0)]
    assert not supervisor.closed
    assert supervisor.receive() == []
    assert supervisor.closed
    assert supervisor.send(Drain()) is False


def test_the_rest_is_read_without_waiting_for_those_who_inherited_the_other_end(ends: tuple[Link, Link]) -> None:
    supervisor, child = ends
    heir = os.dup(child.fileno())
    child.send(Retiring("enough"))
    child.send(Bye(2))

    assert supervisor.receive_rest() == [Retiring("enough"), Bye(2)]
    assert supervisor.closed
    os.close(heir)
