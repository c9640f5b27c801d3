"""A pool may be kept for groups: others look at it and act elsewhere."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from jobs import api
from jobs.models import Pool, Schedule
from jobs.services.bulk import BulkWorker
from tests.dashboard import greeting  # noqa: F401 - its job types
from tests.dashboard.browsing import send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop

pytestmark = pytest.mark.django_db

KEPT = "billing"


@pytest.fixture
def billing() -> Group:
    """The pool ``billing`` is kept for a group of its name."""
    group = Group.objects.create(name="billing")
    Pool.objects.create(name=KEPT).operators.add(group)
    return group


@pytest.fixture
def outsider(billing: Group, login: Login) -> Client:
    return login("administrator")


@pytest.fixture
def insider(billing: Group, login: Login, user) -> Client:
    user("operator").groups.add(billing)
    return login("operator")


def addresses(response: object) -> str:
    return " ".join(str(attributes.get("href") or attributes.get("action")) for _, attributes in tags(response))


def things(shop: Shop) -> list[tuple[str, str]]:
    """Each action that reaches the pool, with the thing to do it to."""
    shop.worker(host="h", pools={KEPT: 2})
    Schedule.objects.create(
        name="nightly", job_type="report.build", payload={"year": 2024}, cron="0 5 * * *", pool=KEPT
    )
    api.workflows.define({"name": "pay", "nodes": [{"key": "pay", "type": "http.greet", "pool": KEPT}]})
    Schedule.objects.create(name="weekly", workflow="pay", cron="0 5 * * 1")
    return [
        ("schedule/run", "weekly"),
        ("job/discard", shop.dead(pool=KEPT)),
        ("job/discard", shop.dead(type="workflow.start", pool="mail", payload={"workflow": "pay", "payload": {}})),
        ("job/prioritize", shop.ready(pool=KEPT)),
        ("job/move", shop.ready(pool=KEPT)),
        ("pool/purge", KEPT),
        ("schedule/backfill", "nightly"),
        ("mute/set", "type:email.send"),
        ("pool/pause", KEPT),
        ("pool/scale", KEPT),
        ("schedule/pause", "nightly"),
        ("worker/drain", "h/1"),
        ("worker/drain", "h"),
        ("worker/pause", "h"),
        ("scheduler/pause", ""),
    ]


def test_who_is_in_none_of_its_groups_can_neither_ask_nor_act(outsider: Client, shop: Shop) -> None:
    for action, id in things(shop):
        for response in (
            outsider.get(f"/dashboard/actions/{action}/", {"id": id}),
            send(outsider, f"/dashboard/actions/{action}/", {"id": id, "slots": "3"}),
        ):
            assert response.status_code == 403, action
            assert KEPT in text(response)
    assert api.pools.get(KEPT).paused is None
    assert not Schedule.objects.get(name="nightly").is_paused


def test_all_that_match_cannot_be_acted_on_where_that_reaches_into_it(outsider: Client, shop: Shop) -> None:
    kept, open_ = shop.dead(pool=KEPT), shop.dead(pool="mail")

    for query in ("?state=dead", f"?state=dead&pool={KEPT}"):
        assert outsider.get(f"/dashboard/actions/matching/resubmit/{query}").status_code == 403
    assert outsider.get("/dashboard/actions/matching/resubmit/?state=dead&pool=mail").status_code == 200
    assert (
        send(outsider, "/dashboard/actions/matching/resubmit/", {"state": "dead", "until": _soon()}).status_code == 403
    )
    assert (shop.state(kept), shop.state(open_)) == ("dead", "dead")


def test_a_move_into_it_that_waits_for_a_word_is_not_let_go_on(outsider: Client, shop: Shop) -> None:
    shop.ready(pool=KEPT)
    job_id = shop.ready(pool="mail")
    operation = api.bulk.start("move", api.JobFilter(pool="mail"), pool=KEPT, confirmed=0)
    BulkWorker(shop.engine).tick()

    answer = send(outsider, "/dashboard/actions/bulk/confirm/", {"id": operation.id, "number": "1"})

    assert answer.status_code == 403
    BulkWorker(shop.engine).tick()
    assert shop.state(job_id) == "ready"


def test_nothing_is_moved_into_it_from_elsewhere(outsider: Client, shop: Shop) -> None:
    shop.ready(pool=KEPT)
    open_ = shop.ready(pool="mail")

    one = send(outsider, "/dashboard/actions/job/move/", {"id": open_, "to": f" {KEPT}"})
    words = {"state": "ready", "pool": "mail", "until": _soon(), "to": KEPT}
    many = send(outsider, "/dashboard/actions/matching/move/", words)

    assert (one.status_code, many.status_code, shop.state(open_)) == (403, 403, "ready")


def test_pages_show_it_without_buttons(outsider: Client, shop: Shop) -> None:
    kept, open_ = shop.dead(pool=KEPT), shop.dead(pool="mail")

    assert "/actions/" not in addresses(outsider.get(f"/dashboard/jobs/{kept}/")).replace("theme", "")
    assert "/actions/job/resubmit/" in addresses(outsider.get(f"/dashboard/jobs/{open_}/"))
    pools = addresses(outsider.get("/dashboard/pools/"))
    assert "pool/pause/?id=mail" in pools
    assert f"pool/pause/?id={KEPT}" not in pools
    assert "scheduler/pause" not in pools


def test_members_act_with_the_permissions_that_they_have(insider: Client, shop: Shop) -> None:
    job_id = shop.dead(pool=KEPT)

    assert send(insider, "/dashboard/actions/job/discard/", {"id": job_id}).status_code == 403
    assert send(insider, "/dashboard/actions/job/resubmit/", {"id": job_id}).status_code == 303
    assert shop.state(job_id) == "ready"


def test_a_superuser_may_act_everywhere(billing: Group) -> None:
    assert api.pools.closed_to(User.objects.create_superuser("root")) == frozenset()


def test_a_pool_that_nobody_kept_is_open_to_all(login: Login, shop: Shop) -> None:
    Pool.objects.create(name="mail")
    job_id = shop.dead(pool="mail")

    assert send(login("operator"), "/dashboard/actions/job/resubmit/", {"id": job_id}).status_code == 303


def _soon() -> str:
    return "2100-01-01T00:00:00+00:00"


def test_no_job_is_made_in_it_by_writing_its_name_otherwise(outsider: Client, shop: Shop, user, login: Login) -> None:
    maker = login("maker")
    for name in (KEPT, f" {KEPT}", f"{KEPT}\t", f"\u2003{KEPT}\n"):
        job = {"type": "samples.greet", "argument-name": "ana", "pool": name}
        assert send(maker, "/dashboard/actions/job/new/", job).status_code == 403, name
    assert not api.list_jobs().items


def test_a_bulk_operation_that_is_gone_is_said_to_be(outsider: Client) -> None:
    for verb in ("confirm", "cancel", "undo"):
        url = f"/dashboard/actions/bulk/{verb}/"
        assert send(outsider, url, {"id": "gone"}, script=True).status_code == 404
        assert outsider.get(url, {"id": "gone"}).status_code == 303
