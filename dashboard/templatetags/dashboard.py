"""What templates need to write states, times, figures and buttons; trees and pictures have rooms of their
own. All text of jobs is escaped in these three."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from django import template
from django.contrib.staticfiles import finders
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, QueryDict
from django.middleware.csrf import get_token
from django.template import Context
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard import formats, links, pictures, reads, standing, stories, timeline, trees
from dashboard.actions import BY_SLUG
from dashboard.actions.base import Action
from dashboard.filters import Filters, words_kept
from dashboard.overall import UNREACHABLE
from dashboard.panels.base import Panel
from dashboard.permissions import closed_pools, may, may_reach
from jobs.api import ErrorGroup, Mute, configuration
from jobs.core.job import Job, iso
from jobs.core.job import moment as job_moment
from jobs.core.states import JobState

register = template.Library()

CHANGES_SHOWN = 2000
"""Characters of one side of a change in the audit log."""

SYMBOL = re.compile(r'<symbol id="(\w+)" viewBox="([\d ]+)">(.+)</symbol>')

register.filter("count", formats.count)
register.filter("exactly", formats.exactly)
register.filter("duration", formats.duration)
register.filter("rate", formats.rate)
register.filter("size", formats.size)
register.filter("moment", formats.moment)
register.filter("day", formats.day)
register.filter("zone", formats.zone)
register.filter("wall", formats.wall)
register.filter("state_word", formats.state_word)
register.filter("shortened", formats.shortened)
register.filter("job_url", links.job_url)
register.filter("bulk_url", links.bulk_url)
register.filter("trace_url", configuration.trace_url)
register.filter("error_line", stories.error_line)
register.filter("attempt_error", timeline.attempt_error)
register.filter("outcome_state", timeline.outcome_state)
register.filter("frames", timeline.frames)
register.filter("call", trees.call)
register.filter("raw_json", trees.raw_json)
register.simple_tag(trees.tree)
register.simple_tag(pictures.slot_cells)
register.simple_tag(pictures.firing_strip)
register.simple_tag(pictures.trend, takes_context=True)


PAUSE_FIELDS = {"by", "at", "reason", "until"}


@register.filter
def near(until: str, now: datetime) -> str:
    """A moment in ISO 8601 on the reader's clock: ``13:42``, or ``29 Nov, 13:42``."""
    at = formats.read_moment(until)
    return formats.near(at, now) if at else until


@register.filter
def percent(part: float) -> str:
    """``37 %``"""
    return f"{100 * part:.0f} %"


@register.filter
def open_to(panels: Iterable[Panel], user: Any) -> list[Panel]:
    """The panels that this user may open."""
    return [panel for panel in panels if may(user, panel.permission)]


@register.filter
def changes(facts: Any) -> str:
    """``slots 3, max_running none``: one side of a change, as the audit log keeps it."""
    if not isinstance(facts, dict):
        return "" if facts is None else formats.shortened(_worded(facts), CHANGES_SHOWN)
    return formats.shortened(", ".join(_change(name, value) for name, value in facts.items()), CHANGES_SHOWN)


def _change(name: str, value: Any) -> str:
    if name == "filter" and isinstance(value, dict):
        return words_kept(value)
    return f"{name} {'none' if value in (None, '') else _worded(value)}"


def _worded(value: Any) -> str:
    if isinstance(value, dict) and value.keys() >= PAUSE_FIELDS:
        return standing.about_pause(value).lstrip()
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def at(found: Mapping[str, Any], key: str) -> Any:
    """What stands under a key; empty where nothing does."""
    return found.get(str(key), "")


@register.filter
def clock_short(at: datetime | None) -> str:
    """``13:45``, or ``13:42:30`` where the seconds matter."""
    return formats.clock(at).removesuffix(":00")


@register.filter
def clock(at: datetime | None) -> str:
    """``13:42:08.207``"""
    return formats.clock(at, milliseconds=True)


@register.filter
def minute(at: datetime | None) -> str:
    """``13:42``"""
    return formats.clock(at)[:5]


@register.filter
def pool_state(pool: dict[str, Any]) -> tuple[str, str, str]:
    return standing.pool_state(pool)


