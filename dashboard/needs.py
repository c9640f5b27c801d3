"""What needs somebody, in sentences, worst first: the headline of the overview, and of every tab's title.

Pure functions over what was read; nothing here asks the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from dashboard.formats import age, count, duration, near, plural, read_moment, sentence, shortened
from dashboard.links import jobs_url
from dashboard.overall import Overall
from dashboard.standing import is_late, pause_of, paused_words, unserved
from jobs.api import ErrorGroup

LONG_PAUSE_SECONDS = 3600.0
"""A pause without an end that is older than this needs somebody."""

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Need:
    """One thing that needs somebody: a finding with its noun linked, and the cause in one line."""

    mark: str  # icon: "dead" or "warning"
    before: str
    noun: str
    url: str
    after: str
    cause: str
    command: str = ""  # what would help, to be run by hand
    action: str = ""  # label of the link that leads to the remedy
    action_url: str = ""  # where that link leads, if not where the noun does
    about: tuple[str, str] = ("", "")  # "pool", "schedule" or "group" and which: what its evidence is drawn of
    pool: str = ""  # which one may be paused until this is put right

    @property
    def key(self) -> str:
        return f"{self.mark} {self.before}{self.noun}"


def needs(overall: Overall, groups: Sequence[ErrorGroup] = (), sampled: int = 0) -> list[Need]:
    """What needs somebody, worst first. ``groups`` are of the newest ``sampled`` dead jobs."""
    found = [*_dead_needs(overall, groups, sampled), *_whole_needs(overall)]
    for pool in overall.pools:
        found += _pool_needs(pool, overall)
    return [*found, *_schedule_needs(overall), *_host_needs(overall)]


def _whole_needs(overall: Overall) -> list[Need]:
    ready = overall.count("ready") or 0
    if overall.paused:
        if not ready or not _is_forgotten(overall.paused, overall):
            return []
        cause = f"{paused_words(overall.paused)} Nothing says when it ends."
        after = f" is paused with {plural(ready, 'ready job')}"
        return [Need("warning", "", "Everything", reverse("dashboard:pools"), after, cause, action="Open pools")]
    if overall.overdue_since is None:
        return []
    since = duration((overall.now - overall.overdue_since).total_seconds())
    return [
        Need(
            "warning",
            "",
            "Scheduled jobs",
            f"{reverse('dashboard:jobs')}?state=scheduled&state=retry_wait",
            " are due and stand in no line",
            f"The first has been due for {since}. No worker is alive to put it there.",
            command="python manage.py runworkers",
        )
    ]


def _is_forgotten(pause: dict[str, Any], overall: Overall) -> bool:
    """A pause that has lasted long, and of which nothing says when it ends."""
    since = read_moment(pause.get("at"))
    return bool(since and not pause.get("until") and (overall.now - since).total_seconds() > LONG_PAUSE_SECONDS)


def _schedule_needs(overall: Overall) -> list[Need]:
    if not overall.late:
        return []
    url = f"{reverse('dashboard:schedules')}?state=late"
    if len(overall.late) == 1:
        before, noun, are = "Schedule ", overall.late[0], " is late"
    else:
        before, noun, are = "", plural(len(overall.late), "schedule"), " are late"
    cause = "It should have fired" if len(overall.late) == 1 else "They should have fired"
    why = "no worker is alive" if not overall.workers else "nobody has fired it yet"
    about = ("schedule", overall.late[0])
    return [Need("warning", before, noun, url, are, f"{cause}, and {why}.", action="Open schedules", about=about)]


def _host_needs(overall: Overall) -> list[Need]:
    url = reverse("dashboard:workers")
    found = []
    if overall.silent:
        one = len(overall.silent) == 1
        before, noun = ("Host ", overall.silent[0]) if one else ("", plural(len(overall.silent), "host"))
        when = "its leases end" if overall.workers else "a worker is alive again"
        cause = f"It ended in no good order. What it ran is taken back when {when}."
        are = " has gone silent" if one else " have gone silent"
        found.append(Need("warning", before, noun, url, are, cause, action="Open workers"))
    if overall.outdated:
        one = len(overall.outdated) == 1
        before, noun = ("Host ", overall.outdated[0]) if one else ("", plural(len(overall.outdated), "host"))
        cause = f"Release {overall.newest} has been running beside it for over 10 minutes."
        are = " still runs old code" if one else " still run old code"
        found.append(Need("warning", before, noun, url, are, cause, action="Open workers"))
    return found


def _dead_needs(overall: Overall, groups: Sequence[ErrorGroup], sampled: int) -> list[Need]:
    dead = overall.loud_dead
    if not dead:
        return []
    url = reverse("dashboard:dead")
    if not groups:
        return [
            Need(
                "dead",
                "",
                plural(dead, "job"),
                url,
                " died",
                f"{'It waits' if dead == 1 else 'They wait'} to be resubmitted or discarded.",
            )
        ]
    first = groups[0]
    common: dict[str, Any] = {
        "action": "Open the group",
        "action_url": f"{url}?{urlencode({'group': first.fingerprint})}",
        "about": ("group", first.fingerprint),
        "pool": first.pools[0] if len(first.pools) == 1 else "",
    }
    what = f"{first.error_type}: {first.pattern}" if first.pattern else first.error_type
    if first.count == dead:
        of_one = " died of one error" if dead > 1 else " died"
        types = first.types[0] if len(first.types) == 1 else f"{len(first.types)} types"
        cause = f"{sentence(shortened(what, 160))}{_began(first, overall)}"
        return [Need("dead", f"{plural(dead, 'job')} of ", types, url, of_one, cause, **common)]
    is_whole = sampled >= (overall.count("dead") or 0)  # muted ones are in the sample too
    sample = "" if is_whole else f" of the newest {count(sampled)}"
    are = "is" if first.count == 1 else "are"
    began = _began(first, overall) if is_whole else ""
    cause = f"{count(first.count)}{sample} {are} one error of {', '.join(first.types[:2])}: {shortened(what, 120)}"
    return [Need("dead", "", plural(dead, "job"), url, " died", f"{sentence(cause)}{began}", **common)]


SOON = timedelta(minutes=30)
"""What begins within this time after a deploy is told with it."""


def _began(group: ErrorGroup, overall: Overall) -> str:
    """`` Began 13:04, 2 min after deploy 9f3c2ab.``"""
    if group.first_seen is None:
        return ""
    at = near(group.first_seen, overall.now)
    began = f" Began {at}" if group.count > 1 else f" It died at {at}"
    day = overall.day
    if day and day.released_at and timedelta() <= (after := group.first_seen - day.released_at) <= SOON:
        how_long = age(after.total_seconds()) if after >= timedelta(seconds=1) else "right"
        began += f", {how_long} after deploy {shortened(day.release, 24)}"
    return f"{began}."


def _pool_needs(pool: dict[str, Any], overall: Overall) -> list[Need]:
    name, ready = pool["name"], pool["ready"]
    url = jobs_url(pool=name, state="ready")
    oldest = pool["oldest_ready_age_seconds"]
    if pause_of(pool):
        if ready and pool["paused"] and _is_forgotten(pool["paused"], overall):
            cause = f"{paused_words(pool['paused'])} Nothing says when it ends."
            return [
                Need(
                    "warning",
                    "Pool ",
                    name,
                    url,
                    f" is paused with {plural(ready, 'ready job')}",
                    cause,
                    action="Show the jobs",
                    about=("pool", name),
                )
            ]
        return []
    if unserved(pool):
        waited = f"The oldest has waited {duration(oldest)}. " if oldest else ""
        only = "No worker of this pool is alive." if overall.workers else "No worker is alive at all."
        return [
            Need(
                "warning",
                "Pool ",
                name,
                url,
                f" has {plural(ready, 'ready job')} and no worker",
                waited + only,
                command=f"python manage.py runworkers --pool {name}",
                about=("pool", name),
            )
        ]
    if is_late(pool):
        growing = "" if pool["throughput_per_second"] else " It does not drain."
        cause = f"{plural(ready, 'job')} ready, {pool['leased']} of {pool['slots_actual']} slots busy.{growing}"
        behind = f" is {age(oldest)} behind"
        return [Need("warning", "Pool ", name, url, behind, cause, action="Show the jobs", about=("pool", name))]
    return []


def headline(overall: Overall, found: Sequence[Need]) -> str:
    if not overall.known:
        return "Nothing is known yet"
    if not found:
        return "Nothing needs you"
    number = NUMBERS[len(found)] if len(found) < len(NUMBERS) else count(len(found))
    return f"{number.capitalize()} thing{'s need' if len(found) > 1 else ' needs'} you"
