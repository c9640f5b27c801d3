"""What was changed in a schedule, entry by entry: each says what it made different from the one before."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from itertools import islice, zip_longest
from typing import Any

from jobs.api.schedule_rows import shown_fields
from jobs.models import Schedule, ScheduleChange

_SHOWN = 120


@dataclass(frozen=True)
class Difference:
    """One field before and after."""

    label: str
    before: str
    after: str


@dataclass(frozen=True)
class Entry:
    """One change. ``is_newest``: it is what the schedule is now, so there is nothing to go back to."""

    id: int
    at: datetime
    by: str
    action: str
    differences: tuple[Difference, ...]
    is_newest: bool


def history(schedule: Schedule, most: int) -> list[Entry]:
    """The newest ``most`` changes, newest first."""
    changes = list(schedule.changes.all()[: most + 1])
    pairs = zip_longest(changes, changes[1:])
    return [_entry(change, before, number == 0) for number, (change, before) in enumerate(islice(pairs, most))]


def _entry(change: ScheduleChange, older: ScheduleChange | None, is_newest: bool) -> Entry:
    before = older.snapshot if older else {}
    seen_before, seen_after = shown_fields(before), shown_fields(change.snapshot)
    differences = tuple(
        Difference(_label(name), _text(seen_before.get(name)), _text(seen_after[name]))
        for name, value in change.snapshot.items()
        if older is not None and value != before.get(name)
    )
    return Entry(change.pk, change.at, change.by, change.action, differences, is_newest)


def _label(name: str) -> str:
    known = {field.name: field for field in Schedule._meta.concrete_fields}
    return str(known[name].verbose_name) if name in known else name.replace("_", " ")


def _text(value: Any) -> str:
    if value is None or value == "":
        return "empty"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
