"""A row of a list of jobs, drawn in Python: fifty of them took a template longer than all the rest of the page, and
whoever opens the page waits for it (docs/decisions/0026-one-style-sheet.md). All text of jobs is escaped here.
"""

from __future__ import annotations

from urllib.parse import quote

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard import links, trees
from dashboard.panels.jobs import Row
from dashboard.templatetags.dashboard import job_state, middle_cut, when
from jobs.core.job import Job
from jobs.core.states import JobState

register = template.Library()

ROW = (
    '<tr data-key="{id}" data-state="{state}" class="is-row"{over}>'
    '<td class="pick"><label>'
    '<input type="checkbox" name="id" value="{id}" aria-label="Select {type} {short}"></label></td>'
    '<td class="state-cell">{badge}{ending}</td>'
    '<th scope="row">'
    '<a class="icon-button peek-link" href="?{before}peek={key}#peek" data-peek="{peek_url}?id={key}" data-press="e"'
    ' aria-label="Peek at {type} {short}"></a>'
    '<a href="{url}" data-open>{type}</a> <span class="mono soft call">{call}</span></th>'
    '<td data-label="pool">{pool}</td>'
    '<td data-label="when" class="nowrap">{when}</td>'
    '<td data-label="attempt" class="number">{attempt}</td>'
    '<td class="why-cell" data-label="why">{progress}<span class="soft cut">{reason}</span></td></tr>\n'
)


@register.simple_tag(takes_context=True)
def job_row(context: Context, row: Row) -> SafeString:
    """The row of one job. From the context: now, and where links to peeks lead (``peek_base``, ``peek_url``)."""
    job = row.job
    return format_html(
        ROW,
        id=job.id,
        state=str(job.state),
        over=SafeString(" data-over" if row.over else ""),
        type=job.type,
        short=middle_cut(job.id),
        badge=job_state(job),
        ending=_ending(job),
        before=f"{base}&" if (base := context["peek_base"]) else "",
        key=quote(job.id, safe=""),
        peek_url=context["peek_url"],
        url=links.job_url(job.id),
        call=trees.call(job.payload),
        pool=job.pool,
        when=when(context, job),
        attempt=job.attempt if job.attempt > 1 or job.state == JobState.DEAD else "",
        progress=_progress(job),
        reason=row.reason,
    )


def _ending(job: Job) -> SafeString:
    """What is on its way beside the state, if anything is."""
    word = "cancelling" if job.cancel_requested else "parked" if job.parked else ""
    return format_html(' <span class="small soft">{}</span>', word) if word else SafeString("")


def _progress(job: Job) -> SafeString:
    """The bar of a job that runs and says how far it is; the page asks for the row anew while it is shown."""
    progress = job.progress or {}
    if job.state != JobState.LEASED or not progress.get("total"):
        return SafeString("")
    return format_html(
        '<progress data-poll="3" max="{}" value="{}" aria-label="progress"></progress> ',
        progress["total"],
        progress.get("current", ""),
    )
