"""Who may see and who may act: every address, every role, every action."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.actions.jobs import ACTIONS
from dashboard.permissions import ADMINISTER, OPERATE
from jobs import api
from tests.dashboard.browsing import TOKEN, send, tags, text
from tests.dashboard.conftest import Login
from tests.dashboard.seeding import Shop

PAGES = (
    "/dashboard/",
    "/dashboard/jobs/",
    "/dashboard/dead/",
    "/dashboard/pools/",
    "/dashboard/workers/",
    "/dashboard/schedules/",
    "/dashboard/workflows/",
)
MACHINE = ("/dashboard/snapshot/", "/dashboard/fragments/overview/", "/dashboard/fragments/jobs/")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_sends_strangers_to_the_login_and_back(page: str, client: Client) -> None:
    response = client.get(f"{page}?pool=billing", headers={"host": "localhost"})

    assert response.status_code == 302
    assert response["Location"] == f"/accounts/login/?next={page}%3Fpool%3Dbilling"


@pytest.mark.parametrize("address", MACHINE)
def test_what_scripts_ask_for_answers_401_instead_of_a_redirect(address: str, client: Client) -> None:
    response = client.get(address, headers={"host": "localhost"})

    assert response.status_code == 401
    assert response.json()["error"]["code"] == "signed_out"


@pytest.mark.parametrize("address", PAGES + MACHINE)
def test_without_the_permission_the_answer_names_it(address: str, login: Login) -> None:
    response = login("stranger").get(address)

    assert response.status_code == 403
    assert "jobs.view_dashboard" in text(response)


def test_who_may_see_nothing_is_offered_another_login(login: Login) -> None:
    stranger = login("stranger")
    page = stranger.get("/dashboard/")
    [way] = [str(facts.get("action") or facts.get("href")) for tag, facts in tags(page) if tag in ("form", "a")]

    send(stranger, way, {})

    assert stranger.get("/dashboard/").status_code == 302


@pytest.mark.parametrize("page", PAGES)
def test_a_viewer_sees_every_page(page: str, viewer: Client, shop: Shop) -> None:
    shop.dead()

    assert viewer.get(page).status_code == 200


WHERE = {"resubmit": "dead", "retry": "retry_wait", "run-now": "scheduled", "cancel": "ready", "discard": "dead"}
WHERE |= {"prioritize": "ready", "move": "ready"}
ANSWERS = {"priority": "7", "to": "other"}
"""What actions that ask for something are answered."""


def facts(shop: Shop, job_id: str) -> tuple[Any, ...]:
    """What an action on a job changes: the job, or what is going to be done to it."""
    job = shop.engine.jobs.find(job_id)
    return job and (job.state, job.priority), len(api.bulk.newest())


@pytest.mark.parametrize("role", ["anonymous", "stranger", "viewer", "operator", "administrator"])
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.verb)
class TestMatrix:
    def allowed(self, role: str, permission: str) -> bool:
        return permission in {"operator": {OPERATE}, "administrator": {OPERATE, ADMINISTER}}.get(role, set())

    def test_only_who_may_can_act_by_hand_made_requests(self, role: str, action, login: Login, shop: Shop) -> None:
        shop.ready(pool="other")
        job_id = shop.in_state(WHERE[action.verb])
        before = facts(shop, job_id)

        response = send(login(role), action.url, {"id": job_id, **ANSWERS})

        if self.allowed(role, action.permission):
            assert response.status_code == 303
            assert facts(shop, job_id) != before
        else:
            assert response.status_code == (302 if role == "anonymous" else 403)
            assert facts(shop, job_id) == before

    def test_the_page_shows_the_button_to_whom_it_works_for(self, role: str, action, login: Login, shop: Shop) -> None:
        if role in ("anonymous", "stranger"):
            return
        job_id = shop.in_state(WHERE[action.verb])

        page = login(role).get(f"/dashboard/jobs/{job_id}/")

        shown = [attributes.get("action") for tag, attributes in tags(page) if tag == "form"]
        assert (action.url in shown) == self.allowed(role, action.permission)

    def test_looking_asks_whom_it_would_obey_and_changes_nothing(
        self, role: str, action, login: Login, shop: Shop
    ) -> None:
        job_id = shop.in_state(WHERE[action.verb])
        before = shop.state(job_id)

        response = login(role).get(action.url, {"id": job_id})

        refused = 302 if role == "anonymous" else 403
        assert response.status_code == (200 if self.allowed(role, action.permission) else refused)
        assert shop.state(job_id) == before

    def test_it_refuses_a_post_without_the_forms_token(self, role: str, action, login: Login, shop: Shop) -> None:
        job_id = shop.in_state(WHERE[action.verb])
        before = shop.state(job_id)

        response = login(role).post(action.url, {"id": job_id})

        assert response.status_code == 403
        assert shop.state(job_id) == before


def test_an_action_that_does_not_exist_is_404(administrator: Client) -> None:
    assert send(administrator, "/dashboard/actions/job/destroy/", {"id": "x"}).status_code == 404


def test_a_deactivated_user_sees_nothing(viewer: Client, django_user_model) -> None:
    django_user_model.objects.filter(username="viewer").update(is_active=False)

    assert viewer.get("/dashboard/").status_code == 302


def test_a_viewer_cannot_confirm_what_he_may_not_do(viewer: Client, shop: Shop) -> None:
    shop.dead()

    assert viewer.get("/dashboard/actions/matching/discard/?state=dead").status_code == 403


def test_a_foreign_page_cannot_post(administrator: Client, shop: Shop) -> None:
    job_id = shop.dead()
    administrator.cookies["csrftoken"] = TOKEN

    response = administrator.post(
        "/dashboard/actions/job/resubmit/",
        {"id": job_id, "csrfmiddlewaretoken": TOKEN},
        headers={"origin": "https://evil.example"},
    )

    assert response.status_code == 403
    assert shop.state(job_id) == "dead"
