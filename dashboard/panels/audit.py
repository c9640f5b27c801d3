"""The audit log: who did what, when and from where."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import DatabaseError
from django.http import HttpRequest, QueryDict
from django.utils import timezone

from dashboard.panels.base import Panel
from dashboard.reads import Overall
from jobs import api
from jobs.api.audit import AuditFilter

WORDS = ("who", "action", "target", "source")
SOURCES = ("command", "admin", "dashboard", "api", "python")
SPANS = {"1h": 3_600, "1d": 86_400, "7d": 604_800, "30d": 2_592_000}


class Audit(Panel):
    """Costs one page of rows, whatever the log holds. Its database may be away: then it says so."""

    slug = "audit"
    title = "Audit log"
    icon = "audit"
    group = "Look back"
    key = "a"
    refresh_seconds = 10.0

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        given = {word: request.GET.get(word, "").strip()[:300] for word in WORDS}
        span = request.GET.get("since", "")
        since = timezone.now() - timedelta(seconds=SPANS[span]) if span in SPANS else None
        common = {"given": given, "since": span if span in SPANS else "", "spans": tuple(SPANS), "sources": SOURCES}
        try:
            page = api.audit.list(AuditFilter(**given, since=since), cursor=request.GET.get("cursor", "")[:20])
        except DatabaseError:
            return common | {"unread": True, "entries": [], "older": ""}
        older = QueryDict(mutable=True)
        older.update({word: value for word, value in {**given, "since": span}.items() if value})
        older["cursor"] = page.next_cursor or ""
        return common | {
            "entries": page.items,
            "older": older.urlencode() if page.next_cursor else "",
            "narrowed": any(given.values()) or since is not None,
        }
