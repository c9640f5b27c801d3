"""What a supervisor does for the leases of its children, and what it hears of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from time import monotonic
from unittest.mock import Mock

import msgspec
import pytest

from jobs.engine import new_token
from jobs.exceptions import StoreUnavailable
from jobs.worker.child_handle import ChildHandle
from jobs.worker.leases import HOMELESS_SECONDS, Renewer
from jobs.worker.messages import CancelRequested, Closed, Lost, Message, Opened
from jobs.worker.options import WorkerOptions
from tests.worker.conftest import ROUTE, Parts
from tests.worker.handles import OtherSide, child_handle


class Leased:
    """Three jobs in the hands of one living child."""

    def __init__(self, parts: Parts, child: ChildHandle, other: OtherSide) -> None:
        self.engine = parts.engine
        parts.enqueue(count=3)
        self.token = new_token()
        leased = self.engine.leases.lease(ROUTE, worker="host.1", token=self.token, limit=10, lease_ms=10_000).jobs
        self.ids = [job.id for job in leased]
        child.pid = os.getpid()
        self.ledger = other.ledger
        self.ledger.write(Opened(1, self.token, ROUTE, self.ids))
        self._other = other
        self.child = child
        self.renewer = Renewer(self.engine, lambda: [child], WorkerOptions(lease_seconds=10.0))
        self.renewer.tick()

    def renew(self) -> None:
        self.renewer._due_at = 0.0
        self.renewer.tick()

    def stand_still(self) -> None:
        """For longer than a lease, and on."""
        self.renewer._renewed_at[ROUTE] -= 11.0
        self.renew()

    def renewed_at(self) -> float:
        """How far the leases reach, as the child knows it."""
        return self._other.memory.renewed_at(1)

    def told(self) -> list[Message]:
        """What the child has been told until now."""
        end = CancelRequested([("end", "")])
        self.child.send(end)
        messages: list[Message] = []
        while not messages or messages[-1] != end:
            messages += self._other.link.receive()
        return messages[:-1]


@pytest.fixture
def leased(parts: Parts) -> Iterator[Leased]:
    with child_handle() as (child, other):
        yield Leased(parts, child, other)


def test_a_rumour_that_is_true_reaches_the_child_before_the_next_renewal(leased: Leased) -> None:
    leased.engine.jobs.cancel(leased.ids[1])
    leased.renewer.hear([leased.ids[1]])

    assert leased.renewer.tick() > 0.5
    assert leased.told() == [CancelRequested([(leased.ids[1], leased.token)])]


def test_a_rumour_that_is_not_true_changes_nothing(leased: Leased) -> None:
    leased.renewer.hear(leased.ids)
    leased.renewer.tick()
    assert leased.told() == []


def test_a_rumour_that_comes_before_its_lease_is_not_forgotten(leased: Leased) -> None:
    """The child has taken the job, or a process of its own was made for it, and the host has not heard so yet."""
    leased.ledger.write(Closed(1))
    leased.engine.jobs.cancel(leased.ids[1])
    leased.renewer.hear([leased.ids[1]])

    assert leased.renewer.tick() <= HOMELESS_SECONDS
    leased.ledger.write(Opened(1, leased.token, ROUTE, leased.ids))
    leased.renewer.tick()

    assert leased.told() == [CancelRequested([(leased.ids[1], leased.token)])]
    assert leased.renewer.tick() > HOMELESS_SECONDS, "it is looked for no more"


def test_a_rumour_that_concerns_nobody_here_ends_with_the_next_renewal(leased: Leased) -> None:
    leased.renewer.hear(["a job of another host"])
    assert leased.renewer.tick() <= HOMELESS_SECONDS
    leased.renew()
    assert leased.renewer.tick() > HOMELESS_SECONDS


def test_without_any_rumour_the_next_renewal_tells(leased: Leased) -> None:
    leased.engine.jobs.cancel(leased.ids[1])
    leased.renewer.tick()
    assert leased.told() == []

    leased.renewer._due_at = 0.0
    leased.renewer.tick()

    assert leased.told() == [CancelRequested([(leased.ids[1], leased.token)])]


def test_a_cancel_whose_news_cannot_be_told_is_a_cancel(leased: Leased, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(topic: str, about: str) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(leased.engine.news, "tell", fail)
    assert leased.engine.jobs.cancel(leased.ids[0]).cancel_requested


def test_the_cancel_of_a_running_job_is_told_to_all_hosts_and_that_of_a_waiting_one_to_none(
    leased: Leased, parts: Parts
) -> None:
    (waiting,) = parts.enqueue()
    news = leased.engine.news
    news.wait(0.01)

    leased.engine.jobs.cancel(waiting)
    leased.engine.jobs.cancel(leased.ids[0])

    assert [(item.topic, item.about) for item in news.wait(0.01)] == [("cancel", leased.ids[0])]


class TestAfterStandingStill:
    """A host that was frozen for longer than a lease: other hosts may have run its jobs meanwhile."""

    def test_a_child_hears_what_it_lost_before_its_deadlines_move_on(self, leased: Leased) -> None:
        before = leased.renewed_at()
        leased.engine.leases.release(ROUTE, [(leased.ids[0], leased.token)])

        leased.stand_still()
        assert leased.renewed_at() == before
        assert leased.told() == [Lost([(leased.ids[0], leased.token)])]

        leased.renew()
        assert leased.renewed_at() > before
        assert leased.told() == []

    def test_nor_do_they_where_the_store_was_away_for_as_long(
        self, leased: Leased, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = leased.renewed_at()
        leased.engine.leases.release(ROUTE, [(leased.ids[0], leased.token)])
        with monkeypatch.context() as patch:
            patch.setattr(leased.engine.leases, "renew", Mock(side_effect=StoreUnavailable))
            with pytest.raises(StoreUnavailable):
                leased.stand_still()

        leased.renew()
        assert leased.renewed_at() == before
        assert leased.told() == [Lost([(leased.ids[0], leased.token)])]

    def test_a_child_that_lost_nothing_goes_on_at_once(self, leased: Leased) -> None:
        before = leased.renewed_at()
        leased.stand_still()
        assert leased.renewed_at() > before


def test_a_job_that_was_handed_back_and_taken_again_is_still_renewed(
    leased: Leased, caplog: pytest.LogCaptureFixture
) -> None:
    job_id, token = leased.ids[0], new_token()
    leased.engine.leases.release(ROUTE, [(job_id, leased.token)])
    again = leased.engine.leases.lease(ROUTE, worker="host.1", token=token, limit=1, lease_ms=10_000).jobs
    leased.ledger.write(Opened(2, token, ROUTE, [job.id for job in again]))

    leased.renew()

    assert leased.told() == [Lost([(job_id, leased.token)])]
    held = {(lease.id, lease.token) for lease in leased.child.leases()[1]}
    assert (job_id, token) in held
    assert (job_id, leased.token) not in held
    assert caplog.messages == [], "only the child knows whether it has lost it or handed it back"


def test_what_was_leased_a_moment_ago_is_renewed_with_the_next_round(leased: Leased) -> None:
    """Most of it has ended by then."""
    renewed_before = leased.renewed_at()
    fresh = Opened(2, new_token(), ROUTE, ["gone by then"], leased_at=monotonic())
    leased.ledger.write(fresh)

    leased.renew()

    assert leased.renewed_at() > renewed_before
    assert leased._other.memory.renewed_at(2) == 0.0
    assert leased.told() == [], "it was asked about"

    leased.ledger.write(msgspec.structs.replace(fresh, leased_at=monotonic() - 5.0))
    leased.renew()
    assert leased.told() == [Lost([("gone by then", fresh.token)])]
    assert leased._other.memory.renewed_at(2) > 0.0


def test_an_old_lease_that_came_behind_a_fresh_one_is_renewed(leased: Leased) -> None:
    """An answer that was long on its way has the later number, and no time to wait for the next round."""
    leased.ledger.write(Opened(2, new_token(), ROUTE, [], leased_at=monotonic()))
    leased.ledger.write(Opened(3, new_token(), ROUTE, [], leased_at=monotonic() - 5.0))

    leased.renew()

    assert leased._other.memory.renewed_at(3) > 0.0
