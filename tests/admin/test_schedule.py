"""Schedules in the admin: the form, its preview, errors at their fields, and what is left to the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import Permission, User
from django.urls import reverse
from django.utils.html import escape

from jobs import api, job
from jobs.api.schedules import ScheduleStatus
from jobs.models import AuditEntry, Schedule
from jobs.registry import registry

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/schedule/"
ADD = f"{LIST}add/"
PREVIEW = f"{LIST}preview/"

FORM: dict[str, str] = {
    "name": "nightly",
    "enabled": "on",
    "job_type": "paper.print",
    "payload": '{"day": "2026-01-01"}',
    "kind": "cron",
    "cron": "30 2 * * MON-FRI",
    "interval_seconds": "",
    "run_at_0": "",
    "run_at_1": "",
    "timezone": "Europe/Paris",
    "jitter_seconds": "0",
    "starts_at_0": "",
    "starts_at_1": "",
    "ends_at_0": "",
    "ends_at_1": "",
    "max_firings": "",
    "missed": "skip",
    "missed_limit": "100",
    "grace_seconds": "5",
    "overlap": "allow",
    "pool": "",
    "priority": "",
    "max_retries": "",
    "timeout": "",
}


@pytest.fixture(autouse=True)
def paper() -> Iterator[None]:
    """A job type for the schedules to start."""

    def print_paper(day: str, *, copies: int = 1) -> None: ...

    with registry.restored():
        job("paper.print")(print_paper)
        yield


@pytest.fixture
def nightly() -> Schedule:
    return Schedule.objects.create(
        name="nightly",
        job_type="paper.print",
        payload={"day": "2026-01-01"},
        cron="30 2 * * MON-FRI",
        timezone="Europe/Paris",
    )


def change_url(schedule: Schedule) -> str:
    return reverse("admin:jobs_schedule_change", args=[schedule.pk])


def preview(client: Client, **changes: str) -> Any:
    """What the form's script is told while the form holds this."""
    response = client.get(PREVIEW, {**FORM, **changes})
    assert response.status_code == 200
    return response.json()


