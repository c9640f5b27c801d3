"""Two web processes, as many may stand behind one address, below a path of a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS, Complaints, session, settle
from tests.browser.proxy import Proxy
from tests.browser.web import WebProcess, environment_of
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

PREFIX = "/mainspring"


@pytest.fixture
def web_processes(
    transactional_db: None, valkey_url: str, namespace: str, tmp_path: Path
) -> Iterator[list[WebProcess]]:
    environment = environment_of(valkey_url, namespace, tmp_path / "var") | {"DJANGO_SCRIPT_NAME": PREFIX}
    processes = [WebProcess(environment, tmp_path / f"web-{number}.log") for number in range(2)]
    try:
        eventually(lambda: all(process.answers() for process in processes), within=60)
        yield processes
    finally:
        for process in processes:
            process.end()


@pytest.fixture
def proxy(web_processes: list[WebProcess]) -> Iterator[Proxy]:
    proxy = Proxy(PREFIX, [process.port for process in web_processes])
    yield proxy
    proxy.stop()


def test_what_one_process_does_is_seen_through_the_other_and_one_may_die(
    browser: Browser, complaints: Complaints, proxy: Proxy, web_processes: list[WebProcess]
) -> None:
    shop = Shop()
    job_id = shop.dead()
    session("operator")  # makes the person
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    complaints.watch(page, proxy)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    page.on("websocket", lambda socket: asked.append(urlsplit(socket.url).path))

    page.goto(f"{proxy.url}{PREFIX}/dashboard/dead/")
    page.get_by_label("Name").fill("operator")
    page.get_by_label("Password").fill("operator")
    page.get_by_role("button", name="Log in").click()
    expect(page).to_have_url(f"{proxy.url}{PREFIX}/dashboard/dead/")
    settle(page)
    page.locator(f'[data-key="{job_id}"] [data-open]').click()
    page.get_by_role("button", name="Resubmit").click()
    expect(page.locator("h1 + .tag")).to_have_text("ready")

    assert all(proxy.served.values())
    assert {path for path in asked if not path.startswith(f"{PREFIX}/")} == set()
    assert f"{PREFIX}/ws/dashboard/" in asked
    for process in web_processes[:1]:
        process.end()
    shop.fail(job_id, "dead")
    expect(page.locator("h1 + .tag")).to_have_text("dead")
    complaints.forgive("WebSocket connection")
    complaints.forgive("ERR_")
    complaints.forgive("dynamically imported")  # asked of the one that had just ended
    page.context.close()
