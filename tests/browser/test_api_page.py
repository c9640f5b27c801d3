"""The page about the HTTP API: it comes under the strict policy, is read by everybody, and fits a phone."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.test_everywhere import fits, found_by_axe

RULES = ("landmark-unique", "color-contrast", "scrollable-region-focusable", "heading-order", "duplicate-id-aria")
"""What a page of its own structure may break; all else comes from the shell, which other tests look at."""


def test_each_operation_opens_and_reads_well_without_a_complaint_of_the_browser(visit: Visit) -> None:
    page = visit("viewer", "/api/v1/docs")

    page.locator("summary", has_text="/api/v1/jobs").nth(1).click()
    expect(page.get_by_text("unique_key")).to_be_visible()
    for name in ("jobs_list_jobs", "pools_limit", "workflows_retry"):
        page.locator(f"#{name} > summary").click()

    assert found_by_axe(page, rules=RULES) == []
    for width in (320, 1440):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