@register.filter
def seconds_between(end: datetime | None, start: datetime | None) -> float | None:
    return max(0.0, (end - start).total_seconds()) if end and start else None


@register.filter
def middle_cut(text: str, limit: int = 26) -> str:
    """An id with its middle left out: both ends tell it from its neighbours."""
    if len(text) <= limit:
        return text
    head = limit - 9
    return f"{text[:head]}…{text[-8:]}"


@register.simple_tag
def icon(name: str) -> SafeString:
    """A shape, drawn in the page itself. Decoration: the word beside it says the same."""
    box, shape = _shapes().get(str(name), ("0 0 16 16", ""))
    return SafeString(f'<svg class="icon" viewBox="{box}" aria-hidden="true">{shape}</svg>')


@lru_cache(1)
def _shapes() -> dict[str, tuple[str, str]]:
    """The box and the parts of every shape in the file of icons, which graphs and scripts point to instead."""
    file = finders.find("dashboard/icons.svg")
    if file is None:
        raise ImproperlyConfigured("dashboard/icons.svg is not among the static files: see STATICFILES_DIRS.")
    return {name: (box, shape) for name, box, shape in SYMBOL.findall(Path(file).read_text("utf-8"))}


@register.simple_tag(takes_context=True)
def act(context: Context, slug: str, id: str = "", words: str = "", *, loud: bool = False) -> SafeString:
    """The button of an action on a thing (``{% act "pool.pause" pool.name %}``), for those who may use it.

    ``words``: instead of the label and, for screen readers, the thing; ``loud``: with a border.
    """
    action, request = BY_SLUG[slug], context["request"]
    if not may(request.user, action.permission) or not _reaches(request, action, id):
        return SafeString("")
    query = {"id": id, "next": context.get("here") or request.get_full_path()}
    return format_html(
        '<a class="button deed{}"{}{}>{}</a>',
        "" if loud else " quiet",
        _way(context, action, urlencode({name: value for name, value in query.items() if value})),
        format_html(' data-press="{}"', action.key) if action.key else "",
        words or format_html('{}<span class="unseen"> {}</span>', action.label, id),
    )


@register.simple_tag(takes_context=True)
def act_all(context: Context, verb: str, words: str, **filters: str) -> SafeString:
    """The same for all jobs that match: ``{% act_all "run-now" "Run delayed jobs now" pool=pool.name state="…" %}``."""
    return _act_on_all(context, verb, filters.items(), words)


@register.simple_tag(takes_context=True)
def act_on_group(context: Context, verb: str, group: ErrorGroup) -> SafeString:
    """The same for all of one error in a list of them, as far as they match what the list is narrowed to."""
    filters: Filters = context["filters"].of_group(group.fingerprint)
    label = BY_SLUG[f"matching.{verb}"].label
    words = format_html('{} all…<span class="unseen"> of {}</span>', label, group.error_type)
    return _act_on_all(context, verb, filters.pairs, words)


def _act_on_all(context: Context, verb: str, filters: Iterable[tuple[str, str]], words: str) -> SafeString:
    action, request = BY_SLUG[f"matching.{verb}"], context["request"]
    given = QueryDict(mutable=True)
    for word, value in (*filters, ("next", context.get("here") or request.get_full_path())):
        given.appendlist(word, value)
    if not may(request.user, action.permission) or not may_reach(request.user, action.reach((), given)):
        return SafeString("")
    return format_html('<a class="button deed quiet"{}>{}</a>', _way(context, action, given.urlencode()), words)


@register.simple_tag(takes_context=True)
def group_url(context: Context, group: ErrorGroup) -> str:
    """The page of one error, narrowed as the list that it stands in is."""
    filters: Filters = context["filters"].of_group(group.fingerprint).with_states()
    return f"{reverse('dashboard:dead')}?{filters.query}"


def _way(context: Context, action: Action, query: str) -> SafeString:
    """The address of a link to an action; none while the store is away, when nothing can be done."""
    if context["overall"].trouble:
        return SafeString(' aria-disabled="true"')
    return format_html(' href="{}?{}"', action.url, query)


