"""The page of a run in a real browser: every look, the picture under keys and pointer, nothing that moves by itself."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Site, Visit, settle
from tests.browser.test_everywhere import findings_in_every_look, fits
from tests.dashboard.seeding import Shop
from tests.support.runs import Runs

NODES: list[dict[str, Any]] = [
    {"key": "extract"},
    *({"key": f"page:{number}", "depends_on": ["extract"]} for number in range(60)),
    {"key": "merge", "depends_on": [f"page:{number}" for number in range(60)]},
    {"key": "publish", "depends_on": ["merge"], "type": "", "approval": "Shall it go out?"},
    {"key": "alarm", "on_failure": ["merge"]},
    {"key": "clean-up-with-a-name-that-is-longer-than-its-box", "on_complete": ["publish"]},
]


@pytest.fixture
def runs(shop: Shop) -> Runs:
    return Runs(shop.engine)


def view_box(page: Page) -> list[float]:
    return [float(number) for number in str(page.locator("[data-graph]").get_attribute("viewBox")).split()]


def test_a_run_passes_axe_and_never_scrolls_sideways(visit: Visit, runs: Runs, site: Site) -> None:
    run = runs.start(*NODES)
    runs.run_all({"page:7": "cancelled"})
    asking = runs.start(*NODES[:1], {**NODES[-3], "depends_on": ["extract"]}, {**NODES[-1], "on_complete": ["extract"]})
    runs.run_all()
    page = visit("operator", "/livez")
    for path in (f"{asking}/", f"{run}/?node=merge&plan=failed&state=skipped", f"{run}/?view=timeline"):
        page.goto(f"{site.url}/dashboard/workflows/{path}")
        settle(page)

        assert findings_in_every_look(page) == [], path
        for width in (320, 720, 1000, 1440, 3840):
            page.set_viewport_size({"width": width, "height": 800})

            assert fits(page), (path, width)


def test_the_picture_is_zoomed_fitted_and_walked_by_keys(visit: Visit, runs: Runs) -> None:
    run = runs.start(*NODES[:2], {"key": "end", "depends_on": ["page:0"]})
    page = visit("viewer", f"/dashboard/workflows/{run}/")
    settle(page)
    whole = view_box(page)

    page.get_by_role("button", name="Zoom in").click()
    assert view_box(page)[2] < whole[2]
    page.get_by_role("button", name="Fit").click()
    assert view_box(page)[2] == pytest.approx(whole[2])

    page.locator("[data-box=extract]").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-box='page:0']")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-box=extract]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator(".one h2")).to_have_text("extract")


def test_states_change_colour_and_word_while_boxes_and_the_view_stay(visit: Visit, runs: Runs) -> None:
    run = runs.start({"key": "a"}, {"key": "b", "depends_on": ["a"]})
    page = visit("viewer", f"/dashboard/workflows/{run}/")
    settle(page)
    page.get_by_role("button", name="Zoom in").click()
    seen, place = view_box(page), page.locator("[data-box=b] .card").get_attribute("x")

    runs.run_all()

    expect(page.locator("[data-box=b]")).to_have_class(re.compile("is-succeeded"))
    expect(page.locator("[data-box=b] .word")).to_contain_text("succeeded")
    assert view_box(page) == seen
    assert page.locator("[data-box=b] .card").get_attribute("x") == place


def test_the_picture_follows_what_runs_when_asked(visit: Visit, runs: Runs) -> None:
    keys = [f"step-{number}" for number in range(30)]
    chain = [{"key": key, "depends_on": [before]} for before, key in pairwise(keys)]
    run = runs.start({"key": keys[0]}, *chain)
    page = visit("viewer", f"/dashboard/workflows/{run}/")
    settle(page)
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    page.get_by_role("button", name="Follow").click()
    last = page.locator(f"[data-box={keys[-1]}]")
    expect(last).not_to_be_in_viewport()

    for _ in keys[1:]:
        runs.end(*runs.lease())
    (job,) = runs.lease()
    runs.engine.leases.start(job.route, [(job.id, job.token, job.leased_at)])

    expect(last).to_have_class(re.compile("is-leased"))
    expect(last).to_be_in_viewport()


def test_a_phone_opens_on_the_table_and_the_page_works_without_script(visit: Visit, runs: Runs) -> None:
    run = runs.start(*NODES)
    phone = visit("viewer", f"/dashboard/workflows/{run}/", width=390)
    settle(phone)
    expect(phone.locator("[data-graph]")).to_be_hidden()
    expect(phone.locator("[data-key='node extract']")).to_be_visible()
    phone.set_viewport_size({"width": 1280, "height": 800})  # and when it is turned, the picture has been measured
    phone.wait_for_function("document.querySelector('[data-graph]').viewBox.baseVal.width.toFixed() < 5000")

    page = visit("viewer", f"/dashboard/workflows/{run}/", script=False)
    page.locator("[data-box=merge]").click()

    expect(page.locator(".one h2")).to_have_text("merge")


def test_a_picture_that_is_seen_whole_stays_whole_in_a_smaller_window(visit: Visit, runs: Runs) -> None:
    run = runs.start(*NODES[:2], {"key": "end", "depends_on": ["page:0"]})
    page = visit("viewer", f"/dashboard/workflows/{run}/", width=2560)
    settle(page)
    width = float(str(page.locator("[data-graph]").get_attribute("width")))

    page.set_viewport_size({"width": 900, "height": 800})

    page.wait_for_function(
        """width => {
          const box = document.querySelector("[data-graph]").getAttribute("viewBox").split(" ").map(Number);
          return box[0] <= 0 && box[0] + box[2] >= width && Math.abs(2 * box[0] + box[2] - width) < 1;
        }""",
        arg=width,
    )
