"""A web server dies while worker hosts carry out a bulk operation: the work goes on, and so does who watches it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from jobs import api
from jobs.api import BulkOperation, JobFilter
from jobs.core.states import JobState
from tests.acceptance.hosts import Host
from tests.browser.conftest import PATIENCE_MS, Complaints, session, settle
from tests.browser.web import WebProcess, environment_of
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

JOBS = 4_000
RATE = 60.0
"""A second: so slow that it is far from done when the server is back on the slowest machine."""

DONE = re.compile(r"([\d,]+) of 4,000 jobs resubmitted")


@pytest.fixture
def environment(transactional_db: None, valkey_url: str, namespace: str, tmp_path: Path) -> dict[str, str]:
    return environment_of(valkey_url, namespace, tmp_path / "var")


@pytest.fixture
def hosts(environment: dict[str, str], tmp_path: Path) -> Iterator[list[Host]]:
    """Two, which serve another pool: what is resubmitted stays where it can be counted."""
    started = [
        Host("--pool", "elsewhere", environment=environment, log=tmp_path / f"host-{number}.log") for number in range(2)
    ]
    yield started
    for host in started:
        host.end()
        print(f"--- {host.arguments}\n{host.log}")


@pytest.fixture
def web(environment: dict[str, str], tmp_path: Path) -> Iterator[WebProcess]:
    process = WebProcess(environment, tmp_path / "web.log")
    yield process
    process.end()


@pytest.fixture
def page(browser: Browser, web: WebProcess, complaints: Complaints) -> Iterator[Page]:
    """Of an operator, logged in at that process."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    context.add_cookies([{"name": "sessionid", "value": session("operator"), "url": web.url}])
    page = context.new_page()
    complaints.watch(page, web)
    yield page
    context.close()


def shown(page: Page) -> int:
    """How many the page says are done; 0 while it says something else."""
    found = DONE.search(page.locator("[data-key='how far'] .say").inner_text())
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.thorough
def test_a_bulk_operation_outlives_the_web_process_and_is_cancelled_midway_from_the_next_one(
    hosts: list[Host], web: WebProcess, page: Page, complaints: Complaints
) -> None:
    shop = Shop()
    ids = shop.many_dead(JOBS)
    with api.audit.acting("operator", "dashboard"):
        asked = api.bulk.start("resubmit", JobFilter(states=(JobState.DEAD,)), confirmed=JOBS, rate=RATE)
    eventually(web.answers, within=60)
    page.goto(f"{web.url}/dashboard/bulk/?id={asked.id}")
    settle(page)
    before = eventually(lambda: shown(page), within=60)

    web.end()
    expect(page.locator("#live")).not_to_contain_text("Live")
    gone_on = eventually(lambda: (done := now(asked).done) > before and done)
    web.start()

    settle(page)
    assert eventually(lambda: (seen := shown(page)) > gone_on and seen) < JOBS, "it shows how far it has come meanwhile"
    page.get_by_role("button", name="Stop here").click()
    expect(page.locator("h1 + .tag")).to_have_text("cancelled")
    expect(page.locator(".say")).to_contain_text("are as they were")

    ended = now(asked)
    assert (ended.state, 0 < ended.done < JOBS, ended.refused, ended.unsure) == ("cancelled", True, 0, 0)
    lives = Counter((str(job.state), job.resubmissions) for job in api.get_jobs(ids) if job is not None)
    assert lives == {("ready", 1): ended.done, ("dead", 0): JOBS - ended.done}
    complaints.forgive("WebSocket connection")
    complaints.forgive("ERR_")


def now(operation: BulkOperation) -> BulkOperation:
    return api.bulk.get(operation.id)
