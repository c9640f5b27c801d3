"""The list of jobs: filters in the URL, states as counters, pages by cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.http import HttpRequest
from django.urls import reverse

from dashboard import reads, saved, stories, timeline
from dashboard.actions.jobs import bulk_actions, possible
from dashboard.actions.matching import matching_actions
from dashboard.filters import Filters
from dashboard.formats import read_number
from dashboard.overall import Overall
from dashboard.panels.base import Panel
from dashboard.panels.bulk import under_way
from dashboard.permissions import OPERATE, may
from jobs.api import Page
from jobs.core.job import Job
from jobs.core.states import JobState

ID_MAX = 300

SHOWN_MAX = 200
"""So many rows of an open page are brought up to date at once."""


@dataclass(frozen=True)
class Row:
    """A job in a list, with the one line that tells it from its neighbours."""

    job: Job
    reason: str
    over: bool = False  # it is shown on an open page, but no longer matches that page's filter


class Jobs(Panel):
    slug = "jobs"
    title = "Jobs"
    icon = "jobs"
    group = "Operate"
    key = "j"
    on_phone = True

    def filters(self, request: HttpRequest) -> Filters:
        return Filters.read(request.GET)

    def context(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        filters = self.filters(request)
        page = reads.jobs(filters.selection(overall.now), filters.cursor, filters.limit)
        return {
            "filters": filters,
            "page": page,
            "rows": rows(page.items, overall),
            "older": filters.at(page.next_cursor) if page.next_cursor else "",
            "scanned": page.scanned,
            "newest": filters.query if filters.cursor else None,
            "tabs": [(state, filters.with_states(str(state)).query) for state in JobState],
            "all_states": filters.with_states().query,
            "pool_names": sorted(pool["name"] for pool in overall.pools),
            "selection": bulk_actions(request.user, filters.states),
            "matching": None,
            "matching_actions": matching_actions(request.user, filters),
            "under_way": under_way(overall),
            "views": saved.views(request, self.slug, filters),
            "may_share": may(request.user, OPERATE),
            **self._links(filters),
            **_peeked(request, overall),
        }

    def _links(self, filters: Filters) -> dict[str, Any]:
        """What the links of rows to their own peek begin with, without a script and with one."""
        return {
            "peek_base": filters.at(filters.cursor) if filters.cursor else filters.query,
            "peek_url": reverse("dashboard:fragment", args=["peek"]),
        }

    def updates(self, request: HttpRequest, overall: Overall) -> dict[str, Any]:
        """The rows an open page shows, as they are now, and how many newer ones there are.

        ``shown`` repeats the ids of the page's rows, as many as an address holds; ``rows`` is their number. A row whose
        job has gone or no longer matches is marked, not dropped: nothing moves under the reader's hand.
        """
        filters = self.filters(request)
        selection = filters.selection(overall.now)
        told = request.GET.getlist("shown")
        ids, of_page = told[:SHOWN_MAX], max(len(told), read_number(request.GET.get("rows", "")))
        found = {job.id: job for job in reads.jobs_by_id(ids) if job is not None} if ids else {}
        page = None if filters.cursor else reads.jobs(selection, "", filters.limit)
        newer = _newer(page, ids, of_page, filters.limit) if page is not None else 0
        return {
            "filters": filters,
            "page": page,
            "matching": None,
            "matching_actions": matching_actions(request.user, filters),
            **self._links(filters),
            "rows": [
                replace(row, over=not selection.matches(row.job))
                for row in rows([found[id_] for id_ in ids if id_ in found], overall)
            ],
            "gone": [id_ for id_ in ids if id_ not in found],
            "newer": newer,
            "newer_is_page": newer >= filters.limit,
        }


def _newer(page: Page, shown: Sequence[str], rows: int, limit: int) -> int:
    """How many jobs of the first page are news to an open one that has so many rows and shows at least these.

    Unless those were all that there was, what stands below them is none: it has moved up as others left.
    """
    first, known = [job.id for job in page.items], set(shown)
    is_cut = page.next_cursor is not None and len(first) < limit  # a few large jobs fill a page
    is_all = len(shown) == rows < limit and not is_cut
    last = max((place for place, id in enumerate(first) if id in known), default=len(first))
    return sum(id not in known for id in (first if is_all else first[:last]))


def peek(request: HttpRequest, job: Job, overall: Overall) -> dict[str, Any]:
    """A job in a few lines, below its row: what happened, where, and what may be done."""
    finding, rest = stories.what_happened(job, overall)
    frames = timeline.frames(str((job.error or {}).get("traceback") or ""))
    return {
        "peeked": job,
        "peek_finding": finding,
        "peek_rest": rest,
        "peek_frame": next((part.text for part in reversed(frames) if part.own and part.number), ""),
        "peek_actions": possible(job, request.user),
    }


def _peeked(request: HttpRequest, overall: Overall) -> dict[str, Any]:
    """The job whose peek is open, for readers without script."""
    id = request.GET.get("peek", "")[:ID_MAX]
    [job] = reads.jobs_by_id([id]) if id else [None]
    return peek(request, job, overall) if job is not None else {}


def rows(jobs: list[Job], overall: Overall) -> list[Row]:
    return [Row(job, stories.beside_its_time(job, overall)) for job in jobs]
