"""Schedules: when they fire, and how people write that down.

``reading`` makes an ``expression`` of cron text, ``kinds`` has the rules made of it, ``zones`` knows when clocks are
changed, ``description`` puts an expression in words, ``preview`` shows all of it before a schedule is stored.
"""

from jobs.core.schedule.expression import Expression
from jobs.core.schedule.kinds import SCHEDULE_KINDS, Cron, Interval, Once, Rule
from jobs.core.schedule.preview import ALWAYS, Firing, Preview, Window, firings, preview, preview_of
from jobs.core.schedule.reading import LONGEST_EXPRESSION, parse
from jobs.core.schedule.zones import zone_named

__all__ = [
    "ALWAYS",
    "LONGEST_EXPRESSION",
    "SCHEDULE_KINDS",
    "Cron",
    "Expression",
    "Firing",
    "Interval",
    "Once",
    "Preview",
    "Rule",
    "Window",
    "firings",
    "parse",
    "preview",
    "preview_of",
    "zone_named",
]
