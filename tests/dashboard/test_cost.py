"""A page costs the same whatever the backlog: a bounded number of commands and queries, counted at the server.

What pages remember for some seconds is forgotten before each count, so that the dearest case is counted and no clock
decides. What it costs with a million jobs: ``python -m benchmarks pages``.
"""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard import reads
from dashboard.panels import PANELS
from dashboard.reads import of_store
from jobs import api
from jobs.models import Schedule
from jobs.services.bulk import BulkWorker
from tests.dashboard.browsing import text
from tests.dashboard.conftest import Count
from tests.dashboard.seeding import Shop

PAGES = [f"/dashboard/{'' if panel.slug == 'overview' else panel.slug + '/'}" for panel in PANELS] + [
    "/dashboard/jobs/?state=ready&pool=default",
    "/dashboard/jobs/?state=dead&search=funds",
    "/dashboard/pools/?name=billing",
    "/dashboard/schedules/?name=nightly",
    "/dashboard/snapshot/",
]
API = [
    "/api/v1/jobs?state=ready",
    "/api/v1/dlq?search=funds",
    "/api/v1/dlq/groups",
    "/api/v1/pools",
    "/api/v1/pools/billing",
    "/api/v1/scheduler",
    "/api/v1/stats",
    "/api/v1/workers",
    "/api/v1/schedules",
    "/api/v1/schedules/nightly",
    "/api/v1/workflows",
    "/api/v1/workflows/definitions",
]
PATHS = PAGES + API

MOST_TRIPS = dict.fromkeys(PAGES, 26) | dict.fromkeys(API, 15) | {"/dashboard/doctor/": 54}
"""Most round trips to the store with nothing remembered: far fewer than a list has rows. Doctor asks a lot, by itself
and seldom."""

MOST_QUERIES = 14
"""Of SQL: session, user, permissions (2), groups' pools, and the page's own."""


@pytest.fixture
def seeded(db: None, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setattr("dashboard.reads.whole.flaws", of_store.flaws)  # as in life
    monkeypatch.setattr("jobs.management.diagnosis.glance.SLOW_SECONDS", 60.0)  # the machine may be
    shop.worker()
    shop.many(100)
    for _ in range(60):
        shop.dead(pool="billing")
    Schedule.objects.create(name="nightly", job_type="report.build", payload={"year": 2024}, cron="0 5 * * *")
    return shop


def test_pages_take_as_many_round_trips_with_3000_jobs_in_a_dozen_pools_as_with_160_in_two(
    administrator: Client, seeded: Shop, round_trips: Count
) -> None:
    def visit(path: str) -> None:
        assert administrator.get(path).status_code == 200, path

    for path in PATHS:  # scripts are loaded, templates compiled
        visit(path)
    few = {path: round_trips(lambda path=path: visit(path)) for path in PATHS}
    seeded.many(3_000)
    for number in range(10):
        seeded.ready(pool=f"pool-{number}")
        seeded.dead(pool=f"pool-{number}", error={"type": "Late", "message": f"too late {'again ' * number}"})
        seeded.worker(host=f"host-{number + 2}")
    many = {path: round_trips(lambda path=path: visit(path)) for path in PATHS}

    assert {path: number for path, number in few.items() if number > MOST_TRIPS[path]} == {}
    # A few more or less: a step of ten seconds that is over is folded away by whoever looks first.
    assert {path: number for path, number in many.items() if abs(number - few[path]) > 4} == {}


def test_the_page_of_one_error_takes_as_many_round_trips_with_2_000_jobs_as_with_300(
    administrator: Client, shop: Shop, round_trips: Count
) -> None:
    def visit() -> None:
        assert "Next specimen" in text(administrator.get(path))

    shop.many_dead(300)
    path = f"/dashboard/dead/?group={api.error_groups()[0].fingerprint}"
    visit()
    few = round_trips(visit)
    shop.many_dead(1_700)

    assert round_trips(visit) == few <= 32


def test_a_search_looks_at_so_many_jobs_and_offers_to_look_further(
    administrator: Client, seeded: Shop, round_trips: Count
) -> None:
    def visit() -> None:
        assert f"None of the {reads.LOOKS_AT:,} jobs looked at matches" in text(administrator.get(path))

    path = "/dashboard/jobs/?search=nowhere"
    seeded.many(reads.LOOKS_AT)
    visit()
    few = round_trips(visit)
    seeded.many(1_000)

    assert round_trips(visit) == few <= 34


def test_the_page_of_a_trial_does_not_look_at_those_that_wait_for_its_end(
    administrator: Client, shop: Shop, round_trips: Count
) -> None:
    shop.many_dead(60)
    api.bulk.start("resubmit", api.JobFilter(), id="tried", confirmed=60, trial=3, rate=1)  # then each by itself
    BulkWorker(shop.engine).tick()

    def visit() -> None:
        assert "How they fare 3 ready." in text(administrator.get("/dashboard/bulk/?id=tried"))

    assert round_trips(visit) <= 32


def test_pages_take_a_bounded_number_of_queries(administrator: Client, seeded: Shop) -> None:
    def queries(path: str) -> int:
        reads.forget()
        with CaptureQueriesContext(connection) as found:
            administrator.get(path)
        return len(found)

    paths = [path for path in PATHS if "doctor" not in path]  # its checks look at the database themselves
    few = {path: queries(path) for path in paths}
    for number in range(60):
        Schedule.objects.create(name=f"s{number}", job_type="report.build", payload={"year": 2024}, cron="0 5 * * *")
    many = {path: queries(path) for path in paths}

    assert {path: number for path, number in many.items() if number > MOST_QUERIES} == {}
    assert many == few
