"""What templates need to write states, times, figures and trees of data. All text of jobs is escaped here."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import msgspec
from django import template
from django.http import HttpRequest, QueryDict
from django.middleware.csrf import get_token
from django.template import Context
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard import evidence, formats, links, reads, standing, stories, timeline
from dashboard.actions import BY_SLUG
from dashboard.actions.base import Action
from dashboard.overall import UNREACHABLE
from dashboard.panels.base import Panel
from dashboard.permissions import closed_pools, may, may_reach
from jobs.api import ErrorGroup, Mute
from jobs.core.job import Job, iso
from jobs.core.job import moment as job_moment
from jobs.core.schedule.strip import Strip
from jobs.core.states import JobState

register = template.Library()

WORDS = {"leased": "running", "retry_wait": "retry wait"}
"""States whose word on a page differs from the word in the contract."""

TREE_DEPTH = 12
TREE_ITEMS = 500
TEXT_SHOWN = 2000
FOLD_ABOVE = 12

register.filter("count", formats.count)
register.filter("duration", formats.duration)
register.filter("rate", formats.rate)
register.filter("size", formats.size)
register.filter("moment", formats.moment)
register.filter("day", formats.day)
register.filter("zone", formats.zone)
register.filter("wall", formats.wall)
register.filter("shortened", formats.shortened)
register.filter("job_url", links.job_url)
register.filter("bulk_url", links.bulk_url)
register.filter("error_line", stories.error_line)
register.filter("attempt_error", timeline.attempt_error)
register.filter("outcome_state", timeline.outcome_state)
register.filter("frames", timeline.frames)


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
        return "" if facts is None else formats.shortened(_worded(facts), TEXT_SHOWN)
    words = (f"{name} {'none' if value is None else _worded(value)}" for name, value in facts.items())
    return formats.shortened(", ".join(words), TEXT_SHOWN)


def _worded(value: Any) -> str:
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
def state_word(state: str) -> str:
    return WORDS.get(str(state), str(state))


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
    """A shape of the sprite. Decoration: the word beside it says the same."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("dashboard/icons.svg"), name
    )


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
        '<a class="button{}" href="{}?{}"{}>{}</a>',
        "" if loud else " quiet",
        action.url,
        urlencode({name: value for name, value in query.items() if value}),
        format_html(' data-press="{}"', action.key) if action.key else "",
        words or format_html('{}<span class="unseen"> {}</span>', action.label, id),
    )


@register.simple_tag(takes_context=True)
def act_all(context: Context, verb: str, words: str, **filters: str) -> SafeString:
    """The same for all jobs that match: ``{% act_all "run-now" "Run delayed jobs now" pool=pool.name state="…" %}``."""
    action, request = BY_SLUG[f"matching.{verb}"], context["request"]
    given = QueryDict(mutable=True)
    given.update({**filters, "next": context.get("here") or request.get_full_path()})
    if not may(request.user, action.permission) or not may_reach(request.user, action.reach((), given)):
        return SafeString("")
    return format_html('<a class="button quiet" href="{}?{}">{}</a>', action.url, given.urlencode(), words)


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
    return format_html('<span class="state is-{}">{}{}</span>', str(name), icon(str(name)), word or state_word(name))


@register.simple_tag
def job_state(job: Job) -> SafeString:
    """A job's state; leased is called running once the job has really started."""
    return state(str(job.state), "leased" if job.state == JobState.LEASED and not job.is_running else "")


@register.simple_tag(takes_context=True)
def figure(context: Context, *key: str) -> SafeString:
    """A live figure: its text now, and its key for the page's script to change it by."""
    name = ".".join(str(part) for part in key)
    return format_html('<span data-figure="{}">{}</span>', name, context["figures"].get(name, formats.UNKNOWN))


@register.simple_tag(takes_context=True)
def figure_text(context: Context, *key: str) -> str:
    """The text of a live figure alone."""
    return str(context["figures"].get(".".join(str(part) for part in key), ""))


@register.simple_tag(takes_context=True)
def ago(context: Context, at: datetime | None, prefix: str = "") -> SafeString:
    """A moment relative to now; the page's script lets it tick. Absolute in the title."""
    if at is None:
        return SafeString(formats.UNKNOWN)
    return format_html(
        '<time datetime="{}" title="{}" data-tick>{}{}</time>',
        iso(at),
        formats.moment(at),
        prefix,
        formats.relative(at, context["now"]),
    )


@register.simple_tag(takes_context=True)
def when(context: Context, job: Any) -> SafeString:
    """The moment that matters in the job's state: starts in, ready for, running for, ended."""
    match str(job.state):
        case "scheduled" | "retry_wait":
            return ago(context, job.run_at)
        case "ready":
            return ago(context, job.ready_at or job.created_at)
        case "leased":
            return ago(context, job.started_at or job.leased_at)
        case "blocked":
            return ago(context, job.created_at)
        case _:
            return ago(context, job.finished_at or job.created_at)


@register.filter
def call(payload: Any) -> str:
    """The first arguments of a job as a reader would write them: ``to="a@example.com", amount=3``."""
    if not isinstance(payload, dict):
        return ""
    shown = []
    for name, value in list(payload.items())[:4]:
        text = formats.shortened(_flat(value), 40)
        shown.append(f"{name}={text}")
    return formats.shortened(", ".join(shown), 120)


def _flat(value: Any) -> str:
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """As JSON; a string that cannot be encoded is shown as it is."""
    try:
        return msgspec.json.encode(value).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError):
        return repr(value)


