"""Saved views: a filter under a name, one's own or everybody's; never more than what stands in the address."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.test import Client

from dashboard.models import SavedView
from dashboard.saved import MOST, SHARED_SHOWN
from jobs import api
from jobs.api.audit import AuditFilter
from tests.dashboard.browsing import send, text
from tests.dashboard.seeding import Shop

FILTER = {"page": "jobs", "state": "dead", "pool": "billing", "name": "My  morning"}


def save(client: Client, **fields: str) -> None:
    send(client, "/dashboard/views/save/", {**FILTER, **fields})


def test_a_filter_is_kept_under_a_name_and_leads_back_to_the_same_list(viewer: Client, shop: Shop) -> None:
    save(viewer, cursor="abc", csrf="x")

    page = viewer.get("/dashboard/jobs/")
    assert "My morning" in text(page)
    assert 'href="/dashboard/jobs/?state=dead&amp;pool=billing"' in page.content.decode()
    assert "My morning" not in text(viewer.get("/dashboard/dead/"))


def test_a_view_is_its_owners_until_it_is_shared_and_only_operators_share(
    viewer: Client, operator: Client, shop: Shop
) -> None:
    save(viewer, shared="on")
    assert "My morning" not in text(operator.get("/dashboard/jobs/"))

    save(operator, name="Ours", shared="on")

    assert "Ours by operator" in text(viewer.get("/dashboard/jobs/"))
    [entry] = api.audit.list(AuditFilter(action="view.share")).items
    assert (entry.who, entry.target) == ("operator", "Ours")


def test_what_others_share_never_crowds_out_the_readers_own(viewer: Client, operator: Client, shop: Shop) -> None:
    save(viewer, name="zz mine")
    owner = User.objects.get(username="operator")
    SavedView.objects.bulk_create(
        SavedView(owner=owner, page="jobs", name=f"ours {number:03}", is_shared=True)
        for number in range(MOST + SHARED_SHOWN)
    )

    words = text(viewer.get("/dashboard/jobs/"))

    assert "zz mine" in words
    assert words.index("ours 000") < words.rindex("zz mine"), "they stand in order of their names all the same"


def test_the_same_name_again_is_the_same_view(viewer: Client, shop: Shop) -> None:
    save(viewer)
    save(viewer, pool="mail")

    [view] = SavedView.objects.all()
    assert view.query == "state=dead&pool=mail"


def test_only_its_owner_forgets_a_view_and_an_administrator_a_shared_one(
    viewer: Client, operator: Client, administrator: Client, shop: Shop
) -> None:
    save(viewer)
    save(operator, name="Ours", shared="on")
    private, shared = SavedView.objects.get(name="My morning").pk, SavedView.objects.get(name="Ours").pk

    for client, view in ((operator, private), (viewer, shared), (administrator, private)):
        send(client, "/dashboard/views/forget/", {"view": view})
    assert SavedView.objects.count() == 2
    send(viewer, "/dashboard/views/forget/", {"view": private})
    send(administrator, "/dashboard/views/forget/", {"view": shared})

    assert not SavedView.objects.exists()


def test_what_cannot_be_kept_is_refused_with_a_reason(viewer: Client, shop: Shop) -> None:
    save(viewer, name="  ")
    assert "give the view a name" in text(viewer.get("/dashboard/jobs/"))
    me = User.objects.get(username="viewer")
    SavedView.objects.bulk_create(SavedView(owner=me, page="jobs", name=str(number)) for number in range(MOST))

    save(viewer)

    assert f"you have {MOST} views" in text(viewer.get("/dashboard/jobs/"))
    assert SavedView.objects.count() == MOST
