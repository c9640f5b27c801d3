"""What operators do most, done by keyboard alone: never a click, and the focus always somewhere."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from jobs import api
from tests.browser.conftest import Visit, settle
from tests.dashboard.seeding import Shop

MOST_STOPS = 80


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def walk_to(page: Page, name: str) -> None:
    """Tab until the thing of that name has the focus."""
    wanted = page.locator(":focus").and_(page.get_by_label(name).or_(page.get_by_text(name, exact=True)))
    for _ in range(MOST_STOPS):
        page.keyboard.press("Tab")
        if wanted.count():
            return
    raise AssertionError(f"Tab never came to {name}")


def test_a_failed_job_is_found_understood_and_resubmitted(visit: Visit, shop: Shop) -> None:
    shop.dead(type="mail.send")
    job_id = shop.dead(type="shop.charge")
    older = shop.dead(type="shop.charge")
    page = visit("operator")
    settle(page)
    press(page, "/")
    page.keyboard.type("state:dead insufficient type:shop.charge")
    press(page, "Enter")
    page.wait_for_url(re.compile("state=dead"))
    settle(page)
    press(page, "j", "j", "Enter")
    page.wait_for_url(f"**/jobs/{job_id}/")
    expect(page.locator(".say")).to_contain_text("insufficient funds")
    expect(page.get_by_role("link", name="2 of 2")).to_be_visible()
    settle(page)
    press(page, "[")
    page.wait_for_url(f"**/jobs/{older}/")
    expect(page.get_by_role("link", name="Next job")).to_be_visible()
    settle(page)
    press(page, "]")
    page.wait_for_url(f"**/jobs/{job_id}/")
    settle(page)

    press(page, "r")
    expect(page.get_by_role("heading", level=1)).to_have_text("Resubmit 1 job?")
    expect(page.get_by_role("link", name="Go back")).to_be_focused()
    assert shop.state(job_id) == "dead", "a letter pressed by mistake does nothing yet"
    press(page, "Tab", "Enter")

    expect(page.locator("#messages")).to_contain_text("The job was resubmitted.")
    expect(page.locator("h1 + .tag")).to_have_text("ready")
    assert shop.state(older) == "dead"
    expect(page.get_by_role("link", name="2 of 2")).to_be_visible()
    press(page, "u")
    page.wait_for_url(re.compile(r"/jobs/\?.*state=dead"))


def test_in_a_list_a_letter_asks_for_the_row_that_one_is_at_or_for_the_selected_ones(visit: Visit, shop: Shop) -> None:
    dead = [shop.dead() for _ in range(3)]
    shop.scheduled()  # a letter means another thing for it
    page = visit("operator", "/dashboard/jobs/")
    settle(page)
    while page.locator(f'[data-key="{dead[0]}"].is-current').count() == 0:
        press(page, "j")
    press(page, "r")
    expect(page.get_by_role("heading", level=1)).to_have_text("Resubmit 1 job?")
    press(page, "Tab", "Enter")
    expect(page.locator("#messages")).to_contain_text("The job was resubmitted.")

    page.goto(page.url.partition("/jobs/")[0] + "/dead/")
    settle(page)
    press(page, "*", "r")
    expect(page.get_by_role("heading", level=1)).to_have_text("Resubmit 2 jobs?")
    press(page, "Tab", "Enter")

    expect(page.locator("#messages")).to_contain_text("2 jobs resubmitted.")
    assert {shop.state(job_id) for job_id in dead} == {"ready"}


def test_a_pool_is_paused_with_a_reason(visit: Visit, shop: Shop) -> None:
    shop.ready(pool="billing")
    page = visit("operator")
    settle(page)
    press(page, "g", "p")
    page.wait_for_url("**/pools/")
    settle(page)
    press(page, "j", "p")
    expect(page.get_by_role("link", name="Go back")).to_be_focused()
    page.keyboard.press("Shift+Tab")
    walk_to(page, "Why")
    page.keyboard.type("a disk is moved")
    press(page, "Enter")

    expect(page.locator("#messages")).to_contain_text("billing")
    pool = api.pools.get("billing")
    assert pool.paused is not None
    assert (pool.paused.by, pool.paused.reason) == ("operator", "a disk is moved")
