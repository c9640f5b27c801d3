"""``tokens``: the command that makes, lists and revokes what opens the HTTP API."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from jobs import api
from jobs.management.errors import Exit

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def going_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command closes its connections, and this process goes on."""
    monkeypatch.setattr("jobs.management.base.connections.close_all", lambda: None)


def test_a_token_is_made_shown_once_and_taken_back(cli) -> None:
    User.objects.create_user("ana")

    made = cli("tokens", "create", "ana", "--name", "ci", "--expires", "90d", "--scope", "enqueue", "--json").json
    bearer = api.tokens.bearer(made["token"])
    [listed] = cli("tokens", "list", "--json").json["items"]
    revoked = cli("tokens", "revoke", str(made["id"]), "--json").json

    assert bearer is not None
    assert bearer.within == {"jobs.enqueue"}
    assert (listed["id"], listed["user"], listed["scopes"], listed["state"]) == (
        made["id"],
        "ana",
        ["enqueue"],
        "active",
    )
    assert "token" not in listed
    assert revoked["state"] == "revoked"
    assert api.tokens.bearer(made["token"]) is None


def test_a_pipe_gets_the_token_and_nothing_else(cli) -> None:
    User.objects.create_user("ana")

    result = cli("tokens", "create", "ana")

    assert api.tokens.bearer(result.out.strip()) is not None
    assert "not shown again" in result.err


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("create", "nobody"), Exit.NOT_FOUND),
        (("create", "ana", "--scope", "opperate"), Exit.USAGE),
        (("create", "ana", "--expires", "soon"), Exit.USAGE),
        (("revoke", "7"), Exit.NOT_FOUND),
        (("revoke", "x"), Exit.USAGE),
    ],
)
def test_what_cannot_be_done_ends_with_the_fitting_code(cli, argv: tuple[str, ...], code: Exit) -> None:
    User.objects.create_user("ana")

    assert cli("tokens", *argv, "--json").code == code
