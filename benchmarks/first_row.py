"""How long a reader waits for the first row of a list of jobs with 5,000 dead ones, in a browser that has nothing yet.

From the beginning of the navigation until the frame is drawn that shows the first row, in Chromium, 1440 × 900. *Cold*
is the browser: a fresh profile for each load, so every file is asked for. The web process is one that already serves;
most of what its pages remember for some seconds has gone stale between two loads.

Wall time means nothing on a machine that does other things. So an empty page of the same process is loaded in turn, in
a fresh profile too: that much of the wait is the browser's own.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from statistics import median
from typing import Any, NamedTuple

from benchmarks.project import BATCH, Seeder, session_of, set_up
from benchmarks.server import BenchmarkServer
from benchmarks.sockets import Web

DEAD = 5_000
ROUNDS, SHORT_ROUNDS = 9, 3
BAR_MS = 400
STALE_AFTER_SECONDS = 2.0  # all that the page remembers but the figures of a day

LIST, EMPTY = "/dashboard/jobs/?state=dead", "/livez"

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking")

# No loop of frames: drawing them, which the processor does here, would itself delay what is waited for.
WATCH = """
const rows = new MutationObserver(() => {
  if (!document.querySelector("#rows > tr")) return;
  rows.disconnect();
  requestAnimationFrame(() => {
    const afterFrame = new MessageChannel();
    afterFrame.port1.onmessage = () => { window.firstRowAt = performance.now(); };
    afterFrame.port2.postMessage(null);
  });
});
rows.observe(document, { childList: true, subtree: true });
"""

TIMES = """() => {
  const [page] = performance.getEntriesByType("navigation");
  const painted = performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0;
  return { answer: page.responseStart, painted, row: Math.max(window.firstRowAt ?? 0, painted) };
}"""


class Wait(NamedTuple):
    """Milliseconds from the beginning of a navigation."""

    answer: float  # the first byte of the page
    painted: float  # anything of it in sight
    row: float  # the first row in sight; of a page without rows the same


def run(*, short: bool, as_json: bool, persistent: bool) -> bool:
    """Whether the first row is in sight within 400 ms, in the median."""
    rounds = SHORT_ROUNDS if short else ROUNDS
    with BenchmarkServer(persistent=persistent) as server:
        set_up(server)
        cookie = session_of("ana")
        seeder = Seeder()
        for _ in range(0, DEAD, BATCH):
            seeder.make_of("dead", BATCH)
        with Web(server) as web:
            rows, empty = _loads(web, cookie, rounds)
    _tell(rows, empty, as_json=as_json)
    return median(wait.row for wait in rows) <= BAR_MS


def _loads(web: Web, cookie: str, rounds: int) -> tuple[list[Wait], list[Wait]]:
    """The list and the empty page in turn, after one load of each that counts for nothing."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        raise SystemExit("No browser: install chromium, or name one in CHROMIUM.")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop in this thread
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        pairs = [(_load(browser, web, cookie, LIST), _load(browser, web, cookie, EMPTY)) for _ in range(rounds + 1)]
        browser.close()
    rows, empty = zip(*pairs[1:], strict=True)
    return list(rows), list(empty)


def _load(browser: Any, web: Web, cookie: str, path: str) -> Wait:
    site = f"http://localhost:{web.port}"
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": site}])
    context.add_init_script(WATCH)
    page = context.new_page()
    if path == LIST:
        time.sleep(STALE_AFTER_SECONDS)
    page.goto(site + path)
    if path == LIST:
        page.locator("#rows > tr").first.wait_for()
    page.wait_for_timeout(300)  # for what the browser notes about the frame
    wait = Wait(**page.evaluate(TIMES))
    context.close()
    return wait


def _tell(rows: list[Wait], empty: list[Wait], *, as_json: bool) -> None:
    middle = Wait(*(round(median(column)) for column in zip(*rows, strict=True)))
    bare = round(median(wait.painted for wait in empty))
    if as_json:
        print(json.dumps({"dead": DEAD, "bar_ms": BAR_MS, **middle._asdict(), "empty_page": bare, "loads": rows}))
        return
    waits = [round(wait.row) for wait in rows]
    print(
        f"First row of {DEAD:,} dead jobs, cold: {middle.row} ms ({min(waits)} to {max(waits)}; bar {BAR_MS}), "
        f"the answer after {middle.answer}; an empty page is drawn after {bare} ms"
    )
