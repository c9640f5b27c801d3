"""Words for people: the known word nearest to a mistyped one, any value so that it can be shown, lengths of time."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from jobs.exceptions import SchedulerError

LONGEST_MESSAGE = 1_000
"""Characters of an error that are shown."""

_LISTED = 8
_LONGEST = 80


def did_you_mean(word: str, known: Iterable[str], *, none: str = "", far: str = "") -> str:
    """A sentence for an error's ``fix``: the nearest known word, or what there is, or ``none`` if there is nothing.

    ``far``: instead of what there is, where that is too much to be of help.
    """
    names = sorted(known)
    # Hostile words may be megabytes long, or no words; comparing more than this would cost seconds.
    close = get_close_matches(str(word)[:200], names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return none
    if far:
        return far
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"Known: {', '.join(names[:_LISTED])}{more}."


def shown(value: object) -> str:
    """``repr(value)``, cut short; the name of its class where even that cannot be had (an int of 5,000 digits)."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def visible(text: str, *, keep: str = "") -> str:
    """The text with each control, format and broken character written as an escape (``\\x1b``, ``\\u202e``).

    A terminal obeys such characters: it moves the cursor, renames the window, hides what was written before. In a log
    a line end begins what looks like another record.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )


def length(seconds: float) -> str:
    """A length of time in at most two units: ``340 ms``, ``7.9 s``, ``7 s``, ``2 min 10 s``, ``12 h``, ``3 days``."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))} ms"
    if seconds < 9.95:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    whole = round(seconds)
    if whole < 600:
        return _two_units(whole, 60, "min", 1, "s")
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 36_000:
        return _two_units(whole, 3600, "h", 60, "min")
    if whole < 172_800:
        return f"{whole // 3600} h"
    return f"{whole // 86_400} days"


def _two_units(whole: int, large: int, large_word: str, small: int, small_word: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_word}" + (f" {rest} {small_word}" if rest else "")


def error_dict(error: SchedulerError) -> dict[str, str]:
    """The error as it stands in JSON, on the command line as in the HTTP API."""
    return {"code": error.code, "message": shortened(str(error)), "fix": error.fix}


def shortened(text: str) -> str:
    """The text without its middle where it is very long: it may quote what was typed, and that may be a whole file."""
    if len(text) <= LONGEST_MESSAGE:
        return text
    half = LONGEST_MESSAGE // 2
    return f"{text[:half]} … {text[-half:]}"
