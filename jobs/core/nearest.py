"""The known word nearest to a mistyped one, for errors that say what to write instead."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_SHOWN = 8


def did_you_mean(word: str, known: Iterable[str], *, none: str = "") -> str:
    """A sentence for an error's ``fix``: the nearest known word, or what there is, or ``none`` if there is nothing."""
    names = sorted(known)
    # Hostile words may be megabytes long; comparing more than this would cost seconds.
    close = get_close_matches(word[:200], names, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {close[0]!r}?"
    if not names:
        return none
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Known: {', '.join(names[:_SHOWN])}{more}."
