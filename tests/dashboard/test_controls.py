"""Pausing, scaling, draining from the pages: asked first, permitted, done once, written down."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from jobs import api
from jobs.engine import get_engine
from jobs.models import AuditEntry
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db


@pytest.fixture
def worker_id() -> str:
    from jobs.engine import WorkerInfo

    facts: dict[str, Any] = {"hostname": "h", "pid": 1, "pools": {"default": 4}, "started_at_ms": 1}
    get_engine().workers.beat([WorkerInfo(id="h.1", host="h", state="consuming", **facts)], ttl_ms=60_000)
    return "h.1"


def give(client: Client, slug: str, target: str = "", **fields: str) -> Any:
    """Asks the page and sends its form, token included."""
    url = f"/dashboard/actions/{slug.replace('.', '/')}/"
    page = client.get(url, {"id": target})
    assert page.status_code == 200
    token = client.cookies["csrftoken"].value
    return client.post(url, {"id": target, "csrfmiddlewaretoken": token, **fields}, follow=True)


def entry() -> AuditEntry:
    [only] = AuditEntry.objects.all()
    assert (only.who, only.source) == ("operator", "dashboard")
    return only


def test_a_pool_is_paused_with_a_reason_and_resumed(login: Login, shop: Shop) -> None:
    shop.ready(pool="letters")
    operator = login("operator")

    answer = give(operator, "pool.pause", "letters", reason="a move", span="1h")

    paused = api.pools.get("letters").paused
    assert paused is not None
    assert (paused.by, paused.reason) == ("operator", "a move")
    assert paused.until is not None
    assert "Pool letters is paused." in answer.text
    assert (entry().action, entry().target, entry().reason) == ("pool.pause", "letters", "a move")
    assert "Resume" in operator.get("/dashboard/pools/").text

    give(operator, "pool.resume", "letters")
    assert api.pools.get("letters").paused is None


def test_everything_is_paused_and_every_page_says_so(login: Login, shop: Shop) -> None:
    shop.ready()
    operator = login("operator")

    give(operator, "scheduler.pause", reason="database move")

    assert entry().action == "scheduler.pause"
    for page in ("/dashboard/", "/dashboard/pools/"):
        assert "Everything is paused" in operator.get(page).text
        assert "database move" in operator.get(page).text
    give(operator, "scheduler.resume")
    assert "Everything is paused" not in operator.get("/dashboard/").text


def test_a_pool_is_scaled(login: Login, shop: Shop) -> None:
    shop.ready(pool="letters")

    give(login("operator"), "pool.scale", "letters", slots="7")

    assert api.pools.get("letters").slots == 7
    assert (entry().action, entry().after) == ("pool.scale", {"slots": 7})


@pytest.mark.parametrize("slots", ["", "-1", "many", "1001", "1.5"])
def test_a_number_that_is_none_is_asked_for_again(login: Login, shop: Shop, slots: str) -> None:
    shop.ready(pool="letters")

    answer = give(login("operator"), "pool.scale", "letters", slots=slots)

    assert answer.status_code == 400
    assert "whole number from 0 to 1,000" in answer.text
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize("verb", ["drain", "stop"])
def test_a_worker_is_told_to_go(login: Login, worker_id: str, verb: str) -> None:
    operator = login("operator")
    assert f"/dashboard/actions/worker/{verb}/?id=h.1" in operator.get("/dashboard/workers/").text

    give(operator, f"worker.{verb}", worker_id)

    assert (entry().action, entry().target) == (f"worker.{verb}", worker_id)


def test_a_host_is_paused_and_every_page_says_so(login: Login, shop: Shop) -> None:
    shop.worker(host="h")
    operator = login("operator")
    assert "/dashboard/actions/worker/pause/?id=h" in operator.get("/dashboard/workers/").text

    answer = give(operator, "worker.pause", "h", reason="disk is full", span="1h")

    paused = api.workers.get("h").paused
    assert paused is not None
    assert (paused.by, paused.reason, paused.until is not None) == ("operator", "disk is full", True)
    assert "Host h takes nothing new." in answer.text
    assert (entry().action, entry().target, entry().reason) == ("worker.pause", "h", "disk is full")
    for page in ("/dashboard/", "/dashboard/pools/"):
        text = operator.get(page).text
        assert "Host app-1 is paused" in text
        assert "disk is full" in text
    assert "/dashboard/actions/worker/resume/?id=h" in operator.get("/dashboard/workers/").text
    assert "Paused by operator until" in operator.get("/dashboard/workers/").text

    give(operator, "worker.resume", "h")
    assert api.workers.get("h").paused is None
    assert "is paused" not in operator.get("/dashboard/").text


def test_jobs_of_a_pool_say_so_whose_hosts_are_all_paused(login: Login, shop: Shop) -> None:
    shop.worker(host="h")
    shop.worker(host="i")
    shop.ready()
    operator = login("operator")

    give(operator, "worker.pause", "h")
    assert "Waits for a free slot." in operator.get("/dashboard/jobs/").text

    give(operator, "worker.pause", "i")
    assert "The worker hosts of pool default are paused." in operator.get("/dashboard/jobs/").text
    assert "default paused" in operator.get("/dashboard/").text


def test_what_is_not_there_is_said(login: Login) -> None:
    assert "There is no pool" in give(login("operator"), "pool.pause", "nowhere").text
    assert login("operator").get("/dashboard/actions/pool/nothing/").status_code == 404


def test_whoever_may_only_look_sees_no_controls_and_may_not_use_them(login: Login, shop: Shop, worker_id: str) -> None:
    shop.ready(pool="letters")
    viewer = login("viewer")

    for page in ("/dashboard/pools/", "/dashboard/workers/"):
        assert "/dashboard/actions/" not in viewer.get(page).text
    assert viewer.get("/dashboard/actions/pool/pause/", {"id": "letters"}).status_code == 403
    assert login("operator").post("/dashboard/actions/pool/pause/", {"id": "letters"}).status_code == 403, "CSRF"
    assert api.pools.get("letters").paused is None


def test_looking_changes_nothing(login: Login, shop: Shop) -> None:
    shop.ready(pool="letters")
    login("operator").get("/dashboard/actions/pool/pause/", {"id": "letters"})

    assert api.pools.get("letters").paused is None
    assert not AuditEntry.objects.exists()


def test_actions_on_jobs_are_written_down_too(login: Login, shop: Shop) -> None:
    job = shop.ready()
    operator = login("operator")
    operator.get("/dashboard/jobs/")
    token = operator.cookies["csrftoken"].value

    operator.post("/dashboard/actions/job/cancel/", {"id": job, "csrfmiddlewaretoken": token})

    assert (entry().action, entry().target) == ("job.cancel", job)


# The audit page ------------------------------------------------------------------------------------------------------


def test_the_audit_page_shows_who_did_what_and_is_narrowed_by_its_address(login: Login) -> None:
    with api.audit.acting("ana", "command"):
        api.audit.record("pool.scale", "letters", before={"slots": 1}, after={"slots": None})
    with api.audit.acting("ben<script>", "admin"):
        api.audit.record("job.cancel", "job-1", reason="why")
    viewer = login("viewer")

    page = viewer.get("/dashboard/audit/").text
    assert "slots 1" in page
    assert "slots none" in page
    assert "ben&lt;script&gt;" in page
    narrowed = viewer.get("/dashboard/audit/", {"who": "ana", "action": "pool", "since": "1h"}).text
    assert "letters" in narrowed
    assert "job-1" not in narrowed
    assert "No entry matches." in viewer.get("/dashboard/audit/", {"source": "api"}).text


@pytest.mark.parametrize(
    ("days", "says"), [(30, "never changed; they are kept for 30 days."), (0, "Entries are never changed.")]
)
def test_the_audit_page_says_how_long_entries_are_kept(days: int, says: str, login: Login, settings: Any) -> None:
    settings.SCHEDULER = {**settings.SCHEDULER, "AUDIT_DAYS": days}

    assert says in login("viewer").get("/dashboard/audit/").text


def test_the_log_is_turned_over_page_by_page(login: Login) -> None:
    for number in range(60):
        api.audit.record("pool.scale", f"pool-{number:02}")
    viewer = login("viewer")

    first = viewer.get("/dashboard/audit/")
    assert "pool-59" in first.text
    assert "pool-09" not in first.text
    older = viewer.get("/dashboard/audit/?" + first.context["older"]).text
    assert "pool-09" in older
    assert "pool-59" not in older


def test_an_empty_log_says_so(login: Login) -> None:
    assert "Nobody has changed anything yet." in login("viewer").get("/dashboard/audit/").text
