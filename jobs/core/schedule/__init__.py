"""Schedules: when they fire, and how people write that down.

``expression`` reads cron text, ``kinds`` has the rules made of it, ``zones`` knows when clocks change, ``description``
puts an expression in words, ``preview`` shows all of it before a schedule is stored.
"""

from jobs.core.schedule.expression import LONGEST_EXPRESSION, Expression, parse
from jobs.core.schedule.kinds import SCHEDULE_KINDS, Cron, Interval, Once, Rule
from jobs.core.schedule.preview import ALWAYS, Firing, Preview, Window, firings, preview, preview_of
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
