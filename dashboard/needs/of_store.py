"""The store itself: slow, not persistent, short of memory, or with a clock that is off."""

from __future__ import annotations

from datetime import timedelta

from django.urls import reverse

from dashboard.formats import near, plural, sentence
from dashboard.needs.need import Need
from dashboard.overall import Overall

JUMP_IS_NEWS = timedelta(hours=1)
"""So long after the server's clock jumped that is told."""

WORDS = {
    "store": " refuses changes",
    "server version": " is too old",
    "persistence": " may lose jobs",
    "memory": " may run out of memory",
    "clock": " has a clock that is off",
    "speed": " is slow",
}
"""What each check of the server is about."""


def store_needs(overall: Overall) -> list[Need]:
    """One, of the worst that was found, with what mends it."""
    found = [(WORDS.get(flaw.check, " needs a look"), f"{sentence(flaw.detail)} {flaw.fix}") for flaw in overall.flaws]
    jumped = overall.clock_jumped_at
    if jumped and overall.now - jumped <= JUMP_IS_NEWS:
        held = "Nothing was taken from workers for the length of a lease. Let the server keep time with NTP."
        found.append((f" had its clock jump at {near(jumped, overall.now)}", held))
    if not found:
        return []
    after, cause = found[0]
    more = f" And {plural(len(found) - 1, 'more finding')}." if len(found) > 1 else ""
    url = reverse("dashboard:topology")
    return [Need("warning", "The ", "store", url, after, f"{cause}{more}", command="python manage.py doctor")]