class TestPreview:
    def test_it_says_what_the_expression_means_and_when_it_fires_on_both_clocks(self, admin_client: Client) -> None:
        found = preview(admin_client, viewer_zone="Asia/Tokyo")

        assert "At 02:30, Monday through Friday" in found["html"]
        assert "In Europe/Paris" in found["html"]
        assert "In Asia/Tokyo, where you are" in found["html"]
        assert found["html"].count("02:30</td>") == 5
        assert found["said"].startswith("At 02:30, Monday through Friday. Next on ")
        assert found["errors"] == {}
        assert found["signature"] == "paper.print(day: str, *, copies: int = 1)"

    def test_nothing_is_saved(self, admin_client: Client) -> None:
        preview(admin_client)

        assert not Schedule.objects.exists()

    @pytest.mark.parametrize(
        ("changes", "field", "words"),
        [
            ({"cron": "61 * * * *"}, "cron", "61"),
            ({"cron": "@reboot"}, "cron", "start-up"),
            ({"cron": "0 0 31 2 *"}, "cron", "is written 'L'"),
            ({"timezone": "Europe/Pariss"}, "timezone", "Did you mean 'Europe/Paris'?"),
            ({"kind": "interval", "interval_seconds": "0.01"}, "interval_seconds", "shorter than"),
            ({"kind": "once", "run_at_0": "soon"}, "run_at", "valid date"),
        ],
    )
    def test_what_cannot_be_is_said_at_its_field_with_what_to_write_instead(
        self, admin_client: Client, changes: dict[str, str], field: str, words: str
    ) -> None:
        found = preview(admin_client, **changes)

        assert list(found["errors"]) == [field]
        assert words in " ".join(found["errors"][field])
        assert found["errors"][field][0] in found["said"]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"cron": ""}, "Type a cron expression"),
            ({"kind": "interval"}, "seconds of the interval"),
            ({"kind": "once", "name": "", "job_type": ""}, "Give the moment"),
        ],
    )
    def test_what_is_not_filled_in_yet_is_no_error(
        self, admin_client: Client, changes: dict[str, str], words: str
    ) -> None:
        found = preview(admin_client, **changes)

        assert found["errors"] == {}
        assert words in found["html"]

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"kind": "interval", "interval_seconds": "5"}, "more often than once a minute: every 5 seconds"),
            ({"cron": "30 2 * * *"}, "does not exist on"),
            ({"cron": "0 0 * * *"}, "a jitter spreads it"),
            ({"cron": "30 6 * * *", "ends_at_0": "2020-01-01", "ends_at_1": "00:00"}, "It never fires again."),
            ({"cron": "30 6 * * *"}, "The clocks of Europe/Paris are next put"),
        ],
    )
    def test_it_warns(self, admin_client: Client, changes: dict[str, str], words: str) -> None:
        assert words in preview(admin_client, **changes)["html"]

    def test_a_crowd_in_its_minute_is_counted_and_a_jitter_proposed(self, admin_client: Client) -> None:
        Schedule.objects.bulk_create(
            Schedule(name=f"other-{number}", job_type="paper.print", cron=cron, timezone="UTC", enabled=number > 0)
            for number, cron in enumerate(["30 1 * * *"] * 3 + ["*/15 * * * *"] * 5 + ["31 1 * * *"] * 5)
        )

        found = preview(admin_client, timezone="UTC", cron="30 1 * * *")
        spread = preview(admin_client, timezone="UTC", cron="30 1 * * *", jitter_seconds="300")

        assert "7 other schedules fire at 01:30 too: a jitter of 120 seconds would spread it." in found["html"]
        assert "other schedules" not in spread["html"]

    def test_only_fields_of_the_chosen_kind_matter(self, admin_client: Client) -> None:
        found = preview(admin_client, kind="interval", interval_seconds="300", cron="nonsense", run_at_0="nonsense")

        assert found["errors"] == {}
        assert "Every 5 minutes" in found["html"]

    def test_what_was_typed_is_shown_as_text(self, admin_client: Client) -> None:
        found = preview(admin_client, cron="<script>alert(1)</script>", viewer_zone="<img src=x>")

        assert "<script>" not in found["html"]
        assert "<img" not in found["html"]

    def test_an_unknown_type_is_answered_with_the_nearest(self, admin_client: Client) -> None:
        assert preview(admin_client, job_type="paper.prnt")["signature"] == "Did you mean 'paper.print'?"

    def test_a_copy_of_one_that_is_there_counts_its_interval_from_where_that_began(
        self, admin_client: Client, nightly: Schedule
    ) -> None:
        Schedule.objects.filter(pk=nightly.pk).update(created_at=datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC))

        found = preview(admin_client, of=str(nightly.pk), kind="interval", interval_seconds="3600", timezone="UTC")

        assert found["html"].count(":00:07</td>") == 5

    def test_one_that_comes_before_its_own_job_has_usually_ended_is_warned_of(
        self, admin_client: Client, nightly: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = ScheduleStatus(name="nightly", usual_seconds=421.0)
        monkeypatch.setattr(api.schedules, "status", lambda names: dict.fromkeys(names, usual))

        found = preview(admin_client, of=str(nightly.pk), kind="interval", interval_seconds="300")

        assert "usually takes 7 minutes 1 second and it fires again after 5 minutes" in found["html"]

    def test_a_new_one_is_judged_by_all_jobs_of_its_type(
        self, admin_client: Client, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(api.stats, "durations", lambda *, type: {"run": {"p50": {"paper.print": 421.0}[type]}})

        found = preview(admin_client, kind="interval", interval_seconds="300")

        assert "usually takes 7 minutes 1 second" in found["html"]

    def test_it_needs_the_right_to_save_what_it_shows(self, client: Client, nightly: Schedule) -> None:
        client.force_login(staff("view_schedule"))

        assert client.get(PREVIEW, FORM).status_code == 403
        assert client.get(PREVIEW, {**FORM, "of": str(nightly.pk)}).status_code == 403


def staff(*permissions: str) -> User:
    user = User.objects.create_user("ada", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label="jobs", codename__in=permissions))
    return user


class TestForm:
    def test_what_is_saved_is_what_was_typed_and_who_did_it_is_known(self, admin_client: Client) -> None:
        response = admin_client.post(ADD, FORM)

        assert response.status_code == 302
        saved = Schedule.objects.get()
        assert (saved.cron, saved.timezone, saved.payload) == (
            "30 2 * * MON-FRI",
            "Europe/Paris",
            {"day": "2026-01-01"},
        )
        assert [(change.by, change.action) for change in saved.changes.all()] == [("admin", "created")]

    def test_the_fields_of_other_kinds_are_emptied(self, admin_client: Client) -> None:
        admin_client.post(ADD, FORM | {"kind": "interval", "interval_seconds": "300", "cron": "nonsense"})

        saved = Schedule.objects.get()
        assert (saved.kind, saved.interval_seconds, saved.cron) == ("interval", 300, "")

    @pytest.mark.parametrize(
        ("changes", "field", "words"),
        [
            ({"cron": "59/15 * * * *"}, "cron", "59"),
            ({"cron": ""}, "cron", "it is empty"),
            ({"kind": "interval"}, "interval_seconds", "needs its length"),
            ({"kind": "once"}, "run_at", "needs its moment"),
            ({"job_type": "paper.prnt"}, "job_type", "Did you mean 'paper.print'?"),
            ({"payload": '{"dya": "x"}'}, "payload", "Did you mean 'day'?"),
            ({"payload": "{"}, "payload", "valid JSON"),
            ({"payload": ""}, "payload", "It takes: day, copies."),
            (
                {"ends_at_0": "2026-01-01", "ends_at_1": "00:00", "starts_at_0": "2026-01-02", "starts_at_1": "00:00"},
                "ends_at",
                "before it starts",
            ),
        ],
    )
    def test_what_cannot_be_saved_is_refused_beside_its_field(
        self, admin_client: Client, changes: dict[str, str], field: str, words: str
    ) -> None:
        response = admin_client.post(ADD, FORM | changes)

        errors = response.context["adminform"].form.errors
        assert errors.keys() == {field}
        assert words in " ".join(errors[field])
        assert 'id="payload-signature"' in response.content.decode()
        assert escape(errors[field][0]) in response.content.decode()
        assert not Schedule.objects.exists()

    def test_without_script_a_button_shows_the_same_preview_and_saves_nothing(self, admin_client: Client) -> None:
        html = admin_client.post(ADD, FORM | {"_preview": "Preview"}).content.decode()

        assert "At 02:30, Monday through Friday" in html
        assert "Please correct" not in html
        assert 'value="30 2 * * MON-FRI"' in html
        assert not Schedule.objects.exists()

    def test_an_open_schedule_shows_its_preview_at_once(self, admin_client: Client, nightly: Schedule) -> None:
        html = admin_client.get(change_url(nightly)).content.decode()

        assert "At 02:30, Monday through Friday" in html
        assert "paper.print(day: str, *, copies: int = 1)" in html

    def test_the_name_stays(self, admin_client: Client, nightly: Schedule) -> None:
        admin_client.post(change_url(nightly), FORM | {"name": "other", "cron": "30 3 * * *"})

        nightly.refresh_from_db()
        assert (nightly.name, nightly.cron) == ("nightly", "30 3 * * *")

    def test_a_row_that_cannot_be_a_schedule_can_be_opened_and_mended(
        self, admin_client: Client, nightly: Schedule
    ) -> None:
        Schedule.objects.filter(pk=nightly.pk).update(cron="nonsense", error="Not an expression.", name=" odd ")

        html = admin_client.get(change_url(nightly)).content.decode()
        refused = admin_client.post(change_url(nightly), FORM).content.decode()

        assert "Not an expression." in html
        assert "is no name for a schedule" in refused

    def test_a_copy_begins_with_everything_but_the_name(self, admin_client: Client, nightly: Schedule) -> None:
        form = admin_client.get(ADD, {"copy_of": nightly.pk}).context["adminform"].form

        assert form["name"].value() in ("", None)
        assert form["cron"].value() == "30 2 * * MON-FRI"
        assert form["payload"].value() == '{"day": "2026-01-01"}'

    def test_one_that_the_code_owns_is_shown_and_not_edited(self, admin_client: Client, nightly: Schedule) -> None:
        Schedule.objects.filter(pk=nightly.pk).update(owner="code")

        html = admin_client.get(change_url(nightly)).content.decode()
        refused = admin_client.post(change_url(nightly), FORM | {"cron": "30 3 * * *"})

        assert "This schedule is declared in the code" in html
        assert "At 02:30, Monday through Friday" in html
        assert 'name="cron"' not in html
        assert refused.status_code == 403
        assert admin_client.post(reverse("admin:jobs_schedule_delete", args=[nightly.pk])).status_code == 403

    def test_what_is_added_changed_and_deleted_stands_in_the_audit_log(self, admin_client: Client) -> None:
        admin_client.post(ADD, FORM)
        saved = Schedule.objects.get()
        admin_client.post(change_url(saved), FORM | {"cron": "30 3 * * *"})
        admin_client.post(reverse("admin:jobs_schedule_delete", args=[saved.pk]), {"post": "yes"})

        deleted, changed, created = AuditEntry.objects.order_by("-id")
        assert {(entry.who, entry.source, entry.target) for entry in (deleted, changed, created)} == {
            ("admin", "admin", "nightly")
        }
        assert [entry.action for entry in (created, changed, deleted)] == [
            "schedule.create",
            "schedule.update",
            "schedule.delete",
        ]
        assert (changed.before, changed.after) == ({"cron": "30 2 * * MON-FRI"}, {"cron": "30 3 * * *"})
        assert (created.before, created.after["cron"]) == ({}, "30 2 * * MON-FRI")
        assert (deleted.before["cron"], deleted.after) == ("30 3 * * *", {})

    def test_what_the_type_redacts_is_not_shown_to_who_may_only_look(self, client: Client) -> None:
        job("paper.secret", redact=("day",))(lambda day="": None)
        row = Schedule.objects.create(
            name="secret", job_type="paper.secret", cron="0 5 * * *", payload={"day": "xyzzy"}
        )
        client.force_login(staff("view_schedule", "add_schedule"))

        page = client.get(f"/admin/jobs/schedule/{row.pk}/change/").content.decode()
        copy = client.get("/admin/jobs/schedule/add/", {"copy_of": row.pk}).content.decode()

        assert "•••" in page
        assert "xyzzy" not in page + copy

    def test_what_the_type_redacts_is_in_no_history(self, admin_client: Client) -> None:
        job("paper.secret", redact=("day",))(lambda day="": None)
        for day in ("topsecret-one", "topsecret-two"):
            fields = FORM | {"job_type": "paper.secret", "payload": f'{{"day": "{day}"}}'}
            admin_client.post(change_url(row) if (row := Schedule.objects.first()) else ADD, fields)

        history = admin_client.get(reverse("admin:jobs_schedule_changes", args=[Schedule.objects.get().pk]))
        kept = [str((entry.before, entry.after)) for entry in AuditEntry.objects.all()]

        assert "•••" in history.content.decode()
        assert [("•••" in text, "topsecret" in text) for text in kept] == [(True, False)] * 2
        assert "topsecret" not in history.content.decode()

    def test_pages_keep_to_a_strict_content_security_policy(self, admin_client: Client, nightly: Schedule) -> None:
        for url in (LIST, ADD, change_url(nightly)):
            html = admin_client.get(url).content.decode()

            assert not re.search(r"<script(?![^>]*(src=|application/json))", html), url
            assert not re.search(r"\son\w+=|\sstyle=|href=\"javascript", html), url
