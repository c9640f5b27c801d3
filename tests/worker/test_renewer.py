"""What a supervisor does for the leases of its children, and what it hears of them."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from jobs.engine import new_token
from jobs.exceptions import StoreUnavailable
from jobs.worker.child_handle import ChildHandle
from jobs.worker.leases import Renewer
from jobs.worker.messages import CancelRequested, Opened
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
        child.open_batch(Opened(1, self.token, ROUTE, self.ids))
        self._other = other
        self.child = child
        self.renewer = Renewer(self.engine, lambda: [child], WorkerOptions(lease_seconds=10.0))
        self.renewer.tick()

    def told(self) -> list[CancelRequested]:
        """What the child has been told until now."""
        self.child.send(CancelRequested([("end", "")]))
        messages: list[CancelRequested] = []
        while not messages or messages[-1].leases != [("end", "")]:
            messages += self._other.link.receive()
        return messages[:-1]


@pytest.fixture
def leased(parts: Parts) -> Iterator[Leased]:
    with child_handle() as (child, other):
        yield Leased(parts, child, other)


def test_a_rumour_that_is_true_reaches_the_child_before_the_next_renewal(leased: Leased) -> None:
    leased.engine.jobs.cancel(leased.ids[1])
    leased.renewer.hear([leased.ids[1], "a job of another host"])

    assert leased.renewer.tick() > 0.5
    assert leased.told() == [CancelRequested([(leased.ids[1], leased.token)])]


def test_a_rumour_that_is_not_true_changes_nothing(leased: Leased) -> None:
    leased.renewer.hear(leased.ids)
    leased.renewer.tick()
    assert leased.told() == []


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