@register.simple_tag
def tree(value: Any) -> SafeString:
    """A JSON value as nested, foldable lists; deep, long and wide ones are cut and say so."""
    budget = iter(range(TREE_ITEMS))
    if not isinstance(value, (dict, list)):
        return format_html('<p class="tree mono">{}</p>', _leaf(value))
    if not value:
        return format_html('<p class="tree mono">{}</p>', "{}" if isinstance(value, dict) else "[]")
    return format_html('<ul class="tree mono">{}</ul>', mark_safe("".join(_branches(value, budget, 1))))  # noqa: S308  # made of format_html


def _branches(value: dict[str, Any] | list[Any], budget: Iterator[int], depth: int) -> Iterator[str]:
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for number, (name, child) in enumerate(pairs):
        if next(budget, None) is None:
            yield format_html('<li class="cut">… {} more, not shown</li>', len(value) - number)
            return
        key = format_html('<span class="key">{}</span>', f"{_scalar(name)}:" if isinstance(name, str) else f"{name}:")
        if isinstance(child, (dict, list)) and child:
            yield _branch(key, child, budget, depth)
        else:
            yield format_html("<li>{} {}</li>", key, _leaf(child))


def _branch(key: SafeString, child: dict[str, Any] | list[Any], budget: Iterator[int], depth: int) -> SafeString:
    many = formats.plural(len(child), "key" if isinstance(child, dict) else "item")
    if depth >= TREE_DEPTH:
        return format_html('<li>{} <span class="cut">{}, too deep to show</span></li>', key, many)
    return format_html(
        '<li><details{}><summary>{} <span class="soft">{}</span></summary><ul>{}</ul></details></li>',
        SafeString(" open") if len(child) <= FOLD_ABOVE else "",
        key,
        many,
        mark_safe("".join(_branches(child, budget, depth + 1))),  # noqa: S308  # made of format_html
    )


def _leaf(value: Any) -> SafeString:
    text = "{}" if value == {} else "[]" if value == [] else _scalar(value)
    if len(text) > TEXT_SHOWN:
        return format_html(
            '{}<span class="cut">… {} more characters</span>', text[:TEXT_SHOWN], formats.count(len(text) - TEXT_SHOWN)
        )
    return format_html("{}", text)


@register.filter
def raw_json(value: Any) -> str:
    """The value as JSON for the copy button; empty when it is too long to be carried twice."""
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except (UnicodeEncodeError, msgspec.MsgspecError, RecursionError):
        return ""
    return text if len(text) <= 20_000 else ""


CELLS_A_ROW, CELLS_SHOWN = 16, 64


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


@register.simple_tag
def slot_cells(busy: int, slots: int, stuck: int = 0, *, leaving: bool = False) -> SafeString:
    """One cell per slot, the busy ones filled, of these the ``stuck`` ones outlined in red; free ones of a worker that
    takes nothing new are hatched. Above 64 slots each cell stands for several.
    """
    busy, slots = max(0, min(busy, slots)), max(0, slots)
    step = max(1, -(-slots // CELLS_SHOWN))
    cells = range(-(-slots // step))
    width, height = max(1, min(len(cells), CELLS_A_ROW) * 9), max(1, -(-len(cells) // CELLS_A_ROW) * 11)

    def kind(cell: int) -> str:
        if cell * step >= busy:
            return "leaving" if leaving else "free"
        return "stuck" if cell * step < stuck else "busy"

    drawn = format_html_join(
        "",
        '<path class="{}" d="M{} {}{}"/>',
        (
            (found := kind(cell), cell % CELLS_A_ROW * 9 + 0.5, cell // CELLS_A_ROW * 11 + 0.5, _CELLS[found])
            for cell in cells
        ),
    )
    words = f"{busy} of {slots} slots busy"
    words += f", {stuck} with a job that is stalled" if stuck else ""
    words += ", no new jobs" if leaving else ""
    return format_html(
        '<svg class="cells" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>',
        words,
        width,
        height,
        width,
        height,
        drawn,
    )


_BOX = "h6v8h-6z"
_CELLS = {"busy": _BOX, "free": _BOX, "stuck": _BOX, "leaving": f"{_BOX}m0 5l4 -5m2 3l-4 5"}
"""The shape of each kind of cell: told apart without colour."""


@register.simple_tag(takes_context=True)
def trend(context: Context, group: ErrorGroup) -> SafeString:
    """Deaths of a group by the hour as bars, with the last deploy among them; in words in the label."""
    overall = context["overall"]
    found = evidence.trend(group, overall.now, overall.day.released_at if overall.day else None)
    if found is None:
        return SafeString("")
    deploy = SafeString("")
    if found.deploy is not None:
        deploy = format_html('<path class="deploy" d="M{} 0V28"/>', f"{found.deploy:g}")
    return format_html(
        '<svg class="trend" role="img" aria-label="{}" viewBox="0 0 120 28" width="120" height="28">'
        '<path class="ground" d="M0 27.5H120"/><path class="is-dead" d="{}"/>{}</svg>',
        found.label,
        found.path,
        deploy,
    )


STRIP_STATES = {"failed": "dead", "pending": "leased", "fired": "scheduled"}


@register.simple_tag
def firing_strip(strip: Strip) -> SafeString:
    """The last firings, a cell each; what they say stands in the label."""
    if not strip.paths:
        return SafeString("")
    return format_html(
        '<svg class="strip" role="img" aria-label="{}" viewBox="0 0 {} {}" width="{}" height="{}">{}</svg>',
        strip.label,
        strip.width,
        strip.height,
        strip.width,
        strip.height,
        format_html_join(
            "", '<path class="is-{}" d="{}"/>', ((STRIP_STATES.get(name, name), path) for name, path in strip.paths)
        ),
    )
