"""How figures, durations and moments are written for people. One function for each, used by pages and live updates
alike, so that a number never changes its looks when it changes its value. Moments are written on the clock of Django's
current time zone, which is the reader's (see ``dashboard.zones``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.utils import timezone

from jobs.core.wording import length

UNKNOWN = "–"

STATE_WORDS = {"leased": "running", "retry_wait": "retry wait"}
"""States whose word on a page differs from the word in the contract."""


def count(number: float | None) -> str:
    """``1337`` → ``1,337``; from a million on ``1.21 m``; unknown → a dash (zero stays 0)."""
    if number is None:
        return UNKNOWN
    if number >= 1_000_000:
        return f"{number / 1_000_000:.3g} m"
    return f"{number:,.0f}"


def plural(number: int, one: str, many: str | None = None) -> str:
    """``plural(1, "job")`` → ``1 job``; ``plural(1200, "job")`` → ``1,200 jobs``."""
    return f"{count(number)} {one if number == 1 else many or one + 's'}"


def exactly(number: int, one: str, many: str | None = None) -> str:
    """``exactly(1_210_000, "job")`` → ``1,210,000 jobs``: what somebody is about to agree to, or has."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``: the first three, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")


def rate(per_second: float | None) -> str:
    """Jobs per second with the digits that matter: ``0``, ``0.05``, ``2.4``, ``914``."""
    if per_second is None:
        return UNKNOWN
    if per_second >= 10:
        return count(round(per_second))
    if per_second >= 0.95:
        return f"{per_second:.1f}"
    if per_second >= 0.005:
        return f"{per_second:.2f}".rstrip("0")
    return "0"


def duration(seconds: float | None) -> str:
    """``340 ms``, ``2 min 10 s``, ``3 days``; unknown → a dash. See ``jobs.core.wording.length``."""
    return UNKNOWN if seconds is None else length(seconds)


def relative(at: datetime | None, now: datetime) -> str:
    """``41 s ago``, ``in 22 s``; unknown → a dash. Under a second no direction is worth telling: ``now``."""
    if at is None:
        return UNKNOWN
    seconds = (at - now).total_seconds()
    if abs(seconds) < 1:
        return "now"
    return f"in {age(seconds)}" if seconds > 0 else f"{age(-seconds)} ago"


def age(seconds: float) -> str:
    """A duration that ticks: whole seconds only, so that it does not flicker between renderings."""
    return duration(float(int(seconds))) if seconds >= 10 else f"{int(seconds)} s"


def moment(at: datetime | None) -> str:
    """``29 Nov 2026, 13:42:08 UTC``, in the reader's zone."""
    if at is None:
        return UNKNOWN
    at = timezone.localtime(at)
    return f"{at.day} {at:%b %Y, %H:%M:%S %Z}"


def near(at: datetime, now: datetime) -> str:
    """A moment as short as it is clear: ``13:42`` within half a day, else ``29 Nov, 13:42``."""
    local = timezone.localtime(at)
    clock_only = abs((at - now).total_seconds()) < 43_200
    return f"{local:%H:%M}" if clock_only else f"{local.day} {local:%b, %H:%M}"


def read_moment(text: str | None) -> datetime | None:
    """A moment with its zone from ISO 8601; None when it is none."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return at if at.tzinfo and has_a_clock(at) else None


def read_number(text: str) -> int:
    """A whole number of up to nine digits; 0 where the text is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def has_a_clock(at: datetime) -> bool:
    """Whether it can be written on the clock of any zone: not in the first or last year that a calendar knows."""
    return 1 < at.year < 9999


def clock(at: datetime | None, *, milliseconds: bool = False) -> str:
    """``13:42:08`` or ``13:42:08.207``, in the reader's zone, which the foot of every page names."""
    if at is None:
        return UNKNOWN
    at = timezone.localtime(at)
    return f"{at:%H:%M:%S}" + (f".{at.microsecond // 1000:03d}" if milliseconds else "")


def day(at: datetime | None) -> str:
    """``29 Nov 2026``, in the reader's zone."""
    if at is None:
        return UNKNOWN
    at = timezone.localtime(at)
    return f"{at.day} {at:%b %Y}"


def zone(at: datetime) -> str:
    """What the reader's zone is called at that moment: ``UTC``, ``CEST``, ``+03``."""
    return f"{timezone.localtime(at):%Z}"


def wall(at: datetime) -> str:
    """A moment on the clock of its own zone: ``Mon 30 Nov 2026, 02:30:00 CET``."""
    return f"{at:%a} {at.day} {at:%b %Y, %H:%M:%S %Z}"


def size(length: int) -> str:
    """Bytes as ``412 B``, ``12 KiB``, ``588 MiB``."""
    amount = float(length)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" or amount >= 10 else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def state_word(state: str) -> str:
    """``running``, ``retry wait``: a state as pages call it."""
    return STATE_WORDS.get(str(state), str(state))


TURNS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))
"""Characters that turn round what stands after them, also what others wrote."""


def shortened(text: str, limit: int) -> str:
    """The first ``limit`` characters of one line of ``text``, with an ellipsis where something was left out. It stands
    among other words, which it cannot turn round.
    """
    line = " ".join(text.translate(TURNS).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def sentence(text: str) -> str:
    """With a full stop, if it does not end in one."""
    return text if not text or text[-1] in ".!?…" else text + "."


def as_cell(text: str) -> str:
    """A cell of a CSV file that no spreadsheet takes for a formula: one that it would begins with an apostrophe."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
