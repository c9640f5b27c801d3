"""Pauses from the admin's lists, the audit log, and what changes of rows leave in it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from jobs import api
from jobs.engine import Engine
from jobs.models import AuditEntry, JobType, Pool

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("ana"))
    return client


@pytest.fixture
def pool(engine: Engine) -> Pool:
    engine.topology.ensure("letters")
    return Pool.objects.create(name="letters")


def act(client: Client, model: str, action: str, row: Any, **more: str) -> Any:
    form = {"action": action, "_selected_action": str(row.pk), **more}
    return client.post(f"/admin/jobs/{model}/", form, follow=True)


def entries() -> list[tuple[str, str, str, str]]:
    return [(entry.who, entry.source, entry.action, entry.target) for entry in AuditEntry.objects.order_by("id")]


def test_a_pool_is_paused_after_a_question_and_resumed(admin: Client, pool: Pool) -> None:
    asked = act(admin, "pool", "pause", pool)
    assert "How long" in asked.text
    assert api.pools.get("letters").paused is None

    done = act(admin, "pool", "pause", pool, confirmed="yes", reason="a move", hours="1")
    paused = api.pools.get("letters").paused
    assert paused is not None
    assert (paused.by, paused.reason, bool(paused.until)) == ("ana", "a move", True)
    assert "Letters is paused." in done.text
    assert "paused by ana: a move" in done.text

    act(admin, "pool", "resume", pool, confirmed="yes")
    assert api.pools.get("letters").paused is None
    assert entries() == [("ana", "admin", "pool.pause", "letters"), ("ana", "admin", "pool.resume", "letters")]


def test_a_type_is_paused_and_resumed(admin: Client) -> None:
    row = JobType.objects.create(name="letter.print")

    act(admin, "jobtype", "pause", row, confirmed="yes", reason="no paper")
    assert api.types.paused()["letter.print"].reason == "no paper"
    assert "by ana: no paper" in admin.get("/admin/jobs/jobtype/").text

    act(admin, "jobtype", "resume", row, confirmed="yes")
    assert api.types.paused() == {}


def test_whoever_may_change_rows_may_not_pause_without_the_permission_to_operate(pool: Pool) -> None:
    person = User.objects.create_user("ben", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename__in=["view_pool", "change_pool"]))
    client = Client()
    client.force_login(person)

    act(client, "pool", "pause", pool, confirmed="yes")

    assert api.pools.get("letters").paused is None


def test_changes_of_rows_stand_in_the_log(admin: Client, pool: Pool) -> None:
    form = {
        "description": "",
        "slots": "7",
        "autoscale": "off",
        "min_slots": "1",
        "max_slots": "20",
        "target_wait_seconds": "5",
        "tolerance_seconds": "1",
        "cooldown_seconds": "30",
    }
    admin.post(f"/admin/jobs/pool/{pool.pk}/change/", form)

    [entry] = AuditEntry.objects.all()
    assert (entry.who, entry.source, entry.action, entry.target) == ("ana", "admin", "pool.change", "letters")
    assert (entry.before, entry.after) == ({"slots": None}, {"slots": 7})


def test_deleting_and_changing_many_stand_there_too(admin: Client, pool: Pool) -> None:
    row = JobType.objects.create(name="letter.print", registered=False)

    act(admin, "jobtype", "disable", row)
    act(admin, "pool", "delete_selected", pool, post="yes")

    assert [entry[2:] for entry in entries()] == [("type.change", "letter.print"), ("pool.delete", "letters")]


def test_the_log_can_be_read_and_nothing_else(admin: Client) -> None:
    api.audit.record("pool.scale", "letters", after={"slots": 7})
    entry = AuditEntry.objects.get()

    assert "pool.scale" in admin.get("/admin/jobs/auditentry/").text
    page = admin.get(f"/admin/jobs/auditentry/{entry.pk}/change/")
    assert page.status_code == 200
    assert 'name="_save"' not in page.text
    assert admin.get("/admin/jobs/auditentry/add/").status_code == 403
    assert admin.post(f"/admin/jobs/auditentry/{entry.pk}/delete/", {"post": "yes"}).status_code == 403
    assert admin.post(f"/admin/jobs/auditentry/{entry.pk}/change/", {"who": "nobody"}).status_code == 403
    assert AuditEntry.objects.get().who == entry.who
