"""Schedules in a real browser: what is typed is answered at once, what is wrong is said at its field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from jobs import api, job
from jobs.admin import schedule_actions
from jobs.models import Schedule
from jobs.registry import registry
from tests.browser.conftest import Complaints, Site, Visit, settle
from tests.browser.test_everywhere import serious

LIST = "/admin/jobs/schedule/"
ADD = f"{LIST}add/"


@pytest.fixture(autouse=True)
def paper() -> Iterator[None]:
    """A job type for the schedules to start."""

    def print_paper(day: str, *, copies: int = 1) -> None: ...

    with registry.restored():
        job("paper.print")(print_paper)
        yield


def nightly() -> Schedule:
    return Schedule.objects.create(
        name="nightly", job_type="paper.print", payload={"day": "x"}, cron="30 2 * * MON-FRI"
    )


def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        page.locator(f"[name={name}]").fill(value)


def walk_to(page: Page, wanted: Callable[[dict[str, str]], bool]) -> None:
    """Tab, and nothing else, until the wanted stop has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        stop = "(({ name, textContent }) => ({ name, text: textContent.trim() }))(document.activeElement)"
        if wanted(page.evaluate(stop)):
            return
    raise AssertionError("Tab never came there")


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
        admin.get_by_role("button", name="Save", exact=True).click()
        expect(admin.locator(".field-payload .errorlist")).to_contain_text("argument 'day' is missing")
        expect(preview.get_by_role("status")).to_contain_text("Give the seconds")
        expect(admin.locator(".field-interval_seconds .errorlist")).to_contain_text("needs its length")

        fill(admin, interval_seconds="300")
        expect(preview).to_contain_text("Every 5 minutes")
        expect(admin.locator(".field-interval_seconds .errorlist")).to_have_count(0)

        fill(admin, payload='{"day": "2026-01-01"}')
        admin.get_by_role("button", name="Save", exact=True).click()

        expect(admin.locator(".messagelist")).to_contain_text("was added successfully")
        assert Schedule.objects.get().interval_seconds == 300

    def test_one_is_made_with_the_keyboard_alone(self, admin: Page, site: Site) -> None:
        admin.goto(site.url + "/dashboard/schedules/")
        settle(admin)
        words = {"name": "nightly", "job_type": "paper.print", "cron": "30 2 * * *", "payload": '{"day": "x"}'}
        admin.locator("#main").focus()
        walk_to(admin, lambda stop: stop["text"] == "Add one in the admin")
        admin.keyboard.press("Enter")
        admin.wait_for_url("**/schedule/add/**")
        for name, text in words.items():
            walk_to(admin, lambda stop, name=name: stop["name"] == name)
            admin.keyboard.press("ControlOrMeta+a")
            admin.keyboard.type(text)
        walk_to(admin, lambda stop: stop["name"] == "_save")
        admin.keyboard.press("Enter")

        expect(admin.locator(".messagelist")).to_contain_text("nightly")
        assert Schedule.objects.get().cron == "30 2 * * *"

    def test_a_schedule_that_is_edited_is_shown_as_it_would_be(
        self, admin: Page, site: Site, complaints: Complaints
    ) -> None:
        admin.goto(site.url + reverse("admin:jobs_schedule_change", args=[nightly().pk]))
        preview = admin.locator("#schedule-preview")
        expect(preview).to_contain_text("At 02:30, Monday through Friday")

        fill(admin, cron="*/20 * * * * *")

        expect(preview).to_contain_text("Every 20 seconds")
        expect(preview.locator("tbody tr").first).to_contain_text(re.compile(r"in \d[\d.]* m?s$"))
        assert complaints.found == []

    def test_its_pages_please_axe_in_both_themes_and_on_a_phone(
        self, admin: Page, site: Site, complaints: Complaints
    ) -> None:
        row = nightly()
        for path in (LIST, *(reverse(f"admin:jobs_schedule_{page}", args=[row.pk]) for page in ("change", "backfill"))):
            for width, theme in ((1280, "light"), (360, "dark")):
                admin.set_viewport_size({"width": width, "height": 800})
                admin.emulate_media(color_scheme=theme)
                admin.goto(site.url + path)
                expect(admin.locator("#content h1")).to_be_visible()
                assert complaints.found == []

                assert serious(admin) == [], (path, width, theme)
                assert admin.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
                complaints.found.clear()  # axe styles what it measures, which the policy forbids

    def test_a_backfill_goes_on_by_itself_until_all_is_made(
        self, admin: Page, site: Site, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(schedule_actions, "SLICE_SECONDS", 0.0)  # a batch in each request
        row = nightly()
        admin.goto(site.url + reverse("admin:jobs_schedule_backfill", args=[row.pk]))
        fill(admin, start_0="2026-01-05", start_1="00:00", end_0="2026-01-09", end_1="23:00", rate="2")

        admin.get_by_role("button", name="Count first").click()
        admin.get_by_role("button", name="Make 5 jobs").click()

        expect(admin.locator(".messagelist")).to_contain_text("Backfill of nightly: 5 jobs made, 0 were there.")
        assert len(api.list_jobs(api.JobFilter()).items) == 5


class TestDashboard:
    def test_a_schedule_is_run_from_the_keyboard_and_its_job_appears(self, visit: Visit) -> None:
        nightly()
        page = visit("operator", "/dashboard/schedules/")
        settle(page)

        page.keyboard.press("j")
        page.keyboard.press("r")
        page.wait_for_url("**/actions/schedule/run/**")
        expect(page.get_by_role("link", name="Go back")).to_be_focused()
        page.get_by_role("button", name="Run now").click()

        expect(page.locator("#messages")).to_contain_text("nightly was started: job")
        row = page.locator('[data-key="schedule nightly"]')
        expect(row.locator(".strip")).to_have_attribute("aria-label", "Last firing: 1 pending.")
        row.get_by_role("link", name="waits").click()
        expect(page.locator("h1")).to_contain_text("paper.print")

    def test_what_others_do_shows_without_a_reload(self, visit: Visit) -> None:
        nightly()
        page = visit("viewer", "/dashboard/schedules/")
        settle(page)

        page.evaluate("document.querySelector('[data-poll]').dataset.poll = 1")
        api.schedules.pause("nightly", by="ana", reason="disk move")

        expect(page.locator('[data-key="schedule nightly"]')).to_contain_text("paused")
