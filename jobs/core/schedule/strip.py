"""The last firings of a schedule as a strip of cells, for pages: one shape for each outcome, so that colour is no need.

Pages draw the paths; what they mean is said once, in ``label``. Nothing here knows HTML.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

CELL, GAP, HEIGHT = 6, 3, 18
"""Pixels: how wide a cell is, how far the next one, and how high the longest run."""
_LOWEST = 4
_DOUBLE = 2.0
"""A run that took this many times the usual one fills the height; the usual one half of it."""

OUTCOMES = ("succeeded", "failed", "cancelled", "skipped", "pending", "fired")
"""Solid bar (its height: how long it ran), cross, block on the ground, dash on the ground, outline, thin line (its job
is kept no more, so nobody knows)."""


@dataclass(frozen=True)
class Strip:
    """``paths``: outcome → SVG path of all its cells. ``label`` says the same in words."""

    paths: tuple[tuple[str, str], ...]
    width: int
    height: int
    label: str


def strip(firings: Iterable[tuple[str, float | None]], noun: str = "firing") -> Strip:
    """Draws (outcome, run time in usual run times or None), oldest first. ``noun``: what each of them is."""
    drawn: dict[str, list[str]] = {outcome: [] for outcome in OUTCOMES}
    counted: Counter[str] = Counter()
    for number, (outcome, length) in enumerate(firings):
        drawn[outcome].append(_cell(outcome, number * (CELL + GAP), length))
        counted[outcome] += 1
    total = counted.total()
    return Strip(
        paths=tuple((outcome, "".join(cells)) for outcome, cells in drawn.items() if cells),
        width=max(1, total * (CELL + GAP) - GAP),
        height=HEIGHT,
        label=_label(counted, total, noun),
    )


def _cell(outcome: str, x: int, length: float | None) -> str:
    match outcome:
        case "failed":
            return f"M{x} {HEIGHT - CELL * 2}l{CELL} {CELL * 2}m0 {-CELL * 2}l{-CELL} {CELL * 2}"
        case "cancelled":
            return f"M{x} {HEIGHT - CELL}h{CELL}v{CELL}h-{CELL}z"
        case "fired":
            return f"M{x + CELL // 2 - 1} {HEIGHT // 2}h2V{HEIGHT}h-2z"
        case "skipped":
            return f"M{x} {HEIGHT - 2}h{CELL}v2h-{CELL}z"
        case "pending":
            return f"M{x}.5 {HEIGHT - CELL - 0.5}h{CELL - 1}v{CELL}h{1 - CELL}z"
    share = 0.5 if length is None else min(1.0, length / _DOUBLE)
    height = round(_LOWEST + (HEIGHT - _LOWEST) * share)
    return f"M{x} {HEIGHT}v-{height}h{CELL}v{height}z"


def _label(counted: Counter[str], total: int, noun: str) -> str:
    if not total:
        return f"There is no {noun} yet."
    parts = ", ".join(f"{counted[outcome]} {outcome}" for outcome in OUTCOMES if counted[outcome])
    return f"Last {noun}: {parts}." if total == 1 else f"Last {total} {noun}s: {parts}."
