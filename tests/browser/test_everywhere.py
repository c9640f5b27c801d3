"""Every page: with a keyboard only, on a phone, in both themes, without script, with hostile jobs in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from dashboard.panels import ELSEWHERE, PANELS
from jobs import api
from jobs.core.job import JobSpec
from jobs.models import Schedule
from jobs.services.bulk import BulkWorker
from tests.browser.conftest import Visit, settle
from tests.dashboard.seeding import Shop
from tests.dashboard.test_pages import MARK

PAGES = (
    *(f"/dashboard/{'' if panel.slug == 'overview' else f'{panel.slug}/'}" for panel in (*PANELS, *ELSEWHERE)),
    "/dashboard/timezone/",
)
"""Every page that there is."""

EMPTY = tuple(path for path in PAGES if path not in ("/dashboard/doctor/", "/dashboard/timezone/"))
"""Those that have nothing to show until something has happened."""

OTHERS = (
    "/dashboard/actions/matching/discard/?state=dead",
    "/dashboard/actions/job/new/?type=samples.greet",
    "/dashboard/actions/pool/purge/?id=default",
    "/dashboard/bulk/?id=waits",
    "/dashboard/pools/?name=default",
    "/dashboard/schedules/?name=nightly",
    "/dashboard/charts/?range=24h&pool=default",
)
"""The same pages about one thing, or about to do something."""

STATES = ("scheduled", "ready", "leased", "retry_wait", "succeeded", "dead", "cancelled")


@pytest.fixture
def full(shop: Shop) -> dict[str, str]:
    """One job in each state, a pool without a worker, a paused one, a worker that is well and one that is not."""
    shop.worker()
    shop.worker(host="host-2", state="not consuming: the store does not answer", hostname="app-2")
    made = {state: shop.in_state(state) for state in STATES}
    shop.ready(pool="a-pool-with-a-very-long-name-that-has-to-go-somewhere", type="a.very.long.type.name." + "x" * 80)
    shop.ready(pool="paused")
    shop.engine.pools.pause("paused", by="ana", reason="a disk is moved, which takes a while, and then some more")
    schedules_of_every_kind()
    made["long"] = shop.dead(
        type="unbroken" * 12,
        payload={"text": "unbroken" * 60, "nested": {"list": list(range(30))}},
        error={"type": "ValueError", "message": "unbroken" * 60, "traceback": "File " + "unbroken" * 60},
        tags=("unbroken" * 10,),
    )
    api.bulk.start("resubmit", api.JobFilter(search="unbroken"), id="waits")
    BulkWorker(shop.engine).tick()
    return made


def schedules_of_every_kind() -> None:
    """One that is on, a paused one, one that cannot fire, with the longest words there may be."""
    common = {"job_type": "email.send", "cron": "0 0 * * *", "timezone": "America/Argentina/ComodRivadavia"}
    paused = {"paused_at": datetime.now(UTC), "paused_by": "ana", "paused_reason": "unbroken" * 20}
    Schedule.objects.bulk_create(
        [
            Schedule(name="nightly", **common),
            Schedule(name="unbroken" * 12, **{**common, **paused}),
            Schedule(name="broken", **{**common, "cron": "unbroken" * 20}, error="unbroken" * 20),
            *(Schedule(name=f"crowd-{number}", **common) for number in range(12)),
        ]
    )


def go(page: Page, path: str) -> None:
    """To a page that this person may see."""
    answer = page.goto(page.url.partition("/dashboard")[0].removesuffix("/livez") + path)
    assert answer is not None
    assert answer.ok, (path, answer.status)


IMPACTS = ("minor", "moderate", "serious", "critical")


def found_by_axe(page: Page, impacts: tuple[str, ...] = IMPACTS, *, rules: Sequence[str] = ()) -> list[str]:
    """What axe holds against the page; ``rules``: only these. What it approves of is neither kept nor sent."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: list[dict[str, Any]] = page.evaluate(
        "async options => (await axe.run(options)).violations",
        {"resultTypes": ["violations"], "selectors": False} | only,
    )
    return [
        f"{rule['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for rule in found
        if rule["impact"] in impacts
        for node in rule["nodes"]
    ]


