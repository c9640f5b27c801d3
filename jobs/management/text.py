"""Text from jobs, made safe for a terminal."""

from __future__ import annotations


def visible(text: str, *, keep: str = "") -> str:
    """The text with each control, format and broken character written as an escape (``\\x1b``, ``\\u202e``).

    A terminal obeys such characters: it moves the cursor, renames the window, hides what was written before.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in keep else char.encode("unicode_escape").decode("ascii") for char in text
    )
