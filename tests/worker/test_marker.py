"""Which jobs the store is told have really begun."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from jobs.engine import new_token
from jobs.worker.cells import Cell
from jobs.worker.child_handle import ChildHandle
from jobs.worker.leases import IDLE_SECONDS, StartMarker
from jobs.worker.messages import Opened
from tests.worker.conftest import ROUTE, Parts
from tests.worker.handles import OtherSide, child_handle


class Leased:
    """Two jobs in the hands of one child, and whoever marks what has begun."""

    def __init__(self, parts: Parts, child: ChildHandle, other: OtherSide) -> None:
        self._parts = parts
        self._memory = other.memory
        self.token = new_token()
        self.ids = parts.enqueue(count=2)
        parts.engine.leases.lease(ROUTE, worker="host.1", token=self.token, limit=10, lease_ms=10_000)
        other.ledger.write(Opened(1, self.token, ROUTE, self.ids))
        self.marker = StartMarker(parts.engine, lambda: [child])

    def begin(self, job_id: str) -> Cell:
        cell = self._memory.new_cell()
        cell.enter(1, job_id, self._parts.engine.jobs.server_now_ms())
        return cell

    def have_begun(self) -> list[bool]:
        return [self._parts.get(job_id).started_at is not None for job_id in self.ids]


@pytest.fixture
def leased(parts: Parts) -> Iterator[Leased]:
    with child_handle() as (child, other):
        yield Leased(parts, child, other)


def test_a_job_that_is_seen_twice_has_begun(leased: Leased) -> None:
    leased.begin(leased.ids[0])
    leased.marker.tick()
    assert leased.have_begun() == [False, False]

    leased.marker.tick()
    assert leased.have_begun() == [True, False]


def test_a_job_that_is_over_at_the_second_look_was_never_worth_a_word(leased: Leased) -> None:
    cell = leased.begin(leased.ids[0])
    leased.marker.tick()
    cell.leave()
    leased.begin(leased.ids[1])
    leased.marker.tick()
    assert leased.have_begun() == [False, False]

    leased.marker.tick()
    assert leased.have_begun() == [False, True]


def test_it_waits_for_the_look_that_sees_a_job(leased: Leased) -> None:
    assert leased.marker.tick() == IDLE_SECONDS
    leased.begin(leased.ids[0])
    assert leased.marker.tick() == IDLE_SECONDS
