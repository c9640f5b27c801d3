"""10,000 events a second for ten seconds: a real web process and its open pages stay as large as they were, are told a
few times a second, and go on doing what they are asked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import PATIENCE_MS, Complaints, session, settle
from tests.browser.test_bars import measured
from tests.browser.web import WebProcess, environment_of
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

pytestmark = pytest.mark.thorough

EVENTS_A_SECOND, SECONDS = 10_000, 10
A_STEP = 1_000
FRAMES_A_SECOND = 10
"""More often nobody is told, however much happens."""

NODES, HEAP, RSS = 50, 1_000_000, 8_000_000
"""May be more after the burst than before it: so many nodes, bytes of the page's script and bytes of the process. Ten
bytes that a page kept of each event would show, and eighty that the process kept."""


@pytest.fixture
def web(transactional_db: None, valkey_url: str, namespace: str, tmp_path: Path) -> Iterator[WebProcess]:
    process = WebProcess(environment_of(valkey_url, namespace, tmp_path / "var"), tmp_path / "web.log")
    eventually(process.answers)
    yield process
    process.end()


class Open:
    """An open page, and what it is told."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.frames = 0
        page.on("websocket", lambda line: line.on("framereceived", self._count))
        page.goto(address)
        settle(page)

    def _count(self, _frame: object) -> None:
        self.frames += 1


@pytest.fixture
def pages(browser: Browser, web: WebProcess, complaints: Complaints) -> Iterator[list[Open]]:
    """The overview and a list of jobs, of an operator, on one process."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    context.add_cookies([{"name": "sessionid", "value": session("operator"), "url": web.url}])
    opened = []
    for path in ("/dashboard/", "/dashboard/jobs/"):
        page = context.new_page()
        complaints.watch(page, web)
        opened.append(Open(page, web.url + path))
    yield opened
    context.close()


def burst(shop: Shop, seconds: int) -> float:
    """So many seconds' worth of events at that rate, later where the machine is slower; how long it took."""
    started = time.monotonic()
    for step in range(seconds * EVENTS_A_SECOND // A_STEP):
        shop.many(A_STEP, pool="burst")  # each job an event
        time.sleep(max(0.0, started + (step + 1) * A_STEP / EVENTS_A_SECOND - time.monotonic()))
    return time.monotonic() - started


def until_drawn(shop: Shop, page: Page) -> int:
    """One event after the other until the chart stands, which comes with the first step of it that is over."""
    chart, events = page.locator("figure.chart"), 0
    while not chart.count():
        assert events < PATIENCE_MS / 500, "no chart came"
        shop.many(1, pool="burst")
        events += 1
        page.wait_for_timeout(500)
    return events


def memory_of(web: WebProcess) -> int:
    """Bytes of the web process that are in use."""
    status = Path(f"/proc/{web.process.pid}/status").read_text()
    return 1024 * int(status.partition("VmRSS:")[2].split()[0])


def test_a_burst_of_100_000_events_leaves_server_and_pages_calm(shop: Shop, web: WebProcess, pages: list[Open]) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from /proc, which this system has not")
    burst(shop, 2)  # a page has its size once its chart stands, whose table has a row for each minute
    ready = pages[0].page.locator('[data-figure="states.ready"]').first
    made = 2 * EVENTS_A_SECOND + until_drawn(shop, pages[0].page)
    expect(ready).to_have_text(f"{made:,}")
    for each in pages:
        each.page.wait_for_timeout(1_000)
        each.frames = 0
    before, memory = [measured(each.page) for each in pages], memory_of(web)
    took: list[float] = []
    storm = threading.Thread(target=lambda: took.append(burst(shop, SECONDS)))
    storm.start()

    for number in range(5):  # whoever looks goes on working
        search = pages[1].page.locator("input[name=type]")
        search.fill(f"email.{number}")
        pages[0].page.keyboard.press("?")
        expect(pages[0].page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        pages[0].page.keyboard.press("Escape")
        pages[0].page.wait_for_timeout(500)
        expect(search).to_have_value(f"email.{number}")
    while storm.is_alive():
        pages[0].page.wait_for_timeout(200)  # lets what is told be counted

    expect(ready).to_have_text(f"{made + SECONDS * EVENTS_A_SECOND:,}")
    for each, was in zip(pages, before, strict=True):
        now = measured(each.page)
        assert 1 <= each.frames <= FRAMES_A_SECOND * took[0]
        assert now["nodes"] <= was["nodes"] + NODES
        assert now["heap"] <= was["heap"] + HEAP
    assert memory_of(web) <= memory + RSS
