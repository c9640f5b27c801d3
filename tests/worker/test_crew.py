"""The children of a host: what becomes of a lease that moves to a process of its own."""

from __future__ import annotations

import os
import selectors
import socket
from collections.abc import Iterator
from time import monotonic
from typing import Any

import pytest

from jobs.conf import get_settings
from jobs.core.job import LeasedJob
from jobs.core.wheel import Wheel
from jobs.engine import new_token
from jobs.worker import cells
from jobs.worker.cells import Cell, Cells
from jobs.worker.child_handle import ChildHandle
from jobs.worker.crew import Crew
from jobs.worker.leases import CrashSettler, Renewer
from jobs.worker.link import Link
from jobs.worker.messages import (
    AloneEnded,
    Attend,
    CancelRequested,
    Closed,
    Hold,
    Message,
    Opened,
    Ready,
    Report,
    Retiring,
    RunAlone,
    Serve,
)
from jobs.worker.nursery import Born, Conception, Ended
from jobs.worker.options import WorkerOptions
from tests.worker.conftest import ROUTE, Parts


class Cradle:
    """Stands where the nursery stands: no process is forked, the links and the shared memory are real."""

    def __init__(self) -> None:
        self.links: list[Link] = []
        self.pens: list[socket.socket] = []
        self.memories: list[Cells] = []
        self.events: list[Born | Ended] = []

    def request(self, number: int) -> Conception:
        link, its_link = socket.socketpair()
        ledger, its_ledger = socket.socketpair()
        self.links.append(Link.of_child(its_link))
        self.pens.append(its_ledger)
        fd = cells.create()
        self.memories.append(Cells(fd))
        return Conception(link, ledger, fd)

    def bear(self, number: int) -> None:
        self.events.append(Born(number, os.getpid()))

    def read(self) -> list[Born | Ended]:
        events, self.events = self.events, []
        return events


class House:
    """A host of one child, without processes; its renewer asks a real store."""

    def __init__(self, parts: Parts) -> None:
        options = WorkerOptions(lease_seconds=10.0)
        self.engine = parts.engine
        self.cradle = Cradle()
        self.selector = selectors.DefaultSelector()
        self.crew: Crew
        self.looks_that_saw_jobs = 0
        self.renewer = Renewer(parts.engine, lambda: self.crew.children, options)
        nursery: Any = self.cradle
        timers = Wheel(monotonic)
        timers.start()
        self.crew = Crew(
            nursery,
            self.selector,
            CrashSettler(parts.engine, options),
            options,
            "host",
            lambda child: None,
            lambda: None,
            lambda job_id: self.renewer.hear([job_id]),
            self._on_running,
            timers=timers,
            settings=get_settings(),
        )
        self.crew.keep_full()
        self.bear(1)
        self.renewer.tick()

    def bear(self, number: int) -> None:
        self.cradle.bear(number)
        self.crew.read_nursery()

    def die(self, number: int) -> None:
        """As the nursery tells it; afterwards the host sees to it that it is full."""
        self.cradle.events.append(Ended(number, -11))
        self.crew.read_nursery()
        self.crew.keep_full()

    def lease(self, job_id: str) -> LeasedJob:
        """The job in the hands of the first child, as the host knows it."""
        token = new_token()
        (job,) = self.engine.leases.lease(ROUTE, worker="host.1", token=token, limit=1, lease_ms=10_000).jobs
        assert job.id == job_id
        self._child(1).open_batch(Opened(1, token, ROUTE, [job_id]))
        return job

    def move(self, job: LeasedJob) -> None:
        """The first child asks for a process of its own for it."""
        self.cradle.links[0].send(RunAlone(job, monotonic(), 0.0))
        for key, _ in self.selector.select(5.0):
            key.data()

    def begin_job(self, number: int) -> Cell:
        """In the memory that this child shares with the host, where it says so first."""
        cell = self.cradle.memories[number - 1].new_cell()
        cell.enter(1, "job", 1)
        return cell

    def hear(self, number: int, message: Message) -> None:
        """From this child."""
        self.cradle.links[number - 1].send(message)
        for key, _ in self.selector.select(5.0):
            key.data()

    def _on_running(self) -> None:
        self.looks_that_saw_jobs += 1

    def told(self, number: int, *, until: Message) -> list[Message]:
        """What this child has been told, up to this message."""
        messages: list[Message] = []
        while until not in messages:
            messages += self.cradle.links[number - 1].receive()
        return messages

    def close(self) -> None:
        for child in self.crew.children:
            child.close()
        for end in (*self.cradle.links, *self.cradle.pens):
            end.close()
        self.selector.close()

    def _child(self, number: int) -> ChildHandle:
        return next(child for child in self.crew.children if child.number == number)


@pytest.fixture
def house(parts: Parts) -> Iterator[House]:
    house = House(parts)
    yield house
    house.close()


