"""What is done to schedules in the admin: run, pause, resume, backfill, go back; and the list that shows it."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse

from jobs import api
from jobs.admin import schedule_actions, schedule_list
from jobs.engine import Engine
from jobs.models import Schedule
from jobs.services import carrying
from tests.admin.test_schedule import FORM, LIST, change_url, nightly, paper, staff

if TYPE_CHECKING:
    from django.test import Client
    from pytest_django import DjangoAssertNumQueries
    from pytest_django.fixtures import Settings as DjangoSettings

    from tests.support.valkey import ValkeyServer

__all__ = ["nightly", "paper"]

pytestmark = pytest.mark.django_db


def url(page: str, schedule: Schedule) -> str:
    return reverse(f"admin:jobs_schedule_{page}", args=[schedule.pk])


def told(response: Any) -> str:
    """What the page that follows says came of it."""
    return " ".join(str(message) for message in response.context["messages"])


def jobs_of(schedule: Schedule) -> list[Any]:
    return [job for job in api.list_jobs(api.JobFilter(), limit=100).items if job.schedule == schedule.name]


class TestOne:
    def test_run_now_makes_one_job_and_moves_nothing(
        self, admin_client: Client, engine: Engine, nightly: Schedule
    ) -> None:
        before = nightly.version

        response = admin_client.post(url("run", nightly), follow=True)

        [job] = jobs_of(nightly)
        assert job.payload == {"day": "2026-01-01"}
        assert told(response) == f"Schedule nightly was started: job {job.id}."
        nightly.refresh_from_db()
        assert nightly.version == before

    def test_it_is_paused_with_a_reason_and_resumed(self, admin_client: Client, nightly: Schedule) -> None:
        admin_client.post(url("pause", nightly), {"reason": "disk move"})
        nightly.refresh_from_db()
        assert (nightly.is_paused, nightly.paused_by, nightly.paused_reason) == (True, "admin", "disk move")
        assert "paused by admin: disk move" in admin_client.get(LIST).content.decode()
        assert "Resume</a>" in admin_client.get(change_url(nightly)).content.decode()

        admin_client.post(url("resume", nightly))
        nightly.refresh_from_db()
        assert not nightly.is_paused

    @pytest.mark.parametrize("page", ["run", "pause", "resume", "backfill"])
    def test_a_get_only_asks(self, admin_client: Client, nightly: Schedule, page: str) -> None:
        before = (nightly.changes.count(), len(jobs_of(nightly)))

        assert admin_client.get(url(page, nightly)).status_code == 200

        assert (nightly.changes.count(), len(jobs_of(nightly))) == before

    @pytest.mark.parametrize("page", ["run", "pause", "resume", "backfill"])
    def test_it_asks_for_the_right_to_operate(self, client: Client, nightly: Schedule, page: str) -> None:
        client.force_login(staff("view_schedule", "change_schedule"))

        assert client.get(url(page, nightly)).status_code == 403
        assert client.post(url(page, nightly)).status_code == 403
        assert url(page, nightly) not in client.get(change_url(nightly)).content.decode()

    def test_the_right_to_operate_is_no_right_to_see(self, client: Client, nightly: Schedule) -> None:
        client.force_login(staff("operate"))

        assert client.post(url("run", nightly)).status_code == 403
        assert jobs_of(nightly) == []

    def test_one_of_the_code_can_be_paused(self, admin_client: Client, nightly: Schedule) -> None:
        Schedule.objects.filter(pk=nightly.pk).update(owner="code")

        admin_client.post(url("pause", nightly), {"reason": ""})

        nightly.refresh_from_db()
        assert nightly.is_paused


RANGE = {"start_0": "2026-01-05", "start_1": "00:00", "end_0": "2026-01-09", "end_1": "23:00", "rate": "1000"}


class TestBackfill:
    def test_it_counts_first_and_makes_what_was_counted(
        self, admin_client: Client, engine: Engine, nightly: Schedule
    ) -> None:
        counted = admin_client.post(url("backfill", nightly), RANGE).content.decode()
        assert "The range holds 5 jobs." in counted
        assert 'value="Make 5 jobs"' in counted
        assert jobs_of(nightly) == []

        done = admin_client.post(url("backfill", nightly), RANGE | {"counted": "5"}, follow=True)

        assert told(done) == "Backfill of nightly: 5 jobs made, 0 were there."
        assert sorted(job.fire_time.day for job in jobs_of(nightly)) == [5, 6, 7, 8, 9]

    def test_a_range_that_was_changed_meanwhile_is_counted_again(self, admin_client: Client, nightly: Schedule) -> None:
        page = admin_client.post(url("backfill", nightly), RANGE | {"end_0": "2026-01-06", "counted": "5"})

        assert "The range holds 2 jobs." in page.content.decode()
        assert jobs_of(nightly) == []

    def test_what_takes_long_goes_on_with_the_next_request(
        self, admin_client: Client, nightly: Schedule, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(schedule_actions, "SLICE_SECONDS", -1.0)  # one batch a request
        every_hour = {"kind": "interval", "interval_seconds": 3600.0, "cron": ""}
        Schedule.objects.filter(pk=nightly.pk).update(**every_hour, created_at=datetime(2026, 1, 1, tzinfo=UTC))
        asked = RANGE | {"rate": "60", "counted": "120", "end_1": "23:59"}

        first = admin_client.post(url("backfill", nightly), asked)
        assert "60 of 120 jobs are there." in first.content.decode()
        html = first.content.decode()
        carried = {name: re.findall(f'name="{name}" value="(.+?)"', html)[0] for name in ("dealt", "made", "until")}
        second = admin_client.post(url("backfill", nightly), asked | carried, follow=True)

        assert told(second) == "Backfill of nightly: 120 jobs made, 0 were there."
        assert len({job.id for job in jobs_of(nightly)}) == 100  # of 120, as the list was asked for 100

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"end_0": "2020-01-01"}, "ends before it begins"),
            ({"end_0": "2999-01-01"}, "ends in the future"),
            ({"rate": "0"}, "greater than or equal to 0.1"),
            ({"start_0": ""}, "required"),
        ],
    )
    def test_a_range_that_cannot_be_is_refused(
        self, admin_client: Client, nightly: Schedule, changes: dict[str, str], words: str
    ) -> None:
        assert words in admin_client.post(url("backfill", nightly), RANGE | changes).content.decode()


class TestSelection:
    def act(self, client: Client, action: str, *rows: Schedule, **fields: str) -> Any:
        chosen = {"action": action, "_selected_action": [row.pk for row in rows], "post": "yes"}
        return client.post(LIST, chosen | fields, follow=True)

    @pytest.fixture
    def both(self, nightly: Schedule) -> list[Schedule]:
        return [
            nightly,
            Schedule.objects.create(name="weekly", job_type="paper.print", payload={"day": "x"}, cron="0 3 * * 1"),
        ]

    def test_it_asks_with_the_number_and_the_names(self, admin_client: Client, both: list[Schedule]) -> None:
        html = admin_client.post(
            LIST, {"action": "pause_selected", "_selected_action": [row.pk for row in both]}
        ).content.decode()

        assert "Pause: 2 schedules" in html
        assert "nightly, weekly" in html
        assert not Schedule.objects.filter(paused_at__isnull=False).exists()

    def test_all_of_them_are_run_paused_and_resumed(self, admin_client: Client, both: list[Schedule]) -> None:
        self.act(admin_client, "run_selected", *both)
        assert [len(jobs_of(row)) for row in both] == [1, 1]

        self.act(admin_client, "pause_selected", *both, reason="move")
        assert set(Schedule.objects.values_list("paused_reason", flat=True)) == {"move"}

        assert told(self.act(admin_client, "resume_selected", *both)) == "Resume: 2 schedules."
        assert not Schedule.objects.filter(paused_at__isnull=False).exists()

    def test_one_that_fails_does_not_keep_the_others(self, admin_client: Client, both: list[Schedule]) -> None:
        Schedule.objects.filter(name="nightly").update(cron="nonsense")

        response = self.act(admin_client, "run_selected", *both)

        assert len(jobs_of(both[1])) == 1
        assert "Run now: 1 schedule. Not done for nightly: " in told(response)

    def test_who_may_not_operate_is_not_offered_it(self, client: Client, both: list[Schedule]) -> None:
        client.force_login(staff("view_schedule", "change_schedule"))

        assert "run_selected" not in self.act(client, "run_selected", *both).content.decode()
        assert jobs_of(both[0]) == []


class TestViewer:
    """Who may look and nothing else."""

    @pytest.fixture
    def viewer(self, client: Client) -> Client:
        client.force_login(staff("view_schedule"))
        return client

    def test_sees_the_list_the_schedule_and_its_changes_and_no_button(self, viewer: Client, nightly: Schedule) -> None:
        listed = viewer.get(LIST).content.decode()
        shown = viewer.get(change_url(nightly)).content.decode()
        changes = viewer.get(url("changes", nightly)).content.decode()

        assert "nightly" in listed
        assert "At 02:30" in shown
        assert "created" in changes
        for word in ("Run now", "Pause", "Resume", "Backfill", "Duplicate", 'name="_save"', "Delete</a>", "Restore"):
            assert word not in shown + changes
        assert "addlink" not in listed

    @pytest.mark.parametrize("page", ["change", "delete", "changes", "run", "pause", "resume", "backfill"])
    def test_changes_nothing_by_any_address(self, viewer: Client, nightly: Schedule, page: str) -> None:
        before = Schedule.objects.values().get()

        assert viewer.post(url(page, nightly), FORM | {"cron": "0 1 * * *", "post": "yes"}).status_code == 403
        assert viewer.post(reverse("admin:jobs_schedule_add"), FORM | {"name": "other"}).status_code == 403
        viewer.post(LIST, {"action": "pause_selected", "_selected_action": nightly.pk, "post": "yes"})

        assert Schedule.objects.values().get() == before
        assert jobs_of(nightly) == []


class TestChanges:
    def test_each_is_shown_with_who_and_what_and_an_earlier_version_comes_back(
        self, admin_client: Client, nightly: Schedule
    ) -> None:
        admin_client.post(change_url(nightly), FORM | {"cron": "45 3 * * *"})
        first = nightly.changes.last()

        html = admin_client.get(url("changes", nightly)).content.decode()
        assert "<td>admin</td>" in html
        assert "cron expression: <del>30 2 * * MON-FRI</del> → <ins>45 3 * * *</ins>" in html

        admin_client.post(url("changes", nightly), {"change": first.pk})

        nightly.refresh_from_db()
        assert nightly.cron == "30 2 * * MON-FRI"
        assert nightly.changes.first().by == "admin"
        assert nightly.changes.count() == 3

    @pytest.mark.parametrize("change", ["", "none", "-1", "999999"])
    def test_what_is_no_version_changes_nothing(self, admin_client: Client, nightly: Schedule, change: str) -> None:
        admin_client.post(url("changes", nightly), {"change": change})

        assert nightly.changes.count() == 1

    def test_who_may_only_look_cannot_go_back(self, client: Client, nightly: Schedule) -> None:
        client.force_login(staff("view_schedule"))

        assert "Restore" not in client.get(url("changes", nightly)).content.decode()
        assert client.post(url("changes", nightly), {"change": nightly.changes.get().pk}).status_code == 403


class TestList:
    def test_it_shows_what_the_last_firings_came_to_and_what_comes_next(
        self, admin_client: Client, engine: Engine, nightly: Schedule
    ) -> None:
        job = api.schedules.run("nightly", by="ana")
        engine.jobs.cancel(job.id)

        html = admin_client.get(LIST).content.decode()

        assert "At 02:30, Monday through Friday" in html
        assert re.search(r'field-last">cancelled', html)
        assert 'aria-label="Last firing: 1 cancelled."' in html

    def test_late_ones_are_flagged_and_found(self, admin_client: Client, nightly: Schedule) -> None:
        other = Schedule.objects.create(name="fresh", job_type="paper.print", payload={"day": "x"}, cron="0 3 * * 1")
        Schedule.objects.filter(pk=nightly.pk).update(changed_at=datetime.now(UTC) - timedelta(hours=1))

        html = admin_client.get(LIST).content.decode()

        assert html.count('class="schedule-late">late by') == 1
        assert other.name in html

    def test_one_that_is_overdue_says_since_when_and_one_that_is_broken_why(
        self, admin_client: Client, engine: Engine
    ) -> None:
        common = {"job_type": "paper.print", "payload": {"day": "x"}}
        ago = datetime.now(UTC) - timedelta(minutes=3, seconds=10)
        Schedule.objects.create(name="overdue", kind="once", run_at=ago, **common)
        Schedule.objects.create(name="broken", cron="0 3 * * 1", **common)
        Schedule.objects.filter(name="broken").update(cron="99 3 * * 1")
        carrying.push(["overdue", "broken"])

        html = admin_client.get(LIST).content.decode()

        assert "was due 3 min ago" in html
        assert "in the minute, 99 is not between 0 and 59</span>" in html

    @pytest.mark.parametrize(
        ("state", "names"), [("paused", {"paused"}), ("on", {"nightly"}), ("disabled", {"off"}), ("broken", {"off"})]
    )
    def test_they_are_found_by_state(
        self, admin_client: Client, nightly: Schedule, state: str, names: set[str]
    ) -> None:
        common = {"job_type": "paper.print", "cron": "0 3 * * 1"}
        Schedule.objects.bulk_create(
            [
                Schedule(name="paused", paused_at=datetime.now(UTC), **common),
                Schedule(name="off", enabled=False, error="It cannot.", **common),
            ]
        )

        page = admin_client.get(LIST, {"state": state})

        assert {row.name for row in page.context["cl"].result_list} == names

    def test_the_number_of_queries_does_not_grow_with_the_number_of_schedules(
        self, admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
    ) -> None:
        Schedule.objects.bulk_create(
            Schedule(name=f"schedule-{number}", job_type="paper.print", cron="0 3 * * 1") for number in range(1_000)
        )

        with django_assert_max_num_queries(10):
            admin_client.get(LIST)

    def test_it_survives_a_store_that_is_away(
        self,
        admin_client: Client,
        nightly: Schedule,
        settings: DjangoSettings,
        private_valkey: ValkeyServer,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(schedule_list, "PATIENCE_SECONDS", 0.2)
        settings.SCHEDULER = {**settings.SCHEDULER, "REDIS_URL": private_valkey.url}
        private_valkey.kill()

        for page in (LIST, f"{LIST}?state=late"):
            response = admin_client.get(page)

            assert response.status_code == 200
            assert "the store is unreachable" in response.content.decode()