def serious(page: Page) -> list[str]:
    """The same, of pages that are Django's own in part."""
    return found_by_axe(page, ("serious", "critical"))


LOOKS: tuple[tuple[int, str, tuple[str, ...]], ...] = (
    (1280, "light", ()),
    # The same elements: what a narrow page and other colours may break. All colours are computed in test_tokens.
    (360, "dark", ("color-contrast", "scrollable-region-focusable", "link-in-text-block")),
)


def findings_in_every_look(page: Page) -> list[str]:
    """What axe finds in both themes and on a phone."""
    found: list[str] = []
    for width, theme, rules in LOOKS:
        page.set_viewport_size({"width": width, "height": 800})
        page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        found += found_by_axe(page, rules=rules)
    return found


class TestAxe:
    def test_full_pages(self, visit: Visit, full: dict[str, str]) -> None:
        page = visit("owner")
        jobs = [f"/dashboard/jobs/{full[name]}/" for name in ("leased", "succeeded", "long")]
        others = (*OTHERS, f"/dashboard/dead/?group={api.error_groups()[0].fingerprint}")
        for path in (*PAGES, *jobs, *others):
            go(page, path)

            assert findings_in_every_look(page) == [], path

    @pytest.mark.thorough
    def test_empty_pages_say_so_and_the_login(self, visit: Visit) -> None:
        page = visit("administrator")
        for path in (*PAGES, "/dashboard/jobs/gone/", "/nowhere"):
            page.goto(page.url.partition("/dashboard")[0] + path)

            if path in EMPTY:
                expect(page.locator("#panel .empty").first, path).to_contain_text(re.compile(r"\w+ \w+.*\."))
            assert findings_in_every_look(page) == [], path
        assert findings_in_every_look(visit("anonymous", "/accounts/login/")) == []


FITS = """async () => {
  for (let frames = 0; frames < 60; frames += 1) {
    if (document.documentElement.scrollWidth <= innerWidth) return true;
    await new Promise(requestAnimationFrame);
  }
  return false;
}"""


def fits(page: Page) -> bool:
    """Whether nothing hangs over the right edge, once what is drawn by script has followed the page's width."""
    return bool(page.evaluate(FITS))


CUT_OFF = """[...document.querySelectorAll(".scroll")]
  .filter((box) => !box.closest("details") && box.scrollWidth > box.clientWidth + 1)
  .map((box) => box.getAttribute("aria-label"))"""
"""Tables that a narrow page does not show whole; but for the figures of charts, which are folded away."""


LINKS_CUT_AWAY = """() => {
  const clip = (link) => {
    let each = link.parentElement;
    while (each && !["hidden", "clip"].includes(getComputedStyle(each).overflowX)) each = each.parentElement;
    return each?.getBoundingClientRect();
  };
  const gone = (link) => {
    const [at, seen] = [link.getClientRects()[0], clip(link)];
    return at && seen && (at.left >= seen.right - 4 || at.top >= seen.bottom - 4);
  };
  return [...document.querySelectorAll("#main a[href]:not(.unseen)")]
    .filter((link) => link.checkVisibility() && gone(link)).map((link) => link.outerHTML);
}"""
"""Links that the keyboard reaches and nobody sees: beyond the end of a line that is cut."""


