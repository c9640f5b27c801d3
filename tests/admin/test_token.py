"""Tokens of the HTTP API in the admin: to be seen and revoked, never to be read."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.test import Client

from jobs import api
from jobs.models import ApiToken, AuditEntry

pytestmark = pytest.mark.django_db

LIST = "/admin/jobs/apitoken/"


@pytest.fixture
def staff() -> Client:
    User.objects.create_superuser("root")
    client = Client(headers={"host": "localhost"})
    client.force_login(User.objects.get(username="root"))
    return client


def test_the_list_shows_whose_they_are_and_not_what_they_are(staff: Client) -> None:
    secret, _ = api.tokens.create("root", name="nightly import", scopes=["view"])
    row = ApiToken.objects.get()

    for page in (staff.get(LIST), staff.get(f"{LIST}{row.pk}/change/")):
        text = page.content.decode()
        assert "nightly import" in text
        assert secret not in text
        assert row.digest not in text
    assert staff.get(f"{LIST}add/").status_code == 403


def test_selected_ones_are_revoked_and_the_audit_log_tells_who_did_it(staff: Client) -> None:
    secret, made = api.tokens.create("root")

    staff.post(LIST, {"action": "revoke", "_selected_action": [made.id]})

    assert api.tokens.bearer(secret) is None
    entry = AuditEntry.objects.get(action="token.revoke")
    assert (entry.who, entry.source) == ("root", "admin")


def test_who_removes_one_is_on_record(staff: Client) -> None:
    secret, made = api.tokens.create("root", name="ci")

    staff.post(f"{LIST}{made.id}/delete/", {"post": "yes"})

    assert api.tokens.bearer(secret) is None
    entry = AuditEntry.objects.get(action="token.delete")
    assert (entry.who, entry.source, entry.target) == ("root", "admin", f"{made.id} (ci)")


def test_a_user_goes_with_their_tokens(staff: Client) -> None:
    ana = User.objects.create_user("ana")
    api.tokens.create("ana")

    staff.post(f"/admin/auth/user/{ana.pk}/delete/", {"post": "yes"})

    assert not ApiToken.objects.exists()