@register.simple_tag(takes_context=True)
def act_now(context: Context, slug: str, id: str, words: str, doing: str) -> SafeString:
    """The same for what is done at once and asks nothing: a form with one button."""
    action, request = BY_SLUG[slug], context["request"]
    if not may(request.user, action.permission) or not _reaches(request, action, id):
        return SafeString("")
    return format_html(
        '<form method="post" action="{}" data-act="{}" data-key="{}">'
        '<input type="hidden" name="csrfmiddlewaretoken" value="{}"><input type="hidden" name="id" value="{}">'
        '<input type="hidden" name="next" value="{}"><button class="button"{}>{}</button></form>',
        action.url,
        doing,
        f"act {slug}",
        get_token(request),
        id,
        context.get("here") or request.get_full_path(),
        SafeString(" disabled") if context["overall"].trouble else "",
        words,
    )


def _reaches(request: HttpRequest, action: Action, id: str) -> bool:
    """Asks for the pools of a thing only where there are some in which this user may not act, and once a request."""
    if not closed_pools(request.user):
        return True
    known = request.__dict__.setdefault("reached", {})
    if (action.noun, id) not in known:
        known[action.noun, id] = may_reach(request.user, action.reach((id,) if id else (), request.GET))
    return bool(known[action.noun, id])


@register.simple_tag
def state(name: str, word: str = "") -> SafeString:
    """A state as shape and word in its colour."""
    return format_html(
        '<span class="state is-{}">{}{}</span>', str(name), icon(str(name)), word or formats.state_word(name)
    )


@register.simple_tag
def job_state(job: Job) -> SafeString:
    """A job's state; leased is called running once the job has really started."""
    return state(str(job.state), "leased" if job.state == JobState.LEASED and not job.is_running else "")


@register.simple_tag(takes_context=True)
def figure(context: Context, *key: str) -> SafeString:
    """A live figure: its text now, and its key for the page's script to change it by. What is rounded is exact in the
    title."""
    name = ".".join(str(part) for part in key)
    figures = context["figures"]
    exact = figures.get(f"exact.{name}")
    title = format_html(' title="{}"', exact) if exact else ""
    return format_html('<span data-figure="{}"{}>{}</span>', name, title, figures.get(name, formats.UNKNOWN))


@register.simple_tag(takes_context=True)
def figure_text(context: Context, *key: str) -> str:
    """The text of a live figure alone."""
    return str(context["figures"].get(".".join(str(part) for part in key), ""))


@register.simple_tag(takes_context=True)
def ago(context: Context, at: datetime | None) -> SafeString:
    """A moment relative to now; the page's script lets it tick. Absolute in the title."""
    return SafeString(formats.UNKNOWN) if at is None else _ticking(at, formats.relative(at, context["now"]), "")


@register.simple_tag(takes_context=True)
def until(context: Context, at: datetime) -> SafeString:
    """The same of a moment that something waits for: once it is past, it is ``now``."""
    now = context["now"]
    return _ticking(at, formats.relative(max(at, now), now), "until")


def _ticking(at: datetime, words: str, how: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}" data-tick="{}">{}</time>', iso(at), formats.moment(at), how, words
    )


@register.simple_tag(takes_context=True)
def when(context: Context, job: Any) -> SafeString:
    """The moment that matters in the job's state: starts in, ready for, running for, ended."""
    match str(job.state):
        case "scheduled" | "retry_wait":
            return until(context, job.run_at)
        case "ready":
            return ago(context, job.ready_at or job.created_at)
        case "leased":
            return ago(context, job.started_at or job.leased_at)
        case "blocked":
            return ago(context, job.created_at)
        case _:
            return ago(context, job.finished_at or job.created_at)


@register.simple_tag
def mute_of(group: ErrorGroup) -> Mute | None:
    """What mutes a group of dead jobs now; None where it shouts."""
    try:
        return reads.mutes().of(group)
    except UNREACHABLE:
        return None


@register.filter
def from_ms(milliseconds: int) -> datetime:
    """Server milliseconds as a moment."""
    return job_moment(milliseconds)
