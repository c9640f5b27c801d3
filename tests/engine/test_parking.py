"""Jobs of a type that a worker does not know stand aside, and come back when one is there that does."""

from __future__ import annotations

import pytest

from jobs.exceptions import StoreUnavailable
from tests.support.steps import Steps


def test_a_parked_job_is_ready_but_in_nobodys_way(steps: Steps) -> None:
    unknown, known = steps.enqueue(type="unknown"), steps.enqueue()
    steps.park(steps.lease())

    assert steps.lease().id == known
    job = steps.get(unknown)
    assert (job.state, job.parked, job.attempt) == ("ready", True, 0)
    assert steps.engine.leases.parked(steps.route) == {"unknown": 1}
    assert steps.engine.pools.get("default").ready == 1
    [partition] = steps.engine.partitions.all()
    assert (partition.ready, partition.parked, partition.live) == (1, 1, 2)
    assert [listed.id for listed in steps.engine.jobs.page().items] == [known, unknown]


def test_a_worker_that_knows_the_type_brings_them_back_in_order(steps: Steps) -> None:
    ids = [steps.enqueue(type="unknown", priority=priority) for priority in (0, 5, 0)]
    for job in steps.lease_all():
        steps.park(job)
    steps.enqueue()

    assert steps.engine.leases.unpark(steps.route, {"other"}) == 0
    assert steps.engine.leases.unpark(steps.route, {"unknown", "other"}) == 3

    assert [job.id for job in steps.lease_all()][:3] == [ids[1], ids[0], ids[2]]
    assert steps.engine.leases.parked(steps.route) == {}


def test_thousands_come_back(steps: Steps) -> None:
    steps.enqueue_many(1_500, type="unknown")
    while jobs := steps.lease_all():
        steps.engine.leases.park(steps.route, [(job.id, job.token, job.type) for job in jobs])

    assert steps.engine.leases.parked(steps.route) == {"unknown": 1_500}
    assert steps.engine.leases.unpark(steps.route, ["unknown"]) == 1_500
    assert steps.ask().ready_left == 1_499


def test_a_type_of_any_name_can_be_parked(steps: Steps) -> None:
    for name in ("{}", "a:b", 'quo"te', "ünï", "*?[x]"):
        job_id = steps.enqueue(type=name)
        steps.park(steps.lease())
        assert steps.get(job_id).parked
        assert steps.engine.leases.unpark(steps.route, [name]) == 1
        assert steps.complete(steps.lease()) == "ok"


def test_hosts_hear_of_a_type_when_the_first_of_its_jobs_is_parked(steps: Steps) -> None:
    for name in ("one", "one", "other"):
        steps.enqueue(type=name)
    news = steps.engine.news
    news.wait(0.01)

    for job in steps.lease_all():
        steps.park(job)
    assert [(item.topic, item.about) for item in news.wait(0.01)] == [("parked", "one"), ("parked", "other")]

    steps.engine.leases.unpark(steps.route, ["one"])
    steps.park(steps.lease())
    steps.park(steps.lease())
    assert [item.about for item in news.wait(0.01)] == ["one"], "nobody had one any more"


def test_jobs_are_parked_where_nobody_can_be_told(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(topic: str, about: str) -> None:
        raise StoreUnavailable

    monkeypatch.setattr(steps.engine.news, "tell", fail)
    job_id = steps.enqueue(type="unknown")
    steps.park(steps.lease())
    assert steps.get(job_id).parked


@pytest.mark.parametrize(("wakes", "woken"), [(True, True), (False, False)])
def test_who_brings_jobs_back_says_whether_a_waiting_worker_shall_wake(steps: Steps, wakes: bool, woken: bool) -> None:
    steps.enqueue(type="unknown")
    steps.park(steps.lease())
    steps.engine.leases.wait_for_work([steps.route], 0.01)  # what the enqueue left

    steps.engine.leases.unpark(steps.route, ["unknown"], wakes=wakes)

    assert (steps.engine.leases.wait_for_work([steps.route], 0.01) is not None) is woken
