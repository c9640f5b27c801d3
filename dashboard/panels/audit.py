"""The audit log: who did what, when and from where."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, QueryDict
from django.utils import timezone

from dashboard.choices import chosen
from dashboard.deeds import Deed
from dashboard.formats import duration
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from jobs import api
from jobs.api.audit import AuditFilter

WORDS = ("who", "action", "target", "source")
SOURCES = ("command", "admin", "dashboard", "api", "python")
SPANS = {"1h": 3_600, "1d": 86_400, "7d": 604_800, "30d": 2_592_000}


@dataclass(frozen=True)
class Wanted:
    """Which entries: the words of the address."""

    given: dict[str, str]
    span: str
    problems: tuple[str, ...] = ()

    @classmethod
    def read(cls, query: QueryDict) -> Wanted:
        given = {word: query.get(word, "").strip()[:300] for word in WORDS}
        given["source"], nowhere = chosen(given["source"], "source", SOURCES)
        span, never = chosen(query.get("since", ""), "time to look back", SPANS)
        return cls(given, span, tuple(filter(None, (nowhere, never))))

    @property
    def since(self) -> datetime | None:
        return timezone.now() - timedelta(seconds=SPANS[self.span]) if self.span else None

    @property
    def filter(self) -> AuditFilter:
        return AuditFilter(**self.given, since=self.since)

    def query(self, **more: str) -> str:
        words = QueryDict(mutable=True)
        words.update({word: value for word, value in {**self.given, "since": self.span, **more}.items() if value})
        return words.urlencode()


class Audit(Panel):
    """Costs one page of rows, whatever the log holds. Its database may be away: then it says so."""

    slug = "audit"
    title = "Audit log"
    icon = "audit"
    group = "Look back"
    key = "a"
    refresh_seconds = 10.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        wanted = Wanted.read(request.GET)
        common: dict[str, Any] = {
            "kept": _kept(),
            "given": wanted.given,
            "since": wanted.span,
            "problems": wanted.problems,
            "spans": tuple(SPANS),
            "sources": SOURCES,
        }
        try:
            page = api.audit.list(wanted.filter, cursor=request.GET.get("cursor", "")[:20])
        except DatabaseError:
            return common | {"unread": True, "deeds": [], "older": ""}
        return common | {
            "deeds": [Deed(entry) for entry in page.items],
            "older": wanted.query(cursor=page.next_cursor) if page.next_cursor else "",
            "narrowed": bool(wanted.query()),
            "as_table": wanted.query(format="csv"),
            "as_lines": wanted.query(format="jsonl"),
        }


def _kept() -> str:
    """How long entries are kept; empty where it is for ever."""
    kept = api.audit.kept_for()
    return duration(kept.total_seconds()) if kept else ""
