"""The audit log as a file, for those who keep it elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from dashboard.deeds import as_lines, as_table
from dashboard.panels.audit import Wanted
from dashboard.permissions import VIEW, requires
from jobs import api
from jobs.api.audit import AuditFilter, AuditRecord

MOST = 10_000
"""Entries of one file, the newest that match; the name of the file says where it was cut."""

AT_ONCE = 1_000

KINDS = {"csv": ("text/csv; charset=utf-8", as_table), "jsonl": ("application/jsonl; charset=utf-8", as_lines)}


@require_GET
@requires(VIEW)
def audit(request: HttpRequest) -> HttpResponseBase:
    """The entries that match the words of the address, newest first, as ``format=csv`` or ``jsonl``."""
    kind = request.GET.get("format", "")
    kind = kind if kind in KINDS else "csv"
    wanted = Wanted.read(request.GET)
    if wanted.problems:
        return HttpResponse(" ".join(wanted.problems), status=400, content_type="text/plain; charset=utf-8")
    try:
        entries = list(_entries(wanted.filter))
    except DatabaseError:
        text = "The database of the audit log cannot be read."
        return HttpResponse(text, status=503, content_type="text/plain; charset=utf-8")
    content_type, written = KINDS[kind]
    response = HttpResponse(written(entries), content_type=content_type)
    cut = f"-newest-{MOST}" if len(entries) == MOST else ""
    response["Content-Disposition"] = f'attachment; filename="audit{cut}.{kind}"'
    return response


def _entries(wanted: AuditFilter) -> Iterator[AuditRecord]:
    cursor: str | None = None
    for _ in range(MOST // AT_ONCE):
        page = api.audit.list(wanted, cursor=cursor, limit=AT_ONCE)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return
