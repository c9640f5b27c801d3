"""Tokens of the HTTP API: making one for a user, looking one up, taking one back."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec
from django.contrib.auth import get_user_model
from django.db import DatabaseError
from django.utils import timezone

from jobs.api import audit
from jobs.api.asynchronous import twin
from jobs.conf import get_settings
from jobs.core.duration import seconds
from jobs.core.job import iso
from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import OptionInvalid, SchedulerError
from jobs.models import ApiToken

log = logging.getLogger("jobs.tokens")

PREFIX = "mainspring_"
"""Tells people, and programs that look for leaked secrets, what such a text is."""

SCOPES: dict[str, frozenset[str]] = {
    "view": frozenset({"jobs.view_dashboard"}),
    "enqueue": frozenset({"jobs.enqueue"}),
    "operate": frozenset({"jobs.view_dashboard", "jobs.operate"}),
    "administer": frozenset({"jobs.view_dashboard", "jobs.administer"}),
}
"""Scope → the permissions that a token with it may use, where its user has them. What is acted on is also answered, so
acting includes looking; enqueueing does not."""

_SAME = {f"jobs.{name}": name for name in ("enqueue", "operate", "administer")}
_ALIASES = {"view_dashboard": "view", "jobs.view_dashboard": "view", **_SAME}

USED_EVERY = timedelta(minutes=1)
"""So often it is noted that a token is in use: not a write for each request."""

LONGEST_NAME = 100
LONGEST_SECRET = 200


class TokenNotFound(SchedulerError):
    """There is no token of this number."""

    code = "token_not_found"


class UserNotFound(SchedulerError):
    """There is no user of this name."""

    code = "user_not_found"


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a token: everything but its secret."""

    id: int
    user: str
    name: str
    scopes: Sequence[str]
    """Words of SCOPES; none: whatever the user may."""
    state: str
    created_at: datetime
    created_by: str
    expires_at: datetime | None
    last_used_at: datetime | None

    def as_dict(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: iso(value) if isinstance(value, datetime) else value for name, value in values.items()}


class Bearer(msgspec.Struct, frozen=True, kw_only=True):
    """Who a token stands for: the user of Django, and the permissions that it may use; None: all of theirs."""

    id: int
    user: Any
    within: frozenset[str] | None


def create(
    user: str, *, name: str = "", expires: float | timedelta | None = None, scopes: Iterable[str] = ()
) -> tuple[str, Token]:
    """Makes a token for the user of this name: the secret, which is shown this once, and what is known of it.

    ``expires``: seconds from now, or a timedelta; None: never. ``scopes``: words of SCOPES. UserNotFound,
    OptionInvalid.
    """
    model = get_user_model()
    found = model._default_manager.filter(**{model.USERNAME_FIELD: user}).first()
    if found is None:
        names = model._default_manager.values_list(model.USERNAME_FIELD, flat=True)[:1000]
        raise UserNotFound(f"There is no user {shown(user)}.", fix=did_you_mean(user, names))
    secret = PREFIX + secrets.token_urlsafe(32)
    row = ApiToken.objects.create(
        user=found,
        name=_checked_name(name),
        digest=_digest(secret),
        scopes=_checked_scopes(scopes),
        created_by=audit.actor().who[:200],
        expires_at=_expiry(expires),
    )
    made = _told(row)
    audit.record("token.create", _target(made), after={"user": made.user, "scopes": made.scopes, "name": made.name})
    return secret, made


def list() -> Sequence[Token]:
    """All that were made, revoked and expired ones too, by number."""
    return [_told(row) for row in ApiToken.objects.select_related("user")]


def revoke(id: int) -> Token:
    """Takes a token back: from now on it opens nothing. TokenNotFound; no error where it was revoked before."""
    row = _row(id)
    if row.revoked_at is None:
        row.revoked_at = timezone.now()
        row.save(update_fields=["revoked_at"])
        told = _told(row)
        audit.record("token.revoke", _target(told), after={"user": told.user})
    return _told(row)


def forget(id: int) -> None:
    """Removes all that is known of a token, which opens nothing from then on. TokenNotFound."""
    row = _row(id)
    told = _told(row)
    row.delete()
    audit.record("token.delete", _target(told), before={"user": told.user, "state": told.state})


def bearer(secret: str) -> Bearer | None:
    """Whom a secret stands for; None where it opens nothing (any more). Raises DatabaseError.

    It is found by its digest. How long that takes tells of the digest alone, which nobody can choose.
    """
    if not secret.startswith(PREFIX) or len(secret) > LONGEST_SECRET:
        return None
    now = timezone.now()
    row = ApiToken.objects.select_related("user").filter(digest=_digest(secret)).first()
    if row is None or row.state_at(now) != "active" or not row.user.is_active:
        return None
    _note_use(row, now)
    within = frozenset().union(*(SCOPES.get(scope, frozenset()) for scope in row.scopes)) if row.scopes else None
    return Bearer(id=row.pk, user=row.user, within=within)


def _row(id: int) -> ApiToken:
    row = ApiToken.objects.select_related("user").filter(pk=id).first()
    if row is None:
        raise TokenNotFound(f"There is no token {id}.", fix="See 'manage.py tokens list'.")
    return row


def requests_per_minute() -> int:
    """How many requests of one user the HTTP API takes in a minute; 0: any number."""
    return get_settings().api_requests_per_minute


def failures_per_minute() -> int:
    """How many invalid tokens from one address the HTTP API answers as such in a minute; 0: any number."""
    return get_settings().api_failed_tokens_per_minute


def _note_use(row: ApiToken, now: datetime) -> None:
    """A database that can only be read keeps nobody out."""
    if row.last_used_at is not None and now - row.last_used_at < USED_EVERY:
        return
    try:
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=now)
    except DatabaseError as error:
        log.warning("The use of token %s was not noted: %s", row.pk, error)


def _digest(secret: str) -> str:
    return sha256(secret.encode("utf-8", "replace")).hexdigest()


def _told(row: ApiToken) -> Token:
    return Token(
        id=row.pk,
        user=row.user.get_username(),
        name=row.name,
        scopes=[*row.scopes],
        state=row.state_at(timezone.now()),
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        last_used_at=row.last_used_at,
    )


def _target(token: Token) -> str:
    return f"{token.id} ({token.name})" if token.name else str(token.id)


def _checked_name(name: str) -> str:
    name = name.strip()
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise OptionInvalid(f"name: {shown(name)} is not one line of up to {LONGEST_NAME} characters")
    return name


def _checked_scopes(scopes: Iterable[str]) -> Sequence[str]:
    chosen = dict.fromkeys(_ALIASES.get(scope, scope) for scope in scopes)
    for scope in chosen:
        if scope not in SCOPES:
            raise OptionInvalid(f"There is no scope {shown(scope)}", fix=did_you_mean(scope, SCOPES))
    return [*chosen]


def _expiry(expires: float | timedelta | None) -> datetime | None:
    if expires is None:
        return None
    length = seconds(expires, name="expires")
    if not length:
        raise OptionInvalid("expires: 0 would be over at once", fix="Write for example expires=timedelta(days=90).")
    try:
        return timezone.now() + timedelta(seconds=length)
    except OverflowError:
        raise OptionInvalid("expires: is beyond what the calendar reaches") from None


acreate = twin(create, uses_database=True)
alist = twin(list, uses_database=True)
aforget = twin(forget, uses_database=True)
arevoke = twin(revoke, uses_database=True)
