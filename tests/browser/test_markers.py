"""Whatever is stored stays text in a browser too, also after its scripts have brought a page up to date."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from django.urls import NoReverseMatch, reverse
from playwright.sync_api import Page

from tests.browser.conftest import Complaints, Site, settle
from tests.browser.test_everywhere import PAGES
from tests.dashboard.test_markers import MARK
from tests.dashboard.test_markers import jobs as jobs
from tests.dashboard.test_markers import rows as rows

pytestmark = pytest.mark.thorough

MADE = "[...document.querySelectorAll('[mark], [onmark]')].map((each) => each.outerHTML)"
"""Elements and attributes that a marker became."""

REFRESHED = """() => {
  const came = performance.getEntriesByType("resource").filter((each) => each.name.includes("/fragments/"));
  if (came.length) return true;
  document.dispatchEvent(new Event("panel:refresh"));
  return false;
}"""


def test_no_script_makes_anything_of_what_is_stored(
    admin: Page, site: Site, complaints: Complaints, jobs: list[str], rows: dict[str, Any]
) -> None:
    marked = quote(MARK, safe="")
    ones = (f"pools/?name={marked}", f"schedules/?name={marked}", f"jobs/?search={marked}", "charts/?pool=default")
    for path in (*PAGES, *(f"/dashboard/{one}" for one in ones), *(f"/dashboard/jobs/{id}/" for id in jobs)):
        admin.goto(site.url + path)
        settle(admin)
        if admin.locator("#panel").count():
            admin.wait_for_function(REFRESHED, polling=200)

        assert admin.evaluate(MADE) == [], path

    for model in {type(row) for row in rows.values()}:
        for view in ("changelist", "change"):
            try:
                address = reverse(f"admin:jobs_{model.__name__.lower()}_{view}", args=_key(rows, model, view))
            except NoReverseMatch:  # it has no page of its own
                continue
            admin.goto(site.url + address)

            assert admin.evaluate(MADE) == [], address
    complaints.forgive("style")  # of Django's own pages


def _key(rows: dict[str, Any], model: type, view: str) -> list[Any]:
    return [rows[model.__name__].pk] if view == "change" else []
