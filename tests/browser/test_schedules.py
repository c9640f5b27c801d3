"""Schedules in a real browser: what is typed is answered at once, what is wrong is said at its field, all is steered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, expect

from jobs import job
from jobs.models import Schedule
from jobs.registry import registry
from tests.browser.conftest import Site, Visit
from tests.browser.test_everywhere import findings_in_every_look

ADD = "/admin/jobs/schedule/add/"


@pytest.fixture(autouse=True)
def paper() -> Iterator[None]:
    """A job type for the schedules to start."""

    def print_paper(day: str, *, copies: int = 1) -> None: ...

    with registry.restored():
        job("paper.print")(print_paper)
        yield


@pytest.fixture
def admin(visit: Visit, site: Site) -> Page:
    """A page of somebody who may do everything."""
    person = User.objects.create_superuser("root")
    client = Client()
    client.force_login(person)
    page = visit("anonymous", "/accounts/login/")
    page.context.add_cookies([{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": site.url}])
    return page


def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)


class TestForm:
    def test_what_is_typed_is_shown_and_what_is_wrong_is_said_at_its_field(self, admin: Page, site: Site) -> None:
        admin.goto(site.url + ADD)
        preview = admin.locator("#schedule-preview")
        expect(preview.get_by_role("button", name="Preview")).to_be_hidden()

        fill(admin, name="nightly", job_type="paper.print", timezone="Europe/Paris")
        admin.locator("[name=cron]").press_sequentially("30 2 * * MON-FRI")

        expect(preview).to_contain_text("At 02:30, Monday through Friday")
        expect(preview.locator("tbody tr")).to_have_count(5)
        expect(admin.locator("#payload-signature")).to_have_text("paper.print(day: str, *, copies: int = 1)")
        expect(preview.get_by_role("status")).to_contain_text("Next on ")

        fill(admin, cron="59/15 * * * *")

        expect(admin.locator(".field-cron .errorlist")).to_contain_text("59")
        expect(admin.locator("[name=cron]")).to_have_attribute("aria-invalid", "")
        expect(admin.locator("[name=cron]")).to_be_focused()

        admin.locator("[name=kind]").select_option("interval")
        expect(admin.locator(".field-cron")).to_be_hidden()
        fill(admin, interval_seconds="300")
        expect(preview).to_contain_text("Every 5 minutes")

        fill(admin, payload='{"day": "2026-01-01"}')
        admin.get_by_role("button", name="Save", exact=True).click()

        expect(admin.locator(".messagelist")).to_contain_text("was added successfully")
        assert Schedule.objects.get().interval_seconds == 300
