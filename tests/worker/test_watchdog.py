"""What runs too long in another process, judged by the memory that it shares."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.conf import Settings
from jobs.core.job import Route
from jobs.worker.child_handle import ChildHandle, HeldLease
from jobs.worker.crew import LOOK_SECONDS
from jobs.worker.messages import Closed, Opened
from jobs.worker.watchdog import FROZEN_SECONDS, Watchdog
from tests.worker.handles import OtherSide, child_handle

ROUTE = Route("default", 1, 0)


class Kennel:
    """A watchdog, its clock, and a child that it watches, of which only the shared memory is real."""

    def __init__(self, child: ChildHandle, other: OtherSide) -> None:
        self.now = 1000.0
        self.condemned: list[list[str]] = []
        self.child = child
        self.memory = other.memory
        self.ledger = other.ledger
        self.watchdog = Watchdog(
            Settings(hard_timeout_grace=5.0, cancel_grace=2.0),
            lambda child, overdue: self.condemned.append([started.lease.id for started in overdue]),
            clock=lambda: self.now,
        )

    def start_job(self, job_id: str, *, times_out_in: float = float("inf")) -> HeldLease:
        batch = len(self.child.leases()[1]) + 1
        self.ledger.write(Opened(batch, f"token-{batch}", ROUTE, [job_id]))
        self.memory.new_cell().enter(batch, job_id, 1, self.now + times_out_in)
        return HeldLease(ROUTE, job_id, f"token-{batch}")

    def look_for(self, seconds: float) -> None:
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.now += LOOK_SECONDS
            self.watchdog.look([self.child])


@pytest.fixture
def kennel() -> Iterator[Kennel]:
    with child_handle() as (child, other):
        yield Kennel(child, other)


def test_a_job_over_time_has_its_grace_and_no_more(kennel: Kennel) -> None:
    kennel.start_job("long", times_out_in=3.0)
    kennel.start_job("other", times_out_in=60.0)
    kennel.look_for(7.75)
    assert kennel.condemned == []
    kennel.look_for(0.5)
    assert kennel.condemned[0] == ["long"]


def test_a_job_without_time_out_may_go_on(kennel: Kennel) -> None:
    kennel.start_job("long")
    kennel.look_for(600.0)
    assert kennel.condemned == []


def test_a_cancelled_job_has_both_graces(kennel: Kennel) -> None:
    lease = kennel.start_job("deaf")
    kennel.look_for(10.0)
    kennel.child.cancel([lease], kennel.now)
    kennel.look_for(3.0)
    kennel.child.cancel([lease], kennel.now)  # the next renewal says it again
    kennel.look_for(3.75)
    assert kennel.condemned == []
    kennel.look_for(0.5)
    assert kennel.condemned[0] == ["deaf"]


def test_the_cancel_of_a_job_that_has_ended_is_forgotten(kennel: Kennel) -> None:
    lease = kennel.start_job("deaf")
    kennel.child.cancel([lease], kennel.now)
    kennel.ledger.write(Closed(1))
    kennel.look_for(LOOK_SECONDS)
    assert kennel.child.cancelled_at(lease) == float("inf")

    kennel.child.cancel([lease], kennel.now)  # by a renewal that was under way
    assert kennel.child.cancelled_at(lease) == float("inf")


def test_a_condemned_child_is_not_condemned_again(kennel: Kennel) -> None:
    kennel.start_job("long", times_out_in=1.0)
    kennel.child.is_condemned = True
    kennel.look_for(60.0)
    assert kennel.condemned == []


def test_a_host_that_was_frozen_gives_everybody_the_grace_anew(kennel: Kennel) -> None:
    kennel.start_job("long", times_out_in=1.0)
    kennel.now += 60.0
    assert kennel.now > 1000.0 + FROZEN_SECONDS
    kennel.watchdog.look([kennel.child])
    kennel.look_for(4.5)
    assert kennel.condemned == []
    kennel.look_for(1.0)
    assert kennel.condemned[0] == ["long"]
