"""Tokens of the HTTP API: shown once, kept as digests, good until they expire or are revoked."""

from __future__ import annotations

import logging
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from jobs import api
from jobs.api.tokens import TokenNotFound, UserNotFound
from jobs.exceptions import OptionInvalid
from jobs.models import ApiToken, AuditEntry

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana() -> User:
    return User.objects.create_user("ana")


@pytest.fixture
def secret(ana: User) -> str:
    return api.tokens.create("ana", name="ci")[0]


def test_a_token_stands_for_its_user(secret: str, ana: User) -> None:
    bearer = api.tokens.bearer(secret)

    assert bearer is not None
    assert (bearer.user, bearer.within) == (ana, None)


def test_the_secret_is_kept_nowhere(secret: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    api.tokens.bearer(secret)
    api.tokens.revoke(api.tokens.list()[0].id)

    kept = [*ApiToken.objects.values_list(), *AuditEntry.objects.values_list()]
    assert secret not in repr(kept)
    assert secret not in caplog.text
    assert secret not in repr([token.as_dict() for token in api.tokens.list()])


@pytest.mark.parametrize(
    "other", ["", "mainspring_", "mainspring_wrong", "wrong", "mainspring_" + "x" * 10_000, "\ud800"]
)
def test_another_text_opens_nothing(secret: str, other: str) -> None:
    assert api.tokens.bearer(other) is None
    assert api.tokens.bearer(secret + "x") is None


def test_a_revoked_token_opens_nothing_from_then_on(secret: str) -> None:
    [known] = api.tokens.list()

    assert api.tokens.revoke(known.id).state == "revoked"
    assert api.tokens.bearer(secret) is None
    assert api.tokens.revoke(known.id).state == "revoked"
    with pytest.raises(TokenNotFound):
        api.tokens.revoke(known.id + 1)


def test_an_expired_token_opens_nothing(ana: User) -> None:
    secret, known = api.tokens.create("ana", expires=timedelta(days=90))
    assert api.tokens.bearer(secret) is not None

    ApiToken.objects.filter(pk=known.id).update(expires_at=timezone.now() - timedelta(seconds=1))

    assert api.tokens.bearer(secret) is None
    assert api.tokens.list()[0].state == "expired"


def test_a_user_who_is_inactive_is_not_stood_for(secret: str, ana: User) -> None:
    ana.is_active = False
    ana.save()

    assert api.tokens.bearer(secret) is None


def test_its_use_is_noted_once_a_minute(secret: str, django_assert_num_queries) -> None:
    with django_assert_num_queries(2):
        api.tokens.bearer(secret)
    with django_assert_num_queries(1):
        api.tokens.bearer(secret)
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    with django_assert_num_queries(2):
        api.tokens.bearer(secret)

    used = api.tokens.list()[0].last_used_at
    assert used is not None
    assert timezone.now() - used < timedelta(minutes=1)


def test_scopes_say_which_permissions_it_may_use(ana: User) -> None:
    secret, known = api.tokens.create("ana", scopes=["enqueue", "jobs.operate", "view_dashboard", "enqueue"])
    bearer = api.tokens.bearer(secret)

    assert list(known.scopes) == ["enqueue", "operate", "view"]
    assert bearer is not None
    assert bearer.within == {"jobs.enqueue", "jobs.operate", "jobs.view_dashboard"}


def test_what_cannot_be_made_is_refused_with_the_nearest_word(ana: User) -> None:
    with pytest.raises(OptionInvalid) as of_scope:
        api.tokens.create("ana", scopes=["opperate"])
    with pytest.raises(UserNotFound) as of_user:
        api.tokens.create("anna")
    for expires in (0, -1, timedelta(days=10**6)):
        with pytest.raises(OptionInvalid):
            api.tokens.create("ana", expires=expires)
    with pytest.raises(OptionInvalid):
        api.tokens.create("ana", name="two\nlines")

    assert "'operate'" in of_scope.value.fix
    assert "'ana'" in of_user.value.fix
    assert not ApiToken.objects.exists()


def test_the_audit_log_tells_who_made_and_revoked_it(ana: User) -> None:
    with api.audit.acting("root", "command"):
        _, known = api.tokens.create("ana", name="ci", scopes=["view"])
        api.tokens.revoke(known.id)

    revoked, made = AuditEntry.objects.all()
    assert (made.action, made.who, made.after["user"], made.after["scopes"]) == (
        "token.create",
        "root",
        "ana",
        ["view"],
    )
    assert (revoked.action, revoked.target) == ("token.revoke", f"{known.id} (ci)")
