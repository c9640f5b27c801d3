"""What needs somebody, in sentences, worst first: the headline of the overview, and of every tab's title.

Pure functions over what was read; nothing here asks the engine. Each kind of thing has a module.
"""

from __future__ import annotations

from collections.abc import Sequence

from dashboard.formats import count
from dashboard.needs.need import Need
from dashboard.needs.of_errors import error_needs
from dashboard.needs.of_hosts import host_needs
from dashboard.needs.of_pauses import pause_needs, whole_needs
from dashboard.needs.of_pools import pools_needs
from dashboard.needs.of_schedules import schedule_needs
from dashboard.needs.of_store import store_needs
from dashboard.overall import Overall
from jobs.api import ErrorGroup

__all__ = ["Need", "headline", "needs"]

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def needs(overall: Overall, groups: Sequence[ErrorGroup] = (), sampled: int = 0) -> list[Need]:
    """What needs somebody, worst first. ``groups`` are of the newest ``sampled`` dead jobs."""
    return [
        *error_needs(overall, groups, sampled),
        *store_needs(overall),
        *whole_needs(overall),
        *pause_needs(overall),
        *pools_needs(overall),
        *schedule_needs(overall),
        *host_needs(overall),
    ]


def headline(overall: Overall, found: Sequence[Need]) -> str:
    if not overall.known:
        return "Nothing is known yet"
    if not found:
        return "Nothing needs you"
    number = NUMBERS[len(found)] if len(found) < len(NUMBERS) else count(len(found))
    return f"{number.capitalize()} thing{'s need' if len(found) > 1 else ' needs'} you"
