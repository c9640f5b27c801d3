"""A hundred thousand dead jobs, resubmitted by two hosts at once: stopped midway, finished later, and none twice."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator

import pytest

from jobs import api
from jobs.api import BulkOperation
from jobs.core.states import JobState
from jobs.services.bulk import BulkWorker
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

pytestmark = [pytest.mark.thorough, pytest.mark.django_db, pytest.mark.timeout(600)]

JOBS, AT_ONCE = 100_000, 5_000
LONGEST = 240.0


@pytest.fixture
def ids(shop: Shop) -> list[str]:
    return [id for _ in range(JOBS // AT_ONCE) for id in shop.many_dead(AT_ONCE)]


@pytest.fixture
def hosts(shop: Shop, ids: list[str]) -> Iterator[None]:
    """Two that do what there is to do, each as fast as it can."""
    over = threading.Event()

    def work() -> None:
        worker = BulkWorker(shop.engine)
        while not over.is_set():
            if worker.step() != 0:
                over.wait(0.01)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    yield
    over.set()
    for thread in threads:
        thread.join()


def asked() -> BulkOperation:
    return api.bulk.start("resubmit", api.JobFilter(states=(JobState.DEAD,)), confirmed=JOBS)


def ended(operation: BulkOperation) -> BulkOperation:
    return eventually(lambda: (now := api.bulk.get(operation.id)).is_over and now, within=LONGEST)


def test_it_is_stopped_midway_and_finished_by_the_next_one(shop: Shop, ids: list[str], hosts: None) -> None:
    first = asked()
    eventually(lambda: api.bulk.get(first.id).done >= JOBS // 4, within=LONGEST)
    api.bulk.stop(first.id)

    stopped = ended(first)
    assert (stopped.state, stopped.refused, stopped.unsure) == ("cancelled", 0, 0)
    assert JOBS // 4 <= stopped.done < JOBS
    assert shop.engine.stats.snapshot().states["ready"] == stopped.done

    rest = ended(asked())
    assert (rest.state, rest.total, rest.done) == ("done", JOBS - stopped.done, JOBS - stopped.done)
    found = Counter(
        (str(job.state), job.resubmissions)
        for at in range(0, JOBS, AT_ONCE)
        for job in api.get_jobs(ids[at : at + AT_ONCE])
        if job is not None
    )
    assert found == {("ready", 1): JOBS}
