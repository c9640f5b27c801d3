"""Reading: times as ages and as moments, a clock that is wrong, pages that stand still, without motion, on paper."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Site, Visit, session, settle
from tests.dashboard.seeding import Shop

SHIFTS = """() => new Promise((done) => {
  let sum = 0;
  const watch = new PerformanceObserver((list) => list.getEntries().forEach((entry) => (sum += entry.value)));
  watch.observe({ type: "layout-shift", buffered: true });
  setTimeout(() => done(sum), 50);
})"""


COPY = """() => {
  getSelection().selectAllChildren(document.getElementById("panel"));
  const event = new ClipboardEvent("copy", { clipboardData: new DataTransfer(), bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
  getSelection().removeAllRanges();
  return event.clipboardData.getData("text/plain");
}"""
"""What the clipboard is given when all of the panel is copied."""

CLIPPED = """() => [...document.querySelectorAll("main :is(.traceback, .scroll, .inset)")]
  .filter((each) => each.scrollHeight > each.clientHeight + 1).map((each) => each.className)"""


WAITED_FOR = """async () => {
  const time = document.createElement("time");
  time.dateTime = "2020-01-01T00:00:00Z";
  time.dataset.tick = "until";
  document.body.append(time);
  (await import("/static/dashboard/time.js")).tick();
  const said = time.textContent;
  time.remove();
  return said;
}"""


def test_ages_tick_without_the_network_turn_into_moments_and_are_copied_as_iso(visit: Visit, shop: Shop) -> None:
    job_id = shop.dead()
    page = visit("viewer", f"/dashboard/jobs/{job_id}/")
    settle(page)
    page.get_by_role("button", name="Hold live updates").click()
    age = page.locator("#panel time[data-tick]").first
    moment = str(age.get_attribute("datetime"))
    assert moment.endswith("Z")
    before = age.text_content()

    expect(age).not_to_have_text(str(before))
    assert page.evaluate(WAITED_FOR) == "now", "what is due and has not begun did not happen a while ago"
    assert moment in page.evaluate(COPY)
    assert str(age.get_attribute("title")).endswith("UTC")

    age.click()
    clock = moment[11:19]
    expect(age).to_contain_text(clock)
    page.reload()
    expect(age).to_contain_text(clock)
    page.locator(".rail").get_by_role("button", name="Exact times").press("Enter")
    expect(age).to_contain_text("ago")


TEN_MINUTES_AHEAD = """
const now = Date.now;
Date.now = () => now() + 600_000;
Object.defineProperty(performance, "timeOrigin", { value: performance.timeOrigin + 600_000 });
"""


def test_a_clock_that_is_wrong_is_told_and_ages_go_by_the_server(visit: Visit, shop: Shop) -> None:
    job_id = shop.dead()
    page = visit("viewer", "/livez")
    page.add_init_script(TEN_MINUTES_AHEAD)
    page.goto(f"{page.url.removesuffix('/livez')}/dashboard/jobs/{job_id}/")

    expect(page.locator(".rail [data-skew]")).to_contain_text("This device’s clock is 10 min ahead.")
    expect(page.locator("#panel time[data-tick]").first).not_to_contain_text("min")


@pytest.mark.parametrize("path", ["/dashboard/", "/dashboard/dead/", "/dashboard/charts/"])
def test_nothing_shifts_while_a_page_loads_and_goes_live(visit: Visit, shop: Shop, path: str) -> None:
    shop.worker()
    for _ in range(3):
        shop.dead()
    page = visit("viewer", path)
    settle(page)

    assert page.evaluate(SHIFTS) < 0.02


class TestMotion:
    def test_who_wants_none_sees_none(self, visit: Visit, shop: Shop) -> None:
        page = visit("viewer", "/dashboard/")
        settle(page)
        shop.many(3)
        expect(page.locator('[data-figure="states.ready"]')).to_have_text("3")

        assert moving(page) == []
        page.emulate_media(reduced_motion="no-preference")
        assert moving(page) != []


def moving(page: Page) -> list[str]:
    """Every element that has a transition or an animation of some length."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((each) => {
          const style = getComputedStyle(each);
          return [style.transitionDuration, style.animationDuration].some((length) => parseFloat(length) > 0);
        }).map((each) => each.className)"""
    )
    return found


def test_on_paper_there_is_what_is_read_and_nothing_to_press(browser: Browser, site: Site, shop: Shop) -> None:
    shop.worker()
    job_id = shop.dead(error={"type": "E", "message": "m", "traceback": "line\n" * 200})
    context = browser.new_context(viewport={"width": 800, "height": 800}, color_scheme="dark")
    context.add_cookies([{"name": "sessionid", "value": session("operator"), "url": site.url}])
    page = context.new_page()
    for path in ("/dashboard/", "/dashboard/dead/", f"/dashboard/jobs/{job_id}/", "/dashboard/charts/"):
        page.goto(site.url + path)
        page.emulate_media(media="print")

        pressed = "button:visible, .button:visible, .rail:visible, .bar:visible, .tabs:visible, input:visible"
        assert page.locator(pressed).count() == 0
        assert page.locator("h1").is_visible()
        assert page.evaluate("getComputedStyle(document.body).colorScheme") == "light"
        assert page.evaluate(CLIPPED) == [], path
        page.emulate_media(media="screen")
    context.close()


def test_the_link_of_a_job_is_copied_whole(visit: Visit, shop: Shop) -> None:
    page = visit("viewer", f"/dashboard/jobs/{shop.dead()}/")
    settle(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    page.get_by_role("button", name="Copy link").click()

    expect(page.get_by_text("Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == page.url


def test_id_payload_traceback_and_command_are_each_copied_whole(visit: Visit, shop: Shop) -> None:
    traceback = (
        'Traceback (most recent call last):\n  File "/srv/shop/billing.py", line 88\n    raise <Declined & "gone">\n'
    )
    payload = {"to": "ana@example.com", "lines": ["a\nb", '<i>ü</i> & "c"'], "deep": {"n": [1, 2.5, None]}}
    job_id = shop.dead(payload=payload, error={"type": "Declined", "message": "no", "traceback": traceback})
    page = visit("viewer", f"/dashboard/jobs/{job_id}/")
    settle(page)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])

    def copied(name: str) -> str:
        button = page.get_by_role("button", name=name, exact=True)
        handle = button.element_handle()
        button.click()
        page.wait_for_function("button => button.classList.contains('done')", arg=handle)
        found: str = page.evaluate("navigator.clipboard.readText()")
        return found

    assert copied("Copy job id") == job_id
    assert json.loads(copied("Copy payload")) == payload
    assert copied("Copy traceback") == traceback
    assert copied("Copy command") == page.locator(".command code").text_content()


def test_a_button_pressed_twice_says_copied_and_then_again_what_it_is_for(visit: Visit, shop: Shop) -> None:
    page = visit("viewer", f"/dashboard/jobs/{shop.dead()}/")
    settle(page)
    button = page.locator("[data-copy-id]")

    button.dblclick()

    expect(button).to_have_text("Copied")
    expect(button).to_have_text("Copy job id")
    page.wait_for_timeout(1_600)  # the second press had its own time
    expect(button).to_have_text("Copy job id")


def test_what_needs_somebody_is_read_out_once_in_ten_seconds(visit: Visit, shop: Shop) -> None:
    page = visit("viewer", "/livez")
    page.clock.install()
    page.goto(page.url.replace("/livez", "/dashboard/"))
    settle(page)
    heard = page.locator("#announce")

    shop.dead()
    expect(heard).not_to_have_text("")
    first = str(heard.text_content())
    shop.ready(pool="slow")
    expect(page.locator("main")).to_contain_text("Two things need you")
    assert heard.text_content() == first

    page.clock.fast_forward(10_000)

    expect(heard).not_to_have_text(first)
