"""Acting in a browser: on all that match, watched until it is done; with another payload; a new job, by keyboard."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Route, expect

from jobs import job
from jobs.registry import registry
from jobs.services.bulk import BulkWorker
from tests.browser.conftest import Visit, settle
from tests.dashboard.seeding import Shop


@pytest.fixture(autouse=True)
def types() -> Iterator[None]:
    def charge(amount: int, currency: str = "EUR", *, dry: bool = False, items: list[str] | None = None) -> None:
        """Charges a card."""

    with registry.restored():
        job("shop.charge")(charge)
        yield


def test_a_group_is_resubmitted_and_watched_until_it_is_done_and_undone(visit: Visit, shop: Shop) -> None:
    for amount in range(12):
        shop.dead(type="shop.charge", payload={"amount": amount, "currency": "EUR", "customer": {"plan": "pro"}})
    shop.dead(type="mail.send", error={"type": "TimeoutError", "message": "no answer", "traceback": ""})
    page = visit("operator", "/dashboard/dead/")
    settle(page)
    page.get_by_role("link", name="Declined", exact=True).click()
    expect(page.get_by_role("heading", name="What they share")).to_be_visible()
    settle(page)
    page.get_by_role("button", name="Resubmit all").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Resubmit 12 jobs?")
    expect(page.get_by_role("link", name="Go back")).to_be_focused()
    page.get_by_label("At most so many a second").fill("5")
    page.get_by_label("Why").fill("fixed in 4.2")
    page.get_by_role("button", name="Resubmit 12 jobs").click()
    page.wait_for_url("**/bulk/?id=*")
    settle(page)

    worker = BulkWorker(shop.engine)
    worker.step()
    worker.step()
    expect(page.get_by_text("5 of 12 jobs resubmitted")).to_be_visible()
    page.get_by_role("button", name="Stop here").click()
    expect(page.get_by_text("The other 7 are as they were.")).to_be_visible()
    expect(page.locator("h1 + .tag")).to_have_text("cancelled")
    page.get_by_role("link", name="Undo").click()
    page.get_by_role("button", name="Undo").click()
    page.wait_for_url("**/bulk/?id=*-undo")
    settle(page)
    worker.tick()
    expect(page.get_by_text("5 of 5 jobs cancelled.")).to_be_visible()


def test_a_payload_is_edited_and_the_job_page_tells_of_it(visit: Visit, shop: Shop) -> None:
    job_id = shop.dead(type="shop.charge", payload={"amount": 3})
    page = visit("administrator", f"/dashboard/jobs/{job_id}/")
    settle(page)
    page.get_by_role("link", name="Edit payload, then resubmit").click()
    page.get_by_label("Payload").fill('{"amount": "many"}')
    page.get_by_role("button", name="Edit payload, then resubmit").click()
    expect(page.get_by_role("alert")).to_contain_text("argument 'amount'")
    expect(page.get_by_label("Payload")).to_have_value('{"amount": "many"}')
    page.get_by_label("Payload").fill('{"amount": 4}')
    page.get_by_role("button", name="Edit payload, then resubmit").click()

    expect(page.get_by_text("before: amount=3")).to_be_visible()
    assert shop.engine.jobs.get(job_id).payload == {"amount": 4}


def test_a_job_is_made_by_keyboard_alone(visit: Visit, shop: Shop) -> None:
    page = visit("maker", "/dashboard/jobs/")
    page.get_by_role("link", name="New job").press("Enter")
    page.get_by_label("Type", exact=True).select_option("shop.charge")
    page.get_by_role("button", name="Next").press("Enter")
    page.get_by_label("amount", exact=True).press_sequentially("7")
    page.keyboard.press("Enter")

    page.wait_for_url("**/dashboard/jobs/*/")
    expect(page.locator("h1")).to_have_text("shop.charge")
    expect(page.get_by_text("The job was made.")).to_be_visible()


def test_a_row_is_peeked_at_and_its_job_moved_with_the_keyboard_alone(visit: Visit, shop: Shop) -> None:
    shop.ready(pool="slow")
    shop.ready(type="shop.charge", payload={"amount": 3})
    page = visit("operator", "/dashboard/jobs/?pool=default&state=ready")
    settle(page)
    page.keyboard.press("j")
    page.keyboard.press("e")
    expect(page.locator("tr.peek")).to_contain_text("amount=3")
    shop.scheduled()  # the list is brought up to date under it
    settle(page)
    page.keyboard.press("j")
    expect(page.get_by_role("link", name="Open the job")).to_be_focused()
    page.keyboard.press("k")
    page.keyboard.press("e")
    expect(page.locator("tr.peek")).to_have_count(0)

    page.keyboard.press("x")
    page.get_by_role("button", name="Move", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Move 1 job?")
    page.get_by_label("To the pool").focus()
    page.keyboard.type("slow")
    page.keyboard.press("Tab")
    page.keyboard.type("too many here")
    page.keyboard.press("Enter")

    expect(page.get_by_text("The job goes on in pool slow.")).to_be_visible()
    expect(page.get_by_text("Moved from")).to_be_visible()


def test_a_view_is_saved_without_script_too(visit: Visit, shop: Shop) -> None:
    shop.dead()
    page = visit("operator", "/dashboard/jobs/?state=dead&tag=eu", script=False)
    page.get_by_text("Save this view").click()
    page.get_by_label("Name").fill("Dead in the EU")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("link", name="Dead in the EU")).to_have_attribute("aria-current", "true")
    page.get_by_role("button", name="Forget the view").click()
    expect(page.get_by_role("link", name="Dead in the EU")).to_have_count(0)


def test_what_was_picked_before_the_script_came_is_counted_once_it_is_there(visit: Visit, shop: Shop) -> None:
    shop.dead()
    page, held = visit("operator", "/livez"), list[Route]()
    page.route("**/picking.js", lambda route: held.append(route))
    with page.expect_request("**/picking.js"):
        page.goto(page.url.replace("/livez", "/dashboard/dead/"))
    page.locator("#rows [name=id]").check()
    expect(page.locator("[data-selected]")).to_have_text("With selected jobs")

    held[0].continue_()

    expect(page.locator("[data-selected]")).to_have_text("1 selected")
    expect(page.locator("#rows > tr.is-picked")).to_have_count(1)
