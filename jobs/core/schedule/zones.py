"""Time zones as the rules need them: by name, and by the moments at which their clocks change.

Moments are naive datetimes in UTC here and wall-clock times naive datetimes of the zone: a sum of the two kinds and an
offset is then plain arithmetic, with none of the surprises of aware datetimes around a change.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones

from jobs.core.wording import did_you_mean, shown
from jobs.exceptions import ScheduleInvalid

_SECOND = timedelta(seconds=1)
_SAMPLE = timedelta(days=5)
"""No zone changes its clocks twice, there and back, within so few days."""


class Change(NamedTuple):
    """The clocks of a zone jump ``at`` a moment from one offset to another."""

    at: datetime
    before: timedelta
    after: timedelta

    @property
    def wall_before(self) -> datetime:
        """What the clocks would have shown: where a gap begins, where a repeated stretch ends."""
        return self.at + self.before

    @property
    def wall_after(self) -> datetime:
        """What the clocks show from then on: where a gap ends, where a repeated stretch begins."""
        return self.at + self.after

    @property
    def is_gap(self) -> bool:
        return self.after > self.before


def zone_named(name: str) -> ZoneInfo:
    """The zone of this IANA name. Raises ScheduleInvalid with the nearest name there is."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, TypeError, OSError):  # OSError: a directory such as "Europe"
        raise ScheduleInvalid(
            f"There is no time zone {shown(name)}.",
            fix=did_you_mean(name, available_timezones(), far="Write one such as Europe/Berlin or UTC."),
        ) from None


def offset_at(zone: ZoneInfo, moment: datetime) -> timedelta:
    """What the clocks are ahead of UTC at ``moment``."""
    offset = moment.replace(tzinfo=UTC).astimezone(zone).utcoffset()
    assert offset is not None
    return offset


def changes_between(zone: ZoneInfo, start: datetime, end: datetime) -> Iterator[Change]:
    """The changes after ``start``, up to and including ``end``, in order."""
    for year in range(start.year, end.year + 1):
        for change in _changes(zone, year):
            if start < change.at <= end:
                yield change


@lru_cache(maxsize=4096)
def _changes(zone: ZoneInfo, year: int) -> tuple[Change, ...]:
    """The changes of one year. ``zoneinfo`` does not list them, so the year is sampled and each change closed in on."""
    found = []
    at, end = datetime(year, 1, 1) - _SECOND, datetime(year + 1, 1, 1) - _SECOND  # noqa: DTZ001 – UTC, see above
    offset = offset_at(zone, at)
    while at < end:
        sample = min(at + _SAMPLE, end)
        after = offset_at(zone, sample)
        if after != offset:
            found.append(Change(_first_with_other_offset(zone, at, sample, offset), offset, after))
        at, offset = sample, after
    return tuple(found)


def _first_with_other_offset(zone: ZoneInfo, early: datetime, late: datetime, offset: timedelta) -> datetime:
    """Halves the stretch until the change is known to the second."""
    while late - early > _SECOND:
        middle = early + (late - early) // 2
        middle = middle.replace(microsecond=0)
        if offset_at(zone, middle) == offset:
            early = middle
        else:
            late = middle
    return late
