"""Two web processes, as many may stand behind one address, below a path of a proxy."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.db import connection
from playwright.sync_api import Browser, expect

from tests.browser.conftest import PATIENCE_MS, Complaints, session, settle
from tests.browser.proxy import Proxy
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

ROOT = Path(__file__).parents[2]
PREFIX = "/mainspring"


class WebProcess:
    """A real ``uvicorn``."""

    def __init__(self, environment: dict[str, str], log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        arguments = ["--port", str(self.port), "--ws", "websockets-sansio", "--lifespan", "off"]
        command = [sys.executable, "-m", "uvicorn", "scheduler_project.asgi:application", *arguments]
        with log.open("w") as output:
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT)

    def answers(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.port)) == 0

    def end(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)


def database_url() -> str:
    """The database of this test run, for another process."""
    facts = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{facts['NAME']}"
    return f"postgres://{facts['USER']}:{facts['PASSWORD']}@{facts['HOST']}:{facts['PORT']}/{facts['NAME']}"


@pytest.fixture
def web_processes(
    transactional_db: None, valkey_url: str, namespace: str, tmp_path: Path
) -> Iterator[list[WebProcess]]:
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "tests.settings",  # for its passwords
        "SCHEDULER_REDIS_URL": valkey_url,
        "SCHEDULER_NAMESPACE": namespace,
        "SCHEDULER_VAR_DIR": str(tmp_path / "var"),
        "DATABASE_URL": database_url(),
        "DJANGO_SCRIPT_NAME": PREFIX,
    }
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
    page.context.close()