@pytest.mark.parametrize("moment", ["before it moves", "before the process is there", "while it runs"])
def test_a_cancel_reaches_a_job_that_moves_to_a_process_of_its_own_before_the_next_renewal(
    house: House, parts: Parts, moment: str
) -> None:
    (job_id,) = parts.enqueue()
    job = house.lease(job_id)

    def cancel() -> None:
        house.engine.jobs.cancel(job_id)
        house.renewer.hear([job_id])  # as the news have it
        assert house.renewer.tick() > 0.0, "no renewal was due"

    if moment == "before it moves":
        cancel()  # the child hears it too late: its slot waits for the other process already
    house.move(job)
    if moment == "before the process is there":
        cancel()
    house.bear(2)
    house.renewer.tick()
    if moment == "while it runs":
        cancel()

    asked = CancelRequested([(job_id, job.token)])
    told = house.told(2, until=asked)
    assert isinstance(told[0], RunAlone)
    assert told[1:] == [asked]


def test_the_end_of_a_process_for_one_job_is_told_of_the_lease_that_it_was_for(house: House, parts: Parts) -> None:
    """The same job may be in the hands of that child a second time: lost, and taken again."""
    (job_id,) = parts.enqueue()
    job = house.lease(job_id)
    house.move(job)
    house.bear(2)
    for word in (Ready(), Retiring("its one job has ended")):
        house.cradle.links[1].send(word)
    for key, _ in house.selector.select(5.0):
        key.data()

    house.cradle.events.append(Ended(2, 0))
    house.crew.read_nursery()

    assert house.told(1, until=AloneEnded((job_id, job.token)))


def test_a_worker_that_dies_before_it_is_ready_is_not_replaced_at_once_and_the_host_says_why(house: House) -> None:
    house.die(1)

    assert house.crew.start_trouble == "workers die at their start: killed by SIGSEGV (11)"
    assert len(house.cradle.links) == 1


def test_one_that_dies_as_soon_as_it_is_ready_is_replaced_at_once(house: House) -> None:
    house.cradle.links[0].send(Ready())  # and nobody has read it when the end is known

    house.die(1)

    assert house.crew.start_trouble is None
    assert len(house.cradle.links) == 2


def test_a_job_that_kills_its_own_process_before_that_is_ready_says_nothing_of_the_workers(
    house: House, parts: Parts
) -> None:
    (job_id,) = parts.enqueue()
    house.move(house.lease(job_id))
    house.bear(2)

    house.die(2)

    assert house.crew.start_trouble is None
    house.cradle.links[0].send(Ready())
    house.die(1)
    assert len(house.cradle.links) == 3, "the other is replaced at once"


def test_whoever_comes_while_the_host_is_held_takes_nothing_from_the_start(house: House) -> None:
    house.crew.hold(True)
    assert house.told(1, until=Hold(True)) == [Serve(), Hold(True)]

    house.cradle.links[0].send(Retiring("its time is over"))
    for key, _ in house.selector.select(5.0):
        key.data()
    house.crew.keep_full()
    assert house.told(2, until=Serve(True)) == [Serve(True)]

    house.crew.hold(False)
    assert house.told(2, until=Hold(False)) == [Hold(False)]


def test_a_child_that_has_not_noticed_the_job_that_began_in_it_is_told(house: House) -> None:
    house.crew.watch()
    assert house.told(1, until=Serve()) == [Serve()]
    assert house.looks_that_saw_jobs == 0

    house.begin_job(1)
    house.crew.watch()
    assert house.told(1, until=Attend()) == [Attend()]
    assert house.looks_that_saw_jobs == 1


def test_a_child_that_has_noticed_is_told_nothing_and_the_job_is_seen_with_each_look_until_it_ends(
    house: House,
) -> None:
    cell = house.begin_job(1)
    house.hear(1, running(1))
    house.crew.watch()
    house.crew.watch()
    assert house.looks_that_saw_jobs == 2

    cell.leave()
    house.crew.watch()
    assert house.looks_that_saw_jobs == 2
    house.crew.hold(True)
    assert house.told(1, until=Hold(True)) == [Serve(), Hold(True)]


def test_to_a_child_that_reads_nothing_no_more_is_said_than_its_link_has_room_for(house: House) -> None:
    house.begin_job(1)
    (child,) = house.crew.children
    while not child.link.has_unsent:
        house.crew.watch()
    unsent = len(child.link._unsent)

    house.crew.watch()
    assert len(child.link._unsent) == unsent


def running(number: int) -> Report:
    return Report(slots={"default": 10}, running=number, ended=0, trouble=None, idle=False)


def test_a_child_that_has_been_at_work_finds_room_in_its_ledger_before_it_has_to_ask(house: House) -> None:
    ledger = Link.of_supervisor(house.cradle.pens[0])  # an end that does not wait
    while not ledger.has_unsent:
        ledger.send(Closed(1))

    house.hear(1, running(0))
    ledger.push()
    assert not ledger.has_unsent
