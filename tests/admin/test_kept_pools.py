"""A pool that is kept for groups is closed to others in the admin too, whatever page they come from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from jobs import api, job
from jobs.engine import Engine
from jobs.models import JobType, Pool, RunRecord, Schedule, Workflow
from jobs.registry import registry

pytestmark = pytest.mark.django_db

KEPT = "vault"
SAID = "It touches what is kept for others: vault."


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    """A job type for schedules and workflows."""
    with registry.restored():
        job("vault.count")(lambda: None)
        yield


@pytest.fixture(autouse=True)
def kept(engine: Engine) -> Pool:
    """The pool ``vault`` is kept for the group of its name."""
    engine.topology.ensure(KEPT)
    pool = Pool.objects.create(name=KEPT)
    pool.operators.add(Group.objects.create(name=KEPT))
    return pool


@pytest.fixture
def person() -> User:
    """May operate and enqueue, and see everything in the admin."""
    person = User.objects.create_user("ben", is_staff=True)
    codes = ["operate", "enqueue", "view_pool", "view_jobtype", "view_schedule", "view_workflow", "view_runrecord"]
    person.user_permissions.set(Permission.objects.filter(content_type__app_label="jobs", codename__in=codes))
    return person


@pytest.fixture
def client(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def select(client: Client, model: str, action: str, row: Any, **more: str) -> Any:
    form = {"action": action, "_selected_action": str(row.pk), "post": "yes", "confirmed": "yes", **more}
    return client.post(f"/admin/jobs/{model}/", form, follow=True)


def schedule(**facts: Any) -> Schedule:
    common = {"name": "nightly", "job_type": "vault.count", "cron": "0 5 * * *", "pool": KEPT}
    return Schedule.objects.create(**(common | facts))


def workflow() -> Workflow:
    api.workflows.define({"name": "audit", "nodes": [{"key": "count", "type": "vault.count", "pool": KEPT}]})
    return Workflow.objects.get()


@pytest.mark.parametrize("action", ["pause", "resume"])
def test_it_is_neither_paused_nor_resumed(action: str, client: Client, kept: Pool) -> None:
    if action == "resume":
        api.pools.pause(KEPT, reason="stocktaking")

    said = select(client, "pool", action, kept).text

    assert SAID in said
    assert (api.pools.get(KEPT).paused is not None) == (action == "resume")


def test_a_type_whose_jobs_may_be_in_it_is_not_paused(client: Client) -> None:
    assert SAID in select(client, "jobtype", "pause", JobType.objects.create(name="letter.print")).text
    assert api.types.paused() == {}


@pytest.mark.parametrize("page", ["run", "pause", "resume", "backfill"])
def test_the_pages_of_a_schedule_that_makes_jobs_in_it_refuse(page: str, client: Client) -> None:
    row = schedule()
    moments = {"start_0": "2026-01-05", "start_1": "00:00", "end_0": "2026-01-09", "end_1": "23:00", "rate": "1000"}

    said = client.post(f"/admin/jobs/schedule/{row.pk}/{page}/", moments | {"counted": "5"}, follow=True).text

    assert SAID in said
    assert api.list_jobs(api.JobFilter()).items == []
    assert Schedule.objects.get().version == row.version


@pytest.mark.parametrize("action", ["run_selected", "pause_selected", "resume_selected"])
def test_so_do_actions_on_selected_ones(action: str, client: Client) -> None:
    row = schedule()

    assert SAID in select(client, "schedule", action, row).text
    assert api.list_jobs(api.JobFilter()).items == []
    assert not Schedule.objects.get().is_paused


def test_a_workflow_with_a_node_in_it_is_not_started(client: Client) -> None:
    row = workflow()

    assert SAID in client.post(f"/admin/jobs/workflow/{row.pk}/start/", {"payload": "{}"}, follow=True).text
    assert SAID in select(client, "workflow", "start_selected", row, payload="{}").text
    assert api.workflows.list().items == []


def test_schedules_of_such_a_workflow_are_left_alone(client: Client) -> None:
    row = workflow()
    schedule(name="weekly", workflow="audit", job_type="", pool="")

    assert SAID in select(client, "workflow", "pause_schedules", row).text
    assert not Schedule.objects.get().is_paused


@pytest.mark.parametrize("verb", ["cancel", "pause", "retry"])
def test_so_are_its_runs(verb: str, client: Client) -> None:
    row, run = workflow(), api.workflows.start("audit")

    form = {"action": verb, "_selected_action": run.id, "post": "yes"}
    assert SAID in client.post(f"/admin/jobs/workflow/{row.pk}/runs/", form, follow=True).text

    found = api.workflows.get(run.id)
    assert (found.state, found.paused, found.cancelled) == ("running", None, None)


def test_a_run_that_has_ended_is_not_retried_from_the_history(client: Client) -> None:
    workflow()
    run = api.workflows.start("audit")
    api.workflows.cancel(run.id)
    facts = {"created_at": run.created_at, "finished_at": run.created_at, "seconds": 1.0, "nodes": 1}
    record = RunRecord.objects.create(run=run.id, workflow="audit", state="cancelled", **facts)

    assert SAID in select(client, "runrecord", "retry_selected", record).text
    assert api.workflows.get(run.id).state == "cancelled"


def test_its_own_people_act_in_it(client: Client, person: User, kept: Pool) -> None:
    person.groups.add(Group.objects.get(name=KEPT))

    select(client, "pool", "pause", kept)
    client.post(f"/admin/jobs/schedule/{schedule().pk}/run/")

    assert api.pools.get(KEPT).paused is not None
    assert len(api.list_jobs(api.JobFilter()).items) == 1
