"""What a schedule would do, as the admin's form shows it while it is filled in.

It asks the rule that would fire, made of the fields that would be saved: it cannot say anything else than what happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from django.utils import timezone

from jobs.admin.schedule_form import OF_KIND, TIMING, ScheduleForm
from jobs.admin.schedule_list import span
from jobs.core.schedule import Cron, Firing, Preview, Window, preview_of, zone_named
from jobs.core.schedule.definition import Definition
from jobs.exceptions import SchedulerError
from jobs.models import Schedule

PREVIEWED = 5
"""Firings that the preview shows."""

_CALM = 5
"""So many firings in one minute are no crowd."""
_LOOKED_AT = 2000
"""Others that are asked whether they are part of a crowd: an answer has to come while somebody types."""
_JITTERS = (60, 120, 300, 600, 900, 1800)

_MISSING = {
    "cron": "Type a cron expression to see when it fires: 30 2 * * MON-FRI",
    "interval": "Give the seconds of the interval to see when it fires.",
    "once": "Give the moment to see when it fires.",
}


@dataclass(frozen=True)
class Row:
    """One firing to come, on three clocks, and how far away it is."""

    wait: str
    local: str
    viewer: str
    utc: str


@dataclass(frozen=True)
class Shown:
    """The preview as the page has it. ``missing`` says what is still to be filled in where there is none."""

    zone: str = ""
    viewer_zone: str = ""
    description: str = ""
    expression: str = ""
    rows: tuple[Row, ...] = ()
    warnings: tuple[str, ...] = ()
    note: str = ""
    missing: str = ""

    @property
    def said(self) -> str:
        """One sentence, for who hears the page."""
        if not self.description:
            return self.missing
        first = f"Next on {self.rows[0].local} in {self.zone}." if self.rows else "It never fires."
        notes = f" {len(self.warnings)} notes." if len(self.warnings) > 1 else " One note." if self.warnings else ""
        return f"{self.description}. {first}{notes}"


@dataclass(frozen=True, kw_only=True)
class Known:
    """What is known of a schedule besides its fields."""

    created_at: datetime | None = None
    fired: int = 0
    usual_seconds: Callable[[str], float | None] = lambda job_type: None  # run time of its jobs, of this type
    crowd: Callable[[datetime], int] = lambda at: 0  # other schedules that fire in the minute of this moment


def shown(form: ScheduleForm, known: Known, viewer_zone: str = "") -> Shown:
    """The preview of what the form holds: of its row while it is untouched, else of what was typed."""
    errors = form.timing_errors() if form.is_bound else {}
    if errors:
        return Shown(missing=next(iter(errors.values()))[0])
    fields = _fields_of(form.instance) | (form.cleaned_data if form.is_bound else {})
    kind = fields.get("kind") or ""
    if fields.get(OF_KIND.get(kind, "")) in (None, ""):
        return Shown(missing=_MISSING.get(kind, ""))
    try:
        return _shown(_definition(fields), known, viewer_zone)
    except SchedulerError as error:
        return Shown(missing=f"{error} {error.fix}".strip())


def _shown(definition: Definition, known: Known, viewer_zone: str) -> Shown:
    now = timezone.now()
    left = None if definition.max_firings is None else max(0, definition.max_firings - known.fired)
    found = preview_of(
        definition.rule(known.created_at or now),
        definition.timezone,
        PREVIEWED,
        now,
        window=Window(starts_at=definition.starts_at, ends_at=definition.ends_at, firings_left=left),
        usual_seconds=known.usual_seconds(definition.job_type),
    )
    viewer = _zone(viewer_zone)
    return Shown(
        zone=definition.timezone,
        viewer_zone=viewer.key if viewer is not None and viewer.key != definition.timezone else "",
        description=found.description,
        expression=found.expression,
        rows=tuple(_row(item, viewer, now) for item in found.items),
        warnings=(*found.warnings, *_crowded(definition, found, known)),
        note=found.note,
    )


def _crowded(definition: Definition, found: Preview, known: Known) -> Iterator[str]:
    """Others that fire in the minute of its next firing, and the jitter that would spread them."""
    if not found.items:
        return
    others = known.crowd(found.items[0].utc)
    proposal = next((seconds for seconds in _JITTERS if (others + 1) * 60 <= seconds * _CALM), _JITTERS[-1])
    if others >= _CALM and definition.jitter_seconds < proposal:
        yield (
            f"{others} other schedules fire at {found.items[0].local:%H:%M} too: "
            f"a jitter of {proposal} seconds would spread it."
        )


def _definition(fields: Mapping[str, Any]) -> Definition:
    """What the fields say about when it fires; the rest does not matter to a preview."""
    timing = {name: fields[name] for name in TIMING if fields.get(name) not in (None, "")}
    return Definition(name=fields.get("name") or "", job_type=fields.get("job_type") or "", **timing)


def _fields_of(schedule: Schedule) -> dict[str, Any]:
    return {name: getattr(schedule, name) for name in ("name", "job_type", *TIMING)}


def _row(firing: Firing, viewer: ZoneInfo | None, now: datetime) -> Row:
    return Row(
        wait=span((firing.utc - now).total_seconds()),
        local=_spelled(firing.local),
        viewer=_spelled(firing.utc.astimezone(viewer or UTC)),
        utc=_spelled(firing.utc),
    )


def _spelled(at: datetime) -> str:
    """``Mon 30 Nov 2026, 02:30``, with seconds and their thousandths only where there are any."""
    text = f"{at:%a} {at.day} {at:%b %Y, %H:%M}"
    if at.second or at.microsecond:
        text += f":{at:%S}"
    return text + (f".{at.microsecond // 1000:03d}" if at.microsecond else "")


def _zone(name: str) -> ZoneInfo | None:
    """The viewer's zone, which comes from a browser: anything else than a zone is none."""
    try:
        return zone_named(name) if name else None
    except SchedulerError:
        return None


# --- The crowd -------------------------------------------------------------------------------------------------------


def crowd(name: str) -> Callable[[datetime], int]:
    """How many others than the schedule ``name`` fire in the minute of a moment: cron schedules without a jitter."""

    def count(at: datetime) -> int:
        others = Schedule.objects.filter(enabled=True, paused_at=None, kind="cron", jitter_seconds=0)
        rows = others.exclude(name=name).values_list("cron", "timezone", "name")[:_LOOKED_AT]
        rules = Counter((text, zone, name if "H" in text.upper() else "") for text, zone, name in rows)
        return sum(number for rule, number in rules.items() if _fires_in_minute(rule, at))

    return count


def _fires_in_minute(rule: tuple[str, str, str], at: datetime) -> bool:
    minute = at.replace(second=0, microsecond=0)
    cron = _parsed(rule)
    due = None if cron is None else cron.next_after(minute - timedelta(seconds=1))
    return due is not None and due < minute + timedelta(minutes=1)


@lru_cache(maxsize=2048)
def _parsed(rule: tuple[str, str, str]) -> Cron | None:
    text, zone, name = rule
    try:
        return Cron(text, zone, name=name)
    except SchedulerError:
        return None
