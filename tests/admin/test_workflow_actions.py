"""What is done to a selection in the admin: workflows, their runs, and runs that are remembered."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from django.utils import timezone

from jobs import job, schedules, workflows
from jobs.engine import Engine, get_engine
from jobs.models import AuditEntry, RunRecord, Schedule, Workflow
from jobs.registry import registry
from jobs.services.relay import RelayService
from tests.admin.test_schedule import staff

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/workflow/"
RECORDS = "/admin/jobs/runrecord/"


@pytest.fixture(autouse=True)
def both(engine: Engine) -> Iterator[None]:
    """Two stored workflows."""

    def paper(day: str = "") -> None: ...

    with registry.restored():
        job("paper.print", redact=("day",))(paper)
        for name in ("nightly", "weekly"):
            workflows.define(
                {"name": name, "nodes": [{"key": "a", "type": "paper.print", "payload": {"day": "secret"}}]}
            )
        yield


def selected(action: str, *names: str, **answers: str) -> dict[str, Any]:
    """What a browser sends; with answers it confirms."""
    ids = [str(row.pk) for row in Workflow.objects.filter(name__in=names)]
    return {"action": action, "_selected_action": ids, **answers}


def of_runs(action: str, *ids: str, **answers: str) -> dict[str, Any]:
    return {"action": action, "_selected_action": list(ids), **answers}


def runs_url(name: str = "nightly") -> str:
    return reverse("admin:jobs_workflow_runs", args=[Workflow.objects.get(name=name).pk])


def said() -> list[tuple[str, str, str | None, str]]:
    """(who, action, target, reason) of what was done in the admin, oldest first."""
    entries = AuditEntry.objects.filter(source="admin").order_by("id")
    return [*entries.values_list("who", "action", "target", "reason")]


class TestWorkflows:
    def test_several_are_started_with_one_payload_once_that_is_confirmed(self, admin_client: Client) -> None:
        asked = admin_client.post(LIST, selected("start_selected", "nightly", "weekly")).content.decode()
        assert "Start: 2 workflows" in asked
        assert "This is about nightly, weekly." in asked
        assert workflows.list().items == []

        answers = {"post": "yes", "payload": '{"day": "monday"}'}
        done = admin_client.post(LIST, selected("start_selected", "nightly", "weekly", **answers), follow=True)

        assert "Start: 2 workflows." in done.content.decode()
        started = workflows.list().items
        assert {run.name: run.payload for run in started} == {"nightly": {"day": "monday"}, "weekly": {"day": "monday"}}
        assert sorted(said()) == [("admin", "workflow.start", name, "") for name in ("nightly", "weekly")]

    def test_a_payload_that_is_no_object_is_asked_for_again(self, admin_client: Client) -> None:
        again = admin_client.post(LIST, selected("start_selected", "nightly", post="yes", payload="[1]"))

        assert "Write an object" in again.content.decode()
        assert workflows.list().items == []

    def test_the_schedules_that_start_them_are_paused_and_resumed_with_a_reason(self, admin_client: Client) -> None:
        for name in ("dawn", "dusk"):
            schedules.create(name=name, workflow="nightly", kind="interval", interval_seconds=3600)

        asked = admin_client.post(LIST, selected("pause_schedules", "nightly", "weekly")).content.decode()
        assert "The schedules that start them make no runs until they are resumed." in asked
        done = admin_client.post(
            LIST, selected("pause_schedules", "nightly", "weekly", post="yes", reason="disk move"), follow=True
        )

        words = done.content.decode()
        assert "Pause schedules: 1 workflow." in words
        assert "Not done for weekly: No schedule starts it." in words
        paused = Schedule.objects.filter(paused_at__isnull=False)
        assert {(row.name, row.paused_by, row.paused_reason) for row in paused} == {
            ("dawn", "admin", "disk move"),
            ("dusk", "admin", "disk move"),
        }
        admin_client.post(LIST, selected("resume_schedules", "nightly", post="yes"))
        assert not Schedule.objects.filter(paused_at__isnull=False).exists()
        assert {action for _, action, _, _ in said()} == {"schedule.pause", "schedule.resume"}

    def test_a_selection_is_one_file_that_can_be_imported(self, admin_client: Client, client: Client) -> None:
        file = admin_client.post(LIST, selected("export_selected", "nightly", "weekly"))

        assert file["Content-Disposition"] == 'attachment; filename="workflows.json"'
        assert file.json() == {"workflows": workflows.export(["nightly", "weekly"])}
        assert workflows.import_(file.json()["workflows"]).unchanged == ["nightly", "weekly"]
        client.force_login(staff("view_workflow"))
        masked = client.post(LIST, selected("export_selected", "nightly")).content.decode()
        assert "secret" not in masked
        assert "paper.print" in masked

    def test_each_asks_for_its_right(self, client: Client) -> None:
        client.force_login(staff("view_workflow"))

        page = client.get(LIST).content.decode()
        for action in ("start_selected", "pause_schedules", "resume_schedules"):
            client.post(LIST, selected(action, "nightly", post="yes", payload="{}"))
            assert f'value="{action}"' not in page

        assert 'value="export_selected"' in page
        assert (workflows.list().items, said()) == ([], [])


class TestRuns:
    @pytest.fixture
    def two(self) -> list[str]:
        return [workflows.start("nightly").id for _ in range(2)]

    def test_several_are_paused_resumed_cancelled_and_retried(self, admin_client: Client, two: list[str]) -> None:
        asked = admin_client.post(runs_url(), of_runs("pause", *two)).content.decode()
        assert "Pause: 2 runs" in asked
        assert all(workflows.get(run).paused is None for run in two)

        admin_client.post(runs_url(), of_runs("pause", *two, post="yes", reason="look first"))
        assert {workflows.get(run).paused["reason"] for run in two} == {"look first"}
        assert "paused" in admin_client.get(runs_url()).content.decode()
        admin_client.post(runs_url(), of_runs("resume", *two, post="yes"))
        assert [workflows.get(run).paused for run in two] == [None, None]
        admin_client.post(runs_url(), of_runs("cancel", *two, post="yes", reason="wrong day"))
        RelayService(get_engine()).tick()
        assert [workflows.get(run).state for run in two] == ["cancelled", "cancelled"]
        done = admin_client.post(runs_url(), of_runs("retry", *two, "gone", post="yes"), follow=True).content.decode()

        assert "Retry: 2 runs." in done
        assert "Not done for gone: There is no run" in done
        assert [workflows.get(run).state for run in two] == ["running", "running"]
        assert [(action, reason) for _, action, _, reason in said() if action != "workflow.start"] == [
            *[("workflow_run.pause", "look first")] * 2,
            *[("workflow_run.resume", "")] * 2,
            *[("workflow_run.cancel", "wrong day")] * 2,
            *[("workflow_run.retry", "")] * 2,
        ]

    def test_nothing_selected_and_no_such_action(self, admin_client: Client, two: list[str]) -> None:
        none = admin_client.post(runs_url(), of_runs("pause"), follow=True).content.decode()

        assert "Select the runs first." in none
        assert admin_client.post(runs_url(), of_runs("explode", *two)).status_code == 404

    def test_starting_asks_for_one_right_and_steering_for_another(self, client: Client, two: list[str]) -> None:
        client.force_login(staff("view_workflow"))
        start = reverse("admin:jobs_workflow_start", args=[Workflow.objects.get(name="nightly").pk])

        assert client.get(start).status_code == 403
        assert client.post(runs_url(), of_runs("cancel", *two, post="yes")).status_code == 403
        assert "Select run" not in client.get(runs_url()).content.decode()
        assert [workflows.get(run).cancelled for run in two] == [None, None]


class TestRecords:
    @pytest.fixture(autouse=True)
    def remembered(self) -> None:
        now = timezone.now()
        for number, (run, state, seconds) in enumerate(
            (("fast", "succeeded", 0.4), ("slow", "succeeded", 90.0), ("broken", "failed", 4_000.0))
        ):
            RunRecord.objects.create(
                run=run,
                workflow="nightly" if number else "weekly",
                state=state,
                created_at=now - timedelta(hours=2),
                finished_at=now - timedelta(hours=number),
                seconds=seconds,
                nodes=3,
                schedule="dawn" if number == 1 else "",
            )

    def shown(self, client: Client, query: str = "") -> list[str]:
        return [record.run for record in client.get(f"{RECORDS}{query}").context["cl"].result_list]

    def test_they_are_listed_newest_end_first_with_outcome_duration_and_a_way_to_their_page(
        self, admin_client: Client
    ) -> None:
        page = admin_client.get(RECORDS).content.decode()

        assert self.shown(admin_client) == ["fast", "slow", "broken"]
        assert '<a href="/dashboard/workflows/slow/">slow</a>' in page
        assert "400 ms" in page
        assert "1 min" in page
        assert "Failed" in page

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("?state__exact=failed", ["broken"]),
            ("?took=1", ["fast"]),
            ("?took=3600", ["slow"]),
            ("?took=more", ["broken"]),
            ("?workflow=nightly", ["slow", "broken"]),
            ("?schedule__isempty=0", ["slow"]),
            ("?q=bro", ["broken"]),
            ("?o=4", ["fast", "slow", "broken"]),
            ("?o=-4", ["broken", "slow", "fast"]),
        ],
    )
    def test_they_can_be_narrowed_and_sorted(self, admin_client: Client, query: str, found: list[str]) -> None:
        assert self.shown(admin_client, query) == found

    def test_nobody_adds_changes_or_deletes_one(self, admin_client: Client) -> None:
        record = RunRecord.objects.get(run="fast")

        assert admin_client.get(f"{RECORDS}add/").status_code == 403
        assert admin_client.post(f"{RECORDS}{record.pk}/delete/", {"post": "yes"}).status_code == 403
        assert admin_client.post(f"{RECORDS}{record.pk}/change/", {"state": "failed"}).status_code == 403
        assert 'value="delete_selected"' not in admin_client.get(RECORDS).content.decode()

    def test_those_that_are_kept_are_retried_by_whoever_may_operate(self, admin_client: Client, client: Client) -> None:
        run = workflows.start("nightly").id
        workflows.cancel(run)
        RelayService(get_engine()).tick()
        RunRecord.objects.filter(run="slow").update(run=run)
        ids = [str(record.pk) for record in RunRecord.objects.filter(workflow="nightly")]
        order = {"action": "retry_selected", "_selected_action": ids}
        client.force_login(staff("view_runrecord"))
        assert 'value="retry_selected"' not in client.get(RECORDS).content.decode()

        assert "Retry: 2 runs" in admin_client.post(RECORDS, order).content.decode()
        done = admin_client.post(RECORDS, {**order, "post": "yes"}, follow=True).content.decode()

        assert "Retry: 1 run." in done
        assert "Not done for broken: There is no run" in done
        assert workflows.get(run).state == "running"
