"""The audit log: the one place where controls are written down, whoever gives them and from wherever.

A control comes first, its record after it: a database that is away, or none at all, never keeps anybody from pausing a
system on fire. What could not be recorded is said so, in the log and to whoever gave the control.
"""

from __future__ import annotations

import asyncio
import builtins
import getpass
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from jobs.api.asynchronous import twin
from jobs.conf import get_settings
from jobs.core.context import current_context
from jobs.core.job import iso
from jobs.core.redaction import Redaction

log = logging.getLogger("jobs.audit")

Source = Literal["command", "admin", "dashboard", "api", "python"]

PAGE = 50
MAX_PAGE = 1000
LONGEST_WHO, LONGEST_TARGET = 200, 300


@dataclass
class Acting:
    """Who gives controls now, from where, and why where that is known.

    ``unrecorded``: why controls that took effect were not written down.
    """

    who: str
    source: Source
    reason: str = ""
    unrecorded: list[str] = field(default_factory=list)


_acting: ContextVar[Acting] = ContextVar("jobs.audit.acting")


@contextmanager
def acting(who: str, source: Source, *, reason: str = "") -> Iterator[Acting]:
    """Within it, controls are given by this person, from there, and for this reason where they name no other."""
    actor = Acting(who, source, reason)
    token = _acting.set(actor)
    try:
        yield actor
    finally:
        _acting.reset(token)


def actor() -> Acting:
    """Who gives the controls of this moment: what ``acting`` says, else the job that runs here, else the program."""
    known = _acting.get(None)
    if known is not None:
        return known
    try:
        return Acting(f"job {current_context().id}", "python")
    except LookupError:
        return Acting(system_user(), "python")


def system_user() -> str:
    """The user of the system that this process runs as."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run under a number that has no name
        return "unknown"


def record(action: str, target: str = "", *, reason: str = "", before: Any = None, after: Any = None) -> None:
    """Writes down a control that has just taken effect. Raises nothing.

    ``action``: noun and verb, ``pool.pause``. ``before`` and ``after``: what changed, as anything that JSON can hold.
    """
    by = actor()
    reason = reason or by.reason
    told = " ".join(filter(None, (action, target, f"by {by.who} ({by.source})")))
    log.info("%s%s", told, reason and f": {reason}")
    texts = {"who": by.who, "source": by.source, "action": action, "target": target, "reason": reason}
    try:
        entry = _storable({**texts, "before": _plain(before), "after": _plain(after)})
        cut = {"who": entry["who"][:LONGEST_WHO], "target": entry["target"][:LONGEST_TARGET]}
        _in_own_thread_if_async(lambda: _insert(**{**entry, **cut}))
    except Exception as error:
        # The control has happened: whatever is wrong with its record must neither undo nor hide that.
        cause = f"{type(error).__name__}: {error}".splitlines()[0]
        log.warning("%s was not recorded: %s", told, cause)
        by.unrecorded.append(cause)


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the log."""

    id: int
    at: datetime
    who: str
    source: str
    action: str
    target: str
    reason: str
    before: Any
    after: Any

    def as_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__struct_fields__}, "at": iso(self.at)}


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries; empty means any. ``target`` and ``who``: exactly; ``action``: it, or all that begin with it."""

    who: str = ""
    action: str = ""
    target: str = ""
    source: str = ""
    since: datetime | None = None


class AuditPage(msgspec.Struct, frozen=True, kw_only=True):
    """``next_cursor`` None: there are no more."""

    items: list[AuditRecord]
    next_cursor: str | None


EVERY_ENTRY = AuditFilter()


def list(filter: AuditFilter = EVERY_ENTRY, *, cursor: str | None = None, limit: int = PAGE) -> AuditPage:
    """One page, newest first. Raises DatabaseError where the log cannot be read."""
    from jobs.models import AuditEntry  # the models can only be imported once Django's apps are ready

    rows = AuditEntry.objects.all()
    for name in ("who", "target", "source"):
        if value := getattr(filter, name):
            rows = rows.filter(**{name: value})
    if filter.action:
        rows = rows.filter(action__startswith=filter.action)
    if filter.since:
        rows = rows.filter(at__gte=filter.since)
    if cursor and cursor.isascii() and cursor.isdigit():
        rows = rows.filter(id__lt=int(cursor[:18]))
    limit = max(1, min(limit, MAX_PAGE))
    items = [_as_record(row) for row in rows[: limit + 1]]
    more = len(items) > limit
    return AuditPage(items=items[:limit], next_cursor=str(items[limit - 1].id) if more else None)


def kept_for() -> timedelta | None:
    """How long entries are kept. None: for ever."""
    days = get_settings().audit_days
    return timedelta(days=days) if days else None


def _as_record(row: Any) -> AuditRecord:
    return AuditRecord(**{name: getattr(row, name) for name in AuditRecord.__struct_fields__})


def _plain(value: Any) -> Any:
    """As JSON can hold it, without what keys name as secrets: entries are read by many and kept for ever."""
    return Redaction(get_settings().redact_keys).value(_built(value))


def _storable(value: Any) -> Any:
    """With NUL and half characters written out: no database takes them, and with one in their reason people could
    keep what they do out of the log.
    """
    match value:
        case str():
            return value.encode("utf-8", "backslashreplace").decode().replace("\0", r"\x00")
        case builtins.list():
            return [_storable(item) for item in value]
        case dict():
            return {_storable(key): _storable(item) for key, item in value.items()}
        case _:
            return value


def _built(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=(), str_keys=True, enc_hook=str)


def _insert(**values: Any) -> None:
    from django.db import router, transaction

    from jobs.models import AuditEntry

    # Within a transaction of the caller this is a savepoint: a failure here must not spoil theirs.
    with transaction.atomic(router.db_for_write(AuditEntry)):
        AuditEntry.objects.create(**values)


def _in_own_thread_if_async(write: Callable[[], None]) -> None:
    """Django refuses its database in a thread with a running event loop; then it is another thread's business."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        write()
        return
    with ThreadPoolExecutor(1) as aside:
        aside.submit(_then_close, write).result()


def _then_close(write: Callable[[], None]) -> None:
    from django.db import connections

    try:
        write()
    finally:
        connections.close_all()


alist = twin(list, uses_database=True)
