"""Pages that are bounded in bytes as in items: a thousand small jobs, or as many large ones as make a reply."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import msgspec

MOST_BYTES = 4 * 1_048_576
"""Of the items of one page, as JSON in UTF-8. One item is always given, however large it is."""

FIRST = 50
"""So many are read at first; then as many as seem to fit, going by those."""

Documents = Sequence[dict[str, Any]]
Read = Callable[[str | None, int], tuple[Documents, str | None]]
"""From a cursor on at most so many documents, and the cursor after them. Fewer: it goes no further for now."""


def page(read: Read, cursor: str, size: int) -> dict[str, Any]:
    """One page of at most ``size`` items. What does not fit is where its cursor leads to."""
    items: list[dict[str, Any]] = []
    taken, following = 0, cursor or None
    while True:
        wanted = _step(taken, len(items), size)
        found, after = read(following, wanted)
        ends = [taken + end for end in accumulate(map(_bytes, found))]
        fitting = max(sum(end <= MOST_BYTES for end in ends), int(not items))
        if fitting < len(found):
            found, after = read(following, fitting) if fitting else ([], following)
        items += found
        if fitting < len(ends) or len(found) < wanted or len(items) >= size or after is None:
            return {"items": items, "next_cursor": after}
        taken, following = ends[-1], after


def _step(taken: int, count: int, size: int) -> int:
    """How many to read now."""
    fitting = (MOST_BYTES - taken) * count // taken if taken else FIRST
    return max(1, min(fitting, size - count))


def _bytes(document: dict[str, Any]) -> int:
    return len(msgspec.json.encode(document))
