"""How people write spans of time, moments and rates on a command line."""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime, timedelta

from django.utils import timezone

_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_EXAMPLES = "write 90s, 5m, 2h, 7d or 1h30m"


def duration(text: str) -> timedelta:
    """``90s``, ``5m``, ``2h``, ``7d``, ``1h30m``, ``250ms``; a bare number means seconds."""
    written = text.strip()
    try:
        if _NUMBER.fullmatch(written):
            return timedelta(seconds=float(written))
        parts = _PART.findall(written)
        if parts and "".join(number + unit for number, unit in parts) == written:
            return sum((float(number) * _UNITS[unit] for number, unit in parts), timedelta())
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than a duration can be: {_EXAMPLES}") from None
    raise argparse.ArgumentTypeError(f"{text!r} is not a duration: {_EXAMPLES}")


def seconds(text: str) -> float:
    """A duration as a number of seconds."""
    return duration(text).total_seconds()


def moment(text: str) -> datetime:
    """An ISO 8601 time. Without an offset it is read in the project's ``TIME_ZONE``."""
    try:
        at = datetime.fromisoformat(text.strip())
        return (timezone.make_aware(at) if at.tzinfo is None else at).astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an ISO 8601 time: write 2026-01-31T09:00:00Z or 2026-01-31T09:00:00+01:00"
        ) from None


def since(text: str) -> datetime:
    """An ISO 8601 time, or a duration that reaches back from now."""
    try:
        back = duration(text)
    except argparse.ArgumentTypeError as no_duration:
        try:
            return moment(text)
        except argparse.ArgumentTypeError:
            raise argparse.ArgumentTypeError(
                f"{text!r} is neither a duration nor an ISO 8601 time: {_EXAMPLES}, or 2026-01-31T09:00:00Z"
            ) from no_duration
    try:
        return timezone.now() - back
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text!r} reaches back before the calendar: {_EXAMPLES}") from None


def rate(text: str) -> float:
    """``10/s``, ``90/m``, ``500/h`` as jobs per second; a bare number is per second."""
    number, slash, unit = text.strip().partition("/")
    span = _UNITS.get(unit) if slash else _UNITS["s"]
    if span is None or not _NUMBER.fullmatch(number) or float(number) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a rate: write 10/s, 90/m or 500/h")
    return float(number) / span.total_seconds()


def spoken(span: timedelta) -> str:
    """A span as people say it, in its two largest units: ``4s``, ``2m 10s``, ``3d 4h``."""
    total = abs(span.total_seconds())
    if total < 1:
        return f"{total * 1000:.0f}ms"
    if total < 10:
        return f"{total:.1f}".rstrip("0").rstrip(".") + "s"
    left = round(total)
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
        elif parts:
            break
    return " ".join(parts[:2])
