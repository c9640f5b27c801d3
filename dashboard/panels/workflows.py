"""The workflows: what is defined and how it goes, and the runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.db import DatabaseError
from django.http import HttpRequest
from django.urls import reverse

from dashboard import reads
from dashboard.choices import chosen
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.permissions import ENQUEUE, may
from dashboard.workflows.lists import RunRow, WorkflowRow
from jobs.api.run_history import DefinitionView

PER_PAGE = 50
STATES = (
    ("", "any"),
    ("running", "running"),
    ("succeeded", "succeeded"),
    ("failed", "failed"),
    ("cancelled", "cancelled"),
)


class Workflows(Panel):
    slug = "workflows"
    title = "Workflows"
    icon = "workflows"
    group = "Run"
    key = "f"

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        name, state, cursor = (request.GET.get(word, "").strip()[:300] for word in ("name", "state", "cursor"))
        state, problem = chosen(state, "state of a run", dict(STATES))
        page = reads.runs(name, state, cursor, PER_PAGE)
        troubled = [run.id for run in page.items if run.counts.get("dead") or run.counts.get("cancelled")]
        failures = reads.first_failures(troubled) if troubled else {}
        known = [WorkflowRow(view) for view in _known()]
        usual = {row.name: row.usual for row in known}
        return {
            "here": _url(name, state, cursor),
            "name": name,
            "state": state,
            "states": STATES,
            "problems": [problem] if problem else [],
            "cursor": cursor,
            "rows": [RunRow(run, overall.now, usual.get(run.name), failures.get(run.id)) for run in page.items],
            "workflows": [row for row in known if name in ("", row.name)],
            "names": [row.name for row in known],
            "may_start": may(request.user, ENQUEUE),
            "any_running": any(not run.is_over for run in page.items),
            "older_url": _url(name, state, page.next_cursor) if page.next_cursor else "",
            "newest_url": _url(name, state) if cursor else "",
        }


def _known() -> Sequence[DefinitionView]:
    """None where the database cannot be read: the runs are in the store, and need it not."""
    try:
        return reads.workflows()
    except DatabaseError:
        return ()


def _url(name: str = "", state: str = "", cursor: str = "") -> str:
    words = urlencode({word: value for word, value in (("name", name), ("state", state), ("cursor", cursor)) if value})
    return reverse("dashboard:workflows") + (f"?{words}" if words else "")
