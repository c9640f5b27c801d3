"""Words for errors: the known word nearest to a mistyped one, and any value in a form that can be shown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LISTED = 8
_LONGEST = 80


def did_you_mean(word: str, known: Iterable[str], *, none: str = "") -> str:
    """A sentence for an error's ``fix``: the nearest known word, or what there is, or ``none`` if there is nothing."""
    names = sorted(known)
    # Hostile words may be megabytes long, or no words; comparing more than this would cost seconds.
    close = get_close_matches(str(word)[:200], names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return none
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"Known: {', '.join(names[:_LISTED])}{more}."


def shown(value: object) -> str:
    """``repr(value)``, cut short; the name of its class where even that cannot be had (an int of 5,000 digits)."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__}>"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
