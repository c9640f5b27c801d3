"""Small pictures in lines and tables, each with the same in words as its label."""

from __future__ import annotations

from django.template import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from dashboard import evidence
from jobs.api import ErrorGroup
from jobs.core.schedule.strip import Strip

CELLS_A_ROW, CELLS_SHOWN = 16, 64

_BOX = "h6v8h-6z"
_CELLS = {"busy": _BOX, "free": _BOX, "stuck": _BOX, "leaving": f"{_BOX}m0 5l4 -5m2 3l-4 5"}
"""The shape of each kind of cell: told apart without colour."""

STRIP_STATES = {"failed": "dead", "pending": "leased", "fired": "scheduled"}


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
