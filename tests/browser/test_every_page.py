"""Every page once more: cut off from its server while it is open, and walked from end to end by Tab alone."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.browser.conftest import Complaints, Site, Visit, settle
from tests.browser.test_everywhere import PAGES
from tests.dashboard.seeding import Shop

MOST_STOPS = 120

CHARTS_STAND = "() => [...document.querySelectorAll('[data-chart] .canvas')].every((each) => each.tabIndex === 0)"
"""A chart is a stop of its own once its script has drawn it."""

STOPS = """() => {
  const stops = "a[href], button, input, select, textarea, summary, [tabindex='0']";
  window.stops = [...document.getElementById("main").querySelectorAll(stops)]
    .filter((each) => each.checkVisibility({ visibilityProperty: true }) && !each.disabled && each.type !== "hidden");
  return window.stops.length;
}"""
"""They are known by themselves: a mark on them would be gone with the next news."""

STOP = """() => {
  const each = document.activeElement;
  const marked = [each, each.parentElement].filter(Boolean).some((one) => {
    const style = getComputedStyle(one);
    return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  });
  return { stop: window.stops.indexOf(each), marked, html: each.outerHTML.slice(0, 120) };
}"""


def test_each_page_that_loses_its_server_says_so_dims_and_comes_back(
    visit: Visit, site: Site, shop: Shop, complaints: Complaints
) -> None:
    shop.worker()
    shop.dead()
    first = visit("administrator", "/livez")
    open_pages: dict[str, Page] = {}
    for path in PAGES:
        page = open_pages[path] = first.context.new_page()
        page.goto(site.url + path)
    for page in open_pages.values():
        settle(page)
    said = {path: page.locator("h1").text_content() for path, page in open_pages.items()}

    site.stop()

    for path, page in open_pages.items():
        expect(page.locator("#cut-off")).to_be_visible(timeout=20_000)
        expect(page.locator("#live")).to_contain_text("Offline")
        assert page.locator("h1").text_content() == said[path]
        assert "is-stale" in str(page.locator("body").get_attribute("class")), path
        offered = page.locator("#panel form:not([data-keep], [method=get]) button.button:enabled")
        assert offered.count() == 0, (path, offered.first.evaluate("each => each.outerHTML"))

    site.start()

    for page in open_pages.values():
        page.evaluate("dispatchEvent(new Event('online'))")  # as a browser says that has its network back
        expect(page.locator("#cut-off")).to_be_hidden()
        settle(page)
    complaints.forgive("ERR_CONNECTION_REFUSED")


def test_each_page_is_walked_by_tab_alone_with_the_focus_in_sight(visit: Visit, site: Site, shop: Shop) -> None:
    shop.worker()
    shop.dead()
    page = visit("administrator", "/livez")
    for path in PAGES:
        page.goto(site.url + path)
        settle(page)
        page.wait_for_function(CHARTS_STAND)
        page.locator("#pause").click()  # what comes now would come between the steps
        expect(page.locator("#live")).to_contain_text("On hold")
        wanted = page.evaluate(STOPS)
        page.locator("#main").focus()
        reached: list[int] = []
        for _ in range(MOST_STOPS):
            page.keyboard.press("Tab")
            found = page.evaluate(STOP)
            if found["stop"] < 0:
                break
            assert found["marked"], (path, found["html"])
            reached.append(found["stop"])

        assert reached == list(range(wanted)), path  # in the order in which they are read
