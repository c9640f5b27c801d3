"""A real browser against the real application: uvicorn in a thread, Debian's or any Chromium, nothing from outside.

Each page that a test opens is watched: a console error, a violation of the content security policy or a request to
another host fails the test that caused it.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
import uvicorn
from django.contrib.auth.models import Permission, User
from django.test import Client
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

from dashboard import feed, reads
from tests.dashboard.conftest import ROLES
from tests.dashboard.seeding import Shop
from tests.support.wait import eventually

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--no-default-browser-check",
)
PATIENCE_MS = 30_000
"""Only what never comes is waited for so long."""

expect.set_options(timeout=PATIENCE_MS)

HARMLESS = ("the server responded with a status of",)
"""Chromium logs every answer of 400 and above as an error; tests that provoke one look at the page themselves."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser/" in item.nodeid:
            item.add_marker(pytest.mark.browser)
            # As in scheduler_project.asgi, which pytest overrules: harmless for files of our size.
            item.add_marker(pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume synchronous"))
            # A server that is stopped in the middle of a request leaves its body to the garbage collector.
            item.add_marker(pytest.mark.filterwarnings("ignore:Exception ignored in.*SpooledTemporaryFile"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all tests here, which open windows of their own: to start it takes longer than many of them. Not for the
    session, since its event loop would stand in the way of other tests."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (Debian: apt-get install chromium)")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright keeps an event loop in this thread, which Django takes for async code.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@dataclass
class Site:
    """A running web process. ``stop`` and ``start`` again keep the address."""

    port: int = 0
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        return f"http://localhost:{self.port}"

    def start(self) -> None:
        from scheduler_project.asgi import application

        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(128)
        self.port = listening.getsockname()[1]
        config = uvicorn.Config(application, lifespan="off", log_level="error", ws="websockets-sansio")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self.thread.start()
        eventually(lambda: self.server is not None and self.server.started)

    def stop(self) -> None:
        assert self.server is not None
        assert self.thread is not None
        self.server.should_exit = self.server.force_exit = True
        self.thread.join(15)
        assert not self.thread.is_alive()


@pytest.fixture
def site(browser: Browser, transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings) -> Iterator[Site]:
    monkeypatch.setattr(feed, "POLL_SECONDS", 0.1)
    monkeypatch.setattr("dashboard.overall.RETRY_AFTER_SECONDS", 0.2)
    monkeypatch.setattr("dashboard.reads.whole.flaws", tuple)  # the server of the tests keeps nothing, on purpose
    settings.ALLOWED_HOSTS = ["localhost"]
    site = Site()
    site.start()
    yield site
    site.stop()
    reads.last_known.forget()


@dataclass
class Complaints:
    """What the browser held against the pages of a test."""

    found: list[str] = field(default_factory=list)

    def forgive(self, part: str) -> None:
        """What the test itself brought about is no complaint."""
        self.found = [complaint for complaint in self.found if part not in complaint]

    def watch(self, page: Page, site: Site) -> None:
        def said(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning") and not any(part in message.text for part in HARMLESS):
                self.found.append(f"console: {message.text}")

        def asked(request: Request) -> None:
            if not request.url.startswith((site.url, site.url.replace("http", "ws"), "data:", "about:")):
                self.found.append(f"foreign request: {request.url}")

        def answered(response: Response) -> None:
            if response.status >= 500 and response.request.resource_type == "document":
                self.found.append(f"{response.status}: {response.url}")

        page.on("response", answered)
        page.on("console", said)
        page.on("pageerror", lambda error: self.found.append(f"exception: {error}"))
        page.on("request", asked)
        page.on("dialog", lambda dialog: (self.found.append(f"dialog: {dialog.message}"), dialog.dismiss()))


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    complaints = Complaints()
    yield complaints
    assert not complaints.found


OWN_CLOCK = "Function.prototype.toString.call(setTimeout).includes('native code')"
"""Playwright's clock, once installed, stays in its context for good, and in it no frame is drawn by itself."""


class Windows:
    """Browser contexts, which are dear to make, lent to one test after another: as if each were new."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[bool, list[BrowserContext]] = {True: [], False: []}
        self._lent: list[tuple[bool, BrowserContext]] = []

    def lend(self, *, script: bool) -> BrowserContext:
        """One that nobody uses, in which nothing is stored."""
        context = self._free[script].pop() if self._free[script] else self._new(script)
        self._lent.append((script, context))
        return context

    def take_back(self, origin: str) -> None:
        """Closes what was opened in those that were lent, and forgets what was stored for this origin."""
        for script, context in self._lent:
            first, *others = context.pages
            for page in others:
                page.close()
            if not first.evaluate(OWN_CLOCK):
                context.close()
                continue
            context.clear_cookies()
            context.clear_permissions()
            protocol = context.new_cdp_session(first)
            protocol.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
            protocol.detach()
            self._free[script].append(context)
        self._lent.clear()

    def _new(self, script: bool) -> BrowserContext:
        context = self._browser.new_context(reduced_motion="reduce", java_script_enabled=script)
        context.set_default_timeout(PATIENCE_MS)
        context.new_page()  # stays: without any page the window would go, and be made anew
        return context


@pytest.fixture(scope="package")
def windows(browser: Browser) -> Windows:
    return Windows(browser)


Visit = Callable[..., Page]


@pytest.fixture
def visit(windows: Windows, site: Site, complaints: Complaints) -> Iterator[Visit]:
    """``visit("operator", "/dashboard/", width=360, theme="dark")``: a page of that person, logged in."""

    def open_page(
        role: str, path: str = "/dashboard/", *, width: int = 1280, theme: str = "light", script: bool = True
    ) -> Page:
        context = windows.lend(script=script)
        if role != "anonymous":
            context.add_cookies([{"name": "sessionid", "value": session(role), "url": site.url}])
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        complaints.watch(page, site)
        page.goto(site.url + path)
        return page

    yield open_page
    windows.take_back(site.url)


@pytest.fixture
def admin(visit: Visit, site: Site) -> Page:
    """A page of somebody who may do everything."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    page = visit("anonymous", "/livez")
    page.context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}])
    return page


def session(role: str) -> str:
    """A session cookie of somebody with that role."""
    person = User.objects.filter(username=role).first()
    if person is None:
        person = User.objects.create_user(username=role, password=role)
        wanted = Permission.objects.filter(content_type__app_label="jobs", codename__in=ROLES[role])
        person.user_permissions.set(wanted)
    client = Client()
    client.force_login(person)
    return str(client.cookies["sessionid"].value)


@pytest.fixture
def shop(site: Site) -> Shop:
    return Shop()


def settle(page: Page) -> None:
    """Waits until the page is live."""
    page.locator("#live").get_by_text("Live").wait_for()
    time.sleep(0.05)
