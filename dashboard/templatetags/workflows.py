"""What the templates of workflows need beside those of the dashboard: bars of states, and words of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dashboard.formats import count
from dashboard.links import run_url
from dashboard.templatetags.dashboard import state
from dashboard.workflows.course import WORDS
from jobs.core.states import JobState

register = template.Library()
register.simple_tag(run_url)


@register.simple_tag
def node_word(name: str) -> str:
    """The state of a node as a word: ``waits`` for blocked."""
    return WORDS.get(JobState(name), name)


@register.simple_tag
def node_state(name: str, number: int | None = None) -> SafeString:
    """A node's state as shape and word, with how many are in it."""
    return state(name, node_word(name) if number is None else f"{count(number)} {node_word(name)}")


@register.filter
def percent(number: float) -> str:
    """``12.5%``, for the places of shapes."""
    return f"{number:.2f}%"


@register.simple_tag
def state_bar(counts: Iterable[tuple[str, int]], total: int) -> SafeString:
    """A bar of parts, as wide as so many nodes are in each state. ``counts``: (state, number, …) from the left on."""
    parts = [(str(name), number) for name, number, *_ in counts if number]
    places, left = [], 0.0
    for name, number in parts:
        width = 100 * number / max(1, total)
        places.append((name, f"{left:.2f}%", f"{width:.2f}%"))
        left += width
    return format_html(
        '<svg class="state-bar" role="img" aria-label="{}">{}</svg>',
        ", ".join(f"{count(number)} {node_word(name)}" for name, number in parts) or "no node",
        format_html_join("", '<rect class="is-{}" x="{}" width="{}" height="100%"/>', places),
    )


@register.simple_tag
def edge_sample(kind: str) -> SafeString:
    """A short line as edges of this kind are drawn, for the legend."""
    return format_html(
        '<svg class="graph sample" aria-hidden="true" width="28" height="8">'
        '<path class="line is-{}" d="M1 4H27"/></svg>',
        kind,
    )