@pytest.mark.thorough
def test_no_page_scrolls_sideways(visit: Visit, full: dict[str, str]) -> None:
    page = visit("owner")
    jobs = [f"/dashboard/jobs/{job_id}/" for job_id in full.values()]
    others = (*OTHERS, f"/dashboard/dead/?group={api.error_groups()[0].fingerprint}")
    for path in (*PAGES, *jobs, *others):
        go(page, path)
        for width in (320, 360, 720, 1000, 1440, 3840):
            page.set_viewport_size({"width": width, "height": 800})

            assert fits(page), (path, width)
            if width <= 720:
                assert page.evaluate(CUT_OFF) == [], (path, width)
                assert page.evaluate(LINKS_CUT_AWAY) == [], (path, width)
    page.goto(page.url.partition("/dashboard")[0] + "/dashboard/pools/")
    for width in (730, 900, 1100, 1300, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        edges = page.locator(".pools .button").evaluate_all(
            "all => all.map(each => each.getBoundingClientRect().right)"
        )
        assert max(edges) <= width, f"the buttons of pools are in sight at {width}"


def test_on_the_narrowest_page_the_bar_is_one_line_and_each_state_is_whole(visit: Visit, full: dict[str, str]) -> None:
    page = visit("operator", "/dashboard/jobs/", width=320)
    settle(page)
    [brand, pause, line] = [
        page.locator(f".bar {part}").evaluate("each => each.getBoundingClientRect().bottom")
        for part in (".brand", "#pause", ".live")
    ]
    cut = page.locator(".jobs .state-cell").evaluate_all(
        "all => all.filter(each => each.querySelector('.state').getBoundingClientRect().right > "
        "each.nextElementSibling.nextElementSibling.getBoundingClientRect().left).map(each => each.textContent.trim())"
    )

    assert abs(brand - pause) < 20
    assert abs(brand - line) < 20
    assert cut == []


def test_on_a_phone_targets_are_large_enough_and_a_job_can_be_resubmitted(visit: Visit, full: dict[str, str]) -> None:
    page = visit("operator", f"/dashboard/jobs/{full['dead']}/", width=360)
    settle(page)
    heights = page.locator("main button:visible, .tabs a:visible, .tabs summary").evaluate_all(
        "all => all.map(each => [each.textContent.trim(), each.getBoundingClientRect().height])"
    )
    small = [name for name, height in heights if height < 44]

    assert small == []
    page.get_by_role("button", name="Resubmit").click()
    expect(page.locator("h1 + .tag")).to_have_text("ready")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_field_of_a_form_looks_like_the_others(theme: str, visit: Visit, shop: Shop) -> None:
    page = visit("administrator", f"/dashboard/actions/job/edit/?id={shop.dead()}", theme=theme)
    looks = page.locator("main textarea, main input:visible").evaluate_all(
        "all => all.map(each => [each.localName, getComputedStyle(each).backgroundColor, "
        "getComputedStyle(each).borderColor, getComputedStyle(each).color])"
    )

    assert {name for name, *_ in looks} == {"input", "textarea"}
    assert len({tuple(look) for _, *look in looks}) == 1, looks


class TestKeyboard:
    def test_the_first_stop_is_a_link_over_the_navigation(self, visit: Visit) -> None:
        page = visit("viewer")

        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        page.keyboard.press("Enter")

        expect(page.locator("main")).to_be_focused()

    def test_keys_find_go_move_select_open_and_explain(self, visit: Visit, full: dict[str, str]) -> None:
        page = visit("operator")
        settle(page)
        page.keyboard.press("/")
        expect(page.locator("#find")).to_be_focused()
        page.keyboard.type("g d ?")
        expect(page.locator("#find")).to_have_value("g d ?")
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        page.keyboard.press("d")
        page.wait_for_url("**/dashboard/dead/")
        settle(page)
        page.keyboard.press("j")
        page.keyboard.press("j")
        page.keyboard.press("x")
        expect(page.locator("#rows > tr:nth-child(2)")).to_have_class("is-row is-current is-picked")
        page.keyboard.press("k")
        page.keyboard.press("Enter")
        page.wait_for_url("**/dashboard/jobs/*/")
        settle(page)
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        page.keyboard.press("Escape")
        page.keyboard.press("u")
        page.wait_for_url("**/dashboard/dead/")

    def test_keys_select_ranges_and_pages_and_turn_the_light_off(self, visit: Visit, shop: Shop) -> None:
        for _ in range(4):
            shop.dead()
        page = visit("operator", "/dashboard/jobs/")
        settle(page)
        for key in ("j", "x", "j", "j", "X"):
            page.keyboard.press(key)
        expect(page.locator("[data-selected]")).to_have_text("3 selected")
        page.keyboard.press("*")
        expect(page.locator("[data-selected]")).to_have_text("4 selected")

        page.keyboard.press("t")

        expect(page.locator("html")).to_have_attribute("data-theme", "dark")

    def test_a_job_is_cancelled_with_tab_and_enter_alone(self, visit: Visit, shop: Shop) -> None:
        job_id = shop.ready()
        page = visit("operator", f"/dashboard/jobs/{job_id}/")
        settle(page)
        passed: list[str] = []
        while "Cancel" not in passed and len(passed) < 60:
            page.keyboard.press("Tab")
            passed.append(page.evaluate("document.activeElement.textContent.trim()"))
        assert "Cancel" in passed, passed
        expect(page.locator("*:focus")).to_have_css("outline-style", "solid")

        page.keyboard.press("Enter")

        expect(page.locator("h1 + .tag")).to_have_text("cancelled")

    def test_shortcuts_can_be_switched_off(self, visit: Visit) -> None:
        page = visit("viewer")
        settle(page)
        page.keyboard.press("?")
        page.get_by_label("Shortcuts on").uncheck()
        page.get_by_role("button", name="Close").click()

        page.keyboard.press("/")

        expect(page.locator("#find")).not_to_be_focused()


class TestWithoutScript:
    def test_one_can_log_in_filter_page_and_act(self, visit: Visit, shop: Shop) -> None:
        for _ in range(3):
            shop.dead(pool="billing")
        visit("operator")
        page = visit("anonymous", "/dashboard/dead/", script=False)
        page.get_by_label("Name").fill("operator")
        page.get_by_label("Password").fill("operator")
        page.get_by_role("button", name="Log in").click()
        expect(page.locator("h1")).to_have_text("3 dead jobs")

        page.get_by_label("Pool").fill("billing")
        page.get_by_role("button", name="Filter").click()
        expect(page.locator(".chip")).to_contain_text("billing")
        page.locator("#rows input").first.check()
        page.locator(".bulk").get_by_role("button", name="Resubmit", exact=True).click()
        expect(page.locator("#messages")).to_contain_text("The job was resubmitted.")
        expect(page.locator("#rows > tr")).to_have_count(2)
        page.get_by_role("button", name="Resubmit all 2").click()
        page.get_by_role("button", name="Resubmit 2 jobs").click()
        expect(page.locator("#messages")).to_contain_text("Resubmit has been asked for.")
        worker = BulkWorker(shop.engine)
        worker.step()
        worker.step()
        page.reload()
        expect(page.get_by_text("2 of 2 jobs resubmitted")).to_be_visible()


def test_the_theme_is_rendered_by_the_server_once_chosen(visit: Visit) -> None:
    page = visit("viewer")
    page.get_by_role("button", name="Dark", exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.wait_for_timeout(300)

    page.reload()

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(19, 20, 22)"


def test_hostile_jobs_are_only_text(visit: Visit, shop: Shop) -> None:
    error = {"type": MARK, "message": MARK, "traceback": MARK}
    job_id = shop.dead(type=MARK, tags=(MARK,), payload={MARK: MARK}, error=error)
    shop.worker(hostname=MARK, state=MARK)
    shop.engine.jobs.enqueue(JobSpec(type="x", id=MARK), [b"{}"])
    page = visit("administrator")
    for path in (*PAGES, f"/dashboard/jobs/{job_id}/"):
        page.goto(page.url.partition("/dashboard")[0] + path)
        settle(page)
        shop.many(1)
        page.wait_for_timeout(200)
    page.goto(page.url.partition("/dashboard")[0] + f"/dashboard/jobs/{job_id}/")

    expect(page.locator("h1")).to_have_text(MARK)
